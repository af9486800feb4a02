"""Arrays of normalised integers ("1 channel unsigned 8-bit normalized integer" ... of `CUarray_format`).

Of a signed number c of b bits the value is max(c / (2^(b-1) - 1), -1), of an unsigned one c / (2^b - 1) (CUDA C++ Programming
Guide, "Texture Memory": [0.0, 1.0] and [-1.0, 1.0] are mapped to the whole range of the integers).
"""

from __future__ import annotations

from ctypes import byref, c_void_p

import numpy as np
import pytest
from test_textures import AS_IS, INVALID_VALUE, of_images, read, upload

from ptxvm.libcuda.structures import Array3DDescriptor, ArrayDescriptor, Resource, TextureDescriptor

FORMATS = {0xC0: ("u1", 1), 0xC1: ("u1", 2), 0xC2: ("u1", 4), 0xC3: ("u2", 1), 0xC4: ("u2", 2), 0xC5: ("u2", 4)}
FORMATS |= {0xC6: ("i1", 1), 0xC7: ("i1", 2), 0xC8: ("i1", 4), 0xC9: ("i2", 1), 0xCA: ("i2", 2), 0xCB: ("i2", 4)}


cuda = pytest.fixture(of_images, name="cuda")


@pytest.mark.parametrize("flags", [0, AS_IS])
@pytest.mark.parametrize("number", FORMATS)
def test_a_texture_reads_numbers_from_0_or_minus_1_to_1(cuda, rng, number, flags):
    """Whatever the texture asks of integers: these are none."""
    name, channels = FORMATS[number]
    limits = np.iinfo(name)
    image = rng.integers(limits.min, limits.max, (4, 8, channels), name, endpoint=True)
    image[0, :2, 0] = limits.min, limits.max
    array = cuda.handle("cuArrayCreate_v2", byref(ArrayDescriptor(8, 4, number, channels)))
    upload(cuda, array, image)
    resource, told = Resource(type=0), Array3DDescriptor()
    resource.of.array = array.value
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(TextureDescriptor(address=(1, 1, 1), flags=flags)), None)
    expected = np.maximum(image[:, :, 0] / float(limits.max), -1)
    assert np.abs(read(cuda, texture, 0.5) - expected).max() < 1e-7
    smooth = TextureDescriptor(address=(1, 1, 1), flags=flags, filter=1)
    between = cuda.handle("cuTexObjectCreate", byref(resource), byref(smooth), None)
    assert np.abs(read(cuda, between, 1.0)[:, :7] - (expected[:, :7] + expected[:, 1:]) / 2).max() < 1e-6
    cuda.cuArray3DGetDescriptor_v2(byref(told), array)
    assert (told.format, told.channels) == (number, channels)
    for each in (texture, between):
        cuda.cuTexObjectDestroy(each)
    cuda.cuArrayDestroy(array)


@pytest.mark.parametrize("number", FORMATS)
def test_the_format_says_how_many_channels_there_are(cuda, number):
    wrong = 1 if FORMATS[number][1] > 1 else 2
    assert cuda.result("cuArrayCreate_v2", byref(c_void_p()), byref(ArrayDescriptor(8, 4, number, wrong))) == INVALID_VALUE

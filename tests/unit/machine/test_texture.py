"""What textures, samplers and surfaces are made of, and what they refuse."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.handles import HANDLES
from ptxvm.machine.memory import Memory
from ptxvm.machine.opaque import find, is_a
from ptxvm.machine.texture import Sampler, Surface, Texture


@pytest.mark.parametrize(
    ("shape", "how", "geometry", "size"),
    [
        ((5,), {}, "1d", (5, 1, 1)),
        ((4, 5), {}, "2d", (5, 4, 1)),
        ((3, 4, 5), {}, "3d", (5, 4, 3)),
        ((4, 5), {"layered": True}, "a1d", (5, 1, 4)),
        ((3, 4, 5), {"layered": True}, "a2d", (5, 4, 3)),
        ((6, 4, 4), {"cubemap": True}, "cube", (4, 4, 6)),
        ((12, 4, 4), {"cubemap": True}, "acube", (4, 4, 12)),
        ((6, 4, 4), {"cubemap": True, "layered": True}, "acube", (4, 4, 6)),
        ((4, 5, 2), {"channels": 2}, "2d", (5, 4, 1)),
    ],
)
def test_geometry(shape: tuple[int, ...], how: dict[str, Any], geometry: str, size: tuple[int, int, int]) -> None:
    """The axes are layers or depth, height, width, channels."""
    texture = Texture(np.zeros(shape, np.float32), **how)
    assert (texture.image.geometry, texture.image.level.size) == (geometry, size)


@pytest.mark.parametrize(
    ("shape", "how", "said"),
    [
        ((), {}, "1 to 3 directions"),
        ((2, 2, 2, 2), {}, "1 to 3 directions"),
        ((2, 2, 2, 2), {"layered": True}, "2 beside layers"),
        ((0, 4), {}, "directions"),
        ((5, 4, 4), {"cubemap": True}, "6n faces"),
        ((6, 4, 5), {"cubemap": True}, "a square"),
        ((4, 3), {"channels": 3}, "1, 2 or 4 channels"),
        ((4, 3), {"channels": 4}, "no axis of 4 channels"),
        ((4,), {"address": "wrap"}, "normalized=True"),
        ((4,), {"address": "around"}, "wrap, mirror, clamp, border"),
        ((4,), {"filter": "cubic"}, "nearest, linear"),
        ((4,), {"read": "float"}, "element, normalized_float"),
        ((4,), {"read": "normalized_float"}, "not float32"),
        ((4,), {"srgb": True}, "srgb is for u8"),
        ((4, 4), {"mipmaps": [np.zeros((2, 3), np.float32)]}, "level 1"),
    ],
)
def test_refused(shape: tuple[int, ...], how: dict[str, Any], said: str) -> None:
    """The message names what is wrong and what would be right."""
    with pytest.raises(ValueError, match=said):
        Texture(np.zeros(shape, np.float32), **how)


def test_refused_elements() -> None:
    """f64 is no format, and integers cannot be filtered."""
    with pytest.raises(TypeError, match="float64"):
        Texture(np.zeros(4))
    with pytest.raises(ValueError, match="normalized_float"):
        Texture(np.zeros(4, np.uint8), "linear")
    with pytest.raises(TypeError, match="contiguous"):
        Surface(np.zeros((4, 4), np.float32)[:, ::2])


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((3, 4, 5), {"samples": 2}),
        ((2, 4), {"samples": 2}),
        ((2, 4, 5), {"samples": 2, "layered": True}),
        ((2, 4, 5), {"samples": 2, "filter": "linear"}),
        ((2, 4, 4), {"samples": 2, "mipmaps": [np.zeros((2, 2, 2), np.float32)]}),
        ((2, 4, 5), {"samples": 2, "normalized": True}),
    ],
)
def test_refused_samples(shape: tuple[int, ...], how: Any) -> None:
    """A multi-sample image has an axis of samples, one level, and no filter (PTX 9.7.10.3)."""
    with pytest.raises(ValueError, match="multi-sample"):
        Texture(np.zeros(shape, np.float32), **how)


def test_samples_are_those_of_the_host() -> None:
    """The array of the host is not copied."""
    array = np.zeros((3, 2, 4, 5, 2), np.float32)
    texture = Texture(array, samples=2, layered=True, channels=2)
    array[2, 1, 3, 4, 1] = 7
    assert texture.image.level.texels[5, 3, 4, 1] == 7


def test_handles() -> None:
    """A handle is found as long as its object lives, by itself or where memory holds it."""
    memory = Memory()
    texture = Texture(np.zeros(4, np.float32))
    place = memory.allocate(8)
    place.bytes.view(np.uint64)[:] = texture.handle
    assert find(memory, texture.handle) is find(memory, place.start, "texref") is texture
    assert is_a(memory, place.start, "texref")
    assert not is_a(memory, place.start, "surfref")
    with pytest.raises(AccessFault, match=r"a \.surfref is needed"):
        find(memory, texture.handle, "surfref")
    handle = texture.handle
    del texture
    gc.collect()
    assert handle not in HANDLES
    with pytest.raises(AccessFault, match="of nothing"):
        find(memory, handle, "texref")
    with pytest.raises(AccessFault, match=r"of nothing$"):  # a query takes an object of any kind
        find(memory, handle)


def test_surface_shares_its_array() -> None:
    """A texture of the same array sees what a surface writes."""
    array = np.zeros((2, 3), np.float32)
    surface, texture = Surface(array), Texture(array)
    surface.rows[0, 1].view(np.float32)[2] = 5
    assert array[1, 2] == 5
    assert texture.image.level.texels[0, 1, 2, 0] == 5
    assert surface.rows.shape == (1, 2, 12)


def test_sampler_of_fields() -> None:
    """The initialiser of a `.samplerref` (PTX 5.3)."""
    sampler = Sampler.of_fields({"filter_mode": "linear", "addr_mode_0": "clamp_to_border", "addr_mode_1": "mirror"})
    assert sampler.sampling.filter == "linear"
    assert sampler.sampling.address == ("border", "mirror", "clamp")
    assert sampler.sampling.normalized


KERNEL = """
    .version 6.4
    .target sm_75
    .address_size 64
    .visible .entry k(.param .u64 out, .param .{type} handle) {{ ret; }}
    """


@pytest.mark.parametrize("type", ["u32", "f64", "surfref"])
def test_parameters_that_hold_no_texture(type: str) -> None:
    """A texture goes to `.u64`, `.b64` and `.texref`."""
    texture = ptxvm.Texture(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="handle"):
        ptxvm.load(KERNEL.format(type=type)).kernel().launch(args=[0, texture])


def test_opaque_parameters_hold_nothing_else() -> None:
    """A `.texref` parameter takes no number."""
    with pytest.raises(TypeError, match="pass a Texture"):
        ptxvm.load(KERNEL.format(type="texref")).kernel().launch(args=[0, 5])

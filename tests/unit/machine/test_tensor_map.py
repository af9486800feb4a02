"""The encoder of tensor maps holds to the rules of cuTensorMapEncode (CUDA driver API 6.30)."""

from __future__ import annotations

import pickle
import re
import weakref

import numpy as np
import pytest

from ptxvm import DeviceArray, Interleave, OobFill, Swizzle, TensorMap, TensorType
from ptxvm.isa.tensor_map import FIELDS


def field(made: TensorMap, name: str, n: int = 0) -> int:
    at, size = FIELDS[name].at(n), FIELDS[name].type.bytes
    return int.from_bytes(made[at : at + size], "little")


def test_a_map_has_what_it_was_made_of():
    array = DeviceArray((8, 6, 32), np.float16)
    made = TensorMap.tiled(
        TensorType.FLOAT16, array, (32, 3, 2), element_strides=(1, 2, 1), swizzle=Swizzle.B64, fill=OobFill.NAN
    )
    assert len(bytes(made)) == 128
    assert (field(made, "global_address"), field(made, "rank"), field(made, "elemtype")) == (array.address, 2, 6)
    assert [field(made, "global_dim", n) for n in range(5)] == [32, 6, 8, 0, 0]
    assert [field(made, "global_stride", n) for n in range(4)] == [64, 384, 0, 0]
    assert [field(made, "box_dim", n) for n in range(3)] == [32, 3, 2]
    assert [field(made, "element_stride", n) for n in range(3)] == [1, 2, 1]
    assert (field(made, "swizzle_mode"), field(made, "swizzle_atomicity"), field(made, "fill_mode")) == (2, 0, 1)


def test_a_map_keeps_its_array():
    """What is freed cannot be accessed: an array that only the map names must live as long."""
    made = TensorMap.tiled(TensorType.FLOAT32, DeviceArray((4, 8), np.float32), (8, 4))
    found = weakref.ref(made.tensor)
    assert found() is not None
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - its own
    assert (again, again.tensor) == (made, None)
    del made
    assert found() is None


@pytest.mark.parametrize(
    ("which", "changes", "message"),
    [
        ("tiled", {"box": (300, 1)}, "the sizes of a box are 1 to 256, not (300, 1)"),
        ("tiled", {"box": (8,)}, "the box has 1 sizes, and the tensor 2"),
        ("tiled", {"box": (3, 1)}, "the innermost size of a box is 12 bytes, which is no multiple of 16"),
        ("tiled", {"box": (16, 1), "swizzle": Swizzle.B32}, "64 bytes, above the 32 of the swizzle"),
        ("tiled", {"strides": (100,)}, "strides are multiples of 16 below 2**40, not (100,)"),
        ("tiled", {"tensor": 4104}, "the address 0x1008 of the tensor is no multiple of 16"),
        ("tiled", {"element_strides": (1, 9)}, "element strides are 1 to 8, not (1, 9)"),
        ("tiled", {"type": TensorType.INT32, "fill": OobFill.NAN}, "INT32 has no NaN to fill in"),
        ("tiled", {"interleave": Interleave.B16}, "the tensor has 2 dimensions, and 3 to 5 are possible"),
        ("im2col", {"lower": (-40000,)}, "the coordinates of a corner are -32768 to 32767"),
        ("im2col", {"pixels": 1025}, "a column has 1 to 1024 pixels, not 1025"),
    ],
)
def test_what_the_driver_refuses(which, changes, message):
    given = {"type": TensorType.FLOAT32, "tensor": 4096, "sizes": (64, 64), "strides": (256,), "box": (8, 8)}
    if which == "im2col":
        del given["box"]
        given |= {"sizes": (8, 4, 2), "strides": (32, 128), "lower": (0,), "upper": (0,), "channels": 8, "pixels": 4}
    given |= changes
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(TensorMap, which)(given.pop("type"), given.pop("tensor"), **given)

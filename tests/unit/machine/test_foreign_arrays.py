"""Arguments that are no plain NumPy array: taken in place where that is possible, refused by name where it is not.

A kernel knows one byte order, that of the host: what has the other one would be read as other numbers.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.argument_texts import from_file

SOURCE = """
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 a, .param .u32 n, .param .align 4 .b8 s[8]) {
        .reg .b64 %d;
        .reg .b32 %r<2>;
        ld.param.u64 %d, [a];
        ld.param.u32 %r0, [n];
        ld.param.u32 %r1, [s+4];
        add.u32 %r0, %r0, %r1;
        st.global.u32 [%d], %r0;
        ret;
    }
    """
OTHER = ">" if sys.byteorder == "little" else "<"
NONE = bytes(8)


@pytest.fixture(params=["interp", "jit", "repeated"])
def launch(request: pytest.FixtureRequest) -> Any:
    """Launches the kernel, on an engine, or after launches that get it ready for quick ones."""
    kernel = ptxvm.load(SOURCE).kernel()
    engine = "auto" if request.param == "repeated" else request.param
    for _ in range(5 if request.param == "repeated" else 0):
        kernel.launch(1, 1, [np.zeros(1, np.uint32), 1, np.zeros((), "u4,u4")[()]])
    return lambda *args: kernel.launch(1, 1, list(args), engine=engine)


class Swapped(ctypes.BigEndianStructure if sys.byteorder == "little" else ctypes.LittleEndianStructure):
    """A structure in the other byte order."""

    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


RECORD = np.zeros(1, [("x", "u4"), ("y", f"{OTHER}u4")])
SWAPPED = {
    "array": np.zeros(4, f"{OTHER}u4"),
    "empty": np.zeros(0, f"{OTHER}u4"),
    "no dimensions": np.zeros((), f"{OTHER}f8"),
    "view": np.zeros(4, np.uint32).view(f"{OTHER}u4")[1:],
    "record": RECORD,
    "nested": np.zeros(2, [("a", [("b", f"{OTHER}i2", 3)])]),
    "complex": np.zeros(2, f"{OTHER}c8"),
    "datetime": np.zeros(2, f"{OTHER}M8[s]"),
    "text": np.zeros(2, f"{OTHER}U3"),
    "memoryview": memoryview(np.zeros(2, f"{OTHER}u4")),
}


@pytest.mark.parametrize("which", SWAPPED)
def test_an_array_in_the_other_byte_order(which: str, launch: Any) -> None:
    with pytest.raises(TypeError, match=r"argument 0 \(`a`, .u64\) is an array of .*not the byte order of the host; pass"):
        launch(SWAPPED[which], 1, NONE)


def test_values_in_the_other_byte_order(launch: Any) -> None:
    out = np.zeros(1, np.uint32)
    for wrong in (RECORD[0], Swapped(1, 2), memoryview(np.zeros(2, f"{OTHER}u4"))):
        with pytest.raises(TypeError, match=r"argument 2 \(`s`, .b8\[8\]\) is a.* byte order"):
            launch(out, 1, wrong)
    swapped = getattr(ctypes.c_uint32, "__ctype_be__" if sys.byteorder == "little" else "__ctype_le__")
    with pytest.raises(TypeError, match=r"argument 1 \(`n`, .u32\) is a c_uint_.* byte order"):
        launch(out, swapped(5), NONE)
    launch(out, np.array([5], f"{OTHER}u4")[0], NONE)  # NumPy makes native scalars
    assert out[0] == 5


def test_arrays_of_native_order_are_memory(launch: Any) -> None:
    for held in ("?", "u1", "c8", "M8[s]", "m8[s]", "S4", "U2", "V4", "f2", [("x", "u2"), ("y", "u2")]):
        out = np.zeros((2, 3), held)
        launch(out, 0x0102_0304, NONE)
        assert out.tobytes()[:4] == np.uint32(0x0102_0304).tobytes()
    out = np.zeros((), np.uint32)
    launch(out, 7, NONE)
    assert out == 7


def test_what_has_a_buffer_is_memory(launch: Any) -> None:
    one, two, three = array.array("I", [1, 2]), bytearray(8), mmap.mmap(-1, 16)
    for each in (one, memoryview(two), three):
        launch(each, 9, NONE)
    assert one.tolist() == [9, 2]
    assert two == three[:8] == np.array([9, 0], np.uint32).tobytes()
    with pytest.raises(ptxvm.Fault, match="may be read only"):
        launch(memoryview(bytes(8)), 9, NONE)
    launch(one, 1, memoryview(np.array([0, 5], np.uint32)))  # no pointer can be there, so the bytes are meant
    assert one[0] == 6


class Cuda:
    """Says that its memory is a GPU's."""

    __cuda_array_interface__: ClassVar = {"data": (1 << 40, False), "shape": (4,), "typestr": "<u4", "version": 3}


class Copied:
    """Makes a copy for NumPy."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(4, np.uint32)


class Stubborn:
    """Does not share its memory."""

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("it needs a gradient")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


REFUSED = {
    "cuda": (Cuda(), "of type Cuda: it is memory of a GPU"),
    "copied": (Copied(), r"of type Copied: `__array__` may make a copy; pass np.asarray\(x\)"),
    "dlpack": (Stubborn(), "of type Stubborn: NumPy cannot share its memory .it needs a gradient"),
    "class": (np.float32, "of type type: pass a NumPy array"),
    "objects": (np.array([None]), "is an array of Python objects"),
    "text": ("12345678", "of type str: pass"),
    "rows": (memoryview(bytearray(16))[::2], "is not contiguous"),
    "set": ({1}, "of type set: pass"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_is_no_memory_of_the_host(which: str, launch: Any) -> None:
    value, said = REFUSED[which]
    with pytest.raises(TypeError, match=rf"argument 0 \(`a`, .u64\) .*{said}"):
        launch(value, 1, NONE)


def test_values_that_no_parameter_can_be(launch: Any) -> None:
    out = np.zeros(1, np.uint32)
    with pytest.raises(TypeError, match="cannot be of type str"):
        launch(out, np.str_("x"), NONE)
    with pytest.raises(TypeError, match="scalar of Python objects"):
        launch(out, 1, np.array([(None,)], [("x", object)])[0])
    with pytest.raises(ValueError, match="an integer of 20001 bits does not fit"):
        launch(out, 1 << 20_000, NONE)


def test_images_and_device_arrays_in_the_other_byte_order() -> None:
    for make in (ptxvm.Texture, ptxvm.Surface):
        with pytest.raises(TypeError, match="byte order of the host"):
            make(np.zeros((4, 4), f"{OTHER}f4"))
    with pytest.raises(TypeError, match="byte order of the host"):
        ptxvm.DeviceArray(4, f"{OTHER}f4")
    made = ptxvm.DeviceArray.from_host(np.arange(4, dtype=f"{OTHER}f4"))  # a copy
    assert made.dtype.isnative
    assert made.array.tolist() == [0, 1, 2, 3]


def test_a_file_in_the_other_byte_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3, dtype=f"{OTHER}i4"))
    loaded = from_file(str(tmp_path / "x.npy"))
    assert loaded.dtype.isnative
    assert loaded.tolist() == [0, 1, 2]

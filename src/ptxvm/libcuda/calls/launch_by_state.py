"""Launches whose block and arguments are the state of a kernel: the interface before `cuLaunchKernel` (CUDA 2)."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import field
from weakref import WeakKeyDictionary

from ptxvm.dataclass import dataclass
from ptxvm.driver.module import Kernel
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import bytes_from
from ptxvm.libcuda.calls.launch import BUFFER, END, SIZE, launch_kernel
from ptxvm.libcuda.calls.texture_references import reference
from ptxvm.libcuda.session import function, session

MOST = 4096  # bytes of the parameters of a kernel
DEFAULT_UNIT = -1  # CU_PARAM_TR_DEFAULT


@dataclass
class NextLaunch:
    """The state of a kernel for its next launch."""

    block: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0
    size: int = 0
    parameters: bytearray = field(default_factory=lambda: bytearray(MOST))


STATES: WeakKeyDictionary[Kernel, NextLaunch] = WeakKeyDictionary()


def state(handle: int) -> NextLaunch:
    """The state of a kernel."""
    return STATES.setdefault(session().handles.object(handle, Kernel), NextLaunch())


@function("cuFuncSetBlockShape")
def set_block(handle: int, x: int, y: int, z: int) -> None:
    """Set the extents of a block."""
    if min(x, y, z) < 1:
        raise DriverError(Result.INVALID_VALUE, f"a block of {x} x {y} x {z} threads is empty")
    state(handle).block = x, y, z


@function("cuFuncSetSharedSize")
def set_shared(handle: int, size: int) -> None:
    """Set the bytes of dynamic shared memory."""
    state(handle).shared = size


@function("cuParamSetSize")
def set_size(handle: int, size: int) -> None:
    """Set the bytes of all parameters."""
    if size > MOST:
        raise DriverError(Result.INVALID_VALUE, f"a kernel has at most {MOST} bytes of parameters")
    state(handle).size = size


def put_parameter(handle: int, offset: int, data: bytes) -> None:
    """Set some bytes of the parameters."""
    if offset < 0 or offset + len(data) > MOST:
        raise DriverError(Result.INVALID_VALUE, f"{len(data)} bytes at {offset} leave the parameters")
    state(handle).parameters[offset : offset + len(data)] = data


@function("cuParamSeti")
def set_integer(handle: int, offset: int, value: int) -> None:
    """Set a parameter of 32 bits."""
    put_parameter(handle, offset, struct.pack("<I", value))


@function("cuParamSetf")
def set_float(handle: int, offset: int, value: float) -> None:
    """Set a parameter that is a float."""
    put_parameter(handle, offset, struct.pack("<f", value))


@function("cuParamSetv")
def set_bytes(handle: int, offset: int, data: int, size: int) -> None:
    """Set a parameter of any size."""
    put_parameter(handle, offset, bytes_from(data, size))


@function("cuParamSetTexRef")
def set_texture(handle: int, unit: int, texture: int) -> None:
    """Let a kernel read a texture reference of its module, which it does by its name anyway."""
    state(handle)
    if unit != DEFAULT_UNIT or reference(texture).module is None:
        raise DriverError(Result.INVALID_VALUE, "a texture reference is one of a module, in the unit CU_PARAM_TR_DEFAULT")


@function("cuLaunch")
def launch_block(handle: int) -> None:
    """Launch one block."""
    launch_grid(handle, 1, 1)


@function("cuLaunchGrid", "cuLaunchGridAsync")
def launch_grid(handle: int, width: int, height: int, stream: int = 0) -> None:
    """Launch a grid of blocks."""
    if min(width, height) < 1:
        raise DriverError(Result.INVALID_VALUE, f"a grid of {width} x {height} blocks is empty")
    found = state(handle)
    data, size = ctypes.create_string_buffer(bytes(found.parameters), MOST), ctypes.c_size_t(found.size)
    extra = (ctypes.c_uint64 * 5)(BUFFER, ctypes.addressof(data), SIZE, ctypes.addressof(size), END)
    launch_kernel(handle, width, height, 1, *found.block, found.shared, stream, 0, ctypes.addressof(extra))

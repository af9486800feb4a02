"""The bytes of memory: the address space of this process as NumPy arrays.

A generic address is a host address.  `world()` is one array over all of user space, so that a gather through it reaches
any allocation; nothing may touch it before the allocation table has agreed to the addresses.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ptxvm.machine.per_lane import Array

if TYPE_CHECKING:
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

WORLD_START = 4096  # the first page is never mapped
WORLD_SIZE = min(1 << 48, sys.maxsize >> 16 << 16)  # the widest user space of a 64-bit Linux, and of arrays
LOW_LIMIT = 1 << 32
PAGE = 4096
LINE = 256  # bytes: no access asks for more of its address, but for pages

MAP_FIXED = 0x10
MAP_32BIT = 0x40
MAP_NORESERVE = 0x4000
MAP_FAILED = (1 << 64) - 1


@functools.cache
def world(dtype: np.dtype[np.generic]) -> Array:
    """User space as elements of `dtype`; element 0 is at address `WORLD_START`."""
    everything = np.ctypeslib.as_array((ctypes.c_ubyte * WORLD_SIZE).from_address(WORLD_START))
    return everything.view(dtype)


def address_of(array: Array) -> int:
    """The host address of the first element."""
    return int(array.__array_interface__["data"][0])


def bytes_at(address: int, size: int, writable: bool = True) -> Bytes:  # noqa: FBT001, FBT002
    """The `size` bytes at a host address; the caller keeps them alive."""
    if not size:
        return np.empty(0, np.uint8)
    found: Bytes = np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(address)), np.uint8)
    found.flags.writeable = writable
    return found


def anywhere(size: int, *, zero: bool) -> Bytes:
    """Fresh bytes at any address."""
    return np.zeros(size, np.uint8) if zero else np.empty(size, np.uint8)


def congruent(size: int, shift: int) -> Bytes:
    """Fresh zeros at an address that is so many bytes beyond a multiple of `LINE`."""
    room = anywhere(size + 2 * LINE, zero=True)
    first = (shift - address_of(room)) % LINE
    return room[first : first + size]


class LowBytes:
    """Fresh zeroed pages below 4 GiB, unmapped with the object: the memory of a module of `.address_size 32`."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // PAGE) * PAGE
        self.unmap = _libc().munmap  # kept, for at the end of the process the names of this module are gone
        self.address = _map_low(self.size)
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (self.address, False)}

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.unmap(self.address, self.size)


def below_4_gib(size: int, *, zero: bool) -> Bytes:
    """Fresh bytes that a 32-bit address reaches, as on WebAssembly all are; fresh pages are zero."""
    return anywhere(size, zero=zero) if sys.maxsize < LOW_LIMIT else np.asarray(LowBytes(size))


def overlay(address: int, size: int, descriptor: int, offset: int) -> None:
    """Replace some pages of a mapping by the contents of a file, of which they are a private copy; OSError where that fails.

    The address and the offset are multiples of the size of a page; the rest of the last page is the file's, or zero.
    """
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    found = _libc().mmap(address, size, protection, mmap.MAP_PRIVATE | MAP_FIXED, descriptor, offset)
    if found == MAP_FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype = ctypes.c_size_t
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _map_low(size: int) -> int:
    """Map `size` bytes below 4 GiB: with MAP_32BIT, or by hints, which the kernel follows where nothing is mapped."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (MAP_NORESERVE if sys.platform == "linux" else 0)
    x86_linux = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")
    for hint, more in [*([(0, MAP_32BIT)] if x86_linux else []), *((hint, 0) for hint in _low_hints(size))]:
        address = int(_libc().mmap(hint, size, protection, flags | more, -1, 0))
        if address == MAP_FAILED:
            continue
        if address + size <= LOW_LIMIT:
            return address
        _libc().munmap(address, size)
    raise MemoryError(f"no {size} bytes are free below 4 GiB, where a module of .address_size 32 has its memory")


def _low_hints(size: int) -> Iterator[int]:
    """Addresses below 4 GiB to try, 16 MiB apart, from 256 MiB on."""
    return iter(range(1 << 28, LOW_LIMIT - size, 1 << 24))

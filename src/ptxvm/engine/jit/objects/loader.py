"""Code and constants as one block of bytes that runs wherever it lies, and such a block in memory.

LLVM's own linker does the same, but needs LLVM, which takes longer to import than a cached kernel to start.  What is flat
has no host addresses: places that need one are listed, and filled in when the block is loaded.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from typing import NamedTuple


class NotFlatError(Exception):
    """An object file that only LLVM's linker can load."""


class FlatCode(NamedTuple):
    """A block of code: where its functions are, and the 8-byte places that get an address when it is loaded.

    `inner` are places for addresses in the block itself, `outer` for those of functions of the C library.
    """

    code: bytes
    functions: dict[str, int]
    inner: dict[int, int]
    outer: dict[int, str]


class Loaded:
    """A block in executable memory, as long as this object lives."""

    def __init__(self, flat: FlatCode) -> None:
        self._pages = mmap.mmap(-1, max(len(flat.code), 1))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._pages[: len(flat.code)] = flat.code
        for place, target in flat.inner.items():
            struct.pack_into("<Q", self._pages, place, start + target)
        for place, name in flat.outer.items():
            struct.pack_into("<Q", self._pages, place, _address_of(name))
        libc = _libc()
        if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(len(self._pages)), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the system lets no new code be run")
        self._start, self._functions = start, flat.functions

    def address(self, name: str) -> int:
        """Where a function is."""
        return self._start + self._functions[name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _address_of(name: str) -> int:
    """Of a function of the C library, or of the library of mathematics, which Python has loaded."""
    found = ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value
    if found is None:
        raise NotFlatError(f"the C library has no '{name}'")
    return found

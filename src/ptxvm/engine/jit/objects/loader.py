"""The loader: puts a position-independent block of code in executable memory.

LLVM's linker could do this, but importing LLVM takes longer than starting a cached kernel.  A block holds no host
addresses: it lists the offsets that need one, which are filled in when it is loaded.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Mapping
from types import MappingProxyType

from ptxvm.named_tuple import NamedTuple


class NotFlatError(Exception):
    """An object file that only LLVM's linker can load."""


class FlatCode(NamedTuple):
    """A block of code: the offsets of its functions, and of the 8-byte slots that get an address when it is loaded.

    `inner` maps slots to offsets in the block, `outer` to functions of the C library.
    """

    code: bytes
    functions: dict[str, int]
    inner: dict[int, int]
    outer: dict[int, str]


class Loaded:
    """A block in executable memory, for as long as this object lives; `known` are addresses that the C library has not."""

    def __init__(self, flat: FlatCode, known: Mapping[str, int] = MappingProxyType({})) -> None:
        self._pages = mmap.mmap(-1, max(len(flat.code), 1))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._pages[: len(flat.code)] = flat.code
        for offset, target in flat.inner.items():
            struct.pack_into("<Q", self._pages, offset, start + target)
        for offset, name in flat.outer.items():
            struct.pack_into("<Q", self._pages, offset, known[name] if name in known else _address_of(name))
        libc = _libc()  # Linux makes the caches of instructions see new code when its pages become executable
        if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(len(self._pages)), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the system forbids executable memory; engine='interp' needs none")
        self._start, self._functions = start, flat.functions

    def address(self, name: str) -> int:
        """The address of a function."""
        return self._start + self._functions[name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _address_of(name: str) -> int:
    """The address of a function of the C or mathematics library, which Python has loaded."""
    found = ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value
    if found is None:
        raise NotFlatError(f"the C library has no '{name}'")
    return found

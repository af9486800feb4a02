"""The functions of the driver API: their parameters, and the versions that `cuGetProcAddress` knows.

`functions.txt` has them, from the headers of a toolkit (`tools/driver_functions.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType


class Handle64(ctypes.Structure):
    """A handle between processes, which is passed by value."""

    _fields_ = (("data", ctypes.c_ubyte * 64),)


KINDS: Mapping[str, type] = MappingProxyType({
    "p": ctypes.c_size_t,  # a pointer or a handle, as a number: null is 0
    "Q": ctypes.c_uint64,
    "I": ctypes.c_uint32,
    "i": ctypes.c_int32,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
    "S": Handle64,
})  # fmt: skip
STREAM_SUFFIXES = ("_ptsz", "_ptds")
"""Of the functions for which stream 0 is the default stream of the thread."""


@cache
def signatures() -> Mapping[str, str]:
    """The kinds of the parameters of each function, by its symbol."""
    return MappingProxyType({row[0]: row[1].strip("-") for row in rows()})


@cache
def versions() -> Mapping[str, tuple[tuple[int, str], ...]]:
    """The symbols of each name that `cuGetProcAddress` takes, with the version since which it means them, oldest first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows():
        if len(row) > 2:
            found.setdefault(row[2], []).append((int(row[3]), row[0]))
    return MappingProxyType({name: tuple(sorted(symbols)) for name, symbols in found.items()})


@cache
def rows() -> tuple[tuple[str, ...], ...]:
    """The lines of the table."""
    text = Path(__file__).with_name("functions.txt").read_text(encoding="ascii")
    return tuple(tuple(line.split()) for line in text.splitlines())


def symbol_for(name: str, version: int, *, per_thread: bool = False) -> str | None:
    """The function for a name in a version of CUDA (12,020 is 12.2); None where there is none."""
    for each in [name + suffix for suffix in STREAM_SUFFIXES if per_thread] + [name]:
        if known := [symbol for since, symbol in versions().get(each, ()) if since <= version]:
            return known[-1]
    return name if name in signatures() and name not in versions() else None


def base_of(symbol: str) -> str:
    """The function behind a variant for the default stream of the thread."""
    for suffix in STREAM_SUFFIXES:
        symbol = symbol.removesuffix(suffix)
    return symbol


__all__ = ["KINDS", "STREAM_SUFFIXES", "Handle64", "base_of", "signatures", "symbol_for", "versions"]

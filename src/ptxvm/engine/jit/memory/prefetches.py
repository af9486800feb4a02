"""Prefetches of global memory: of a pointer, or of the row that lies some lines behind one."""

from __future__ import annotations

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code

AHEAD, SOON, LINE = 2048, 256, 64  # bytes: how far ahead in a stream for the second cache and the first, and of a cache line
FIRST_CACHE, SECOND_CACHE = 3, 2  # as `llvm.prefetch` numbers them; the first has no room for rows of many tiles
FARTHER = 4096  # for the first iteration of a loop, whose stride is not known: often the next row of a matrix
ROOMY = 48 << 10  # bytes of a first cache that holds the rows of CTAs in step


def cache_of_strides() -> int:
    """The cache for rows that a grid strides over.

    Their distance is often a large power of two, so that they share the sets of the first cache: in one of 32 KiB they push
    each other out before they are read (a sum of 256 MB takes 17 ms so, and 11 ms by way of the second cache).
    """
    return FIRST_CACHE if cpu.first_cache() >= ROOMY else SECOND_CACHE


def prefetch(code: Code, pointer: str, cache: int, *, writing: bool = False) -> None:
    """Load a line into a cache, to read or to write it; an address that is in no memory does no harm."""
    name = "llvm.prefetch.p0"
    code.unit.declarations[name] = f"declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"
    code.run(f"call void @{name}(ptr {pointer}, i32 {int(writing)}, i32 {cache}, i32 1)")


def prefetch_row(code: Code, start: str, length: int, cache: int, *, writing: bool = False) -> None:
    """Load the lines of a row that begins at a line."""
    for first in range(0, length, LINE):
        prefetch(code, code.offset(start, first), cache, writing=writing)


def prefetch_touched(code: Code, start: str, length: int, cache: int, *, writing: bool = False) -> None:
    """Load the lines of a row that need not begin at a line."""
    prefetch_row(code, start, length, cache, writing=writing)
    prefetch(code, code.offset(start, length - 1), cache, writing=writing)

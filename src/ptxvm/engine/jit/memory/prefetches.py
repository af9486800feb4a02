"""Prefetches of global memory: of a pointer, or of the row that lies some lines behind one."""

from __future__ import annotations

from ptxvm.engine.jit.ir.builder import Code

AHEAD, SOON, LINE = 2048, 256, 64  # bytes: how far ahead in a stream for the second cache and the first, and of a cache line
FIRST_CACHE, SECOND_CACHE = 3, 2  # as `llvm.prefetch` numbers them; the first has no room for rows of many tiles


def prefetch(code: Code, pointer: str, cache: int) -> None:
    """Load a line into a cache; an address that is in no memory does no harm."""
    name = "llvm.prefetch.p0"
    code.unit.declarations[name] = f"declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"
    code.run(f"call void @{name}(ptr {pointer}, i32 0, i32 {cache}, i32 1)")


def prefetch_row(code: Code, start: str, length: int, cache: int) -> None:
    """Load the lines of a row."""
    for first in range(0, length, LINE):
        prefetch(code, code.offset(start, first), cache)

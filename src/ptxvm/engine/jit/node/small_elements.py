"""Bytes and halves at an address for each lane, which the processor neither gathers nor scatters."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.runtime import runtime


def loop(unit: Unit, kind: str, llvm: str) -> str:
    """Define the function that gathers or scatters (`kind`) lane by lane; returns its name."""
    name = f"ptxvm.{kind}.{llvm}"
    size = max(1, int(llvm[1:]) // 8)
    return unit.helper(name, runtime(f"{kind}_lanes", name=name, llvm=llvm, size=size, align=min(size, 16)))


def gathered(code: Code, llvm: str, width: int, pointers: str, gather: Callable[[str], str]) -> str:
    """Load from the aligned words that they are in: these are in one page, and in one word of the processor.

    `gather` loads words of 32 bits.
    """
    words, words64, addresses = f"<{width} x i32>", f"<{width} x i64>", f"<{width} x ptr>"
    address = code.emit(f"ptrtoint {addresses} {pointers} to {words64}")
    aligned = code.emit(f"and {words64} {address}, splat (i64 -4)")
    word = gather(code.emit(f"inttoptr {words64} {aligned} to {addresses}"))
    low = code.emit(f"and {words} {code.emit(f'trunc {words64} {address} to {words}')}, splat (i32 3)")
    moved = code.emit(f"lshr {words} {word}, {code.emit(f'shl {words} {low}, splat (i32 3)')}")
    return code.emit(f"trunc {words} {moved} to <{width} x {llvm}>")

"""The upper halves of products of vectors: a division by a constant is such a product.

LLVM would widen all lanes, and shift and narrow them again for each use.  Processors multiply the even lanes of a register to
64 bits, so the products of even and of odd lanes are written apart, where they stand.
"""

from __future__ import annotations

from ptxvm.engine.jit.ir.builder import Code

LOW, HIGH = 0xFFFF_FFFF, -1 << 32


def high(code: Code, x: str, y: str, *, signed: bool) -> str:
    """The upper 32 bits of the products of two vectors of i32."""
    words, pairs = f"<{code.width} x i32>", f"<{code.width // 2} x i64>"
    even, odd = [], []
    for operand in (x, y):
        both = code.emit(f"bitcast {words} {operand} to {pairs}")
        if signed:
            even.append(code.emit(f"ashr {pairs} {code.emit(f'shl {pairs} {both}, splat (i64 32)')}, splat (i64 32)"))
        else:
            even.append(code.emit(f"and {pairs} {both}, splat (i64 {LOW})"))
        odd.append(code.emit(f"{'ashr' if signed else 'lshr'} {pairs} {both}, splat (i64 32)"))
    low, upper = (code.emit(f"mul {pairs} {', '.join(each)}") for each in (even, odd))
    low = code.emit(f"lshr {pairs} {low}, splat (i64 32)")
    upper = code.emit(f"and {pairs} {upper}, splat (i64 {HIGH})")
    return code.emit(f"bitcast {pairs} {code.emit(f'or {pairs} {low}, {upper}')} to {words}")

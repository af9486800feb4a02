"""The upper halves of products of vectors: a division by a constant is such a product.

LLVM would widen all lanes, and shift and narrow them again for each use, or multiply lanes of 64 bits one by one.  Processors
multiply the even lanes of a register to 64 bits, so the products of even and of odd lanes are written apart, where they stand.
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


def high_of_64(code: Code, x: str, y: str, *, signed: bool) -> str:
    """The upper 64 bits of the products of two vectors of i64: of four products of halves, which processors have."""
    words = f"<{code.width} x i64>"

    def made(operation: str, a: str, b: str) -> str:
        return code.emit(f"{operation} {words} {a}, {b}")

    low = [made("and", each, f"splat (i64 {LOW})") for each in (x, y)]
    upper = [made("lshr", each, "splat (i64 32)") for each in (x, y)]
    carried = made("lshr", made("mul", low[0], low[1]), "splat (i64 32)")
    crossed = made("add", made("mul", upper[0], low[1]), carried)  # at most 2^64 - 2^32
    middle = made("add", made("mul", low[0], upper[1]), made("and", crossed, f"splat (i64 {LOW})"))
    found = made("add", made("mul", upper[0], upper[1]), made("lshr", crossed, "splat (i64 32)"))
    found = made("add", found, made("lshr", middle, "splat (i64 32)"))
    if signed:  # a number below 0 has 2^64 more as bits
        for a, b in ((x, y), (y, x)):
            found = made("sub", found, made("and", made("ashr", a, "splat (i64 63)"), b))
    return found

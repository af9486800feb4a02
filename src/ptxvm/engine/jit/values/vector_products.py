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


def quotient_of_64(code: Code, x: str, y: str, *, signed: bool) -> str:
    """The quotients of a vector of i64 by one divisor of all lanes, which is neither 0 nor, if `signed`, -1 (`y` is a vector).

    The upper half of the product with (2^64 - 1) / y is the quotient, or up to 2 less.
    """
    words, lanes = f"<{code.width} x i64>", f"<{code.width} x i1>"

    def made(operation: str, a: str, b: str) -> str:
        return code.emit(f"{operation} {words} {a}, {b}")

    divisor, dividends, sign = code.emit(f"extractelement {words} {y}, i64 0"), x, ""
    if signed:
        absolute = "llvm.abs.i64"
        code.unit.declare(absolute, "i64", "i64", "i1 immarg")
        code.unit.declare(f"llvm.abs.v{code.width}i64", words, words, "i1 immarg")
        sign = made("ashr", made("xor", x, y), "splat (i64 63)")
        divisor = code.call("i64", absolute, ("i64", divisor), ("i1", "false"))
        dividends = code.call(words, f"llvm.abs.v{code.width}i64", (words, x), ("i1", "false"))
    inverse, divisors = code.splat("i64", code.emit(f"udiv i64 -1, {divisor}")), code.splat("i64", divisor)
    quotient = high_of_64(code, dividends, inverse, signed=False)
    rest = made("sub", dividends, made("mul", quotient, divisors))
    for last in (False, True):
        more = code.emit(f"icmp uge {words} {rest}, {divisors}")
        quotient = made("add", quotient, code.emit(f"zext {lanes} {more} to {words}"))
        if not last:
            rest = code.emit(f"select {lanes} {more}, {words} {made('sub', rest, divisors)}, {words} {rest}")
    return made("sub", made("xor", quotient, sign), sign) if signed else quotient

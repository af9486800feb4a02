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
    numbers = _Numbers(code, x, y, signed=signed)
    divisor = code.emit(f"extractelement {numbers.words} {numbers.y}, i64 0")
    inverse = code.splat("i64", code.emit(f"udiv i64 -1, {divisor}"))
    quotient = high_of_64(code, numbers.x, inverse, signed=False)
    rest = numbers.made("sub", numbers.x, numbers.made("mul", quotient, numbers.y))
    for last in (False, True):
        more = numbers.compared("uge", rest, numbers.y)
        quotient = numbers.made("add", quotient, numbers.one_where(more))
        if not last:
            rest = numbers.chosen(more, numbers.made("sub", rest, numbers.y), rest)
    return numbers.with_sign(quotient)


def quotients_of_64(code: Code, x: str, y: str, *, signed: bool) -> str:
    """The same by divisors that differ: a division of f64, one more of what is left, and one more or less.

    What the first division leaves is at most y and 2^13, so that it has a sign where y is not large; quotients by large ones
    are below 3.
    """
    numbers = _Numbers(code, x, y, signed=signed)
    made, doubles = numbers.made, f"<{code.width} x double>"

    def divided(dividends: str, to: str, back: str) -> str:
        found = code.emit(f"fdiv {doubles} {code.emit(f'{to} {numbers.words} {dividends} to {doubles}')}, {divisors}")
        least = code.emit(f"fcmp olt {doubles} {found}, splat (double {MOST})")
        found = code.emit(f"select <{code.width} x i1> {least}, {doubles} {found}, {doubles} splat (double {MOST})")
        return code.emit(f"{back} {doubles} {found} to {numbers.words}")

    divisors = code.emit(f"uitofp {numbers.words} {numbers.y} to {doubles}")
    quotient = divided(numbers.x, "uitofp", "fptoui")
    rest = made("sub", numbers.x, made("mul", quotient, numbers.y))
    more = divided(rest, "sitofp", "fptosi")
    rest = made("sub", rest, made("mul", more, numbers.y))
    below = numbers.compared("slt", rest, "zeroinitializer")
    quotient = made("sub", made("add", quotient, more), numbers.one_where(below))
    rest = numbers.chosen(below, made("add", rest, numbers.y), rest)
    quotient = made("add", quotient, numbers.one_where(numbers.compared("uge", rest, numbers.y)))
    once, left = numbers.compared("uge", numbers.x, numbers.y), made("sub", numbers.x, numbers.y)
    twice = code.emit(f"and <{code.width} x i1> {once}, {numbers.compared('uge', left, numbers.y)}")
    few = made("add", numbers.one_where(once), numbers.one_where(twice))
    large = numbers.compared("uge", numbers.y, f"splat (i64 {LARGE})")
    return numbers.with_sign(numbers.chosen(large, few, quotient))


MOST = "0x43EFFFFFFFFFFFFF"  # the greatest f64 below 2^64
LARGE = (1 << 63) - (1 << 14)


class _Numbers:
    """Two vectors of i64 without their signs, and what is written about such vectors."""

    def __init__(self, code: Code, x: str, y: str, *, signed: bool) -> None:
        self.code, self.x, self.y, self.sign = code, x, y, ""
        self.words, self.lanes = f"<{code.width} x i64>", f"<{code.width} x i1>"
        if signed:
            self.sign = self.made("ashr", self.made("xor", x, y), "splat (i64 63)")
            absolute = f"llvm.abs.v{code.width}i64"
            code.unit.declare(absolute, self.words, self.words, "i1 immarg")
            self.x, self.y = (code.call(self.words, absolute, (self.words, each), ("i1", "false")) for each in (x, y))

    def made(self, operation: str, a: str, b: str) -> str:
        """The result of an operation."""
        return self.code.emit(f"{operation} {self.words} {a}, {b}")

    def compared(self, how: str, a: str, b: str) -> str:
        """A predicate."""
        return self.code.emit(f"icmp {how} {self.words} {a}, {b}")

    def one_where(self, condition: str) -> str:
        """1 where it holds, else 0."""
        return self.code.emit(f"zext {self.lanes} {condition} to {self.words}")

    def chosen(self, condition: str, a: str, b: str) -> str:
        """`a` where it holds, else `b`."""
        return self.code.emit(f"select {self.lanes} {condition}, {self.words} {a}, {self.words} {b}")

    def with_sign(self, quotient: str) -> str:
        """The quotient, below 0 where one of the numbers is."""
        return self.made("sub", self.made("xor", quotient, self.sign), self.sign) if self.sign else quotient

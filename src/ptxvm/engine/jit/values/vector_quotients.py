"""Quotients of vectors of integers, towards 0: processors divide floats, and multiply, but do not divide integers in vectors.

No divisor is 0, or -1 where numbers are signed.  One divisor of all lanes is a vector, too.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.values import vector_products

MOST = "0x43EFFFFFFFFFFFFF"  # the greatest f64 below 2^64
LARGE = (1 << 63) - (1 << 14)


def of_32(code: Code, type: Type, x: str, y: str) -> str:
    """Of up to 32 bits, exact: a quotient that is not whole is farther from a whole one than f64 rounds."""
    words, doubles, to, back = _conversions(code, type)
    a, b = (code.emit(f"{to} {words} {each} to {doubles}") for each in (x, y))
    return code.emit(f"{back} {doubles} {code.emit(f'fdiv {doubles} {a}, {b}')} to {words}")


def by_one(code: Code, type: Type, x: str, y: str) -> str:
    """Of up to 32 bits by one divisor: a product with its reciprocal, which is made greater than it is by one bit.

    Where a whole number is the quotient or less, the product is not less than it.  The product is greater than the quotient
    by at most 2^-50 of it, and the next whole number is farther away than that.
    """
    words, doubles, to, back = _conversions(code, type)
    scalar = code.emit(f"extractelement {words} {y}, i64 0")
    divisor = code.emit(f"{to} i{type.bits} {scalar} to double")
    near = code.bitcast("double", code.emit(f"fdiv double 1.000000e+00, {divisor}"), "i64")
    above = code.splat("double", code.bitcast("i64", code.emit(f"add i64 {near}, 1"), "double"))
    product = code.emit(f"fmul {doubles} {code.emit(f'{to} {words} {x} to {doubles}')}, {above}")
    return code.emit(f"{back} {doubles} {product} to {words}")


def _conversions(code: Code, type: Type) -> tuple[str, str, str, str]:
    """The vectors of integers and of f64, and the conversions to and from these."""
    to, back = ("sitofp", "fptosi") if type.is_signed else ("uitofp", "fptoui")
    return f"<{code.width} x i{type.bits}>", f"<{code.width} x double>", to, back


def by_one_of_64(code: Code, x: str, y: str, *, signed: bool) -> str:
    """Of i64 by one divisor of all lanes.

    The upper half of the product with (2^64 - 1) / y is the quotient, or up to 2 less.
    """
    numbers = _Numbers(code, x, y, signed=signed)
    divisor = code.emit(f"extractelement {numbers.words} {numbers.y}, i64 0")
    inverse = code.splat("i64", code.emit(f"udiv i64 -1, {divisor}"))
    quotient = vector_products.high_of_64(code, numbers.x, inverse, signed=False)
    rest = numbers.made("sub", numbers.x, numbers.made("mul", quotient, numbers.y))
    for last in (False, True):
        more = numbers.compared("uge", rest, numbers.y)
        quotient = numbers.made("add", quotient, numbers.one_where(more))
        if not last:
            rest = numbers.chosen(more, numbers.made("sub", rest, numbers.y), rest)
    return numbers.with_sign(quotient)


def of_64(code: Code, x: str, y: str, *, signed: bool) -> str:
    """Of i64: a division of f64, one more of what is left, and one more or less.

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

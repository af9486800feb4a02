"""Floating point in rational numbers: an oracle that shares nothing with the machine.

Numbers are bit patterns of a `Format`.  Every operation is computed exactly and rounded once; what has no rational
value (infinities, NaN, the sign of zero) follows IEEE 754, and NaN results are `NAN`, which stands for any.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

NAN = "nan"
MODES = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Format:
    """A binary interchange format."""

    bits: int
    fraction: int

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        """The bits of positive infinity."""
        return self.sign - (1 << self.fraction)

    @property
    def bias(self) -> int:
        """What the exponent field has beyond the exponent."""
        return (1 << self.bits - self.fraction - 2) - 1

    @property
    def quantum(self) -> int:
        """The exponent of the least positive number."""
        return 1 - self.bias - self.fraction


F16, BF16, F32, F64 = Format(16, 10), Format(16, 7), Format(32, 23), Format(64, 52)


def is_nan(bits: int, format: Format) -> bool:
    """Is it NaN?"""
    return bits & format.sign - 1 > format.infinity


def is_infinite(bits: int, format: Format) -> bool:
    """Is it an infinity?"""
    return bits & format.sign - 1 == format.infinity


def negative(bits: int, format: Format) -> bool:
    """Is its sign set?"""
    return bool(bits & format.sign)


def value(bits: int, format: Format) -> Fraction:
    """The number that finite bits stand for."""
    size = bits & format.sign - 1
    exponent, fraction = size >> format.fraction, size & (1 << format.fraction) - 1
    whole = fraction | (1 << format.fraction if exponent else 0)
    power = max(exponent, 1) - 1 + format.quantum
    whole = -whole if negative(bits, format) else whole
    return Fraction(whole << power) if power >= 0 else Fraction(whole, 1 << -power)


def round_fraction(x: Fraction, format: Format, mode: str, *, minus: bool | None = None) -> int:
    """The bits of a rational number, rounded; `minus` is the sign of a zero."""
    below = x < 0 if x else bool(minus)
    return bits_of(abs(x), format, mode, below) | (format.sign if below else 0)


def bits_of(size: Fraction, format: Format, mode: str, below: bool) -> int:
    """The magnitude, rounded as part of a number with that sign."""
    exponent = format.quantum
    if size:
        exponent = max(exponent, floor_log2(size) - format.fraction)
    unit = size.denominator << max(exponent, 0)
    whole, rest = divmod(size.numerator << max(-exponent, 0), unit)
    up = {
        "rn": 2 * rest > unit or (2 * rest == unit and whole % 2 == 1),
        "rz": False,
        "rm": below and rest > 0,
        "rp": not below and rest > 0,
    }[mode]
    bits = ((exponent - format.quantum) << format.fraction) + whole + up
    if bits < format.infinity:
        return bits
    away = mode in ("rn", "rm" if below else "rp")
    return format.infinity if away else format.infinity - 1


def floor_log2(x: Fraction) -> int:
    """The exponent of a positive number."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if x.numerator << max(-guess, 0) >= x.denominator << max(guess, 0) else guess - 1


# ── operations ──────────────────────────────────────────────────────────────────────────


def add(a: int, b: int, format: Format, mode: str) -> int | str:
    """`a + b`."""
    return fma(a, round_fraction(Fraction(1), format, "rn"), b, format, mode)


def sub(a: int, b: int, format: Format, mode: str) -> int | str:
    """`a - b`."""
    return NAN if is_nan(b, format) else add(a, b ^ format.sign, format, mode)


def mul(a: int, b: int, format: Format, mode: str) -> int | str:
    """`a * b`."""
    if is_nan(a, format) or is_nan(b, format):
        return NAN
    minus = negative(a, format) != negative(b, format)
    if is_infinite(a, format) or is_infinite(b, format):
        finite = b if is_infinite(a, format) else a
        undefined = not is_infinite(finite, format) and value(finite, format) == 0
        return NAN if undefined else format.infinity | (format.sign if minus else 0)
    return round_fraction(value(a, format) * value(b, format), format, mode, minus=minus)


def fma(a: int, b: int, c: int, format: Format, mode: str) -> int | str:
    """`a * b + c`, rounded once."""
    product = mul(a, b, format, mode)
    if product == NAN or is_nan(c, format):
        return NAN
    minus = negative(a, format) != negative(b, format)
    if is_infinite(a, format) or is_infinite(b, format):
        return NAN if is_infinite(c, format) and negative(c, format) != minus else product
    if is_infinite(c, format):
        return c
    total = value(a, format) * value(b, format) + value(c, format)
    zeros_agree = value(a, format) * value(b, format) == 0 and minus == negative(c, format)
    return round_fraction(total, format, mode, minus=minus if zeros_agree else mode == "rm")


def div(a: int, b: int, format: Format, mode: str) -> int | str:
    """`a / b`."""
    if is_nan(a, format) or is_nan(b, format) or (is_infinite(a, format) and is_infinite(b, format)):
        return NAN
    minus = negative(a, format) != negative(b, format)
    sign = format.sign if minus else 0
    if is_infinite(a, format):
        return format.infinity | sign
    if is_infinite(b, format):
        return sign
    if value(b, format) == 0:
        return NAN if value(a, format) == 0 else format.infinity | sign
    return round_fraction(value(a, format) / value(b, format), format, mode, minus=minus)


def sqrt(a: int, format: Format, mode: str) -> int | str:
    """The square root: an integer root of enough bits, and a last bit that tells of what it lacks."""
    if is_nan(a, format):
        return NAN
    if a & format.sign - 1 == 0 or a == format.infinity:
        return a
    if negative(a, format):
        return NAN
    x = value(a, format)
    scale = 2 * format.fraction - format.quantum + 8
    square = x * Fraction(4) ** scale
    root = isqrt(int(square))
    exact = Fraction(root) + (Fraction(1, 4) if root * root != square else 0)
    return round_fraction(exact / Fraction(2) ** scale, format, mode)


def convert(a: int, source: Format, target: Format, mode: str) -> int | str:
    """From one format to another."""
    if is_nan(a, source):
        return NAN
    sign = target.sign if negative(a, source) else 0
    if is_infinite(a, source):
        return target.infinity | sign
    return round_fraction(value(a, source), target, mode, minus=bool(sign))


INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def round_integral(x: Fraction, mode: str) -> int:
    """A rational number to an integer: `rni rzi rmi rpi`."""
    down, rest = divmod(x.numerator, x.denominator)
    if mode == "rmi" or not rest:
        return down
    if mode == "rpi":
        return down + 1
    if mode == "rzi":
        return down if x > 0 else down + 1
    return down + (2 * rest > x.denominator or (2 * rest == x.denominator and down % 2 == 1))


def to_integer(a: int, source: Format, mode: str, least: int, greatest: int) -> int | str:
    """A float to an integer between two limits."""
    if is_nan(a, source):
        return NAN
    if is_infinite(a, source):
        return least if negative(a, source) else greatest
    return min(max(round_integral(value(a, source), mode), least), greatest)


def interesting(format: Format) -> list[int]:
    """Zeros, the ends of every range, ones and their neighbours, infinities and NaN, of both signs."""
    one = format.bias << format.fraction
    least_normal = 1 << format.fraction
    sizes = [
        0, 1, 2, least_normal // 2, least_normal - 1, least_normal, least_normal + 1, one - 1, one, one + 1,
        one + least_normal // 2, one + least_normal, one + (format.fraction << format.fraction),
        one + (format.fraction + 1 << format.fraction) + 1, one - (format.fraction + 1 << format.fraction),
        format.infinity - 1, format.infinity, format.infinity + 1, format.sign - 1,
    ]  # fmt: skip
    return [s | n for s in sizes for n in (0, format.sign)]

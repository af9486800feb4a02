"""`tanh` in f64, rounded once to f32: how silicon computes it is not found yet.

The argument is reduced to k*ln(2) + r with |r| <= ln(2)/2, and e**r - 1 is its Taylor polynomial (J.-M. Muller, Elementary
Functions, chapters 3 and 11).  All values of tanh in f32 are those of a correctly rounded function (compared with NumPy's
f64).  No products and sums are fused: engines and processors give the same bits.
"""

from __future__ import annotations

from math import factorial, log

from ptxvm.algebra.derived.floats import absolute_value, copy_sign, is_nan, with_nan
from ptxvm.algebra.types import f32, f64, u64
from ptxvm.algebra.value import Value, derived, select

LN2 = log(2)
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefp-1"), float.fromhex("0x1.473de6af278edp-34")  # their sum; k*high is exact
TAYLOR = tuple(1 / factorial(n) for n in range(2, 14))
ROUNDER = 1.5 * 2.0**52  # a float added to it is rounded to a whole number, which stands in the low bits of the sum
MOST_TANH = 20.0  # from here on an f32 result is 1


@derived
def tanh(a: Value) -> Value:
    """The hyperbolic tangent: (e**2a - 1) / (e**2a + 1)."""
    size = absolute_value(a).to(f64)
    doubled = _least(size, MOST_TANH) * 2.0
    whole, power = _whole(doubled * (1 / LN2))
    rest = (doubled - whole * LN2_HIGH) - whole * LN2_LOW
    grown = power * _expm1(rest) + (power - 1.0)  # e**2a - 1
    return with_nan(is_nan(a), copy_sign(a, grown.floating("div", grown + 2.0).to(f32)))


def _least(a: Value, most: float) -> Value:
    """The lesser of the two; the bound for NaN."""
    return select(a < most, a, most)


def _whole(a: Value) -> tuple[Value, Value]:
    """The nearest whole number, and that power of two."""
    moved = a + ROUNDER
    bits = moved.view(u64) << 52  # of the exponent
    return moved - ROUNDER, (bits + (1023 << 52)).view(f64)


def _expm1(a: Value) -> Value:
    """e**a - 1 for a small number."""
    total = a.lift(TAYLOR[-1])
    for coefficient in TAYLOR[-2::-1]:
        total = total * a + coefficient
    return a + a * a * total


__all__ = ["tanh"]

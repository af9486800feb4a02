"""The `.approx` functions as silicon computes them: piecewise quadratics in fixed point.

The top bits of the significand choose a row of coefficients, the low bits x enter as c0*2**p0 ± c1*x*2**p1 ± c2*sq(x), a
bias is added, and the result is cut out of the sum.  Coefficients: `coefficients`, found by `tools/derive_approximations.py`
from exhaustive sweeps of sm_50 to sm_75.  Each function takes an f32 Value with subnormals as they are and gives one;
`.ftz` is the caller's.
"""

from __future__ import annotations

from functools import cached_property
from math import inf

from ptxvm.algebra.derived import coefficients
from ptxvm.algebra.derived.floats import canonical_nan, infinity_bits, is_nan, magnitude, sign_bit, with_nan
from ptxvm.algebra.derived.integers import absolute, shift_to_nearest
from ptxvm.algebra.types import f32, f64, s32, s64, u32, u64
from ptxvm.algebra.value import Value, derived, lookup, select
from ptxvm.dataclass import dataclass

INFINITY, SIGN = 0x7F800000, 0x80000000
FRACTION = 0x7FFFFF
TWO_OVER_PI = 0xA2F983  # the significand of the f32 next to 2/pi


@dataclass(frozen=True)
class Quadratic:
    """One quadratic: its rows, where the terms enter the sum, the bit of the sum that is 1.0, and the bias there."""

    rows: tuple[tuple[int, int, int], ...]
    bits: int  # of the significand that choose the row
    p0: int
    p1: int
    sign1: int
    sign2: int
    weight: int
    bias: int  # a 64-bit fraction of the place 2**(weight-23)

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """c0 where it enters the sum with the bias, c1 where it enters with its sign, c2 with its sign."""
        added = (self.bias << (self.weight - 23)) >> 64
        return (
            tuple((c0 << self.p0) + added for c0, _, _ in self.rows),
            tuple(self.sign1 * c1 << self.p1 for _, c1, _ in self.rows),
            tuple(self.sign2 * c2 for _, _, c2 in self.rows),
        )

    def sum(self, fraction: Value, odd: Value | None = None) -> Value:
        """The sum (s64) for a significand's 23 bits (u32); `odd` (0 or 1) chooses the second half of the rows."""
        low = 23 - self.bits
        row = fraction >> low
        if odd is not None:
            row = row + (odd << self.bits)
        x = fraction & (1 << low) - 1
        square = truncated_square(x) if low == 17 else truncated_square(x << 1) >> 2
        c0, c1, c2 = (lookup(column, row, s64) for column in self.columns)
        return c0 + c1 * x.to(s64) + c2 * square.view(s64)


RCP = Quadratic(coefficients.RCP, 7, 30, 17, -1, +1, 56, 0x67E7_0000_0000_0000)
SQRT = Quadratic(coefficients.SQRT, 6, 33, 18, +1, -1, 58, 0x7FFF_8000_0000_0000)
RSQRT = Quadratic(coefficients.RSQRT, 6, 31, 17, -1, +1, 57, 0x7FFF_8000_0000_0000)
EX2 = Quadratic(coefficients.EX2, 6, 32, 19, +1, +1, 57, 0x6FC4_0000_0000_0000)
LG2 = Quadratic(coefficients.LG2, 6, 30, 18, +1, -1, 56, 0x868B_0000_0000_0000)
SIN = Quadratic(coefficients.SIN, 6, 31, 19, +1, -1, 56, 0)


@derived
def truncated_square(x: Value) -> Value:
    """x*x (u64) of 17 bits (u32) less the partial products below column 19, which the multiplier does not have."""
    high = x >> 9
    crossed = x.lift(0)
    for i in range(2, 9):  # row i keeps what stands from column 19 on
        crossed = crossed + (x >> i & 1) * (x >> 18 - i)
    return ((high * high - (high & 1)).to(u64) << 18) + (crossed.to(u64) << 19)


# ── floats apart and together ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Parts:
    """An f32 taken apart: itself, its sign bit, whether it is subnormal, its exponent (s32, unbiased), its fraction."""

    value: Value
    sign: Value
    subnormal: Value
    exponent: Value
    fraction: Value


def parts(a: Value) -> Parts:
    """Sign, exponent and fraction; of a subnormal those of 2**24 times as much, and the exponent says so."""
    bits = a.view(u32)
    subnormal = biased_exponent(bits).eq(0)
    scaled = select(subnormal, a * 2.0**24, a).view(u32)
    exponent = biased_exponent(scaled).view(s32) - 127
    return Parts(a, bits & SIGN, subnormal, exponent - select(subnormal, exponent.lift(24), 0), scaled & FRACTION)


def biased_exponent(bits: Value) -> Value:
    """The exponent as an f32 has it in its bits (u32)."""
    return bits >> 23 & 0xFF


def significand(bits: Value) -> Value:
    """The 24 bits of the significand of an f32 (u32) that is not subnormal."""
    return bits & FRACTION | 0x800000


def assemble(sign: Value, exponent: Value, fraction: Value) -> Value:
    """An f32 of a sign bit, an exponent (s32) and 23 bits: infinity above the range, rounded to nearest below it."""
    normal = ((exponent + 127).view(u32) << 23) | fraction
    subnormal = shift_to_nearest(fraction | 0x800000, (exponent.lift(-126) - exponent).view(u32))
    bits = select(exponent > 127, fraction.lift(INFINITY), select(exponent < -126, subnormal, normal))
    return (sign | bits).view(f32)


def special(a: Parts, result: Value, *, zero: int, infinite: int) -> Value:
    """The result but for zero and infinity, which give these with their sign, and NaN."""
    size = magnitude(a.value).view(u32)
    bits = select(size.eq(0), a.sign | zero, result.view(u32))
    bits = select(size.eq(INFINITY), a.sign | infinite, bits)
    return with_nan(is_nan(a.value), bits.view(f32))


def of_positive(a: Parts, result: Value) -> Value:
    """The result, or NaN where the argument is less than zero."""
    return with_nan(a.value < 0.0, result)


# ── the functions ───────────────────────────────────────────────────────────────────────


@derived
def rcp(a: Value) -> Value:
    """1/a; exact for powers of two."""
    p = parts(a)
    exact = p.fraction.eq(0)
    return special(p, _below_one(p, RCP.sum(p.fraction) >> RCP.weight - 24, -p.exponent, exact), zero=INFINITY, infinite=0)


@derived
def sqrt(a: Value) -> Value:
    """The square root."""
    p = parts(a)
    odd = p.exponent & 1
    cut = (SQRT.sum(p.fraction, odd.view(u32)) >> SQRT.weight - 23).to(u32) & FRACTION
    result = assemble(cut.lift(0), p.exponent - odd >> 1, cut)
    return of_positive(p, special(p, result, zero=0, infinite=INFINITY))


@derived
def rsqrt(a: Value) -> Value:
    """1 over the square root; exact for powers of four."""
    p = parts(a)
    odd = p.exponent & 1
    exact = p.fraction.eq(0) & odd.eq(0)
    total = RSQRT.sum(p.fraction, odd.view(u32)) >> RSQRT.weight - 24
    return of_positive(p, special(p, _below_one(p, total, -(p.exponent - odd >> 1), exact), zero=INFINITY, infinite=0))


def _below_one(p: Parts, total: Value, exponent: Value, exact: Value) -> Value:
    """A number of the sign of the argument and, where it is not exactly 2**exponent, with a sum of 24 bits less than 1."""
    cut = select(exact, p.fraction.lift(0), total.to(u32) & FRACTION)
    return assemble(p.sign, exponent - select(exact, exponent.lift(0), 1), cut)


# ── the upper half of f64 ───────────────────────────────────────────────────────────────

UPPER, UPPER_NAN = 0xFFFF_FFFF_0000_0000, 0x7FFF_FFFF_0000_0000
DOUBLE_INFINITY, DOUBLE_SIGN = infinity_bits(f64), sign_bit(f64)


@derived
def rcp_upper(a: Value) -> Value:
    """1/a of an f64: 20 bits of its fraction go in as those of an f32, and 20 come out (PTX 9.7.3.14, an H200)."""
    exponent, significand = _upper_parts(a)
    found = rcp(significand.view(f32)).view(u32)
    biased = exponent.lift(2046 - 127) - exponent + (found >> 23).view(s32)
    return _upper_special(a, _upper_made(a, biased, found), zero=DOUBLE_INFINITY, infinite=0)


@derived
def rsqrt_upper(a: Value) -> Value:
    """1 over the square root of an f64, by its upper half (PTX 9.7.3.17, an H200)."""
    exponent, significand = _upper_parts(a)
    odd = exponent - 1023 & 1
    found = rsqrt((significand + (odd.view(u32) << 23)).view(f32)).view(u32)
    biased = exponent.lift(1023 - 127) - (exponent - 1023 - odd >> 1) + (found >> 23).view(s32)
    made = _upper_special(a, _upper_made(a, biased, found), zero=DOUBLE_INFINITY, infinite=0)
    below = a.view(u64) >= DOUBLE_SIGN | 1 << 52  # what is subnormal counts as -0
    return select(below, UPPER_NAN, made.view(u64)).view(f64)


def _upper_parts(a: Value) -> tuple[Value, Value]:
    """The biased exponent (s32) of an f64, and the upper 20 bits of its fraction as an f32 in [1, 2) has them (u32)."""
    upper = (a.view(u64) >> 32).to(u32)
    return (upper >> 20 & 0x7FF).view(s32), (upper & 0xF_FFFF) << 3 | 0x3F80_0000


def _upper_made(a: Value, biased: Value, found: Value) -> Value:
    """The f64 of an exponent and the upper 20 bits of the fraction of an f32 (u32); what would be subnormal is zero."""
    upper = biased.view(u32) << 20 | found >> 3 & 0xF_FFFF
    size = select(biased > 0, upper.to(u64) << 32, 0)
    return (size | a.view(u64) & DOUBLE_SIGN).view(f64)


def _upper_special(a: Value, result: Value, *, zero: int, infinite: int) -> Value:
    """The result but for zero and subnormal numbers, infinity, and NaN, of which the lower half does not count."""
    bits = a.view(u64)
    size, sign = bits & UPPER & ~DOUBLE_SIGN, bits & DOUBLE_SIGN
    found = select(size < 1 << 52, sign | zero, result.view(u64))
    found = select(size.eq(DOUBLE_INFINITY), sign | infinite, found)
    return select(size > DOUBLE_INFINITY, UPPER_NAN, found).view(f64)


@derived
def rsqrt_refined(a: Value) -> Value:
    """`rsqrt.approx.f64`: one step from the gross result, as ptxas writes it; subnormal numbers are scaled by 2**54."""
    small = magnitude(a).view(u64) < 1 << 52
    scaled = select(small, a * 2.0**54, a)
    gross = rsqrt_upper(scaled)
    error = scaled.floating("fma", -(gross * gross), a.lift(1.0))
    step = error.floating("fma", a.lift(0.375), a.lift(0.5))
    near = step.floating("fma", gross * error, gross)
    found = select(small, near * 2.0**27, near).view(u64)
    bits = a.view(u64)
    found = select(a.eq(0.0), bits & DOUBLE_SIGN | DOUBLE_INFINITY, found)
    found = select(bits.eq(DOUBLE_INFINITY), 0, found)
    found = select(a < 0.0, 0xFFF8 << 48, found)
    return select(is_nan(a), bits | 1 << 51, found).view(f64)


@derived
def ex2(a: Value) -> Value:
    """2**a; below -126 the square of 2**(a/2)."""
    small = a < -126.0
    result = _ex2(select(small, a * 0.5, a))
    return with_nan(is_nan(a), select(small, result * result, result))


def _ex2(a: Value) -> Value:
    bits = a.view(u32)
    exponent = (biased_exponent(bits).view(s32) - 127).min(8)  # what is greater is infinite as 2**8 is, or 0
    left, right = (x.max(0).view(u32).to(u64) for x in (exponent, -exponent))
    fixed = significand(bits).to(u64) << left >> right  # 23 bits behind the point
    negative = (bits >> 31).ne(0)
    whole, fraction = (fixed >> 23).to(u32).view(s32), fixed.to(u32) & FRACTION
    between = fraction.ne(0)
    whole = select(negative, select(between, -whole - 1, -whole), whole)
    fraction = select(negative & between, fraction ^ FRACTION, fraction)
    cut = (EX2.sum(fraction) >> EX2.weight - 23).to(u32) & FRACTION
    return assemble(cut.lift(0), whole, cut)


@derived
def lg2(a: Value) -> Value:
    """The logarithm to base 2; 0 for 1."""
    p = parts(a)
    exponent = p.exponent + select(p.subnormal, p.exponent.lift(24), 0)
    result = normalised(LG2.sum(p.fraction) + (exponent.to(s64) << LG2.weight), LG2.weight, cut=20)
    result = select(p.subnormal, result - 24.0, result)
    result = select(a.eq(1.0), 0.0, result)
    result = select(a.eq(0.0), -inf, result)
    return canonical_nan(of_positive(p, select(a.eq(inf) | is_nan(a), a, result)))


def normalised(total: Value, weight: int, cut: int = 0) -> Value:
    """A sum (s64) whose bit `weight` is 1.0 as an f32, truncated, without the bits below `cut`."""
    size = absolute(total).view(u64) >> cut << cut
    zeros = size.clz()
    fraction = (size << zeros >> 40).to(u32) & FRACTION
    exponent = (zeros.lift(63 - weight) - zeros).to(u32).view(s32)
    sign = (total.view(u64) >> 32).to(u32) & SIGN
    return select(size.eq(0), 0.0, assemble(sign, exponent, fraction))


@derived
def sin(a: Value) -> Value:
    """The sine of radians."""
    return _sine(a, nearest=False)


@derived
def sin_nearest(a: Value) -> Value:
    """The sine of radians, of an angle that is rounded (`quarter_turns`)."""
    return _sine(a, nearest=True)


@derived
def cos(a: Value) -> Value:
    """The cosine of radians."""
    return _cosine(a, nearest=False)


@derived
def cos_nearest(a: Value) -> Value:
    """The cosine of radians, of an angle that is rounded (`quarter_turns`)."""
    return _cosine(a, nearest=True)


def _sine(a: Value, *, nearest: bool) -> Value:
    bits, quadrant, fraction = quarter_turns(a, nearest=nearest)
    sign = (bits ^ quadrant << 30) & SIGN
    return _wave(bits, sign, select((quadrant & 1).ne(0), fraction ^ FRACTION, fraction))


def _cosine(a: Value, *, nearest: bool) -> Value:
    bits, quadrant, fraction = quarter_turns(a, nearest=nearest)
    sign = (quadrant + 1 << 30) & SIGN
    return _wave(bits, sign, select((quadrant & 1).eq(0), fraction ^ FRACTION, fraction))


def quarter_turns(a: Value, *, nearest: bool) -> tuple[Value, Value, Value]:
    """The bits of the argument, its quadrant (0 to 3), and 23 bits of a quarter turn.

    The argument is multiplied by 2/pi in the precision of f32, truncated, so a large one has no fraction left.  `nearest`
    rounds the fraction instead of cutting it: what the one sine that was recorded on sm_120 shows.
    """
    bits = a.view(u32)
    product = significand(bits).to(u64) * TWO_OVER_PI  # 2**(exponent - 150 - 24)
    spare = product.clz() - 16
    kept = (product << spare >> 24).to(u32)  # 24 bits
    power = (biased_exponent(bits) - spare.to(u32)).view(s32) - 150  # of the last of them
    right, left = (x.max(0).view(u32) for x in (power.lift(-23) - power, power + 23))
    if nearest:
        kept = kept + ((right.lift(1) << right) >> 1)
    fixed = (kept >> right).to(u64) << left.to(u64)
    return bits, (fixed >> 23).to(u32) & 3, fixed.to(u32) & FRACTION


def _wave(bits: Value, sign: Value, fraction: Value) -> Value:
    result = normalised(SIN.sum(fraction), SIN.weight).view(u32) | sign
    return with_nan(magnitude(bits.view(f32)) >= INFINITY, result.view(f32))


__all__ = ["cos", "cos_nearest", "ex2", "lg2", "rcp", "rsqrt", "sin", "sin_nearest", "sqrt"]

"""The `.approx` functions as silicon computes them: piecewise quadratics in fixed point.

The top bits of the significand choose a row of coefficients, the low bits x enter as c0*2**p0 ± c1*x*2**p1 ± c2*sq(x), a
bias is added, and the result is cut out of the sum.  Coefficients: `coefficients`, found by `tools/derive_approximations.py`
from exhaustive sweeps of sm_50 to sm_75.  Each function takes an f32 Value with subnormals as they are and gives one;
`.ftz` is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ptxvm.algebra.derived import coefficients
from ptxvm.algebra.types import f32, s32, s64, u32, u64
from ptxvm.algebra.value import Value, derived, lookup, select

NAN, INFINITY, ONE, SIGN = 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x80000000
FRACTION = 0x7FFFFF
TWO_OVER_PI = 0xA2F983  # the significand of the f32 next to 2/pi


@dataclass(frozen=True)
class Unit:
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
        """c0 where it enters the sum with the bias, c1 where it enters with its sign, c2 with its sign (both modulo 2**64)."""
        added = (self.bias << (self.weight - 23)) >> 64
        c0, c1, c2 = zip(*self.rows, strict=True)
        return (
            tuple((c << self.p0) + added for c in c0),
            tuple(self.sign1 * c << self.p1 & (1 << 64) - 1 for c in c1),
            tuple(self.sign2 * c & (1 << 64) - 1 for c in c2),
        )

    def sum(self, fraction: Value, odd: Value | None = None) -> Value:
        """The sum (u64) for a significand's 23 bits (u32); `odd` (0 or 1) chooses the second half of the rows."""
        low = 23 - self.bits
        row = fraction >> low
        if odd is not None:
            row = row + (odd << self.bits)
        x = fraction & (1 << low) - 1
        square = truncated_square(x) if low == 17 else truncated_square(x << 1) >> 2
        c0, c1, c2 = (lookup(column, row, u64) for column in self.columns)
        return c0 + c1 * x.to(u64) + c2 * square


RCP = Unit(coefficients.RCP, 7, 30, 17, -1, +1, 56, 0x67E7_0000_0000_0000)
SQRT = Unit(coefficients.SQRT, 6, 33, 18, +1, -1, 58, 0x7FFF_8000_0000_0000)
RSQRT = Unit(coefficients.RSQRT, 6, 31, 17, -1, +1, 57, 0x7FFF_8000_0000_0000)
EX2 = Unit(coefficients.EX2, 6, 32, 19, +1, +1, 57, 0x6FC4_0000_0000_0000)
LG2 = Unit(coefficients.LG2, 6, 30, 18, +1, -1, 56, 0x868B_0000_0000_0000)
SIN = Unit(coefficients.SIN, 6, 31, 19, +1, -1, 56, 0)


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
    """An f32 taken apart: its bits, magnitude, exponent (s32, unbiased) and fraction; subnormals are normalised."""

    bits: Value
    magnitude: Value
    exponent: Value
    fraction: Value


def parts(a: Value) -> Parts:
    """Sign, exponent and fraction; a subnormal is scaled by 2**24 first."""
    bits = a.view(u32)
    magnitude = bits & ~SIGN & 0xFFFFFFFF
    subnormal = magnitude < 0x00800000
    scaled = select(subnormal, (a * 16777216.0).view(u32) & 0x7FFFFFFF, magnitude)
    exponent = (scaled >> 23).view(s32) - select(subnormal, bits.view(s32).lift(127 + 24), 127)
    return Parts(bits, magnitude, exponent, scaled & FRACTION)


def assemble(sign: Value, exponent: Value, fraction: Value) -> Value:
    """An f32 of a sign bit, an exponent (s32) and 23 bits: infinity above the range, rounded to nearest below it."""
    normal = ((exponent + 127).view(u32) << 23) | fraction
    depth = (exponent.lift(-126) - exponent).min(31).max(0).view(u32)
    whole = fraction | 0x800000
    kept = whole >> depth
    rest = (whole << 1) - (kept << depth + 1)  # of two units of the last place that went
    half = depth.lift(1) << depth
    subnormal = kept + select((rest > half) | (rest.eq(half) & (kept & 1).ne(0)), kept.lift(1), 0)
    bits = select(exponent > 127, fraction.lift(INFINITY), select(exponent < -126, subnormal, normal))
    return (sign | bits).view(f32)


def special(a: Parts, result: Value, *, zero: int, infinite: int, signed: bool, negative: int | None = None) -> Value:
    """The result but for zero, infinity and NaN; where `signed` they keep the sign of the argument."""
    sign = a.bits & SIGN if signed else a.bits.lift(0)
    bits = select(a.magnitude.eq(0), sign | zero, result.view(u32))
    bits = select(a.magnitude.eq(INFINITY), sign | infinite, bits)
    if negative is not None:
        bits = select((a.bits >> 31).ne(0) & a.magnitude.ne(0), a.bits.lift(negative), bits)
    return select(a.magnitude > INFINITY, a.bits.lift(NAN), bits).view(f32)


# ── the functions ───────────────────────────────────────────────────────────────────────


def rcp(a: Value) -> Value:
    """1/a."""
    p = parts(a)
    total = RCP.sum(p.fraction)
    whole = (total >> RCP.weight).ne(0)
    cut = select(whole, total >> RCP.weight - 23, total >> RCP.weight - 24).to(u32) & FRACTION
    exponent = -p.exponent - select(whole, p.exponent.lift(0), 1)
    return special(p, assemble(p.bits & SIGN, exponent, cut), zero=INFINITY, infinite=0, signed=True)


def sqrt(a: Value) -> Value:
    """The square root."""
    p = parts(a)
    odd = p.exponent & 1
    cut = (SQRT.sum(p.fraction, odd.view(u32)) >> SQRT.weight - 23).to(u32) & FRACTION
    result = assemble(p.bits.lift(0), (p.exponent - odd) >> 1, cut)
    found = special(p, result, zero=0, infinite=INFINITY, signed=False, negative=NAN)
    return select(p.magnitude.eq(0), a, found)


def rsqrt(a: Value) -> Value:
    """1 over the square root; exact for powers of four."""
    p = parts(a)
    odd = p.exponent & 1
    exact = p.fraction.eq(0) & odd.eq(0)
    cut = (RSQRT.sum(p.fraction, odd.view(u32)) >> RSQRT.weight - 24).to(u32) & FRACTION
    exponent = -((p.exponent - odd) >> 1) - select(exact, p.exponent.lift(0), 1)
    result = assemble(p.bits.lift(0), exponent, select(exact, cut.lift(0), cut))
    found = special(p, result, zero=INFINITY, infinite=0, signed=False, negative=NAN)
    return select(p.magnitude.eq(0), ((p.bits & SIGN) | INFINITY).view(f32), found)


def ex2(a: Value) -> Value:
    """2**a; below -126 the square of 2**(a/2)."""
    small = a < -126.0
    halved = select(small, a * 0.5, a)
    result = _ex2(halved)
    result = select(small, result * result, result)
    magnitude = a.view(u32) & 0x7FFFFFFF
    return select(magnitude > INFINITY, a.view(u32).lift(NAN), result.view(u32)).view(f32)


def _ex2(a: Value) -> Value:
    bits = a.view(u32)
    exponent = (bits >> 23 & 0xFF).view(s32) - 127
    significand = ((bits & FRACTION) | 0x800000).to(u64)
    left, right = exponent.max(0).min(31).view(u32).to(u64), (-exponent).max(0).min(63).view(u32).to(u64)
    fixed = (significand << left) >> right  # 23 bits behind the point
    negative = (bits >> 31).ne(0)
    whole, fraction = (fixed >> 23).to(u32).view(s32), fixed.to(u32) & FRACTION
    between = fraction.ne(0)
    whole = select(negative, select(between, -whole - 1, -whole), whole)
    fraction = select(negative & between, fraction ^ FRACTION, fraction)
    cut = (EX2.sum(fraction) >> EX2.weight - 23).to(u32) & FRACTION
    result = assemble(bits.lift(0), whole, cut)
    result = select(exponent > 7, select(negative, bits.lift(0), INFINITY), result.view(u32))
    return result.view(f32)


def lg2(a: Value) -> Value:
    """The logarithm to base 2; 0 for 1."""
    p = parts(a)
    subnormal = p.magnitude < 0x00800000
    exponent = p.exponent + select(subnormal, p.exponent.lift(24), 0)
    result = normalised(LG2.sum(p.fraction).view(s64) + (exponent.to(s64) << LG2.weight), LG2.weight, cut=20)
    result = select(subnormal, result - 24.0, result)
    bits = select(p.bits.eq(ONE), p.bits.lift(0), result.view(u32))
    bits = select(p.magnitude.eq(0), p.bits.lift(SIGN | INFINITY), bits)
    bits = select((p.bits >> 31).ne(0) & p.magnitude.ne(0), p.bits.lift(NAN), bits)
    bits = select(p.bits.eq(INFINITY), p.bits.lift(INFINITY), bits)
    return select(p.magnitude > INFINITY, p.bits.lift(NAN), bits).view(f32)


def normalised(total: Value, weight: int, cut: int = 0) -> Value:
    """A sum (s64) whose bit `weight` is 1.0 as an f32, truncated, without the bits below `cut`."""
    negative = total < 0
    size = select(negative, -total, total).view(u64) >> cut << cut
    zeros = size.clz()
    fraction = (size << zeros >> 40).to(u32) & FRACTION
    exponent = (zeros.lift(63 - weight) - zeros).to(u32).view(s32)
    sign = select(negative, fraction.lift(SIGN), 0)
    return select(size.eq(0), fraction.lift(0).view(f32), assemble(sign, exponent, fraction))


def sin(a: Value, *, nearest: bool = False) -> Value:
    """The sine of radians; `nearest` as `quarter_turns` has it."""
    bits, quadrant, fraction = quarter_turns(a, nearest=nearest)
    sign = (bits ^ quadrant << 30) & SIGN
    return _wave(bits, sign, select((quadrant & 1).ne(0), fraction ^ FRACTION, fraction))


def cos(a: Value, *, nearest: bool = False) -> Value:
    """The cosine of radians; `nearest` as `quarter_turns` has it."""
    bits, quadrant, fraction = quarter_turns(a, nearest=nearest)
    sign = (quadrant + 1 << 30) & SIGN
    return _wave(bits, sign, select((quadrant & 1).eq(0), fraction ^ FRACTION, fraction))


def quarter_turns(a: Value, *, nearest: bool) -> tuple[Value, Value, Value]:
    """The bits of the argument, its quadrant (0 to 3), and 23 bits of a quarter turn.

    The argument is multiplied by 2/pi in the precision of f32, truncated, so a large one has no fraction left.  `nearest`
    rounds the fraction instead of cutting it: what the one sine that was recorded on sm_120 shows.
    """
    bits = a.view(u32)
    exponent = bits >> 23 & 0xFF
    significand = select(exponent.eq(0), bits & FRACTION, (bits & FRACTION) | 0x800000)
    product = significand.to(u64) * TWO_OVER_PI  # 2**(exponent - 150 - 24)
    spare = product.clz() - 16
    kept = (product << spare >> 24).to(u32)  # 24 bits
    power = exponent.max(1).view(s32) - spare.to(u32).view(s32) - 150  # of the last of them
    right = (power.lift(-23) - power).max(0).min(31).view(u32)
    left = (power + 23).max(0).min(63).view(u32).to(u64)
    if nearest:
        kept = kept + ((right.lift(1) << right) >> 1)
    fixed = (kept >> right).to(u64) << left
    return bits, (fixed >> 23).to(u32) & 3, fixed.to(u32) & FRACTION


def _wave(bits: Value, sign: Value, fraction: Value) -> Value:
    result = normalised(SIN.sum(fraction).view(s64), SIN.weight).view(u32) | sign
    return select((bits & 0x7FFFFFFF) >= INFINITY, bits.lift(NAN), result).view(f32)


__all__ = ["cos", "ex2", "lg2", "rcp", "rsqrt", "sin", "sqrt"]

"""Fused multiply-add over NumPy arrays, which NumPy lacks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ptxvm.engine.error_free import two_product, two_sum
from ptxvm.engine.fenv import bracketed, rounded, to_odd
from ptxvm.engine.software_rounding import cast
from ptxvm.machine.per_lane import PerLane

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def fma(rounding: str, dtype: np.dtype[np.generic], a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """`a * b + c` of f32 or f64, rounded once in the mode `rn rz rm rp`."""
    return _fma_f32(rounding, a, b, c) if dtype == F32 else _fma_f64(rounding, a, b, c)


def fma_f32(a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """`a * b + c`, rounded once.

    The product is exact in f64.  Where both neighbours of the sum round to the same f32, so does the sum; elsewhere, and for
    NaN, the sum is rounded to odd first, which leaves the second rounding exact.
    """
    product, c = a.astype(F64) * b.astype(F64), c.astype(F64)
    low, high = bracketed(np.add, product, c)
    result = high.astype(F32)
    if np.count_nonzero(low.astype(F32) != result):
        return to_odd(low, high).astype(F32)
    return result


def _fma_f32(rounding: str, a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    if rounding == "rn":
        return fma_f32(a, b, c)
    product, c = a.astype(F64) * b.astype(F64), c.astype(F64)
    total = rounded(rounding, np.add, product, c)
    return rounded(rounding, cast, total, F32)


def fma_f64(a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """`a * b + c`, rounded once."""
    return _fma_f64("rn", a, b, c)


def _fma_f64(rounding: str, a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008): the last addend is rounded to odd.

    A lane whose intermediate results could overflow or lose bits is computed in exact integers.
    """
    high, low = two_product(a, b)
    upper, lower = two_sum(c, low)
    main, rest = two_sum(high, upper)
    odd = rounded("odd", np.add, lower, rest)
    result = rounded(rounding, np.add, main, odd)
    size = np.abs(high)
    easy = (size > 2.0**-900) & (size < 2.0**1000) & (np.abs(c) < 2.0**1000)
    easy = easy & (np.abs(a) < 2.0**990) & (np.abs(b) < 2.0**990)
    if np.count_nonzero(easy & (result != 0)) == np.size(result):
        return result
    plain: PerLane = rounded(rounding, np.add, a * b, c)  # where it counts, the product is exact
    plain = np.where(np.isnan(c) & ~np.isnan(a) & ~np.isnan(b), c + c, plain)  # c's NaN, quiet, even where 0 * inf is NaN too
    finite = np.isfinite(a) & np.isfinite(b)
    plain = np.where(finite & np.isinf(c), c, plain)  # where the product alone overflows
    trivial = (a == 0) | (b == 0) | ~finite | ~np.isfinite(c)
    # An exact zero has the sign that the mode gives to `x + -x`, as the plain sum has.
    settled: PerLane = np.where(trivial | (easy & (result == 0)), plain, result)
    result = settled[()]
    hard = ~(easy | trivial)
    return _fma_exact(rounding, hard, a, b, c, result) if np.count_nonzero(hard) else result


def _fma_exact(rounding: str, hard: PerLane, a: PerLane, b: PerLane, c: PerLane, result: PerLane) -> PerLane:
    """The lanes of `hard`, computed in rational numbers."""
    if not np.ndim(result):
        return F64.type(_nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), rounding))
    a, b, c, hard = np.broadcast_arrays(a, b, c, hard)
    for lane in np.flatnonzero(hard):
        exact = Fraction(float(a[lane])) * Fraction(float(b[lane])) + Fraction(float(c[lane]))
        result[lane] = _nearest(exact, rounding)
    return result


def _nearest(x: Fraction, rounding: str) -> float:
    """The rational as an f64."""
    if not x:
        return -0.0 if rounding == "rm" else 0.0
    magnitude, negative = abs(x), x < 0
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 53, -1074)
    if magnitude >= Fraction(2) ** (exponent + 53):
        exponent += 1
    whole, fraction = divmod(magnitude / Fraction(2) ** exponent, 1)
    up = {
        "rn": fraction > Fraction(1, 2) or (fraction == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": negative and fraction > 0,
        "rp": not negative and fraction > 0,
        "odd": fraction > 0 and whole % 2 == 0,
    }[rounding]
    try:
        size = float((whole + up) * Fraction(2) ** exponent)
    except OverflowError:
        stays = rounding in ("rz", "odd") or rounding == ("rp" if negative else "rm")
        size = float(np.finfo(F64).max) if stays else float("inf")
    return -size if negative else size

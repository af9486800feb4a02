"""Directed rounding in software, for a host whose arithmetic rounds to nearest alone, as WebAssembly's does.

Where the exact result is not the nearest number, the other number beside it is what a mode may want.  On which side of the
nearest number the exact result lies, the sign of the remainder tells.  For f32 the remainder is computed in f64; for f64 by
error-free transformations, or in rational numbers where these could overflow or lose bits.  NaN is no remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.engine.error_free import two_product
from ptxvm.machine.per_lane import PerLane

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
LEAST, MOST = 2.0**-450, 2.0**450
"""Between them the products, quotients and roots of f64, and their errors, are normal numbers."""


def cast(a: PerLane, held: np.dtype[np.generic]) -> PerLane:
    """A number in another format."""
    return a.astype(held)


def rounded(mode: str, function: Callable[..., PerLane], *args: PerLane) -> PerLane:
    """`function(*args)`, rounded in the mode `rz rm rp`; the function is one of `REMAINDERS`."""
    low, high = bracketed(function, *args)
    if mode == "rz":
        towards_zero: PerLane = np.where(np.signbit(low), high, low)
        return towards_zero[()]
    return low if mode == "rm" else high


def bracketed(function: Callable[..., PerLane], *args: PerLane) -> tuple[PerLane, PerLane]:
    """`function(*args)`, rounded down and rounded up."""
    near = function(*args)
    infinity = near.dtype.type(np.inf)
    remainder = REMAINDERS[function](near, *args)
    low: PerLane = np.where(remainder < 0, np.nextafter(near, -infinity), near)
    high: PerLane = np.where(remainder > 0, np.nextafter(near, infinity), near)
    if function in (np.add, np.subtract):
        low = _with_negative_zeros(low, function, *args)
    return low[()], high[()]


def _with_negative_zeros(low: PerLane, function: Callable[..., PerLane], a: PerLane, b: PerLane) -> PerLane:
    """A sum rounded down whose addends cancel is -0, and so is that of zeros of two signs (IEEE 754-2019, 6.3)."""
    cancels = np.signbit(a) != (np.signbit(b) ^ (function is np.subtract))
    return np.where((low == 0) & cancels, -np.abs(low), low)


def _of_sum(near: PerLane, a: PerLane, b: PerLane) -> PerLane:
    """The remainder of a sum, whose difference from the larger addend is exact (Dekker).  A sum that overflows is too large."""
    first = np.abs(a) >= np.abs(b)
    large, small = np.where(first, a, b), np.where(first, b, a)
    overflows = np.isinf(near) & np.isfinite(a) & np.isfinite(b)
    return np.where(overflows, -near, small - (near - large))


def _of_difference(near: PerLane, a: PerLane, b: PerLane) -> PerLane:
    """The remainder of a difference."""
    return _of_sum(near, a, -b)


def _of_cast(near: PerLane, a: PerLane, held: np.dtype[np.generic]) -> PerLane:
    """The remainder of a conversion: of f64 to f32, or of an integer, of which 32 bits at a time are exact in f64."""
    del held
    if a.dtype.kind == "f" or a.dtype.itemsize < 8:
        return a.astype(F64) - near.astype(F64)
    high = (a >> a.dtype.type(32)).astype(F64) * 2.0**32
    return (high - near.astype(F64)) + (a & a.dtype.type(0xFFFF_FFFF)).astype(F64)


# ── products, quotients and roots ───────────────────────────────────────────────────────


@dataclass(frozen=True)
class Remainder:
    """The remainder of an operation: exact less nearest result, by a formula that is exact in rationals, and in f64 for f32."""

    formula: Callable[..., PerLane]
    in_f64: Callable[..., PerLane]

    def __call__(self, near: PerLane, *args: PerLane) -> PerLane:
        """The remainder of each lane, or another number of its sign."""
        if near.dtype == F32:
            return self.formula(near.astype(F64), *(each.astype(F64) for each in args))
        safe = np.logical_and.reduce([(np.abs(each) > LEAST) & (np.abs(each) < MOST) for each in args])
        exact = np.logical_or.reduce([(each == 0) | ~np.isfinite(each) for each in args])
        found: PerLane = np.where(safe, self.in_f64(near, *args), 0.0)
        hard = ~(safe | exact)
        return self._rational(found, hard, near, *args) if np.count_nonzero(hard) else found

    def _rational(self, found: PerLane, hard: PerLane, *operands: PerLane) -> PerLane:
        """Remainders with those of hard lanes from rational numbers."""
        found, hard, *columns = (np.atleast_1d(each) for each in np.broadcast_arrays(found, hard, *operands))
        made = found.copy()
        for lane in np.flatnonzero(hard):
            near, *args = (float(column[lane]) for column in columns)
            made[lane] = sign(self.formula(*map(Fraction, (near, *args)))) if isfinite(near) else -near
        return made if np.ndim(operands[0]) else made[0]


def sign(x: Fraction) -> int:
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


def _of_quotient(near: PerLane, a: PerLane, b: PerLane) -> PerLane:
    high, low = two_product(near, b)
    return ((a - high) - low) * b


def _of_root(near: PerLane, a: PerLane) -> PerLane:
    high, low = two_product(near, near)
    return (a - high) - low


REMAINDERS: dict[Callable[..., PerLane], Callable[..., PerLane]] = {
    cast: _of_cast,
    np.add: _of_sum,
    np.subtract: _of_difference,
    np.multiply: Remainder(lambda near, a, b: a * b - near, lambda _, a, b: two_product(a, b)[1]),
    np.divide: Remainder(lambda near, a, b: (a - near * b) * b, _of_quotient),
    np.sqrt: Remainder(lambda near, a: a - near * near, _of_root),
}
"""The exact result less the nearest one, or another number of its sign."""

__all__ = ["bracketed", "cast", "rounded"]

"""Error-free transformations of f64: a rounded result, and its rounding error (Handbook of Floating-Point Arithmetic, 4)."""

from __future__ import annotations

from ptxvm.machine.per_lane import PerLane


def two_product(a: PerLane, b: PerLane) -> tuple[PerLane, PerLane]:
    """The product and its error (Dekker)."""
    high = a * b
    a1, b1 = _upper_half(a), _upper_half(b)
    a0, b0 = a - a1, b - b1
    return high, ((a1 * b1 - high) + a1 * b0 + a0 * b1) + a0 * b0


def _upper_half(a: PerLane) -> PerLane:
    """The leading 26 bits (Veltkamp)."""
    wide = a * 134217729.0  # 2^27 + 1
    return wide - (wide - a)


def two_sum(a: PerLane, b: PerLane) -> tuple[PerLane, PerLane]:
    """The sum and its error (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


__all__ = ["two_product", "two_sum"]

"""Floating-point operations over the primitives: subnormals, NaN, signs, saturation."""

from __future__ import annotations

from ptxvm.algebra.types import Type, f64
from ptxvm.algebra.value import Value, derived, select

# Bits of the fraction, by format.
FRACTION = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def sign_bit(type: Type) -> int:
    """The sign of the format as a mask."""
    return 1 << type.bits - 1


def infinity_bits(type: Type) -> int:
    """Positive infinity of the format."""
    return (sign_bit(type) - 1) >> FRACTION[type.name] << FRACTION[type.name]


@derived
def is_nan(a: Value) -> Value:
    """Is it NaN?"""
    return a.ne(a)


@derived
def magnitude(a: Value) -> Value:
    """The bits of `a` without its sign, as `.b`."""
    return a.view(a.type.as_bits) & (sign_bit(a.type) - 1)


@derived
def negate(a: Value) -> Value:
    """The sign flipped, of NaN too."""
    return (a.view(a.type.as_bits) ^ sign_bit(a.type)).view(a.type)


@derived
def flush_subnormal(a: Value) -> Value:
    """Subnormal values become zero of the same sign (PTX 9.7.3, `.ftz`)."""
    bits = a.view(a.type.as_bits)
    least_normal = 1 << FRACTION[a.type.name]
    return select(magnitude(a) < least_normal, bits & sign_bit(a.type), bits).view(a.type)


@derived
def canonical_nan(a: Value) -> Value:
    """f16, bf16 and f32 results that are NaN have one bit pattern: all ones but the sign; f64 keeps its payload."""
    if a.type is f64:
        return a
    bits = a.view(a.type.as_bits)
    return select(is_nan(a), sign_bit(a.type) - 1, bits).view(a.type)


@derived
def clamp01(a: Value) -> Value:
    """`.sat`: limited to [+0, 1]; NaN becomes +0 (PTX 9.7.3)."""
    return select(a > 0.0, select(a < 1.0, a, 1.0), 0.0)

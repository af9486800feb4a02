"""Floating-point operations over the primitives: subnormals, NaN, signs, limits."""

from __future__ import annotations

from ptxvm.algebra.types import Type, f64
from ptxvm.algebra.value import Value, derived, select

# Bits of the fraction, by format.
FRACTION = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23, "f64": 52}


def sign_bit(type: Type) -> int:
    """The sign of the format as a mask."""
    return 1 << type.bits - 1


def infinity_bits(type: Type) -> int:
    """Positive infinity of the format."""
    return sign_bit(type) - (1 << FRACTION[type.name])


def nan_bits(type: Type) -> int:
    """The one NaN that results in the format have: all ones but the sign."""
    return sign_bit(type) - 1


@derived
def is_nan(a: Value) -> Value:
    """Is it NaN?"""
    return a.ne(a)


@derived
def is_negative(a: Value) -> Value:
    """Is the sign set, of zero or NaN too?"""
    return (a.view(a.type.as_bits) & sign_bit(a.type)).ne(0)


@derived
def magnitude(a: Value) -> Value:
    """The bits of `a` without its sign, as `.b`."""
    return a.view(a.type.as_bits) & (sign_bit(a.type) - 1)


@derived
def negate(a: Value) -> Value:
    """The sign flipped, of NaN too."""
    return (a.view(a.type.as_bits) ^ sign_bit(a.type)).view(a.type)


def absolute_value(a: Value) -> Value:
    """The sign cleared, of NaN too."""
    return magnitude(a).view(a.type)


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
    return select(is_nan(a), nan_bits(a.type), bits).view(a.type)


@derived
def clamp01(a: Value) -> Value:
    """`.sat`: limited to [+0, 1]; NaN becomes +0 (PTX 9.7.3)."""
    return select(a > 0.0, select(a < 1.0, a, 1.0), 0.0)


@derived
def relu(a: Value) -> Value:
    """`.relu`: what is negative becomes +0; NaN stays NaN."""
    return select(a <= 0.0, 0.0, a)


@derived
def minimum(a: Value, b: Value) -> Value:
    """The lesser, -0 below +0; the number where the other is NaN (PTX 9.7.3.11, `min_num`)."""
    first = (a < b) | (a.eq(b) & is_negative(a))
    return select(first | is_nan(b), a, b)


@derived
def maximum(a: Value, b: Value) -> Value:
    """The greater, +0 above -0; the number where the other is NaN (PTX 9.7.3.12, `max_num`)."""
    first = (a > b) | (a.eq(b) & is_negative(b))
    return select(first | is_nan(b), a, b)


def copy_sign(sign: Value, a: Value) -> Value:
    """`a` with the sign of the other."""
    bits = sign.view(sign.type.as_bits) & sign_bit(sign.type)
    return (magnitude(a) | bits).view(a.type)


def with_nan(condition: Value, a: Value) -> Value:
    """`a`, or the canonical NaN where the condition holds."""
    return select(condition, nan_bits(a.type), a.view(a.type.as_bits)).view(a.type)

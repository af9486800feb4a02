"""The formats that only conversions know: e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0, s2f6, tf32 (PTX 5.2.3 and 5.2.4)."""

from __future__ import annotations

from ptxvm.algebra.derived.floats import infinity_bits, is_nan, is_negative, magnitude, nan_bits
from ptxvm.algebra.derived.integers import shift_to_nearest
from ptxvm.algebra.types import b8, b16, b32, f32, s8
from ptxvm.algebra.value import Value, select
from ptxvm.named_tuple import NamedTuple


class Format(NamedTuple):
    """A float with a sign: its size, its fraction, its bias, its greatest number, and its infinity and NaN if any."""

    bits: int
    fraction: int
    bias: int
    greatest: int
    infinity: int | None
    nan: int | None


FORMATS = {
    #               bits fraction bias greatest infinity  NaN
    "f16": Format(16, 10, 15, 0x7BFF, 0x7C00, 0x7FFF),
    "bf16": Format(16, 7, 127, 0x7F7F, 0x7F80, 0x7FFF),
    "e4m3": Format(8, 3, 7, 0x7E, None, 0x7F),
    "e5m2": Format(8, 2, 15, 0x7B, 0x7C, 0x7F),
    "e3m2": Format(6, 2, 3, 0x1F, None, None),
    "e2m3": Format(6, 3, 1, 0x1F, None, None),
    "e2m1": Format(4, 1, 1, 0x07, None, None),
}


def encode(a: Value, format: Format, random: Value | None = None, *, finite: bool = True, relu: bool = False) -> Value:
    """The code of an f32, as b16: rounded to nearest, or by random bits, and limited if `finite`.

    `random` has sixteen bits, of which the highest meets the highest bit discarded; what carries rounds away from zero.
    """
    bits, size = a.view(b32), magnitude(a)
    least = 128 - format.bias  # the exponent of the least normal number of the format, as f32 writes it
    exponent = (size >> 23).max(1)
    above, below = exponent.max(least) - least, size.lift(least) - exponent.min(least)
    shift = below + (23 - format.fraction)
    significand = size & 0x7F_FFFF | select(size >= 0x80_0000, size.lift(0x80_0000), 0)
    kept = shift_to_nearest(significand, shift) if random is None else _shift_at_random(significand, shift, random)
    limit = format.greatest if finite or format.infinity is None else format.infinity
    code = ((above << format.fraction) + kept).min(limit)
    code = code | bits >> 32 - format.bits & 1 << format.bits - 1
    if relu:
        code = select(is_negative(a), 0, code)
    return select(is_nan(a), format.greatest if format.nan is None else format.nan, code).to(b16)


def _shift_at_random(a: Value, n: Value, random: Value) -> Value:
    """`a >> n` (24 bits by 13 or more), after the random bits are added to the sixteen behind the new point."""
    with_sixteen = a >> n - 16 | a << n.lift(16) - n  # one of the two, since a shift by less than 0 leaves nothing
    return with_sixteen + random >> 16


def decode(code: Value, format: Format) -> Value:
    """The f32 that a code (b8) stands for."""
    sign, size = 1 << format.bits - 1, code.to(b32) & (1 << format.bits - 1) - 1
    value = (size << 23 - format.fraction).view(f32) * 2.0 ** (127 - format.bias)
    bits = value.view(b32)
    if format.infinity is not None:
        bits = select(size.eq(format.infinity), infinity_bits(f32), bits)
    if format.nan is not None:
        least_nan = format.nan if format.infinity is None else format.infinity + 1
        bits = select(size >= least_nan, nan_bits(f32), bits)
    return (bits | (code.to(b32) & sign) << 32 - format.bits).view(f32)


def encode_scale(a: Value, mode: str, *, finite: bool) -> Value:
    """The exponent of an f32 as ue8m0, rounded to zero (rz) or up (rp); the sign is dropped.

    Past 2^127 it is that (`finite`) or NaN.
    """
    size = magnitude(a)
    code = size >> 23
    if mode == "rp":
        tiny = select(size > 0x40_0000, size.lift(1), 0)  # 2^-127 is the least, and subnormal
        code = select(code.eq(0), tiny, code + select((size & 0x7F_FFFF).ne(0), size.lift(1), 0))
    code = select(code >= 0xFF, 0xFE if finite else 0xFF, code)
    return select(is_nan(a), 0xFF, code).to(b8)


def decode_scale(code: Value) -> Value:
    """The f32 that a ue8m0 stands for."""
    wide = code.to(b32)
    bits = select(wide.eq(0), 0x40_0000, wide << 23)
    return select(wide.eq(0xFF), nan_bits(f32), bits).view(f32)


def encode_fixed(a: Value, *, relu: bool = False) -> Value:
    """An f32 as s2f6, to nearest, limited; NaN is the greatest."""
    code = (a * 64.0).round("rni").to(s8)
    if relu:
        code = code.max(0)
    return select(is_nan(a), 0x7F, code).view(b8)


def decode_fixed(code: Value) -> Value:
    """The f32 that an s2f6 stands for."""
    return code.view(s8).to(f32) * 0.015625


def to_tf32(a: Value, mode: str, *, finite: bool = False, relu: bool = False) -> Value:
    """An f32 rounded to the ten bits of fraction of tf32: rn, rz, or rna (ties away from zero)."""
    bits = a.view(b32)
    if mode == "rna":
        bits = bits + 0x1000
    elif mode == "rn":
        bits = bits + 0xFFF + (bits >> 13 & 1)
    bits = bits & 0xFFFF_E000
    if finite:
        bits = select(magnitude(bits.view(f32)).eq(infinity_bits(f32)), bits - 0x2000, bits)
    if relu:
        bits = select(is_negative(a), 0, bits)
    return select(is_nan(a), nan_bits(f32), bits).view(f32)

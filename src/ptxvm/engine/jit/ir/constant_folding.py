"""Constant folding: arithmetic on the bits of a lane, as Python integers."""

from __future__ import annotations

import struct
from functools import lru_cache

from ptxvm.algebra.types import Type

REMEMBERED = 4096  # results for all lanes


def f32_bits(x: float) -> int:
    """The bits of a number as f32, rounded to nearest."""
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", x))
    except OverflowError:
        bits = 0xFF80_0000 if x < 0 else 0x7F80_0000
    return int(bits)


def f64_bits(x: float) -> int:
    """The bits of a number as f64."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    return int(bits)


def bf16_bits(bits: int) -> int:
    """An f32, by its bits, as bf16."""
    if bits & 0x7FFF_FFFF > 0x7F80_0000:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def signed(type: Type, a: int) -> int:
    """Bits as a number of the type."""
    return a - (1 << type.bits) if type.is_signed and a >> (type.bits - 1) else a


def integer(op: str, type: Type, a: int, b: int) -> int:  # noqa: C901, PLR0911 - a table
    """A primitive on integers or predicates; the caller takes the result modulo the width."""
    x, y = signed(type, a), signed(type, b)
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return a << b if b < type.bits else 0
        case "shr":
            return x >> min(b, type.bits)
        case "min":
            return min(x, y)
        case "max":
            return max(x, y)
        case "mul_hi":
            return x * y >> type.bits
        case "div":
            return _quotient(x, y)
    return x - _quotient(x, y) * y if y else x


@lru_cache(REMEMBERED)
def integers(op: str, type: Type, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The same for all lanes."""
    if len({*a}) == len({*b}) == 1:
        return (integer(op, type, a[0], b[0]),) * len(a)
    return tuple(integer(op, type, x, y) for x, y in zip(a, b, strict=True))


def _quotient(x: int, y: int) -> int:
    if not y:
        return -1
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def compare(op: str, type: Type, a: int, b: int) -> int:
    """Compare two integers."""
    x, y = signed(type, a), signed(type, b)
    return int({"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[op])


@lru_cache(REMEMBERED)
def comparisons(op: str, type: Type, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The same for all lanes."""
    if len({*a}) == len({*b}) == 1:
        return (compare(op, type, a[0], b[0]),) * len(a)
    return tuple(compare(op, type, x, y) for x, y in zip(a, b, strict=True))


@lru_cache(REMEMBERED)
def extended(type: Type, a: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers whose bits all lanes hold."""
    return tuple([signed(type, n) for n in a])

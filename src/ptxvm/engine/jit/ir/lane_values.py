"""Affine, uniform and varying values: how LLVM operands hold a value of all lanes.

An *affine* value has a scalar `base` and terms, pairs of a constant vector K and a scalar `u`: lane n holds
`base + K1[n]*u1 + K2[n]*u2 + …` (modulo the width).  Without terms it is *uniform*.  A *varying* value is an LLVM vector.
A scalar is the text of an LLVM operand, or a Python integer where it is known: the bits of a constant.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from math import gcd

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass

REMEMBERED = 4096  # results of functions of patterns
Scalar = int | str
Pattern = tuple[int, ...]
Terms = tuple[tuple[Pattern, Scalar], ...]


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine value, of any type where it is uniform.

    `loose`: a NaN of it may have any bits, and becomes the canonical one before they are seen.  `bank` is the offset in
    the parameter bank, of an address there; `bits` is the mask of the bits that the base may have, where it is no constant.
    """

    base: Scalar
    terms: Terms = ()
    loose: bool = False
    bank: int | None = None
    bits: int = -1

    @property
    def constant(self) -> int | None:
        """The bits of a value that is the same constant in all lanes."""
        return self.base if isinstance(self.base, int) and not self.terms else None

    @property
    def fixed(self) -> tuple[tuple[Pattern, int], ...]:
        """The terms that are known."""
        return tuple([(k, u) for k, u in self.terms if isinstance(u, int)])

    @property
    def moving(self) -> tuple[tuple[Pattern, str], ...]:
        """The terms whose scalars are known at run time only."""
        return tuple([(k, u) for k, u in self.terms if isinstance(u, str)])


@dataclass(frozen=True, slots=True)
class Varying:
    """A varying value: an LLVM vector, and its elements where they are known."""

    name: str
    lanes: Pattern | None = None
    loose: bool = False


Raw = Affine | Varying


@dataclass(frozen=True, slots=True)
class Scaled:
    """Another form of a vector of i64: the sum of scalars with their factors, and `factor` times a vector `root` of i32."""

    root: str
    signed: bool
    factor: int = 1
    scalars: tuple[tuple[Scalar, int], ...] = ()


def possible_bits(a: Affine, width: int) -> int:
    """The bits that the base of a value may have, of an integer of a width."""
    return (a.base if isinstance(a.base, int) else a.bits) & (1 << width) - 1


def trailing_zeros(mask: int) -> int:
    """The zeros below the lowest bit of a mask; 64 where it has none."""
    return (mask & -mask).bit_length() - 1 if mask else 64


def scalar_type(type: Type) -> str:
    """The LLVM type of one lane."""
    if type.kind == "p":
        return "i1"
    if type.is_float and type.bits >= 32 and not type.is_packed:
        return "float" if type.bits == 32 else "double"
    return f"i{type.bits}"


def vector_type(type: Type, width: int) -> str:
    """The LLVM type of all lanes."""
    return f"<{width} x {scalar_type(type)}>"


def literal(llvm: str, bits: int) -> str:
    """An LLVM constant by its bits."""
    if llvm == "double":
        return f"0x{bits & (1 << 64) - 1:016X}"
    if llvm != "float":
        return str(bits & (1 << int(llvm[1:])) - 1)
    if bits & 0x7F80_0000 == 0x7F80_0000:
        wide = (bits >> 31 & 1) << 63 | 0x7FF << 52 | (bits & 0x7F_FFFF) << 29
    else:
        (number,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))
        (wide,) = struct.unpack("<Q", struct.pack("<d", number))
    return f"0x{wide:016X}"


def text(llvm: str, scalar: Scalar) -> str:
    """A scalar as an LLVM operand."""
    return literal(llvm, scalar) if isinstance(scalar, int) else scalar


@lru_cache(REMEMBERED)
def vector_literal(llvm: str, lanes: Pattern) -> str:
    """A constant vector."""
    return "<" + ", ".join(f"{llvm} {literal(llvm, n)}" for n in lanes) + ">"


def splat_literal(llvm: str, bits: int) -> str:
    """A constant vector of one value."""
    return f"splat ({llvm} {literal(llvm, bits)})"


def wrapped(n: int, bits: int) -> int:
    """The least signed number that is `n` modulo 2^bits."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


@lru_cache(REMEMBERED)
def from_lanes(type: Type, lanes: Pattern) -> Raw:
    """A constant for each lane: affine where it is an integer."""
    bits = type.bits
    lanes = tuple(n & (1 << bits) - 1 for n in lanes)
    if len(set(lanes)) == 1:
        return Affine(lanes[0])
    if type.kind == "p" or type.is_float or bits > 64:
        return Varying(vector_literal(scalar_type(type), lanes), lanes)
    return Affine(lanes[0], (primitive(tuple(wrapped(n - lanes[0], bits) for n in lanes)),))


def primitive(pattern: Pattern) -> tuple[Pattern, int]:
    """A pattern without the factor that all of its elements share, and that factor."""
    factor = gcd(*pattern) or 1
    if next(n for n in pattern if n) < 0:
        factor = -factor
    return tuple(n // factor for n in pattern), factor


def known_lanes(type: Type, raw: Raw, width: int) -> Pattern | None:
    """The bits of every lane, where all are known."""
    if isinstance(raw, Varying):
        return raw.lanes
    if not isinstance(raw.base, int) or raw.moving:
        return None
    if not raw.terms:
        return (raw.base & (1 << type.bits) - 1,) * width
    return _constants(raw.base, raw.fixed, width, type.bits)


@lru_cache(REMEMBERED)
def _constants(base: int, terms: tuple[tuple[Pattern, int], ...], width: int, bits: int) -> Pattern:
    return tuple([n & (1 << bits) - 1 for n in sums(base, terms, width)])


@lru_cache(REMEMBERED)
def sums(base: int, terms: tuple[tuple[Pattern, int], ...], width: int) -> Pattern:
    """Every lane of an affine value that is constant."""
    total = [base] * width
    for pattern, u in terms:
        total = [n + k * u for n, k in zip(total, pattern, strict=True)]
    return tuple(total)

"""Affine integer arithmetic: operations with affine results, by the known bits of their operands.

`Affine.bits` is the mask of the bits that a base may have.  If the offsets of the lanes have none of these bits, the sum of
base and offset is a disjunction, so logic and shifts act on the base and on the offsets separately.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from ptxvm.algebra.types import Type, pred
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir import constant_folding
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, Raw, Scalar, from_lanes, possible_bits, sums, text, trailing_zeros
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

LOGIC = ("and", "or", "xor")
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def ones(count: int) -> int:
    """A mask of the lowest bits."""
    return (1 << count) - 1


# ── uniform results ─────────────────────────────────────────────────────────────────────


def uniform_bits(op: str, type: Type, a: Affine, b: Affine) -> int:  # noqa: C901, PLR0911 - a table
    """The bits that the result of an operation on two uniform values may have."""
    full, x, y = ones(type.bits), possible_bits(a, type.bits), possible_bits(b, type.bits)
    zeros = min(trailing_zeros(x), trailing_zeros(y))
    positive = not type.is_signed or not (x | y) >> (type.bits - 1)
    match op:
        case "and":
            return x & y
        case "or" | "xor":
            return x | y
        case "add" if not x & y:
            return x | y
        case "add":
            return _from(zeros, x + y) & full
        case "sub":
            return _from(zeros, full)
        case "mul":
            return _from(trailing_zeros(x) + trailing_zeros(y), x * y) & full
        case "shl":
            return (x << b.constant if b.constant is not None else _from(trailing_zeros(x), full)) & full
        case "shr" if positive and b.constant:
            return x >> b.constant
        case "div" | "rem" if positive and b.constant and not y & (y - 1):
            return x >> trailing_zeros(y) if op == "div" else x & (y - 1)
        case "div" if positive and b.constant:
            return _from(0, x // y)
        case "rem" if positive and b.constant:
            return _from(zeros, min(x, y - 1))
        case "min" | "max" | "mul_hi" if positive:
            most = {"min": min(x, y), "max": max(x, y), "mul_hi": x * y >> type.bits}[op]
            return _from(0 if op == "mul_hi" else zeros, most)
    return full


def _from(zeros: int, most: int) -> int:
    """The bits of the multiples of 2^zeros up to a number."""
    return ones(most.bit_length()) >> zeros << zeros


# ── affine results ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AffineParts:
    """An affine value as a base with the `bits` that it may have, and constant offsets of the lanes."""

    base: Scalar
    bits: int
    lanes: Pattern

    @classmethod
    def of(cls, type: Type, a: Affine, width: int) -> AffineParts | None:
        """The parts of an affine value; None where an offset is known only at run time."""
        if a.moving:
            return None
        lanes = sums(0, a.fixed, width)
        return cls(a.base, possible_bits(a, type.bits), lanes)

    @property
    def disjoint(self) -> bool:
        """Are the bits of the offsets disjoint from those that the base may have?"""
        return min(self.lanes) >= 0 and not self.bits & reduce(or_, self.lanes)

    @property
    def most(self) -> int:
        """The greatest value of a lane, if none wraps."""
        return self.bits + max(self.lanes)

    @property
    def values(self) -> int:
        """The bits that a lane may have; more than the type has where a lane may wrap."""
        if min(self.lanes) < 0:
            return -1
        return self.bits | reduce(or_, self.lanes) if self.disjoint else ones(self.most.bit_length())


def result(alg: VectorAlgebra, op: str, type: Type, a: Affine, b: Affine) -> Affine | None:
    """A sum, a difference, a product with a uniform value, logic and shifts by constants; None if the result is not affine."""
    bits = type.bits
    if op in ("add", "sub"):
        return _sum(alg, op, type, a, b)
    if op == "shl" and b.constant is not None:
        if b.constant >= bits:
            return Affine(0)
        op, b = "mul", Affine(1 << b.constant)
    if op == "mul":
        if a.terms and not b.terms:
            a, b = b, a
        if a.terms:
            return None
        terms = alg.collect(bits, tuple((k, alg.scalar("mul", bits, u, a.base), 1) for k, u in b.terms))
        made = alg.scalar("mul", bits, a.base, b.base)
        return Affine(made, terms, bits=uniform_bits(op, type, a, replace(b, terms=())))
    if op == "xor" and b.constant == ones(bits):
        return _sum(alg, "sub", type, Affine(ones(bits)), a)
    if op in LOGIC and a.constant is not None:
        a, b = b, a
    if not a.terms and not b.terms:
        return _simpler(op, type, a, b)
    return _of_bits(alg, op, type, a, b)


def _sum(alg: VectorAlgebra, op: str, type: Type, a: Affine, b: Affine) -> Affine:
    bits, sign = type.bits, 1 if op == "add" else -1
    base = alg.scalar(op, bits, a.base, b.base)
    terms = alg.collect(bits, (*((k, u, 1) for k, u in a.terms), *((k, u, sign) for k, u in b.terms)))
    bank = a.bank + b.base if op == "add" and a.bank is not None and b.constant is not None else None  # type: ignore[operator]
    return Affine(base, terms, bank=bank, bits=uniform_bits(op, type, replace(a, terms=()), replace(b, terms=())))


def _simpler(op: str, type: Type, a: Affine, b: Affine) -> Affine | None:
    """The result on two uniform values that is one of them or zero; None for any other."""
    bits = possible_bits(a, type.bits)
    if not uniform_bits(op, type, a, b):
        return Affine(0)
    if op == "and" and b.constant is not None and not bits & ~b.constant:
        return a
    if op == "rem" and b.constant is not None and bits < b.constant and not b.constant >> (type.bits - type.is_signed):
        return a
    return None


def _of_bits(alg: VectorAlgebra, op: str, type: Type, a: Affine, b: Affine) -> Affine | None:
    """Logic and shifts to the right."""
    first, second = AffineParts.of(type, a, alg.width), AffineParts.of(type, b, alg.width)
    if first is None or second is None:
        return None
    if op in LOGIC and not first.values & second.values:
        return Affine(0) if op == "and" else _sum(alg, "add", type, a, b)
    if b.constant is None:
        return None
    if op in LOGIC:
        return _logic(alg, op, type, first, b.constant)
    if op == "shr":
        return _shift(alg, type, first, b.constant)
    is_power = b.constant > 0 and not b.constant & (b.constant - 1)
    if op in ("div", "rem") and is_power and not first.values >> (type.bits - type.is_signed):
        power = b.constant.bit_length() - 1
        return _shift(alg, type, first, power) if op == "div" else _logic(alg, "and", type, first, b.constant - 1)
    return None


def _logic(alg: VectorAlgebra, op: str, type: Type, a: AffineParts, n: int) -> Affine | None:
    full = ones(type.bits)
    if a.disjoint:
        if op == "or":
            return _joined(alg, type, *_scalar_logic(alg, type, "and", a, full & ~n), tuple(k | n for k in a.lanes))
        of_lanes = n if op == "and" else n & ~a.bits
        lanes = tuple(constant_folding.integer(op, type, k, of_lanes) for k in a.lanes)
        return _joined(alg, type, *_scalar_logic(alg, type, op, a, n & a.bits), lanes)
    # the base is a multiple of 2^zeros: lower bits are those of the offsets, higher ones may have a carry
    low = ones(min(trailing_zeros(a.bits), type.bits))
    above = n & full & ~low
    own = tuple(constant_folding.integer(op, type, k & low, n & low) for k in a.lanes)
    if op == "and" and not above:
        return _joined(alg, type, 0, 0, own)
    if above == (full & ~low if op == "and" else 0):
        return _joined(alg, type, a.base, a.bits, tuple((k & ~low) + m for k, m in zip(a.lanes, own, strict=True)))
    return None


def _scalar_logic(alg: VectorAlgebra, type: Type, op: str, a: AffineParts, n: int) -> tuple[Scalar, int]:
    """Logic on the base and a constant: the scalar, and its bits."""
    if op == "and" and not a.bits & n:
        return 0, 0
    if not (n if op == "xor" else a.bits & ~n):
        return a.base, a.bits
    return alg.scalar(op, type.bits, a.base, n), a.bits if op == "xor" else a.bits & n


def _shift(alg: VectorAlgebra, type: Type, a: AffineParts, n: int) -> Affine | None:
    bits, sign = type.bits, type.is_signed
    if n >= bits:
        return None
    wraps = a.values >> (bits - sign)
    if not a.disjoint and (wraps or n > trailing_zeros(a.bits)):
        return None
    lanes = tuple(constant_folding.integer("shr", type, k & ones(bits), n) for k in a.lanes)
    moved = a.bits >> n
    if sign and a.bits >> (bits - 1):
        moved |= ones(bits) & ~ones(bits - 1 - n)
    if not moved:
        return _joined(alg, type, 0, 0, lanes)
    if isinstance(a.base, int):
        return _joined(alg, type, constant_folding.integer("shr", type, a.base, n) & ones(bits), moved, lanes)
    base = alg.code.emit(f"{'ashr' if sign else 'lshr'} i{bits} {text(f'i{bits}', a.base)}, {n}") if n else a.base
    return _joined(alg, type, base, moved, lanes)


def _joined(alg: VectorAlgebra, type: Type, base: Scalar, bits: int, lanes: Pattern) -> Affine | None:
    """The affine value of a base, with the bits that it may have, and of an offset for each lane."""
    own = from_lanes(type, lanes)
    if not isinstance(own, Affine) or not isinstance(own.base, int):
        return None
    made = alg.scalar("add", type.bits, base, own.base)
    if isinstance(base, str):
        alg.code.root_bits[base] = bits
    found = (
        bits | own.base if not bits & own.base else _from(min(trailing_zeros(bits), trailing_zeros(own.base)), ones(type.bits))
    )
    return Affine(made, own.terms, bits=found)


# ── other questions ─────────────────────────────────────────────────────────────────────


def in_range(type: Type, a: Affine, width: int) -> bool:
    """Is it certain that no lane wraps and none is negative?"""
    found = AffineParts.of(type, a, width)
    return found is not None and not found.values >> (type.bits - type.is_signed)


def extended_bits(type: Type, a: Affine) -> int:
    """The bits that the base may have as a wider integer."""
    bits = possible_bits(a, type.bits)
    return bits | -1 << type.bits if type.is_signed and bits >> (type.bits - 1) else bits


def relation(alg: VectorAlgebra, op: str, type: Type, a: Affine, b: Affine) -> Raw | None:
    """A comparison of values with one base, where no lane wraps: it is the one of the offsets of the lanes."""
    roots, patterns = set(), []
    for each in (a, b):
        parts = AffineParts.of(type, each, alg.width)
        if parts is None or isinstance(parts.base, int):
            return None
        root, constant = alg.code.sums.get(parts.base, (parts.base, 0))
        bits = alg.code.root_bits.get(root) if constant else parts.bits
        if bits is None:
            return None
        whole = AffineParts(root, bits, tuple([n + constant for n in parts.lanes]))
        if whole.values >> (type.bits - type.is_signed):
            return None
        roots.add(root)
        patterns.append(whole.lanes)
    return from_lanes(pred, constant_folding.comparisons(op, type, *patterns)) if len(roots) == 1 else None


def comparison(op: str, type: Type, a: Affine, b: Affine, width: int) -> int | None:
    """The result of a comparison with a constant in all lanes, if the known bits decide it."""
    if (sides := _with_constant(op, type, a, b, width)) is None:
        return None
    op, found, constant = sides
    least, most = min(found.lanes), found.values if found.disjoint else found.most
    n = constant_folding.signed(type, constant)
    if most < n or least > n:
        return int(op == "ne" or op in (("lt", "le") if most < n else ("gt", "ge")))
    if (op == "ge" and least >= n) or (op == "le" and most <= n):
        return 1
    if (op == "lt" and least >= n) or (op == "gt" and most <= n):
        return 0
    return None


def of_rows(alg: VectorAlgebra, op: str, type: Type, a: Affine, b: Affine) -> Affine | None:
    """A comparison that holds in all lanes or in none, since a constant lies between the rows that the lanes are in.

    Where the offsets are below a power of two, of which the base is a multiple, all lanes are in one row of so many numbers.
    `tid > 31` asks whether a warp is the first one.
    """
    sides = _with_constant(op, type, a, b, alg.width)
    if sides is None or not sides[1].disjoint:
        return None
    op, found, constant = sides
    last = ones(reduce(or_, found.lanes).bit_length())
    if found.bits & last or constant & last != {"gt": last, "le": last, "ge": 0, "lt": 0}.get(op):
        return None
    word = f"i{type.bits}"
    return Affine(alg.code.emit(f"icmp u{op} {word} {text(word, found.base)}, {constant}"))


def _with_constant(op: str, type: Type, a: Affine, b: Affine, width: int) -> tuple[str, AffineParts, int] | None:
    """A comparison with its constant on the right; None where there is none, or where a lane of the other side may wrap."""
    if a.constant is not None:
        a, b, op = b, a, MIRRORED.get(op, op)
    found = AffineParts.of(type, a, width) if b.constant is not None else None
    if found is None or b.constant is None or found.values >> (type.bits - type.is_signed):
        return None
    return op, found, b.constant

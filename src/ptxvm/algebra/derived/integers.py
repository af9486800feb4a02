"""Integer operations over the primitives."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value, derived, select

# ── ranges ──────────────────────────────────────────────────────────────────────────────


@derived
def saturate(a: Value, target: Type) -> Value:
    """The integer `a`, clamped to the range of `target`, as `target`."""
    (least, most), (lowest, highest) = a.type.range, target.range
    return a.max(max(least, lowest)).min(min(most, highest)).to(target)


def widened(a: Value) -> Value:
    """The same number as a signed integer of twice the size, which holds sums and differences."""
    return a.to(Type.named[f"s{2 * a.type.bits}"])


@derived
def add_saturating(a: Value, b: Value) -> Value:
    """The sum, clamped to the range of the type."""
    return saturate(widened(a) + widened(b), a.type)


@derived
def sub_saturating(a: Value, b: Value) -> Value:
    """The difference, clamped to the range of the type."""
    return saturate(widened(a) - widened(b), a.type)


@derived
def absolute(a: Value) -> Value:
    """The magnitude of a signed integer; the least one stays itself."""
    return a.max(-a)


@derived
def distance(a: Value, b: Value) -> Value:
    """How far apart two integers are, modulo the size of the type."""
    return a.max(b) - a.min(b)


# ── carries ─────────────────────────────────────────────────────────────────────────────


@derived
def add_carrying(a: Value, b: Value, carry: Value | None = None) -> tuple[Value, Value]:
    """The sum of two integers and, it may be, a carry; and the carry out of it."""
    total = a + b
    over = _below(total, a)
    if carry is None:
        return total, over
    return (more := total + carry.to(a.type)), over | _below(more, total)


@derived
def sub_borrowing(a: Value, b: Value, borrow: Value | None = None) -> tuple[Value, Value]:
    """One integer without another and, it may be, a borrow; and whether that borrows."""
    total = a - b
    under = _below(a, total)
    if borrow is None:
        return total, under
    return (less := total - borrow.to(a.type)), under | _below(total, less)


def _below(a: Value, b: Value) -> Value:
    """Is `a` less, where both count as unsigned?"""
    return a.view(a.type.as_unsigned) < b.view(b.type.as_unsigned)


@derived
def carryless_product(a: Value, b: Value) -> tuple[Value, Value]:
    """The low and the high half of the product of two polynomials over GF(2)."""
    bits = a.type.bits
    low = high = a ^ a
    for n in range(bits):
        chosen = -(b >> n & 1)
        low ^= a << n & chosen
        high ^= a >> bits - n & chosen
    return low, high


# ── bits and fields ─────────────────────────────────────────────────────────────────────


@derived
def shift_amount(n: Value, type: Type) -> Value:
    """An unsigned amount, ready to shift a value of that type: more than its size stays more."""
    return n.min(type.bits).to(type.as_unsigned)


@derived
def extend(a: Value, n: Value) -> Value:
    """The lowest `n` bits of `a`, sign- or zero-extended as its type says."""
    unused = a.lift(a.type.bits) - n.min(a.type.bits)
    return a << unused >> unused


def field(a: Value, at: int, size: int) -> Value:
    """So many bits of `a`, from bit `at` up, sign- or zero-extended as its type says."""
    unused = a.type.bits - size
    return a << unused - at >> unused


@derived
def shift_to_nearest(a: Value, n: Value) -> Value:
    """`a >> n`, rounded to the nearest integer, to the even one of two; `a` has a leading zero, and `n` is 1 or more."""
    return a + (n.lift(1) << n - 1) - 1 + (a >> n & 1) >> n


@derived
def low_mask(n: Value) -> Value:
    """As many ones as `n` says, from bit 0 up."""
    return (n.lift(1) << n) - 1


@derived
def nth_one(a: Value, n: Value) -> Value:
    """The position of the nth one, counted from bit 0 and from 0, in a 32-bit value; all ones where there are fewer."""
    position, rest = n.lift(0), n
    for width in (16, 8, 4, 2, 1):
        ones = (a >> position & (1 << width) - 1).popc().to(n.type)
        above = rest >= ones
        rest = select(above, rest - ones, rest)
        position = select(above, position + width, position)
    return select(n < a.popc().to(n.type), position, -1)


def mux(a: Value, b: Value, chooser: Value) -> Value:
    """The bits of `a` where the chooser has ones, and those of `b` elsewhere."""
    return b ^ (chooser & (a ^ b))


@derived
def look_up(a: Value, b: Value, c: Value, table: Value) -> Value:
    """Bit by bit, the entry of an 8-bit truth table that the bits of `a`, `b`, `c` number (PTX 9.7.8.6)."""
    rows = [-(table >> n & 1) for n in range(8)]
    for chooser in (c, b, a):
        rows = [mux(rows[n + 1], rows[n], chooser) for n in range(0, len(rows), 2)]
    (entry,) = rows
    return entry

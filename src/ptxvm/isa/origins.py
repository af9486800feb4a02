"""Origins of results: an abstract algebra whose values know which operands they are offsets from (pointer provenance)."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value
from ptxvm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The operands that a result is an offset from; `unchanged` where it is one of them as it was.

    `chosen` says that it is an offset from one of several values, and only a run tells from which.
    """

    operands: frozenset[str] = frozenset()
    unchanged: bool = False
    chosen: bool = False


NOTHING = Origin()


def operand(type: Type, name: str) -> Value:
    """The value of an operand."""
    return Value(ORIGINS, type, Origin(frozenset([name]), unchanged=True))


def origin_of(value: object) -> Origin:
    """The origin of a result; a vector is an offset from whatever its elements are offsets from."""
    if isinstance(value, Value):
        origin: Origin = value.raw
        return origin
    found = [origin_of(each) for each in value] if isinstance(value, (list, tuple)) else []
    operands = frozenset(operand for each in found for operand in each.operands)
    return Origin(operands, bool(found) and all(each.unchanged for each in found), any(each.chosen for each in found))


class Origins(Algebra):
    """An algebra whose values say only which operands they are offsets from: sums, differences and choices of these."""

    def const(self, type: Type, x: float) -> Origin:
        """It comes from no operand."""
        return NOTHING

    def integer(self, op: str, type: Type, a: Origin, b: Origin) -> Origin:
        """A sum is an offset from either part, a difference from its first; masks clear or set bits of an address."""
        if op in ("add", "and", "or"):
            return Origin(a.operands | b.operands, chosen=a.chosen or b.chosen)
        if op in ("min", "max"):
            return self.select(type, NOTHING, a, b)
        return Origin(a.operands, chosen=a.chosen) if op == "sub" else NOTHING

    def select(self, type: Type, condition: Origin, a: Origin, b: Origin) -> Origin:
        """One of two."""
        chosen = a.operands != b.operands or a.chosen or b.chosen
        return Origin(a.operands | b.operands, a.unchanged and b.unchanged, chosen)

    def cast(self, op: str, source: Type, target: Type, a: Origin, rounding: Rounding) -> Origin:
        """The bits of an integer stay those of the address as far as they go; conversions of floats make others."""
        if op == "view":
            return a
        return Origin(a.operands, chosen=a.chosen) if op == "resize" else NOTHING

    def bits(self, op: str, type: Type, a: Origin) -> Origin:
        """No offset."""
        return NOTHING

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Origin) -> Origin:
        """No offset."""
        return NOTHING

    def compare(self, op: str, type: Type, a: Origin, b: Origin) -> Origin:
        """No offset."""
        return NOTHING

    def round(self, mode: str, type: Type, a: Origin) -> Origin:
        """No offset."""
        return NOTHING

    def lookup(self, type: Type, table: tuple[int, ...], index: Origin) -> Origin:
        """No offset."""
        return NOTHING


ORIGINS = Origins()


def unknown(type: Type) -> Value:
    """A value that comes from no operand."""
    return Value(ORIGINS, type, NOTHING)

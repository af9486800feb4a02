"""Floating-point operations of an instruction: an abstract algebra counts those that its meaning asks for.

A sum, a difference and a product are one operation, a fused multiply-add is two.  Divisions, roots and approximations are
none: hardware computes them in steps of its own.  Neither are conversions.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Rounding, Value
from ptxvm.isa.exactness import DEFINED
from ptxvm.isa.model import Decoded
from ptxvm.isa.origins import NOTHING, Origin, Origins
from ptxvm.named_tuple import NamedTuple

OPERATIONS = {"add": 1, "sub": 1, "mul": 1, "fma": 2}


class FloatOperations(NamedTuple):
    """How many operations a thread does, and the bits of an element of the result."""

    operations: int
    bits: int


NONE = FloatOperations(0, 0)


def float_operations(i: Decoded) -> FloatOperations:
    """The floating-point operations of one thread that executes an instruction."""
    known: FloatOperations | None = i.__dict__.get("_float_operations")
    if known is None:
        known = i.__dict__["_float_operations"] = _count(i)
    return known


def _count(i: Decoded) -> FloatOperations:
    if i.of.effects or i.of.exactness != (DEFINED,):
        return NONE
    made = next(map(i.type_of, i.destinations()), None)
    operands = [i.type_of(name) for name in i.of.sources]
    if made is None or not made.is_float or made.element not in [each and each.element for each in operands]:
        return NONE
    count = OperationCount()
    i.of.meaning(i, *(each and Value(count, each, NOTHING) for each in operands))
    return FloatOperations(count.operations, made.element.bits) if count.operations else NONE


class OperationCount(Origins):
    """An algebra of values of which nothing is known, which counts operations."""

    def __init__(self) -> None:
        self.operations = 0

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Origin) -> Origin:
        """Count it."""
        self.operations += OPERATIONS.get(op, 0)
        return NOTHING


__all__ = ["FloatOperations", "float_operations"]

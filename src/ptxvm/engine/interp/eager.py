"""Eager evaluation: the algebra over NumPy arrays, one operation at a time, for `explain` and for atomic updates."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Rounding, Value
from ptxvm.engine.interp import arrays, primitives
from ptxvm.machine.per_lane import PerLane


class ArrayAlgebra:
    """Values are arrays with an element per lane, or NumPy scalars."""

    def const(self, type: Type, x: float) -> PerLane:
        """A constant as a NumPy scalar."""
        return arrays.const(type, x)

    def integer(self, op: str, type: Type, a: PerLane, b: PerLane) -> PerLane:
        """Operations on integers and predicates."""
        return primitives.integer(op, type)(a, b)

    def bits(self, op: str, type: Type, a: PerLane) -> PerLane:
        """`popc clz reverse`."""
        return primitives.BITS[op](a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: PerLane) -> PerLane:
        """Correctly rounded arithmetic."""
        return primitives.floating(op, type, rounding)(*args)

    def compare(self, op: str, type: Type, a: PerLane, b: PerLane) -> PerLane:
        """A comparison; the result is a predicate."""
        return primitives.compare(op, type)(a, b)

    def select(self, type: Type, condition: PerLane, a: PerLane, b: PerLane) -> PerLane:
        """`a` where the condition holds, else `b`."""
        return arrays.select(condition, a, b)

    def cast(self, op: str, source: Type, target: Type, a: PerLane, rounding: Rounding) -> PerLane:
        """Every conversion of a value."""
        function = primitives.cast(op, source, target, rounding)
        return a if function is None else function(a)

    def round(self, mode: str, type: Type, a: PerLane) -> PerLane:
        """Round to an integral value."""
        return arrays.round_integral(mode, a)

    def lookup(self, type: Type, table: tuple[int, ...], index: PerLane) -> PerLane:
        """An entry of a table."""
        return primitives.lookup(table, type)(index)


def _replacement(name: str) -> Callable[[Value], Value]:
    function = primitives.derived(name)
    return lambda a: Value(a.alg, primitives.derived_type(name, a.type), function(a.raw))


for _name in primitives.DERIVED:
    setattr(ArrayAlgebra, f"derived_{_name}", staticmethod(_replacement(_name)))

EAGER = ArrayAlgebra()

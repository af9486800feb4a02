"""Uniform, affine, varying: how a value differs between the threads of a CTA, derived from the meanings of instructions.

A uniform value is the same in all threads.  An affine one grows with `%tid.x` by a stride; a varying one differs in other
ways.  Of what comes from memory by addresses that differ, and from other lanes, nothing is known.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import SpecialRegister


class Variation(enum.Enum):
    """How a value differs between threads."""

    UNIFORM = "uniform"
    AFFINE = "affine"
    VARYING = "varying"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LaneShape:
    """The variation of a value; of an affine one the stride, of a constant the value, where they are known."""

    variation: Variation
    stride: int | None = None
    value: int | None = None

    @property
    def is_uniform(self) -> bool:
        """Is it the same in all threads?"""
        return self.variation is Variation.UNIFORM

    @property
    def differs(self) -> bool:
        """Does it differ between threads, by their numbers?"""
        return self.variation in (Variation.AFFINE, Variation.VARYING)


UNIFORM = LaneShape(Variation.UNIFORM)
VARYING = LaneShape(Variation.VARYING)
UNKNOWN = LaneShape(Variation.UNKNOWN)

WIDEST = 64
"""The bits of the widest value that is shifted."""

PER_THREAD = frozenset(("laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "warpid"))
"""The special registers that differ within a CTA, beside `%tid`."""


def affine(stride: int | None) -> LaneShape:
    """An affine shape; uniform where the stride is 0."""
    return UNIFORM if stride == 0 else LaneShape(Variation.AFFINE, stride)


def of_special(register: SpecialRegister) -> LaneShape:
    """The shape of a special register: `%tid.x` counts threads, `%tid.y` and `.z` depend on the size of the CTA."""
    if register.value is not None:
        return LaneShape(Variation.UNIFORM, value=register.value)
    if register.name == "tid":
        return affine(1) if register.component == 0 else UNKNOWN
    if register.name in PER_THREAD:
        return VARYING
    return UNKNOWN if register.volatile or register.scheduled else UNIFORM


def together(*shapes: LaneShape) -> LaneShape:
    """The shape of a value that is computed from others."""
    if any(shape.differs for shape in shapes):
        return VARYING
    return UNIFORM if all(shape.is_uniform for shape in shapes) else UNKNOWN


def joined(one: LaneShape, other: LaneShape, *, apart: bool) -> LaneShape:
    """The shape of a register where two paths meet; `apart` says that threads may come by both."""
    if one == other:
        return one
    if apart or VARYING in (one, other):  # which no other path takes back: so a fixed point is found
        return VARYING
    if one.is_uniform and other.is_uniform:
        return UNIFORM
    if one.variation is other.variation is Variation.AFFINE:
        return affine(one.stride if one.stride == other.stride else None)
    return UNKNOWN


FOLDS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "shl": operator.lshift, "min": min, "max": max,
    "and": operator.and_, "or": operator.or_,
}  # fmt: skip
"""What is computed of constants, for strides are made of them."""


class LaneShapes(Algebra):
    """An algebra whose values are the shapes of values."""

    def const(self, type: Type, x: float) -> LaneShape:
        """A constant."""
        return LaneShape(Variation.UNIFORM, value=int(x)) if isinstance(x, int) else UNIFORM

    def integer(self, op: str, type: Type, a: LaneShape, b: LaneShape) -> LaneShape:
        """Sums, and products with what is uniform, of affine values are affine."""
        if a.is_uniform and b.is_uniform:
            return self._constant(op, a.value, b.value)
        strides = self._strides(op, a, b)
        return together(a, b) if strides is None else strides

    def _constant(self, op: str, a: int | None, b: int | None) -> LaneShape:
        fold = FOLDS.get(op)
        if fold is None or a is None or b is None or (op == "shl" and not 0 <= b < WIDEST):
            return UNIFORM
        return LaneShape(Variation.UNIFORM, value=fold(a, b))

    def _strides(self, op: str, a: LaneShape, b: LaneShape) -> LaneShape | None:
        """The affine result of an operation; None where it is not affine."""
        if Variation.VARYING in (a.variation, b.variation) or Variation.UNKNOWN in (a.variation, b.variation):
            return None
        first, second = (0 if each.is_uniform else each.stride for each in (a, b))
        match op:
            case "add" | "sub":
                if first is None or second is None:
                    return affine(None)
                return affine(first + second if op == "add" else first - second)
            case "mul" if a.is_uniform or b.is_uniform:
                stride, factor = (second, a.value) if a.is_uniform else (first, b.value)
                return affine(None if stride is None or factor is None else stride * factor)
            case "shl" if b.is_uniform:
                if first is None or b.value is None or not 0 <= b.value < WIDEST:
                    return affine(None)
                return affine(first << b.value)
        return None

    def bits(self, op: str, type: Type, a: LaneShape) -> LaneShape:
        """Of one value."""
        return together(a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: LaneShape) -> LaneShape:
        """Of several."""
        return together(*args)

    def compare(self, op: str, type: Type, a: LaneShape, b: LaneShape) -> LaneShape:
        """Two values that grow alike compare alike in all threads, but for overflow."""
        return together(a, b)

    def select(self, type: Type, condition: LaneShape, a: LaneShape, b: LaneShape) -> LaneShape:
        """One of two."""
        if condition.is_uniform:
            return joined(a, b, apart=False)
        return a if a == b and a.value is not None else together(condition, a, b)

    def cast(self, op: str, source: Type, target: Type, a: LaneShape, rounding: Rounding) -> LaneShape:
        """The same bits, or an integer of another width; else computed."""
        return a if op in ("view", "resize") and not source.is_float and not target.is_float else together(a)

    def round(self, mode: str, type: Type, a: LaneShape) -> LaneShape:
        """Of one value."""
        return together(a)

    def lookup(self, type: Type, table: tuple[int, ...], index: LaneShape) -> LaneShape:
        """Of one value."""
        return together(index)


LANE_SHAPES = LaneShapes()


def value(type: Type, shape: LaneShape) -> Value:
    """A value of a shape."""
    return Value(LANE_SHAPES, type, shape)

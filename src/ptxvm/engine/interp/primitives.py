"""Each primitive of the algebra as a function over arrays, found by its name and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from ptxvm.algebra.types import Type, f32, f64
from ptxvm.algebra.value import Rounding
from ptxvm.engine import fused
from ptxvm.engine.interp import arrays
from ptxvm.machine.per_lane import PerLane

Function = Callable[..., PerLane]

INTEGER: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum, "shl": arrays.shl, "shr": arrays.shr,
    "div": arrays.div, "rem": arrays.rem, "mul_hi": arrays.mul_hi,
}  # fmt: skip
COMPARE: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
NEAREST: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
}  # fmt: skip
BITS: dict[str, Function] = {"popc": arrays.popc, "clz": arrays.clz, "reverse": arrays.reverse}
B128_SHIFTS: dict[str, Function] = {"shl": arrays.b128_shl, "shr": arrays.b128_shr}


@cache
def integer(op: str, type: Type) -> Function:
    """An operation on integers and predicates; a b128 is held as two words."""
    if arrays.dtype(type) == arrays.B128:
        return B128_SHIFTS.get(op) or partial(arrays.b128_logic, op)
    return INTEGER[op]


@cache
def compare(op: str, type: Type) -> Function:
    """A comparison; those of b128 are for equality alone (`atom.cas.b128`)."""
    if arrays.dtype(type) == arrays.B128:
        return {"eq": arrays.b128_equal}[op]
    return COMPARE[op]


@cache
def floating(op: str, type: Type, rounding: Rounding) -> Function:
    """Correctly rounded arithmetic on f32 and f64."""
    if rounding == "rn":
        if op == "fma":
            return {f32: fused.fma_f32, f64: fused.fma_f64}[type]
        return NEAREST[op]
    return partial(arrays.floating, op, rounding, arrays.dtype(type))


@cache
def cast(op: str, source: Type, target: Type, rounding: Rounding) -> Function | None:
    """A conversion; None where both types have the same representation."""
    dtype = arrays.dtype(target)
    if op == "view":
        return None if dtype == arrays.dtype(source) else partial(_flipped, arrays.view, dtype)
    if op == "resize":
        return None if dtype == arrays.dtype(source) else partial(_flipped, arrays.resize, dtype)
    if op == "ftoi":
        return partial(_flipped, arrays.ftoi, dtype)
    function = {"itof": arrays.itof, "ftof": arrays.ftof}[op]
    return partial(_rounded, function, dtype, rounding)


def _flipped(function: Function, dtype: np.dtype[np.generic], a: PerLane) -> PerLane:
    return function(a, dtype)


def _rounded(function: Function, dtype: np.dtype[np.generic], rounding: Rounding, a: PerLane) -> PerLane:
    return function(a, dtype, rounding)


@cache
def round_integral(mode: str) -> Function:
    """Round to an integral value."""
    return partial(arrays.round_integral, mode)


@cache
def lookup(table: tuple[int, ...], type: Type) -> Function:
    """An entry of a table."""
    return partial(_entry, np.array(table, arrays.dtype(type)))


def _entry(table: PerLane, index: PerLane) -> PerLane:
    return table.take(index)


DERIVED = ("is_nan", "magnitude", "negate", "flush_subnormal", "canonical_nan", "clamp01")


def derived(name: str) -> Function:
    """The replacement of a derived operation."""
    function: Function = getattr(arrays, f"derived_{name}")
    return function


def derived_type(name: str, type: Type) -> Type:
    """The type of its result."""
    if name == "is_nan":
        return Type.named["pred"]
    return type.as_bits if name == "magnitude" else type

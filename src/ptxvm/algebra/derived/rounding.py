"""Correctly rounded arithmetic on every format, with the modifiers that go with it."""

from __future__ import annotations

from ptxvm.algebra.derived.floats import canonical_nan, clamp01, flush_subnormal, relu
from ptxvm.algebra.types import bf16, f16, f32, f64
from ptxvm.algebra.value import Rounding, Value

# What f32 may round to nearest, and no second rounding shows: 24 bits are twice those of a sum and two more (and subnormal
# sums are exact), and a product of f16 fits.
INNOCUOUS = {("add", f16), ("sub", f16), ("mul", f16), ("add", bf16), ("sub", bf16)}


def arithmetic(op: str, rounding: Rounding, *operands: Value) -> Value:
    """`add sub mul div sqrt fma` in the format of the operands, rounded once.

    f16 and bf16 go by way of an f32, rounded to odd where a second rounding could show.
    """
    first, *others = operands
    type = first.type
    if type not in (f16, bf16):
        return first.floating(op, *others, rounding=rounding)
    first, *others = [x.to(f32) for x in operands]
    return first.floating(op, *others, rounding="rn" if (op, type) in INNOCUOUS else "odd").to(type, rounding)


def finish(i, a: Value) -> Value:  # type: ignore[no-untyped-def] # noqa: ANN001 (a decoded instruction)
    """A result as its modifiers want it: `.ftz`, `.sat`, `.relu`, and one NaN."""
    if i.flushes and a.type is not f64:
        a = flush_subnormal(a)
    if getattr(i, "relu", False):
        a = relu(a)
    return clamp01(a) if getattr(i, "sat", False) else canonical_nan(a)

"""What atomic operations do to integers and floats (PTX 9.7.13.5 to 9.7.13.7)."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.derived.floats import canonical_nan, flush_subnormal, maximum, minimum
from ptxvm.algebra.derived.packed import each
from ptxvm.algebra.derived.rounding import arithmetic
from ptxvm.algebra.value import Value, select

INTEGERS: dict[str, Callable[[Value, Value], Value]] = {
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda _, b: b,
    "add": lambda old, b: old + b,
    "inc": lambda old, b: select(old >= b, 0, old + 1),
    "dec": lambda old, b: select(old.eq(0) | (old > b), b, old - 1),
    "min": lambda old, b: old.min(b),
    "max": lambda old, b: old.max(b),
}
FLOATS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda old, b: arithmetic("add", "rn", old, b),
    "min": minimum,
    "max": maximum,
}


def floating(operation: str, old: Value, b: Value, *, flushes: bool) -> Value:
    """The outcome for floats, perhaps packed; an f32 may be without subnormal numbers."""
    if flushes:
        return canonical_nan(flush_subnormal(FLOATS[operation](flush_subnormal(old), flush_subnormal(b))))
    return each(lambda x, y: canonical_nan(FLOATS[operation](x, y)), old, b)

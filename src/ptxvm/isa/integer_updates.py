"""What atomic operations do to integers (PTX 9.7.13.5 to 9.7.13.7)."""

from __future__ import annotations

from collections.abc import Callable

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

"""Values that depend on what was read: a number, a read, or an operation on both."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported

Key = tuple[str, int]
"""The name of an event in all executions: its thread, and how many events that thread had before it."""


@dataclass(frozen=True, slots=True)
class ReadValue:
    """The value that the event with this key reads."""

    event: Key


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of `ARITHMETIC` on two values."""

    name: str
    left: Value
    right: Value
    depth: int = field(default=1, compare=False, repr=False)  # of nested operations


Value = int | ReadValue | Operation
DEEPEST = 100  # nested operations; the functions on values are recursive

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: int(a / b) if b else 0,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "exch": lambda _, b: b,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def operation(name: str, left: Value, right: Value) -> Value:
    """The operation on two values, computed at once if both are known; an exchange depends only on the value that it stores."""
    if name == "exch":
        return right
    if isinstance(left, int) and isinstance(right, int):
        return ARITHMETIC[name](left, right)
    depth = 1 + max(each.depth if isinstance(each, Operation) else 0 for each in (left, right))
    if depth > DEEPEST:
        raise Unsupported(f"a value that more than {DEEPEST} operations make of what was read, in a litmus test")
    return Operation(name, left, right, depth)


def reads_in(value: Value) -> frozenset[Key]:
    """The reads on which a value depends."""
    if isinstance(value, int):
        return frozenset()
    if isinstance(value, ReadValue):
        return frozenset({value.event})
    return reads_in(value.left) | reads_in(value.right)


def evaluate(value: Value, known: Mapping[Key, int]) -> int | None:
    """The number, or None if it depends on an unknown read."""
    if isinstance(value, int):
        return value
    if isinstance(value, ReadValue):
        return known.get(value.event)
    left, right = evaluate(value.left, known), evaluate(value.right, known)
    return None if left is None or right is None else ARITHMETIC[value.name](left, right)

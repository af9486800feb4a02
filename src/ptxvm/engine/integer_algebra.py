"""The algebra over Python's integers: what the host computes of single words, such as the update of an mbarrier.

Only integers and predicates have values here; a meaning that asks for anything else is none of a word.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "shr": operator.rshift,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class IntegerAlgebra(Algebra):
    """Values are the bits of unsigned integers."""

    def const(self, type: Type, x: float) -> int:
        """A constant, modulo its width."""
        return int(x) % (1 << type.bits)

    def integer(self, op: str, type: Type, a: int, b: int) -> int:
        """Operations on unsigned integers; a shift by the width or more gives 0."""
        if op in ("shl", "shr") and b >= type.bits:
            return 0
        return OPERATIONS[op](a, b) % (1 << type.bits)

    def bits(self, op: str, type: Type, a: int) -> int:
        """Nothing asks for it."""
        raise NotImplementedError(op)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: int) -> int:
        """No word is a float."""
        raise NotImplementedError(op)

    def round(self, mode: str, type: Type, a: int) -> int:
        """No word is a float."""
        raise NotImplementedError(mode)

    def lookup(self, type: Type, table: tuple[int, ...], index: int) -> int:
        """Nothing asks for it."""
        raise NotImplementedError(type.name)

    def compare(self, op: str, type: Type, a: int, b: int) -> bool:
        """A comparison of unsigned integers."""
        return COMPARISONS[op](a, b)

    def select(self, type: Type, condition: bool, a: int, b: int) -> int:  # noqa: FBT001 - as the protocol has it
        """`a` where the condition holds, else `b`."""
        return a if condition else b

    def cast(self, op: str, source: Type, target: Type, a: int, rounding: Rounding) -> int:
        """The bits as another type, the low ones of them where it is narrower."""
        return a % (1 << target.bits)


INTEGERS = IntegerAlgebra()


def updated(update: Callable[..., Value], type: Type, word: int, *operands: int) -> int:
    """A word after an update with some operands, all of one type."""
    found = update(*(Value(INTEGERS, type, each) for each in (word, *operands)))
    return int(found.raw)


__all__ = ["INTEGERS", "IntegerAlgebra", "updated"]

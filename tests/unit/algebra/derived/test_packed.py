"""Functions of corresponding elements of packed values, taken apart or by an engine that takes them together."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from ptxvm.algebra.derived.packed import each
from ptxvm.algebra.types import Type, bf16, f16
from ptxvm.algebra.value import Value


class Integers:
    """An algebra whose values are integers modulo their size."""

    def const(self, type: Type, x: int) -> int:
        return x & (1 << type.bits) - 1

    def integer(self, op: str, type: Type, a: int, b: int) -> int:
        operations: dict[str, Callable[[int, int], int]] = {"add": operator.add, "or": operator.or_}
        made = {"shl": lambda: a << b, "shr": lambda: a >> b}.get(op, lambda: operations[op](a, b))()
        return self.const(type, made)

    def cast(self, _op: str, _source: Type, target: Type, a: int, _rounding: str) -> int:
        return self.const(target, a)


class Together(Integers):
    """The same, which takes the elements of some types together."""

    def derived_each(self, function: Callable[..., Value], *operands: Value) -> Value | None:
        if operands[0].type.element is bf16:
            return None
        return Value(self, operands[0].type, ("together", function, *[x.raw for x in operands]))  # type: ignore[arg-type]


def values(alg: Integers, type: str, *raw: int) -> list[Value]:
    return [Value(alg, Type.named[type], x) for x in raw]  # type: ignore[arg-type]


@pytest.mark.parametrize("alg", [Integers(), Together()])
def test_elements_do_not_carry_into_each_other(alg: Integers) -> None:
    """What `Together` does not take is taken apart as well."""
    made = each(
        lambda x, y: x.view(Type.named["u16"]) + y.view(Type.named["u16"]), *values(alg, "bf16x2", 0x0001_FFFF, 0x0002_0003)
    )
    assert (made.type.name, made.raw) == ("bf16x2", 0x0003_0002)


def test_an_engine_takes_them_together() -> None:
    made = each(operator.add, *values(Together(), "f16x2", 1, 2))
    assert made.raw == ("together", operator.add, 1, 2)  # type: ignore[comparison-overlap]


def test_a_scalar_has_one_element() -> None:
    """It is the function itself, in any algebra."""
    (one,) = values(Together(), "f16", 5)
    assert each(lambda x: x, one) is one
    assert one.type is f16

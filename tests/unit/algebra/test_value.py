"""Values refuse what no instruction means: operands of other sizes, integer operations on floats."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import Type, b32, f16, f32, pred, s16, u32, u64
from ptxvm.algebra.value import Value, select


class Written:
    """An algebra whose values are the formulas that made them."""

    def const(self, type: Type, x: object) -> str:
        return f"{x}{type}"

    def compare(self, op: str, type: Type, a: str, b: str) -> str:
        return f"{op}({a}, {b})"

    def cast(self, op: str, source: Type, target: Type, a: str, rounding: str) -> str:
        return f"{op}({a}, {target})"


def value(type: Type) -> Value:
    return Value(Written(), type, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("one", "other"), [(u32, u64), (f32, b32), (f16, s16)])
def test_operands_have_one_size_and_are_floats_or_not(one: Type, other: Type) -> None:
    with pytest.raises(TypeError, match=f"{one} with {other}"):
        value(one).lift(value(other))


def test_integer_operations_are_for_integers() -> None:
    with pytest.raises(TypeError, match=r"integer and on \.f32"):
        _ = value(f32) & 1


def test_a_predicate_is_whether_a_number_is_not_zero() -> None:
    made = value(u32).to(pred)
    assert (made.type, made.raw) == (pred, "ne(x, 0.u32)")


def test_the_same_bits_have_the_same_size() -> None:
    assert value(f32).view(b32).raw == "view(x, .b32)"
    with pytest.raises(TypeError, match=r"\.u32 viewed as \.u64"):
        value(u32).view(u64)


def test_a_choice_has_a_type() -> None:
    with pytest.raises(TypeError, match="select needs a Value among its two choices"):
        select(value(pred), 1, 2)

"""Of which operands a result is an offset: of none, where it is a float, a comparison or an entry of a table."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import f32, f64, u32, u64
from ptxvm.algebra.value import Value, lookup
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.catalog.atomic import operation
from ptxvm.isa.model import candidates
from ptxvm.isa.origins import NOTHING, operand, origin_of
from ptxvm.isa.recording import Record

load_catalog()
A, F = operand(u64, "a"), operand(f32, "f")


@pytest.mark.parametrize(
    "made",
    [F + F, F.to(u32), F.to(f64), F.round("rzi"), A < 4, lookup((1, 2), operand(u32, "n"), u32)],
)
def test_what_is_no_offset(made: Value) -> None:
    assert origin_of(made) == NOTHING


def test_a_difference_is_an_offset_from_its_first_part() -> None:
    assert origin_of(A - operand(u64, "b")).operands == {"a"}
    assert origin_of([A, operand(u64, "b")]).operands == {"a", "b"}


def test_an_atomic_sum_is_an_offset_from_both() -> None:
    (atom, *_) = candidates("atom", ("global", "add", "u32"))
    assert origin_of(operation(atom, operand(u32, "old"), operand(u32, "b"))).operands == {"old", "b"}


def test_a_record_has_the_methods_of_ports_only() -> None:
    with pytest.raises(AttributeError, match="levitate"):
        Record().levitate()

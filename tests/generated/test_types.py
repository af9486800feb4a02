"""Meanings are well typed: each legal variant, run over values that hold nothing, gives what it declares.

An algebra that computes nothing checks what `Value` checks: that no operation mixes sizes or sorts.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, PORTS, Decoded, Instruction
from ptxvm.isa.operand_types import Shape

load_catalog()

STUBBED = {"cc"}


class Nothing:
    """Values are nothing at all."""

    def const(self, type: Type, x: float) -> None: ...
    def integer(self, op: str, type: Type, a: Any, b: Any) -> None: ...
    def bits(self, op: str, type: Type, a: Any) -> None: ...
    def floating(self, op: str, type: Type, rounding: str, *args: Any) -> None: ...
    def compare(self, op: str, type: Type, a: Any, b: Any) -> None: ...
    def select(self, type: Type, condition: Any, a: Any, b: Any) -> None: ...
    def cast(self, op: str, source: Type, target: Type, a: Any, rounding: str) -> None: ...
    def round(self, mode: str, type: Type, a: Any) -> None: ...
    def lookup(self, type: Type, table: tuple[int, ...], index: Any) -> None: ...


class Carry:
    """The port `cc`."""

    def __init__(self) -> None:
        self.carry = Value(Nothing(), pred, None)


def checkable(instruction: Instruction) -> bool:
    """Is it a function of single values (and the carry), with a meaning?"""
    plain = all(not o.items and not o.address and not o.group for f in instruction.forms for o in f.operands)
    scalar = not any({"split", "any", "label"} & spec.marks for spec in instruction.types.values())
    return instruction.executes and not instruction.effects - STUBBED and plain and scalar


def with_registers(i: Decoded) -> Decoded:
    """The same, with a register of the declared type for each operand that must be there."""
    shapes = {o.name: Shape("register", i.type_of(o.name)) for o in i.form.operands if not o.optional}
    return Decoded(i.of, i.form, i.bound, shapes)


def arguments(i: Decoded, operands: set[str]) -> list[Any]:
    """A value of the declared type for each operand of the form, None for those of other forms, and the ports."""
    made: list[Any] = []
    for name in i.of.parameters:
        type = i.type_of(name) if name in operands else None
        made.append(Carry() if name in PORTS else None if type is None else Value(Nothing(), type, None))
    return made


def misfits(i: Decoded) -> list[str]:
    """Where a result is not what the destination takes."""
    operands = {n for o in i.form.operands for n in o.names}
    results = i.of.meaning(i, *arguments(i, operands))
    results = results if isinstance(results, tuple) else (results,)
    wrong = []
    for name, result in zip(i.destinations(), results, strict=False):
        wanted = i.type_of(name)
        if not isinstance(result, Value) or wanted is None:
            wrong.append(f"{i.mnemonic}: {name} is {result}")
        elif result.type.bits != wanted.bits or (pred in (result.type, wanted) and result.type is not wanted):
            wrong.append(f"{i.mnemonic}: {name} is {result.type}, not {wanted}")
    if len(results) < sum(not o.second_optional for o in i.form.operands if o.name in i.destinations()):
        wrong.append(f"{i.mnemonic}: too few results")
    return wrong


def name(instruction: Instruction) -> str:
    """`integer.add`."""
    return f"{instruction.family}.{instruction.name}"


@pytest.mark.parametrize("instruction", [i for i in ISA.instructions if checkable(i)], ids=name)
def test_results_fit_their_destinations(instruction: Instruction) -> None:
    """Every legal variant of the instruction has results of the sizes and sorts that it declares."""
    legal = [i for i in map(with_registers, instruction.variants()) if not i.problems()]
    assert [said for i in legal for said in misfits(i)] == []


def test_there_are_enough() -> None:
    """The check did not lose the catalog."""
    assert sum(checkable(instruction) for instruction in ISA.instructions) > 100

"""Rewriting: instructions of a kernel replaced by others of the ISA that do the same, before they are translated."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Body, Bound, Function
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.shapes import constant, shape_of
from ptxvm.analysis.validate import recogniser
from ptxvm.syntax import tree


def copied(bound: Bound, scope: NameScope | None = None) -> Bound:
    """A copy of an instruction that can be changed; in another scope, if one is given."""
    made = copy(bound)
    made.reads_and_writes = made.named = made.special_registers = made._operands = None  # noqa: SLF001 - of a copy
    made.scope = bound.scope if scope is None else scope
    return made


def with_code(function: Function, code: list[Bound]) -> Function:
    """A function with other instructions in the places of its own."""
    made = copy(function)
    made.take(Body(code, function.labels, function.variables))
    return made


def becomes_move(bound: Bound, type: Type, operands: Sequence[tree.Operand]) -> bool:
    """Make a copied instruction move one operand to another; False if the ISA has no such move."""
    return becomes(bound, "mov", (type.name,), operands)


def becomes(bound: Bound, opcode: str, words: tuple[str, ...], operands: Sequence[tree.Operand]) -> bool:
    """Make a copied instruction another one; False if the ISA has no such instruction."""
    program = bound.program
    if program is None:
        return False
    shapes = tuple(shape_of(operand, bound.scope) for operand in operands)
    known = recogniser(program.version, program.target, program.target_options)
    verdict = known.recognise(opcode, words, shapes, tuple(map(constant, operands)))
    if verdict.decoded is None or verdict.problems or verdict.undeclared:
        return False
    node = bound.node = copy(bound.node)
    node.opcode, node.words, node.operands = opcode, words, list(operands)
    bound.decoded, bound.places = verdict.decoded, verdict.at
    return True

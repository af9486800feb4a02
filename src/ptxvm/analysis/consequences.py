"""What else ptxas says of an instruction with undeclared names: it looks for these last, and until then they have no type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from ptxvm.analysis.calls import undeclared_arguments
from ptxvm.analysis.naming import goes, strange_component, unknown_symbol
from ptxvm.analysis.program import Bound
from ptxvm.analysis.shapes import names_in, shape_of
from ptxvm.isa.model import Problem
from ptxvm.isa.operand_types import BITS, sort_of, stand_apart
from ptxvm.isa.special_registers import lookup
from ptxvm.syntax import tree

NO_TYPE = "no type"
NO_PREDICATE = "Predicate expression expected"
OF_OPERATORS = {"-": "Illegal argument to unary minus", "!": "Illegal argument to predicate negation"}
MISMATCH, ILLEGAL = "Arguments mismatch for instruction", "Illegal operand type to instruction"


def consequences(bound: Bound) -> tuple[str, ...]:
    """The messages in their order: of elements of vectors and of calls, and then one of the instruction."""
    said = [message for operand in bound.node.operands for message in of_operand(operand, bound)]
    said += undeclared_arguments(bound) if bound.calls else []
    opcode = bound.decoded.opcode if bound.decoded is not None else bound.node.opcode
    whole = [f"{message} '{opcode}'" for message in (MISMATCH, ILLEGAL) if message in said]
    return (*(message for message in said if message not in {MISMATCH, ILLEGAL}), *whole[:1])


def of_operand(operand: tree.Operand, bound: Bound) -> Iterator[str]:
    """The messages about an operand; those about the whole instruction without its name."""
    items = operand.items if isinstance(operand, tree.Address) else [operand]
    for item in items:
        if isinstance(item, tree.Vector):
            yield from of_vector(item, bound)
    if isinstance(operand, tree.Vector) or not is_unknown(items[0], bound):
        return
    if isinstance(operand, tree.Address):
        yield ILLEGAL if len(items) == 1 else MISMATCH
    elif isinstance(operand, tree.Name) and goes(operand, bound, "function"):
        yield f"Call to '{operand.text}' requires call prototype"
    elif isinstance(operand, tree.Name | tree.Pair) and not goes(operand, bound, "label"):
        yield MISMATCH


def of_vector(vector: tree.Vector, bound: Bound) -> Iterator[str]:
    """The messages about the elements of a vector: where none has a type, it has none either."""
    unknown = [each for each in vector.items if is_unknown(each, bound)]
    for each in unknown:
        yield f"Illegal expression '{' '.join(name.text for name in names_in(each))}'"
    for _ in range(stand_apart([sort_of_element(each, bound) for each in vector.items]) if unknown else 0):
        yield f"Vector with elements of different types are not allowed in {bound.node.opcode} instruction"
    if unknown and len(unknown) == len(vector.items):
        yield "Unable to infer type of vector elements (assuming .b8)"
        yield MISMATCH


def sort_of_element(element: tree.Operand, bound: Bound) -> str:
    """The sort of an element of a vector; one whose name is not declared has none that goes with others."""
    shape = shape_of(element, bound.scope)
    if shape.type is None:
        return NO_TYPE if is_unknown(element, bound) else BITS
    return sort_of(shape)


def is_unknown(operand: tree.Operand, bound: Bound) -> bool:
    """Has an operand a name that is not declared?"""
    return any(name.component is None and shape_of(name, bound.scope).kind == "unknown" for name in names_in(operand))


# ── of an instruction whose head is wrong ───────────────────────────────────────────────


def besides_head(problem: Problem, bound: Bound, *, guarded: bool) -> Problem:
    """A wrong head with what ptxas says of the operands: of names before it, and of undeclared ones after it.

    Of an unknown instruction the guard is looked at here.
    """
    head = [problem.ptxas or problem.message, *problem.consequence.splitlines()]
    known = len([*takewhile(lambda line: line.startswith("Unknown modifier"), head)])
    guard = [bound.node.guard.name] if bound.node.guard is not None and guarded else []
    names = [*guard, *(name for operand in bound.node.operands for name in names_in(operand))]
    undeclared = [name for name in names if bound.scope.find(name.text) is None and lookup(name.text) is None]
    symbols = [unknown_symbol(name) for name in undeclared if not bound.scope.declares_later(name.text)]
    wrong = [NO_PREDICATE for name in guard if name in undeclared]
    wrong += [line for operand in bound.node.operands for line in while_reading(operand, bound)]
    first, *others = [*head[:known], *wrong, *head[known:], *symbols]
    return replace(problem, ptxas=first, consequence="\n".join(others))


def while_reading(operand: tree.Operand, bound: Bound) -> Iterator[str]:
    """What ptxas says of an operand before it looks for the instruction: no name that is not declared has any form."""
    match operand:
        case tree.Name(component=str(component)) if shape_of(operand, bound.scope).kind == "unknown":
            yield from strange_component(operand.text, component, bound.scope)
        case tree.Vector():
            yield from (f"Illegal expression '{each.text}'" for each in operand.items
                        if isinstance(each, tree.Name) and is_unknown(each, bound))  # fmt: skip
        case tree.Unary() if is_unknown(operand, bound):
            yield from filter(None, [OF_OPERATORS.get(operand.op)])
        case tree.Index() if is_unknown(operand, bound):
            yield "Array indexing on non-array"


__all__ = ["besides_head", "consequences"]

"""Inference of address spaces: generic accesses whose address is surely of local memory become `.local` ones.

A compiler that does not optimise (`nvcc -G`) makes generic addresses of a thread's variables by `cvta.local` (PTX 9.7.9.20) and
accesses them by these, so that each lane would have to have its local memory in one piece (`memory.interleaved_local`).  Where
such addresses go nowhere but into accesses and sums, they are as good as offsets in local memory: the conversions become moves,
and the accesses are of local memory.  Their offsets have 64 bits, of which local memory uses 32: the others are zeros where an
address is right, and are to be looked at (`became_local`).  Where one is stored, passed, compared, or joined with another
address, the function stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.divergence import registers_of
from ptxvm.analysis.flow import bit_of, named, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.engine.jit.cfg.rewriting import becomes, becomes_move, copied, with_code
from ptxvm.isa.summary import origins
from ptxvm.syntax import tree


def in_local_space(function: Function) -> Function:
    """The function with such accesses in local memory; itself where there are none, or a generic address goes elsewhere."""
    pointers = _pointers(function)
    if not pointers:
        return function
    code: list[Bound] = []
    for bound in function.instructions:
        made = _rewritten(bound, pointers) if _concerns(bound, pointers) else bound
        if made is None:
            return function
        code.append(made)
    return with_code(function, code)


def became_local(declared: Function, made: Function) -> Iterator[Bound]:
    """The accesses of a function that are of local memory, and were by generic addresses as it was declared."""
    for bound, new in zip(declared.instructions, made.instructions, strict=True):
        if new is not bound and _spaces(bound) == {Space.GENERIC} and _spaces(new) == {Space.LOCAL}:
            yield new


def _spaces(bound: Bound) -> set[Space]:
    return {access.space for access in bound.summary.accesses}


# ── which registers hold generic addresses of local memory ──────────────────────────────


def _pointers(function: Function) -> int:
    """The registers that may hold one, as bits; 0 where one goes where it cannot be followed."""
    found, before = 0, -1
    while found != before:
        before = found
        for bound in function.instructions:
            for register in _makes(bound, found):
                if register.of_module or register.count > 1:
                    return 0
                found |= bit_of(register)
    results = (each for each in function.signature.results if isinstance(each, Register))
    return 0 if any(found & bit_of(each) for each in results) else found


def _makes(bound: Bound, pointers: int) -> Iterator[Register]:
    """The registers into which an instruction puts such an address."""
    i = bound.i
    if bound.summary.generic_of is Space.LOCAL:
        yield from registers_of(bound.operands.get(i.destinations()[0]), bound)
    elif not i.of.effects and pointers & named(bound)[0]:
        operands = _operands(bound, pointers)
        for name, origin in zip(i.destinations(), origins(i), strict=False):
            if origin.operands & operands:
                yield from registers_of(bound.operands.get(name), bound)


def _operands(bound: Bound, pointers: int) -> set[str]:
    """The names of the operands that such an address may stand in."""
    every = ((name, node) for name, node in bound.operands.items() if name in bound.i.of.sources)
    return {name for name, node in every if any(pointers & bit_of(each) for each in registers_in(node, bound))}


# ── the function without them ───────────────────────────────────────────────────────────


def _concerns(bound: Bound, pointers: int) -> bool:
    reads, writes = named(bound)
    return bound.summary.generic_of is Space.LOCAL or bool(pointers & (reads | writes))


def _rewritten(bound: Bound, pointers: int) -> Bound | None:
    """An instruction that makes or uses such an address, with that of local memory instead; None where that is not the same."""
    if bound.calls:
        return None
    if bound.summary.accesses:
        return _local_access(bound, pointers)
    if bound.summary.generic_of is Space.LOCAL:
        return _move(bound, pointers)
    return bound if _follows(bound, pointers) else None


def _follows(bound: Bound, pointers: int) -> bool:
    """Does an instruction only compute addresses of local memory from one, by adding numbers and clearing low bits?"""
    i, (_, writes) = bound.i, named(bound)
    operands, made = _operands(bound, pointers), i.destinations()
    nodes = [bound.operands.get(name) for name in (*operands, *made)]
    whole = all(isinstance(node, tree.Name) and node.component is None for node in nodes)
    whole &= len({*map(i.type_of, (*operands, *made))}) == 1
    if i.of.effects or not operands or pointers & writes != writes or not whole:
        return False
    if i.of.rearranges:
        return len(i.of.passed) == 1
    found = origins(i)
    if len(operands) == 1:
        return all(operands <= each.operands and not each.chosen for each in found)
    return all(each.chosen and each.operands <= operands for each in found)


def _move(bound: Bound, pointers: int) -> Bound | None:
    """The move that a conversion becomes."""
    made, (target, source) = copied(bound), bound.node.operands
    generic = any(pointers & bit_of(each) for each in registers_in(source, bound))
    type = bound.i.type_of(bound.i.destinations()[0])
    return made if not generic and type is not None and becomes_move(made, type, (target, source)) else None


def _local_access(bound: Bound, pointers: int) -> Bound | None:
    """The access of local memory that one by a generic address becomes."""
    match bound.summary.accesses:
        case [access] if access.space is Space.GENERIC and bound.i.of.effects == {"mem"}:
            pass
        case _:
            return None
    places = [operand for operand in bound.node.operands if isinstance(operand, tree.Address)]
    others = [operand for operand in bound.node.operands if not isinstance(operand, tree.Address)]
    if len(places) != 1 or any(pointers & bit_of(each) for operand in others for each in registers_in(operand, bound)):
        return None  # the address itself is stored, or loaded into a register of such addresses
    made, words = copied(bound), bound.node.words
    for place in range(len(words) + 1):
        if becomes(made, bound.node.opcode, (*words[:place], Space.LOCAL.value, *words[place:]), bound.node.operands):
            return made
    return None

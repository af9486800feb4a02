"""Registers that may be read before they are written, whose value is undefined then.

The analysis goes forward over the segments of a function; what a guard lets some lanes write counts as not written, so what
it finds *may* be unset.  Who watches follows those registers, and tells which are.  A `mov` reads nothing: it passes on what
is undefined, for compilers write one where a value does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxvm.analysis.flow import Segment, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.syntax import tree

PASSING = frozenset({"mov", "call"})  # what an argument is worth, the callee finds out


@dataclass(frozen=True, slots=True)
class Use:
    """What an instruction does with the registers of its function: reads them, writes them, or passes them on."""

    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    passes: tuple[Register, ...] = ()
    guards: tuple[Register, ...] = ()  # read by all lanes, those too that do nothing else


def use(bound: Bound) -> Use:
    """The registers of an instruction."""
    reads: list[Register] = []
    writes: list[Register] = []
    destinations = {*bound.i.destinations(), "ret"} if bound.node.opcode == "call" else set(bound.i.destinations())
    for name, node in bound.operands.items():
        found = [each for each in registers_in(node, bound) if single(each)]
        written = name in destinations and not isinstance(node, tree.Address)
        (writes if written else reads).extend(found)
    guard = bound.guard()
    guards = (guard[0],) if guard is not None and single(guard[0]) else ()
    if bound.node.opcode in PASSING:
        return Use((), tuple(writes), tuple(reads), guards)
    return Use(tuple(reads), tuple(writes), (), guards)


def single(register: Register) -> bool:
    """Is it followed?  Vectors, which are written by elements, and registers of the module are not."""
    return register.count == 1 and not register.of_module


def may_be_unset(function: Function, segments: list[Segment]) -> frozenset[Register]:
    """The registers to follow; none where no instruction can read one that is unset."""
    if any(0 in segment.successors for segment in segments):
        return frozenset()  # the beginning of the function is in a loop
    given = {each for each in function.signature.parameters if isinstance(each, Register)}
    start = frozenset(each for each in function.registers if single(each) and each not in given)
    if not start:
        return frozenset()
    entry: list[frozenset[Register]] = [frozenset()] * len(segments)
    entry[0] = start
    work = [0]
    seen = {0}
    while work:
        n = work.pop()
        leaving = after(function, segments[n], entry[n])
        for successor in segments[n].successors:
            if successor not in seen or not leaving <= entry[successor]:
                seen.add(successor)
                entry[successor] |= leaving
                work.append(successor)
    found = [each for n in seen for each in met(function, segments[n], entry[n])]
    if not any(certain for _, certain in found):
        return frozenset()
    return frozenset(register for register, _ in found)


def after(function: Function, segment: Segment, unset: frozenset[Register]) -> frozenset[Register]:
    """What may be unset at the end of a segment."""
    left = set(unset)
    for bound in function.instructions[segment.start : segment.end]:
        step(bound, left)
    return frozenset(left)


def step(bound: Bound, unset: set[Register]) -> Use:
    """Past one instruction."""
    used = use(bound)
    passed_on = any(each in unset for each in used.passes) and bound.node.opcode != "call"
    if passed_on:
        unset.update(used.writes)
    elif bound.node.guard is None:
        unset.difference_update(used.writes)
    return used


def met(function: Function, segment: Segment, unset: frozenset[Register]) -> Iterator[tuple[Register, bool]]:
    """The registers that may be unset where they are read, which is certain, or passed on; with what they become."""
    left = set(unset)
    for bound in function.instructions[segment.start : segment.end]:
        before = set(left)
        used = step(bound, left)
        yield from ((each, True) for each in (*used.reads, *used.guards) if each in before)
        passed = [each for each in used.passes if each in before]
        yield from ((each, False) for each in passed)
        if passed:
            yield from ((each, False) for each in used.writes)

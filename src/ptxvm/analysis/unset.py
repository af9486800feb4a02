"""Undefined values: registers that may be read before they are written, and what is computed from them.

This is a forward data-flow analysis over the segments of a function.  A guarded write counts as none, so the result *may* be
undefined; a checked launch follows these registers.  Compilers compute on undefined values, and throw the results away, so
an instruction that only computes hands them on to its results, as `shfl` does with what a lane gives to another one.
They are *observed* where an instruction does something with them that reaches beyond registers (`observes`).
With `memory`, values from the stack, from shared memory, from arguments and from results may be undefined too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import Segment, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.syntax import tree

STACK = frozenset({Space.PARAM, Space.LOCAL})
SHARED = frozenset({Space.SHARED, Space.GENERIC})


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """The registers of its function that an instruction reads, writes, or passes on."""

    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    passes: tuple[Register, ...] = ()
    updates: tuple[Register, ...] = ()  # those that it writes, and reads first where a predicate allows it
    guards: tuple[Register, ...] = ()  # all lanes read a guard, inactive ones too


def use(bound: Bound) -> RegisterUse:
    """The registers of an instruction."""
    reads: list[Register] = []
    writes: list[Register] = []
    passes: list[Register] = []
    updates: list[Register] = []
    for name, node in bound.operands.items():
        found = [each for each in registers_in(node, bound) if single(each)]
        written = name in bound.written and not isinstance(node, tree.Address)
        (writes if written else passes if name in bound.i.of.passed else reads).extend(found)
        if name in bound.i.of.updates:
            updates.extend(found)
    guard = bound.guard()
    guards = (guard[0],) if guard is not None and single(guard[0]) else ()
    if bound.calls or stores_parameter(bound):
        return RegisterUse((), tuple(writes), tuple(reads), guards=guards)
    return RegisterUse(tuple(reads), tuple(writes), tuple(passes), tuple(updates), guards)


def observes(bound: Bound) -> bool:
    """Does the instruction do more than compute: does what it reads reach memory, other threads, or the control flow?"""
    effects = bound.i.of.effects - {"cc"}
    return bool(effects - {"mem"}) or (bool(effects) and bool(bound.summary.accesses))


def stores_parameter(bound: Bound) -> bool:
    """Does the instruction store an argument or a result?  The callee or the caller will read it."""
    return any(access.window is Space.PARAM for access in bound.summary.having(Verb.WRITE))


def passes_memory(bound: Bound) -> bool:
    """Can the instruction load an undefined value: from the stack, from shared memory, or by a generic address?

    Kernel parameters are defined.
    """
    windows = {access.window for access in bound.summary.having(Verb.READ)}
    return not windows.isdisjoint(SHARED) or (not windows.isdisjoint(STACK) and not kernel_parameter(bound))


def kernel_parameter(bound: Bound) -> bool:
    """Does the instruction name a parameter of a kernel, which the host has set?"""
    function = bound.function
    if function is None or not function.entry:
        return False
    names = [name.text for node in bound.operands.values() for name in names_in(node)]
    return not {bound.scope.find(name) for name in names}.isdisjoint(function.signature.parameters)


def single(register: Register) -> bool:
    """Is the register followed?  Vectors, written by elements, and registers of the module are not."""
    return register.count == 1 and not register.of_module


def may_be_unset(function: Function, segments: list[Segment], *, memory: bool = False) -> frozenset[Register]:
    """The registers to follow; none if no instruction can observe an undefined value, or pass one to another function."""
    defined = set() if memory else {each for each in function.signature.parameters if isinstance(each, Register)}
    start = frozenset(each for each in function.registers if single(each) and each not in defined)
    entry = unset_at_entries(function, segments, start, memory=memory)
    found = [each for n, unset in entry.items() for each in uses_of_unset(function, segments[n], unset, memory=memory)]
    if not any(certain for _, certain in found):
        return frozenset()
    return frozenset(register for register, _ in found)


def unset_by_instruction(function: Function, segments: list[Segment]) -> dict[Bound, frozenset[Register]]:
    """The registers of a kernel that may be undefined where an instruction reads them; none where no value is observed."""
    start, found = frozenset(filter(single, function.registers)), dict[Bound, frozenset[Register]]()
    for n, entry in unset_at_entries(function, segments, start).items():
        left = set(entry)
        for bound in function.instructions[segments[n].start : segments[n].end]:
            used = use(bound)
            if unset := left.intersection((*used.reads, *used.guards, *used.passes, *used.updates)):
                found[bound] = frozenset(unset)
            step(bound, left, memory=False)
    return found if any(map(observes, found)) else {}


def unset_at_entries(
    function: Function, segments: list[Segment], start: frozenset[Register], *, memory: bool = False
) -> dict[int, frozenset[Register]]:
    """The registers that may be unset at the beginning of each segment that can be reached; `start` are those of the first."""
    entry = {0: start} if start else {}
    work = list(entry)
    while work:
        n = work.pop()
        leaving = after(function, segments[n], entry[n], memory=memory)
        for successor in segments[n].successors:
            if successor not in entry or not leaving <= entry[successor]:
                entry[successor] = entry.get(successor, frozenset()) | leaving
                work.append(successor)
    return entry


def after(function: Function, segment: Segment, unset: frozenset[Register], *, memory: bool) -> frozenset[Register]:
    """The registers that may be unset at the end of a segment."""
    left = set(unset)
    for bound in function.instructions[segment.start : segment.end]:
        step(bound, left, memory=memory)
    return frozenset(left)


def step(bound: Bound, unset: set[Register], *, memory: bool) -> RegisterUse:
    """Apply one instruction to the set of registers that may be undefined."""
    used = use(bound)
    taken = used.passes if observes(bound) and not memory else (*used.passes, *used.reads, *used.guards)
    handed_on = any(each in unset for each in taken) and not bound.calls
    if handed_on or (memory and (bound.calls or passes_memory(bound))):
        unset.update(used.writes)
    elif bound.node.guard is None:
        unset.difference_update(used.writes)
    return used


def uses_of_unset(
    function: Function, segment: Segment, unset: frozenset[Register], *, memory: bool
) -> Iterator[tuple[Register, bool]]:
    """The registers that may be undefined where an instruction reads them, or after its writes; is that value observed?

    An argument or a result counts as observed: the other function may do so.
    """
    left = set(unset)
    for bound in function.instructions[segment.start : segment.end]:
        before = set(left)
        used = step(bound, left, memory=memory)
        observed = observes(bound)
        yield from ((each, observed) for each in (*used.reads, *used.guards, *used.updates) if each in before)
        away = bound.calls or stores_parameter(bound)
        yield from ((each, away) for each in used.passes if each in before)
        yield from ((each, False) for each in used.writes if each in left)
    if not segment.successors:
        yield from ((each, True) for each in function.signature.results if each in left and isinstance(each, Register))

"""Spin loops: loops that wait for a write of another thread.  A kernel that has one needs a fair scheduler.

Such a loop polls with an atomic or a strong load, whose value may pass through memory; or it cannot end by itself.  It cannot
where a weak load of one address decides every exit, the loop does not store there, and no exit depends on a register that an
iteration computes from the one before (`for (i = 0; i < *n; i++)` ends by its `i`).  A call
polls if the function that it calls does; it loads weakly if that function loads and changes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from weakref import WeakKeyDictionary

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import bit_of, bits, reads_and_writes, segments, special_registers, successors, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.call_targets import called, callees
from ptxvm.engine.data_flow import data_flow, dependent, read, written
from ptxvm.engine.loops import Loop, loops
from ptxvm.isa.effects import Access, Verb
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

FOUND: WeakKeyDictionary[Image, dict[Function, frozenset[Bound]]] = WeakKeyDictionary()  # the answers for kernels
INNERMOST: WeakKeyDictionary[Image, dict[Function, frozenset[Bound]]] = WeakKeyDictionary()
STEADY = frozenset({Space.PARAM, Space.CONST, Space.TEXTURE})  # spaces that no thread writes while the kernel runs
PRIVATE = STEADY | {Space.LOCAL}


@dataclass(frozen=True, slots=True)
class PollingCalls:
    """The calls of a function that poll with strong accesses, and those that load weakly."""

    polling: frozenset[Bound] = frozenset()
    loading: frozenset[Bound] = frozenset()


def spins(image: Image, kernel: Function) -> frozenset[Bound]:
    """The branches at the ends of spin loops.

    Each version of a kernel asks, so the answer is remembered.
    """
    found = FOUND.setdefault(image, {})
    if kernel not in found:
        found[kernel] = _find(image, kernel)
    return found[kernel]


def innermost(image: Image, kernel: Function) -> frozenset[Bound]:
    """Of the branches at the ends of spin loops those around which no other one goes back: where threads wait.

    Profiles ask for it after each launch, so the answer is remembered.
    """
    found = INNERMOST.setdefault(image, {})
    if kernel not in found:
        ends = spins(image, kernel)
        found[kernel] = frozenset(chain.from_iterable(_innermost(f.instructions, ends) for f in called(image, kernel) if ends))
    return found[kernel]


def _innermost(code: list[Bound], ends: frozenset[Bound]) -> Iterator[Bound]:
    spinning = [each for each in loops(code) if code[each[1]] in ends]
    for first, last in spinning:
        if not any(first <= begin and end < last for begin, end in spinning):
            yield code[last]


def _find(image: Image, kernel: Function) -> frozenset[Bound]:
    found: set[Bound] = set()
    functions = list(called(image, kernel))
    calls = {each: {b: callees(image, b) for b in each.instructions if b.calls} for each in functions}
    polling, loading, changing = (_reaching(calls, does) for does in (_polls, _loads_weakly, _writes_shared))
    for function in functions:
        own = calls[function].items()
        polls = frozenset(b for b, inner in own if not polling.isdisjoint(inner))
        loads = frozenset(b for b, inner in own if not loading.isdisjoint(inner) and changing.isdisjoint(inner))
        found |= _spin_branches(function, PollingCalls(polls, loads))
    return frozenset(found)


def _reaching(calls: dict[Function, dict[Bound, list[Function]]], does: Callable[[Bound], bool]) -> set[Function]:
    """The functions with an instruction of some kind, and those that call such functions."""
    callers: dict[Function, list[Function]] = {}
    for caller, inner in calls.items():
        for callee in {callee for each in inner.values() for callee in each}:
            callers.setdefault(callee, []).append(caller)
    work = [function for function in calls if any(does(bound) for bound in function.instructions)]
    found = set(work)
    while work:
        more = set(callers.get(work.pop(), ())) - found
        found |= more
        work += more
    return found


def _spin_branches(function: Function, calls: PollingCalls) -> set[Bound]:
    """The branches at the ends of spin loops in a function."""
    code = function.instructions
    found = loops(code)
    return _polling_loops(code, found, calls) | _weak_loops(function, found, calls)


# ── loops that poll ─────────────────────────────────────────────────────────────────────


def _polling_loops(code: list[Bound], loops: list[Loop], calls: PollingCalls) -> set[Bound]:
    """The ends of loops with an atomic or strong load in which a branch depends on such a load."""
    found: set[Bound] = set()
    polled = written(b for b in code if _polls(b) or b in calls.polling)
    if not polled:
        return found
    flows = data_flow(code)
    always = polled | dependent(flows, polled)
    for first, last in loops:
        inside = code[first : last + 1]
        if not any(_polls(b) or b in calls.polling for b in inside):
            continue
        passed = _passed_on(inside)
        tainted = always | passed | dependent(flows, passed)
        for bound in inside:
            guard = bound.guard()
            if guard is not None and "flow" in bound.i.of.effects and tainted & bit_of(guard[0]):
                found.add(code[last])
    return found


def _passed_on(inside: list[Bound]) -> int:
    """The registers that a loop loads after it has stored the value of a strong load: one thread polls for its CTA."""
    polled = written(b for b in inside if any(access.strong for access in b.summary.having(Verb.READ)))
    polled |= dependent(data_flow(inside), polled)
    stores = any(_writes(bound) and read(bound) & polled for bound in inside)
    return written(bound for bound in inside if _loads_weakly(bound)) if stores else 0


def _polls(bound: Bound) -> bool:
    """Does it read with an atomic or a strong load?"""
    found = bound.summary
    return bool(bound.i.destinations()) and any(access.strong for access in found.having(Verb.READ, Verb.UPDATE))


# ── loops on a weak load ────────────────────────────────────────────────────────────────


def _weak_loops(function: Function, loops: list[Loop], calls: PollingCalls) -> set[Bound]:
    """The ends of loops that end only by another thread's store to an address that they load weakly."""
    found: set[Bound] = set()
    code = function.instructions
    if not any(_loads_weakly(b) or b in calls.loading for first, last in loops for b in code[first : last + 1]):
        return found
    before: list[list[int]] = [[] for _ in code]
    for n, bound in enumerate(code):
        for after in successors(function, bound, n + 1):
            before[after].append(n)
    live = {each.start: each.live_in for each in segments(function)}
    for first, last in loops:
        body = _body(first, last, before)
        inside = [code[n] for n in sorted(body)]
        exits = [code[n] for n in sorted(body) if _leaves(function, n, body)]
        if _weak_load_decides(inside, exits, live[first], calls.loading):
            found.add(code[last])
    return found


def _body(first: int, last: int, before: list[list[int]]) -> set[int]:
    """The body of a natural loop: the code from which the branch at its end is reached without passing its beginning."""
    found, work = {first, last}, [last]
    while work:
        at = work.pop()
        if at != first:
            new = [n for n in before[at] if n not in found]
            found.update(new)
            work += new
    return found


def _leaves(function: Function, n: int, body: set[int]) -> bool:
    """Can control leave the loop at an instruction?"""
    bound = function.instructions[n]
    ends = bound.i.of.ends and not targets(bound)
    return ends or any(after not in body for after in successors(function, bound, n + 1))


def _weak_load_decides(inside: list[Bound], exits: list[Bound], live: int, calls: frozenset[Bound]) -> bool:
    """Does a weak load decide an exit of a loop, and does no exit depend on state that the loop changes?

    `live` are the registers that are live before the loop; `calls` are the calls that load weakly.  A loop with any other
    call is none.
    """
    if any(bound.calls and bound not in calls for bound in inside):
        return False
    stored = [bound.operands.get("a") for bound in inside if _writes(bound)]
    loads = [bound for bound in inside if bound in calls or (_loads_weakly(bound) and bound.operands.get("a") not in stored)]
    if not loads:
        return False
    flows, seen = data_flow(inside), written(loads)
    seen |= dependent(flows, seen)
    if not any(_deciding(bound) & seen for bound in exits):
        return False
    changed = written(b for b in inside if _reads_clock(b) or (b not in loads and not _relaunches(b, stored)))
    for register in bits(live & written(inside)):  # computed from its value in the iteration before
        if dependent(flows, register) & register:
            changed |= register
    changed |= dependent(flows, changed)
    return not any(_deciding(bound) & changed for bound in exits)


def _loads_weakly(bound: Bound) -> bool:
    """Does it load memory or a surface that other threads may write?"""
    return any(_shared(access) for access in bound.summary.having(Verb.READ, Verb.UPDATE)) and bool(bound.i.destinations())


def _writes(bound: Bound) -> bool:
    """Does it write memory or a surface?"""
    return bound.summary.writes


def _writes_shared(bound: Bound) -> bool:
    """Does it write memory that other threads can read?"""
    return any(_shared(access) for access in bound.summary.having(Verb.WRITE, Verb.UPDATE))


def _shared(access: Access) -> bool:
    """May other threads write there while the grid runs?"""
    return access.window not in PRIVATE and access.coherent


def _relaunches(bound: Bound, stored: list[tree.Operand | None]) -> bool:
    """Does it give the same result in each iteration, if its registers stay the same?"""
    if bound.summary.grows_stack:
        return False
    reads = bound.summary.having(Verb.READ, Verb.UPDATE)
    if any(access.verb is Verb.UPDATE for access in reads):
        return False
    moving = [access for access in reads if access.window not in STEADY and access.coherent]
    return not moving or (not stored and all(access.window is Space.LOCAL for access in moving))


def _reads_clock(bound: Bound) -> bool:
    """Does it read a clock?"""
    return any(register.volatile for register in special_registers(bound))


def _deciding(bound: Bound) -> int:
    """The registers that decide whether and where it jumps."""
    return reads_and_writes(bound)[0]

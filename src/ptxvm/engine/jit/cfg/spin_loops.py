"""Spin loops: loops that wait for what another thread writes.  A kernel that has one needs a fair scheduler.

Such a loop asks again and again with an atomic or a strong load; or it has no way to end by itself.  That is so where a
weak load, always of the same place, decides about every exit, together with nothing that the loop itself changes: neither
a register that one turn makes from what the turn before left (`for (i = 0; i < *n; i++)` ends by its `i`), nor the
loaded place.  A function asks for its callers, and looks for them where it changes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ptxvm.analysis.flow import bit_of, reads_and_writes, registers_in, segments, special_registers, successors, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.engine.jit.cfg.nodes import callees
from ptxvm.engine.jit.cfg.requirements import called
from ptxvm.isa.effects import Access, Verb
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

FOUND: WeakKeyDictionary[Image, dict[Function, Bound | None]] = WeakKeyDictionary()  # what was found of kernels
STEADY = frozenset({"param", "const", "texture"})  # spaces that no thread writes while the kernel runs
PRIVATE = STEADY | {"local"}


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a function that ask what others write, and those that only look."""

    asking: frozenset[Bound] = frozenset()
    looking: frozenset[Bound] = frozenset()


def spins(image: Image, kernel: Function) -> Bound | None:
    """A branch of a loop that depends on what others write to memory while it runs: it needs a fair scheduler.

    Each version of a kernel asks.
    """
    found = FOUND.setdefault(image, {})
    if kernel not in found:
        found[kernel] = _search(image, kernel)
    return found[kernel]


def _search(image: Image, kernel: Function) -> Bound | None:
    functions = list(called(image, kernel))
    calls = {each: {b: callees(image, b) for b in each.instructions if b.calls} for each in functions}
    asking, looking, changing = (_reaching(calls, does) for does in (_watches, _looks, _changes))
    for function in functions:
        own = calls[function].items()
        asks = frozenset(b for b, inner in own if not asking.isdisjoint(inner))
        looks = frozenset(b for b, inner in own if not looking.isdisjoint(inner) and changing.isdisjoint(inner))
        if (found := _spinning(function, Calls(asks, looks))) is not None:
            return found
    return None


def _reaching(calls: dict[Function, dict[Bound, list[Function]]], does: Callable[[Bound], bool]) -> set[Function]:
    """The functions with an instruction that does something, and those that call such functions."""
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


def _spinning(function: Function, calls: Calls) -> Bound | None:
    """The first such branch of a function."""
    code = function.instructions
    loops = [(min(targets(b)), n) for n, b in enumerate(code) if targets(b) and min(targets(b)) <= n]
    return _asking(code, loops, calls) or _staring(function, loops, calls)


# ── loops that ask ──────────────────────────────────────────────────────────────────────


def _asking(code: list[Bound], loops: list[tuple[int, int]], calls: Calls) -> Bound | None:
    """A branch of a loop that reads with an atomic or a strong load, and depends on such a one."""
    asked = _written(b for b in code if _watches(b) or b in calls.asking)
    if not asked:
        return None
    tainted = asked | _made(_flows(code), asked)
    for first, last in loops:
        inside = code[first : last + 1]
        if not any(_watches(b) or b in calls.asking for b in inside):
            continue
        for bound in inside:
            guard = bound.guard()
            if guard is not None and "flow" in bound.i.of.effects and tainted & bit_of(guard[0]):
                return bound
    return None


def _watches(bound: Bound) -> bool:
    """Does it read what other threads may write meanwhile?"""
    found = bound.summary
    return bool(bound.i.destinations()) and any(access.strong for access in found.having(Verb.READ, Verb.UPDATE))


# ── loops that look at one place ────────────────────────────────────────────────────────


def _staring(function: Function, loops: list[tuple[int, int]], calls: Calls) -> Bound | None:
    """An exit of a loop that can end only by what others write to a place that it loads with a weak load."""
    code = function.instructions
    if not any(_looks(b) or b in calls.looking for first, last in loops for b in code[first : last + 1]):
        return None
    before: list[list[int]] = [[] for _ in code]
    for n, bound in enumerate(code):
        for after in successors(function, bound, n + 1):
            before[after].append(n)
    live = {each.start: each.live_in for each in segments(function)}
    for first, last in loops:
        body = _body(first, last, before)
        inside = [code[n] for n in sorted(body)]
        exits = [code[n] for n in sorted(body) if _leaves(function, n, body)]
        if (found := _decided(inside, exits, live[first], calls.looking)) is not None:
            return found
    return None


def _body(first: int, last: int, before: list[list[int]]) -> set[int]:
    """The instructions from which the branch at the end of a loop is reached without its beginning."""
    found, work = {first, last}, [last]
    while work:
        at = work.pop()
        if at != first:
            new = [n for n in before[at] if n not in found]
            found.update(new)
            work += new
    return found


def _leaves(function: Function, n: int, body: set[int]) -> bool:
    """Does control go from an instruction of a loop to somewhere else?"""
    bound = function.instructions[n]
    ends = bound.i.of.ends and not targets(bound)
    return ends or any(after not in body for after in successors(function, bound, n + 1))


def _decided(inside: list[Bound], exits: list[Bound], live: int, calls: frozenset[Bound]) -> Bound | None:
    """The exit of a loop that a look decides, where none depends on what the loop changes; `live` are registers before it.

    `calls` are those that look; what another one may change is not followed.
    """
    if any(bound.calls and bound not in calls for bound in inside):
        return None
    stored = [bound.operands.get("a") for bound in inside if _writes(bound)]
    looks = [bound for bound in inside if bound in calls or (_looks(bound) and bound.operands.get("a") not in stored)]
    if not looks:
        return None
    flows, seen = _flows(inside), _written(looks)
    seen |= _made(flows, seen)
    decided = next((bound for bound in exits if _asked(bound) & seen), None)
    if decided is None:
        return None
    changed = _written(b for b in inside if _moves(b) or (b not in looks and not _settled(b, stored)))
    for register in _bits(live & _written(inside)):  # what one turn makes from what the turn before left
        if _made(flows, register) & register:
            changed |= register
    changed |= _made(flows, changed)
    return None if any(_asked(bound) & changed for bound in exits) else decided


def _looks(bound: Bound) -> bool:
    """Does it read, weakly, what others may write: memory, or a surface?"""
    return any(_shared(access) for access in bound.summary.having(Verb.READ, Verb.UPDATE)) and bool(bound.i.destinations())


def _writes(bound: Bound) -> bool:
    """Does it write memory, or a surface?"""
    return bound.summary.writes


def _changes(bound: Bound) -> bool:
    """Does it write what is not the thread's own?"""
    return any(_shared(access) for access in bound.summary.having(Verb.WRITE, Verb.UPDATE))


def _shared(access: Access) -> bool:
    """May other threads write there while the grid runs?"""
    return access.window not in PRIVATE and access.proxy != "texture"


def _settled(bound: Bound, stored: list[tree.Operand | None]) -> bool:
    """Does it give the same in every turn, from the same registers?  Of memory that is what no thread writes."""
    if bound.summary.grows_stack:
        return False
    reads = bound.summary.having(Verb.READ, Verb.UPDATE)
    if any(access.verb is Verb.UPDATE for access in reads):
        return False
    moving = [access for access in reads if access.window not in STEADY and access.proxy != "texture"]
    return not moving or (not stored and all(access.window == "local" for access in moving))


def _moves(bound: Bound) -> bool:
    """Does it read a clock?"""
    return any(register.volatile for register in special_registers(bound))


def _asked(bound: Bound) -> int:
    """What decides whether and where it jumps."""
    return reads_and_writes(bound)[0]


# ── what comes from what ────────────────────────────────────────────────────────────────


def _flows(code: list[Bound]) -> list[tuple[int, int]]:
    """The registers that each instruction reads, and those that it writes; `.param` variables count as one register."""
    return [(_read(bound) | _passed(bound, reads=True), _defined(bound)) for bound in code]


def _read(bound: Bound) -> int:
    """The registers that an instruction reads; of a call not those that take its results."""
    found = reads_and_writes(bound)[0]
    results = sum({bit_of(result) for result in bound.results() if isinstance(result, Register)})
    arguments = sum(
        {bit_of(each) for name, node in bound.operands.items() if name != "ret" for each in registers_in(node, bound)}
    )
    return found & ~results | arguments if results else found


def _passed(bound: Bound, *, reads: bool) -> int:
    """The register for `.param` variables, which lies beyond the others, where an instruction reads or writes one."""
    verb = Verb.READ if reads else Verb.WRITE
    touches = bound.calls or any(access.window == "param" for access in bound.summary.having(verb))
    return 1 << len(bound.scope.registers) if touches else 0


def _made(flows: list[tuple[int, int]], seeds: int) -> int:
    """The registers that get something of others."""
    found, before = 0, -1
    while found != before:
        before = found
        for reads, writes in flows:
            if reads & (seeds | found):
                found |= writes
    return found


def _written(code: Iterable[Bound]) -> int:
    found = 0
    for bound in code:
        found |= _defined(bound)
    return found


def _defined(bound: Bound) -> int:
    """The registers that an instruction writes, perhaps only where its guard holds."""
    found = _passed(bound, reads=False)
    for result in bound.results():
        found |= bit_of(result) if isinstance(result, Register) else 0
    for name in bound.i.destinations():
        node = bound.operands.get(name)
        if node is not None and not isinstance(node, tree.Address):
            for register in registers_in(node, bound):
                found |= bit_of(register)
    return found


def _bits(mask: int) -> Iterable[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1

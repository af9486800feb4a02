"""Loops that wait for what another thread writes: a kernel that has one must starve nobody.

Such a loop asks again and again with an atomic or a strong load; or it has no way to end by itself.  That is so where a
weak load, always of the same place, decides about every exit, together with nothing that the loop itself changes: neither
a register that one turn makes from what the turn before left (`for (i = 0; i < *n; i++)` ends by its `i`), nor the
loaded place.  What a loop may change through a call is not followed: where it calls, its weak loads are taken to end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ptxvm.analysis.flow import bit_of, reads_and_writes, registers_in, segments, successors, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.engine.jit.needs import called
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

REMEMBERED = 64  # functions: each version of a kernel asks
STRONG = {"volatile", "relaxed", "acquire", "acq_rel", "mmio"}
STEADY = frozenset({"param", "const", "nc"})  # words of loads from what nobody writes while the kernel runs
PRIVATE = frozenset({"local", "param", "const", "nc"})
MOVING = ("%clock", "%globaltimer", "%pm")  # special registers that differ from turn to turn (PTX 10)


def spins(image: Image, kernel: Function) -> Bound | None:
    """A branch of a loop that depends on what others write to memory while it runs: nobody may starve there."""
    return next((bound for each in called(image, kernel) if (bound := _spinning(each)) is not None), None)


@lru_cache(REMEMBERED)
def _spinning(function: Function) -> Bound | None:
    """The first such branch of a function."""
    code = function.instructions
    loops = [(min(targets(b)), n) for n, b in enumerate(code) if targets(b) and min(targets(b)) <= n]
    return _asking(code, loops) or _staring(function, loops)


# ── loops that ask ──────────────────────────────────────────────────────────────────────


def _asking(code: list[Bound], loops: list[tuple[int, int]]) -> Bound | None:
    """A branch of a loop that reads with an atomic or a strong load, and depends on such a one."""
    asked = _written(b for b in code if _watches(b))
    if not asked:
        return None
    tainted = asked | _made(_flows(code), asked)
    for first, last in loops:
        inside = code[first : last + 1]
        if not any(_watches(b) for b in inside):
            continue
        for bound in inside:
            guard = bound.guard()
            if guard is not None and "flow" in bound.i.of.effects and tainted & bit_of(guard[0]):
                return bound
    return None


def _watches(bound: Bound) -> bool:
    """Does it read what other threads may write meanwhile?"""
    opcode, words = bound.node.opcode, set(bound.node.words)
    return opcode in ("atom", "mbarrier") or (opcode == "ld" and bool(words & STRONG))


# ── loops that look at one place ────────────────────────────────────────────────────────


def _staring(function: Function, loops: list[tuple[int, int]]) -> Bound | None:
    """An exit of a loop that can end only by what others write to a place that it loads with a weak load."""
    code = function.instructions
    if not any(_looks(b) for first, last in loops for b in code[first : last + 1]):
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
        if (found := _decided(inside, exits, live[first])) is not None:
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


def _decided(inside: list[Bound], exits: list[Bound], live: int) -> Bound | None:
    """The exit of a loop that a look decides, where none depends on what the loop changes; `live` are registers before it."""
    if any(bound.node.opcode == "call" for bound in inside):
        return None
    stored = [place for bound in inside if (place := _stored(bound)) is not None]
    looks = [bound for bound in inside if _looks(bound) and bound.operands["a"] not in stored]
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
    """Is it a weak load from where others may write?"""
    return bound.node.opcode == "ld" and not PRIVATE & _parts(bound)


def _settled(bound: Bound, stored: list[tree.Operand]) -> bool:
    """Does it give the same in every turn, from the same registers?  Of memory that is what nobody writes."""
    if "mem" not in bound.i.of.effects:
        return True
    if bound.node.opcode != "ld":
        return False
    return bool(STEADY & _parts(bound)) or ("local" in _parts(bound) and not stored)


def _parts(bound: Bound) -> set[str]:
    """The words of an instruction, a word with a part as `shared::cta` by its first one."""
    return {word.partition("::")[0] for word in bound.node.words}


def _stored(bound: Bound) -> tree.Operand | None:
    """The address that an instruction writes to."""
    return bound.operands.get("a") if bound.node.opcode in ("st", "red", "atom") else None


def _moves(bound: Bound) -> bool:
    """Does it read a clock?"""
    return any(name.text.startswith(MOVING) for node in bound.operands.values() for name in names_in(node))


def _asked(bound: Bound) -> int:
    """What decides whether and where it jumps."""
    return reads_and_writes(bound)[0]


# ── what comes from what ────────────────────────────────────────────────────────────────


def _flows(code: list[Bound]) -> list[tuple[int, int]]:
    """The registers that each instruction reads, and those that it writes."""
    return [(reads_and_writes(bound)[0], _defined(bound)) for bound in code]


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
    found = 0
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

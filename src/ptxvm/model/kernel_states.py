"""State-space exploration of a kernel for termination: like `litmus_states`, but the threads are automata.

A write replaces older writes that are morally strong with it, and those that a barrier orders before it; others stay readable.
Asynchronous copies complete at once: a thread that does not wait for a copy ends whether the copy is late or not.
Barriers open as the machine opens them: when all live threads have come, or as many as are expected (PTX 9.7.13.1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

from ptxvm.algebra.memory_order import Scope
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.single_thread import Meeting, Rendezvous, Stage, ThreadAccess
from ptxvm.model.automaton import Answer, Automaton, AutomatonState, ScriptCall, Transition, automata
from ptxvm.model.ending import Ending
from ptxvm.model.litmus_program import Location, Thread
from ptxvm.model.litmus_states import remains
from ptxvm.model.liveness import decided
from ptxvm.model.path_run import Locate, describe, text_of

STATES = 10_000
"""The most states that are visited."""
EFFORT = 5_000
"""The most answers that are replayed to the threads; every run of a thread replays all its answers."""

Cell = tuple[str, int, int]
"""Bytes of a variable that are always accessed together: the variable, the first byte, and the byte after the last."""
BarrierKey = tuple[int, int, str, int]
"""A barrier: the CTA, the warp (-1 for the whole CTA), the kind, and the number."""
WHOLE_CTA = -1
ReadableValue = tuple[int, int, Scope | None, frozenset[int]]
"""A readable value: its writer (-1: initial), the scope of the write, and the threads that are ordered after the write."""
ACTS = {"writes", "synchronizes", "arrives", "copies", "signals"}


class LimitExceeded(Exception):  # noqa: N818 - nothing is wrong
    """The exploration exceeds its limit."""


class PartialAccess(Exception):  # noqa: N818 - the exploration starts again with smaller cells
    """An access touches only a part of a cell."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True)
class ThreadState:
    """The state of a thread: at a state of its automaton, or before a call on the way there."""

    transition: Transition | None
    done: int
    state: AutomatonState

    @property
    def call(self) -> ScriptCall | None:
        """The next call or question; None at the end of the thread."""
        return self.transition.calls[self.done] if self.transition is not None else self.state.question

    @property
    def has_ended(self) -> bool:
        """Has the thread nothing left to do?"""
        return self.call is None and not self.state.loops_silently


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The threads that have come to a barrier, and the count that it expects, if it has one."""

    arrived: frozenset[int]
    count: int | None = None


@dataclass(frozen=True, slots=True)
class KernelState:
    """A state of the kernel: the state of each thread, the readable values of memory, and the threads that wait at barriers."""

    threads: tuple[ThreadState, ...]
    memory: tuple[tuple[Cell, frozenset[ReadableValue]], ...]
    waiting: frozenset[int] = frozenset()
    barriers: tuple[tuple[BarrierKey, Arrivals], ...] = ()


def ends(stage: Stage, threads: Sequence[Thread], locate: Locate, initial: Callable[[Location], int]) -> Ending:
    """Does a kernel terminate under every fair schedule?"""
    machine = KernelMachine(automata(stage, threads, locate, {}), threads, stage.shape.threads, locate, initial)
    while True:
        try:
            return decided(machine, STATES)
        except PartialAccess as cut:
            machine.cut(cut.location)
        except LimitExceeded as why:
            return Ending("unknown", (str(why),))


class KernelMachine:
    """The states of a kernel, and the steps between them."""

    def __init__(
        self, automata: Sequence[Automaton], threads: Sequence[Thread], cta_threads: int, locate: Locate,
        initial: Callable[[Location], int],
    ) -> None:  # fmt: skip
        self.automata, self.threads, self.cta_threads = automata, threads, cta_threads
        self.locate, self.initial = locate, initial
        self.cuts: dict[str, set[int]] = {}

    def start(self) -> KernelState:
        """The state before any thread has begun."""
        cells = [cell for variable, cuts in sorted(self.cuts.items()) for cell in _between(variable, sorted(cuts))]
        memory = tuple((cell, frozenset({(self.initial(_location(cell)), -1, None, frozenset[int]())})) for cell in cells)
        return self._settled(KernelState(tuple(_thread_state(automaton.first, 0) for automaton in self.automata), memory))

    def cut(self, location: Location) -> None:
        """Begin new cells at both ends of this location."""
        self.cuts.setdefault(location.variable, set()).update((location.offset, location.offset + location.size))

    def is_finished(self, state: KernelState, number: int) -> bool:
        """Has this thread ended?"""
        return state.threads[number].has_ended

    def waits_for_others(self, state: KernelState, number: int) -> bool:
        """Does the thread read memory there, or wait for others?"""
        call = state.threads[number].call
        return call is not None and call.name not in ("writes", "copies", "signals", "arrives")

    def where(self, state: KernelState, number: int) -> str:
        """The instruction at which a thread stands, as the kernel writes it."""
        call = state.threads[number].call
        if call is None:
            return "a loop that does nothing else"
        subject = call.arguments[0]
        if isinstance(subject, ThreadAccess):
            return self._polled(subject, number)
        return f"`{text_of(subject.bound if isinstance(subject, Rendezvous) else subject)}`"

    def _polled(self, touch: ThreadAccess, number: int) -> str:
        start = self.locate(touch, self.threads[number])
        return f"`{describe(touch.bound, Location(*start, touch.size) if start else None)}`"

    def successors(self, state: KernelState, known: Collection[KernelState]) -> dict[int, list[KernelState]]:
        """The states after the next step of each thread that can run.

        A thread that comes to a barrier of all threads changes nothing for the others, so it moves first.
        """
        if sum(automaton.effort for automaton in self.automata) > EFFORT:
            raise LimitExceeded("its threads come to ever new states")
        able = [n for n, thread in enumerate(state.threads) if n not in state.waiting and not thread.has_ended]
        first = next((n for n in able if self._only_comes(state.threads[n])), None)
        if first is not None:
            (after,) = self.steps(state, first)
            if after not in known:
                return {n: [after] if n == first else [] for n in able}
        return {n: list(dict.fromkeys(self.steps(state, n))) for n in able}

    @staticmethod
    def _only_comes(thread: ThreadState) -> bool:
        call = thread.call
        return call is not None and call.name in ("synchronizes", "exchanges") and call.arguments[0].threads is None

    def steps(self, state: KernelState, number: int) -> Iterator[KernelState]:
        """The states after the next step of one thread."""
        thread = state.threads[number]
        call = thread.call
        if call is None:
            yield state  # an endless loop
            return
        if call.name in ("synchronizes", "arrives", "exchanges"):
            yield self._arrived(state, number, call.arguments[0], waits=call.name != "arrives")
        elif call is thread.state.question:
            yield from self._asked(state, number, call)
        else:
            yield from (self._after_call(after, number) for after in self._done(state, number, call))

    def _asked(self, state: KernelState, number: int, call: ScriptCall) -> Iterator[KernelState]:
        """The states after a read or an atomic operation: one for each value that it may find."""
        match call.name:
            case "reads":
                touch = call.arguments[0]
                for values in product(*(self._held(state, location) for location in self._locations(touch, number))):
                    yield self._answered(state, number, values)
            case "updates":
                touch, modify, compared = call.arguments
                for old in self._values(state, touch, number):
                    wrote = state if compared not in (None, old) else self._wrote(state, number, touch, modify(old))
                    yield self._answered(wrote, number, old)

    def _done(self, state: KernelState, number: int, call: ScriptCall) -> Iterator[KernelState]:
        """The states after a write, a copy, or the end of a copy."""
        match call.name:
            case "writes":
                yield self._write(state, number, *call.arguments)
            case "copies":
                yield from self._copied(state, number, *call.arguments[2:])
            case "signals":
                touch, _, modify = call.arguments
                yield from (self._wrote(state, number, touch, modify(old)) for old in self._values(state, touch, number))

    # ── where threads stand ─────────────────────────────────────────────────────────────

    def _answered(self, state: KernelState, number: int, answer: Answer) -> KernelState:
        return self._at(state, number, _thread_state(self.automata[number].after(state.threads[number].state, answer), 0))

    def _after_call(self, state: KernelState, number: int) -> KernelState:
        thread = state.threads[number]
        return self._at(state, number, _thread_state(thread.transition, thread.done + 1)) if thread.transition else state

    def _at(self, state: KernelState, number: int, thread: ThreadState) -> KernelState:
        moved = replace(state, threads=(*state.threads[:number], thread, *state.threads[number + 1 :]))
        return self._settled(moved) if thread.has_ended and moved.barriers else moved

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def _locations(self, touch: ThreadAccess, number: int) -> list[Location]:
        """The locations of the scalars of an access; none in memory that no other thread writes."""
        start = self.locate(touch, self.threads[number])
        if start is None:
            return []
        return [Location(start[0], start[1] + n * touch.size, touch.size) for n in range(touch.count)]

    def _cells(self, location: Location) -> list[Cell]:
        cuts, end = self.cuts.get(location.variable, set()), location.offset + location.size
        if location.offset not in cuts or end not in cuts:
            raise PartialAccess(location)
        return list(_between(location.variable, sorted(cut for cut in cuts if location.offset <= cut <= end)))

    def _held(self, state: KernelState, location: Location) -> list[int]:
        """The values that a read of a location may find."""
        memory, cells = dict(state.memory), self._cells(location)
        found = {0}
        for cell in cells:
            shift = 8 * (cell[1] - location.offset)
            found = {low | value << shift for low in found for value, *_ in memory[cell]}
        return sorted(found)

    def _values(self, state: KernelState, touch: ThreadAccess, number: int) -> list[int]:
        """The values that an atomic operation may find; a packed operand is one location."""
        (location,) = self._locations(touch, number)
        return self._held(state, location)

    def _wrote(self, state: KernelState, number: int, touch: ThreadAccess, value: int) -> KernelState:
        return self._write(state, number, touch, [value])

    def _write(self, state: KernelState, number: int, touch: ThreadAccess, values: Sequence[int]) -> KernelState:
        """The state after a write; it replaces initial values, morally strong writes, and writes ordered before it."""
        memory = dict(state.memory)
        scope = touch.scope if touch.order.strong else None
        for location, value in zip(self._locations(touch, number), values, strict=False):
            for cell in self._cells(location):
                part = value >> 8 * (cell[1] - location.offset) & (1 << 8 * (cell[2] - cell[1])) - 1
                stays = [old for old in memory[cell] if number not in old[3] and remains(self.threads, number, scope, old[:3])]
                memory[cell] = frozenset({*stays, (part, number, scope, frozenset({number}))})
        return replace(state, memory=tuple((cell, memory[cell]) for cell, _ in state.memory))

    def _copied(
        self, state: KernelState, number: int, sources: Sequence[tuple[ThreadAccess, bytes]], target: ThreadAccess
    ) -> Iterator[KernelState]:
        """The states after a copy: one for each combination of values that it may read."""
        pieces: list[list[bytes]] = []
        for touch, held in sources:
            locations = self._locations(touch, number)
            pieces += [[value.to_bytes(touch.size, "little") for value in self._held(state, at)] for at in locations]
            pieces += [] if locations else [[held]]
        for chosen in product(*pieces):
            found = b"".join(chosen).ljust(target.size * target.count, b"\0")
            words = [found[at : at + target.size] for at in range(0, len(found), target.size)]
            yield self._write(state, number, target, [int.from_bytes(word, "little") for word in words])

    # ── barriers ────────────────────────────────────────────────────────────────────────

    def _arrived(self, state: KernelState, number: int, meeting: Rendezvous, *, waits: bool) -> KernelState:
        """The state after a thread comes to a barrier; it stays there if it waits."""
        key, barriers = self._barrier_key(number, meeting), dict(state.barriers)
        before = barriers.get(key, Arrivals(frozenset()))
        barriers[key] = Arrivals(before.arrived | {number}, before.count if meeting.threads is None else meeting.threads)
        arrived = replace(state, barriers=tuple(sorted(barriers.items(), key=lambda item: item[0])))
        arrived = replace(arrived, waiting=arrived.waiting | {number}) if waits else self._after_call(arrived, number)
        return self._settled(arrived)

    def _barrier_key(self, number: int, meeting: Rendezvous) -> BarrierKey:
        cta, thread = divmod(number, self.cta_threads)
        if meeting.kind is Meeting.CTA:
            return cta, WHOLE_CTA, meeting.name, meeting.number
        return cta, thread // WARP, meeting.name, 0

    def _settled(self, state: KernelState) -> KernelState:
        """Release the threads at barriers that are complete."""
        for key, arrivals in state.barriers:
            ready = self._ready(state, key, arrivals)
            if ready:
                left = arrivals.arrived - ready
                barriers = {**dict(state.barriers), key: replace(arrivals, arrived=left)}
                remaining = tuple((each, here) for each, here in barriers.items() if here.arrived)
                freed = replace(state, barriers=remaining, waiting=state.waiting - ready)
                if key[2] in (Meeting.CTA, Meeting.WARP):
                    freed = replace(freed, memory=_known_after(state.memory, arrivals.arrived, ready & state.waiting))
                calls = {n: state.threads[n].call for n in arrivals.arrived & state.waiting}
                for number in sorted(ready & state.waiting):
                    freed = self._released(freed, number, calls)
                return self._settled(freed)
        return state

    def _released(self, state: KernelState, number: int, calls: Mapping[int, ScriptCall | None]) -> KernelState:
        """Let a thread continue with the values that the others gave."""
        call = calls[number]
        if call is None or call.name != "exchanges":
            return self._after_call(state, number)
        first, mine = number - number % self.cta_threads, number % self.cta_threads
        others = {member: calls.get(first + member) for member in call.arguments[0].members if member != mine}
        taken = tuple((member, other.arguments[1]) for member, other in sorted(others.items()) if other is not None)
        return self._answered(state, number, taken)

    def _ready(self, state: KernelState, key: BarrierKey, arrivals: Arrivals) -> frozenset[int]:
        """The threads at a barrier that need not wait any longer."""
        cta, warp, _, _ = key
        first = cta * self.cta_threads
        alive = {n for n in range(first, first + self.cta_threads) if not state.threads[n].has_ended}
        if warp == WHOLE_CTA:
            return arrivals.arrived if self._is_complete(first, alive, arrivals) else frozenset()
        wanted = {n: self._members(state, n) & alive for n in arrivals.arrived}
        return frozenset(n for n, members in wanted.items() if members <= arrivals.arrived)

    def _members(self, state: KernelState, number: int) -> set[int]:
        call = state.threads[number].call
        first = number - number % self.cta_threads
        return {first + member for member in call.arguments[0].members} if call is not None else set()

    def _is_complete(self, first: int, alive: set[int], arrivals: Arrivals) -> bool:
        """Have enough threads come?  A warp whose threads have all come or ended counts as whole."""
        if arrivals.count is None:
            return alive <= arrivals.arrived
        counted = 0
        for start in range(first, first + self.cta_threads, WARP):
            warp = set(range(start, min(start + WARP, first + self.cta_threads)))
            here = warp & arrivals.arrived
            counted += WARP if here and warp & alive <= here else len(here)
        return counted >= arrivals.count


def _known_after(
    memory: tuple[tuple[Cell, frozenset[ReadableValue]], ...], arrived: frozenset[int], waited: frozenset[int]
) -> tuple[tuple[Cell, frozenset[ReadableValue]], ...]:
    """Order the threads that waited at a barrier after every write that a thread at the barrier is ordered after."""

    def known(held: ReadableValue) -> ReadableValue:
        value, thread, scope, after = held
        return value, thread, scope, after | waited if after & arrived else after

    return tuple((cell, frozenset(map(known, held))) for cell, held in memory)


def _thread_state(step: Transition, done: int) -> ThreadState:
    """The next call of a step that other threads can notice, or the state to which the step leads."""
    while done < len(step.calls) and step.calls[done].name not in ACTS:
        done += 1
    return ThreadState(step, done, step.target) if done < len(step.calls) else ThreadState(None, 0, step.target)


def _between(variable: str, cuts: Sequence[int]) -> Iterator[Cell]:
    return ((variable, start, end) for start, end in pairwise(cuts))


def _location(cell: Cell) -> Location:
    return Location(cell[0], cell[1], cell[2] - cell[1])

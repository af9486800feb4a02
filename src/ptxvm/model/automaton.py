"""Memoised execution of a thread as an automaton: each step runs once from each state.

Between two questions of the machine (what does this read find?) a thread does always the same.  So it is an automaton: its
states are where it stands when it asks, and each answer leads to another one.  The ways of the search and the turns of the
machine that decides termination go through the same automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.single_thread import Enough, Holder, Meeting, Payload, Script, Stage, Touch
from ptxvm.model.path_run import Locate
from ptxvm.model.program import Thread

TURNS = 10_000
"""A loop that asks nothing, and goes round so often, is one that does not end."""

EFFECTS = {"writes", "meets", "arrives", "copies", "groups", "awaits", "tells"}
"""What is said that is no mere reading, fencing or reckoning."""
Answer = Hashable
Answered: TypeAlias = Any
"""What a script answers: the method that is asked says of which type."""


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that the machine says or asks: the method of a script, and its arguments."""

    name: str
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def to(self, script: Script) -> Answered:
        """Say it."""
        return getattr(script, self.name)(*self.given, **self.named)

    @property
    def has_effect(self) -> bool:
        """Can another thread observe it?"""
        return self.name in EFFECTS

    def changes(self, answer: Answer) -> bool:
        """Does a question with this answer?  A `cas` that finds something else does not."""
        if self.name != "updates":
            return self.name == "exchanges"
        compared = self.given[2]
        return compared is None or compared == answer


@dataclass(eq=False, slots=True)
class Place:
    """Where a thread stands: what it asks, or how it ended."""

    history: tuple[Answer, ...]
    question: Call | None = None
    registers: Mapping[str, int] = field(default_factory=dict)
    fault: Fault | None = None
    circles: bool = False
    """Does it run in a circle, and ask nothing any more?"""
    steps: dict[Answer, Step] = field(default_factory=dict)


@dataclass(eq=False, frozen=True, slots=True)
class Step:
    """What the thread says on its way from one place to the next."""

    said: tuple[Call, ...]
    to: Place


class Automaton:
    """One thread of a stage."""

    def __init__(self, stage: Stage, number: int, is_shared: Callable[[Touch], bool], keep: Sequence[str]) -> None:
        self.stage, self.number, self.is_shared, self.keep = stage, number, is_shared, keep
        self.places: dict[Hashable, Place] = {}
        self.effort = 0
        self.first = self._run(())

    def after(self, place: Place, answer: Answer) -> Step:
        """What follows an answer."""
        if answer not in place.steps:
            place.steps[answer] = self._run((*place.history, answer))
        return place.steps[answer]

    def walk(self, script: Script) -> Mapping[str, int] | None:
        """Let a script answer, from the beginning to the end; the registers there, or None where it had enough.

        A turn of a loop that only reads, and comes to the same place again, is left out: without those reads, nothing is
        ruled out that is allowed with them.
        """
        step, seen = self.first, set[Place]()
        try:
            while True:
                for call in step.said:
                    call.to(script)
                place = step.to
                if place.fault is not None:
                    raise place.fault
                if place.question is None:
                    return None if place.circles else place.registers
                if any(call.has_effect for call in step.said):
                    seen.clear()
                if place in seen:
                    return None
                seen.add(place)
                answer = answered(place.question.to(script))
                if place.question.changes(answer):
                    seen.clear()
                step = self.after(place, answer)
        except Enough:
            return None

    def _run(self, history: tuple[Answer, ...]) -> Step:
        """Run the thread until it asks what is not answered."""
        self.effort += 1 + len(history)
        recorder = Recorder(history, self.is_shared)
        place = Place(history)
        try:
            registers = self.stage.run(self.number, recorder, self.keep)
        except Fault as fault:
            place.fault, registers = fault, {}
        if registers is not None:
            place.registers = registers
            return Step(tuple(recorder.said), place)
        place.question, place.circles = recorder.question, recorder.question is None
        known = self.places.setdefault(recorder.stands(), place)
        return Step(tuple(recorder.said), known)


def automata(stage: Stage, threads: Sequence[Thread], locate: Locate, keep: Mapping[str, Sequence[str]]) -> list[Automaton]:
    """All threads of a stage, with the registers of each that are asked for in the end."""

    def is_shared(thread: Thread, touch: Touch) -> bool:
        return locate(touch, thread) is not None

    return [Automaton(stage, n, partial(is_shared, thread), keep.get(thread.name, ())) for n, thread in enumerate(threads)]


def answered(answer: Answered) -> Answer:
    """An answer as a key."""
    if isinstance(answer, Mapping):
        return tuple(sorted(answer.items()))
    return answer if isinstance(answer, int) else tuple(answer)


class Recorder:
    """A script that answers from memory, notes what was said after the last answer, and stops at the first new question."""

    def __init__(self, history: tuple[Answer, ...], is_shared: Callable[[Touch], bool]) -> None:
        self.left, self.is_shared = list(history), is_shared
        self.said: list[Call] = []
        self.question: Call | None = None
        self.standing: Callable[[], Hashable] = lambda: None
        self.since: list[Answer] = []
        self.turns = 0

    def stands(self) -> Hashable:
        """Where the thread stands: where its run of instructions began, and what it was answered since then."""
        return self.question is None, self.standing(), tuple(self.since)

    def _ask(self, call: Call) -> Answered:
        if not self.left:
            self.question = call
            raise Enough
        answer = self.left.pop(0)
        self.since.append(answer)
        self.said.clear()
        self.turns = 0
        return answer

    def _say(self, name: str, *given: object, **named: object) -> None:
        self.said.append(Call(name, given, named))

    # ── what asks ───────────────────────────────────────────────────────────────────────

    def reads(self, touch: Touch) -> Sequence[int] | None:
        """Memory of the thread alone is as it is."""
        if self.is_shared(touch):
            found: Sequence[int] = self._ask(Call("reads", (touch,)))
            return found
        self._say("reads", touch)
        return None

    def updates(self, touch: Touch, modify: Callable[[int], int], compared: int | None) -> int:
        """Ask."""
        return int(self._ask(Call("updates", (touch, modify, compared))))

    def exchanges(self, meeting: Meeting, given: Payload) -> Mapping[int, Payload]:
        """Ask."""
        return dict(self._ask(Call("exchanges", (meeting, given))))

    # ── what is said ────────────────────────────────────────────────────────────────────

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """Note where this is."""
        self.standing = standing
        self.since.clear()
        self._say("enters", code, depth, standing)

    def goes_back(self) -> None:
        """A loop that never asks is not followed for ever."""
        self.turns += 1
        if self.turns > TURNS:
            raise Enough
        self._say("goes_back")

    def hands_on(self, source: Holder | None, target: Holder) -> None:
        """Note it."""
        self._say("hands_on", source, target)

    def writes(self, touch: Touch, values: Sequence[int]) -> None:
        """Note it."""
        self._say("writes", touch, values)

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """Note it."""
        self._say("fences", bound, order, scope)

    def meets(self, meeting: Meeting) -> None:
        """Note it."""
        self._say("meets", meeting)

    def arrives(self, meeting: Meeting) -> None:
        """Note it."""
        self._say("arrives", meeting)

    def learns(self, thread: int) -> None:
        """Note it."""
        self._say("learns", thread)

    def finds_over(self, order: Order, scope: Scope) -> None:
        """Note it."""
        self._say("finds_over", order, scope)

    def copies(self, bound: Bound, kind: str, sources: Sequence[tuple[Touch, bytes]], target: Touch) -> None:
        """Note it."""
        self._say("copies", bound, kind, sources, target)

    def groups(self, kind: str) -> None:
        """Note it."""
        self._say("groups", kind)

    def awaits(self, kind: str, left: int, *, reading: bool) -> None:
        """Note it."""
        self._say("awaits", kind, left, reading=reading)

    def tells(self, touch: Touch, kind: str, modify: Callable[[int], int], *, last: bool) -> None:
        """Note it."""
        self._say("tells", touch, kind, modify, last=last)

"""Memoised execution of a thread as an automaton: each step runs once from each state.

A thread is deterministic between two questions, such as "what does this read find?".  So it is an automaton: a state is a
point at which the thread asks, and each answer leads to another state.  The search for paths and the state-space exploration
for termination share this automaton.
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
"""The most backward jumps without a question; a loop that goes on longer does not end."""

EFFECTS = {"writes", "meets", "arrives", "copies", "groups", "awaits", "tells"}
"""The calls that another thread can observe."""
Answer = Hashable
Answered: TypeAlias = Any
"""The answer of a script; its type depends on the method."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call on a script: the method and its arguments."""

    name: str
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def to(self, script: Script) -> Answered:
        """Make the call on a script."""
        return getattr(script, self.name)(*self.given, **self.named)

    @property
    def has_effect(self) -> bool:
        """Can another thread observe the call?"""
        return self.name in EFFECTS

    def changes(self, answer: Answer) -> bool:
        """Does the call change memory or exchange values, given this answer?  A `cas` whose comparison fails does not."""
        if self.name != "updates":
            return self.name == "exchanges"
        compared = self.given[2]
        return compared is None or compared == answer


@dataclass(eq=False, slots=True)
class Place:
    """A state of the automaton: the question at which the thread stops, or how it ended."""

    history: tuple[Answer, ...]
    question: Call | None = None
    registers: Mapping[str, int] = field(default_factory=dict)
    fault: Fault | None = None
    circles: bool = False
    """Does the thread loop without asking anything?"""
    steps: dict[Answer, Step] = field(default_factory=dict)


@dataclass(eq=False, frozen=True, slots=True)
class Step:
    """A transition: the calls that the thread makes before it reaches the next state."""

    said: tuple[Call, ...]
    to: Place


class Automaton:
    """The automaton of one thread of a stage."""

    def __init__(self, stage: Stage, number: int, is_shared: Callable[[Touch], bool], keep: Sequence[str]) -> None:
        self.stage, self.number, self.is_shared, self.keep = stage, number, is_shared, keep
        self.places: dict[Hashable, Place] = {}
        self.effort = 0
        self.first = self._run(())

    def after(self, place: Place, answer: Answer) -> Step:
        """The transition for an answer."""
        if answer not in place.steps:
            place.steps[answer] = self._run((*place.history, answer))
        return place.steps[answer]

    def walk(self, script: Script) -> Mapping[str, int] | None:
        """Run the thread from its beginning with the answers of a script.

        Returns the final registers, or None if the path stops early.  A path stops when it returns to a state after reads
        alone: every outcome that is allowed with these reads is allowed without them.
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
        """Run the thread up to its first question without a recorded answer."""
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
    """One automaton for each thread of a stage; `keep` names the registers that each thread reports at its end."""

    def is_shared(thread: Thread, touch: Touch) -> bool:
        return locate(touch, thread) is not None

    return [Automaton(stage, n, partial(is_shared, thread), keep.get(thread.name, ())) for n, thread in enumerate(threads)]


def answered(answer: Answered) -> Answer:
    """An answer as a hashable key."""
    if isinstance(answer, Mapping):
        return tuple(sorted(answer.items()))
    return answer if isinstance(answer, int) else tuple(answer)


class Recorder:
    """A script that replays recorded answers, records the calls after the last one, and stops at the first new question."""

    def __init__(self, history: tuple[Answer, ...], is_shared: Callable[[Touch], bool]) -> None:
        self.left, self.is_shared = list(history), is_shared
        self.said: list[Call] = []
        self.question: Call | None = None
        self.standing: Callable[[], Hashable] = lambda: None
        self.since: list[Answer] = []
        self.turns = 0

    def stands(self) -> Hashable:
        """The state of the thread: does it ask nothing, where did its run of instructions begin, and the answers since then."""
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

    # ── questions ───────────────────────────────────────────────────────────────────────

    def reads(self, touch: Touch) -> Sequence[int] | None:
        """Ask for the values of memory that other threads may write; record other reads."""
        if self.is_shared(touch):
            found: Sequence[int] = self._ask(Call("reads", (touch,)))
            return found
        self._say("reads", touch)
        return None

    def updates(self, touch: Touch, modify: Callable[[int], int], compared: int | None) -> int:
        """Ask which value the atomic operation finds."""
        return int(self._ask(Call("updates", (touch, modify, compared))))

    def exchanges(self, meeting: Meeting, given: Payload) -> Mapping[int, Payload]:
        """Ask which values the other threads give."""
        return dict(self._ask(Call("exchanges", (meeting, given))))

    # ── calls without an answer ─────────────────────────────────────────────────────────

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """Record the call, and where this run of instructions begins."""
        self.standing = standing
        self.since.clear()
        self._say("enters", code, depth, standing)

    def goes_back(self) -> None:
        """Record a backward jump; stop the thread after `TURNS` of them without a question."""
        self.turns += 1
        if self.turns > TURNS:
            raise Enough
        self._say("goes_back")

    def hands_on(self, source: Holder | None, target: Holder) -> None:
        """Record that a call passes an argument or a result."""
        self._say("hands_on", source, target)

    def writes(self, touch: Touch, values: Sequence[int]) -> None:
        """Record a write."""
        self._say("writes", touch, values)

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """Record a fence."""
        self._say("fences", bound, order, scope)

    def meets(self, meeting: Meeting) -> None:
        """Record that the thread waits at a barrier."""
        self._say("meets", meeting)

    def arrives(self, meeting: Meeting) -> None:
        """Record an arrival without a wait."""
        self._say("arrives", meeting)

    def learns(self, thread: int) -> None:
        """Record that the thread uses a value of another thread."""
        self._say("learns", thread)

    def finds_over(self, order: Order, scope: Scope) -> None:
        """Record that a test found the phase of an mbarrier over."""
        self._say("finds_over", order, scope)

    def copies(self, bound: Bound, kind: str, sources: Sequence[tuple[Touch, bytes]], target: Touch) -> None:
        """Record an asynchronous copy."""
        self._say("copies", bound, kind, sources, target)

    def groups(self, kind: str) -> None:
        """Record that a group of copies is complete."""
        self._say("groups", kind)

    def awaits(self, kind: str, left: int, *, reading: bool) -> None:
        """Record a wait for groups of copies."""
        self._say("awaits", kind, left, reading=reading)

    def tells(self, touch: Touch, kind: str, modify: Callable[[int], int], *, last: bool) -> None:
        """Record that copies signal an mbarrier when they end."""
        self._say("tells", touch, kind, modify, last=last)

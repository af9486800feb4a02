"""Memoised execution of a thread as an automaton: each step runs once from each state.

A thread is deterministic between two questions, such as "what does this read find?".  So it is an automaton: a state is a
point at which the thread asks, and each answer leads to another state.  The search for paths and the state-space exploration
for termination share this automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.single_thread import Holder, Payload, Rendezvous, Script, Stage, StopThread, ThreadAccess
from ptxvm.model.litmus_program import Thread
from ptxvm.model.path_run import Locate

MOST_REPETITIONS = 10_000
"""The most backward jumps without a question; a loop that goes on longer does not end."""

EFFECTS = {"writes", "synchronizes", "arrives", "copies", "groups", "awaits", "signals"}
"""The calls that another thread can observe."""
Answer = Hashable
Argument: TypeAlias = Any
"""An argument of a call; its type depends on the method."""
Answered: TypeAlias = Any
"""The answer of a script; its type depends on the method."""


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """One call on a script: the method and its arguments."""

    name: str
    arguments: tuple[Argument, ...] = ()
    named: Mapping[str, Argument] = field(default_factory=dict)

    def to(self, script: Script) -> Answered:
        """Make the call on a script."""
        return getattr(script, self.name)(*self.arguments, **self.named)

    @property
    def has_effect(self) -> bool:
        """Can another thread observe the call?"""
        return self.name in EFFECTS

    def changes(self, answer: Answer) -> bool:
        """Does the call change memory or exchange values, given this answer?  A `cas` whose comparison fails does not."""
        if self.name != "updates":
            return self.name == "exchanges"
        compared = self.arguments[2]
        return compared is None or compared == answer


@dataclass(eq=False, slots=True)
class AutomatonState:
    """A state of the automaton: the question at which the thread stops, or how it ended."""

    history: tuple[Answer, ...]
    question: ScriptCall | None = None
    registers: Mapping[str, int] = field(default_factory=dict)
    fault: Fault | None = None
    loops_silently: bool = False
    """Does the thread loop without asking anything?"""
    steps: dict[Answer, Transition] = field(default_factory=dict)


@dataclass(eq=False, frozen=True, slots=True)
class Transition:
    """A transition: the calls that the thread makes before it reaches the next state."""

    calls: tuple[ScriptCall, ...]
    target: AutomatonState


class Automaton:
    """The automaton of one thread of a stage."""

    def __init__(self, stage: Stage, number: int, is_shared: Callable[[ThreadAccess], bool], keep: Sequence[str]) -> None:
        self.stage, self.number, self.is_shared, self.keep = stage, number, is_shared, keep
        self.states: dict[Hashable, AutomatonState] = {}
        self.effort = 0
        self.first = self._run(())

    def after(self, state: AutomatonState, answer: Answer) -> Transition:
        """The transition for an answer."""
        if answer not in state.steps:
            state.steps[answer] = self._run((*state.history, answer))
        return state.steps[answer]

    def run(self, script: Script) -> Mapping[str, int] | None:
        """Run the thread from its beginning with the answers of a script.

        Returns the final registers, or None if the path stops early.  A path stops when it returns to a state after reads
        alone: every outcome that is allowed with these reads is allowed without them.
        """
        step, seen = self.first, set[AutomatonState]()
        try:
            while True:
                for call in step.calls:
                    call.to(script)
                state = step.target
                if state.fault is not None:
                    raise state.fault
                if state.question is None:
                    return None if state.loops_silently else state.registers
                if any(call.has_effect for call in step.calls):
                    seen.clear()
                if state in seen:
                    return None
                seen.add(state)
                answer = answered(state.question.to(script))
                if state.question.changes(answer):
                    seen.clear()
                step = self.after(state, answer)
        except StopThread:
            return None

    def _run(self, history: tuple[Answer, ...]) -> Transition:
        """Run the thread up to its first question without a recorded answer."""
        self.effort += 1 + len(history)
        recorder = Recorder(history, self.is_shared)
        state = AutomatonState(history)
        try:
            registers = self.stage.run(self.number, recorder, self.keep)
        except Fault as fault:
            state.fault, registers = fault, {}
        if registers is not None:
            state.registers = registers
            return Transition(tuple(recorder.calls), state)
        state.question, state.loops_silently = recorder.question, recorder.question is None
        known = self.states.setdefault(recorder.stands(), state)
        return Transition(tuple(recorder.calls), known)


def automata(stage: Stage, threads: Sequence[Thread], locate: Locate, keep: Mapping[str, Sequence[str]]) -> list[Automaton]:
    """One automaton for each thread of a stage; `keep` names the registers that each thread reports at its end."""

    def is_shared(thread: Thread, touch: ThreadAccess) -> bool:
        return locate(touch, thread) is not None

    return [Automaton(stage, n, partial(is_shared, thread), keep.get(thread.name, ())) for n, thread in enumerate(threads)]


def answered(answer: Answered) -> Answer:
    """An answer as a hashable key."""
    if isinstance(answer, Mapping):
        return tuple(sorted(answer.items()))
    return answer if isinstance(answer, int) else tuple(answer)


class Recorder:
    """A script that replays recorded answers, records the calls after the last one, and stops at the first new question."""

    def __init__(self, history: tuple[Answer, ...], is_shared: Callable[[ThreadAccess], bool]) -> None:
        self.left, self.is_shared = list(history), is_shared
        self.calls: list[ScriptCall] = []
        self.question: ScriptCall | None = None
        self.standing: Callable[[], Hashable] = lambda: None
        self.since: list[Answer] = []
        self.repetitions = 0

    def stands(self) -> Hashable:
        """The state of the thread: whether it asks nothing, where its run of instructions began, and the answers since then."""
        return self.question is None, self.standing(), tuple(self.since)

    def _ask(self, call: ScriptCall) -> Answered:
        if not self.left:
            self.question = call
            raise StopThread
        answer = self.left.pop(0)
        self.since.append(answer)
        self.calls.clear()
        self.repetitions = 0
        return answer

    def _record(self, name: str, *arguments: object, **named: object) -> None:
        self.calls.append(ScriptCall(name, arguments, named))

    # ── questions ───────────────────────────────────────────────────────────────────────

    def reads(self, touch: ThreadAccess) -> Sequence[int] | None:
        """Ask for the values of memory that other threads may write; record other reads."""
        if self.is_shared(touch):
            found: Sequence[int] = self._ask(ScriptCall("reads", (touch,)))
            return found
        self._record("reads", touch)
        return None

    def updates(self, touch: ThreadAccess, modify: Callable[[int], int], compared: int | None) -> int:
        """Ask which value the atomic operation finds."""
        return int(self._ask(ScriptCall("updates", (touch, modify, compared))))

    def exchanges(self, meeting: Rendezvous, payload: Payload) -> Mapping[int, Payload]:
        """Ask which values the other threads give."""
        return dict(self._ask(ScriptCall("exchanges", (meeting, payload))))

    # ── calls without an answer ─────────────────────────────────────────────────────────

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """Record the call, and where this run of instructions begins."""
        self.standing = standing
        self.since.clear()
        self._record("enters", code, depth, standing)

    def jumps_back(self) -> None:
        """Record a backward jump; stop the thread after `MOST_REPETITIONS` of them without a question."""
        self.repetitions += 1
        if self.repetitions > MOST_REPETITIONS:
            raise StopThread
        self._record("jumps_back")

    def passes(self, source: Holder | None, target: Holder) -> None:
        """Record that a call passes an argument or a result."""
        self._record("passes", source, target)

    def writes(self, touch: ThreadAccess, values: Sequence[int]) -> None:
        """Record a write."""
        self._record("writes", touch, values)

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """Record a fence."""
        self._record("fences", bound, order, scope)

    def synchronizes(self, meeting: Rendezvous) -> None:
        """Record that the thread waits at a barrier."""
        self._record("synchronizes", meeting)

    def arrives(self, meeting: Rendezvous) -> None:
        """Record an arrival without a wait."""
        self._record("arrives", meeting)

    def learns(self, thread: int) -> None:
        """Record that the thread uses a value of another thread."""
        self._record("learns", thread)

    def observes_phase(self, order: Order, scope: Scope) -> None:
        """Record that a test found the phase of an mbarrier over."""
        self._record("observes_phase", order, scope)

    def copies(
        self, bound: Bound, kind: AsyncKind, sources: Sequence[tuple[ThreadAccess, bytes]], target: ThreadAccess
    ) -> None:
        """Record an asynchronous copy."""
        self._record("copies", bound, kind, sources, target)

    def groups(self, kind: AsyncKind) -> None:
        """Record that a group of copies is complete."""
        self._record("groups", kind)

    def awaits(self, kind: AsyncKind, left: int, *, reading: bool) -> None:
        """Record a wait for groups of copies."""
        self._record("awaits", kind, left, reading=reading)

    def signals(self, touch: ThreadAccess, kind: AsyncKind, modify: Callable[[int], int], *, last: bool) -> None:
        """Record that copies signal an mbarrier when they end."""
        self._record("signals", touch, kind, modify, last=last)

"""Verdicts: the answer to the question of a litmus test."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import product
from math import factorial, prod
from typing import TYPE_CHECKING

from ptxvm.algebra.memory_order import Order
from ptxvm.dataclass import dataclass
from ptxvm.machine import options
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.axioms_9_1 import PTX91
from ptxvm.model.conditions import CannotSolve, Truth, both, negated
from ptxvm.model.cycle_explanation import cycle
from ptxvm.model.deadline import OutOfTime, seconds_left, time_limit
from ptxvm.model.ending import Ending
from ptxvm.model.enumerate import LOOPS, Candidate, Search, may_take
from ptxvm.model.litmus_program import Atomic, Fence, LitmusInstruction, Load, Location, Store
from ptxvm.model.litmus_test import Test
from ptxvm.model.liveness import termination
from ptxvm.model.memory_events import Event
from ptxvm.model.overruled import overruled
from ptxvm.model.paths import paths

if TYPE_CHECKING:
    from ptxvm.model.solve import Question

MODELS: dict[str, type[PTX64]] = {"6.4": PTX64, "9.1": PTX91}
WORDS = {"exists": ("allowed", "forbidden"), "not_exists": ("allowed", "forbidden"), "forall": ("violated", "holds")}
"""The verdict if an execution answers the question, and the verdict if none does."""
State = tuple[tuple[str, int], ...]
"""A final state: registers and memory, sorted by name."""
NO_GUARANTEE = "no guarantee"
SOLVERS = ("auto", "search", "z3")
MANY = 1_000_000
"""With more choices than this, z3 is faster."""
OUTCOMES = 256
"""The most final states that are listed when z3 finds them."""
EXPLAINING = 5.0
"""The seconds for a search for a forbidden execution that explains the verdict."""
TELLING = ("No Thin Air", "Fence-SC", "SC per Location", "Coherence", "Atomicity of RMW", "Single-Copy Atomicity", "Causality")
"""The axioms; the last one explains best."""


@dataclass(frozen=True)
class Race:
    """Two conflicting operations that nothing orders (PTX 8.6.1)."""

    first: str
    second: str
    location: str
    mixed_size: bool

    @property
    def kind(self) -> str:
        """The kind of race (PTX 8.6.2)."""
        return "mixed-size" if self.mixed_size else "uniform-size"


@dataclass
class Judgement:
    """The answer of the model to a test."""

    test: Test
    model: str
    verdict: str = ""
    termination: str = ""
    why: tuple[str, ...] = ()
    """If the test may hang: what its threads do for ever.  If that is unknown: the reason."""
    outcomes: dict[State, bool] = field(default_factory=dict)
    """Each final state, and whether it satisfies the condition."""
    witness: Candidate | None = None
    """An execution that shows the verdict, if one can; otherwise one that keeps the axioms."""
    forbidden: Candidate | None = None
    """If no execution answers the question: one that would, and the axiom that it breaks."""
    races: list[Race] = field(default_factory=list)
    seconds: float = 0.0
    solver: str = "search"
    touched: set[str] = field(default_factory=set)
    """The variables that some thread accesses."""
    complete: bool = True
    """Are all outcomes listed?"""
    witnesses: dict[State, Candidate] = field(default_factory=dict)
    """If requested: an execution for each final state."""
    refusals: dict[State, Candidate] = field(default_factory=dict)
    """If requested: an execution for each forbidden final state, with the axiom that best explains why it is forbidden."""

    def as_json(self) -> dict[str, object]:
        """One object, of plain values."""
        return {
            "name": self.test.name,
            "model": self.model,
            "verdict": self.verdict,
            "termination": self.termination,
            "why": list(self.why),
            "outcomes": [{"state": dict(state), "condition": holds} for state, holds in self.outcomes.items()],
            "races": [vars(race) | {"kind": race.kind} for race in self.races],
            "axiom": self.forbidden.broken.name if self.forbidden and self.forbidden.broken else None,
            "cycle": [step.as_json(self.forbidden) for step in cycle(self.forbidden)] if self.forbidden else [],
            "seconds": round(self.seconds, 6),
        }


class SolverMissing(Exception):  # noqa: N818 - the name says what is missing
    """z3 is requested, but not installed."""


def judge(
    test: Test, model: str | type[PTX64] = "9.1", bound: int = LOOPS, *, witnesses: bool = False, solver: str = "auto"
) -> Judgement:
    """Find the executions of a test and answer its question; with `witnesses`, keep one for each final state.

    `solver` is one of `SOLVERS`: `search` enumerates all executions; `z3` solves for them (SolverMissing if not installed,
    CannotSolve if it cannot); `auto` is z3 if there are many choices and z3 can solve them, and otherwise the search.
    """
    started = time.perf_counter()
    options.one_of("solver", solver, SOLVERS)
    bound = options.count("bound", bound)
    axioms = model if isinstance(model, type) else MODELS[options.one_of("model", model, tuple(MODELS))]
    judgement = Judgement(test, axioms.name)
    inquiry = _Inquiry(judgement, keeps=witnesses)
    if not (solver == "z3" or (solver == "auto" and not witnesses and choices(test) > MANY)) or not solved(
        inquiry, axioms, bound, must=solver == "z3"
    ):
        for candidate in Search(test, axioms, bound, on_broken=inquiry.broken, on_stuck=inquiry.stuck).run():
            inquiry.record(candidate)
    inquiry.close()
    explain(inquiry, axioms, bound)
    ending = termination(test) if test.ways is None else inquiry.ends()
    judgement.termination, judgement.why = ending.answer, ending.why
    judgement.seconds = time.perf_counter() - started
    return judgement


def explain(inquiry: _Inquiry, axioms: type[PTX64], bound: int) -> None:
    """Search further for a forbidden execution that would answer the question, if none was found.

    First memory may end with any write; then reads may also take writes that no axiom lets them take.
    """
    judgement, left = inquiry.judgement, seconds_left()
    inquiry.explains = not inquiry.found and choices(judgement.test) <= MANY
    try:
        with time_limit(EXPLAINING if left is None else min(left, EXPLAINING)):
            for takes in (may_take, any_write):
                if inquiry.explains and judgement.forbidden is None:
                    for candidate in Search(judgement.test, axioms, bound, on_broken=inquiry.broken, takes=takes).run():
                        inquiry.overrule(candidate)
    except OutOfTime:
        return


def any_write(x: PTX64, read: int, write: int) -> bool:
    """Every read may take every write."""
    del x, read, write
    return True


def choices(test: Test) -> int:
    """An estimate of the number of executions: choices of writes to read, orders of writes, and orders of fences."""
    code = [one for thread in test.threads for one in thread.code]
    reads = Counter(at.variable for one in code for at in _locations(one, Load))
    writes = Counter(at.variable for one in code for at in _locations(one, Store))
    fences = sum(isinstance(one, Fence) and one.order is Order.SC for one in code)
    each = ((writes[name] + 1) ** reads[name] * factorial(min(writes[name], 20)) for name in reads.keys() | writes.keys())
    return int(prod(each)) << fences * (fences - 1) // 2


def _locations(one: LitmusInstruction, kind: type[Load | Store]) -> tuple[Location, ...]:
    if isinstance(one, kind):
        return one.locations
    return (one.location,) if isinstance(one, Atomic) else ()


def solved(inquiry: _Inquiry, axioms: type[PTX64], bound: int, *, must: bool) -> bool:
    """Let z3 find the executions; false if z3 cannot or is not installed, which is an error with `must`."""
    try:
        from ptxvm.model.solve import questions  # noqa: PLC0415 - z3 is an extra
    except ImportError as missing:
        if must:
            raise SolverMissing("z3 is not installed; `pip install ptxvm[z3]` does it") from missing
        return False
    test = inquiry.test
    try:
        ways = product(*(paths(thread, bound) for thread in test.threads)) if test.ways is None else test.ways(bound)
        for question in questions(test, axioms, ways, inquiry.stuck):
            inquiry.ask(question)
    except CannotSolve:
        if must:
            raise
        inquiry.forget()
        return False
    inquiry.judgement.solver = "z3"
    return True


class _Inquiry:
    """Collects the facts that executions show."""

    def __init__(self, judgement: Judgement, *, keeps: bool = False) -> None:
        self.judgement, self.test, self.keeps = judgement, judgement.test, keeps
        self.refused_by: dict[State, tuple[bool, int]] = {}
        self.found, self.telling, self.races = False, (False, -1), set[Race]()
        self.hangs = self.explains = False

    def answers(self, state: Mapping[str, int]) -> Truth:
        """Is this a final state that decides the question?"""
        asked = self.test.condition.holds(state)
        wanted = negated(asked) if self.test.quantifier == "forall" else asked
        return both([self.test.filter.holds(state) if self.test.filter else True, wanted])

    def record(self, candidate: Candidate) -> None:
        """Record an execution that keeps all axioms."""
        x = candidate.execution
        self.touch(x.events)
        self.races |= {
            Race(str(x.events[a]), str(x.events[b]), str(x.events[a].location), mixed_size=(a, b) in x.mixed_size_race)
            for a, b in x.data_race
            if a < b
        }
        for state in candidate.states():
            key = tuple(sorted(state.items()))
            if key in self.judgement.outcomes:
                continue
            self.judgement.outcomes[key] = self.test.condition.holds(state)
            if self.keeps:
                self.judgement.witnesses[key] = candidate
            if self.answers(state) and not self.found:
                self.found, self.judgement.witness = True, candidate
        self.judgement.witness = self.judgement.witness or candidate
        if self.keeps:
            self.overrule(candidate)

    def overrule(self, candidate: Candidate) -> None:
        """Record the forbidden variants of an execution in which memory ends with other writes."""
        asked = self.test.condition.names | (self.test.filter.names if self.test.filter else set())
        names = {self.test.physical(name.partition("[")[0]) for name in asked} if self.explains else self.judgement.touched
        for each in overruled(candidate, names, initial=self.explains):
            self.broken(each)

    def broken(self, candidate: Candidate) -> None:
        """Record an execution that breaks an axiom, if it would answer the question and explains best why it cannot.

        An execution explains more if the search has added no coherence order to it.
        """
        x = candidate.execution
        if candidate.broken is None or (self.found and not self.keeps):
            return
        rank = (x.coherence == x.required_coherence, TELLING.index(candidate.broken.name))
        if self.keeps:
            self.refuse(candidate, rank)
        if rank > self.telling and any(self.answers(state) for state in candidate.states()):
            self.telling, self.judgement.forbidden = rank, candidate

    def refuse(self, candidate: Candidate, telling: tuple[bool, int]) -> None:
        """Keep the execution for each final state that it explains best."""
        for state in candidate.states():
            key = tuple(sorted(state.items()))
            if key not in self.judgement.outcomes and telling > self.refused_by.get(key, (False, -1)):
                self.refused_by[key], self.judgement.refusals[key] = telling, candidate

    def touch(self, events: Iterable[Event]) -> None:
        """Record which variables are accessed."""
        self.judgement.touched |= {
            self.test.physical(event.location.variable) for event in events if event.thread is not None and event.location
        }

    def ask(self, question: Question) -> None:
        """Record what z3 finds along some paths: races, an answer to the question, and then further final states."""
        self.touch(question.start.events)
        self.races |= {
            Race(str(first), str(second), str(first.location), mixed_size=False)
            for first, second in ((question.start.events[a], question.start.events[b]) for a, b in question.races())
        }
        formula = self.answers(question.state)
        found = question.holds_for(formula) if not self.found and formula is not False else None
        while found is not None or (found := question.holds_for(True)) is not None:  # noqa: FBT003 - a formula
            state, candidate = question.outcome(found), question.candidate(found)
            if state not in self.judgement.outcomes:
                self.judgement.outcomes[state] = self.test.condition.holds(dict(state))
                if self.keeps:
                    self.judgement.witnesses[state] = candidate
            if self.answers(dict(state)) and not self.found:
                self.found, self.judgement.witness = True, candidate
            self.judgement.witness = self.judgement.witness or candidate
            question.solver.add(question.differs(state))
            found = None
            if len(self.judgement.outcomes) >= OUTCOMES:
                self.judgement.complete = False
                break

    def forget(self) -> None:
        """Drop all results, to begin again."""
        self.judgement.outcomes.clear()
        self.judgement.witnesses.clear()
        self.judgement.witness, self.judgement.complete, self.found, self.races = None, True, False, set()

    def stuck(self, _: Candidate | None = None) -> None:
        """Record an execution whose barriers never open."""
        self.hangs = True

    def ends(self) -> Ending:
        """Does a kernel terminate?  Without loops it does, if its barriers open for all values of reads."""
        if self.test.ending is None or not (self.test.loops or self.hangs):
            return Ending("terminates")
        return self.test.ending()

    def close(self) -> None:
        """Complete the verdict, after all executions."""
        judgement = self.judgement
        for state in judgement.refusals.keys() & judgement.outcomes.keys():
            del judgement.refusals[state]
        judgement.races = sorted(self.races, key=lambda race: (race.first, race.second))
        judgement.verdict = WORDS[self.test.quantifier][not self.found]
        if any(race.mixed_size for race in self.races):
            judgement.verdict = NO_GUARANTEE
        if self.found:
            judgement.forbidden = None

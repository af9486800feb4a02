"""The answer to the question of a litmus test."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.axioms_9_1 import PTX91
from ptxvm.model.enumerate import LOOPS, Candidate, Search
from ptxvm.model.liveness import termination
from ptxvm.model.program import Test

MODELS: dict[str, type[PTX64]] = {"6.4": PTX64, "9.1": PTX91}
WORDS = {"exists": ("allowed", "forbidden"), "not_exists": ("allowed", "forbidden"), "forall": ("violated", "holds")}
"""The verdict where an execution answers the question, and where none does."""
State = tuple[tuple[str, int], ...]
"""A final state: registers and memory, sorted by name."""
NO_GUARANTEE = "no guarantee"
TELLING = ("No Thin Air", "Fence-SC", "SC per Location", "Coherence", "Atomicity of RMW", "Single-Copy Atomicity", "Causality")
"""The axioms, the one that explains best last."""


@dataclass(frozen=True)
class Race:
    """Two conflicting operations that nothing orders (PTX 8.6.1)."""

    first: str
    second: str
    location: str
    mixed_size: bool

    @property
    def kind(self) -> str:
        """PTX 8.6.2."""
        return "mixed-size" if self.mixed_size else "uniform-size"


@dataclass
class Judgement:
    """What the model says of a test."""

    test: Test
    model: str
    verdict: str = ""
    termination: str = ""
    outcomes: dict[State, bool] = field(default_factory=dict)
    """Each final state, and whether it satisfies the condition."""
    witness: Candidate | None = None
    """An execution that shows the verdict, where one can; else one that keeps the axioms."""
    forbidden: Candidate | None = None
    """Where no execution answers the question: one that would, and the axiom that it breaks."""
    races: list[Race] = field(default_factory=list)
    seconds: float = 0.0
    witnesses: dict[State, Candidate] = field(default_factory=dict)
    """Where asked for: of each final state, an execution that ends so."""
    refusals: dict[State, Candidate] = field(default_factory=dict)
    """Where asked for: of each that the axioms forbid, one that would end so, and the axiom that tells best why not."""

    def as_json(self) -> dict[str, Any]:
        """One object, of plain values."""
        return {
            "name": self.test.name,
            "model": self.model,
            "verdict": self.verdict,
            "termination": self.termination,
            "outcomes": [{"state": dict(state), "condition": holds} for state, holds in self.outcomes.items()],
            "races": [vars(race) | {"kind": race.kind} for race in self.races],
            "axiom": self.forbidden.broken.name if self.forbidden and self.forbidden.broken else None,
            "seconds": round(self.seconds, 6),
        }


def judge(test: Test, model: str | type[PTX64] = "9.1", bound: int = LOOPS, *, witnesses: bool = False) -> Judgement:
    """Enumerate the executions of a test and answer its question; with `witnesses`, keep one for each final state."""
    started = time.perf_counter()
    axioms = MODELS[model] if isinstance(model, str) else model
    judgement = Judgement(test, axioms.name)
    inquiry = _Inquiry(judgement, keeps=witnesses)
    for candidate in Search(test, axioms, bound, on_broken=inquiry.broken, on_stuck=inquiry.stuck).run():
        inquiry.kept(candidate)
    inquiry.close()
    judgement.termination = termination(test) if test.ways is None else inquiry.ends()
    judgement.seconds = time.perf_counter() - started
    return judgement


class _Inquiry:
    """Collects what the executions say."""

    def __init__(self, judgement: Judgement, *, keeps: bool = False) -> None:
        self.judgement, self.test, self.keeps = judgement, judgement.test, keeps
        self.told: dict[State, tuple[bool, int]] = {}
        self.found, self.telling, self.races = False, (False, -1), set[Race]()
        self.hangs = False

    def answers(self, state: Mapping[str, int]) -> bool:
        """Is it the state of which the question asks whether there is one?"""
        if self.test.filter and not self.test.filter.holds(state):
            return False
        return self.test.condition.holds(state) != (self.test.quantifier == "forall")

    def kept(self, candidate: Candidate) -> None:
        """An execution that keeps all axioms."""
        x = candidate.execution
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

    def broken(self, candidate: Candidate) -> None:
        """One that breaks an axiom; kept if it would answer the question, and tells best why it cannot be.

        It tells more if no write was put before another only to try that order.
        """
        x = candidate.execution
        if candidate.broken is None or (self.found and not self.keeps):
            return
        telling = (x.coherence == x.required_coherence, TELLING.index(candidate.broken.name))
        if self.keeps:
            self.refuse(candidate, telling)
        if telling > self.telling and any(self.answers(state) for state in candidate.states()):
            self.telling, self.judgement.forbidden = telling, candidate

    def refuse(self, candidate: Candidate, telling: tuple[bool, int]) -> None:
        """Keep it for each final state of which it tells best why it is none."""
        for state in candidate.states():
            key = tuple(sorted(state.items()))
            if key not in self.judgement.outcomes and telling > self.told.get(key, (False, -1)):
                self.told[key], self.judgement.refusals[key] = telling, candidate

    def stuck(self, candidate: Candidate) -> None:
        """One whose barriers never open."""
        del candidate
        self.hangs = True

    def ends(self) -> str:
        """Does a kernel come to its end?  Of loops no more is known than that they may take so many turns."""
        return "may_hang" if self.hangs else "unknown" if self.test.loops else "terminates"

    def close(self) -> None:
        """The verdict, when all executions are known."""
        judgement = self.judgement
        for state in judgement.refusals.keys() & judgement.outcomes.keys():
            del judgement.refusals[state]
        judgement.races = sorted(self.races, key=lambda race: (race.first, race.second))
        judgement.verdict = WORDS[self.test.quantifier][not self.found]
        if any(race.mixed_size for race in self.races):
            judgement.verdict = NO_GUARANTEE
        if self.found:
            judgement.forbidden = None

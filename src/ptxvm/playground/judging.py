"""Judges litmus tests for the page: every outcome, with an execution of it drawn, and why others are none."""

from __future__ import annotations

from ptxvm.diagnostics import listed
from ptxvm.model import MODELS, Judgement, NotALitmusTest, judge, read_litmus
from ptxvm.model.conditions import CannotSolve, place_of
from ptxvm.model.deadline import OutOfTime, time_limit
from ptxvm.model.drawing import svg
from ptxvm.model.enumerate import Candidate
from ptxvm.model.verdict_report import QUESTIONS, report
from ptxvm.playground.requests import LitmusRequest, RequestError

SECONDS = 20.0


def judged(request: LitmusRequest) -> dict[str, object]:
    """The answer of the model to a test."""
    if request.model not in MODELS:
        raise RequestError(f"there is no model '{request.model}'; there are {listed(list(MODELS))}")
    try:
        with time_limit(SECONDS):
            return document(judge(read_litmus(request.source), request.model, witnesses=True, solver="search"))
    except NotALitmusTest as wrong:
        raise RequestError(f"{place_of(wrong, request.source)}{wrong}") from None
    except (CannotSolve, OutOfTime) as wrong:
        raise RequestError(str(wrong)) from None


def document(judgement: Judgement) -> dict[str, object]:
    """A judgement, with its drawings."""
    test = judgement.test
    outcomes = [
        {"state": dict(state), "condition": holds, "allowed": True, "drawing": drawn(judgement.witnesses.get(state))}
        for state, holds in judgement.outcomes.items()
    ]
    refused = [
        {"state": dict(state), "condition": True, "allowed": False, "axiom": axiom(candidate), "drawing": drawn(candidate)}
        for state, candidate in sorted(judgement.refusals.items())
    ]
    return {
        "name": test.name,
        "question": f"{QUESTIONS[test.quantifier]} {test.condition}",
        "verdict": judgement.verdict,
        "outcomes": [*outcomes, *refused],
        "races": [f"{race.first} and {race.second}" for race in judgement.races],
        "explained": drawn(judgement.forbidden) if judgement.forbidden is not None else None,
        "axiom": axiom(judgement.forbidden),
        "report": "\n".join(report(judgement)),
    }


def axiom(candidate: Candidate | None) -> str:
    """The axiom that an execution breaks."""
    return candidate.broken.name if candidate is not None and candidate.broken is not None else ""


def drawn(candidate: Candidate | None) -> str | None:
    """The graph of an execution."""
    return svg(candidate) if candidate is not None else None


__all__ = ["judged"]

"""What a judgement says, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.model.enumerate import Candidate
from ptxvm.model.events import Kind
from ptxvm.model.explain import EDGES, cycle
from ptxvm.model.judge import MODELS, NO_GUARANTEE, Judgement

QUESTIONS = {"exists": "exists", "not_exists": "~exists", "forall": "forall"}
ENDS = {
    "terminates": "every fair schedule ends",
    "may_hang": "a fair schedule may never end",
    "unknown": "whether every fair schedule ends is not known",
}


def report(judgement: Judgement) -> Iterator[str]:
    """The verdict, all outcomes, the races, and what shows the verdict."""
    test = judgement.test
    yield f"{test.name} (PTX {judgement.model}): {judgement.verdict}"
    yield f"  {QUESTIONS[test.quantifier]} {test.condition}" + (f", where {test.filter}" if test.filter else "")
    yield f"  {ENDS[judgement.termination]}"
    if judgement.verdict == NO_GUARANTEE:
        yield f"  a mixed-size data race ends what the axioms promise ({MODELS[judgement.model].mixed_size_section})"
    yield ""
    yield from outcomes(judgement)
    for race in judgement.races:
        yield f"  {race.kind} data race on {race.location}: {race.first}  |  {race.second}"
    if judgement.witness and judgement.forbidden is None:
        yield ""
        yield "  witness"
        yield from table(judgement.witness)
    if judgement.forbidden:
        yield ""
        yield from refusal(judgement.forbidden)


def outcomes(judgement: Judgement) -> Iterator[str]:
    """A line for each final state, those of the condition marked."""
    if not judgement.outcomes:
        yield "  no execution comes to an end"
        return
    names = [name for name, _ in next(iter(judgement.outcomes))]
    rows = [[str(value) for _, value in state] for state in judgement.outcomes]
    widths = [max(len(name), *(len(row[n]) for row in rows)) for n, name in enumerate(names)]
    yield "    " + "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
    marked = sorted(zip(rows, judgement.outcomes.values(), strict=True))
    for row, holds in marked:
        cells = "  ".join(value.rjust(width) for value, width in zip(row, widths, strict=True))
        yield f"  {'*' if holds else ' '} {cells}"
    yield ""


def table(candidate: Candidate) -> Iterator[str]:
    """Each event of an execution, and from where it reads."""
    x = candidate.execution
    wide = max(len(event.text) for event in x.events)
    for i, event in enumerate(x.events):
        if event.thread is None or event.kind is Kind.WAIT:
            continue
        line = f"    {event.thread.name}  {event.kind.value:<2} {event.text:<{wide}}"
        if event.kind is Kind.READ:
            writes = dict.fromkeys(x.sources[i, cell] for cell in x.cells[i])
            line += f"  = {candidate.known[event.key]}, from {' and '.join(str(x.events[w]) for w in writes)}"
        yield line.rstrip()


def refusal(candidate: Candidate) -> Iterator[str]:
    """The axiom that an execution breaks, and the cycle."""
    assert candidate.broken  # noqa: S101 - for mypy; only a candidate that breaks one is forbidden
    x = candidate.execution
    yield f"  forbidden by {candidate.broken.name} ({candidate.broken.section(type(x))})"
    found = cycle(candidate)
    first = max(len(str(x.events[step.first])) for step in found)
    second = max(len(str(x.events[step.second])) for step in found)
    for step in found:
        before, after = x.events[step.first], x.events[step.second]
        yield f"    {before!s:<{first}}  {step.edge:<5} {after!s:<{second}}  ({EDGES[step.edge]})"

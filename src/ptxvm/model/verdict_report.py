"""The text of a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from textwrap import wrap

from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.cycle_explanation import EDGES, cycle
from ptxvm.model.enumerate import Candidate
from ptxvm.model.judge import MODELS, NO_GUARANTEE, Judgement, State
from ptxvm.model.memory_events import EventKind
from ptxvm.model.relations import Relation
from ptxvm.model.values import evaluate

WIDTH = 80
MANY = 40
"""The most pairs of a relation that are listed."""
QUESTIONS = {"exists": "exists", "not_exists": "~exists", "forall": "forall"}
ENDS = {
    "terminates": "every fair schedule ends",
    "may_hang": "a fair schedule may never end",
    "unknown": "whether every fair schedule ends is not known",
}


def report(judgement: Judgement, *, every: bool = False) -> Iterator[str]:
    """The report of a verdict: all outcomes, the races, and an execution that shows the verdict, or one for each outcome."""
    test = judgement.test
    yield f"{test.name} (PTX {judgement.model}): {judgement.verdict}"
    yield f"  {QUESTIONS[test.quantifier]} {test.condition}" + (f", where {test.filter}" if test.filter else "")
    yield f"  {ENDS[judgement.termination]}"
    for why in judgement.why:
        yield from wrap(why, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    if judgement.verdict == NO_GUARANTEE:
        yield f"  a mixed-size data race ends what the axioms promise ({MODELS[judgement.model].mixed_size_section})"
    yield ""
    yield from outcomes(judgement)
    yield from races(judgement)
    if every:
        yield from every_witness(judgement)
    elif judgement.forbidden:
        yield ""
        yield from refusal(judgement.forbidden)
    elif judgement.witness:
        yield ""
        yield "  witness"
        yield from table(judgement.witness)


def outcomes(judgement: Judgement) -> Iterator[str]:
    """A line for each final state; those that satisfy the condition are marked."""
    if not judgement.outcomes:
        yield "  no execution comes to an end"
        return
    asked = judgement.test.condition.names | (judgement.test.filter.names if judgement.test.filter else set())
    names = [name for name, _ in next(iter(judgement.outcomes)) if name in asked or is_touched(judgement, name)]
    if sum(len(name) + 2 for name in names) + 2 > WIDTH:  # only what the question asks for
        names = [name for name in names if name in asked] or names
    rows = sorted({(tuple(dict(state)[name] for name in names), holds) for state, holds in judgement.outcomes.items()})
    widths = [max(len(name), *(len(str(row[n])) for row, _ in rows)) for n, name in enumerate(names)]
    yield "    " + "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
    for row, holds in rows:
        cells = "  ".join(str(value).rjust(width) for value, width in zip(row, widths, strict=True))
        yield f"  {'*' if holds else ' '} {cells}"
    if not judgement.complete:
        yield "    and more"


def is_touched(judgement: Judgement, name: str) -> bool:
    """Is it a register, or memory that some thread accesses?"""
    return ":" in name or judgement.test.physical(name.partition("[")[0]) in judgement.touched


def races(judgement: Judgement) -> Iterator[str]:
    """The pairs that nothing orders."""
    for race in judgement.races:
        yield ""
        yield f"  {race.kind} data race on {race.location}"
        yield from columns(" " * 4, str(race.first), 0, "")
        yield from columns(" " * 4, str(race.second), 0, "")


# ── executions ──────────────────────────────────────────────────────────────────────────


def every_witness(judgement: Judgement) -> Iterator[str]:
    """An execution for each final state; for a forbidden one also the reason."""
    for state, candidate in sorted(judgement.witnesses.items()):
        yield ""
        yield from columns("  allowed: ", shown(state), 0, "")
        yield from table(candidate)
    for state, candidate in sorted(judgement.refusals.items()):
        yield ""
        yield from columns("  not allowed: ", shown(state), 0, "")
        yield from refusal(candidate)


def shown(state: State) -> str:
    """A final state as `P0:r0 = 1, x = 2`."""
    return ", ".join(f"{name} = {value}" for name, value in state)


def table(candidate: Candidate) -> Iterator[str]:
    """The events of an execution with their numbers, the sources of reads, and the relations between events."""
    x = candidate.execution
    number = numbered(x)
    lines = []
    for i in number:
        event = x.events[i]
        note = ""
        if event.kind is EventKind.READ:
            writes = dict.fromkeys(x.sources[i, cell] for cell in x.cells[i])
            note = f"reads {candidate.known[event.key]} from {' and '.join(str(number[w]) for w in writes)}"
        elif event.kind is EventKind.WRITE and event.thread is not None:
            value = evaluate(event.value, candidate.known)
            note = "" if not event.atomic and value in numbers_of(event.text) else f"writes {value}"
        elif event.kind in (EventKind.ARRIVAL, EventKind.WAIT):
            note = "arrives" if event.kind is EventKind.ARRIVAL else "waits"
        lines.append((number[i], event.thread.name if event.thread else "first", event.text, note))
    names = max(len(name) for _, name, _, _ in lines)
    wide = min(max(len(text) for _, _, text, _ in lines), WIDTH - 28 - names)
    for n, name, text, note in lines:
        yield from columns(f"    {n:>2}  {name:<{names}}  ", text, wide, note)
    yield from related(x, number)


def columns(head: str, text: str, wide: int, note: str) -> Iterator[str]:
    """A row of a table; long text continues below its start, and the note follows the text if there is room."""
    whole = text.replace(" = ", "\xa0=\xa0")
    *lines, last = [line.replace("\xa0", " ") for line in wrap(whole, WIDTH - len(head), break_long_words=False)] or [""]
    below = " " * len(head)
    heads = chain([head], repeat(below))
    yield from (next(heads) + line for line in lines)
    row = f"{next(heads)}{last:<{wide}}  {note}".rstrip()
    if len(row) <= WIDTH:
        yield row
    else:
        yield row.removesuffix(note).rstrip()
        yield f"{below}  {note}"


def numbers_of(text: str) -> list[int]:
    """The numbers among the values of a store, from its text."""
    return [int(word, 0) for word in re.findall(r"-?\b(?:0x[0-9a-fA-F]+|\d+)\b", text.partition(",")[2])]


def numbered(x: PTX64) -> dict[int, int]:
    """The events that a table shows, numbered from 1; an initial write only if it is read."""
    read = set(x.sources.values())
    chosen = [i for i, event in enumerate(x.events) if event.thread is not None or i in read]
    return {i: n for n, i in enumerate(chosen, 1)}


def related(x: PTX64, number: Mapping[int, int]) -> Iterator[str]:
    """The relations of an execution, without the pairs that others on the same line imply."""
    co = x.coherence.between(~x.initial, ~0)
    cause = (x.causality & x.overlap) - x.same_thread
    lines = {
        "co": co - co.then(co),
        "fr": x.from_reads - x.from_reads.then(x.coherence) - x.read_modify_write,
        "sync": x.synchronizes - x.same_thread,
        "cause": cause - cause.then(x.coherence),
    }
    for name, relation in lines.items():
        pairs = [f"{number[a]} \N{RIGHTWARDS ARROW} {number[b]}" for a, b in _known(relation, number)]
        more = f", and {len(pairs) - MANY} more" if len(pairs) > MANY else ""
        if pairs:
            whole = ", ".join(pair.replace(" ", "\xa0") for pair in pairs[:MANY]) + more
            lines_of = wrap(whole, WIDTH, initial_indent=f"    {name:<5} ", subsequent_indent=" " * 10)
            yield from (line.replace("\xa0", " ") for line in lines_of)


def _known(relation: Relation, number: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    return ((a, b) for a, b in relation if a in number and b in number and a != b)


def refusal(candidate: Candidate) -> Iterator[str]:
    """The axiom that an execution breaks, and its cycle: each event, and the relation that leads to it."""
    assert candidate.broken  # noqa: S101 - for mypy; only a candidate that breaks one is forbidden
    x = candidate.execution
    yield f"  forbidden by {candidate.broken.name} ({candidate.broken.section(type(x))})"
    found = cycle(candidate)
    texts = [str(x.events[step.second]) for step in found]
    wide = min(max(map(len, texts)), WIDTH - 32)
    yield from columns(" " * 11, str(x.events[found[0].first]), 0, "")
    for step, text in zip(found, texts, strict=True):
        yield from columns(f"    {step.edge:<5}  ", text, wide, EDGES[step.edge])

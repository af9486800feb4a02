"""Failures made small: the simplest parameters that fail alike, then the fewest statements of the PTX (delta debugging).

What is left fails with the same verdict and kind and, of faults and findings, at the same line: statements are blanked,
so that lines keep their numbers, and the text is printed anew at the end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ptxvm.campaign.case import DISAGREE, Runner
from ptxvm.campaign.declaration import Declaration
from ptxvm.campaign.outcome import TRIAL, Job, Outcome, Verdict
from ptxvm.campaign.parameter_space import Position
from ptxvm.campaign.results import Case
from ptxvm.dataclass import dataclass
from ptxvm.syntax import parse, print_module, tree
from ptxvm.syntax.source import Source

PATIENCE = 30.0  # seconds for each failure
OF_THE_TEXT = (Verdict.FAULT, Verdict.FINDING, Verdict.ERROR, Verdict.DIED)
"""Failures that stay the same when instructions go; where results differ from a reference, they always do without some."""
Extent = tuple[int, int]
"""The first character of a part of a text, and that behind it."""


@dataclass(frozen=True)
class Small:
    """A failure made small: its case, the parameters, the text of the kernel where that was made smaller, and how it fails."""

    case: Case
    parameters: dict[str, object]
    text: str | None
    outcome: Outcome


def smaller(declaration: Declaration, case: Case, runner: Runner) -> Small:
    """Make a failure small, in limited time; one that takes too long stays as it is."""
    if case.outcome.verdict is Verdict.TIMEOUT:
        return Small(case, case.parameters, None, case.outcome)
    until = time.monotonic() + PATIENCE
    trial = Trial(runner, case.outcome, until)
    space = declaration.space
    position = simplest(space.position(case.number), lambda at: trial.fails(space.parameters(at), None))
    parameters = space.parameters(position)
    text = None
    if declaration.subject.kernel and (case.outcome.verdict in OF_THE_TEXT or case.outcome.kind == DISAGREE):
        whole = Path(declaration.folder, declaration.subject.kernel).read_text(encoding="utf-8", errors="surrogateescape")
        if trial.fails(parameters, whole):
            left = fewest(whole, statement_extents(whole), lambda some: trial.fails(parameters, some))
            text = printed(left, trial, parameters)
    return Small(case, parameters, text, trial.last or case.outcome)


@dataclass
class Trial:
    """Runs smaller cases until a time; tells whether they fail alike, and keeps the last outcome that did."""

    runner: Runner
    wanted: Outcome
    until: float
    last: Outcome | None = None

    def fails(self, parameters: dict[str, object], text: str | None, *, anywhere: bool = False) -> bool:
        """Does it fail alike?  At the same place, unless that does not matter."""
        if time.monotonic() > self.until:
            return False
        job = Job(TRIAL, parameters, text)
        found = next(each.outcome for done in self.runner.outcomes(iter([job])) for each in done)
        placed = anywhere or line_of(found.place) == line_of(self.wanted.place)
        if found.is_as(self.wanted) and placed:
            self.last = found
            return True
        return False


def line_of(place: str) -> str:
    """The line of a place: a text has no file."""
    return place.rpartition(":")[2]


# ── parameters ──────────────────────────────────────────────────────────────────────────


def simplest(start: Position, fails: Callable[[Position], bool]) -> Position:
    """The position at which no parameter can be simpler, each on its own: towards the first of its values."""
    found = start
    for _ in range(len(start) + 1):
        before = found
        for axis in range(len(start)):
            found = lowered(found, axis, fails)
        if found == before:
            break
    return found


def lowered(position: Position, axis: int, fails: Callable[[Position], bool]) -> Position:
    """The position with one index as small as halving steps find it."""
    step = position[axis]
    while step:
        index = position[axis] - step
        candidate = (*position[:axis], index, *position[axis + 1 :])
        if index >= 0 and fails(candidate):
            position = candidate
            step = min(step, index)
        else:
            step //= 2
    return position


# ── the text ────────────────────────────────────────────────────────────────────────────


def fewest(text: str, kept: list[Extent], fails: Callable[[str], bool]) -> str:
    """The text without the parts that the failure does not need (Zeller and Hildebrandt 2002: ddmin's complements)."""
    size = max(1, len(kept) // 2)
    while kept:
        before, at = len(kept), 0
        while at < len(kept):
            if fails(shorter := blanked(text, kept[at : at + size])):
                text, kept = shorter, kept[:at] + kept[at + size :]
            else:
                at += size
        if size == 1 and len(kept) == before:
            break
        size = max(1, size // 2)
    return text


def statement_extents(text: str) -> list[Extent]:
    """Where the statements of a text are, those in blocks too."""
    module, _ = parse(Source(text))
    return [(each.start, each.end) for each in statements(module)]


def word_extents(text: str) -> list[Extent]:
    """Where its words are, between blanks: of a text that may be no PTX."""
    return [each.span() for each in re.finditer(r"\S+", text)]


def statements(module: tree.Module) -> Iterator[tree.Statement]:
    """All statements, those in blocks too, in the order of the text."""
    waiting: list[tree.Statement] = module.statements[::-1]
    while waiting:
        each = waiting.pop()
        yield each
        inner = each.body if isinstance(each, tree.Function) else each
        if isinstance(inner, tree.Block):
            waiting += inner.statements[::-1]


def blanked(text: str, spans: Sequence[Extent]) -> str:
    """The text with blanks in place of some of its spans; lines stay where they are."""
    pieces, at = [], 0
    for start, end in spans:
        if start >= at:  # else it is within the one before
            pieces += [text[at:start], "".join("\n" if each == "\n" else " " for each in text[start:end])]
            at = end
    return "".join([*pieces, text[at:]])


def printed(text: str, trial: Trial, parameters: dict[str, object]) -> str:
    """The text without blanks and comments, if it fails so, too."""
    module, _ = parse(Source(text))
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    return next((each for each in (print_module(module), lines) if trial.fails(parameters, each, anywhere=True)), text)


__all__ = ["Small", "Trial", "fewest", "smaller", "statement_extents", "word_extents"]

"""Tests that repeat what fuzzing found: a file of pytest for each finding, with the text that was run, made small."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from ptxvm.campaign.case import Runner
from ptxvm.campaign.fuzz.workload import Kind
from ptxvm.campaign.outcome import Verdict
from ptxvm.campaign.reproduction import one_line
from ptxvm.campaign.results import Reason
from ptxvm.campaign.shrink import PATIENCE, Trial, fewest, statement_extents, word_extents

TEST = """\"\"\"Fuzzing of {kind} found in case {number}: {reason}.\"\"\"

from pathlib import Path

from ptxvm.campaign.fuzz.workload import repeat


def test_{name}():
    repeat({kind!r}, Path(__file__).with_suffix({suffix!r}).read_text(encoding="utf-8"))
"""
SUFFIXES = {Kind.TEXT: ".ptx", Kind.STATEMENTS: ".ptx", Kind.KERNELS: ".ptx", Kind.ENGINES: ".number", Kind.LITMUS: ".litmus"}
MOST = 50  # findings


def write_cases(folder: Path, kind: Kind, seed: int, reasons: Sequence[Reason], runner: Runner) -> list[Path]:
    """Write a test for each finding; gives the files."""
    written: list[Path] = []
    for reason in reasons[:MOST]:
        case = reason.first
        name = re.sub(r"\W+", "_", f"fuzz {kind} {seed} {case.outcome.kind or case.outcome.verdict} {case.number}").strip("_")
        file = folder / f"test_{name}.py"
        text = smaller(kind, reason, runner)
        file.with_suffix(SUFFIXES[kind]).write_text(text, encoding="utf-8", errors="surrogateescape")
        said = {"kind": str(kind), "number": case.number, "reason": one_line(case.outcome.reason), "name": name}
        file.write_text(TEST.format(suffix=SUFFIXES[kind], **said), encoding="utf-8")
        written.append(file)
    return written


def smaller(kind: Kind, reason: Reason, runner: Runner) -> str:
    """The text of a finding without what it does not need; one that takes too long stays as it is."""
    text, found = str(reason.first.parameters["text"]), reason.first.outcome
    if kind is Kind.LITMUS or found.verdict is Verdict.TIMEOUT:
        return text
    trial = Trial(runner, found, time.monotonic() + PATIENCE)
    if kind is Kind.ENGINES:
        from ptxvm.campaign.random_kernels.kernels import all_positions  # noqa: PLC0415 - it imports all declarations

        text = all_positions(text)
    extents = statement_extents(text) if kind is Kind.KERNELS else word_extents(text)[kind is Kind.ENGINES :]
    if not trial.fails({}, text):
        return text
    found_text = fewest(text, extents, lambda some: trial.fails({}, some))
    tidy = without_blank_lines(found_text)
    return tidy if trial.fails({}, tidy) else found_text


def without_blank_lines(text: str) -> str:
    """A text without lines of blanks, and without those at the ends of lines: words that are left out leave theirs."""
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n") if line.strip())


__all__ = ["write_cases"]

"""`ptxvm litmus`: what the memory consistency model says of litmus tests."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from ptxvm.cli.failures import WrongCall
from ptxvm.litmus import read
from ptxvm.model import MODELS, Judgement, NotALitmusTest, Test, judge
from ptxvm.model.conditions import CannotSolve
from ptxvm.model.graph import svg
from ptxvm.model.judge import SOLVERS, SolverMissing
from ptxvm.model.report import report

FORMATS = ("text", "json")


def litmus(
    files: Sequence[str], model: str, form: str, drawings: str | None, *, witnesses: bool = False, solver: str = "auto"
) -> int:
    """Judge every test of these files, in their order; drawn are all final states, allowed and forbidden."""
    if model not in MODELS:
        raise WrongCall(f"--model is {' or '.join(MODELS)}, not '{model}'")
    if form not in FORMATS:
        raise WrongCall(f"--format is {' or '.join(FORMATS)}, not '{form}'")
    if solver not in SOLVERS:
        raise WrongCall(f"--solver is {', '.join(SOLVERS[:-1])} or {SOLVERS[-1]}, not '{solver}'")
    for name, test in [(file, test) for file in files for test in tests_of(file)]:
        judgement = judged(test, model, solver, witnesses=witnesses or drawings is not None)
        if form == "json":
            print(json.dumps(judgement.as_json() | {"file": name}))
        else:
            print("\n".join(report(judgement, every=witnesses)) + "\n")
        if drawings:
            draw(judgement, Path(drawings))
    return 0


def judged(test: Test, model: str, solver: str, *, witnesses: bool) -> Judgement:
    """The answer; a solver that is missing or cannot ends the command."""
    try:
        return judge(test, model, witnesses=witnesses, solver=solver)
    except (SolverMissing, CannotSolve) as wrong:
        raise WrongCall(f"{test.name}: {wrong}") from wrong


def tests_of(file: str) -> list[Test]:
    """The tests of a file; one that is none ends the command."""
    try:
        return read(file)
    except OSError as wrong:
        raise WrongCall(f"{file}: {wrong.strerror or wrong}") from wrong
    except NotALitmusTest as wrong:
        raise WrongCall(f"{file}: {wrong}") from wrong


def draw(judgement: Judgement, folder: Path) -> None:
    """Write the graph of the execution that shows the verdict, and of one for each final state."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.+-]", "_", judgement.test.name)
    drawn = {name: judgement.forbidden or judgement.witness}
    for kind, candidates in (("allowed", judgement.witnesses), ("forbidden", judgement.refusals)):
        drawn |= {f"{name}.{kind}-{n}": candidate for n, (_, candidate) in enumerate(sorted(candidates.items()), 1)}
    for stem, candidate in drawn.items():
        if candidate is not None:
            (folder / f"{stem}.svg").write_text(svg(candidate), encoding="utf-8")

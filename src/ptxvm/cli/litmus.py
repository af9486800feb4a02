"""`ptxvm litmus`: the verdicts of the memory consistency model on litmus tests."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ptxvm.cli.failures import InFile, WrongCall
from ptxvm.cli.terminal import working
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault, InvalidPTX
from ptxvm.litmus import State, machines, observe, read
from ptxvm.model import MODELS, Judgement, NotALitmusTest, Test, judge
from ptxvm.model.conditions import CannotSolve, place_of
from ptxvm.model.deadline import OutOfTime, time_limit
from ptxvm.model.drawing import svg
from ptxvm.model.judge import SOLVERS, SolverMissing
from ptxvm.model.translate import Untranslatable
from ptxvm.model.verdict_report import report, shown as states
from ptxvm.syntax.source import Source

FORMATS = ("text", "json")


def litmus(
    files: Sequence[str],
    model: str,
    form: str,
    drawings: str | None,
    *,
    witnesses: bool = False,
    solver: str = "auto",
    runs: int = 0,
    limit: float = 60,
) -> int:
    """Judge every test of these files, in their order; drawn are all final states, allowed and forbidden."""
    if model not in MODELS:
        raise WrongCall(f"--model is {' or '.join(MODELS)}, not '{model}'")
    if form not in FORMATS:
        raise WrongCall(f"--format is {' or '.join(FORMATS)}, not '{form}'")
    if solver not in SOLVERS:
        raise WrongCall(f"--solver is {', '.join(SOLVERS[:-1])} or {SOLVERS[-1]}, not '{solver}'")
    every = [(file, test) for file in files for test in tests_of(file)]
    began = time.monotonic()
    for number, (name, test) in enumerate(every, 1):
        which = f"{test.name}, {number} of {len(every)}" if len(every) > 1 else test.name
        share = (number - 1) / len(every) if len(every) > 1 else None
        with working(f"judging {which}", share, began=began), time_limit(limit):
            judgement = judged(name, test, model, solver, witnesses=witnesses or drawings is not None)
        shown = None
        if runs:
            with working(f"running {which}", share, began=began):
                shown = seen(judgement, name, runs)
        if form == "json":
            print(json.dumps(judgement.as_json() | {"file": name} | (shown.as_json() if shown else {})))
        else:
            print("\n".join([*report(judgement, every=witnesses), *(shown.lines() if shown else [])]) + "\n")
        if drawings:
            draw(judgement, Path(drawings))
    return 0


def judged(file: str, test: Test, model: str, solver: str, *, witnesses: bool) -> Judgement:
    """The answer; a solver that is missing or cannot, or a kernel that does something wrong, ends the command."""
    try:
        return judge(test, model, witnesses=witnesses, solver=solver)
    except (SolverMissing, CannotSolve) as wrong:
        raise WrongCall(f"{test.name}: {wrong}") from wrong
    except OutOfTime as wrong:
        other = "" if solver == "z3" else ", --solver z3 is faster where many stores and loads may meet"
        raise WrongCall(f"{file}: {test.name}: {wrong}; --limit allows more{other}") from wrong
    except Fault as wrong:
        raise InFile(Source.read(file), wrong) from wrong


@dataclass(frozen=True)
class ObservedOutcomes:
    """What so many runs of the interpreter showed, part by part of the outcomes that they can tell apart."""

    runs: int
    times: Mapping[State | None, int]
    """Of each final state, and of not coming to an end."""
    allowed: frozenset[State]
    not_expressible: str = ""
    """Why no kernel can say the test."""

    @property
    def sorted(self) -> list[tuple[State | None, int]]:
        """The final states in their order, no end last."""
        return sorted(self.times.items(), key=lambda each: (each[0] is None, each[0] or ()))

    def lines(self) -> Iterator[str]:
        """A table."""
        yield ""
        if self.not_expressible:
            yield f"  no kernel can say this test: {self.not_expressible}"
            return
        yield f"  seen in {self.runs} runs of the interpreter"
        for state, times in self.sorted:
            wrong = "" if state is None or state in self.allowed else "   which the model forbids"
            yield f"    {times:>5}  {'no end' if state is None else states(state)}{wrong}"
        if missing := len(self.allowed - self.times.keys()):
            yield f"    {0:>5}  of {missing} more that the model allows"

    def as_json(self) -> dict[str, object]:
        """Plain values; the state of a run that does not end is null."""
        if self.not_expressible:
            return {"runs": 0, "untold": self.not_expressible}
        unseen = [(state, 0) for state in sorted(self.allowed - self.times.keys())]
        return {
            "runs": self.runs,
            "seen": [
                {
                    "state": None if state is None else dict(state),
                    "count": times,
                    "allowed": state is None or state in self.allowed,
                }
                for state, times in [*self.sorted, *unseen]
            ],
        }


def seen(judgement: Judgement, file: str, runs: int) -> ObservedOutcomes:
    """Run the interpreter in so many random schedules."""
    try:
        shown = observe(machines(judgement.test, file), runs)
    except Untranslatable as why:
        return ObservedOutcomes(runs, {}, frozenset(), str(why))
    known = {name for state in shown if state is not None for name, _ in state}
    allowed = frozenset(tuple(pair for pair in state if pair[0] in known) for state in judgement.outcomes)
    named = {name for state in allowed for name, _ in state}
    counts = Counter[State | None]()
    for state, times in shown.items():
        counts[None if state is None else tuple(pair for pair in state if pair[0] in named)] += times
    return ObservedOutcomes(runs, counts, allowed)


def tests_of(file: str) -> list[Test]:
    """The tests of a file; one that is none ends the command."""
    try:
        return read(file)
    except OSError as wrong:
        raise WrongCall(f"{file}: {wrong.strerror or wrong}") from wrong
    except NotALitmusTest as wrong:
        place = place_of(wrong, Path(file).read_text(encoding="utf-8", errors="replace"))
        raise WrongCall(f"{file}:{place or ' '}{wrong}") from wrong
    except InvalidPTX as wrong:
        raise InFile(Source.read(file), wrong) from wrong


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

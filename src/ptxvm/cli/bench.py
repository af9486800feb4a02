"""`ptxvm bench`: runs the benchmarks of the repository, and prints what they measure."""

from __future__ import annotations

import importlib.util
import json as encoder
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

from rich.text import Text

from ptxvm.cli import checkout
from ptxvm.cli.failures import FINDINGS, WrongCall, say
from ptxvm.cli.terminal import console, tabulated, working
from ptxvm.diagnostics import did_you_mean

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def bench(names: Sequence[str], repeat: int, shared: str | None, *, json: bool, large: bool = False) -> int:
    """Run some benchmarks, or all; 1 where a result was wrong."""
    suite = load_suite()
    for name in names:
        if name not in suite.BENCHMARKS:
            guess = did_you_mean(name, suite.BENCHMARKS) or f"there are {', '.join(suite.BENCHMARKS)}"
            raise WrongCall(f"no benchmark is called '{name}'; {guess}")
    if shared is not None and not Path(shared).is_dir():
        raise WrongCall(f"--shared: '{shared}' is not a folder")
    setup = suite.Setup(repeat, large=large, **({"shared": Path(shared)} if shared else {}))
    found = list(measurements(suite, names or list(suite.BENCHMARKS), setup))
    if json:
        print(encoder.dumps({"machine": suite.machine(), "measurements": [m.as_json() for m in found]}, indent=2))
    else:
        print_measurements(found)
    wrong = [m.name for m in found if m.correct is False]
    if wrong:
        return say(f"ptxvm bench: wrong results: {', '.join(wrong)}", FINDINGS)
    return 0


def print_names() -> int:
    """The benchmarks as the suite declares them, each with what it measures."""
    rows = [(name, str(measure.__doc__ or "").partition("\n")[0]) for name, measure in load_suite().BENCHMARKS.items()]
    console().print(tabulated(("", "measures"), rows))
    return 0


class Measurement(Protocol):
    """What a benchmark gives (`benchmarks/suite.py`)."""

    name: str
    what: str
    unit: str
    work: float
    goal: float | None
    correct: bool | None
    seconds: Sequence[float]

    @property
    def values(self) -> Sequence[float]:
        """The figures of its runs."""
        ...

    @property
    def median(self) -> float:
        """Their median."""
        ...

    def as_json(self) -> dict[str, object]:
        """All of it, for tools."""
        ...

    @property
    def is_met(self) -> bool:
        """Is the goal met?"""
        ...


def load_suite() -> ModuleType:
    """The module with the benchmarks, which is part of the repository and not of the package."""
    path = checkout.BENCHMARKS
    if not path.exists():
        raise WrongCall(f"the benchmarks are part of the repository, not of the package, and {path} is missing")
    spec = importlib.util.spec_from_file_location("ptxvm_benchmarks", path)
    if spec is None or spec.loader is None:
        raise WrongCall(f"{path} cannot be loaded")
    suite = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = suite
    spec.loader.exec_module(suite)
    return suite


def measurements(suite: ModuleType, names: Sequence[str], setup: object) -> Iterator[Measurement]:
    """Run them one after the other; what lacks its data is skipped, and says so."""
    for name in names:
        running = suite.BENCHMARKS[name](setup)
        while True:
            try:
                with working(f"measuring {name}"):
                    measured = next(running, None)
            except suite.Missing as missing:
                say(f"ptxvm bench: {name} is skipped: {missing}", 0)
                break
            if measured is None:
                break
            yield measured


def print_measurements(found: Sequence[Measurement]) -> None:
    """A line for each, with the range of its runs."""
    rows = [
        (
            m.name,
            scaled(m, m.median),
            scaled(m, min(m.values), max(m.values)),
            goal(m),
            {True: "right", False: "WRONG", None: ""}[m.correct],
            m.what,
        )
        for m in found
    ]
    if rows:
        console().print(tabulated(("", "median", "range", "goal", "result", "of"), rows, {1, 2, 3}), soft_wrap=True)
    units = dict.fromkeys(m.unit for m in found if m.work)
    if units:
        console().print(Text(f"\nMedians of {max(len(m.seconds) for m in found)} runs; rates are {', '.join(units)}."))


def goal(measured: Measurement) -> str:
    """What was asked for, and whether it is met."""
    if measured.goal is None:
        return ""
    return f"{'≥' if measured.work else '≤'} {scaled(measured, measured.goal)} {'✓' if measured.is_met else '✗'}"


def scaled(measured: Measurement, *values: float) -> str:
    """`0.12 s`, `123 M`, `98.5–127 M`: in the unit that suits the median."""
    size, prefix = (1.0, measured.unit) if not measured.work else next(
        ((size, prefix) for size, prefix in PREFIXES if measured.median >= size), (1.0, "")
    )  # fmt: skip
    return f"{'–'.join(f'{value / size:.3g}' for value in values)} {prefix}".rstrip()

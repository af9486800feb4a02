"""The profile of a launch: its metrics, by line and by kind of instruction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from functools import cached_property

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.notebook import card
from ptxvm.profile.counter import Counts, no_counts
from ptxvm.profile.metrics import COUNTED, METRICS, POSITION, Number

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Measured:
    """The metrics of some instructions, counted and derived ones: `measured["inst_executed"]`."""

    counts: Mapping[str, int]

    def __getitem__(self, name: str) -> Number:
        """A metric; None for a ratio of nothing.  KeyError where there is none of the name."""
        formula = METRICS[name].formula
        return self.counts[name] if formula is None else formula(self.__getitem__)

    @property
    def metrics(self) -> dict[str, Number]:
        """All metrics by name."""
        return {name: self[name] for name in METRICS}


@dataclass(frozen=True)
class Line(Measured):
    """The metrics of a line of PTX: its `number` in `file`, its `text`, and FILE:LINE of the source that `.loc` names."""

    file: str
    number: int
    text: str
    source: str
    function: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Profile(Measured):
    """The metrics of a launch with the grids that its threads launched: `profile["inst_executed"]`.

    `instructions` has the counts of each instruction that was executed.
    `shared_bytes` is the shared memory of a CTA.  `engine` is the engine that counted, "jit" or "interp"; `uncounted` names
    what compiled code does not count, where that is why the interpreter did.  `spinning` are the branches at the ends of loops
    that wait for other threads.
    """

    kernel: str
    grid: Extent
    block: Extent
    shared_bytes: int
    instructions: Mapping[Bound, Counts] = field(repr=False, compare=False)
    engine: str = "jit"
    uncounted: str = ""
    spinning: Collection[Bound] = field(default=(), repr=False, compare=False)

    @cached_property
    def waits(self) -> list[int]:
        """The lines at the ends of loops that waited for other threads: how often these go round is chance."""
        return sorted({bound.line for bound in self.spinning if bound in self.instructions})

    @cached_property
    def lines(self) -> list[Line]:
        """The metrics of each line of PTX that was executed, in the order of files and lines."""
        by_line: dict[tuple[str, int], list[Bound]] = {}
        for bound in self._in_order:
            by_line.setdefault(place(bound), []).append(bound)
        return [line(*at, by_line[at], self.instructions) for at in sorted(by_line)]

    @cached_property
    def kinds(self) -> dict[str, Measured]:
        """The metrics of each family of instructions, the most frequent first."""
        by_kind: dict[str, list[Counts]] = {}
        for bound in self._in_order:
            by_kind.setdefault(kind(bound), []).append(self.instructions[bound])
        kinds = {name: Measured(ByName(rows)) for name, rows in by_kind.items()}
        return dict(sorted(kinds.items(), key=lambda each: -each[1].counts["inst_executed"]))

    @property
    def _in_order(self) -> list[Bound]:
        return sorted(self.instructions, key=lambda bound: bound.node.start)

    def __repr__(self) -> str:
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
        return f"<Profile of '{self.kernel}': {self['inst_executed']:,} instructions of warps on {lines}>"

    def _repr_html_(self) -> str:
        """The profile for a notebook: the metrics that are not 0."""
        shape = ("grid", str(self.grid)), ("block", str(self.block)), ("engine", self.engine)
        metrics = ((name, f"{value:,}" if isinstance(value, int) else f"{value:,.4g}") for name, value in present(self).items())
        return card(f"Profile of {self.kernel}", [*shape, *metrics])

    @property
    def details(self) -> dict[str, object]:
        """All of it, for tools; a line has the metrics that are not 0."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared_bytes": self.shared_bytes,
            "engine": self.engine,
            "waits": self.waits,
            "metrics": self.metrics,
            "kinds": {name: present(measured) for name, measured in self.kinds.items()},
            "lines": [
                {
                    "file": line.file, "line": line.number, "text": line.text, "source": line.source,
                    "function": line.function, "kinds": list(line.kinds), "metrics": present(line),
                }
                for line in self.lines
            ],
        }  # fmt: skip


def profile(
    kernel: str, grid: Extent, block: Extent, shared_bytes: int, instructions: Mapping[Bound, Counts],
    spinning: Collection[Bound] = (),
) -> Profile:  # fmt: skip
    """The profile of a launch, of the counts of each instruction; what it says is computed when it is asked for."""
    return Profile(ByName(instructions.values()), kernel, grid, block, shared_bytes, instructions, spinning=spinning)


def line(file: str, number: int, bounds: list[Bound], instructions: Mapping[Bound, Counts]) -> Line:
    """A line, of its instructions."""
    first, function = bounds[0], bounds[0].function
    return Line(
        ByName([instructions[bound] for bound in bounds]), file, number, "  ".join(bound.text for bound in bounds),
        first.origin, function.name if function is not None else "", tuple(dict.fromkeys(map(kind, bounds))),
    )  # fmt: skip


def place(bound: Bound) -> tuple[str, int]:
    """The file and line of an instruction."""
    return bound.program.source.name if bound.program is not None else "", bound.line


def kind(bound: Bound) -> str:
    """The family of an instruction in the catalog: `float`, `memory`, `control`."""
    return bound.i.of.family.replace("_", " ")


class ByName(Mapping[str, int]):
    """The sums of counts by the names of their metrics, computed when they are asked for."""

    def __init__(self, rows: Collection[Counts]) -> None:
        self._rows = rows

    @cached_property
    def _counts(self) -> Counts:
        return np.sum(list(self._rows), axis=0) if self._rows else no_counts()

    def __getitem__(self, name: str) -> int:
        """The count of a metric."""
        return int(self._counts[POSITION[name]])

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of reports."""
        return iter(COUNTED)

    def __len__(self) -> int:
        """How many metrics are counted."""
        return len(COUNTED)

    def __repr__(self) -> str:
        return repr(dict(self))


def present(measured: Measured) -> dict[str, int | float]:
    """The metrics that are neither 0 nor ratios of nothing."""
    return {name: value for name, value in measured.metrics.items() if value}


__all__ = ["Line", "Measured", "Profile", "profile"]

"""Listings of sources: the lines that a launch executed, with those around them, and what each did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ptxvm.analysis.program import Program
from ptxvm.dataclass import dataclass
from ptxvm.profile.metrics import METRICS, Metric
from ptxvm.profile.profile import Line, Measured, Profile

NEAR = 8  # lines above and below one that was executed, which are listed too
LARGEST = 4 << 20  # bytes of a source that is read
SUFFIXES = frozenset(".c .cc .cpp .cu .cuh .cxx .f90 .h .hpp .hxx .inc .jl .mojo .py .rs .zig".split())
"""Of the files that `.file` may name: a module is text of anyone, and a report shows what stands in the file."""

ADDED_UP = [metric for metric in METRICS.values() if metric.formula is None or not metric.formula.under]
"""The metrics of which a line has a part of the launch's."""


@dataclass(frozen=True)
class Row:
    """A line of a listing; `key` names it in the page, and is empty for a line that was not executed."""

    number: int
    text: str
    key: str = ""


@dataclass(frozen=True)
class Listing:
    """A source: runs of neighbouring lines, between which others are left out."""

    title: str
    language: str
    runs: list[list[Row]]


@dataclass(frozen=True)
class Entry:
    """An executed line for the page: `of` are the keys of the lines that it was compiled to, or from."""

    key: str
    place: str
    text: str
    kinds: Sequence[str]
    metrics: dict[str, float]
    of: list[str]


def heat(profile: Profile) -> list[Metric]:
    """The metrics by which lines can be coloured: those that are not 0."""
    return [metric for metric in ADDED_UP if profile[metric.name]]


def listings(profile: Profile, programs: Sequence[Program]) -> tuple[list[Listing], list[Entry]]:
    """The listings of PTX, then of what it was compiled from, where that is at hand; and their executed lines."""
    metrics = [metric.name for metric in heat(profile)]
    files = files_of(profile)
    keys = {(line.file, line.number): key_of_line(profile, line.file, line.number) for line in profile.lines}
    sources: dict[str, dict[int, list[Line]]] = {}
    for line in profile.lines:
        name, _, number = line.source.rpartition(":")
        if name:
            sources.setdefault(name, {}).setdefault(int(number), []).append(line)
    texts = {program.source.name: program.source.text.splitlines() for program in programs}
    entries = [
        Entry(keys[line.file, line.number], f"{Path(line.file).name}:{line.number}", line.text, line.kinds,
              part(line, metrics), [])
        for line in profile.lines
    ]  # fmt: skip
    by_key = {entry.key: entry for entry in entries}
    found = [
        Listing(
            Path(name).name,
            "PTX",
            runs(texts.get(name, ()), {number: key for (file, number), key in keys.items() if file == name}),
        )
        for name in files
    ]
    for order, (name, lines) in enumerate(sources.items()):
        above = {at: f"source-{order}-{at}" for at in lines}
        text = text_of(name, programs)
        for at, those in lines.items():
            below = [keys[line.file, line.number] for line in those]
            for each in below:
                by_key[each].of.append(above[at])
            said = text[at - 1].strip() if text is not None and at <= len(text) else ""
            kinds = list(dict.fromkeys(kind for line in those for kind in line.kinds))
            entries.append(Entry(above[at], f"{Path(name).name}:{at}", said, kinds, summed(those, metrics), below))
        if text is not None:
            found.append(Listing(Path(name).name, "source", runs(text, above)))
    return found, entries


def files_of(profile: Profile) -> list[str]:
    """The files of PTX, each once."""
    return list(dict.fromkeys(line.file for line in profile.lines))


def key_of_line(profile: Profile, file: str, number: int) -> str:
    """What names an executed line of PTX in the page."""
    files = files_of(profile)
    return f"ptx-{files.index(file)}-{number}" if file in files else ""


def part(measured: Measured, metrics: Iterable[str]) -> dict[str, float]:
    """The metrics that are not 0."""
    return {name: value for name in metrics if (value := measured[name])}


def summed(lines: Sequence[Line], metrics: Iterable[str]) -> dict[str, float]:
    """The metrics of several lines together."""
    totals = {name: sum(line[name] or 0 for line in lines) for name in metrics}
    return {name: value for name, value in totals.items() if value}


def runs(text: Sequence[str], keys: Mapping[int, str]) -> list[list[Row]]:
    """The lines that have keys, and those near them, as runs of neighbours."""
    wanted = sorted({at for number in keys for at in range(number - NEAR, number + NEAR + 1) if 1 <= at <= len(text)})
    found: list[list[Row]] = []
    for at in wanted:
        if not found or found[-1][-1].number != at - 1:
            found.append([])
        found[-1].append(Row(at, text[at - 1], keys.get(at, "")))
    return found


def text_of(name: str, programs: Sequence[Program]) -> list[str] | None:
    """The lines of a source that `.file` names: where it says, or beside the module; None where it is not at hand."""
    if Path(name).suffix.lower() not in SUFFIXES:
        return None
    for path in candidates(name, programs):
        try:
            if path.is_file() and path.stat().st_size <= LARGEST:
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError):  # a name that no file can have
            continue
    return None


def candidates(name: str, programs: Sequence[Program]) -> Iterator[Path]:
    """Where a source may be."""
    if Path(name).is_absolute():
        yield Path(name)
    for folder in dict.fromkeys(Path(program.source.name).parent for program in programs):
        yield folder / name
        yield folder / Path(name).name


__all__ = ["Entry", "Listing", "Row", "heat", "key_of_line", "listings"]

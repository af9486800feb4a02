"""The page of a campaign: the field of parameters, and what failed where; one file of HTML without scripts."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from ptxvm.campaign.outcome import MEANINGS, Verdict
from ptxvm.campaign.parameter_space import ParameterSpace
from ptxvm.campaign.results import Reason, Results
from ptxvm.dataclass import dataclass
from ptxvm.machine.per_lane import Array

BINS = 24  # columns and rows of a table; an axis with more values is divided
MOST_TABLES = 10
MOST_REASONS, TABLES_OF_A_REASON = 20, 2
LONGEST = 3000  # characters of a message
Counts = Counter[tuple[int, ...]]
TOGETHER = 1 << 16  # cases that are counted at once

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --faint: #5d6772; --line: #d5dae0; --good: #2b8a57;
  --bad: #c8332b; --panel: #f5f7f9; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e4e8ec; --faint: #98a2ad; --line: #333b44;
  --good: #3fae73; --bad: #ee6a5f; --panel: #1c2127; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
code, pre, td, th { font-family: ui-monospace, monospace; font-size: .85rem; }
p, .faint { color: var(--faint); } b.good { color: var(--good); } b.bad { color: var(--bad); }
.bar { display: flex; height: .6rem; margin: .75rem 0; border-radius: .3rem; overflow: hidden; background: var(--good); }
.bar i { background: var(--bad); }
.fields { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: start; } .wide { max-width: 100%; overflow-x: auto; }
table { border-collapse: collapse; } th { font-weight: 600; text-align: left; }
.list { width: 100%; } .list td, .list th { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } .list td:first-child, .list th:first-child { text-align: right; }
.list td { overflow-wrap: anywhere; }
.field { margin: .5rem 0 1rem; }
.field td { min-width: 2.6rem; height: 1.9rem; padding: 0 .35rem; text-align: center; border: 2px solid var(--back);
  background: color-mix(in oklab, var(--bad) calc(var(--share) * 1%), color-mix(in oklab, var(--good) 22%, var(--back))); }
.field td.none { background: var(--panel); color: var(--faint); }
.field th { padding: 0 .5rem; font-weight: 400; color: var(--faint); text-align: right; max-width: 12rem;
  overflow-wrap: break-word; }
.field thead th { text-align: center; vertical-align: bottom; } .field .name { font-weight: 600; color: var(--text); }
.field tr > th:first-child { position: sticky; left: 0; background: var(--back); text-align: right; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .6rem; margin: .5rem 0 0;
  border-radius: .3rem; }
"""


@dataclass
class Cells:
    """Cases in a table of one or two parameters: how many there are in each cell, and how many failed."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    total: Counts = field(default_factory=Counter)
    failed: Counts = field(default_factory=Counter)

    def of_reason(self) -> Cells:
        """The same table for failures of one kind: the cases are those of this one."""
        return Cells(self.names, self.sizes, self.total)

    def add(self, counted: Counts, indices: Sequence[Array]) -> None:
        """Count cases in `total` or `failed`, by the indices of the values of each parameter."""
        shape = [min(size, BINS) for size in self.sizes]
        bins = [index * most // size for index, most, size in zip(indices, shape, self.sizes, strict=True)]
        numbers, counts = np.unique(np.ravel_multi_index(bins, shape), return_counts=True)
        for *at, count in zip(*(each.tolist() for each in np.unravel_index(numbers, shape)), counts.tolist(), strict=True):
            counted[*at] += count

    @property
    def contrast(self) -> float:
        """How far the cells differ in the share of failures: the variance between them."""
        cases = sum(self.total.values()) or 1
        mean = sum(self.failed.values()) / cases
        return sum(count * (self.failed[at] / count - mean) ** 2 for at, count in self.total.items()) / cases


@dataclass
class Fields:
    """The tables of all failures, and those of each reason, in the order of `Results.reasons`; of the rarest there are none."""

    whole: list[Cells]
    of_reasons: list[list[Cells]]


def page(name: str, space: ParameterSpace, results: Results, tests: Sequence[Path], ended: int | None = None) -> str:
    """The page as HTML; `ended` is how many cases have ended, where those that passed have no rows."""
    counts = results.counts()
    if ended is not None:
        counts = {Verdict.PASSED: ended - sum(counts.values()), **counts}
    cases, passed = sum(counts.values()), counts.get(Verdict.PASSED, 0)
    most = f" of {space.cases:,}" if ended is None else ""
    share = 100 * (cases - passed) / max(cases, 1)
    body = [
        f"<h1>{text(name)}</h1>",
        f"<p>{cases:,}{most} cases: {', '.join(summary(counts))}; {results.seconds():,.1f} seconds of work</p>",
        f'<div class="bar" role="img" aria-label="{share:.1f} % failed"><i style="width:{share:.3f}%"></i></div>',
        *failures(reasons := results.reasons(), tests, space, found := fields(space, results, len(reasons))),
        *tables(space, found.whole),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{text(name)}</title>'
    lines = "\n".join(body)
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{lines}\n</body></html>\n'


def text(value: object) -> str:
    """A text within HTML."""
    return html.escape(str(value))


def summary(counts: dict[Verdict, int]) -> Iterator[str]:
    """The number of cases by how they ended."""
    for verdict, meaning in MEANINGS.items():
        if counts.get(verdict):
            kind = "good" if verdict is Verdict.PASSED else "bad"
            yield f'<b class="{kind}" title="{text(meaning)}">{counts[verdict]:,} {verdict}</b>'


def failures(reasons: Sequence[Reason], tests: Sequence[Path], space: ParameterSpace, found: Fields) -> Iterator[str]:
    """What failed, with the first case of each failure, and where it did if others failed elsewhere."""
    if not reasons:
        return
    yield "<h2>What failed</h2>"
    for place, reason in enumerate(reasons):
        number, parameters, outcome, attempts = reason.first
        shown = ", ".join(f"{name}={value}" for name, value in parameters.items())
        again = f", run {attempts} times" if attempts > 1 else ""
        test = next((path.name for path in tests if path.stem.endswith(f"_{number}")), "")
        repeated = f"; repeated by <code>{text(test)}</code>" if test else ""
        yield f'<details><summary><b class="bad">{reason.count:,}</b> × <code>{text(outcome.reason)}</code></summary>'
        yield f"<p>First in case {number:,}: <code>{text(shown)}</code>{again}{repeated}</p>"
        yield f"<pre>{text(outcome.message[:LONGEST])}</pre>"
        if len(reasons) > 1 and place < len(found.of_reasons):
            yield from most_telling(space, found.of_reasons[place], TABLES_OF_A_REASON)
        yield "</details>"


def fields(space: ParameterSpace, results: Results, reasons: int) -> Fields:
    """The field of parameters: each two of them, and the cases and failures there, of so many reasons."""
    names, sizes = list(space.axes), [len(values) for values in space.axes.values()]
    several = [n for n, size in enumerate(sizes) if size > 1]
    axes: list[tuple[int, ...]] = [*combinations(several, 2)] or [(n,) for n in several]
    whole = [Cells(tuple(names[n] for n in some), tuple(sizes[n] for n in some)) for some in axes]
    found = Fields(whole, [[each.of_reason() for each in whole] for _ in range(min(reasons, MOST_REASONS))])
    if not whole:
        return found
    for cases in batched(results.failures(), TOGETHER):
        rows = np.array(cases, np.int64)
        positions, reason = space.positions(rows[:, 0]), rows[:, 1]
        for k, some in enumerate(axes):
            whole[k].add(whole[k].total, [positions[n] for n in some])
            whole[k].add(whole[k].failed, [positions[n][reason != 0] for n in some])
            for number, cells in enumerate(found.of_reasons, 1):
                cells[k].add(cells[k].failed, [positions[n][reason == number] for n in some])
    return found


def tables(space: ParameterSpace, found: Sequence[Cells]) -> Iterator[str]:
    """Where cases failed, whatever the reason."""
    if found:
        yield "<h2>Where</h2><p>Failed cases in each cell, and how many cases it has. The first tables tell most.</p>"
        yield from most_telling(space, found, MOST_TABLES)


def most_telling(space: ParameterSpace, found: Sequence[Cells], most: int) -> Iterator[str]:
    """Some tables: those that tell failures from others best, first."""
    yield '<div class="fields">'
    for cells in sorted(found, key=lambda each: -each.contrast)[:most]:
        yield from table(space, cells)
    yield "</div>"


def batched(cases: Iterator[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    """Lists of so many, the last one perhaps shorter."""
    while some := list(islice(cases, size)):
        yield some


def table(space: ParameterSpace, cells: Cells) -> Iterator[str]:
    """A table of one or two parameters: of two that with more values goes down."""
    two = len(cells.names) == 2
    across = 0 if not two or cells.sizes[0] < cells.sizes[1] else 1
    heads, rows = labels(space, cells.names[across]), labels(space, cells.names[1 - across]) if two else [""]
    yield '<div class="wide"><table class="field"><thead>'
    yield f'<tr><th></th><th class="name" colspan="{len(heads)}">{text(cells.names[across])}</th></tr>'
    corner = text(cells.names[1 - across]) if two else ""
    yield f'<tr><th class="name">{corner}</th>{"".join(f"<th>{text(each)}</th>" for each in heads)}</tr></thead><tbody>'
    for row, label in enumerate(rows):
        places = [(row, column) if across else (column, row) for column in range(len(heads))]
        yield f"<tr><th>{text(label)}</th>{''.join(cell(cells, at[: len(cells.names)]) for at in places)}</tr>"
    yield "</tbody></table></div>"


def labels(space: ParameterSpace, name: str) -> list[str]:
    """The headings of the values of a parameter, or of ranges of them."""
    values = space.axes[name]
    if len(values) <= BINS:
        return [str(value) for value in values]
    return [f"{values[-(-each * len(values) // BINS)]}…" for each in range(BINS)]


def cell(cells: Cells, at: tuple[int, ...]) -> str:
    """A cell: the failed cases of how many."""
    total, failed = cells.total[at], cells.failed[at]
    if not total:
        return '<td class="none" title="no case">·</td>'
    share = 20 + 45 * failed / total if failed else 0  # text on it stays legible
    said = f"{failed:,}/{total:,}" if failed else f"{total:,}"
    return f'<td style="--share:{share:.0f}" title="{failed:,} of {total:,} failed">{said}</td>'


__all__ = ["page"]

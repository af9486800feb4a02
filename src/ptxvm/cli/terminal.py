"""The terminal: its width and colours, tables, and the sign that long work is under way."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import IO, TYPE_CHECKING

from ptxvm.reference.syntax_lines import wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ptxvm.cli.progress_bar import Share

PATIENCE = 1.0
"""Seconds that work may take before it shows that it is under way."""


def width() -> int:
    """The columns of the terminal, 80 where there is none."""
    return shutil.get_terminal_size().columns


def has_color(stream: IO[str]) -> bool:
    """May colours be written there?  `NO_COLOR` and `FORCE_COLOR` are heard."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: IO[str] | None = None) -> Console:
    """Writes text and tables on stdout, or another stream; nothing in them is taken for markup."""
    from rich.console import Console

    stream = stream or sys.stdout
    colored = has_color(stream)
    return Console(
        file=stream,
        width=width(),
        force_terminal=colored,
        color_system="standard" if colored else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


@contextmanager
def working(task: str, share: Share = None, *, began: float | None = None) -> Iterator[None]:
    """Around work that may be long: after a second a terminal shows what is done, how much of it, and since when.

    `began`, of `time.monotonic()`, is when the work began of which this is a part: many short parts are long work.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ptxvm.cli.progress_bar import Bar, shortened

    columns = (SpinnerColumn(), Bar(share), TimeElapsedColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=console(sys.stderr), transient=True, redirect_stdout=False, redirect_stderr=False)
    now = time.monotonic()
    progress.add_task(shortened(task, width()), total=None)
    progress.tasks[0].start_time = now if began is None else began
    timer = threading.Timer(PATIENCE if began is None else max(0.0, began + PATIENCE - now), progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


Rows = Sequence[Sequence[str]]

LABEL = 11
"""The columns of a label at the left."""

GAP = "  "
LEAST = 20
"""The columns that a cell of words has at least, where it needs them."""

HANG = 4
"""The column at which a line goes on, where nothing else is said."""

MOST = 110
"""The columns that a line of prose may have, on terminals that are wider."""


def filled(text: str, indent: str = "") -> str:
    """Prose in lines that fit the terminal; indented paragraphs stay as they are."""

    def wrapped(part: str) -> str:
        return textwrap.fill(part, min(width(), MOST), initial_indent=indent, subsequent_indent=indent)

    return "\n\n".join(part if part.startswith(" ") else wrapped(part) for part in text.split("\n\n"))


def hung(text: str, columns: int, hang: int) -> list[str]:
    """A line as lines that fit: those after the first begin at the column `hang`, or further left where little would fit."""
    indent = " " * (hang if columns - hang >= LEAST else HANG)
    return textwrap.wrap(text, columns, subsequent_indent=indent, break_on_hyphens=False, replace_whitespace=False) or [""]


def labelled(label: str, rows: Rows, *, right: bool = False) -> Text:
    """Rows behind a label: cells are aligned, those after the first to the right if so wished; the last is wrapped."""
    from rich.text import Text

    lines = aligned(rows, _all_right(right=right), width() - LABEL - len(GAP))
    return _behind(label, [Text(line) for line in lines])


def _all_right(*, right: bool) -> set[int]:
    """The columns that stand to the right: all but the first, or none."""
    return {*range(1, 99)} if right else set()


def _behind(label: str, lines: Sequence[Text]) -> Text:
    """Lines behind a label, which stands before the first."""
    from rich.text import Text

    made = Text()
    for n, line in enumerate(lines):
        made.append(f"{'' if n else label:<{LABEL}}{GAP}", "bold").append_text(line).append("\n")
    made.rstrip()
    return made


def tinted(label: str, rows: Rows, styles: Rows, *, right: bool = False) -> Text:
    """Rows behind a label, each cell in the style at its place; an empty style is the usual one."""
    from rich.text import Text

    lines = []
    for row, cells in _cells(rows, _all_right(right=right), width() - LABEL - len(GAP)):
        line = Text(GAP).join([_styled(cell, style) for cell, style in zip(cells, styles[row], strict=True)])
        line.rstrip()
        lines.append(line)
    return _behind(label, lines)


def _styled(cell: str, style: str) -> Text:
    """A cell whose words have a style, but not the blanks around them."""
    from rich.text import Text

    words = cell.strip()
    before, _, after = cell.partition(words) if words else (cell, "", "")
    return Text.assemble(before, (words, style), after)


def tabulated(headings: Sequence[str], rows: Rows, right: Collection[int] = ()) -> Text:
    """A table with a line of headings; the columns in `right` are numbers."""
    from rich.text import Text

    first, *others = aligned([headings, *rows], right, width())
    return Text("\n").join([Text(first, "bold"), *map(Text, others)])


def aligned(rows: Rows, right: Collection[int], columns: int) -> Iterator[str]:
    """The rows as lines: each column as wide as its widest cell, or narrower where they do not fit, with its cells wrapped.

    Numbers, which stand in the columns of `right`, are not wrapped.
    """
    for _, cells in _cells(rows, right, columns):
        yield GAP.join(cells).rstrip()


def _cells(rows: Rows, right: Collection[int], columns: int) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, as wide as their columns, with the number of the row."""
    count = max(map(len, rows))
    last = max((len(row[-1]) for row in rows if len(row) == count), default=0)
    widths = [max(len(row[n]) for row in rows if len(row) > n + 1) for n in range(count - 1)]
    while (excess := sum(widths) + len(GAP) * len(widths) + min(last, LEAST) - columns) > 0 and not right:
        widest = max(range(len(widths)), key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= LEAST:
            break
        widths[widest] = max(LEAST, widths[widest] - excess)
    numbers = last if count - 1 in right else 0
    for number, row in enumerate(rows):
        before = widths[: len(row) - 1]
        rest = max(LEAST, columns - sum(before) - len(GAP) * len(before))
        cells = [wrapped(cell, wide) for cell, wide in zip(row, [*before, rest], strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = [f"{c:>{w}}" if n in right else f"{c:<{w}}" for n, (c, w) in enumerate(zip(parts, before, strict=False))]
            yield number, [*padded, f"{parts[-1]:>{numbers}}"]

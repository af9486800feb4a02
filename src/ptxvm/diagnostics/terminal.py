"""Findings for people: the line of the source with carets under the place, as rustc prints them.

    error[P0102]: missing `;` after the instruction
     --> saxpy.ptx:6:19
      |
    6 |     mov.u32 %r1, 5
      |                   ^ here
    7 |     add.u32 %r2, %r1, 1;
      |     ------- before this
      = help: ...

Plain text fits `width` columns, by default 80; colours are `rich`'s, imported for them alone.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.diagnostic import Diagnostic, Span
from ptxvm.diagnostics.findings import Findings, Text

_TAB = 4
_ELLIPSIS = "..."
_SMALLEST = 20
_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_FRAME = "bold blue"

Piece = tuple[str, str]
"""Some text and its style."""


def render(findings: Findings, *, width: int = 80, color: bool = False) -> str:
    """All findings, with an empty line between two."""
    blocks = [list(_block(diagnostic, source, width)) for source, diagnostics in findings for diagnostic in diagnostics]
    lines = [line for block in blocks for line in (*block, [])][:-1]
    if not lines:
        return ""
    if color:
        return _colored(lines)
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _colored(lines: list[list[Piece]]) -> str:
    """The lines with ANSI colours."""
    import io  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415 - takes longer to load than a module to check
    from rich.text import Text as RichText  # noqa: PLC0415

    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", soft_wrap=True, highlight=False)
    for line in lines:
        console.print(RichText.assemble(*line), soft_wrap=True)
    return file.getvalue()


def _block(diagnostic: Diagnostic, source: Text, width: int) -> Iterator[list[Piece]]:
    """The lines of one finding."""
    style = _STYLES[diagnostic.severity]
    yield [(f"{diagnostic.severity}[{diagnostic.code}]", style), (f": {diagnostic.message}", "bold")]
    if diagnostic.line == 0:
        yield [(" --> ", _FRAME), (source.name, "")]
        yield from _remarks(diagnostic, "", width)
        return
    marks = _marks(diagnostic, source)
    gutter = " " * len(str(max(mark.line for mark in marks)))
    yield [(f"{gutter}--> ", _FRAME), (f"{source.name}:{diagnostic.line}:{diagnostic.column}", "")]
    yield [(f"{gutter} |", _FRAME)]
    before = 0
    for line in sorted({mark.line for mark in marks}):
        if before and line == before + 2:
            yield _quote(source.line(line - 1), line - 1, gutter, width, 0, 0)
        elif before and line > before + 1:
            yield [("...", _FRAME)]
        yield from _snippet([mark for mark in marks if mark.line == line], source, gutter, width, style)
        before = line
    yield from _remarks(diagnostic, gutter, width)


# ── the source with its carets ──────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place to underline: columns from 0, in cells of the line as it is shown; the main place has `^`."""

    line: int
    start: int
    end: int
    label: str
    main: bool


def _marks(diagnostic: Diagnostic, source: Text) -> list[_Mark]:
    """The place of the finding and those related to it."""
    return [
        _mark(diagnostic.span, diagnostic.label, source, main=True),
        *(_mark(span, label, source, main=False) for label, span in diagnostic.related),
    ]


def _mark(span: Span, label: str, source: Text, *, main: bool) -> _Mark:
    """A span as cells of its first line; an empty one is a cell wide."""
    line, column = source.location(span.start)
    text = source.line(line)
    start = _cells(text[: column - 1])
    end = _cells(text[: column - 1 + max(0, span.end - span.start)])
    return _Mark(line, start, max(end, start + 1), label, main)


def _snippet(marks: list[_Mark], source: Text, gutter: str, width: int, style: str) -> Iterator[list[Piece]]:
    """A line of the source and, for every mark on it, a line with the underlining."""
    line = marks[0].line
    main = min(marks, key=lambda mark: (not mark.main, mark.start))
    first, _ = _window(source.line(line), main.start, main.end, _room(gutter, width))
    yield _quote(source.line(line), line, gutter, width, main.start, main.end)
    room = _room(gutter, width)
    for mark in sorted(marks, key=lambda mark: not mark.main):
        start, end = mark.start - first, min(mark.end - first, room)
        if 0 <= start < room or mark.main:
            under = ("^" if mark.main else "-") * max(1, end - start)
            label = f" {mark.label}" if mark.label else ""
            yield [(f"{gutter} | ", _FRAME), (" " * start, ""), (under + label, style if mark.main else _FRAME)]


def _quote(text: str, number: int, gutter: str, width: int, start: int, end: int) -> list[Piece]:
    """`12 |     add.u32 …`, of a long line the part around the mark."""
    return [(f"{number:>{len(gutter)}} | ", _FRAME), (_window(text, start, end, _room(gutter, width))[1], "")]


def _room(gutter: str, width: int) -> int:
    """The cells that are left of a line for the source."""
    return max(_SMALLEST, width - len(gutter) - 3)


def _window(text: str, start: int, end: int, room: int) -> tuple[int, str]:
    """The part of a line that is shown, and the cell at which it starts."""
    shown = _shown(text)
    if len(shown) <= room:
        return 0, shown
    first = max(0, min(start - room // 3, len(shown) - room))
    if end - first > room:
        first = max(0, min(start - len(_ELLIPSIS), len(shown) - room))
    part = shown[first : first + room]
    if first:
        part = _ELLIPSIS + part[len(_ELLIPSIS) :]
    if first + room < len(shown):
        part = part[: -len(_ELLIPSIS)] + _ELLIPSIS
    return first, part


def _shown(text: str) -> str:
    """A line as a terminal shows it, one character a cell: tabs expanded, what is no single cell replaced by `?`s."""
    if text.isascii() and text.isprintable():
        return text
    cells: list[str] = []
    taken = 0
    for character in text:
        if character == "\t":
            cells.append(" " * (_TAB - taken % _TAB))
        elif not character.isprintable():
            cells.append("?")
        elif unicodedata.east_asian_width(character) in "WF":
            cells.append("??")
        elif unicodedata.combining(character) == 0:
            cells.append(character)
        else:
            continue
        taken += len(cells[-1])
    return "".join(cells)


def _cells(text: str) -> int:
    """How many cells a text takes."""
    return len(_shown(text))


# ── notes and help ──────────────────────────────────────────────────────────────────────


def _remarks(diagnostic: Diagnostic, gutter: str, width: int) -> Iterator[list[Piece]]:
    """The `= note:` and `= help:` lines."""
    for kind, text in (("note", diagnostic.note), ("help", diagnostic.help)):
        head = f"{gutter} = {kind}: "
        for number, part in enumerate(_wrapped(text, width - len(head))):
            if number == 0:
                yield [(f"{gutter} = ", _FRAME), (f"{kind}: ", "bold"), (part, "")]
            else:
                yield [(" " * len(head) + part, "")]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(_SMALLEST, width), break_long_words=False, break_on_hyphens=False)

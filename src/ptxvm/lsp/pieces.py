"""Pieces of a document that an edit leaves alone: what is known of a piece is kept while its text stays.

A function begins a piece, and so does what stands behind it.  A long one is cut where the contents of a line say so
(content-defined chunking): an edit moves no cut but those near it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from zlib import crc32

from ptxvm.dataclass import dataclass
from ptxvm.lsp.document import Document
from ptxvm.lsp.module import FunctionView

SHORTEST, LONGEST = 64, 1024
"""The lines of a piece before it may be cut, and from which on it is cut at the next line that can be the last one."""

ONE_OF = 128
"""Of so many lines, one ends a piece."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A span of a document: of a function, or of what stands around functions.  No comment goes beyond it."""

    start: int
    end: int
    function: FunctionView | None


def pieces_of(document: Document) -> Iterator[Piece]:
    """The pieces of a document, in their order: all of its text."""
    at = 0
    for function in document.module.functions:
        yield from _cut(document, at, function.node.start, None)
        yield from _cut(document, max(at, function.node.start), function.end, function)
        at = function.end
    yield from _cut(document, at, len(document.text.text), None)


def _cut(document: Document, start: int, end: int, function: FunctionView | None) -> Iterator[Piece]:
    if start >= end:
        return
    text, plain, starts = document.text.text, document.module.plain, document.text.line_starts
    first = bisect_right(starts, start)
    for number in range(first + SHORTEST, bisect_left(starts, end)):
        line = text[starts[number - 1] : starts[number]]
        lines = number - first
        if lines < SHORTEST or (lines < LONGEST and crc32(line.encode(errors="surrogatepass")) % ONE_OF):
            continue
        if ";" in line and plain[starts[number - 1] : starts[number]] == line:  # so it does not end within a comment
            yield Piece(start, starts[number], function)
            start, first = starts[number], number
    yield Piece(start, end, function)

"""Positions: lines and columns as an editor counts them, and offsets in characters (Language Server Protocol 3.17, "Position").

A column counts the code units of an encoding, by default of UTF-16; a line ends with LF, CR LF or CR.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
)

from ptxvm.dataclass import dataclass
from ptxvm.syntax.source import starts_of_lines

_UNIT = {PositionEncodingKind.Utf16: ("utf-16-le", 2), PositionEncodingKind.Utf8: ("utf-8", 1)}


@dataclass(frozen=True)
class DocumentText:
    """A text whose places are offsets in characters here, and positions for the editor."""

    text: str
    encoding: PositionEncodingKind = PositionEncodingKind.Utf16

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of the first character of every line."""
        return starts_of_lines(self.text)

    @cached_property
    def _is_ascii(self) -> bool:
        return self.text.isascii()

    def line_span(self, line: int) -> tuple[int, int]:
        """The start of a line, counted from 0, and its end before the line end; a line past the last is empty."""
        starts = self.line_starts
        if not 0 <= line < len(starts):
            return len(self.text), len(self.text)
        end = starts[line + 1] if line + 1 < len(starts) else len(self.text)
        while end > starts[line] and self.text[end - 1] in "\r\n":
            end -= 1
        return starts[line], end

    def offset(self, position: Position) -> int:
        """The character at a position; one behind the end of its line is the end of that line."""
        start, end = self.line_span(position.line)
        if self._is_ascii or self.encoding not in _UNIT:
            return min(start + position.character, end)
        codec, size = _UNIT[self.encoding]
        line = self.text[start:end].encode(codec, "surrogatepass")
        return start + len(line[: position.character * size].decode(codec, "ignore"))

    def line(self, offset: int) -> int:
        """The line of a character, counted from 0."""
        return bisect_right(self.line_starts, max(offset, 0)) - 1

    def position(self, offset: int) -> Position:
        """The position of a character; past the end, of the place behind the last one."""
        offset = min(max(offset, 0), len(self.text))
        line = self.line(offset)
        return Position(line, self.units(self.line_starts[line], offset))

    def units(self, start: int, end: int) -> int:
        """The length of a piece of a line in code units."""
        if self._is_ascii or self.encoding not in _UNIT:
            return end - start
        codec, size = _UNIT[self.encoding]
        return len(self.text[start:end].encode(codec, "surrogatepass")) // size

    def range(self, start: int, end: int) -> Range:
        """The range of a half-open span of characters."""
        return Range(self.position(start), self.position(end))

    def span(self, range: Range) -> tuple[int, int]:
        """The half-open span of characters of a range; one that is upside down is empty."""
        start = self.offset(range.start)
        return start, max(start, self.offset(range.end))

    def changed(self, changes: Iterable[TextDocumentContentChangeEvent]) -> DocumentText:
        """The text after some edits, each of which is in terms of the text after the ones before it."""
        now = self
        for change in changes:
            if isinstance(change, TextDocumentContentChangePartial):
                start, end = now.span(change.range)
                now = DocumentText(now.text[:start] + change.text + now.text[end:], self.encoding)
            else:
                now = DocumentText(change.text, self.encoding)
        return now

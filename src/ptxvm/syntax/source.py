"""The text of a module, and where each character of it stands.

Sources: PTX 4.1 (source format: ASCII text; anything goes inside a comment).
"""

from __future__ import annotations

import bisect
import re
from itertools import accumulate
from operator import add
from pathlib import Path

_STRAY_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile(r"\r\n?|\n")


class Source:
    """A PTX text and its name; offsets count characters, lines and columns count from 1.

    NUL characters at the end are dropped: drivers pass PTX as a C string with its terminator.
    """

    __slots__ = ("_line_starts", "name", "text")

    def __init__(self, text: str | bytes, name: str = "<source>", line_starts: list[int] | None = None) -> None:
        """`line_starts` are those of the text, where they are known."""
        if isinstance(text, bytes):
            text = decode(text)
        text = text.rstrip("\0").removeprefix("\ufeff")
        self.text = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
        self.name = name
        self._line_starts = line_starts

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """The source in a file, named as the path was given."""
        return cls(Path(path).read_bytes(), str(path))

    @property
    def line_starts(self) -> list[int]:
        """The offset of the first character of every line; computed at the first question."""
        if self._line_starts is None:
            self._line_starts = starts_of_lines(self.text)
        return self._line_starts

    def location(self, offset: int) -> tuple[int, int]:
        """The line and column of a character; past the end, of the place after the last one."""
        line = bisect.bisect_right(self.line_starts, min(offset, len(self.text)))
        return line, min(offset, len(self.text)) - self.line_starts[line - 1] + 1

    def offset(self, line: int, column: int = 1) -> int:
        """The character at a line and column: the inverse of `location`."""
        return self.line_starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """The text of a line without its end; empty past the last line."""
        starts = self.line_starts
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")


def starts_of_lines(text: str) -> list[int]:
    """The offset of the first character of every line; a line ends with LF, CR LF or CR."""
    if "\r" in text:
        return [0, *[found.end() for found in _NEWLINE.finditer(text)]]
    lines = text.split("\n")  # which takes a tenth of the time
    return list(map(add, accumulate(map(len, lines), initial=0), range(len(lines))))


def decode(data: bytes) -> str:
    """UTF-8, where a byte that is none is taken as Latin-1: old tools wrote such comments."""
    text = data.decode("utf-8", "surrogateescape")
    return _STRAY_BYTE.sub(lambda stray: chr(ord(stray[0]) - 0xDC00), text)

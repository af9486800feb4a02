"""Tables that are read without tokens: initial values that are plain integers, and the data of debugging sections.

Both are found by their usual spelling only; what is not found is read as everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS

SHORTEST = 64
"""The characters of a list that is worth it."""

_LIST = re.compile(rf'"[^"\n]*"|=[{BLANKS}]*(\{{[\d,{BLANKS}]{{{SHORTEST},}}\}})', re.ASCII)
_UNUSUAL = re.compile(rf"[{{,][{BLANKS}]*[,}}]|\d[{BLANKS}]+\d|(?<!\d)0\d|\d{{19}}", re.ASCII)
_INTEGER = re.compile(r"\d+", re.ASCII)

_SECTION = re.compile(r"^[ \t]*\.section[ \t]+\.\w+[ \t\r\n\f]*(\{[^{}]*\})", re.ASCII | re.MULTILINE)
_NUMBER = r"(?:0|[1-9]\d{0,8})"
_DATA = rf"{_NUMBER}(?:[ \t]*,[ \t]*{_NUMBER})*"
_PLACE = rf"[$_.A-Za-z][\w$]+(?:[ \t]*\+[ \t]*{_NUMBER})?"
_LINE = re.compile(rf"[ \t\r\f]*(?:[_$A-Za-z][\w$]+:|\.b(?:8|16|32|64)[ \t]+(?:{_DATA}|{_PLACE}))?[ \t\r\f]*", re.ASCII)


class Integers(Sequence[tree.Operand]):
    """The items of a list of decimal integers, each below 10^18, between two places of a text."""

    __slots__ = ("_count", "_end", "_start", "_text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._start, self._end = text, start, end
        self._count = text.count(",", start, end) + 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tree.Operand]:
        for found in _INTEGER.finditer(self._text, self._start, self._end):
            yield tree.Integer(int(found[0]), found[0], start=found.start(), end=found.end())

    @overload
    def __getitem__(self, at: int) -> tree.Operand: ...
    @overload
    def __getitem__(self, at: slice) -> list[tree.Operand]: ...
    def __getitem__(self, at: int | slice) -> tree.Operand | list[tree.Operand]:
        return list(self)[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Integers | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __repr__(self) -> str:
        return repr(list(self))


def tables(text: str) -> Iterator[tuple[int, int]]:
    """The places of both, with their braces; a string or a body may hold what looks like one."""
    for found in _SECTION.finditer(text) if ".section" in text else ():
        if all(map(_LINE.fullmatch, set(text[found.start(1) + 1 : found.end(1) - 1].split("\n")))):
            yield found.span(1)
    for found in _LIST.finditer(text) if "=" in text else ():
        if found[1] and not _UNUSUAL.search(text, *found.span(1)):
            yield found.span(1)


def section_lines(text: str, start: int, end: int) -> list[str]:
    """The lines of a section between two places, with one blank where there is any."""
    lines = text[start:end].split("\n")
    shortened = {line: " ".join(line.split()) for line in set(lines)}  # most are single bytes, and equal to others
    return [short for line in lines if (short := shortened[line])]

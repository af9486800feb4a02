"""Tables that are read without tokens: initial values that are plain numbers, and the data of debugging sections.

Both are found by their usual spelling only; what is not found is read as everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

from ptxvm.syntax import tree
from ptxvm.syntax.lexer import float_bits, integer
from ptxvm.syntax.statements import BLANKS

SHORTEST = 16
"""The characters of a list that is worth it."""

_DECIMAL = r"(?:0|[1-9]\d{0,17})(?!\d)"
_INTEGER = rf"-?(?:0[xX][0-9a-fA-F]{{1,16}}|{_DECIMAL})"
MARKS = frozenset("fFdD")
_FLOAT = r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"


def _list_of(item: str) -> str:
    """The expression of a list in braces."""
    return rf"\{{[{BLANKS}]*(?:{item})(?:[{BLANKS}]*,[{BLANKS}]*(?:{item}))*[{BLANKS}]*\}}"


_LIST = re.compile(rf'"[^"\n]*"|({_list_of(_INTEGER)})|({_list_of(_FLOAT)})', re.ASCII)
_ITEM = re.compile(rf"(-?)([^{{}},\-{BLANKS}]+)", re.ASCII)

_SECTION = re.compile(r"^[ \t]*\.section[ \t]+\.\w+[ \t\r\n\f]*(\{[^{}]*\})", re.ASCII | re.MULTILINE)
_NUMBER = r"(?:0|[1-9]\d{0,8})"
_DATA = rf"{_NUMBER}(?:[ \t]*,[ \t]*{_NUMBER})*"
_PLACE = rf"(?:\.debug_|[$_A-Za-z])[\w$]+(?:[ \t]*\+[ \t]*{_NUMBER})?"
_LINE = re.compile(rf"[ \t\r\f]*(?:[_$A-Za-z][\w$]+:|\.b(?:8|16|32|64)[ \t]+(?:{_DATA}|{_PLACE}))?[ \t\r\f]*", re.ASCII)


class Constants(Sequence[tree.Operand]):
    """The items of a list between two places of a text: integers, each below 2^64 and maybe with a minus, or exact floats.

    Behind an error the parser may take the body of a function for a list; the outline tells that afterwards.
    """

    __slots__ = ("_count", "_end", "_start", "_text", "are_floats")

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._start, self._end = text, start, end
        self._count = text.count(",", start, end) + 1
        self.are_floats = text[start + 1 : end].lstrip(BLANKS)[1:2] in MARKS

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tree.Operand]:
        for found in _ITEM.finditer(self._text, self._start, self._end):
            text, start, end = found[2], found.start(2), found.end()
            number: tree.Operand
            if (literal := integer(text)) is not None:
                number = tree.Integer(literal[0], text, start=start, end=end)
            else:
                number = tree.Float(*float_bits(text), text, start=start, end=end)
            yield tree.Unary("-", number, start=found.start(), end=end) if found[1] else number

    @overload
    def __getitem__(self, at: int) -> tree.Operand: ...
    @overload
    def __getitem__(self, at: slice) -> list[tree.Operand]: ...
    def __getitem__(self, at: int | slice) -> tree.Operand | list[tree.Operand]:
        return list(self)[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Constants | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __repr__(self) -> str:
        return repr(list(self))


def tables(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of both between two places of a text, with their braces; a string may hold what looks like one."""
    for found in _SECTION.finditer(text, begin, end) if text.find(".section", begin, end) >= 0 else ():
        if all(map(_LINE.fullmatch, set(text[found.start(1) + 1 : found.end(1) - 1].split("\n")))):
            yield found.span(1)
    for found in _LIST.finditer(text, begin, end) if text.find("=", begin, end) >= 0 else ():
        if found.lastindex and found.end() - found.start() >= SHORTEST:
            yield found.span()


def section_lines(text: str, start: int, end: int) -> list[str]:
    """The lines of a section between two places, with one blank where there is any."""
    lines = text[start:end].split("\n")
    shortened = {line: " ".join(line.split()) for line in set(lines)}  # most are single bytes, and equal to others
    return [short for line in lines if (short := shortened[line])]

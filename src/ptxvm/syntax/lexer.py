"""Splits a source into tokens.

Speed decides the shape: one `split` in C gives the texts of all tokens, a running sum their
places; there is no object per token.  A name takes its dotted tail with it, so that the head
of an instruction (`ld.global.v4.u32`) and a component (`%tid.x`) are one token each.

Sources: PTX 4.1-4.5 (comments, identifiers, constants), and what ptxas takes beyond them.
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ptxvm.syntax.source import Source

END = "\0"
"""The text of the tokens that follow the last one; a source cannot hold it."""

# Possessive groups would do too, but Python before 3.11.5 errs where they hold a quantifier.
_TOKEN = re.compile(
    r"""(
      [%$][\w$]++ (?: \.\w++ )*                           # a register, with its component
    | [_A-Za-z][\w$]*+                                    # another name,
      (?: \.\w++ (?: ::\w++ (?: (?<=sp::\d) :\d )? )* )*    # with its dotted tail: `.L2::64B`, `.sp::2:4`
    | [,;\[\]{}()+:]
    | 0[xX][0-9a-fA-F]+U? | 0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | 0[bB][01]+U?
    | \d+ (?: \.\d* (?: [eE][+-]?\d+ )? | [eE][+-]?\d+ | U )?
    | \.\d+ (?: [eE][+-]?\d+ )? (?! [\w:] )
    | \.\w+ (?: ::\w+)*                                    # a directive, type or lone modifier
    | "[^"\n]*"
    | << | >> | <= | >= | == | != | && | \|\|
    | [^ \t\r\n\f\x1a]
    )""",
    re.ASCII | re.VERBOSE,
)
_CHUNK = 1 << 16
"""The characters that are split at once: what that takes in memory is thirty times as much."""

_SKIPPED = re.compile(
    r"""
      "[^"\n]*"                                            # a string, whose slashes are its own
    | //[^\n]*
    | /\*.*?(?:\*/|\Z)
    | \#[ \t]*(?:line[ \t]+)?\d+[ \t]+"[^"\n]*"[ \t\d]*(?=[\r\n])  # a line that the C preprocessor leaves
    """,
    re.DOTALL | re.VERBOSE,
)
INTERMEDIATE_SOURCES = ".nv_intermediate_source_section"
_SOURCE_BEGIN = re.compile(r"\.source_begin[ \t]*(?=\n)")
_SOURCE_END = re.compile(r"^[ \t]*\.source_end[ \t]*$", re.MULTILINE)
"""Between the two is a text in another language, on lines of its own (PTX 9.4)."""


def places(text: str, part: str, start: int = 0, end: int = sys.maxsize) -> Iterator[int]:
    """Where a character, or a longer part, stands in a text, or in a piece of it."""
    at = text.find(part, start, end)
    while at >= 0:
        yield at
        at = text.find(part, at + 1, end)


def _sources(text: str) -> dict[int, tuple[int, int]]:
    """The spans of texts in other languages, by where their `.source_begin` stands.

    All ends are looked for at once: a text can have any number of begins without one.
    """
    if INTERMEDIATE_SOURCES not in text:
        return {}
    ends = [end.start() for end in _SOURCE_END.finditer(text)]
    begins = ((begin, bisect_left(ends, begin.end())) for begin in _SOURCE_BEGIN.finditer(text))
    return {begin.start(): (begin.end(), ends[n]) for begin, n in begins if n < len(ends)}


class Tokens:
    """The tokens of a source, or of some ranges of its text: parallel arrays of texts and of half-open places.

    The last tokens are a few `END`s, so that a reader may look ahead without asking whether there is something.
    """

    __slots__ = ("ends", "plain", "starts", "text", "texts")

    def __init__(self, source: Source, plain: PlainText | None = None, ranges: Sequence[tuple[int, int]] | None = None) -> None:
        self.plain = plain or PlainText(source)
        self.text = text = self.plain.text
        self.texts: list[str] = []
        kind = "I" if len(text) < 1 << 8 * array("I").itemsize else "Q"  # half the memory
        edges = array(kind)
        for first, last in ranges or ((0, len(text)),):
            start = first
            while start < last:
                cut = text.find("\n", start + _CHUNK, last)
                stop = last if cut < 0 else cut
                pieces = _TOKEN.split(text[start:stop])
                places = array(kind, accumulate(map(len, pieces), initial=start))
                edges += places[1:-1]
                self.texts += map(sys.intern, pieces[1::2])
                start = stop
        self.starts: array[int] = edges[0::2]
        self.ends: array[int] = edges[1::2]
        for _ in range(4):
            self.texts.append(END)
            self.starts.append(len(text))
            self.ends.append(len(text))


class PlainText:
    """The text of a source with its comments and preprocessor lines blanked out; line ends stay.

    `unclosed_comment` is where a comment starts that never ends, `nul` where a NUL character ends the text; -1 without.
    """

    __slots__ = ("nul", "text", "unclosed_comment")

    def __init__(self, source: Source) -> None:
        text = source.text
        self.nul = text.find("\0")
        self.unclosed_comment = -1
        self.text = self._blanked(text if self.nul < 0 else text[: self.nul])

    def _blanked(self, text: str) -> str:
        """The text with what is skipped blanked out; where that may begin is found faster than by the expression."""
        pieces, end, sources = list[str](), 0, _sources(text)
        for at in sorted([*places(text, '"'), *places(text, "/"), *places(text, "#"), *sources]):
            if at < end:
                continue
            if at in sources:
                start, stop = sources[at]
                blank = _blanks(text[start:stop])
            elif (found := _SKIPPED.match(text, at)) is not None:
                (start, stop), blank = found.span(), self._blank(found)
            else:
                continue
            pieces += (text[end:start], blank)
            end = stop
        return "".join([*pieces, text[end:]])

    def _blank(self, match: re.Match[str]) -> str:
        """Spaces for a comment; a string stays."""
        found = match[0]
        if found[0] == '"':
            return found
        if found[:2] == "/*" and (len(found) < 4 or found[-2:] != "*/"):
            self.unclosed_comment = match.start()
        return _blanks(found)


def _blanks(text: str) -> str:
    """Spaces for a text, with its line ends."""
    return "\n".join([" " * len(line) for line in text.split("\n")])


# ── literals (PTX 4.5) ──────────────────────────────────────────────────────────────────

_INTEGER = re.compile(r"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9]\d*))(U?)", re.ASCII)


LONGEST_NUMBER = 1000
"""The characters of a number that is read: converting more takes quadratic time."""


def integer(text: str) -> tuple[int, bool] | None:
    """The value of an integer literal and whether it has the suffix `U`; None if it is none (PTX 4.5.1)."""
    match = _INTEGER.fullmatch(text) if len(text) < LONGEST_NUMBER else None
    if match is None:
        return None
    hexadecimal, binary, octal, decimal, suffix = match.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    elif octal:
        value = int(octal, 8)
    else:
        value = int(decimal)
    return value, bool(suffix)


def float_bits(text: str) -> tuple[int, int]:
    """The bits and the width of a floating-point literal: 32 for `0f3F800000`, else 64 (PTX 4.5.2)."""
    if text[1:2] in ("f", "F"):
        return int.from_bytes(bytes.fromhex(text[2:])), 32
    if text[1:2] in ("d", "D"):
        return int.from_bytes(bytes.fromhex(text[2:])), 64
    (bits,) = struct.unpack("<Q", struct.pack("<d", float(text)))
    return bits, 64

"""Lazy reading: the outline of a module is its tree without the bodies of functions, which are read when they are needed.

Only a text without errors of syntax has an outline, as an error can change what the text behind it means.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, codes
from ptxvm.syntax import tree
from ptxvm.syntax.alike import LikeStatement, WrongModel, covered, like_statements, merged
from ptxvm.syntax.lexer import END, PlainText, Tokens, places
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.source import Source
from ptxvm.syntax.statements import BLANKS
from ptxvm.syntax.tables import tables

_STRING = re.compile(r'"[^"\n]*"')
_HEAD = re.compile(r"[ \t]*(\.(?:\w+\s+\.)?(?:entry\b|func\b(?:(?!\.(?:func|entry)\b)[^;{}])*\{))", re.ASCII)
_ABOVE = re.compile(rf"[{BLANKS}]*(?:\.loc\b[^\n]*\n|[%$\w]+[ \t]*:(?!:)|@[ \t]*!?[ \t]*[%$\w]+)", re.ASCII)
MOST_READ = 3
"""The bodies of a sketch that are read: an error above one ends within it, in most texts that are being written."""

_FUNCTION = re.compile(r"\.(?:entry|func)\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outline:
    """The tree of a module with unread bodies and statements, and the text from which they are read.

    `diagnostics` are the errors of syntax around the bodies.  `is_whole` tells that the braces match: all that was not read
    is the body of a function.
    """

    module: tree.Module
    source: Source
    plain: PlainText
    diagnostics: Sequence[Diagnostic] = ()
    is_whole: bool = True

    def statements(self, start: int, end: int) -> list[tree.Statement] | None:
        """The statements of a piece of a body; None where it has an error of syntax."""
        found = self.wrong_statements(start, end)
        return None if found is None or found[1] else found[0]

    def wrong_statements(self, start: int, end: int) -> tuple[list[tree.Statement], list[Diagnostic]] | None:
        """What could be read of a piece of a body, and its errors of syntax; None where they reach beyond the piece."""
        parser = self._parser(start, end)
        found = parser.statements()
        return None if parser.texts[parser.at] != END else (found, parser.diagnostics)

    def body(self, unread: tree.Unread) -> tree.Block | None:
        """The body in full; None where it has an error of syntax."""
        found = self.wrong_body(unread)
        return None if found is None or found[1] else found[0]

    def wrong_body(self, unread: tree.Unread) -> tuple[tree.Block, list[Diagnostic]] | None:
        """What could be read of a body, and its errors of syntax; None where they reach beyond the body."""
        parser = self._parser(unread.start, unread.end)
        found = parser.nested(parser.block)
        is_open = any(each.code == codes.UNCLOSED for each in parser.diagnostics)  # whose message looks behind the body
        return None if is_open or parser.texts[parser.at] != END else (found, parser.diagnostics)

    def statement(self, alike: tree.Alike) -> tree.Variable | tree.Function:
        """A statement that is not read yet; the body of a function stays unread."""
        ranges, unread = [(alike.start, alike.end)], set[int]()
        if alike.body_start >= 0:
            ranges, unread = [(alike.start, alike.body_start + 1), (alike.end - 1, alike.end)], {alike.body_start}
        (found,) = Parser(self.source, Tokens(self.source, self.plain, ranges), unread).module().statements
        if not isinstance(found, tree.Variable | tree.Function):
            raise TypeError(f"'{alike.name}' is declared by no statement like those above")
        return found

    def declaration(self, alike: tree.Alike) -> str:
        """The text of a statement that is not read yet, without a body."""
        return self.plain.text[alike.start : alike.end if alike.body_start < 0 else alike.body_start]

    def _parser(self, start: int, end: int) -> Parser:
        return Parser(self.source, Tokens(self.source, self.plain, [(start, end)]))


def outline(source: Source) -> Outline | None:
    """The outline of a module; None where what stands around the bodies has an error of syntax."""
    plain = PlainText(source)
    if plain.nul >= 0 or plain.unclosed_comment >= 0:
        return None
    found = _read(source, plain, 0)
    return found if found.is_whole and not found.diagnostics else None


def sketch(source: Source, *, parses_all: bool = False) -> Outline:
    """The outline of any text: what could be understood of it; a body whose braces do not match, or its head, is read.

    With `parses_all`, no statement of the module stays unread, but for bodies.
    """
    return _read(source, PlainText(source), MOST_READ, parses_all=parses_all)


def _read(source: Source, plain: PlainText, most_read: int, *, parses_all: bool = False) -> Outline:
    """The outline of a text; up to so many bodies and tables are read that an error has parted from their heads."""
    bodies = list(_bodies(plain.text))
    data = [place for start, end in _between(bodies, len(plain.text)) for place in tables(plain.text, start, end)]
    matched = plain.text.count("{") == plain.text.count("}")
    if matched and not parses_all and (like := like_statements(plain.text, bodies)):
        with suppress(WrongModel):
            found, missed = _outlined(source, plain, bodies, data, like)
            if missed is None and not found.diagnostics:  # an error can look at what stands behind it
                return found
    found, missed = _outlined(source, plain, bodies, data)
    for _ in range(most_read):
        if missed is None:
            break
        bodies, data = ([place for place in places if place != missed] for places in (bodies, data))
        found, missed = _outlined(source, plain, bodies, data)
    return found


def _outlined(
    source: Source,
    plain: PlainText,
    bodies: Sequence[tuple[int, int]],
    data: Sequence[tuple[int, int]],
    like: list[LikeStatement] | None = None,
) -> tuple[Outline, tuple[int, int] | None]:
    """The outline of a text in which bodies and tables stay unread, and the first of these that the parser takes for none."""
    like = like or []
    bodies = [*_without(bodies, like)]
    unread = [*bodies, *data]
    cuts = sorted([*[(start + 1, end - 1) for start, end in unread], *covered(plain.text, like)])
    edges = [0, *chain.from_iterable(cuts), len(plain.text)]
    parser = Parser(
        source, Tokens(source, plain, list(zip(edges[::2], edges[1::2], strict=True))), {start for start, _ in unread}
    )
    module = parser.module()
    functions = (each for each in module.statements if isinstance(each, tree.Function))
    met = {each.body.start for each in functions if isinstance(each.body, tree.Unread)}
    missed = [
        place for places, starts in ((bodies, met), (data, parser.unread_tables)) for place in places if place[0] not in starts
    ]
    if like and not parser.diagnostics:
        module.statements = merged(plain.text, module.statements, like)
    return Outline(module, source, plain, parser.diagnostics, not missed), min(missed, default=None)


def _without(bodies: Sequence[tuple[int, int]], like: Sequence[LikeStatement]) -> Iterator[tuple[int, int]]:
    """The bodies that belong to none of some statements; both are in the order of the text."""
    starts = (each.body_start for each in like if each.body_start >= 0)
    left = next(starts, -1)
    for body in bodies:
        if body[0] == left:
            left = next(starts, -1)
        else:
            yield body


def _between(bodies: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """The places around the bodies, which do not overlap, in a text of a length."""
    edges = [0, *chain.from_iterable(bodies), length]
    yield from zip(edges[::2], edges[1::2], strict=True)


def _bodies(text: str) -> Iterator[tuple[int, int]]:
    """The places of what stands in braces behind the head of a function.

    The head of a function ends what is open above it, as in the parser: the bodies below are found.
    """
    depth = start = last = 0
    for at in sorted([*_braces(text), *_heads(text)]):
        if text[at] == "{":
            if depth == 0:
                start = at
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth <= 0:
                head = max(last, text.rfind(";", last, start) + 1)
                last = at + 1
                if depth == 0 and _FUNCTION.search(text, head, start):
                    yield start, last
                depth = 0
        elif depth:
            depth, last = 0, at


def _braces(text: str) -> list[int]:
    """The places of the braces that stand in no string; where they do not match, without those of operands."""
    found = sorted([*places(text, "{"), *places(text, "}")])  # which takes a tenth of the time of an expression
    end = 0
    for quote in places(text, '"'):
        if quote >= end and (string := _STRING.match(text, quote)) is not None:
            end = string.end()
            del found[bisect_left(found, quote) : bisect_left(found, end)]
    matched = text.count("{") == text.count("}")
    return found if matched else list(_of_blocks(text, found))


def _of_blocks(text: str, braces: Sequence[int]) -> Iterator[int]:
    """The braces without those of operands: one that is not closed opens no block, for its instruction ends at the `;`."""
    last, closing = 0, -1
    for at, after in pairwise([*braces, len(text)]):
        if text[at] == "{" and _in_instruction(text, max(last, text.rfind(";", last, at) + 1), at):
            closing = after if text.find(";", at, after) < 0 and text[after : after + 1] == "}" else -1
        elif at != closing:
            yield at
        last = at + 1


def _in_instruction(text: str, start: int, at: int) -> bool:
    """Does a brace stand in the instruction that begins behind some blanks, labels, places of the source and a guard?

    One that begins a line would open a block behind an instruction that is wrong.
    """
    while (above := _ABOVE.match(text, start, at)) is not None:
        start = above.end()
    found = text[start:at]
    return found.lstrip(BLANKS)[:1] not in ("", ".") and found.rpartition("\n")[2].strip(BLANKS) != ""


def _heads(text: str) -> list[int]:
    """Where functions and kernels with bodies begin, each on a line of its own."""
    lines = {text.rfind("\n", 0, at) + 1 for word in (".entry", ".func") for at in places(text, word)}
    found = [_HEAD.match(text, line) for line in lines]
    return [head.start(1) for head in found if head is not None]

"""Lazy reading: the outline of a module is its tree without the bodies of functions, which are read when they are needed.

Only a text without errors of syntax has an outline, as an error can change what the text behind it means.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
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
_HEAD = re.compile(
    rf"[ \t]*(\.(?:(?:{'|'.join(tree.Linkage)})\s+\.)?(?:entry\b|func\b(?:(?!\.(?:func|entry)\b)[^;{{}}])*\{{))", re.ASCII
)
_ABOVE = re.compile(rf"[{BLANKS}]*(?:\.loc\b[^\n]*\n|[%$\w]+[ \t]*:(?!:)|@[ \t]*!?[ \t]*[%$\w]+)", re.ASCII)

_STRAY = re.compile(
    r"""^(?: [ \t]*+ (?:
        (?: @(?!@) | [a-z] ) [^;:{}"\n]*+ (?: \{ [^;{}"\n]*+ \} [^;{}"\n]*+ )* ;
      | [%$\w]++ [ \t]*+ :
      | \.loc [ \t] [\d \t]*+
    )?+ [ \t\r]*+ \n )+""",
    re.ASCII | re.MULTILINE | re.VERBOSE,
)
"""Lines of instructions, labels and places of the source, each with a line for itself."""

_FIRST = re.compile(r"(?:[^;]*;){3}[^\n]*\n")
"""The lines with the first three statements: behind a statement that is not finished, the reader needs some to go on."""

MOST_READ = 3
"""The bodies of a sketch that are read: an error above one ends within it, in most texts that are being written."""

_FUNCTION = re.compile(r"\.(?:entry|func)\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outline:
    """The tree of a module with unread bodies and statements, and the text from which they are read.

    `diagnostics` are the errors of syntax around the bodies.  `is_whole` tells that the braces match: all that was not read
    is the body of a function.  `has_open`: one of these has no `}`.
    """

    module: tree.Module
    source: Source
    plain: PlainText
    diagnostics: Sequence[Diagnostic] = ()
    is_whole: bool = True
    has_open: bool = False

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
        if unread.is_open:
            return None
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


def sketch(source: Source, *, parses_all: bool = False, reads_open: bool = False) -> Outline:
    """The outline of any text: what could be understood of it.

    With `parses_all`, no statement of the module stays unread, but for bodies; with `reads_open`, no body without a `}`.
    """
    return _read(source, PlainText(source), MOST_READ, parses_all=parses_all, reads_open=reads_open)


def _read(source: Source, plain: PlainText, most_read: int, *, parses_all: bool = False, reads_open: bool = False) -> Outline:
    """The outline of a text; up to so many bodies and tables are read that an error has parted from their heads."""
    outermost = list(_outermost(plain.text))
    bodies = [(each.start, each.end) for each in outermost if each.is_body and not (each.is_open and reads_open)]
    unclosed = frozenset(each.start for each in outermost if each.is_open)
    strays = list(_strays(plain.text, outermost))
    data = [place for start, end in _between(bodies, len(plain.text)) for place in tables(plain.text, start, end)]
    matched = plain.text.count("{") == plain.text.count("}")
    if matched and not unclosed and not parses_all and (like := like_statements(plain.text, bodies)):
        with suppress(WrongModel):
            found, missed = _outlined(source, plain, bodies, data, like)
            if missed is None and not found.diagnostics:  # an error can look at what stands behind it
                return found
    found, missed = _outlined(source, plain, bodies, data, unclosed=unclosed, strays=strays)
    for _ in range(most_read):
        if missed is None:
            break
        bodies, data = ([place for place in places if place != missed] for places in (bodies, data))
        found, missed = _outlined(source, plain, bodies, data, unclosed=unclosed, strays=strays)
    return found


def _outlined(
    source: Source,
    plain: PlainText,
    bodies: Sequence[tuple[int, int]],
    data: Sequence[tuple[int, int]],
    like: list[LikeStatement] | None = None,
    *,
    unclosed: Collection[int] = (),
    strays: Collection[tuple[int, int]] = (),
) -> tuple[Outline, tuple[int, int] | None]:
    """The outline of a text in which bodies and tables stay unread, and the first of these that the parser takes for none.

    The bodies that begin at the places of `unclosed` have no `}`; `strays` are lines that no one needs to read.
    """
    like = like or []
    bodies = [*_without(bodies, like)]
    unread = [*bodies, *data]
    inner = [(start + 1, end if start in unclosed else end - 1) for start, end in unread]
    cuts = sorted([*inner, *strays, *covered(plain.text, like)])
    edges = [0, *chain.from_iterable(cuts), len(plain.text)]
    tokens = Tokens(source, plain, list(zip(edges[::2], edges[1::2], strict=True)))
    parser = Parser(source, tokens, {start for start, _ in unread}, unclosed)
    module = parser.module()
    functions = (each for each in module.statements if isinstance(each, tree.Function))
    met = {each.body.start for each in functions if isinstance(each.body, tree.Unread)}
    missed = [
        place for places, starts in ((bodies, met), (data, parser.unread_tables)) for place in places if place[0] not in starts
    ]
    if like and not parser.diagnostics:
        module.statements = merged(plain.text, module.statements, like)
    has_open = any(start in unclosed for start, _ in bodies)
    return Outline(module, source, plain, parser.diagnostics, not missed, has_open), min(missed, default=None)


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


def _strays(text: str, outermost: Sequence[Braces]) -> Iterator[tuple[int, int]]:
    """The places of lines at module level that can only be the rest of a body: the first of them stand for all."""
    long = [(each.start, each.end) for each in outermost if each.is_body or text.find("\n", each.start, each.end) >= 0]
    for start, end in _between(long, len(text)):
        for found in _STRAY.finditer(text, start, end):
            if (first := _FIRST.match(text, found.start(), found.end())) is not None and first.end() < found.end():
                yield first.end(), found.end()


@dataclass(frozen=True, slots=True)
class Braces:
    """The place of the outermost braces and what stands in them; what `is_open` has no `}`.  `is_body`: of a function."""

    start: int
    end: int
    is_body: bool
    is_open: bool = False


def _outermost(text: str) -> Iterator[Braces]:
    """What stands in braces at module level.

    The head of a function ends what is open above it, as in the parser: the bodies below are found.
    """
    depth = start = last = 0
    for at in sorted([*_braces(text), *_heads(text), len(text)]):
        if text[at : at + 1] == "{":
            if depth == 0:
                start = at
            depth += 1
        elif text[at : at + 1] == "}":
            depth -= 1
            if depth == 0:
                yield Braces(start, at + 1, _is_of_function(text, last, start))
            if depth <= 0:
                depth, last = 0, at + 1
        elif depth:
            is_body = _is_of_function(text, last, start) and text.find(".section", start, at) < 0  # which ends a body, too
            yield Braces(start, at, is_body, is_open=True)
            depth, last = 0, at


def _is_of_function(text: str, last: int, start: int) -> bool:
    """Does a brace open the body of a function, whose head stands behind a place?"""
    return _FUNCTION.search(text, max(last, text.rfind(";", last, start) + 1), start) is not None


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

    One that begins a line would open a block behind an instruction that is wrong, and one of a head opens a body.
    """
    while (above := _ABOVE.match(text, start, at)) is not None:
        start = above.end()
    found = text[start:at]
    is_operand = found.lstrip(BLANKS)[:1] not in ("", ".") and found.rpartition("\n")[2].strip(BLANKS) != ""
    return is_operand and not any(start < head for head in _heads(text, start, at))


def _heads(text: str, start: int = 0, end: int = sys.maxsize) -> list[int]:
    """Where functions and kernels with bodies begin, each on a line of its own."""
    lines = {text.rfind("\n", 0, at) + 1 for word in (".entry", ".func") for at in places(text, word, start, end)}
    found = [_HEAD.match(text, line) for line in lines]
    return [head.start(1) for head in found if head is not None]

"""Lazy reading: the outline of a module is its tree without the bodies of functions, which are read when they are needed.

Only a text without errors of syntax has an outline, as an error can change what the text behind it means.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ptxvm.diagnostics import Diagnostic, codes
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import END, PlainText, Tokens
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.source import Source
from ptxvm.syntax.tables import tables

_BRACE = re.compile(r'"[^"\n]*"|[{}]')
_BRACE_OR_HEAD = re.compile(r'"[^"\n]*"|[{}]|^[ \t]*(?:\.\w+\s+)?\.(?:entry|func)\b', re.ASCII | re.MULTILINE)
_FUNCTION = re.compile(r"\.(?:entry|func)\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outline:
    """The tree of a module with unread bodies, and the text from which they are read.

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

    def _parser(self, start: int, end: int) -> Parser:
        return Parser(self.source, Tokens(self.source, self.plain, [(start, end)]))


def outline(source: Source) -> Outline | None:
    """The outline of a module; None where what stands around the bodies has an error of syntax."""
    plain = PlainText(source)
    if plain.nul >= 0 or plain.unclosed_comment >= 0:
        return None
    found = _read(source, plain)
    return found if found.is_whole and not found.diagnostics else None


def sketch(source: Source) -> Outline:
    """The outline of any text: what could be understood of it; a body whose braces do not match is read."""
    return _read(source, PlainText(source))


def _read(source: Source, plain: PlainText) -> Outline:
    bodies = list(_bodies(plain.text))
    data = list(_outside(bodies, tables(plain.text)))
    unread = sorted(bodies + data)
    edges = [0, *(edge for start, end in unread for edge in (start + 1, end - 1)), len(plain.text)]
    parser = Parser(
        source, Tokens(source, plain, list(zip(edges[::2], edges[1::2], strict=True))), {start for start, _ in unread}
    )
    module = parser.module()
    found = sum(isinstance(each, tree.Function) and isinstance(each.body, tree.Unread) for each in module.statements)
    return Outline(module, source, plain, parser.diagnostics, (found, parser.unread_tables) == (len(bodies), len(data)))


def _outside(bodies: Sequence[tuple[int, int]], places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places that lie in no body."""
    ends = [end for _, end in bodies]
    for start, end in places:
        body = bisect_right(ends, start)
        if body == len(bodies) or end <= bodies[body][0]:
            yield start, end


def _bodies(text: str) -> Iterator[tuple[int, int]]:
    """The places of what stands in braces behind the head of a function.

    Where braces do not match, the head of a function ends what is open above it, as in the parser: the bodies below are found.
    """
    depth = start = last = 0
    for found in (_BRACE if text.count("{") == text.count("}") else _BRACE_OR_HEAD).finditer(text):
        if found[0] == "{":
            if depth == 0:
                start = found.start()
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth <= 0:
                head = max(last, text.rfind(";", last, start) + 1)
                last = found.end()
                if depth == 0 and _FUNCTION.search(text, head, start):
                    yield start, last
                depth = 0
        elif depth and found[0][0] != '"':
            depth, last = 0, found.start()

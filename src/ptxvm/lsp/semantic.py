"""Semantic tokens: what each word of a document is, for the editor to colour; whole, by range, and as a difference.

They are incremental: the tokens of a piece are kept while its text, and what its names mean, stay.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

from lsprotocol import types

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.scope import DIGITS
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.lsp import names
from ptxvm.lsp.document import Document
from ptxvm.lsp.module import FunctionView, is_opcode
from ptxvm.lsp.names import NameKind
from ptxvm.lsp.pieces import Piece, pieces_of
from ptxvm.lsp.text import DocumentText
from ptxvm.reference.directive_words import DIRECTIVES

TYPES = ("comment", "string", "number", "keyword", "modifier", "type", "variable", "parameter", "function", "label", "macro")
"""The kinds of tokens; `macro` is an opcode, `keyword` a directive."""

MODIFIERS = ("declaration", "readonly", "static")
"""What else a token may be: a declaration; a special register; a variable of the module."""

DECLARATION, READONLY, STATIC = (1 << n for n in range(len(MODIFIERS)))

LEGEND = types.SemanticTokensLegend(list(TYPES), list(MODIFIERS))

MOST_PIECES = 1 << 13
"""The pieces that are remembered; all are forgotten where there are more."""

SPACES = frozenset(Space)
"""The state spaces, which are modifiers of instructions too."""

KINDS = {
    NameKind.REGISTER: "variable",
    NameKind.VARIABLE: "variable",
    NameKind.PARAMETER: "parameter",
    NameKind.LABEL: "label",
    NameKind.KERNEL: "function",
    NameKind.FUNCTION: "function",
    NameKind.TABLE: "label",
    NameKind.PROTOTYPE: "label",
}

_TOKEN = re.compile(
    r"""
      (?P<line> \r\n? | \n )
    | (?P<comment> //[^\r\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> "[^"\r\n]*" )
    | (?P<number> (?<![\w$%.]) \d[\w.]* )
    | (?P<dotted> (?<=\.) [A-Za-z_]\w* (?: ::\w+ )* )
    | (?P<name> [%$_A-Za-z][\w$]* )
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)

Meaning = tuple[str, int]
"""The kind of a token, and its modifiers as bits; no kind is that of a word without a token."""


@dataclass(frozen=True, slots=True)
class PieceTokens:
    """The tokens of a piece, in the protocol's code of differences; the first one is counted from where the piece begins.

    `lines` and `column` are the place of the last token.  `meanings` are those of its names, without which it must be looked
    at again.
    """

    data: Sequence[int]
    lines: int
    column: int
    meanings: dict[str, Meaning]


class Tokens:
    """The tokens of the pieces that were looked at, of all documents."""

    def __init__(self) -> None:
        self.looked_at = 0  # the pieces whose tokens were not known
        self._known: dict[tuple[str, tuple[int, ...]], PieceTokens] = {}

    def of(self, document: Document, first: int = 0, last: int | None = None) -> Iterator[tuple[Piece, PieceTokens]]:
        """The pieces in a span of a document; each is looked at when it is asked for, so that other work may come between."""
        if len(self._known) > MOST_PIECES:
            self._known.clear()
        scope = Scope(document)
        for piece in pieces_of(document):
            if piece.end <= first or (last is not None and last < piece.start):
                continue
            scope.enter(piece.function)
            text, declared = document.text.text[piece.start : piece.end], scope.declared(piece)
            known = self._known.get((text, declared))
            if known is None or any(scope.meaning(name) != meaning for name, meaning in known.meanings.items()):
                self.looked_at += 1
                known = tokens_of(DocumentText(text, document.text.encoding), scope, frozenset(declared))
                self._known[text, declared] = known
            yield piece, known

    def in_range(self, document: Document, range: types.Range) -> types.SemanticTokens:
        """The tokens of the lines of a range."""
        first, last = range.start.line, range.end.line
        pieces = self.of(document, document.text.line_span(first)[0], document.text.line_span(last)[1])
        found: list[int] = []
        line = 0
        for lines, *rest in _by_five(joined(document, pieces).data):
            line += lines
            if first <= line <= last:
                found += (lines if found else line, *rest)
        return types.SemanticTokens(found)


class Scope:
    """What names mean in the function that was entered last, and where they are declared."""

    def __init__(self, document: Document) -> None:
        every = document.module.names.every
        self._module = {each.name: _meaning(each.kind, STATIC if each.kind is NameKind.VARIABLE else 0) for each in every}
        self._declared = sorted(each.start for each in every)
        self._function: FunctionView | None = None
        self._inside: dict[str, Meaning] = {}
        self._declared_inside: list[int] = []

    def enter(self, function: FunctionView | None) -> None:
        """Let a function be the one whose names are known."""
        if function is self._function:
            return
        self._function, self._inside, self._declared_inside = function, {}, []
        if function is not None:
            parameters, inside = list(names.of_parameters(function.node, function.end)), names.of_text(function.text)
            self._inside = {each.name: _meaning(each.kind) for each in (*parameters, *inside)}
            starts = (*(each.start for each in parameters), *(function.start + each.start for each in inside))
            self._declared_inside = sorted(starts)

    def declared(self, piece: Piece) -> tuple[int, ...]:
        """Where names are declared in a piece, from its begin."""
        found = set()
        for places in (self._declared, self._declared_inside):
            found.update(places[bisect_left(places, piece.start) : bisect_left(places, piece.end)])
        return tuple(sorted(at - piece.start for at in found))

    def meaning(self, name: str) -> Meaning:
        """What a name means as a token; of a family of registers, the begin of its names is known."""
        found = self._inside.get(name) or self._inside.get(name.rstrip(DIGITS)) or self._module.get(name)
        return found or _meaning_anywhere(name)


def _meaning(kind: NameKind, modifiers: int = 0) -> Meaning:
    return KINDS[kind], modifiers


@cache
def _meaning_anywhere(name: str) -> Meaning:
    """What a name means that is not declared."""
    if name[0] in "%W" and name.removeprefix("%") in SPECIAL:
        return "variable", READONLY
    return ("macro", 0) if is_opcode(name) else ("", 0)


@cache
def _meaning_dotted(word: str) -> Meaning:
    """What a word behind a dot means."""
    if word in Type.named:
        return "type", 0
    return ("keyword" if f".{word}" in DIRECTIVES and word not in SPACES else "modifier"), 0


# ── the protocol's code ─────────────────────────────────────────────────────────────────


def tokens_of(text: DocumentText, scope: Scope, declared: Collection[int]) -> PieceTokens:
    """The tokens of a piece, by its text and the places where names are declared in it."""
    data: list[int] = []
    meanings: dict[str, Meaning] = {}
    line = column = 0  # of the last token
    here = line_start = 0
    for found in _TOKEN.finditer(text.text):
        group, word = found.lastgroup or "", found[0]
        if group == "line":
            here, line_start = here + 1, found.end()
            continue
        if group == "name":
            kind, modifiers = meanings.get(word) or meanings.setdefault(word, scope.meaning(word))
            if not kind:
                continue
        else:
            kind, modifiers = _meaning_dotted(word) if group == "dotted" else (group, 0)
        for start, end in (found.span(),) if group != "comment" else _rows(text, *found.span()):
            if group == "comment":
                here = text.line(start)
                line_start = text.line_starts[here]
            at = text.units(line_start, start)
            numbers = NUMBERS[kind], modifiers | (DECLARATION if start in declared else 0)
            data += (here - line, at - column if here == line else at, text.units(start, end), *numbers)
            line, column = here, at
    return PieceTokens(data, line, column, meanings)


NUMBERS = {kind: number for number, kind in enumerate(TYPES)}


def _rows(text: DocumentText, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of a comment on each line."""
    for line in range(text.line(start), text.line(max(start, end - 1)) + 1):
        line_start, line_end = text.line_span(line)
        if (first := max(start, line_start)) < (last := min(end, line_end)):
            yield first, last


def joined(document: Document, pieces: Iterable[tuple[Piece, PieceTokens]]) -> types.SemanticTokens:
    """The tokens of pieces that follow each other."""
    data: list[int] = []
    line = column = 0  # of the last token
    for piece, tokens in pieces:
        if not tokens.data:
            continue
        start = document.text.position(piece.start)
        lines, columns, *rest = tokens.data
        here, at = start.line + lines, columns if lines else start.character + columns
        data += (here - line, at - column if here == line else at, *rest)
        line, column = start.line + tokens.lines, tokens.column if tokens.lines else start.character + tokens.column
    return types.SemanticTokens(data, result_id=str(document.version))


def delta(before: types.SemanticTokens, now: types.SemanticTokens) -> types.SemanticTokensDelta:
    """The difference of two versions: one piece, between what they begin and what they end with."""
    old, new = before.data, now.data
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    edit = types.SemanticTokensEdit(start, len(old) - start - end, list(new[start : len(new) - end]))
    return types.SemanticTokensDelta([edit] if edit.delete_count or edit.data else [], result_id=now.result_id)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many numbers two lists have in common at their begin; half as many are compared in each step, all at once."""
    low, high = 0, min(len(one), len(other))  # so many are equal; so many may be
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _by_five(data: Sequence[int]) -> Iterator[tuple[int, ...]]:
    numbers = iter(data)
    return zip(numbers, numbers, numbers, numbers, numbers, strict=True)

"""Semantic tokens: what each word of a document is, for the editor to colour; whole, by range, and as a difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from lsprotocol import types

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.lsp.document import Document
from ptxvm.lsp.module import FunctionView, is_opcode
from ptxvm.lsp.names import NameKind
from ptxvm.reference.directive_words import DIRECTIVES

TYPES = ("comment", "string", "number", "keyword", "modifier", "type", "variable", "parameter", "function", "label", "macro")
"""The kinds of tokens; `macro` is an opcode, `keyword` a directive."""

MODIFIERS = ("declaration", "readonly", "static")
"""What else a token may be: a declaration; a special register; a variable of the module."""

LEGEND = types.SemanticTokensLegend(list(TYPES), list(MODIFIERS))

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
      (?P<comment> //[^\r\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> "[^"\r\n]*" )
    | (?P<number> (?<![\w$%.]) \d[\w.]* )
    | (?P<dotted> (?<=\.) [A-Za-z_]\w* (?: ::\w+ )* )
    | (?P<name> [%$_A-Za-z][\w$]* )
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)

Token = tuple[int, int, str, int]
"""The span of a token, its type, and its modifiers as bits."""


def tokens(document: Document, start: int = 0, end: int | None = None) -> types.SemanticTokens:
    """The tokens of a document, or of a part of it, as the protocol codes them: each place from the one before."""
    text = document.text
    last = len(text.text) if end is None else end
    data: list[int] = []
    line = column = 0
    for first, behind, kind, modifiers in _by_line(document, _tokens(document, start, last)):
        at = text.line(first)
        units = text.units(text.line_starts[at], first)
        data += (at - line, units - (column if at == line else 0), text.units(first, behind), TYPES.index(kind), modifiers)
        line, column = at, units
    return types.SemanticTokens(data, result_id=str(document.version))


def in_range(document: Document, range: types.Range) -> types.SemanticTokens:
    """The tokens of the lines of a range."""
    first, last = range.start.line, range.end.line
    found = tokens(document, document.text.line_span(first)[0], document.text.line_span(last)[1])
    return types.SemanticTokens(found.data)


def delta(before: types.SemanticTokens, now: types.SemanticTokens) -> types.SemanticTokensDelta:
    """The difference of two versions: one piece, between what they begin and what they end with."""
    old, new = before.data, now.data
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    edit = types.SemanticTokensEdit(start, len(old) - start - end, list(new[start : len(new) - end]))
    return types.SemanticTokensDelta([edit] if edit.delete_count or edit.data else [], result_id=now.result_id)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many numbers two lists have in common at their begin."""
    for at, (mine, others) in enumerate(zip(one, other, strict=False)):
        if mine != others:
            return at
    return min(len(one), len(other))


def _by_line(document: Document, found: Iterator[Token]) -> Iterator[Token]:
    """The same; a token over several lines is one on each."""
    text = document.text
    for start, end, kind, modifiers in found:
        first, last = text.line(start), text.line(max(start, end - 1))
        for line in range(first, last + 1):
            line_start, line_end = text.line_span(line)
            if (here := max(start, line_start)) < (behind := min(end, line_end)):
                yield here, behind, kind, modifiers


def _tokens(document: Document, start: int, end: int) -> Iterator[Token]:
    module = document.module
    function: FunctionView | None = None
    kinds: dict[str, tuple[str, int]] = {}
    of_module = {each.name: _known(each.kind, of_module=True) for each in module.names.every}
    declared = {each.start for each in module.names.every}
    text = document.source.text
    behind = -1
    for found in _TOKEN.finditer(text, start, end):
        at = found.start()
        if at >= behind:
            function = module.function_at(at)
            kinds = _kinds(function) if function is not None else {}
            declared |= {each.start for each in function.names.every} if function is not None else set()
            behind = function.end if function is not None else _next_function(document, at)
        group = found.lastgroup or ""
        kind, modifiers = (group, 0) if group in TYPES else _word(found[0], kinds, of_module, dotted=group == "dotted")
        if kind:
            yield at, found.end(), kind, modifiers | (at in declared)


def _next_function(document: Document, offset: int) -> int:
    starts = (function.node.start for function in document.module.functions)
    return next((start for start in starts if start > offset), len(document.text.text) + 1)


def _kinds(function: FunctionView) -> dict[str, tuple[str, int]]:
    """The names of a function; of a family the begin of its names."""
    return {each.name: _known(each.kind, of_module=False) for each in function.names.every}


def _known(kind: NameKind, *, of_module: bool) -> tuple[str, int]:
    return KINDS[kind], 4 if of_module and kind is NameKind.VARIABLE else 0


def _word(
    word: str, kinds: dict[str, tuple[str, int]], of_module: dict[str, tuple[str, int]], *, dotted: bool
) -> tuple[str, int]:
    """What a name is, or a word behind a dot."""
    if dotted:
        return (
            "type" if word in Type.named else "keyword" if f".{word}" in DIRECTIVES and word not in SPACES else "modifier"
        ), 0
    found = kinds.get(word) or kinds.get(word.rstrip("0123456789")) or of_module.get(word)
    if found is not None:
        return found
    if word[0] in "%W" and word.removeprefix("%") in SPECIAL:
        return "variable", 2
    return ("macro", 0) if _opcode(word) else ("", 0)


@cache
def _opcode(word: str) -> bool:
    return is_opcode(word)

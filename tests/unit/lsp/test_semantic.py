"""Semantic tokens: each word by what it is, in the protocol's code of differences."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import Position, Range, SemanticTokens

from ptxvm.lsp.document import Document
from ptxvm.lsp.semantic import MODIFIERS, TYPES, delta, in_range, tokens
from ptxvm.lsp.text import DocumentText


def decoded(document, found):
    """The words of tokens with their kinds: what an editor makes of the numbers."""
    line = column = 0
    for n in range(0, len(found.data), 5):
        lines, columns, length, kind, modifiers = found.data[n : n + 5]
        line, column = line + lines, columns + (0 if lines else column)
        start = document.text.offset(Position(line, column))
        end = document.text.offset(Position(line, column + length))
        names = "".join(f" {name}" for bit, name in enumerate(MODIFIERS) if modifiers >> bit & 1)
        yield document.text.text[start:end], TYPES[kind] + names


def test_each_word_is_what_it_is(at):
    document, _ = at("/* \U0001f600 */ ld.global.u32 %r1, [table+4]; mov.u32 %r2, %tid.x; // done^")
    found = list(decoded(document, tokens(document)))
    for each in (
        ("/* \U0001f600 */", "comment"),
        ("ld", "macro"),
        ("global", "modifier"),
        ("u32", "type"),
        ("%r1", "variable"),
        ("table", "variable static"),
        ("4", "number"),
        ("%tid", "variable readonly"),
        ("// done", "comment"),
        ("LOOP", "label declaration"),
        ("LOOP", "label"),
        ("k", "function declaration"),
        ("out", "parameter"),
        ("version", "keyword"),
        ("%rd", "variable declaration"),
    ):
        assert each in found


def test_a_range_has_the_tokens_of_its_lines(at):
    document, position = at("add.s32 %r1, %r1, 1;^")
    found = in_range(document, Range(Position(position.line, 5), position))
    assert [word for word, _ in decoded(document, found)] == ["add", "s32", "%r1", "%r1", "1"]


def test_a_comment_over_lines_is_one_token_on_each():
    document = Document("file:///a.ptx", DocumentText("/* a\r\n b */ .version 8.0\n"))
    assert [word for word, kind in decoded(document, tokens(document)) if kind == "comment"] == ["/* a", " b */"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([], [1, 2]),
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 3], [1, 9, 3]),
        ([1, 1], [1, 1, 1]),
        ([1, 2, 1], [1]),
        ([5], []),
        ([1, 2], [3]),
    ],
)
def test_a_difference_turns_one_version_into_the_other(before, now):
    edits = delta(SemanticTokens(before), SemanticTokens(now)).edits
    result = list(before)
    for each in edits:
        result[each.start : each.start + each.delete_count] = each.data
    assert result == now
    assert bool(edits) == (before != now)

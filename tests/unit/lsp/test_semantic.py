"""Semantic tokens: each word by what it is, in the protocol's code of differences."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import Position, Range, SemanticTokens, TextDocumentContentChangePartial

from ptxvm.lsp.document import Document
from ptxvm.lsp.pieces import pieces_of
from ptxvm.lsp.semantic import MODIFIERS, TYPES, Tokens, delta, joined
from ptxvm.lsp.text import DocumentText

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def tokens(document):
    """All tokens, with nothing known of another version."""
    return joined(document, Tokens().of(document))


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
    found = Tokens().in_range(document, Range(Position(position.line, 5), position))
    assert [word for word, _ in decoded(document, found)] == ["add", "s32", "%r1", "%r1", "1"]


def test_a_comment_over_lines_is_one_token_on_each():
    document = Document("file:///a.ptx", DocumentText("/* a\r\n b */ .version 8.0\n"))
    assert [word for word, kind in decoded(document, tokens(document)) if kind == "comment"] == ["/* a", " b */"]


def test_a_range_within_a_comment_is_comment():
    document = Document("file:///a.ptx", DocumentText("/* add\n sub\n mul */ .version 8.0\n"))
    found = Tokens().in_range(document, Range(Position(1, 0), Position(2, 0)))
    assert list(decoded(document, found)) == [
        (" sub", "comment"), (" mul */", "comment"), ("version", "keyword"), ("8.0", "number"),
    ]  # fmt: skip


def kernel(name, count):
    lines = "".join(f"    add.u32 %r{n % 9}, %r{n % 7}, {n};\n" for n in range(count))
    return f".visible .entry {name}(.param .u64 a)\n{{\n    .reg .b32 %r<9>;\n    mov.u32 %r1, x;\n{lines}    ret;\n}}\n"


def edited(document, old, new):
    """The document with the last `old` as `new`."""
    start = document.text.text.rindex(old)
    change = TextDocumentContentChangePartial(document.text.range(start, start + len(old)), new)
    return document.edited([change], (document.version or 0) + 1)


def test_an_edit_leaves_the_tokens_of_other_pieces_alone():
    text = HEAD + ".global .u32 x;\n" + "".join(kernel(f"k{n}", 20) for n in range(50)) + kernel("long", 5000)
    known, document = Tokens(), Document("file:///a.ptx", DocumentText(text), 1)
    joined(document, known.of(document))
    pieces = known.looked_at
    assert pieces > 60  # the long one is in parts
    for old, new in (("k20", "kernel20"), ("%r0, %r0, 2520;", "%r0,\n %r0, /*\n*/ 2520;"), ("k7(", "\nk7(")):
        document, before = edited(document, old, new), known.looked_at
        assert joined(document, known.of(document)).data == tokens(document).data
        assert known.looked_at - before <= 3
    document, before = edited(document, ".global .u32 x", ".global .u32 z"), known.looked_at
    assert joined(document, known.of(document)).data == tokens(document).data
    assert known.looked_at - before == 52  # which all mention x


NEW = ["/*", "*/", '"', "//", "\n", "\r", "{", "}", ".reg .b32 x;\n", "\U0001f600", "a", kernel("n", 90)]


@pytest.mark.parametrize("session", range(4))
def test_what_is_known_of_other_versions_changes_no_token(session, rng):
    """Random edits, also such as open comments and strings over many pieces."""
    text = HEAD + ".global .u32 x;\n" + kernel("k", 400) + "/* a\n comment */\n" + kernel("l", 3) + kernel("m", 300)
    known, document = Tokens(), Document("file:///a.ptx", DocumentText(text), 1)
    for version in range(12):
        start = int(rng.integers(len(document.text.text)))
        end = start + int(rng.choice([0, 0, 1, 30, 300]))
        new = str(rng.choice(NEW))
        document = document.edited([TextDocumentContentChangePartial(document.text.range(start, end), new)], version)
        assert joined(document, known.of(document)).data == tokens(document).data


@pytest.mark.parametrize("text", ["", "\n", "add", "/*", HEAD + kernel("k", 3000), HEAD + kernel("k", 3).replace("\n", "\r\n")])
def test_pieces_are_the_text(text):
    document = Document("file:///a.ptx", DocumentText(text))
    found = list(pieces_of(document))
    assert "".join(text[each.start : each.end] for each in found) == text
    assert max((text[each.start : each.end].count("\n") for each in found), default=0) <= 1025


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

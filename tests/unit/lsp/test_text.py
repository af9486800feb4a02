"""Positions and edits, against the definition in the protocol: lines end with LF, CR LF or CR, columns count code units."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
)

from ptxvm.lsp.text import DocumentText

MIXED = "a\r\nbc\rd\u2028e\ff\n\U0001f600x\u00e9y"


@pytest.mark.parametrize(
    ("encoding", "column"),
    [(PositionEncodingKind.Utf8, 7), (PositionEncodingKind.Utf16, 4), (PositionEncodingKind.Utf32, 3)],
)
def test_columns_count_the_code_units_of_the_encoding(encoding, column):
    text = DocumentText(MIXED, encoding)
    assert text.position(len(MIXED) - 1) == Position(3, column)
    assert text.offset(Position(3, column)) == len(MIXED) - 1


def test_lines_end_where_the_protocol_says_and_nowhere_else():
    text = DocumentText(MIXED)
    assert [MIXED[slice(*text.line_span(n))] for n in range(4)] == ["a", "bc", "d\u2028e\ff", "\U0001f600x\u00e9y"]


@pytest.mark.parametrize(("line", "column"), [(0, 99), (0, 1), (3, 1000), (9, 0), (9, 9)])
def test_positions_past_an_end_are_the_end(line, column):
    text = DocumentText(MIXED)
    lines = re.split(r"\r\n|\r|\n", MIXED)
    end = MIXED.index(lines[line]) + len(lines[line]) if line < len(lines) else len(MIXED)
    assert text.offset(Position(line, column)) == end


def test_a_position_within_a_pair_of_surrogates_is_that_of_its_character():
    assert DocumentText(MIXED).offset(Position(3, 1)) == MIXED.index("\U0001f600")


@pytest.mark.parametrize("encoding", list(PositionEncodingKind))
def test_every_offset_comes_back(encoding):
    text = DocumentText(MIXED, encoding)
    ends = {n + 1 for n in range(len(MIXED)) if MIXED[n : n + 2] == "\r\n"}
    assert [text.offset(text.position(n)) for n in range(len(MIXED) + 1) if n not in ends] == [
        n for n in range(len(MIXED) + 1) if n not in ends
    ]


def test_edits_are_applied_one_after_the_other():
    text = DocumentText("add\nsub\n").changed(
        [
            TextDocumentContentChangePartial(Range(Position(0, 3), Position(1, 0)), " "),
            TextDocumentContentChangePartial(Range(Position(0, 4), Position(0, 7)), "\u00e9\U0001f600"),
            TextDocumentContentChangePartial(Range(Position(0, 7), Position(0, 7)), "!"),
        ]
    )
    assert text.text == "add \u00e9\U0001f600!\n"
    assert text.changed([TextDocumentContentChangeWholeDocument("x")]).text == "x"

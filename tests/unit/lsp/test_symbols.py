"""Symbols and folding."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import Position, Range, TextDocumentContentChangePartial

from ptxvm.lsp import symbols
from ptxvm.lsp.symbols import Symbols, folding, workspace_symbols


def test_symbols_are_the_variables_and_functions_with_what_they_declare(at):
    document, _ = at("^")
    found = Symbols().of(document)
    assert [(each.name, each.detail) for each in found] == [("table", ".global .align 4 .u32 table[16]"), ("k", "kernel")]
    assert {each.name for each in found[1].children} == {"out", "n", "%r<8>", "%rd<4>", "%f<4>", "%p<2>", "tile", "LOOP"}
    for each in (*found, *found[1].children):
        assert document.text.span(each.range)[0] <= document.text.span(each.selection_range)[0]
        assert document.text.span(each.selection_range)[1] <= document.text.span(each.range)[1]


@pytest.mark.parametrize(("line", "text"), [(0, "\n"), (6, "\n"), (6, "    .reg .b32 new;\n"), (4, "/* \U0001f600 */ ")])
def test_symbols_of_a_function_that_has_moved_are_not_looked_for_again(at, monkeypatch, line, text):
    """Only where its lines have changed; either way they are those of the new text."""
    document, _ = at("^")
    known = Symbols()
    known.of(document)
    made = []
    make = symbols._symbol
    monkeypatch.setattr(symbols, "_symbol", lambda document, each: (made.append(each.name), make(document, each))[1])
    edit = TextDocumentContentChangePartial(Range(Position(line, 0), Position(line, 0)), text)
    document = document.edited([edit], 2)
    found = known.of(document)
    assert ("LOOP" in made) is (line >= 4)
    assert found == Symbols().of(document)


def test_few_functions_are_remembered(at, monkeypatch):
    monkeypatch.setattr(symbols, "MOST_FUNCTIONS", 0)
    document, _ = at("^")
    known = Symbols()
    assert known.of(document) == known.of(document)
    assert len(known._known) == 1


def test_symbols_of_the_workspace_have_the_letters_of_the_query(at):
    document, _ = at("^")
    assert [each.name for each in workspace_symbols([document], "tbl")] == ["table"]
    assert [each.name for each in workspace_symbols([document], "")] == ["table", "k"]
    assert workspace_symbols([document], "lbt") == []


def test_blocks_and_comments_fold(at):
    text = ".version 8.0\n.target sm_90\n/* a\nb */\n.entry k()\n{\n// c\n// d\n  {\n    ret;\n    ret;\n  }\n}^\n"
    found = {(each.start_line, each.end_line, each.kind) for each in folding(at(text)[0])}
    assert found == {(2, 3, "comment"), (5, 11, None), (6, 7, "comment"), (8, 10, None)}


@pytest.mark.parametrize("text", ["}{", "{", ".entry", ".entry k(", '"{', "/*", "\0", ".func (", ".version"])
def test_text_that_is_no_module_does_not_fail(at, text):
    document, _ = at(f".version 8.0\n{text}^")
    Symbols().of(document)
    folding(document)

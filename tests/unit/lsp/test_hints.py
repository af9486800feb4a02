"""Inlay hints and lints of a document, function by function."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import DiagnosticSeverity, DiagnosticTag, Position, Range

from ptxvm.analysis.divergence import Divergence
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.lsp.diagnostics import shown
from ptxvm.lsp.document import Document
from ptxvm.lsp.hints import MOST_STATEMENTS, Hints, lints
from ptxvm.lsp.text import DocumentText

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, 128;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
    xor.b32 %r6, %r5, %r1;
    st.global.u32 [%rd3], %r6;
    mov.u32 %r7, 0;
    ret;
}
"""
EVERYWHERE = Range(Position(0, 0), Position(99, 0))


def document(text=TEXT):
    return Document("file:///a.ptx", DocumentText(text))


def lints_of(document):
    return [each for start, known in Hints(IncrementalChecker()).of(document) for each in lints(document, start, known)]


def test_each_result_has_its_type_and_how_it_differs_between_threads():
    """By the special registers: `%tid.x` grows by 1 from thread to thread, `%ctaid.x` is the same in all of a CTA (PTX 10)."""
    found = {hint.position.line + 1: hint.label for hint in Hints(IncrementalChecker()).inlay(document(), EVERYWHERE)}
    assert found == {
        8: ".u64 uniform", 9: ".u32 affine +1", 10: ".u32 uniform", 11: ".u32 = 128", 12: ".u32 affine +1",
        13: ".u64 affine +4", 14: ".s64 affine +4", 15: ".u32 varying", 16: ".b32 varying", 18: ".u32 = 0",
    }  # fmt: skip


def test_hints_stand_behind_the_register_and_in_the_range():
    (hint,) = Hints(IncrementalChecker()).inlay(document(), Range(Position(8, 0), Position(8, 40)))
    assert hint.position == Position(8, 15)


def test_lints_are_hints_that_grey_what_is_not_needed():
    (found,) = lints_of(document())
    there = shown(document(), found)
    assert (there.code, there.severity, there.tags) == ("P0702", DiagnosticSeverity.Hint, [DiagnosticTag.Unnecessary])
    assert there.range.start == Position(17, 12)


def test_a_module_with_errors_has_none():
    wrong = document(TEXT.replace("ret;", "rett;"))
    assert Hints(IncrementalChecker()).inlay(wrong, EVERYWHERE) == []
    assert lints_of(wrong) == []


def test_a_function_that_has_moved_keeps_its_hints():
    hints = Hints(IncrementalChecker())
    before = [(hint.position.line, hint.label) for hint in hints.inlay(document(), EVERYWHERE)]
    after = [(hint.position.line, hint.label) for hint in hints.inlay(document(f"\n\n{TEXT}"), EVERYWHERE)]
    assert after == [(line + 2, label) for line, label in before]
    assert len(hints._known) == 1


def test_hints_are_found_step_by_step(monkeypatch):
    """Reading a function, its shapes and its lints are apart, and the shapes are found once for both."""
    solved = []
    solve = Divergence._solve
    monkeypatch.setattr(Divergence, "_solve", lambda self: (solved.append(self), solve(self)))
    hints = Hints(IncrementalChecker())
    *before, (start, known) = hints.steps(document())
    assert before == [None, None]
    assert [each.code for each in known.lints] == ["P0702"]
    assert len(solved) == 1
    assert list(hints.steps(document())) == [(start, known)]


def test_a_long_function_is_not_read_for_its_hints(monkeypatch):
    """Its statements are counted in the text: reading 50,000 of them takes more than half a second."""
    long = TEXT.replace("    ret;", "    add.s32 %r1, %r1, 1;\n" * (MOST_STATEMENTS + 1) + "    ret;")
    read = []
    monkeypatch.setattr("ptxvm.lsp.hints.hints_of", read.append)
    assert Hints(IncrementalChecker()).inlay(document(long), EVERYWHERE) == []
    assert not read

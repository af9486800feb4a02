"""Quick fixes and code lenses: a fix takes away what it is offered for, and what the help says is what it writes."""

from __future__ import annotations

import shlex

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import CodeActionKind, Position, Range

from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.cli import main
from ptxvm.lsp.actions import actions
from ptxvm.lsp.diagnostics import findings
from ptxvm.lsp.document import Document
from ptxvm.lsp.lenses import lenses
from ptxvm.lsp.text import DocumentText


def fixed(text, title):
    """The text after the fix of that title."""
    document = Document("file:///a.ptx", DocumentText(text))
    everything = Range(Position(0, 0), Position(999, 0))
    offered = actions(document, everything, findings(document, IncrementalChecker()))
    (edit,) = next(each.edit.changes[document.uri] for each in offered if each.title == title)
    assert all(each.kind == CodeActionKind.QuickFix for each in offered)
    start, end = document.text.span(edit.range)
    return text[:start] + edit.new_text + text[end:]


@pytest.mark.parametrize(
    ("wrong", "title", "right"),
    [
        ("mvo.u32 %r1, 1;", "Change to `mov`", "mov.u32 %r1, 1;"),
        ("mov.u32 %r1, 1", "Insert `;`", "mov.u32 %r1, 1;"),
        ("add.s33 %r1, %r1, 1;", "Change to `.s32`", "add.s32 %r1, %r1, 1;"),
        ("ld.global.u32 %r1, [tile];", "Change to `.shared`", "ld.shared.u32 %r1, [tile];"),
        ("mov.u32 %r1, tiel;", "Change to `tile`", "mov.u32 %r1, tile;"),
        ("add.u32 %r1 %r2, 1;", "Insert `,`", "add.u32 %r1, %r2, 1;"),
        ("add.u32 %r1, /* a */ %r2  // b\n 1;", "Insert `,`", "/* a */ %r2,  // b\n 1;"),
        ("ld.global.u32 %r1, %rd1;", "Change to `[%rd1]`", "ld.global.u32 %r1, [%rd1];"),
        ("mov.u32 %r8, 1;", "Change to `%r<9>`", ".reg .b32 %r<9>;"),
        ("mov.u32 %counter, 1;", "Declare `.reg .b32 %counter;`", "{\n    .reg .b32 %counter;\n    .reg .b32 %r<8>;"),
        ("and.b32.sat %r1, %r1, 1;", "Remove `.sat`", "and.b32 %r1, %r1, 1;"),
    ],
)
def test_a_fix_cures_what_it_is_offered_for(at, wrong, title, right):
    document, _ = at(f"{wrong}^")
    text = fixed(document.text.text, title)
    assert right in text
    assert findings(Document("file:///a.ptx", DocumentText(text)), IncrementalChecker()) == []


def test_a_version_is_changed_where_it_stands():
    text = ".version 6.0\n.target sm_90a // chip\n.entry k() { .reg .pred p; elect.sync _|p, -1; }\n"
    assert fixed(text, "Change to `.version 8.0`").startswith(".version 8.0\n.target sm_90a")


def test_what_is_right_has_no_fix(at):
    document, position = at("mov.u32 %r1, 1;^")
    assert actions(document, Range(position, position), findings(document, IncrementalChecker())) == []


def test_a_fix_is_offered_at_its_place_only(at):
    document, _ = at("mvo.u32 %r1, 1;^")
    assert actions(document, Range(Position(0, 0), Position(0, 5)), findings(document, IncrementalChecker())) == []


# ── code lenses ─────────────────────────────────────────────────────────────────────────


def test_each_kernel_has_commands_with_arguments_of_its_parameters():
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"
        ".entry k(.param .u64 a, .param .f32 b, .param .align 4 .b8 c[2]) .reqntid 32, 2 { ret; }\n"
        ".entry pair() .explicitcluster .reqnctapercluster 2 { ret; }\n"
    )
    found = lenses(Document("file:///tmp/my%20kernel.ptx", DocumentText(text)))
    assert [each.command.title for each in found] == ["Run", "Profile", "Debug"] * 2
    first = "ptxvm run '/tmp/my kernel.ptx' --entry k --grid 1 --block 32,2 'f32[1024]' 1 hex:0000"
    assert found[0].command.arguments == [first]
    assert found[5].command.arguments == ["ptxvm debug '/tmp/my kernel.ptx' --entry pair --grid 2 --block 32"]
    assert {each.range.start.line for each in found} == {4, 5}


def test_the_command_of_a_lens_runs(tmp_path):
    path = tmp_path / "fill.ptx"
    path.write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry fill(.param .u64 out, .param .f32 x) {\n"
        ".reg .b64 %a; .reg .f32 %x; ld.param.u64 %a, [out]; ld.param.f32 %x, [x]; st.global.f32 [%a], %x; ret; }\n"
    )
    run = lenses(Document(path.as_uri(), DocumentText(path.read_text())))[0].command.arguments[0]
    assert main(shlex.split(run)[1:]) == 0


def test_a_litmus_test_has_a_command():
    text = ".version 8.0\n.target sm_90\n//: litmus MP\n"
    (found,) = lenses(Document("file:///a.ptx", DocumentText(text)))
    assert (found.command.arguments, found.range.start.line) == (["ptxvm litmus /a.ptx"], 2)

"""The outline of a text that is being written: what stands around the bodies, and bodies that are left unread."""

from __future__ import annotations

import pytest

from ptxvm.syntax import outline as outlines, tree
from ptxvm.syntax.outline import outline, sketch
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.source import Source

RIGHT = ".version 8.0\n.target sm_90\n.global .u32 x;\n.entry k() { add.s32 ; }\n.func f() { ret; }\n"


def names(text):
    return [each.name for each in sketch(Source(text)).module.statements if isinstance(each, tree.Function)]


def test_bodies_are_left_unread():
    found = sketch(Source(RIGHT))
    assert [type(each.body) for each in found.module.statements if isinstance(each, tree.Function)] == [tree.Unread] * 2
    assert outline(Source(RIGHT)).module == found.module


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RIGHT.replace("x;", "x"), ["k", "f"]),
        (RIGHT.replace("k()", "k("), ["k", "f"]),
        (RIGHT.replace("; }\n.func", ";\n.func"), ["k", "f"]),
        (RIGHT + "/* no end", ["k", "f"]),
        (RIGHT + "\0.func", ["k", "f"]),
        ("", []),
    ],
)
def test_what_is_wrong_hides_nothing_else(text, found):
    assert names(text) == found
    assert outline(Source(text)) is None or not text


@pytest.mark.parametrize(("before", "after"), [("{ ", "{ { "), ("; }", "; } }"), ("; }", "; ")])
def test_braces_that_do_not_match_leave_the_bodies_below_unread(before, after):
    text = RIGHT.replace(before, after, 1)
    assert text != RIGHT
    found = sketch(Source(text + "\n.entry below()\n{ ret; }\n"))
    assert found.is_whole
    assert found.diagnostics
    assert isinstance(found.module.statements[-1].body, tree.Unread)


OPERANDS = ["mov.b64 {", "L: ld.v2.u32 {%r1, %r2", ".loc 1 2 3\n mov.b64 %rd1, {%r1;", 'add.s32 "', "/ a;"]
"""Instructions that are being written in a body."""


@pytest.mark.parametrize("wrong", OPERANDS)
def test_a_brace_of_an_operand_opens_no_block(wrong):
    """The instruction ends at its `;`, and the body of the function at its own brace: it stays unread."""
    found = sketch(Source(RIGHT.replace("add.s32 ;", f"{wrong} ; {{ ret; }} mov.b64 {{%r1, %r2}}, %rd1;")))
    assert [type(each.body) for each in found.module.statements if isinstance(each, tree.Function)] == [tree.Unread] * 2
    assert found.is_whole
    assert found.diagnostics == []


@pytest.mark.parametrize("head", [".entry e()", ".visible .entry e()", ".func f()", ".func (.reg .b32 r) g(.reg .b32 a)"])
def test_a_head_on_a_line_of_its_own_ends_the_body_above(head):
    """The braces of the text match: the body of the kernel holds another."""
    found = sketch(Source(RIGHT.replace("add.s32 ;", f"\n{head}\n{{ ret; }}")))
    assert found.is_whole
    assert [each.message for each in found.diagnostics][:1] == ["this `{` is not closed"]
    assert isinstance(found.module.statements[-1].body, tree.Unread)


def test_a_brace_behind_a_guard_opens_a_block():
    """The parser says that a guard cannot stand there, and reads the block."""
    found = sketch(Source(RIGHT.replace("add.s32 ;", "@%p1 { ret;")), reads_open=True)
    assert [each.message for each in found.diagnostics] == [
        "a guard cannot stand before a block", "this `{` is not closed",
    ]  # fmt: skip


def test_a_function_that_is_declared_in_a_body_ends_nothing():
    found = sketch(Source(RIGHT.replace("add.s32 ;", "\n.func f();\n")))
    assert found.diagnostics == []
    assert found.is_whole


STRAYS = ["@%p bra L;", "L:", ".loc 1 2 3", "bar.sync 0;", "ld.v2.u32 {%r1, %r2}, [x];", "call (a), f, (b);", "", "ret;"]
"""Lines of a body that ended too early."""


def test_the_first_line_behind_a_brace_too_many_stands_for_all(monkeypatch):
    """Thousands of lines of all kinds are one mistake, and few of them are read; the functions below are read as ever."""
    text = ".version 8.0\n.target sm_90\n.entry k()\n{ ret; }\n}\n" + "\n".join(STRAYS * 1000) + "\n}\n.reg .b32 %z;\nret;\n"
    whole = Parser(Source(text + ".entry below()\n{ ret; }\nret;\n"))
    whole.module()
    assert [(each.code, each.line) for each in whole.diagnostics] == [("P0114", 5), ("P0105", text.count("\n") + 3)]
    read = []
    monkeypatch.setattr(
        outlines, "Parser", lambda source, tokens, *places: read.append(tokens) or Parser(source, tokens, *places)
    )
    found = sketch(whole.source)
    assert found.diagnostics == whole.diagnostics
    assert isinstance(found.module.statements[-1].body, tree.Unread)
    assert max(len(each.texts) for each in read) < 100


@pytest.mark.parametrize("ends", ["", "\n/* no end", "\n.visible .entry below(\n", "\n.section .debug_x\n{\n"])
def test_a_body_without_its_brace_is_left_unread_up_to_what_ends_it(ends):
    """Up to the end of the text or the head of a function; where a section ends it, it is read."""
    text = ".version 8.0\n.target sm_90\n.entry k()\n{\n    ret;\n" + ends
    found = sketch(Source(text))
    body = found.module.statements[2].body
    reader = Parser(Source(text))
    reader.module()
    assert sorted(each.message for each in found.diagnostics) == sorted(each.message for each in reader.diagnostics)
    if "section" in ends:
        assert isinstance(body, tree.Block)
    else:
        assert (body.is_open, body.start) == (True, text.index("{"))
        assert body.inner_end == body.end == (text.index(".visible") if "visible" in ends else len(text))
        assert found.wrong_body(body) is None

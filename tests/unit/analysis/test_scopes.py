"""Names in bodies: blocks, families, labels, order; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.analysis.symbols import Label
from ptxvm.syntax.source import Source


def kernel(text):
    return f".entry k(.param .b32 q) {{ .reg .b32 a; {text} ret; }}"


@pytest.mark.parametrize(
    "text",
    [
        "{ .reg .f32 a; mov.f32 a, 1.0; } mov.b32 a, 1;",
        "{ mov.b32 a, 1; .reg .f32 a; mov.f32 a, 1.0; }",  # each sees what is above it
        "{ .reg .f32 q; mov.f32 q, 1.0; }",
        ".reg .b32 x<3>; .reg .b32 x; mov.b32 x, x2;",
        ".reg .b32 x<3>; { .reg .b64 x<2>; mov.b64 x1, 1; mov.b32 x2, 1; }",
        ".reg .b32 x<11>; .reg .b32 x1<2>; mov.b32 x10, x00009;",
        ".reg .b32 x<3>; x1: ret;",
        "{ bra L; } L:",
        "L: { M: bra M; } { M: bra L; }",
        "{ a: bra a; }",
        ".reg .b32 %tid; mov.b32 %tid, 1;",
    ],
)
def test_what_ptxas_takes(errors, text):
    assert errors(kernel(text)) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".reg .f32 a;", "P0202", "a"),
        (".reg .b32 q;", "P0202", "q"),
        (".reg .b32 x<3>, x2;", "P0202", "x2"),
        (".reg .b32 x<3>; .shared .b32 x02;", "P0202", "x02"),
        (".reg .b32 x2; .reg .b32 x<3>;", "P0202", "x"),
        (".reg .b32 x<3>; .reg .b64 x<2>;", "P0202", "x"),
        ("a: ret;", "P0202", "a:"),
        ("L: ret; L: ret;", "P0202", "L:"),
        ("L: ret; .reg .b32 L;", "P0202", "L"),
        ("t: .branchtargets L; L: ret; t: ret;", "P0202", "t:"),
        ("mov.b32 x, 1; .reg .b32 x;", "P0201", "x"),
        ("mov.b32 x1, 1; .reg .b32 x<2>;", "P0201", "x1"),
        ("st.shared.b32 [s], 1; .shared .b32 s;", "P0201", "s"),
        ("{ .reg .b32 x; } mov.b32 x, 1;", "P0201", "x"),
        (".reg .b32 x<2>; mov.b32 x2, 1;", "P0201", "x2"),
        (".reg .b32 x<10>; mov.b32 x010, 1;", "P0201", "x010"),
        (".reg .b32 x1<3>; mov.b32 x12, 1;", "P0201", "x12"),  # its number is 12, and there is no x<13>
        ("t: .branchtargets L, nosuch; L:", "P0201", "nosuch"),
        ("t: .branchtargets a;", "P0207", "a"),
        ("t: .calltargets a;", "P0207", "a"),
    ],
)
def test_what_ptxas_refuses(errors, text, code, place):
    assert errors(kernel(text)) == [(code, place)]


def test_a_branch_back_beats_one_ahead(program):
    """`L` is known above the block, so within it stands for that until it is passed again."""
    function = program(kernel("L: mov.b32 a, 1; { bra L; L: bra L; }")).functions["k"]
    first, second = (b.scope.find("L") for b in function.instructions if b.node.opcode == "bra")
    assert isinstance(first, Label)
    assert (first.index, second.index) == (0, 2)


def test_leading_zeros_name_the_same_register(program):
    function = program(kernel(".reg .b32 %r<10>; mov.b32 %r1, 5; mov.b32 a, %r01;")).functions["k"]
    scope = function.instructions[0].scope
    assert scope.find("%r01") is scope.find("%r1")


def test_a_late_declaration_does_not_double_registers(program):
    """The block behind `z` is a scope of its own, and shares the families with what is above it."""
    function = program(kernel(".reg .b32 %r<10>; mov.b32 %r1, 5; .reg .b32 z; mov.b32 z, %r1;")).functions["k"]
    first, second = (b.scope for b in function.instructions[:2])
    assert first is not second
    assert first.find("%r1") is second.find("%r1")
    assert [r.name for r in function.registers] == ["a", "z", "%r1"]


def test_long_digits_are_no_member(errors):
    name = "x" + "1" * 5000
    assert errors(kernel(f".reg .b32 x<3>; mov.b32 {name}, 1;")) == [("P0201", name)]


def test_a_loc_holds_within_braces_and_behind_them():
    """It is about the instructions that follow it in the text (PTX 11.5.4), as in the braces around a call."""
    program, _ = analyse(
        Source("""
        .version 8.0
        .target sm_80
        .address_size 64
        .file 1 "a.cu"
        .entry k()
        {
            .reg .b32 %r<3>;
            bar.sync 0;
            .loc 1 10 0
            { mov.b32 %r1, 1; { .loc 1 20 0
                mov.b32 %r2, 2; } mov.b32 %r1, 3; }
            ret;
        }
        """)
    )
    assert [bound.origin for bound in program.functions["k"].instructions] == ["", "a.cu:10", "a.cu:20", "a.cu:20", "a.cu:20"]

"""State spaces, types, vectors, arrays and alignments; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest


def body(text):
    return f".visible .entry k() {{\n{text}\nret;\n}}"


@pytest.mark.parametrize(
    "text",
    [
        ".global .v4 .f16 x;",
        ".global .texref x[2];",
        ".const .texref x[2];",
        ".global .b32 a[] = {1, 2};",
        ".global .b32 a[0] = {1};",
        ".extern .shared .b32 a[];",
        ".extern .global .b32 a[][2];",
        ".shared .b32 a[WARP_SZ];",
        ".global .align 65536 .b32 x;",
        ".global .attribute(.managed) .b32 a;",
        ".const .b8 a[65536];",
        ".func f(.param .f16x2 x[2]) { ret; }",
        ".func f(.reg .pred p) { ret; }",
        ".visible .entry k(.param .surfref x) { ret; }",
        body(".local .v2 .b64 x; .param .v2 .b32 y[2];"),
        body(".const .b32 a = 1; .global .b32 b;"),
        body("t: .callprototype _ (.param .pred _, .param .v2 .b32 _, .param .align 256 .b8 _[4]);"),
        body(".reg .b32 r<18446744073709551616>;"),
        body(".b64; .v2 .u16; .align 4 .f32;"),
        ".pred; .extern .v4 .b32; .attribute(.managed) .u8; .common .shared .b32;",
    ],
)
def test_what_ptxas_takes(errors, text):
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".param .b32 a;", "P0510", ".param"),
        (".reg .b32 a;", "P0508", ".reg .b32 a;"),
        (".local .b32 a;", "P0508", ".local .b32 a;"),
        (".tex .u32 a;", "P0508", ".tex .u32 a;"),
        (".const[0] .b32 a;", "P0508", ".const[0] .b32 a;"),
        (".global .pred x;", "P0511", ".global"),
        (".global .v2 .pred x;", "P0511", ".global .v2 .pred x;"),
        (".shared .texref t;", "P0511", ".shared"),
        (".global .samplerref s;", "P0511", "s"),
        (".func f(.param .texref t) { ret; }", "P0511", "t"),
        (".func f(.param .v2 .b32 x) { ret; }", "P0511", "x"),
        (".entry k(.param .f16x2 x) { ret; }", "P0511", "x"),
        (body(".reg .b32 a[4];"), "P0511", "a[4]"),
        (body(".global .texref t;"), "P0511", "t"),
        (".global .align 3 .b32 x;", "P0512", "3"),
        (".global .align 0 .b32 x;", "P0512", "0"),
        (".func f(.param .align 256 .b8 x[8]) { ret; }", "P0512", "256"),
        (".global .v4 .f64 x;", "P0513", ".v4"),
        (".v4 .f64;", "P0513", ".v4"),
        (body(".b64 x;"), "P0104", ".b64"),
        (".global .v2 .texref x;", "P0513", ".v2"),
        (".shared .b32 a[];", "P0514", "a"),
        (".global .b32 a[2][0];", "P0514", "a[2][0]"),
        (body(".local .b32 a[0];"), "P0514", "a"),
        (".shared .b32 a = 1;", "P0515", "1"),
        (".extern .global .b32 a = 1;", "P0515", "1"),
        (body(".reg .b32 a = 1;"), "P0515", "1"),
        (".common .shared .b32 a;", "P0520", ".common .shared .b32 a;"),
        (".const .attribute(.managed) .b32 a;", "P0521", ".managed"),
        (".const .b8 a[40000], b[40000];", "P0522", "b[40000]"),
        (body("t: .callprototype _ (.param .pred _[2]);"), "P0511", ".param .pred _[2]"),
        (body(".reg .b32 r<9>; .reg .b16 h<4294967296>;"), "P0517", "h<4294967296>"),
        (body(".local .b32 r<0x7fffffffffffffff>;"), "P0517", "r<0x7fffffffffffffff>"),
    ],
)
def test_what_ptxas_refuses(errors, text, code, place):
    assert errors(text) == [(code, place)]


@pytest.mark.parametrize(
    ("head", "text", "code"),
    [
        (".version 8.2\n.target sm_70\n", ".global .b128 x;", "P0506"),
        (".version 8.3\n.target sm_50\n", ".global .b128 x;", "P0507"),
        (".version 4.2\n.target sm_52\n", ".global .f16x2 x;", "P0507"),
        (".version 3.0\n.target sm_30\n", ".weak .global .b32 x;", "P0506"),
        (".version 4.3\n.target sm_30\n", ".common .global .b32 x;", "P0506"),
        (".version 1.4\n.target sm_10\n", ".global .texref x;", "P0506"),
        (".version 1.4\n.target sm_10\n", body(".param .b32 x;"), "P0510"),
        (".version 2.1\n.target sm_20\n", ".extern .const .b32 a[];", "P0506"),
        (".version 2.1\n.target sm_20\n", ".const[3] .b32 a;", "P0510"),
    ],
)
def test_what_versions_and_targets_lack(errors, head, text, code):
    assert [found for found, _ in errors(head + text)] == [code]


@pytest.mark.parametrize(
    "text",
    [
        ".version 1.4\n.target sm_10\n.tex .u32 a;",
        ".version 2.1\n.target sm_20\n.extern .const[10] .b32 a[];",
        ".version 2.1\n.target sm_20\n.extern .const[007] .b32 a[];",
        ".version 1.3\n.target sm_10\n.entry k { .param .b32 x; ret; }",
    ],
)
def test_what_old_versions_had(errors, text):
    assert errors(text) == []


def test_parameters_in_the_body_of_an_old_kernel(program):
    kernel = program(".version 1.3\n.target sm_10\n.entry k { .param .u64 x; .param .b32 y; ret; }").functions["k"]
    assert [p.name for p in kernel.signature.parameters] == ["x", "y"]


@pytest.mark.parametrize("text", [".reg .b32 a;", ".reg .pred p<4>;", ".local .b32 l[4];"])
def test_registers_of_a_module_ended_with_ptx_3(errors, text):
    assert errors(f".version 2.3\n.target sm_20\n{text}") == []
    assert errors(f".version 3.0\n.target sm_20\n{text}") == [("P0508", text)]


def test_nothing_declared_is_nothing_wrong(errors):
    assert errors(".param .b32;") == []


@pytest.mark.parametrize(("count", "has"), [(2**64 + 1, True), (2**64, False), (2**63, False)])
def test_the_number_of_registers_is_signed_and_has_64_bits(errors, count, has):
    """As ptxas 13.0 reads it."""
    for number, code in ((0, None if has else "P0201"), (1, "P0201")):
        found = errors(body(f".reg .b32 %x<{count}>; mov.u32 %x{number}, 1;"))
        assert [each for each, _ in found] == [code] * (code is not None)

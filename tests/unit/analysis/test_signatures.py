"""Parameters and results of kernels and functions; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "text",
    [
        ".entry k(.param .u64 .ptr .global .align 16 p, .param .b32 .align 8 a) { ret; }",
        ".entry k(.param .b32 _) { ret; }",
        ".func (.reg .b32 r, .reg .b32 s) f(.reg .b32 a, .param .b32 b) { ret; }",
        ".func f(.param .b32 a, .param .align 8 .b8 v[]) { ret; }",
        ".extern .func (.param .b32 a) f(.param .b32 a, .param .b32 a);",
        ".entry k(.param .b32 %tid, .param .b32 k) { ret; }",
        ".entry k(.param .b8 a, .param .align 16 .b8 b[32748]) { ret; }",
        ".entry k(.param .texref t, .param .b8 a[32764]) { ret; }",
    ],
)
def test_what_ptxas_takes(errors, text):
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".entry k(.reg .b32 a) { ret; }", "P0510", ".reg .b32 a"),
        (".func f(.global .b32 a) { ret; }", "P0510", ".global .b32 a"),
        (".func f(.param .b32 _) { ret; }", "P0206", "_"),
        (".entry k(.param .b32 _, .param .b32 _) { ret; }", "P0202", "_"),
        (".func (.param .b32 a) f(.param .b32 a) { ret; }", "P0202", "a"),
        (".func (.param .b32 r, .param .b32 s) f() { ret; }", "P0523", ".param .b32 r"),
        (".func (.reg .b32 r, .param .b32 s) f() { ret; }", "P0523", ".param .b32 s"),
        (".func (.param .b8 r[]) f() { ret; }", "P0514", ".param .b8 r[]"),
        (".func f(.param .b8 v[], .param .b32 a) { ret; }", "P0514", ".param .b8 v[]"),
        (".entry k(.param .b8 a[0]) { ret; }", "P0514", ".param .b8 a[0]"),
        (".func (.param .b32 r) f() .noreturn { exit; }", "P0524", ".noreturn"),
        (".func f(.param .u64 .ptr .global a) { ret; }", "P0525", ".ptr .global"),
        (".func f(.param .b32 .align 8 a) { ret; }", "P0525", "8"),
        (".entry k(.param .b8 a[32765]) { ret; }", "P0526", "k"),
        (".func f(.param .b8 a[4294967297]) { ret; }", "P0526", "a[4294967297]"),
        (".func .attribute(.unified(1, 2)) f() { ret; }", "P0521", ".unified(1, 2)"),
    ],
)
def test_what_ptxas_refuses(errors, text, code, place):
    assert [found for found in errors(text) if found != ("P0514", "v")] == [(code, place)]


@pytest.mark.parametrize(
    ("head", "text", "codes"),
    [
        ("1.3\n.target sm_10", ".entry k(.param .b32 a) { ret; }", ["P0506"]),
        ("2.0\n.target sm_13", ".func f(.param .b32 a) { ret; }", ["P0507"]),
        ("5.0\n.target sm_30", ".func f(.param .b8 a[]) { ret; }", ["P0506"]),
        ("5.1\n.target sm_30", ".func f(.param .b8 a[]) { ret; }", []),  # 5.1 counts as 6.0
        ("2.1\n.target sm_20", ".entry k(.param .u64 .ptr a) { ret; }", ["P0506"]),
        ("6.3\n.target sm_30", ".func f() .noreturn { exit; }", ["P0506"]),
        ("8.0\n.target sm_70", ".entry k(.param .b8 a[4353]) { ret; }", ["P0526", "P0506"]),  # both, in ptxas 13.0
        ("8.1\n.target sm_60", ".entry k(.param .b8 a[4353]) { ret; }", ["P0507"]),
        ("8.1\n.target sm_70", ".entry k(.param .b8 a[4353]) { ret; }", []),
        ("1.4\n.target sm_10", ".entry k(.param .b8 a[257]) { ret; }", ["P0526"]),
    ],
)
def test_versions_and_targets(errors, head, text, codes):
    assert [code for code, _ in errors(f".version {head}\n{text}")] == codes


@pytest.mark.parametrize(
    ("prototype", "code"),
    [
        ("_ (.param .b32 a, .param .b32 a)", None),
        ("(.reg .b32 _, .reg .b32 _) _ (.reg .b32 _, .reg .b32 _)", None),
        ("_ (.param .u64 .ptr _)", None),
        ("_ (.global .b32 _)", "P0510"),
        ("_ (.param .align 3 .b8 _[4])", "P0512"),
        ("(.param .b32 _, .param .b32 _) _ ()", "P0523"),
        ("(.param .b32 _) _ () .noreturn", "P0524"),
        ("_ (.param .v4 .b64 _)", "P0513"),
    ],
)
def test_prototypes(errors, prototype, code):
    found = errors(f".entry k() {{ t: .callprototype {prototype}; ret; }}")
    assert [each for each, _ in found] == [code] * (code is not None)


def test_parameters_have_places_in_the_register_file(program):
    f = program(".func (.reg .b32 r) f(.reg .b64 a) { .reg .b32 x; mov.b32 r, x; ret; }").functions["f"]
    assert [register.name for register in f.registers] == ["r", "a", "x"]
    assert [register.index for register in f.registers] == [0, 1, 2]


def test_an_own_result_is_not_read(errors):
    text = ".func (.param .b32 q) f() { .reg .b32 r; ld.param.b32 r, [q]; ret; }"
    assert errors(text) == [("P0527", "[q]")]


def test_what_no_call_returned_is_not_read(errors):
    text = ".entry k() { .reg .b32 r; .param .b32 y; st.param.b32 [y], 1; ld.param.b32 r, [y+0]; ret; }"
    assert errors(text) == [("P0527", "[y+0]")]

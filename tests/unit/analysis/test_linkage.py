"""Symbols of modules: linkage, agreement, aliases, order; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

from itertools import product

import pytest

LINKAGES = ("", ".extern ", ".visible ", ".weak ", ".common ")


# ── variables (PTX 11.6) ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("first", "second"), list(product(LINKAGES, repeat=2)))
def test_a_variable_is_defined_once_and_declared_as_often_as_you_like(errors, first, second):
    found = [code for code, _ in errors(f"{first}.global .b32 a; {second}.global .b32 a;")]
    if ".extern " not in (first, second):
        assert found == ["P0202"]
    elif (first, second) == (".extern ", ""):
        assert found == ["P0203"]  # the definition is not visible
    else:
        assert found == []


@pytest.mark.parametrize(
    "text",
    [
        ".extern .global .b32 a[]; .visible .global .b32 a[4];",
        ".extern .global .b32 a[][2]; .visible .global .b32 a[3][2];",
        ".extern .global .align 8 .b32 a; .visible .global .b32 a;",
        ".extern .global .b32 a; .extern .const .b32 a;",
        ".extern .shared .b32 a[]; .extern .shared .b32 a[];",
        ".extern .global .b32 a<2>; .visible .global .b32 a1;",
    ],
)
def test_declarations_that_agree(errors, text):
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".extern .global .b32 a; .visible .global .u32 a;", "P0203", "a"),
        (".extern .global .b32 a; .visible .global .b32 a[1];", "P0203", "a"),
        (".extern .global .b32 a[4]; .visible .global .b32 a[8];", "P0203", "a"),
        (".extern .global .b32 a[2][2]; .visible .global .b32 a[4];", "P0203", "a"),
        (".extern .global .v2 .b32 a; .extern .global .b64 a;", "P0203", "a"),
        (".global .b32 a1; .global .b32 a<2>;", "P0202", "a"),
        (".global .b32 a; .entry a() { ret; }", "P0203", "a"),
        (".func a() { ret; } .extern .global .b32 a;", "P0203", "a"),
        (".global .b32 %tid;", "P0204", "%tid"),
        (".func %laneid() { ret; }", "P0204", "%laneid"),
    ],
)
def test_declarations_that_do_not(errors, text, code, place):
    assert errors(text) == [(code, place)]


def test_the_definition_is_kept(program):
    found = program(".extern .global .b32 a[]; .visible .global .b32 a[2] = {1, 2}; .extern .global .b32 a[];")
    assert found.variables["a"].dimensions == (2,)
    assert found.scope.find("a") is found.variables["a"]


# ── functions (PTX 11.2.2) ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("first", "second"), list(product(LINKAGES[:4], repeat=2)))
def test_linkage_of_functions(errors, first, second):
    found = [code for code, _ in errors(f"{first}.func g(); {second}.func g() {{ ret; }}")]
    fits = second != ".extern " and (first == second or (not second and first != ".extern "))
    assert (found == []) == fits


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        (".param .b32 a", ".param .b32 b", True),
        (".param .align 4 .b32 a", ".param .b32 a", True),
        (".param .b8 a[0]", ".param .b8 a[]", True),
        (".param .b32 a", ".param .u32 a", False),
        (".param .b32 a", ".reg .b32 a", False),
        (".param .b32 a", ".param .align 8 .b32 a", False),
        (".param .b8 a[8]", ".param .b8 a[16]", False),
        (".param .b8 a[]", ".param .b8 a[8]", False),
        (".param .b8 a[4]", ".param .b32 a", False),
        ("", ".param .b32 a", False),
    ],
)
def test_prototypes_agree_with_definitions(errors, first, second, agree):
    assert errors(f".func f({first}); .func f({second}) {{ ret; }}") == ([] if agree else [("P0203", "f")])


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".func f() { ret; } .func f();", "P0202", "f"),
        (".func f() { ret; } .func f() { ret; }", "P0202", "f"),
        (".entry f(); .func f() { ret; }", "P0203", "f"),
        (".func f() .noreturn; .func f() { ret; }", "P0203", "f"),
        (".extern .func f() { ret; }", "P0203", ".extern"),
        (".visible .func f();", "P0205", "f"),
        (".entry f;", "P0205", "f"),
    ],
)
def test_functions_that_ptxas_refuses(errors, text, code, place):
    assert errors(text) == [(code, place)]


@pytest.mark.parametrize("text", [".extern .func f();", ".extern .entry f();", ".func (.param .b32 r) malloc();"])
def test_functions_of_others(errors, text):
    assert errors(text) == []


def test_a_later_definition_keeps_the_linkage(program):
    assert program(".visible .func f(); .func f() { ret; }").functions["f"].linkage == "visible"


# ── aliases (PTX 11.2.3) ────────────────────────────────────────────────────────────────

G = ".visible .func g() { ret; } .visible .func f(); .visible .func h(); "


def test_an_alias_is_found_as_its_function(program):
    found = program(f"{G}.alias f, g; .alias h, f; .func k() {{ call h; ret; }}")
    assert found.aliases == {"f": "g", "h": "g"}
    assert found.scope.find("h") is found.functions["g"]
    assert found.function("h") is found.functions["g"]


def test_the_function_may_be_defined_below(program):
    found = program(".func g(); .visible .func f(); .alias f, g; .func g() { ret; }")
    assert found.scope.find("f").defined


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (".alias f, nosuch;", "P0201", "nosuch"),
        (".alias nosuch, g;", "P0201", "nosuch"),
        (".global .b32 v; .alias f, v;", "P0505", "v"),
        (".entry e() { ret; } .alias f, e;", "P0505", "e"),
        (".alias g, f;", "P0505", "g"),
        (".alias f, f;", "P0505", "f"),
        (".alias f, h; .alias h, f;", "P0505", "f"),
        (".alias f, g; .alias f, g;", "P0505", "f"),
        (".weak .func w() { ret; } .alias f, w;", "P0505", "w"),
        (".extern .func x(); .alias f, x;", "P0505", "x"),
        (".func p(.param .b32 a) { ret; } .alias f, p;", "P0505", "f"),
        (".func p() .noreturn { exit; } .alias f, p;", "P0505", "f"),
    ],
)
def test_aliases_that_ptxas_refuses(errors, text, code, place):
    assert [found for found in errors(G + text) if found[0] != "P0205"] == [(code, place)]


def test_many_aliases_in_a_row(errors):
    names = "".join(f".visible .func f{n}();\n" for n in range(2000))
    chain = "".join(f".alias f{n}, f{n + 1};\n" for n in range(1999))
    text = f"{names}{chain}.visible .func f1999() {{ ret; }}"
    assert errors(text) == []
    assert [code for code, _ in errors(f"{names}{chain}.alias f1999, f0;")][-1] == "P0505"


# ── order ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (".func f() { call g; ret; } .func g() { ret; }", "g"),
        (".entry k() { .reg .b32 r; ld.global.b32 r, [z]; ret; } .global .b32 z;", "z"),
    ],
)
def test_a_function_sees_what_stands_above_it(errors, text, place):
    assert errors(text) == [("P0201", place)]


@pytest.mark.parametrize(
    "text",
    [
        ".func f() { call f; ret; }",
        ".func g(); .func f() { call g; ret; } .func g() { ret; }",
        ".func f() { .extern .func g(); call g; ret; } .func h() { call g; ret; }",
    ],
)
def test_what_is_above(errors, text):
    assert errors(text) == []

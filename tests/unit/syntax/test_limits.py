"""No text makes the reader raise, hang or fill the memory."""

from __future__ import annotations

import random
import sys
import time

import pytest

from ptxvm.diagnostics import render
from ptxvm.syntax import Source, parse, print_module, tree
from ptxvm.syntax.statements import STATEMENT

BODY = ".entry k() {\n"
MANY = 100_000

MONSTERS = {
    "parentheses": BODY + "mov.b32 %r1, " + "(" * MANY,
    "matched parentheses": ".global .b32 x = " + "(" * MANY + "1" + ")" * MANY + ";",
    "braces": BODY + "{" * MANY,
    "matched braces": BODY + "{" * MANY + "}" * MANY + "}",
    "braces on lines": BODY + "{\n" * MANY,
    "initialisers": ".global .b32 x[] = " + "{" * MANY + "}" * MANY + ";",
    "brackets": BODY + "ld.b32 %r1, " + "[" * MANY,
    "minuses": BODY + "mov.b32 %r1, " + "-" * MANY + "1; }",
    "conditionals": BODY + "mov.b32 %r1, " + "1?" * MANY + "1;",
    "groups": BODY + "call " + "(" * MANY,
    "guards": BODY + "@" * MANY,
    "comments": "/*" * MANY,
    "quotes": '"' * (2 * MANY + 1),
    "quotes on lines": '"\n' * MANY,
    "dots": "." * MANY,
    "labels": BODY + "L:\n" * MANY,
    "modifiers": BODY + "mov" + " .b32" * MANY + " %r1;",
    "operands": BODY + "mov " + "%r1," * MANY,
    "digits": BODY + "mov.b32 %r1, " + "1" * MANY + ";",
    "an exponent": BODY + "mov.f32 %f1, 1e" + "9" * MANY + ";",
    "targets": BODY + "b: .branchtargets L<99999999999>;",
    "functions": ".func f();\n" * (MANY // 10),
    "broken functions": BODY + ".func f\n" * (MANY // 10),
    "kernels": ".entry k {\n{\n" * (MANY // 10),
    "no semicolons": BODY + "add.u32 %r1\n" * (MANY // 4),
    "semicolons": ";" * MANY,
    "closing braces": "}" * MANY,
    "sections": ".section .x {" + " .b8 1 " * MANY,
    "other letters": "é" * MANY,
    "line ends": "\r" * MANY,
    "nothing": "",
    "blanks": " \t\n" * MANY,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MONSTERS)
def test_monsters(name):
    source = Source(MONSTERS[name])
    module, found = parse(source)
    render([(source, found[:20])])
    if not found:
        assert parse(print_module(module)) == (module, [])


@pytest.mark.parametrize("name", ["parentheses", "matched braces", "initialisers", "minuses", "conditionals"])
def test_too_deep_is_an_error_that_says_so(name):
    assert "P0111" in [found.code for found in parse(MONSTERS[name])[1]]


def test_what_is_deep_and_not_too_deep(read):
    read(BODY + "{" * 100 + "}" * 100 + "}")
    read(".global .b32 x = " + "(" * 100 + "1" + ")" * 100 + ";")
    read(".global .b32 x = 1" + "+ 1" * 100 + ";")


def test_a_sum_has_any_number_of_terms():
    """A sum of 100,000 terms passes ptxas 13.0; so it does all that walk over it."""
    text = "1+2 * 3" + " + 2 * 3" * (MANY - 1)
    module, found = parse(f".global .b32 x = {text};")
    assert not found
    assert f"= {text};" in print_module(module)
    assert repr(module).count(" + ") == MANY


def test_the_number_of_errors_has_an_end():
    _, found = parse(BODY + "add.u32 %r1\n" * 12_000)
    assert len(found) == 10_001
    assert found[-1].code == "P0199"


@pytest.mark.parametrize("size", range(0, 400, 7))
def test_truncated(size):
    text = (
        '.version 8.7\n.target sm_90a\n.file 1 "a.cu"\n.global .align 8 .b32 a[2] = {1, 0xFF(b)};\n'
        ".visible .entry k(.param .u64 .ptr .global p) .maxntid 32\n{\n.reg .b32 %r<9>;\n.loc 1 2 3\n"
        "L: @!%p1 ld.global.v2.u32 {%r1, _}, [p+4];\ncall (%r1), f, (%r2, 5), proto;\nt: .branchtargets A, B;\n"
        "p: .callprototype (.param .b32 _) _ ();\n}\n.section .debug_x { .b8 1 L: .b32 L-M }\n"
    )
    module, found = parse(text[:size])
    assert isinstance(module, tree.Module)
    assert all(0 <= each.span.start <= each.span.end <= size for each in found)


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes(seed):
    data = random.Random(seed).randbytes(3000)
    source = Source(data if seed % 2 else data.replace(b"\0", b" "))
    render([(source, parse(source)[1])])


def test_work_is_linear():
    """Four times the text takes about four times the calls of functions; a quadratic reader would take sixteen."""

    def calls(count: int) -> int:
        text = ".version 8.7\n.target sm_90\n" + BODY + "add.s32 %r1, %r2, 123;\n" * count + "}"
        made = 0

        def count_call(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count_call)
        try:
            parse(text)
        finally:
            sys.setprofile(before)
        return made

    assert calls(8_000) < 5 * calls(2_000)


@pytest.mark.parametrize("text", [" " * 40_000 + '"', "add" + " " * 40_000 + '"'])
def test_blanks_before_what_is_no_statement_are_passed_once(text):
    """A comment of many lines, blanked out, before a quote that nothing ends: looking again from each blank took minutes."""
    before = time.process_time()
    assert STATEMENT.match(text) is None
    assert time.process_time() - before < 1

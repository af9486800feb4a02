"""What the grammar refuses and few programs write: the message says what is expected and what stands there."""

from __future__ import annotations

import pytest

from ptxvm.syntax import Source, print_module
from ptxvm.syntax.outline import outline


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".global .align 4 .const .u32 x;", "a second state space: `.const`"),  # PTX 5.1
        (".visible .align 4 x;", "expected a state space, found `x`"),
        (".const[x] .u32 c;", "the bank of `.const[n]` is an integer"),  # PTX 5.1.3
        (".global .v2 .align 4 x;", "expected a type, found `.align`"),  # PTX 5.4
        (".global .u32 x[1] = {1.0(g)};", "a mask is an integer, such as `0xFF00`"),
        (".global .u8 x[1] = {0f00000000(g)};", "`0f00000000` is not a number"),
        (".alias 5, g;", "expected the name of the alias, found `5`"),  # PTX 11.2.3
        (".section .debug_info {\n.b32 a-5\n}", "expected a label, found `5`"),  # PTX 11.5.3
    ],
)
def test_statements_of_a_module(errors, text, said):
    assert [each.message for each in errors(text)] == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".loc 1 2 3, function_name 5", "expected a label of `.debug_str`, found `5`"),  # PTX 11.5.4
        ("add.u32 %r1, (%r2+4);", "`%r2` cannot stand in a constant expression"),  # PTX 4.6
        ("_ %r1;", "expected an instruction, found `_`"),
        ("mov.u32 %r1, %r2 (5);", "expected `,` or `;`, found `(`"),
        ("mov.u32 %r1, %r2 .global;", "`.global` is no component"),  # PTX 6.4.3
        ("mov.u32 %r1, %r2.sat;", "`.sat` is no component"),
        ("mov.u32 %r1, %r2.m8n8k4;", "`.m8n8k4` is no component"),
        ("mov.u32 %r1, %r2.5;", "`.5` is no component"),
        ("mov.u32 %r1, g[%r2-4];", "an offset is added, not subtracted"),  # PTX 6.4.1
        ("foo [t, s, {%r1}, 5];", "expected `{` and the coordinates, found `5`"),  # PTX 9.7.9.27
        ("foo {_+4, %r1};", "`_` is no value to read"),  # PTX 6.1
    ],
)
def test_statements_of_a_body(body_errors, text, said):
    assert [each.message for each in body_errors(text)] == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("L: .visible .entry j() { ret; }", "a kernel cannot stand in a function"),
        ("L: .func j() { ret; }", "`j` cannot have its body inside of another function"),
    ],
)
def test_functions_within_functions(body_errors, text, said):
    """PTX 5.4, 11.2: only a prototype may stand in a body; a line that begins with one ends the function before it."""
    assert body_errors(text)[0].message == said


def test_a_chain_of_operators_is_nothing_but_itself(read_operands):
    (sum,) = read_operands("a+4")
    assert sum != "a+4"


def test_an_address_of_all_parts(read_operands):
    """PTX 9.7.9.27"""
    (address,) = read_operands("[t, s, {%r1}, {%r2}, e, {%r3}]")
    assert len(address.items) == 6


def test_a_comment_without_an_end_has_no_outline():
    assert outline(Source("/* a comment")) is None


def test_a_body_that_is_not_read_cannot_be_printed():
    found = outline(Source(".version 8.0\n.target sm_80\n.entry k() { ret; }\n"))
    with pytest.raises(ValueError, match="the body of 'k' is not read"):
        print_module(found.module)

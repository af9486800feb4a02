"""Expressions of logical functions of three bits."""

from __future__ import annotations

import pytest

from ptxvm.reference.boolean import expression, name


@pytest.mark.parametrize("table", range(256))
def test_an_expression_is_the_function(table):
    # PTX 9.7.8.6: immLut is the function applied to 0xF0, 0xCC and 0xAA.
    value = eval(expression(table), {"a": 0xF0, "b": 0xCC, "c": 0xAA})  # noqa: S307 - our own text
    constants = {"0": 0, "1": 0xFF}
    assert constants.get(expression(table), value & 0xFF) == table


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (0x00, "0"), (0xFF, "1"), (0xF0, "a"), (0x0F, "~a"), (0x3C, "a ^ b"), (0x96, "a ^ b ^ c"),
        (0x80, "a & b & c"), (0xFE, "a | b | c"), (0x7F, "~(a & b & c)"), (0x01, "~(a | b | c)"),
        (0xEA, "(a & b) | c"), (0xF8, "a | (b & c)"), (0x6A, "(a & b) ^ c"), (0xCA, "(a & b) | (~a & c)"),
    ],
)  # fmt: skip
def test_the_shortest_is_taken(table, text):
    assert expression(table) == text


@pytest.mark.parametrize(
    ("table", "called"),
    [
        (0xCA, "a ? b : c"), (0xAC, "a ? c : b"), (0xE8, "the majority of a, b and c"),
        (0x17, "the minority of a, b and c"), (0x96, "the parity of a, b and c"), (0x80, ""),
    ],
)  # fmt: skip
def test_some_functions_have_a_name(table, called):
    assert name(table) == called

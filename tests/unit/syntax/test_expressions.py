"""Constant expressions (PTX 4.5)."""

from __future__ import annotations

import pytest

from ptxvm.syntax import print_operand
from ptxvm.syntax.tree import Binary, Cast, Conditional, Float, Integer, Name, Unary

ONE, TWO, THREE = Integer(1), Integer(2), Integer(3)


def value(operand):
    """What an expression of integers is worth in Python, whose own precedence we did not use."""
    match operand:
        case Integer(value=number):
            return number
        case Unary(op=op, operand=inner):
            x = value(inner)
            return {"-": -x, "+": x, "~": ~x, "!": int(not x)}[op]
        case Binary(op=op, left=left, right=right):
            python = {"&&": "and", "||": "or", "/": "//"}.get(op, op)
            return int(eval(f"{value(left)} {python} {value(right)}"))  # noqa: S307
        case Conditional(condition=condition, yes=yes, no=no):
            return value(yes) if value(condition) else value(no)
    raise AssertionError(operand)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 2", 5),
        ("17 % 5 * 2", 4),
        ("1 << 2 + 1", 8),
        ("1 << 2 << 1", 8),
        ("7 & 3 == 3", 1),
        ("6 | 1 ^ 3 & 2", 7),
        ("1 < 2 == 1", 1),
        ("2 > 1 != 0", 1),
        ("5 >= 5 && 0 || 1", 1),
        ("- -3", 3),
        ("~0 + 1", 0),
        ("!5", 0),
        ("-2 * 3", -6),
        ("1 ? 2 : 3", 2),
        ("0 ? 1 : 0 ? 4 : 5", 5),
        ("1 ? 0 ? 7 : 8 : 9", 8),
        ("1 || 0 ? 4 : 5", 4),
        ("(1 ? 2 : 3) + 1", 3),
        ("0x10 >> 2", 4),
        ("+5", 5),
        ("((((7))))", 7),
    ],
)
def test_precedence_is_that_of_c(read, text, expected):
    """PTX 4.5.4."""
    (variable,) = read(f".global .s64 x = {text};")
    assert value(variable.declarators[0].initial) == expected


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(.s64) 1", Cast("s64", ONE)),
        ("(.u64) 1 + 2", Binary("+", Cast("u64", ONE), TWO)),
        ("-(.u64) -1", Unary("-", Cast("u64", Unary("-", ONE)))),
        ("1.5 + 2.5", Binary("+", Float(0x3FF8000000000000, 64), Float(0x4004000000000000, 64))),
        ("(0f3F800000)", Float(0x3F800000, 32)),
        ("WARP_SZ * 2", Binary("*", Name("WARP_SZ"), TWO)),
        ("1 - (2 - 3)", Binary("-", ONE, Binary("-", TWO, THREE))),
    ],
)
def test_forms(read_operands, text, tree):
    (_, found) = read_operands(f"%r1, {text}")
    assert found == tree
    assert read_operands(f"%r1, {print_operand(found)}")[1] == tree


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("-0f3F800000", "P0106"),
        ("1 + 0f3F800000", "P0106"),
        ("0f3F800000 + 1", "P0101"),
        ("08", "P0106"),
        ("0xg", "P0106"),
        ("0b102", "P0106"),
        ("1u", "P0106"),
        ("1UL", "P0106"),
        ("1.0f", "P0106"),
        ("1.0.0", "P0106"),
        ("1_000", "P0106"),
        ("0f3F80000", "P0106"),
        ("0f3F8000000", "P0106"),
        ("9" * 2000, "P0106"),
        ("1.0e", "P0106"),
        ("(.s32) 1", "P0118"),
        ("(.foo) 1", "P0101"),
        ("()", "P0112"),
        ("(1", "P0103"),
        ("1 ++", "P0112"),
        ("1 ** 2", "P0101"),
        ("1 == = 1", "P0101"),
        ("1 ? 2", "P0101"),
        ("~", "P0112"),
        ("1)", "P0101"),
        ("1 + %r1", "P0118"),
    ],
)
def test_what_is_no_constant(body_errors, text, code):
    """Each of them is an error of ptxas 13.0, nearly all of its parser."""
    (found,) = body_errors(f"foo %r1, {text};")
    assert found.code == code, str(found)

"""Constant expressions: PTX 4.5.1 to 4.5.6, mostly the manual's own examples."""

from functools import reduce
from math import inf, isnan

import pytest

from ptxvm.analysis.constants import ConstantError, SymbolAddress, evaluate
from ptxvm.syntax import tree

S64_MIN, U64 = -(1 << 63), 1 << 64


def integer(value, unsigned=False):
    return tree.Integer(value, unsigned=unsigned)


def real(bits, width=64):
    return tree.Float(bits, width)


ONE, TWO, THREE, FOUR = (integer(n) for n in (1, 2, 3, 4))
MINUS_ONE, MINUS_FOUR = tree.Unary("-", ONE), tree.Unary("-", FOUR)
ONE_U, FOUR_U = integer(1, unsigned=True), integer(4, unsigned=True)
HALF, ONE_F, ZERO_F = real(0x3FE0 << 48), real(0x3FF0 << 48), real(0)


@pytest.mark.parametrize(
    ("literal", "unsigned"),
    [
        (integer(42), False),
        (integer(0x1234), False),
        (integer(0xFABC123400000000), True),
        (integer(42, unsigned=True), True),
        (tree.Unary("-", tree.Unary("-", integer(42))), False),
        (tree.Unary("-", ONE_U), True),
        (tree.Unary("-", integer(0xFABC123400000000)), True),
        (tree.Unary("!", ONE_U), False),
        (tree.Unary("~", ONE), True),
        (tree.Binary("+", ONE, ONE_U), True),
        (tree.Binary("<", ONE, ONE_U), False),
        (tree.Binary(">>", ONE, ONE_U), False),
        (tree.Binary("<<", ONE_U, ONE), True),
        (tree.Binary("%", FOUR_U, THREE), False),
        (tree.Cast("u64", ONE), True),
        (tree.Cast("s64", ONE_U), False),
        (tree.Conditional(ONE, TWO, ONE_U), True),
    ],
    ids=repr,
)
def test_which_integers_are_unsigned(literal, unsigned):
    """-1 is less than what is signed and not negative; beside what is unsigned it is 2^64-1 (PTX 4.5.6)."""
    assert evaluate(tree.Binary("<", MINUS_ONE, literal)) == (not unsigned)


@pytest.mark.parametrize(
    ("op", "left", "right", "value"),
    [
        ("+", integer((1 << 63) - 1), ONE, S64_MIN),
        ("-", ONE_U, TWO, U64 - 1),
        ("-", ONE, TWO, -1),
        ("*", MINUS_FOUR, THREE, -12),
        ("/", MINUS_FOUR, THREE, -1),
        ("/", FOUR, tree.Unary("-", THREE), -1),
        ("/", MINUS_FOUR, FOUR_U, (U64 - 4) // 4),
        ("/", tree.Unary("-", integer(1 << 63)), MINUS_ONE, 0),  # 2^63 is unsigned, and so is the division
        ("/", tree.Cast("s64", integer(1 << 63)), MINUS_ONE, S64_MIN),
        ("%", MINUS_ONE, FOUR, 3),
        ("%", integer(7), FOUR, 3),
        ("<<", ONE, integer(63), S64_MIN),
        ("<<", ONE, integer(64), 0),
        ("<<", ONE, MINUS_ONE, 0),
        (">>", MINUS_FOUR, ONE, -2),
        (">>", tree.Unary("-", FOUR_U), ONE, (U64 - 4) // 2),
        (">>", MINUS_FOUR, integer(64), -1),
        (">>", FOUR_U, integer(1000), 0),
        ("&", MINUS_ONE, integer(0xFF), 0xFF),
        ("|", ONE, TWO, 3),
        ("^", integer(5), ONE, 4),
        ("<", MINUS_ONE, ONE, 1),
        ("<", MINUS_ONE, ONE_U, 0),
        ("==", MINUS_ONE, integer(U64 - 1), 1),
        (">=", TWO, TWO, 1),
        ("!=", TWO, TWO, 0),
        ("&&", FOUR, integer(0), 0),
        ("||", FOUR, integer(0), 1),
    ],
    ids=repr,
)
def test_integers(op, left, right, value):
    assert evaluate(tree.Binary(op, left, right)) == value


def test_unary_operators():
    assert evaluate(tree.Unary("!", FOUR)) == 0
    assert evaluate(tree.Unary("!", integer(0))) == 1
    assert evaluate(tree.Unary("~", integer(0))) == U64 - 1
    assert evaluate(tree.Unary("+", MINUS_ONE)) == -1
    assert evaluate(tree.Unary("-", HALF)) == -0.5


def test_casts_keep_the_bits():
    assert evaluate(tree.Cast("u64", MINUS_ONE)) == U64 - 1
    assert evaluate(tree.Cast("s64", integer(U64 - 1))) == -1


def test_a_conditional_converts_both_results():
    assert evaluate(tree.Conditional(ONE, MINUS_ONE, ONE_U)) == U64 - 1
    assert evaluate(tree.Conditional(integer(0), HALF, ONE_F)) == 1.0


def test_floats_are_doubles():
    assert evaluate(tree.Binary("+", HALF, ONE_F)) == 1.5
    assert evaluate(tree.Binary("/", ONE_F, HALF)) == 2.0
    assert evaluate(tree.Binary("<", HALF, ONE_F)) == 1
    assert evaluate(tree.Binary("/", ONE_F, tree.Unary("-", ZERO_F))) == -inf
    assert isnan(evaluate(tree.Binary("/", ZERO_F, ZERO_F)))
    assert evaluate(real(0x3FC00000, 32)) == 1.5


def test_warp_size_is_a_constant():
    assert evaluate(tree.Binary("*", tree.Name("WARP_SZ"), TWO)) == 64


class Symbol:
    element_size = 8

    def __repr__(self) -> str:
        return "x"


X = Symbol()
NAME = tree.Name("x")


def find(name):
    return X if name == "x" else None


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (NAME, SymbolAddress(X)),
        (tree.Binary("+", NAME, FOUR), SymbolAddress(X, 4)),
        (tree.Binary("-", NAME, FOUR), SymbolAddress(X, -4)),
        (tree.Binary("+", FOUR, NAME), SymbolAddress(X, 4)),
        (tree.Index(NAME, THREE), SymbolAddress(X, 24)),
        (tree.Call(tree.Name("generic"), NAME), SymbolAddress(X, generic=True)),
        (tree.Binary("+", tree.Call(tree.Name("generic"), NAME), FOUR), SymbolAddress(X, 4, generic=True)),
        (tree.Call(integer(0xFF00), tree.Binary("+", NAME, FOUR)), SymbolAddress(X, 4, mask=0xFF00)),
    ],
    ids=repr,
)
def test_addresses_stay_symbols(node, value):
    assert evaluate(node, find) == value


def test_a_mask_takes_bits_out():
    """PTX 5.4.4: `0xFF00(131187)` is the second byte of 0x20073."""
    assert evaluate(tree.Call(integer(0xFF), tree.Binary("+", integer(1000), integer(546)))) == 1546 & 0xFF
    assert evaluate(tree.Call(integer(0xFF00), integer(131187))) == 0x00
    assert evaluate(tree.Call(integer(0xFF << 56), MINUS_ONE)) == 0xFF
    assert SymbolAddress(X, mask=0xFF0000).masked(0x12345678) == 0x34


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (tree.Binary("/", ONE, integer(0)), "division by zero"),
        (tree.Binary("%", ONE, integer(0)), "division by zero"),
        (tree.Binary("+", ONE, HALF), "do not mix"),
        (tree.Binary("&", HALF, HALF), "'&' takes integers"),
        (tree.Unary("~", HALF), "'~' takes an integer"),
        (tree.Cast("u64", HALF), "an integer is needed"),
        (tree.Conditional(ONE, ONE, HALF), "both results"),
        (tree.Binary("*", NAME, FOUR), "only an offset"),
        (tree.Name("y"), "'y' is not a constant"),
        (tree.Call(integer(0), NAME), "1 to 64 bits"),
        (tree.Call(tree.Name("generic"), ONE), "not the address"),
        (tree.String("x"), "not a constant"),
        (tree.Index(tree.Name("WARP_SZ"), ONE), "no elements"),
    ],
    ids=repr,
)
def test_what_has_no_value(node, message):
    with pytest.raises(ConstantError, match=message):
        evaluate(node, find)


def test_a_chain_of_operators_has_any_length():
    """PTX 4.5.4: binary operators associate to the left."""
    chain = reduce(lambda left, k: tree.Binary("+-"[k % 2], left, integer(k)), range(1, 20_001), ONE)
    assert evaluate(chain) == 1 + sum(k if k % 2 == 0 else -k for k in range(1, 20_001))

"""Operands of instructions (PTX 6), and what ptxas refuses to read as one."""

from __future__ import annotations

import pytest

from ptxvm.syntax.tree import Address, Binary, Float, Group, Index, Integer, Name, Pair, Unary, Vector


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r1", Name("%r1")),
        ("%tid.x", Name("%tid", "x")),
        ("%r1 .b0", Name("%r1", "b0")),
        ("WARP_SZ", Name("WARP_SZ")),
        ("-%r1", Unary("-", Name("%r1"))),
        ("-%r1.b0", Unary("-", Name("%r1", "b0"))),
        ("!%p1", Unary("!", Name("%p1"))),
        ("-1", Unary("-", Integer(1))),
        ("0x10U", Integer(16, unsigned=True)),
        ("0f3F800000", Float(0x3F800000, 32)),
        (".5", Float(0x3FE0000000000000, 64)),
        ("gv+4", Binary("+", Name("gv"), Integer(4))),
        ("%r1+-4", Binary("+", Name("%r1"), Unary("-", Integer(4)))),
        ("gv[2]", Index(Name("gv"), Integer(2))),
        ("gv[%r1+4]", Index(Name("gv"), Binary("+", Name("%r1"), Integer(4)))),
    ],
)
def test_registers_and_values(read_operands, text, operand):
    """PTX 6.2, 6.4.2."""
    assert read_operands(f"%r9, {text}") == [Name("%r9"), operand]


def test_a_result_that_nobody_wants(read_operands):
    """PTX 6.1."""
    assert read_operands("_, %r9") == [Name("_"), Name("%r9")]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[%rd1]", [Name("%rd1")]),
        ("[a+4]", [Binary("+", Name("a"), Integer(4))]),
        ("[ a + -4 ]", [Binary("+", Name("a"), Unary("-", Integer(4)))]),
        ("[a+WARP_SZ]", [Binary("+", Name("a"), Name("WARP_SZ"))]),
        ("[16]", [Integer(16)]),
        ("[tex, {%f1, %f2}]", [Name("tex"), Vector([Name("%f1"), Name("%f2")])]),
        ("[tex, %f1]", [Name("tex"), Name("%f1")]),
        ("[tex, smp, {%f1}]", [Name("tex"), Name("smp"), Vector([Name("%f1")])]),
        ("[t, s, {%f1}, {%f2}]", [Name("t"), Name("s"), Vector([Name("%f1")]), Vector([Name("%f2")])]),
        ("[%r1, %d2, %d4]", [Name("%r1"), Name("%d2"), Name("%d4")]),
    ],
)
def test_addresses(read_operands, text, items):
    """PTX 6.4.1, and 9.7.10 for lists."""
    assert read_operands(f"%r1, {text}") == [Name("%r1"), Address(items)]


def test_the_attribute_unified_of_an_address(read_operands):
    """PTX 9.7.9.8."""
    assert read_operands("%r1, [a].unified, %rd2") == [Name("%r1"), Address([Name("a")], unified=True), Name("%rd2")]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("{%r1}", [Name("%r1")]),
        ("{%r1, _, %r1.b0}", [Name("%r1"), Name("_"), Name("%r1", "b0")]),
        (
            "{1, 0f00000000, WARP_SZ, 1+1}",
            [Integer(1), Float(0, 32), Name("WARP_SZ"), Binary("+", Integer(1), Integer(1))],
        ),
    ],
)
def test_vectors(read_operands, text, items):
    """PTX 6.4.3."""
    assert read_operands(text) == [Vector(items)]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("%p1|%p2", Pair(Name("%p1"), Name("%p2"))),
        ("%r1 | _", Pair(Name("%r1"), Name("_"))),
        ("_|%p2", Pair(Name("_"), Name("%p2"))),
        ("{%r1, %r2}|%p2", Pair(Vector([Name("%r1"), Name("%r2")]), Name("%p2"))),
    ],
)
def test_two_destinations(read_operands, text, pair):
    """PTX 9.3.1: a predicate beside the result."""
    assert read_operands(f"{text}, %r3") == [pair, Name("%r3")]


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("f", [Name("f")]),
        ("(%r1), f, (%r2, 5)", [Group([Name("%r1")]), Name("f"), Group([Name("%r2"), Integer(5)])]),
        ("f, ()", [Name("f"), Group([])]),
        ("(_), f, (_), proto", [Group([Name("_")]), Name("f"), Group([Name("_")]), Name("proto")]),
        ("%rd1, targets", [Name("%rd1"), Name("targets")]),
    ],
)
def test_calls(read_body, text, operands):
    """PTX 9.7.12.5."""
    (call,) = read_body(f"call.uni {text};")
    assert (call.opcode, call.words, call.operands) == ("call", ("uni",), operands)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[a-4]", "P0118"),
        ("[a+%r1]", "P0118"),
        ("[%r1*4]", "P0118"),
        ("[a][4]", "P0101"),
        ("[a+4][1]", "P0101"),
        ("[a.x]", "P0118"),
        ("[]", "P0112"),
        ("[a", "P0103"),
        ("[[a]]", "P0101"),
        ("[a[2]]", "P0101"),
        ("[_]", "P0118"),
        ("[a b]", "P0101"),
        ("[a,4]", "P0101"),
        ("[a+4, {%r1}]", "P0101"),
        ("[-a]", "P0118"),
        ("[a, {%r1}, %r2]", "P0101"),
        ("[{%r1}]", "P0101"),
        ("{}", "P0112"),
        ("{%r1,}", "P0112"),
        ("{%r1 %r2}", "P0101"),
        ("{{%r1}}", "P0101"),
        ("{-%r1}", "P0118"),
        ("{a+4}", "P0101"),
        ("%r1, _", "P0113"),
        ("_|_", "P0113"),
        ("%r1, %p1|%p2", "P0101"),
        ("1|%p2", "P0118"),
        ("[a]|%p1", "P0101"),
        ("%p|1", "P0101"),
        ("%tid.x.x", "P0118"),
        ("!%r1.b0", "P0118"),
        ("--%r1", "P0118"),
        ("+%r1", "P0118"),
        ("(%r1)", "P0118"),
        ("%r1-4", "P0118"),
        ("%r1+%r2", "P0118"),
        ("4+%r2", "P0118"),
        ("5%3", "P0101"),
        ("a[1]+4", "P0101"),
        ("-a[4]", "P0101"),
        ("a[]", "P0112"),
        ("a[%r1][1]", "P0101"),
        ("&a", "P0118"),
        ('"x"', "P0118"),
        ("'a'", "P0107"),
        ("%r1,", "P0112"),
        ("%r1,,%r2", "P0112"),
        (",%r1", "P0112"),
        ("%r1 %r2", "P0101"),
        ("5 6", "P0101"),
        ("%%r1", "P0101"),
        ("% r1", "P0101"),
        ("$", "P0101"),
    ],
)
def test_what_is_no_operand(body_errors, text, code):
    """Each of them is a parsing error of ptxas 13.0."""
    (found,) = body_errors(f"foo {text};")
    assert found.code == code, str(found)


@pytest.mark.parametrize(
    "text",
    [
        "call f, ;",
        "call (z) h (y);",
        "call z, h, y;",
        "call 0;",
        "call _;",
        "call f, ([y]);",
        "call f, (y+4);",
        "call f, (-y);",
        "call f, (y.x);",
        "foo (%r1), f, (%r2);",
    ],
)
def test_what_is_no_call(body_errors, text):
    """Each of them is a parsing error of ptxas 13.0."""
    assert len(body_errors(text)) == 1

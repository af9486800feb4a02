"""Declarations of variables, registers and parameters (PTX 5)."""

from __future__ import annotations

import pytest

from ptxvm.syntax import parse
from ptxvm.syntax.tree import (
    Attribute,
    Binary,
    Call,
    Declarator,
    Float,
    Integer,
    Name,
    Pointer,
    Unary,
    Variable,
    Vector,
)


def one(name: str, **fields) -> list[Declarator]:
    return [Declarator(name, **fields)]


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (".global .b32 a;", Variable("global", "b32", one("a"))),
        (".reg .pred %p<4>;", Variable("reg", "pred", one("%p", count=Integer(4)))),
        (".reg .b32 %r<WARP_SZ>;", Variable("reg", "b32", one("%r", count=Name("WARP_SZ")))),
        (".reg .b32;", Variable("reg", "b32", [])),
        (
            ".shared .f16x2 a, b[2];",
            Variable("shared", "f16x2", [Declarator("a"), Declarator("b", dimensions=[Integer(2)])]),
        ),
        (".visible .const .align 8 .v2 .f64 a;", Variable("const", "f64", one("a"), "visible", Integer(8), 2)),
        (
            ".align 16 .global .b8 a[0x10];",
            Variable("global", "b8", one("a", dimensions=[Integer(16)]), None, Integer(16)),
        ),
        (".extern .shared .b8 a[];", Variable("shared", "b8", one("a", dimensions=[None]), "extern")),
        (".weak .global .u8 a[][2];", Variable("global", "u8", one("a", dimensions=[None, Integer(2)]), "weak")),
        (".common .global .b32 a;", Variable("global", "b32", one("a"), "common")),
        (".const[3] .b32 a;", Variable("const[3]", "b32", one("a"))),
        (".tex .u32 t;", Variable("tex", "u32", one("t"))),
        (".global .texref t;", Variable("global", "texref", one("t"))),
        (
            ".global .attribute(.managed, .unified(1, 0x2)) .b64 a;",
            Variable(
                "global",
                "b64",
                one("a"),
                attributes=[Attribute("managed"), Attribute("unified", [Integer(1), Integer(2)])],
            ),
        ),
    ],
)
def test_variables(read, text, variable):
    """PTX 5.1, 5.3, 5.4 and 11.6."""
    assert read(text) == [variable]


@pytest.mark.parametrize(
    ("text", "initial"),
    [
        ("1 + 2", Binary("+", Integer(1), Integer(2))),
        ("-1.0", Unary("-", Float(0x3FF0000000000000, 64))),
        ("{}", Vector([])),
        ("{1, {2, 3}, {}}", Vector([Integer(1), Vector([Integer(2), Integer(3)]), Vector([])])),
        ("b", Name("b")),
        ("b+4", Binary("+", Name("b"), Integer(4))),
        ("generic(b)", Call(Name("generic"), Name("b"))),
        ("generic(b)+4", Binary("+", Call(Name("generic"), Name("b")), Integer(4))),
        (
            "{0xFF(b), 0xFF00(b+4)}",
            Vector([Call(Integer(255), Name("b")), Call(Integer(0xFF00), Binary("+", Name("b"), Integer(4)))]),
        ),
        (
            "{0xFF(generic(b)+8)}",
            Vector([Call(Integer(255), Binary("+", Call(Name("generic"), Name("b")), Integer(8)))]),
        ),
        ("{0xFF(7)}", Vector([Call(Integer(255), Integer(7))])),
        (
            "{width = 5, addr_mode_0 = wrap}",
            Vector([Binary("=", Name("width"), Integer(5)), Binary("=", Name("addr_mode_0"), Name("wrap"))]),
        ),
    ],
)
def test_initialisers(read, text, initial):
    """PTX 5.4.4 and 5.3."""
    assert read(f".global .b64 a[9] = {text};") == [
        Variable("global", "b64", one("a", dimensions=[Integer(9)], initial=initial))
    ]


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        (".param .u64 a", Variable("param", "u64", one("a"))),
        (".param .align 8 .b8 a[16]", Variable("param", "b8", one("a", dimensions=[Integer(16)]), None, Integer(8))),
        (".param .u64 .ptr a", Variable("param", "u64", one("a"), pointer=Pointer())),
        (
            ".param .u64 .ptr .global .align 16 a",
            Variable("param", "u64", one("a"), pointer=Pointer("global", Integer(16))),
        ),
        (".param .texref a", Variable("param", "texref", one("a"))),
        (".param .b8 a[]", Variable("param", "b8", one("a", dimensions=[None]))),
        (".reg .f32 a", Variable("reg", "f32", one("a"))),
        (".param .b32 _", Variable("param", "b32", one("_"))),
    ],
)
def test_parameters(read, text, parameter):
    """PTX 5.1.6 and 7.1."""
    (function,) = read(f".func f({text}, .param .b32 z);")
    assert function.parameters == [parameter, Variable("param", "b32", one("z"))]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".global a;", "P0101"),
        (".global .bf16 a;", "P0115"),
        (".global .u24 a;", "P0115"),
        (".global .v3 .b32 a;", "P0115"),
        (".global .v8 .b32 a;", "P0115"),
        (".global .b32 .v2 a;", "P0101"),
        (".global .u32 .b32 a;", "P0101"),
        (".global .b32 .align 4 a;", "P0101"),
        (".shared::cta .b32 a;", "P0104"),
        (".global .b32 a[2+2];", "P0119"),
        (".global .b32 a[-1];", "P0119"),
        (".global .b32 a[2][];", "P0101"),
        (".global .b32 a[2,3];", "P0101"),
        (".global .b32 a[4.0];", "P0119"),
        (".global .b32 a<>;", "P0101"),
        (".global .b32 a<2*2>;", "P0119"),
        (".global .align x .b32 a;", "P0119"),
        (".global .align WARP_SZ .b32 a;", "P0119"),
        (".global .b32 a,;", "P0101"),
        (".global .b32 _;", "P0113"),
        (".global .b32 WARP_SZ;", "P0101"),
        (".global .b32 a.b;", "P0101"),
        (".global .b32 1a;", "P0101"),
        (".global .b32 a b;", "P0101"),
        (".global .b32 a = ;", "P0112"),
        (".global .b32 a = {1,};", "P0112"),
        (".global .b32 a = {1,,2};", "P0112"),
        (".global .b32 a = b-4;", "P0118"),
        (".global .b32 a = 4+b;", "P0118"),
        (".global .b32 a = mask(b);", "P0101"),
        ('.global .b8 a = "x";', "P0101"),
        (".global .b32 a := 1;", "P0101"),
        (".global .b32 a = (1,2);", "P0101"),
        (".global .b32 a = b.x;", "P0101"),
        (".global .attribute() .b32 a;", "P0101"),
        (".global .attribute(.nosuch) .b32 a;", "P0101"),
        (".global .attribute(.unified(1)) .b32 a;", "P0101"),
        (".extern .visible .global .b32 a;", "P0120"),
        (".global .visible .b32 a;", "P0120"),
        (".extern .b32 a;", "P0101"),
        (".func f(.param .b32 a[2][3]);", "P0101"),
        (".func f(.param .b32 a = 1);", "P0101"),
        (".func f(.param .b32 a,);", "P0101"),
        (".func f(.param .b32);", "P0101"),
        (".func f(.param .ptr .u64 a);", "P0115"),
        (".func f(.param .b32 a .param .b32 b);", "P0101"),
    ],
)
def test_what_is_no_declaration(errors, text, code):
    """Each of them is a parsing error of ptxas 13.0."""
    (found,) = errors(text)
    assert found.code == code, str(found)


@pytest.mark.parametrize(
    ("text", "ptxas"),
    [
        (".b64 x;", "No variable storage specified"),
        (".align 8 .b64 x;", "No variable storage specified"),
        (".v4 .f32 x[4];", "No variable storage specified"),
        (".f16 64;", "Parsing error near '64': syntax error"),
        (".b16.global .texref t;", "Parsing error near '.global': syntax error"),
        (".b64 .align 8 .shared x;", "Parsing error near '.align': syntax error"),
        (".f16x2 add.u32 x;", "Parsing error near '.u32': syntax error"),
        (".u8 x:", "Parsing error near ':': syntax error"),
    ],
)
def test_a_declaration_without_its_state_space(text, ptxas):
    """As ptxas 13.0 prints it, in a module and in a body."""
    for module in (f"{text}\n", f".entry k() {{\n{text}\nret;\n}}\n"):
        found = parse(f".version 8.7\n.target sm_90a\n.address_size 64\n{module}")[1][0]
        assert (found.code, found.ptxas) == ("P0104", ptxas)
        assert found.message.startswith("expected a state space")
        assert "`.shared`" in found.help


@pytest.mark.parametrize(
    ("text", "near"),
    [("ret\nadd.u32 a, b;", "a"), ("ret\nlabel: ret;", ":")],
)
def test_an_opcode_that_is_taken_for_an_operand(text, near):
    """As ptxas 13.0 goes on where a `;` is missing behind an instruction without operands."""
    found = parse(f".version 8.7\n.target sm_90a\n.address_size 64\n.entry k() {{\n{text}\n}}\n")[1][0]
    assert (found.code, found.ptxas) == ("P0102", f"Parsing error near '{near}': syntax error")

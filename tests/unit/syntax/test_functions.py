"""Kernels, functions, blocks and labels (PTX 11.2, 11.3, 5.4.1)."""

from __future__ import annotations

import pytest

from ptxvm.syntax.tree import (
    Attribute,
    Block,
    Declarator,
    Directive,
    Guard,
    Instruction,
    Integer,
    Label,
    Name,
    Prototype,
    Targets,
    Variable,
)

RET = Instruction("ret", (), [])


def variable(space: str, kind: str, name: str) -> Variable:
    return Variable(space, kind, [Declarator(name)])


def test_a_kernel(read):
    """PTX 11.2.1, 11.4, 11.7."""
    (kernel,) = read(
        '.visible .entry k(.param .u64 a) .maxntid 32,2 .reqnctapercluster 1 .explicitcluster .pragma "x"; { ret; }'
    )
    assert (kernel.kind, kernel.name, kernel.linkage) == ("entry", "k", "visible")
    assert kernel.parameters == [variable("param", "u64", "a")]
    assert [directive.name for directive in kernel.directives] == [
        "maxntid",
        "reqnctapercluster",
        "explicitcluster",
        "pragma",
    ]
    assert kernel.directives[0].arguments == [Integer(32), Integer(2)]
    assert kernel.body == Block([RET])


def test_a_function(read):
    """PTX 11.2.2, 11.4.6, 11.4.8."""
    text = ".weak .func .attribute(.unified(1, 2)) (.reg .b32 r, .reg .b32 q) f(.reg .b32 a) .noreturn .abi_preserve 8 { }"
    (function,) = read(text)
    assert (function.kind, function.name, function.linkage) == ("func", "f", "weak")
    assert function.attributes == [Attribute("unified", [Integer(1), Integer(2)])]
    assert function.results == [variable("reg", "b32", "r"), variable("reg", "b32", "q")]
    assert function.directives == [Directive("noreturn"), Directive("abi_preserve", [Integer(8)])]
    assert text[function.name_start : function.name_end] == "f"
    assert function.body == Block([])


@pytest.mark.parametrize("text", [".func f;", ".func f();", ".extern .func () f ();", ".entry k;", ".visible .func %f();"])
def test_a_declaration_has_no_body(read, text):
    (function,) = read(text)
    assert (function.body, function.parameters, function.results) == (None, [], [])


@pytest.mark.parametrize("text", [".func f()", ".extern .func f() .noreturn\n", ".func f\n.global .b32 a;"])
def test_a_declaration_without_its_semicolon_is_only_doubtful(errors, text):
    """It is taken by ptxas, of functions at module level."""
    (found,) = errors(text)
    assert (found.code, found.severity) == ("P0102", "warning")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".entry k() ret;", "P0101"),
        (".entry () { ret; }", "P0101"),
        (".entry k() { ret; };", "P0101"),
        (".visible .weak .entry k() { }", "P0120"),
        (".entry .visible k() { }", "P0120"),
        (".entry 1k() { }", "P0101"),
        (".kernel k() { }", "P0104"),
        (".common .func f() { }", "P0120"),
        (".func .noreturn f() { }", "P0101"),
        (".func f() .noreturn .noreturn;", "P0105"),
        (".entry k() .noreturn { }", "P0105"),
        (".func f() .maxntid 32 { }", "P0105"),
        (".func f() .abi_preserve 8 .noreturn;", "P0105"),
        (".entry k() .maxntid -1 { }", "P0101"),
        (".entry k() .maxntid 1,2,3,4 { }", "P0101"),
        (".entry k() .maxntid 32;", "P0101"),
        (".entry k", "P0101"),
        (".entry k() .nosuch { }", "P0101"),
        (".func .attribute(.managed) f();", "P0101"),
        (".entry k(.param .b32 a { }", "P0103"),
    ],
)
def test_what_is_no_function(errors, text, code):
    assert errors(text)[0].code == code


def test_blocks_and_labels(read_body):
    """PTX 5.4.1, 4.3.2: a label may stand before anything, and before a `}`."""
    assert read_body("L: { $M: { } } %N: .reg .b32 a; ret; _O:") == [
        Label("L"),
        Block([Label("$M"), Block([])]),
        Label("%N"),
        variable("reg", "b32", "a"),
        RET,
        Label("_O"),
    ]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("t: .branchtargets A, B;", Targets("t", "branchtargets", [Name("A"), Name("B")])),
        ("t: .branchtargets A, L<2>;", Targets("t", "branchtargets", [Name("A"), Name("L0"), Name("L1")])),
        ("t: .calltargets f;", Targets("t", "calltargets", [Name("f")])),
    ],
)
def test_lists_of_targets(read_body, text, targets):
    """PTX 11.3.1, 11.3.2."""
    assert read_body(text) == [targets]


@pytest.mark.parametrize(
    ("text", "prototype"),
    [
        ("_", Prototype("p", [], [])),
        ("() _ ()", Prototype("p", [], [])),
        (
            "(.param .b32 _) _ (.reg .f32 x) .noreturn",
            Prototype("p", [variable("param", "b32", "_")], [variable("reg", "f32", "x")], [Directive("noreturn")]),
        ),
    ],
)
def test_prototypes(read_body, text, prototype):
    """PTX 11.3.3."""
    assert read_body(f"p: .callprototype {text};") == [prototype]


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("ret;", RET),
        ("@%p1 ret;", Instruction("ret", (), [], Guard(Name("%p1")))),
        ("@ ! %p1 bra.uni L;", Instruction("bra", ("uni",), [Name("L")], Guard(Name("%p1"), negated=True))),
        ("ld .global\n.u32 a, b;", Instruction("ld", ("global", "u32"), [Name("a"), Name("b")])),
        ("ld.const[3].u32 a, b;", Instruction("ld", ("const[3]", "u32"), [Name("a"), Name("b")])),
        (
            "mbarrier.try_wait.shared::cta.b64 a;",
            Instruction("mbarrier", ("try_wait", "shared::cta", "b64"), [Name("a")]),
        ),
    ],
)
def test_instructions(read_body, text, instruction):
    """PTX 9.2, 9.3."""
    assert read_body(text) == [instruction]


def test_spans_are_those_of_the_text(read):
    text = ".entry k() {\n  @!%p1 ld.global .u32 %r1, [a+4]; // c\n}"
    (kernel,) = read(text)
    (load,) = kernel.body.statements
    spans = [load, load.guard, load.operands[0], load.operands[1], load.operands[1].items[0], kernel.body]
    assert [text[node.start : node.end] for node in spans] == [
        "@!%p1 ld.global .u32 %r1, [a+4];",
        "@!%p1",
        "%r1",
        "[a+4]",
        "a+4",
        text[text.index("{") :],
    ]
    assert text[load.head_start : load.head_end] == "ld.global .u32"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@%p1 { ret; }", "P0117"),
        ("@%p1 L: ret;", "P0117"),
        ("@%p1 .reg .b32 a;", "P0117"),
        ("@%p1 @%p2 ret;", "P0117"),
        ("@%p1;", "P0101"),
        ("@%p1.x ret;", "P0117"),
        ("@!!%p1 ret;", "P0101"),
        ("@1 ret;", "P0101"),
        ("@%p1|%p2 ret;", "P0101"),
        ("ret;;", "P0101"),
        ("5: ret;", "P0101"),
        ("L.1: ret;", "P0101"),
        ("_: ret;", "P0101"),
        ("mov. b32 a, b;", "P0116"),
        ("mov . b32 a, b;", "P0116"),
        ("mov..b32 a, b;", "P0116"),
        ("ld.reg.b32 a, [b];", "P0101"),
        ("add.u32, a, b;", "P0112"),
        ("a) b;", "P0112"),
        (") ret;", "P0114"),
        ("?", "P0101"),
        ('"x";', "P0101"),
        (".u32 add a, b;", "P0104"),
        ("`", "P0107"),
    ],
)
def test_what_is_no_statement(body_errors, text, code):
    found = body_errors(text)
    assert found[0].code == code, str(found[0])

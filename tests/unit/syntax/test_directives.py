"""Directives (PTX 11)."""

from __future__ import annotations

import pytest

from ptxvm.syntax.tree import Binary, Directive, Float, Integer, Location, Name, Section, String

VERSION = Float(0x4021666666666666, 64)
"""8.7"""


def test_the_head_of_a_module(read):
    """PTX 11.1."""
    statements = read(".version 8.7 .target sm_90a, debug .target texmode_independent\n.address_size 64")
    assert statements == [
        Directive("version", [VERSION]),
        Directive("target", [Name("sm_90a"), Name("debug")]),
        Directive("target", [Name("texmode_independent")]),
        Directive("address_size", [Integer(64)]),
    ]
    assert statements[0].arguments[0].text == "8.7"


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ('.file 1 "a b.cu"', Directive("file", [Integer(1), String("a b.cu")])),
        (
            '.file 1 "a.cu", 1700000000, 4096',
            Directive("file", [Integer(1), String("a.cu"), Integer(1700000000), Integer(4096)]),
        ),
        ('.pragma "nounroll";', Directive("pragma", [String("nounroll")])),
        ('.pragma "a", "b";', Directive("pragma", [String("a"), String("b")])),
        (".alias f, g;", Directive("alias", [Name("f"), Name("g")])),
        (".section .debug_x { }", Section(".debug_x", [])),
        (
            ".section .debug_x\n{\n.b8 1, -2\n L:\n.b32 .debug_y+4 .b64 L-M\n}",
            Section(".debug_x", [".b8 1, -2", "L:", ".b32 .debug_y+4", ".b64 L-M"]),
        ),
        (
            '@@DWARF .section .debug_x, "", @progbits\n@@DWARF .byte  1 // c\n',
            Section("@@DWARF", ['.section .debug_x, "", @progbits', ".byte  1"]),
        ),
    ],
)
def test_module_directives(read, text, directive):
    """PTX 11.2.3, 11.4.7, 11.5."""
    assert read(text) == [directive]


@pytest.mark.parametrize(
    ("text", "location"),
    [
        (".loc 1 20 5", Location(1, 20, 5)),
        (".loc 1 2 3, function_name $L, inlined_at 1 30 2", Location(1, 2, 3, Name("$L"), (1, 30, 2))),
        (
            ".loc 1 2 3, function_name $L+4, inlined_at 1 30 2",
            Location(1, 2, 3, Binary("+", Name("$L"), Integer(4)), (1, 30, 2)),
        ),
    ],
)
def test_places_in_files(read_body, text, location):
    """PTX 11.5.4: the directive has no semicolon."""
    assert read_body(f"{text} ret;")[0] == location


def test_directives_in_a_body(read_body):
    found = read_body('.pragma "nounroll"; .alias f, g; .extern .func h(.param .b32 a);')
    assert [type(statement).__name__ for statement in found] == ["Directive", "Directive", "Function"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".version 8;", "P0101"),
        (".version", "P0101"),
        (".target;", "P0101"),
        ('.target "sm_90"', "P0101"),
        (".address_size -64", "P0101"),
        ('.file "a.cu"', "P0101"),
        (".file 1 a", "P0101"),
        ('.file 1 "a";', "P0101"),
        (".pragma nounroll;", "P0101"),
        ('.pragma "a" "b";', "P0101"),
        ('.pragma "open;', "P0109"),
        (".alias f g;", "P0101"),
        (".alias f;", "P0101"),
        (".section x {}", "P0101"),
        (".section .x {.b8 1;}", "P0103"),
        (".section .x {.b8}", "P0101"),
        (".section .x {.b8 1,}", "P0101"),
        (".section .x {.b8 1", "P0103"),
        (".section .x {.b32 L+M}", "P0101"),
        (".loc 1 2 3", "P0105"),
        (".maxntid 32", "P0105"),
        (".noreturn", "P0105"),
        (".nosuch", "P0104"),
        (".visable .func f();", "P0104"),
        ("@@nosuch", "P0101"),
        ("#line", "P0107"),
        ("garbage", "P0101"),
        ("5", "P0101"),
        (";", "P0101"),
        ("}", "P0114"),
        ("{}", "P0101"),
    ],
)
def test_what_is_no_module_directive(errors, text, code):
    found = errors(text)
    assert found[0].code == code, str(found[0])


@pytest.mark.parametrize(
    "text",
    [
        ".target sm_90\n.version 8.7",
        ".version 8.7\n.version 8.7",
        ".version 8.7\n.target sm_90\n.func f();\n.target sm_90",
        ".version 8.7\n.target sm_90\n.address_size 64\n.address_size 64",
        ".version 8.7\n.target sm_90\n.func f();\n.address_size 64",
    ],
)
def test_the_head_stands_at_the_start_in_order(errors, text):
    """PTX 11.1."""
    (found,) = errors(text)
    assert found.code == "P0105"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".loc 1 2\nret;", "P0101"),
        (".loc 1 -1 0", "P0101"),
        (".loc 1 2 3, inlined_at 1 2 3", "P0101"),
        (".maxntid 32", "P0105"),
        (".address_size 64", "P0105"),
        (".global .b32", "P0101"),
        (".blah", "P0104"),
        (".weak .shared .b32 a;", "P0105"),
        (".branchtargets L;", "P0105"),
        ("L: .branchtargets;", "P0101"),
        ("L: .branchtargets A B;", "P0101"),
        ("L: .branchtargets A<70000>;", "P0119"),
        ("L: .callprototype (.param .b32 a) p;", "P0101"),
    ],
)
def test_what_is_no_directive_of_a_body(body_errors, text, code):
    assert body_errors(text)[0].code == code


def test_a_target_in_a_body_is_only_doubtful(body_errors):
    """It is taken by ptxas."""
    (found,) = body_errors(".target sm_90")
    assert found.severity == "warning"

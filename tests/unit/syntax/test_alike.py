"""Statements of a module that are like one above are left unread where nothing else can be meant."""

from __future__ import annotations

import pytest

from ptxvm.syntax import alike, tree
from ptxvm.syntax.alike import LikeStatement, WrongModel, covered, forms_of_parameters, like_statements, merged
from ptxvm.syntax.outline import outline, sketch
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 first;\n.global .u32 model;\n"


def unread(text: str) -> list[str]:
    """The names that unread statements declare."""
    found = outline(Source(HEAD + text))
    assert found is not None
    return [each.name for each in found.module.statements if isinstance(each, tree.Alike)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .u32 a;\n.global .u32 b ;\n", ["a"]),
        (".global .u32 a; .global .u32 b;", ["a", "b"]),
        (".global .u32 a[4]; .global .u32 b[4]; .global .u32 c[5];", ["b"]),
        (".global .u32 a = 5; .global .u32 b = 5; .global .u32 c = 6;", ["b"]),
        (".extern .func f(.param .b32 x); .extern .func g(.param .b32 y); .extern .func h(.param .b64 y);", ["g"]),
        (".func (.param .b32 r) f(.param .b32 x) { ret; } .func (.param .b32 q) g(.param .b32 y)\t{ bar.sync 0; }", []),
        (".func (.param .b32 r) f(.param .b32 x) { ret; } .func (.param .b32 q) g(.param .b32 y) { bar.sync 0; }", ["g"]),
        (".func f(.param .b32 f) { ret; } .func g(.param .b32 g) { ret; }", []),  # one name twice
        (".global .u32 a<4>; .global .u32 b<4>;", []),
        (".global .u32 a, b; .global .u32 c, d;", []),
        (".global .u64 p = first; .global .u64 q = first;", []),
        (".global .u32 a[2] = {1, 2}; .global .u32 b[2] = {1, 2}; .global .u32 c;", ["c"]),
        (".shared .u32 a; .shared .u32 b;", []),
        ('.entry k() .pragma "x"; { ret; } .entry l() .pragma "x"; { ret; }', []),
    ],
)
def test_what_is_like_one_above_is_left(text: str, expected: list[str]) -> None:
    assert unread(text) == expected


K = ".entry k(.param .u64 k_0, .param .align 8 .b8 k_1[16]) { ret; } "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".entry l(.param .align 8 .b8 l_0[16], .param .u64 l_1, .param .u64 l_2) { ret; }", ["l"]),
        (".entry l(\n\t.param .u64 l_0 ,\n\t.param .u64 l_1\n) { bar.sync 0; }", ["l"]),
        (".entry l(.param .u32 l_0) { ret; } .entry m(.param .u64 m_0, .param .u32 m_1) { ret; }", ["m"]),  # l adds its own
        (".entry l(.param .align 8 .b8 l_0) { ret; }", []),
        (".entry l(.param .u64 l_0[16]) { ret; }", []),
        (".entry l(.param .u64 l_0) .maxntid 32 { ret; } .entry m(.param .u64 m, .param .u64 n) .maxntid 32 { ret; }", []),
        (".entry l(.param .u64 l_0) .maxntid 32 { ret; } .entry m(.param .u64 m_0, .param .u64 n) .maxntid 32 { ret; }", ["m"]),
        (".visible .entry l(.param .u64 l_0) { ret; }", []),
        (".entry l(.param .u64 l_0);", []),  # no definition
        (".func l(.param .u64 l_0) { ret; } .func m(.param .u64 m_0, .param .u64 m_1) { ret; }", []),
        (".entry l(.param .u64 x, .param .u64 x) { ret; }", []),  # one name twice
        (".entry l(.param .u64 %x) { ret; } .entry m(.param .u64 %x, .param .u64 %x) { ret; }", []),  # names that are not told
        (
            ".entry l(.param .u64 %x, .param .u64 a) { ret; } .entry m(.param .u64 %x, .param .u64 %x, .param .u64 b) { ret; }",
            [],
        ),
    ],
)
def test_a_kernel_whose_parameters_are_like_those_above_is_left(text: str, expected: list[str]) -> None:
    assert unread(K + text) == expected


def test_the_parameters_of_a_kernel_have_forms() -> None:
    head = ".visible .entry k(\n\t.param .u64 .ptr .global .align 16 a ,\n\t.param .align 8 .b8 b[16]\n)\n"
    forms = forms_of_parameters(head + "{", 0)
    assert {name: form.replace("\0", name) for name, form in forms.items()} == {
        "a": ".param .u64 .ptr .global .align 16 a",
        "b": ".param .align 8 .b8 b[16]",
    }


def test_a_statement_that_was_left_is_read_as_the_parser_reads_it() -> None:
    source = Source(
        HEAD + ".global .u32 a;\n.extern .func f(.param .b32 x);\n.extern .func g(.param .b32 y);\n"
        ".entry k(.param .u64 p)\n{\n\tret;\n}\n.entry l(.param .u64 q)\n{\n\tbar.sync 0;\n}\n"
    )
    whole, _ = parse(source)
    found = outline(source)
    assert found is not None
    kinds = [isinstance(each, tree.Alike) for each in found.module.statements[5:]]
    assert kinds == [True, False, True, False, True]
    for full, each in zip(whole.statements, found.module.statements, strict=True):
        if isinstance(each, tree.Alike):
            read = found.statement(each)
            assert (read.start, read.end) == (full.start, full.end)
            if isinstance(read, tree.Function) and isinstance(read.body, tree.Unread):
                read.body = found.body(read.body)
            assert read == full


def test_the_declaration_of_a_function_is_its_head() -> None:
    found = outline(Source(HEAD + ".global .u32 a;\n.entry k(.param .u64 p)\n{\n}\n.entry l(.param .u64 q)\n{\n}\n"))
    assert found is not None
    left = [found.declaration(each) for each in found.module.statements if isinstance(each, tree.Alike)]
    assert left == [".global .u32 a;", ".entry l(.param .u64 q)\n"]


def test_where_there_is_an_error_of_syntax_all_is_parsed() -> None:
    text = HEAD + ".global .u32 a;\n.global .u32 b;;\n"
    assert outline(Source(text)) is None
    assert not any(isinstance(each, tree.Alike) for each in sketch(Source(text)).module.statements)
    assert [each.message for each in sketch(Source(text)).diagnostics] == ["there is no statement before this `;`"]


def test_a_list_that_the_parser_does_not_meet_is_read() -> None:
    found = sketch(Source(HEAD + "x = {1, 2, 3, 4, 5, 6, 7, 8};\n.entry k()\n{\n\tret;\n}\n"))
    assert found.is_whole
    assert [each.message for each in found.diagnostics] == ["expected a directive, found `x`"]


def test_where_braces_do_not_match_all_is_parsed() -> None:
    found = sketch(Source(HEAD + ".global .u32 a;\n.entry k()\n{\n\tret;\n"))
    assert not any(isinstance(each, tree.Alike) for each in found.module.statements)


def test_all_is_parsed_on_demand() -> None:
    text = HEAD + ".global .u32 a;\n"
    assert isinstance(sketch(Source(text)).module.statements[-1], tree.Alike)
    assert isinstance(sketch(Source(text), parses_all=True).module.statements[-1], tree.Variable)


def test_what_lies_between_statements_is_parsed() -> None:
    text = ".global .u32 a; .global .u32 b; .const .u32 c; .global .u32 d;"
    found = like_statements(";" + text, [])
    assert [text[start - 1 : end - 1] for start, end in covered(";" + text, found)] == [".global .u32 b;", ".global .u32 d;"]
    assert list(covered(text, [])) == []


@pytest.mark.parametrize(
    "parsed",
    [
        [],
        [tree.Variable("global", "u32", [tree.Declarator("a")], start=0, end=9)],
        [tree.Variable("global", "u32", [tree.Declarator("a"), tree.Declarator("b")], start=0, end=15)],
        [tree.Variable("global", "u32", [tree.Declarator("b")], start=0, end=15)],
        [tree.Variable("global", "u32", [tree.Declarator("a", tree.Integer(3))], start=0, end=15)],
        [tree.Function("func", "a", [], [], start=0, end=9)],
        [tree.Function("func", "b", [], [], start=0, end=15)],
    ],
)
def test_a_wrong_model_is_found(parsed: list[tree.Statement]) -> None:
    text = ".global .u32 a;.global .u32 b;"
    with pytest.raises(WrongModel):
        merged(text, parsed, [LikeStatement(15, 30, -1, "b", (0, 15))])


def test_a_statement_within_another_is_found() -> None:
    text = ".global .u32 a;.global .u32 b;"
    model = tree.Variable("global", "u32", [tree.Declarator("a")], start=0, end=15)
    around = tree.Directive("pragma", [], start=14, end=30)
    with pytest.raises(WrongModel):
        merged(text, [model, around], [LikeStatement(15, 30, -1, "b", (0, 15))])


def test_a_wrong_model_means_that_all_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_model", lambda *_: (_ for _ in ()).throw(WrongModel))
    assert unread(".global .u32 a;") == []


def test_a_statement_that_is_none_by_itself_is_refused() -> None:
    found = outline(Source(HEAD + '.pragma "x";\n'))
    assert found is not None
    pragma = found.module.statements[-1]
    model = tree.Variable("global", "u32", [tree.Declarator("first")])
    with pytest.raises(TypeError, match="'a' is declared by no statement like those above"):
        found.statement(tree.Alike("a", model, start=pragma.start, end=pragma.end))

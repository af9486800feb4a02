"""Tables of a module that are read without tokens."""

from __future__ import annotations

import pytest

from ptxvm.syntax import parse, tree
from ptxvm.syntax.outline import outline
from ptxvm.syntax.source import Source
from ptxvm.syntax.tables import Constants, tables

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
VALUES = ", ".join(map(str, range(100)))
TABLE = f".global .b8 t[100] = {{{VALUES}}};\n"
FLOATS = ("0f3F800000", "0F00000000", "0fbf800000")
SECTION = ".section .debug_info\n{\n$L__a:\n.b8 1,2 , 3\n  .b32\t.debug_abbrev\r\n\n.b64 $L__a\n}\n"


def read_lazily(text: str) -> tree.Module:
    found = outline(Source(HEAD + text))
    assert found is not None
    return found.module


def read_whole(text: str) -> tree.Module:
    module, diagnostics = parse(Source(HEAD + text))
    assert not diagnostics
    return module


def places(module: tree.Module) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in module.statements]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TABLE, 1),
        (f".const .v2 .u32 t[50] = {{{VALUES.replace(', ', ',')}}};", 1),
        (TABLE.replace(", 7,", " ,\n\t7\r\n ,"), 1),
        (SECTION, 1),
        (TABLE + SECTION + TABLE.replace("t[", "u["), 3),
        (TABLE.replace(" 99}", " 0x63}"), 1),
        (TABLE.replace(" 7,", " -7, -0XfF,"), 1),
        (f".global .f32 t[3] = {{{', '.join(FLOATS)}}};", 1),
        (f".global .f64 t[2] = {{ 0d3FF0000000000000 ,0D{0:016x}}};", 1),
        (f".global .f32 t[4] = {{{', '.join(FLOATS)}, 1}};", 0),
        (f".global .f32 t[4] = {{{', '.join(FLOATS)}, 1.0}};", 0),
        (TABLE.replace(" 99}", " 077}"), 0),  # octal
        (TABLE.replace(" 99}", f" {10**18}}}"), 0),
        (TABLE.replace(" 99}", " - 99}"), 0),
        (TABLE.replace(" 99}", " 99U}"), 0),
        (TABLE.replace("{0", "{{0}, {0").replace("};", "}};").replace("[100]", "[2][100]"), 1),
        (TABLE.replace("};", f"}}, {{{VALUES}}}}};").replace("{0", "{\n{0", 1).replace("[100]", "[2][100]"), 2),
        (".global .b8 t[3] = {1, 2, 3};", 0),  # short
        (SECTION.replace("64 $L__a", "64 $L__a-$L__b"), 0),
        (SECTION.replace("abbrev", "loc+41").replace("64 $L__a", "64 $L__a + 8"), 1),
        (SECTION.replace(".b8 1,", ".b8 1,\n"), 0),
        (SECTION.replace("3\n", "3 .b8 4\n"), 0),
    ],
)
def test_tables_are_what_the_parser_reads(text, found):
    assert len(list(tables(text, 0, len(text)))) == found
    lazily, whole = read_lazily(text), read_whole(text)
    assert lazily == whole
    assert places(lazily) == places(whole)


@pytest.mark.parametrize(
    "text",
    [
        f'.pragma "t = {{{VALUES}}}";',
        f".global .b8 t[100] = {{{VALUES},}};",
        f".global .b8 t[100] = {{{VALUES} 5}};",
        f".global .b8 t[100] = {{ ,{VALUES}}};",
        f".global .b8 t[100] = {{{VALUES}}} 5;",
        f".func f() {{ .global .b8 t[100] = {{{VALUES}}}; ret; }}",
        f".align = {{{VALUES}}};",
        ".entry k\n.visible .global .f32 a[2] = {};",  # a body, which the parser takes for a list
        ".entry k\n.visible .global .f32 a[2] = { /* 1 */ };",
    ],
)
def test_what_only_looks_like_a_table_is_read_as_ever(text):
    found = outline(Source(HEAD + text))
    module, diagnostics = parse(Source(HEAD + text))
    assert found is None if diagnostics else found.module.statements[3].start == module.statements[3].start


def test_items_of_a_table_are_those_of_the_parser_with_their_places():
    text = f".global .s32 t[4] = {{ -1 ,0x10, -0X2,5}};\n.global .f32 f[3] = {{{','.join(FLOATS)}}};\n"
    lazily, whole = (
        [
            [(item, item.start, item.end, item.text if hasattr(item, "text") else item.operand.text) for item in items]
            for items in (
                each.declarators[0].initial.items for each in read(text).statements if isinstance(each, tree.Variable)
            )
        ]
        for read in (read_lazily, read_whole)
    )
    assert lazily == whole
    assert [len(items) for items in whole] == [4, 3]


def test_the_items_of_a_table_are_made_as_they_are_asked_for():
    (variable,) = (each for each in read_lazily(TABLE).statements if isinstance(each, tree.Variable))
    items = variable.declarators[0].initial.items
    assert isinstance(items, Constants)
    assert len(items) == 100
    assert items[7] == items[7:8][0] == tree.Integer(7)
    assert (items[7].text, items[7].start, items[7].end) == (
        "7",
        len(HEAD) + TABLE.index("7,"),
        len(HEAD) + TABLE.index("7,") + 1,
    )
    assert items == [tree.Integer(value) for value in range(100)]
    assert items != 5
    assert repr(items) == repr(list(items))

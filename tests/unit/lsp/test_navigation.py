"""Definition, references, highlights, renaming: names mean what PTX 5.4.1 and 4.4 say."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import DocumentHighlightKind

from ptxvm.lsp import navigation
from ptxvm.lsp.navigation import BadName

SCOPES = """\
.version 8.0
.target sm_90
.address_size 64
.global .u32 x;
.func f();
.entry k()
{
    .reg .u32 x, y<4>;
    mov.u32 x, 1;
    {
        .reg .u32 x;
        mov.u32 x, 2;
        bra L;
L:
    }
    mov.u32 y1, x;
    call f;
    bra L;
L:
    ret;
}
.func f()
{
    .reg .u64 a;
    mov.u64 a, x;
    ret;
}
"""


def line_of(document, location):
    return location.range.start.line + 1


def marked(text, after, mark="^"):
    """The module above with the cursor behind some text."""
    at = SCOPES.index(after) + len(after)
    return SCOPES[:at] + mark + SCOPES[at:]


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ("    mov.u32 x", 8),
        ("        mov.u32 x", 11),
        ("mov.u32 y1, x", 8),
        ("mov.u64 a, x", 4),
        ("        bra L", 14),
        ("    call f;\n    bra L", 19),
        ("mov.u32 y", 8),
        ("    call f", 22),
    ],
)
def test_a_name_leads_to_its_declaration(at, after, line):
    document, position = at(marked(SCOPES, after))
    (found,) = navigation.definition(document, position)
    assert line_of(document, found) == line


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        ("    mov.u32 x", [8, 9, 16]),
        ("        mov.u32 x", [11, 12]),
        ("mov.u64 a, x", [4, 25]),
        ("    call f", [5, 17, 22]),
        ("    call f;\n    bra L", [18, 19]),
        ("mov.u32 y1", [16]),
    ],
)
def test_references_are_those_of_the_same_declaration(at, after, lines):
    document, position = at(marked(SCOPES, after))
    assert [line_of(document, each) for each in navigation.references(document, position, declaration=True)] == lines


def test_references_without_declarations(at):
    document, position = at(marked(SCOPES, "    call f"))
    assert [line_of(document, each) for each in navigation.references(document, position, declaration=False)] == [17]


def test_highlights_tell_declarations_from_uses(at):
    found = navigation.highlights(*at(marked(SCOPES, "        mov.u32 x")))
    assert [each.kind for each in found] == [DocumentHighlightKind.Write, DocumentHighlightKind.Read]


def renamed(at, text, new):
    document, position = at(text)
    edit = navigation.rename(document, position, new)
    result = document.text.text
    for each in sorted(edit.changes[document.uri], key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start, end = document.text.span(each.range)
        result = result[:start] + each.new_text + result[end:]
    return result


def test_an_inner_register_is_renamed_and_the_outer_stays(at):
    result = renamed(at, marked(SCOPES, "        mov.u32 x"), "z")
    assert ".reg .u32 z;\n        mov.u32 z, 2;" in result
    assert "mov.u32 x, 1;" in result
    assert "mov.u32 y1, x;" in result


def test_a_family_is_renamed_with_all_its_registers(at):
    result = renamed(at, "add.s32 %r^1, %r1, 1;", "%index")
    assert ".reg .b32 %index<8>;" in result
    assert "add.s32 %index1, %index1, 10;" not in result
    assert "%r1" not in result
    assert ".reg .b64 %rd<4>;" in result
    assert "ld.param.u64 %rd1, [out];" in result


def test_functions_and_labels_are_renamed_everywhere(at):
    assert renamed(at, marked(SCOPES, "    call f"), "g").count(" g") == 3
    result = renamed(at, marked(SCOPES, "    call f;\n    bra L"), "END")
    assert "bra END;\nEND:" in result
    assert "bra L;\nL:\n    }" in result


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("1x", "no identifier"),
        ("", "no identifier"),
        ("a b", "no identifier"),
        ("%tid", "a special register"),
        ("y2", "declared on line 8"),
        ("L", "declared on line 19"),
    ],
)
def test_a_name_that_cannot_be_is_refused(at, new, reason):
    document, position = at(marked(SCOPES, "    mov.u32 x"))
    with pytest.raises(BadName, match=reason):
        navigation.rename(document, position, new)


@pytest.mark.parametrize("after", ["mov.u32 x, 1", ".entry", "// nothing", "mov"])
def test_what_is_no_name_has_no_places(at, after):
    text = SCOPES.replace("ret;", "ret; // nothing", 1)
    place = text.index(after) + len(after)
    document, position = at(text[:place] + "^" + text[place:])
    assert navigation.definition(document, position) == []
    assert navigation.references(document, position, declaration=True) == []
    assert navigation.renameable(document, position) is None
    assert navigation.rename(document, position, "z") is None

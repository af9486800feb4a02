"""Formatting: nothing is lost, the tree stays the same, and a second time nothing changes."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import Position, Range

from ptxvm.lsp.document import Document
from ptxvm.lsp.formatting import _comment_behind, formatting, range_formatting
from ptxvm.lsp.text import DocumentText
from ptxvm.syntax.parser import parse

UGLY = """\
.version 8.0
.target sm_90
 // a comment
.visible .entry k ( .param .u64 p )
{
.reg .b32   %r<4>;  // registers
        .reg .pred %p<2>;
/* a
     b */
   LOOP:
add.s32   %r1,%r2 ,  -1 ; /* odd */
      @%p1   bra    LOOP;
  {
  ld.global.u32 %r1,[ %r2 + 4 ];
     mov.b32 %r1,
        %r2;
     }
  bad bad
  .loc 1   2 3
ret ;  ret;
}
"""

PRETTY = """\
.version 8.0
.target sm_90
// a comment
.visible .entry k ( .param .u64 p )
{
    .reg .b32 %r<4>;  // registers
    .reg .pred %p<2>;
    /* a
     b */
LOOP:
    add.s32   %r1,%r2 ,  -1 ; /* odd */
    @%p1 bra LOOP;
    {
        ld.global.u32 %r1, [%r2+4];
        mov.b32 %r1,
        %r2;
    }
    bad bad
  .loc 1   2 3
    ret;
    ret;
}
"""


def applied(text, edits):
    document = Document("file:///a.ptx", DocumentText(text))
    for each in sorted(edits(document), key=lambda e: e.range.start.line, reverse=True):
        start, end = document.text.span(each.range)
        text = text[:start] + each.new_text + text[end:]
    return text


def test_statements_are_printed_and_comments_stay():
    assert applied(UGLY, formatting) == PRETTY


def test_a_formatted_text_stays():
    assert applied(PRETTY, formatting) == PRETTY


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_each_statement_of_a_line_has_a_line(line_end):
    head = ".version 8.0\n.target sm_90\n.entry k()\n{\n"
    text = head + "L: add.s32 %r1,%r2,1; @%p ret;// done\n    { mov.b32 %r1, %r2; } ret;\n    add.s32; .loc 1 2 3\n}\n"
    wanted = """L:
    add.s32 %r1, %r2, 1;
    @%p ret;  // done
    { mov.b32 %r1, %r2; } ret;
    add.s32; .loc 1 2 3
}
"""
    found = applied(text.replace("\n", line_end), formatting)
    assert found == (head + wanted).replace("\n", line_end)
    assert applied(found, formatting) == found


def test_what_stands_behind_a_brace_too_many_is_kept():
    text = "x:} .reg .pred  %p<2>;\n"
    assert applied(text, formatting) == text


def test_a_comment_that_ends_before_slashes_is_kept():
    """`*///` ends one comment and begins another."""
    head, body = ".version 8.0\n.target sm_90\n.entry k()\n{\n", "add.s32   %r1,%r2,1;"
    assert applied(f"{head}{body} /* odd *///\n}}\n", formatting) == f"{head}    {body} /* odd */  //\n}}\n"
    assert applied(f"{head}{body}/* a // b */// c\n}}\n", formatting) == f"{head}    {body}/* a // b */  // c\n}}\n"


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_of_any_text(seed, rng):
    """Whatever stands in a text, formatting moves blanks alone, but for spellings that the printer has one of."""
    random_edits = random.Random(int(rng.integers(2**32)) + seed)
    text = UGLY
    for _ in range(5):
        at = random_edits.randrange(len(text))
        text = text[:at] + random_edits.choice(["/*", "*/", "//", "{", "}", ";", '"', "\r\n", "\u00e9", "\n", "x:"]) + text[at:]
    found = applied(text, formatting)
    assert "".join(found.split()) == "".join(text.split())
    assert parse(found)[0] == parse(text)[0]


def test_a_range_is_formatted_alone():
    lines = UGLY.split("\n")
    wanted = Range(Position(5, 0), Position(6, 0))
    found = applied(UGLY, lambda document: range_formatting(document, wanted)).split("\n")
    assert found[5] == PRETTY.split("\n")[5]
    assert found[:5] + found[6:] == lines[:5] + lines[6:]


def test_tabs_where_the_editor_has_tabs():
    assert "\n\t.reg .b32 %r<4>;" in applied(UGLY, lambda document: formatting(document, "\t"))


class Searched(str):  # noqa: SLOT000 - it counts
    """A text that counts the characters that it is searched for."""

    count = 0

    def find(self, sub, start=0, end=None):
        """The characters from `start` to `end`."""
        self.count += (len(self) if end is None else end) - start
        return super().find(sub, start, end)

    def rfind(self, sub, start=0, end=None):
        """The characters from `start` to `end`; of a search for the begin of a line, that line."""
        found = super().rfind(sub, start, end)
        self.count += end - (found if sub == "\n" else start)
        return found


def test_each_line_is_searched_once_for_comments():
    text = Searched("/* a comment\n" + "of many lines\n" * 500 + "*/ ret;\n" * 500)
    plain, comment, start, found = " " * len(text), -1, 0, []
    for line in text.split("\n"):
        comment = _comment_behind(text, plain, start, start + len(line), comment)
        found.append(comment >= 0)
        start += len(line) + 1
    assert found == [True] * 501 + [False] * 501
    assert text.count < 4 * len(text)

"""The outline of a text that is being written: what stands around the bodies, and bodies that are left unread."""

from __future__ import annotations

import pytest

from ptxvm.syntax import tree
from ptxvm.syntax.outline import outline, sketch
from ptxvm.syntax.source import Source

RIGHT = ".version 8.0\n.target sm_90\n.global .u32 x;\n.entry k() { add.s32 ; }\n.func f() { ret; }\n"


def names(text):
    return [each.name for each in sketch(Source(text)).module.statements if isinstance(each, tree.Function)]


def test_bodies_are_left_unread():
    found = sketch(Source(RIGHT))
    assert [type(each.body) for each in found.module.statements if isinstance(each, tree.Function)] == [tree.Unread] * 2
    assert outline(Source(RIGHT)).module == found.module


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RIGHT.replace("x;", "x"), ["k", "f"]),
        (RIGHT.replace("k()", "k("), ["k", "f"]),
        (RIGHT.replace("; }\n.func", ";\n.func"), ["k", "f"]),
        (RIGHT + "/* no end", ["k", "f"]),
        (RIGHT + "\0.func", ["k", "f"]),
        ("", []),
    ],
)
def test_what_is_wrong_hides_nothing_else(text, found):
    assert names(text) == found
    assert outline(Source(text)) is None or not text


@pytest.mark.parametrize(("before", "after"), [("{ ", "{ { "), ("; }", "; } }"), ("; }", "; ")])
def test_braces_that_do_not_match_leave_the_bodies_below_unread(before, after):
    text = RIGHT.replace(before, after, 1)
    assert text != RIGHT
    found = sketch(Source(text + "\n.entry below()\n{ ret; }\n"))
    assert found.is_whole
    assert found.diagnostics
    assert isinstance(found.module.statements[-1].body, tree.Unread)

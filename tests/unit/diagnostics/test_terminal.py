"""Findings as text for people."""

from __future__ import annotations

import re

import pytest

from ptxvm.diagnostics import Diagnostic, Severity, Span, render, summary
from ptxvm.syntax import Source


def show(text: str, start: int, end: int, *, severity=Severity.ERROR, width: int = 80, color: bool = False, **details) -> str:
    source = Source(text, "k.ptx")
    line, column = source.location(start)
    found = Diagnostic(severity, "P0999", "a message", Span(start, end), line, column, **details)
    return render([(source, [found])], width=width, color=color)


def test_the_whole_picture():
    text = "one\nadd.u32 %r1, %r2;\nthree\n"
    assert show(text, 4, 11, label="here", note="a note", help="some help", related=(("before this", Span(22, 27)),)) == (
        "error[P0999]: a message\n"
        " --> k.ptx:2:1\n"
        "  |\n"
        "2 | add.u32 %r1, %r2;\n"
        "  | ^^^^^^^ here\n"
        "3 | three\n"
        "  | ----- before this\n"
        "  = note: a note\n"
        "  = help: some help\n"
    )


def test_tabs_are_expanded_and_the_carets_follow():
    shown = show("\tadd\t%r1;\n", 5, 8).splitlines()
    assert shown[3:5] == ["1 |     add %r1;", "  |         ^^^"]


@pytest.mark.parametrize(("text", "line", "carets"), [("é中\x01x", "é???x", "    ^"), ("e\u0301x", "ex", " ^")])
def test_every_character_has_its_cells(text, line, carets):
    place = text.index("x")
    shown = show(text, place, place + 1).splitlines()
    assert shown[3:5] == [f"1 | {line}", f"  | {carets}"]


def test_an_empty_span_is_one_caret():
    assert show("abc", 3, 3).splitlines()[4] == "  |    ^"


def test_a_span_over_lines_ends_with_its_first_line():
    assert show("abc def\nghi", 4, 11).splitlines()[3:5] == ["1 | abc def", "  |     ^^^"]


@pytest.mark.parametrize("place", [0, 50, 500, 990])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_long_lines_are_cut_around_the_place(place, width):
    text = "".join(chr(97 + at % 26) for at in range(1000))
    shown = show(text, place, place + 5, width=width).splitlines()
    quoted, carets = shown[3], shown[4]
    assert max(map(len, shown)) <= width
    start = carets.index("^")
    assert carets.count("^") == 5
    assert quoted[start : start + 5] == text[place : place + 5]
    assert ("..." in quoted[4:8]) == (place > 0)


def test_a_span_longer_than_the_line_is_cut():
    assert max(map(len, show("x" * 500, 100, 450).splitlines())) <= 80


def test_long_notes_are_wrapped_under_themselves():
    shown = show("abc", 0, 1, note="word " * 30).splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[5].startswith("  = note: word")
    assert shown[6].startswith("          word")


def test_places_far_apart_have_dots_between_them():
    text = "\n".join(f"line{number}" for number in range(1, 21))
    shown = show(
        text,
        text.index("line2"),
        text.index("line2") + 5,
        related=(("there", Span(text.index("line12"), text.index("line13"))),),
    )
    assert shown.splitlines()[3:8] == [" 2 | line2", "   | ^^^^^", "...", "12 | line12", "   | ------ there"]


def test_a_finding_without_a_place_has_no_snippet():
    found = Diagnostic(Severity.WARNING, "P0999", "a message", help="some help")
    assert render([(Source("", "k.ptx"), [found])]) == "warning[P0999]: a message\n --> k.ptx\n = help: some help\n"


def test_colors_only_when_asked_for():
    plain, colored = show("abc", 0, 1), show("abc", 0, 1, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[P0999]" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_two_findings_have_a_line_between_them():
    source = Source("abc", "k.ptx")
    found = Diagnostic(Severity.NOTE, "P0999", "a message", Span(0, 1), 1, 1)
    assert render([(source, [found, found])]).count("\n\n") == 1
    assert render([(source, [])]) == ""


def test_summary():
    def of(severity: Severity) -> Diagnostic:
        return Diagnostic(severity, "P0999", "a message")

    assert summary([]) == ""
    assert summary([of(Severity.ERROR)]) == "1 error"
    assert (
        summary([of(Severity.WARNING), of(Severity.ERROR), of(Severity.ERROR), of(Severity.NOTE)])
        == "2 errors, 1 warning, 1 note"
    )

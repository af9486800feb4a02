"""The registry of codes, and did-you-mean."""

from __future__ import annotations

import pytest

from ptxvm.diagnostics import closest, codes, did_you_mean, explain, register


@pytest.fixture
def empty(monkeypatch):
    monkeypatch.setattr(codes, "_CODES", {})


def test_a_code_is_found_in_either_case():
    assert explain("p0102") is explain("P0102")
    assert explain("P0102").title == "missing semicolon"
    assert explain("P9999") is None


@pytest.mark.usefixtures("empty")
def test_a_docstring_is_an_explanation():
    assert register("P0411", "a title", "\n    One.\n\n        Two.\n    ") == "P0411"
    assert explain("P0411").explanation == "One.\n\n    Two."


@pytest.mark.usefixtures("empty")
def test_a_code_has_one_meaning():
    register("P0411", "a title", "text")
    register("P0411", "a title", "text")
    with pytest.raises(ValueError, match="P0411 is already the code of 'a title'"):
        register("P0411", "another title", "text")


@pytest.mark.parametrize("code", ["411", "P411", "P04111", "E0411", "p0411"])
def test_the_form_of_a_code(code):
    with pytest.raises(ValueError, match="Pnnnn"):
        register(code, "a title", "text")


@pytest.mark.parametrize(
    ("word", "known", "guess"),
    [
        (".globl", [".local", ".global"], ".global"),
        (".GLOBAL", [".local", ".global"], ".global"),
        ("s23", ["s32", "u32"], "s32"),
        (".xyzzy", [".local", ".global"], ""),
        ("nosuch", ["noinc"], ""),  # three slips, though the first letter is the same
        ("a" * 1000, ["a" * 1001], ""),
        ("x", [], ""),
    ],
)
def test_the_closest_word(word, known, guess):
    assert closest(word, known) == guess
    assert did_you_mean(word, known) == (f"did you mean `{guess}`?" if guess else "")


def test_of_a_set_the_first_of_the_alphabet_is_meant():
    """The order of a set differs from process to process."""
    assert {closest("%rq", names) for names in ({"%ra", "%rb"}, frozenset(("%rb", "%ra")))} == {"%ra"}


@pytest.mark.parametrize(
    ("word", "guess"),
    [
        ("conter_5", "counter_5"),  # left out
        ("counnter_12", "counter_12"),  # added
        ("caunter_307", "counter_307"),  # changed
        ("couner_t44", ""),  # two slips, where one is allowed
        ("cuonter_61", "counter_61"),  # swapped
        ("COUNTER_8", "counter_8"),
    ],
)
def test_of_many_names_that_may_be_near_one_is_one_slip_away(word, guess):
    assert closest(word, [f"counter_{n}" for n in range(700)]) == guess

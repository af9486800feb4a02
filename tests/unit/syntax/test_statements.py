"""Labels by the colons of a text: those that the expression finds when it looks at every character."""

from __future__ import annotations

import random

import pytest

from ptxvm.syntax.statements import CODE_LABEL, LABEL, find_labels

PIECES = [
    "a", "$L__1:", "b:", ":", "::", "?", " ", "\t", "\n", "\r", ";", "{", "}", "x : y :", "L:\n .b", ".branchtargets a;", ".c",
]  # fmt: skip


@pytest.mark.parametrize("pattern", [LABEL, CODE_LABEL])
def test_labels_are_found_as_by_the_expression_alone(pattern, rng):
    pieces = random.Random(int(rng.integers(2**32)))
    found = 0
    for _ in range(2000):
        text = "".join(pieces.choices(PIECES, k=pieces.randrange(14)))
        start, end = sorted((pieces.randrange(len(text) + 1), len(text) - pieces.choice([0, 0, 1, len(text) // 2])))
        expected = [(each[1], each.span(1)) for each in pattern.finditer(text, start, end)]
        assert [(each[1], each.span(1)) for each in find_labels(pattern, text, start, end)] == expected, repr(text)
        found += len(expected)
    assert found > 100


def test_a_line_without_a_colon_is_not_looked_at():
    """Ten thousand lines of instructions before a label: the expression sees the label's own."""

    class Counted:
        def __init__(self):
            self.characters = 0

        def finditer(self, text, start, end):
            self.characters += end - start
            return LABEL.finditer(text, start, end)

    pattern = Counted()
    text = "{\n" + "add.s32 %r1, %r2, 3;\n" * 10_000 + "DONE:\nret;\n}"
    assert [each[1] for each in find_labels(pattern, text, 0, len(text))] == ["DONE"]
    assert pattern.characters < 20

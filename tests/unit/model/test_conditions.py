"""Conditions of litmus tests: precedence, parentheses, and any depth of them; expectations are `and`, `or`, `not`."""

import itertools
import re

import pytest

from ptxvm.diagnostics.errors import Unsupported
from ptxvm.model.conditions import NotALitmusTest, condition
from ptxvm.model.values import DEEPEST, ReadValue, evaluate, operation, reads_in

CONDITIONS = {
    "x == 1": lambda x, y, z: x,
    r"x == 1 /\ y == 1 \/ z == 1": lambda x, y, z: (x and y) or z,
    r"x == 1 \/ y == 1 /\ z == 1": lambda x, y, z: x or (y and z),
    r"x == 1 \/ y == 1 /\ z == 1 \/ ~ y == 1": lambda x, y, z: x or (y and z) or not y,
    r"x == 1 /\ (y == 1 \/ z == 1)": lambda x, y, z: x and (y or z),
    r"~(x == 1 /\ y == 1) /\ z == 1": lambda x, y, z: not (x and y) and z,
    r"~ ~ x == 1 /\ ~ y == 1": lambda x, y, z: x and not y,
    r"((x == 1 \/ ~(y == 1)) /\ ((z == 1)))": lambda x, y, z: (x or not y) and z,
    r"~(~x == 1 \/ ~(y == 1 /\ ~z == 1))": lambda x, y, z: x and y and not z,
    r"x == 1 && y == 1 || not z == 1": lambda x, y, z: (x and y) or not z,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_precedence(text):
    found = condition(text)
    for x, y, z in itertools.product((0, 1), repeat=3):
        assert found.holds({"x": x, "y": y, "z": z}) == bool(CONDITIONS[text](x, y, z))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(x == 1", "a `)` is missing"),
        (r"((x == 1) /\ y == 2", "a `)` is missing"),
        ("x == 1)", "`)` cannot follow"),
        ("x == 1 y == 1", "`y` cannot follow"),
        (r"x == 1 /\ ", "ends too early"),
        ("~", "ends too early"),
        ("x == 1 ; y", "cannot be read"),
    ],
)
def test_what_is_no_condition(text, said):
    with pytest.raises(NotALitmusTest, match=re.escape(said)):
        condition(text)


DEEP = {
    "parentheses": "(" * 100_000 + "x == 1" + ")" * 100_000,
    "negations": "~" * 100_000 + "x == 1",
    "both": r"~(x != 1 \/ " * 30_001 + "y == 1" + ")" * 30_001,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_any_depth(text):
    assert condition(text).holds({"x": 1, "y": 0}) is True


def test_values_have_a_depth():
    value = ReadValue(("P0", 0))
    for _ in range(DEEPEST):
        value = operation("add", value, 1)
    assert evaluate(value, {("P0", 0): 5}) == 5 + DEEPEST
    assert reads_in(value) == {("P0", 0)}
    with pytest.raises(Unsupported, match=f"a value that more than {DEEPEST} operations make of what was read"):
        operation("add", value, 1)

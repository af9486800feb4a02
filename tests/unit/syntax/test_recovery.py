"""What the reader says of broken modules, and how it goes on: snapshots of the rendered text.

Each `snapshots/NAME.ptx` is a broken module and `NAME.txt` what is printed for it.  `PTXVM_SNAPSHOTS=write pytest`
writes the texts anew; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ptxvm.diagnostics import all_codes, render, summary
from ptxvm.syntax import Source, parse, tree

FOLDER = Path(__file__).parent / "snapshots"
CASES = sorted(path.stem for path in FOLDER.glob("*.ptx"))

ELSEWHERE = {"P0110": "test_source", "P0111": "test_limits", "P0199": "test_limits"}
"""Codes whose provoking text does not fit in a file."""


@pytest.mark.parametrize("name", CASES)
def test_rendered_text(name):
    source = Source((FOLDER / f"{name}.ptx").read_bytes(), f"{name}.ptx")
    _, found = parse(source)
    text = f"{render([(source, found)])}\n{summary(found)}\n"
    snapshot = FOLDER / f"{name}.txt"
    if os.environ.get("PTXVM_SNAPSHOTS") == "write":
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


def test_every_code_of_the_syntax_has_a_snapshot():
    rendered = "".join((FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in CASES)
    codes = {code.code for code in all_codes() if code.code.startswith("P01")}
    assert codes - set(re.findall(r"\[(P01\d\d)\]", rendered)) == set(ELSEWHERE)


@pytest.mark.parametrize("name", CASES)
def test_plain_text_fits_80_columns_but_for_the_message(name):
    source = Source((FOLDER / f"{name}.ptx").read_bytes(), f"{name}.ptx")
    lines = render([(source, parse(source)[1])]).splitlines()
    assert [line for line in lines if len(line) > 80 and not re.match(r"(error|warning)\[", line)] == []


def test_what_is_right_beside_an_error_is_read():
    text = """
        .global .b32 a;
        .global .b32 b[;
        .entry k(.param .b32 broken b) {
            mov.u32 %r1, 1;
            mov.u32 %r2 2;
            mov.u32 %r3, 3
            mov.u32 %r4, 4;
        }
        .func f() { ret; }
    """
    module, found = parse(text)
    assert len(found) == 4
    first, kernel, function = module.statements
    assert isinstance(first, tree.Variable)
    assert isinstance(kernel, tree.Function)
    assert [str(statement.operands[1].value) for statement in kernel.body.statements] == ["1", "3", "4"]
    assert isinstance(function, tree.Function)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("exit\nmov.b32 %r1, 5;\nret;", [(2, 5)]),
        ("ret\n.reg .b32 %r1;", [(2, 4)]),
        ("ret\n.loc 1 2 3\nret;", [(2, 4)]),
        ("ret\n}.func f() { ret;", [(2, 4)]),
        ("ret\nL: ret;", [(2, 4)]),
        ("ret\n@%p ret;", [(2, 4)]),
        ("mov.b32 %r1, %r2\nret;", [(2, 17)]),
        ("mov.b32 %r1, 5\n\n\n// c\nmov.b32 %r1, 6\nret;", [(2, 15), (6, 15)]),
        ("call f\nret;", [(2, 7)]),
    ],
)
def test_a_forgotten_semicolon_is_found_where_it_should_stand(body_errors, text, places):
    found = body_errors(text)
    assert [(each.code, each.line, each.column) for each in found] == [("P0102", *place) for place in places]


def test_operands_may_stand_on_lines_of_their_own(read_body):
    """As nvcc prints calls."""
    (call, move) = read_body("call.uni (r),\nf,\n(\na,\nb\n);\nmov.b32\n%r1\n,\n%tid.x\n;")
    assert (len(call.operands), len(move.operands)) == (3, 2)

"""`ptxvm litmus`: text, JSON, drawings, and calls that it does not understand."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ptxvm.cli import main

CASES = Path(__file__).parents[2] / "litmus" / "cases"
RELEASED = str(CASES / "message-passing-released.litmus")


def test_json_is_one_object_a_test(capsys):
    assert main(["litmus", "--format", "json", RELEASED, str(CASES / "mixed-size-race.litmus")]) == 0
    released, mixed = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert released["name"] == "message-passing-released"
    assert (released["verdict"], released["termination"], released["model"]) == ("forbidden", "terminates", "9.1")
    assert {"outcomes", "races", "seconds"} <= released.keys()
    assert [(race["kind"], race["location"]) for race in mixed["races"]] == [("mixed-size", "x")]


def test_text_names_the_axiom_of_the_model(capsys):
    assert main(["litmus", RELEASED, "--model", "6.4"]) == 0
    assert "forbidden by Causality (8.9.6)" in capsys.readouterr().out


def test_drawings_are_svg_with_the_relations(tmp_path, capsys):
    assert main(["litmus", RELEASED, "--svg", str(tmp_path)]) == 0
    drawing = ET.parse(tmp_path / "message-passing-released.svg").getroot()  # noqa: S314 - our own file
    kinds = {word for path in drawing.iter("{http://www.w3.org/2000/svg}path") for word in path.get("class", "").split()}
    assert {"po", "rf", "fr", "sync", "cause"} <= kinds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such.litmus"], "No such file"),
        ([RELEASED, "--model", "5.0"], "--model is 6.4 or 9.1"),
        ([RELEASED, "--format", "xml"], "--format is text or json"),
        ([__file__], "a litmus test has a name"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words, said, capsys):
    assert main(["litmus", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("st.weak data, 1 ", "fence.sc ", "8: `fence.sc` is no instruction of a litmus test: a fence has an order and a scope"),
        ("st.weak data, 1 ", "st.wek data, 1 ", "8: `st.wek data, 1` is no instruction of a litmus test: .wek is not known"),
        (
            "st.weak data, 1 ",
            "st.relaxed data, 1 ",
            "8: `st.relaxed data, 1` is no instruction of a litmus test: .relaxed has a scope",
        ),
        ("data = 0;", "data = zero;", "5: `data = zero` has no number as the first value"),
        ("exists (P1:r0", "exists (P5:r0", "10: the question asks for `P5:r0`; there is data, flag, P1:r0, P1:r1"),
        ("exists (P1:r0", "exists (dat", "10: the question asks for `dat`; there is data, flag"),
    ],
)
def test_what_is_wrong_in_a_table(written, instead, said, tmp_path, capsys):
    text = Path("tests/litmus/cases/message-passing.litmus").read_text()
    assert text.count(written) == 1
    path = tmp_path / "wrong.litmus"
    path.write_text(text.replace(written, instead))
    assert main(["litmus", str(path)]) == 2
    assert f"{path}:{said}" in capsys.readouterr().err


def test_an_answer_that_takes_too_long(tmp_path, capsys):
    """Six stores to one variable have 720 orders, and five loads of it seven values each."""
    columns = [[f"P{n}@cta {n},gpu 0", f"st.relaxed.gpu x, {n + 1}", "ld.relaxed.gpu r0, x"] for n in range(6)]
    rows = [" | ".join(column[n] for column in columns) + " ;" for n in range(3)]
    path = tmp_path / "many.litmus"
    path.write_text("PTX many\n{\nx = 0;\n}\n" + "\n".join(rows) + "\nexists (P0:r0 == 9)\n")
    assert main(["litmus", str(path), "--solver", "search", "--limit", "0.05"]) == 2
    assert "many: no answer within 0.05 seconds; --limit allows more, --solver z3 is faster" in capsys.readouterr().err


HEADER = "//: litmus t\n//: launch k<<<1, 1>>>()\n//: exists (x == 1)\n.version 8.0\n.target sm_90\n.address_size 64\n"
KERNEL = HEADER + ".visible .global .u32 x;\n.visible .entry k() {{ .reg .b32 %r<2>; .reg .b64 %d<2>; {code} ret; }}\n"


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("bogus.u32 %r1;", 1, "bogus"),
        ("mov.u64 %d1, 0; ld.global.u32 %r1, [%d1];", 1, "null pointer"),
        ("activemask.b32 %r1;", 1, "a collective of the lanes that happen to be active, in a litmus kernel is not"),
        ("st.global.u32 [x], 1;", 0, ""),
    ],
)
def test_a_kernel_that_is_wrong(tmp_path, capsys, code: str, exit_code: int, said: str):
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL.format(code=code))
    assert main(["litmus", str(path)]) == exit_code
    assert said in capsys.readouterr().err

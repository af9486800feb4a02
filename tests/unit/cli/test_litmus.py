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

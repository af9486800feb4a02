"""Each outcome has an execution that shows it, each that the axioms forbid has one that breaks an axiom, and both are drawn."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from verdicts import HERE, KERNELS_AGAIN, Expected, own

from ptxvm.cli.litmus import litmus
from ptxvm.litmus import read
from ptxvm.model import judge, read_litmus
from ptxvm.model.cycle_explanation import cycle, edges
from ptxvm.model.drawing import svg
from ptxvm.model.verdict_report import report


@pytest.mark.parametrize("expected", own(), ids=str)
def test_every_outcome_has_its_own(expected: Expected):
    judgement = judge(expected.test(), expected.model, witnesses=True)
    assert judgement.witnesses.keys() == judgement.outcomes.keys()
    assert not judgement.refusals.keys() & judgement.outcomes.keys()
    for state, candidate in judgement.witnesses.items():
        assert candidate.broken is None
        assert dict(state) in list(candidate.states())
    for state, candidate in judgement.refusals.items():
        assert dict(state) in list(candidate.states())
        assert candidate.broken is not None
        assert not candidate.broken.holds(candidate.execution)
        steps, relations = cycle(candidate), edges(candidate.execution)
        assert all((step.first, step.second) in relations[step.edge] for step in steps[:-1])
        assert all(before.second == after.first for before, after in pairwise(steps))


def test_store_buffering_by_hand():
    """Of the four outcomes three are allowed; what refuses the fourth goes through both fences."""
    (test,) = read(HERE / "cases" / "store-buffering.litmus")
    judgement = judge(test, witnesses=True)
    assert {(dict(state)["P0:r0"], dict(state)["P1:r1"]) for state in judgement.witnesses} == {(0, 1), (1, 0), (1, 1)}
    ((state, candidate),) = judgement.refusals.items()
    assert (dict(state)["P0:r0"], dict(state)["P1:r1"]) == (0, 0)
    assert candidate.broken is not None
    assert candidate.broken.name == "Causality"
    assert [step.edge for step in cycle(candidate)] == ["fr", "po", "sync", "po"]


CASES = [pytest.param(path, id=path.name) for path in sorted((HERE / "cases").glob("*.litmus"))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", [*CASES, *KERNELS_AGAIN])
def test_drawings_and_lines(path):
    for test in read(path):
        judgement = judge(test, witnesses=True)
        for candidate in [*judgement.witnesses.values(), *judgement.refusals.values()]:
            drawn = svg(candidate)
            drawing = ET.fromstring(drawn)  # noqa: S314 - our own drawing
            boxes = [float(box.get("x", "0")) for box in drawing.iter("{http://www.w3.org/2000/svg}rect") if box.get("rx")]
            assert len(boxes) == candidate.execution.count
            assert max(boxes) < float(drawing.get("width", "0"))
            assert ("forbidden by" in drawn) == (candidate.broken is not None)
        for line in report(judgement, every=True):
            assert len(line) <= 80 or line.startswith(("  exists", "  forall", "  ~exists"))


def test_the_picture_of_the_chapter_is_current():
    (test,) = read(HERE / "cases" / "message-passing-released.litmus")
    assert (HERE.parents[1] / "docs" / "explanation" / "message-passing.svg").read_text() == svg(judge(test).forbidden)


def test_a_picture_takes_the_colours_of_its_viewer():
    """Light text on dark ground where the viewer is dark; nothing but the style says white."""
    drawn = (HERE.parents[1] / "docs" / "explanation" / "message-passing.svg").read_text()
    style, _, rest = drawn.partition("</style>")
    assert "prefers-color-scheme: dark" in style
    assert 'fill="white"' not in rest
    assert "#fff" not in rest


TWO_WRITES = """PTX two-writes
{{
x = 0; y = 0;
}}
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0 ;
 ld.weak r0, x          | ;
 st.weak x, 1           | ;
 st.weak x, 2           | ;
 st.weak y, 3           | ;
{question}
"""
REFUSED = {
    "exists (x == 1)": ("Coherence", ["po", "co"]),
    "exists (x == 0)": ("Coherence", ["co", "co"]),
    "exists (x == 1 /\\ y == 3)": ("Coherence", ["po", "co"]),
    "~exists (x == 1)": ("Coherence", ["po", "co"]),
    "forall (x == 2)": ("Coherence", ["po", "co"]),
    "exists (P0:r0 == 2)": ("Coherence", ["po", "obs", "po"]),
}


@pytest.mark.parametrize(("question", "expected"), REFUSED.items(), ids=REFUSED)
def test_what_only_coherence_refuses(question, expected):
    """8.10.1: causality order between writes is coherence order, so no search tries another; the answer names it."""
    judgement = judge(read_litmus(TWO_WRITES.format(question=question)))
    told = judgement.as_json()
    assert (told["axiom"], [step["edge"] for step in told["cycle"]]) == expected
    assert "forbidden by Coherence (8.10.1)" in "\n".join(report(judgement))


def test_a_state_that_nothing_gives_has_no_axiom():
    told = judge(read_litmus(TWO_WRITES.format(question="exists (x == 7)"))).as_json()
    assert (told["verdict"], told["axiom"], told["cycle"]) == ("forbidden", None, [])


def test_every_state_that_coherence_refuses():
    judgement = judge(read_litmus(TWO_WRITES.format(question="exists (x == 1)")), witnesses=True)
    assert {(dict(state)["P0:r0"], dict(state)["x"]) for state in judgement.refusals} == {(0, 1)}


def test_files_and_json(tmp_path, capsys):
    case = str(HERE / "cases" / "store-buffering.litmus")
    assert litmus([case], "9.1", "json", str(tmp_path)) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    stem = "store-buffering"
    assert names == [f"{stem}.allowed-{n}.svg" for n in (1, 2, 3)] + [f"{stem}.forbidden-1.svg", f"{stem}.svg"]
    told = json.loads(capsys.readouterr().out)
    assert {"name", "model", "verdict", "termination", "outcomes", "races", "seconds"} <= told.keys()
    assert (told["name"], told["verdict"], told["termination"]) == ("store-buffering", "forbidden", "terminates")


def test_what_the_machine_shows(capsys):
    """Of store buffering it shows the three outcomes of taking turns, in so many runs altogether."""
    assert litmus([str(HERE / "cases" / "store-buffering.litmus")], "9.1", "text", None, runs=60) == 0
    lines = capsys.readouterr().out.partition("seen in 60 runs")[2].splitlines()[1:]
    times = [int(line.split()[0]) for line in lines if line]
    assert len(times) == 3
    assert sum(times) == 60


def test_what_the_machine_shows_as_json(capsys):
    assert litmus([str(HERE / "cases" / "message-passing.litmus")], "9.1", "json", None, runs=60) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == sum(each["count"] for each in told["seen"]) == 60
    assert all(each["allowed"] for each in told["seen"])
    assert [each["count"] > 0 for each in told["seen"]].count(False) == 1  # no taking turns shows the weak outcome
    assert litmus([str(HERE / "cases" / "livelock.litmus")], "9.1", "json", None, runs=2) == 0
    assert json.loads(capsys.readouterr().out)["seen"] == [{"state": None, "count": 2, "allowed": True}]
    assert litmus([str(HERE / "cases" / "surface-with-fence.litmus")], "9.1", "json", None, runs=1) == 0
    assert "fence.proxy" in json.loads(capsys.readouterr().out)["untold"]


def test_what_no_kernel_can_say(capsys):
    assert litmus([str(HERE / "cases" / "surface-with-fence.litmus")], "9.1", "text", None, runs=1) == 0
    assert "no kernel can say this test" in capsys.readouterr().out


def test_a_command_shows_them_all(capsys):
    assert litmus([str(HERE / "cases" / "store-buffering.litmus")], "9.1", "text", None, witnesses=True) == 0
    told = capsys.readouterr().out
    assert len(re.findall(r"^  allowed: ", told, re.MULTILINE)) == 3
    assert len(re.findall(r"^  not allowed: ", told, re.MULTILINE)) == 1

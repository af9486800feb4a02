"""What the views of the page show: steps, counters, explanations, litmus tests."""

from __future__ import annotations

import pytest
from playground_kernels import DOUBLE

from ptxvm.playground.lessons import course

DIVERGES = DOUBLE.replace(
    "    add.u32 %r2, %r2, %r2;\n",
    "    setp.lt.u32 %p, %r1, 4;\n    @%p bra small;\n    add.u32 %r2, %r2, %r2;\nsmall:\n",
).replace("    .reg .b32 %r<3>;", "    .reg .b32 %r<3>; .reg .pred %p;")


# ── steps ───────────────────────────────────────────────────────────────────────────────


def test_a_launch_is_recorded_step_by_step(ask):
    done = ask("step", source=DOUBLE, arguments=["u32[32]=arange"])
    assert [each["line"] for each in done["steps"]] == [8, 9, 10, 11, 12, 13, 14]
    add = done["steps"][4]
    assert add["text"] == "add.u32 %r2, %r2, %r2;"
    assert add["lanes"] == add["on"] == 0xFFFFFFFF
    (written,) = add["writes"]
    assert (written["name"], written["type"]) == ("%r2", "u32")
    assert written["values"] == [[lane, str(2 * lane)] for lane in range(32)]
    (stored,) = done["steps"][5]["accesses"]
    assert (stored["verb"], stored["space"]) == ("write", "global")
    assert dict(map(tuple, stored["places"]))[3] == "data+12"
    assert done["left"] == 0


def test_a_diverged_warp_shows_its_lanes(ask):
    steps = ask("step", source=DIVERGES, arguments=["u32[32]=arange"])["steps"]
    (branch,) = [each for each in steps if "bra" in each["text"]]
    assert (branch["lanes"], branch["on"]) == (0xFFFFFFFF, 0xF)
    (add,) = [each for each in steps if each["text"].startswith("add.u32")]
    assert add["lanes"] == 0xFFFFFFF0


def test_a_fault_leaves_the_steps_before_it(ask):
    done = ask("step", source=DOUBLE, arguments=["u32[31]"])
    assert done["outcome"] == "fault"
    assert [each["line"] for each in done["steps"]][:3] == [8, 9, 10]


def test_a_cta_that_is_not_there_is_refused(ask):
    assert ask("step", source=DOUBLE, arguments=["u32[32]"], cta=1)["message"] == "there is no CTA 1; the grid has 1"
    assert ask("step", source=DOUBLE, checks=["race"])["message"] == "a launch is followed without checks, in one schedule"


# ── counters ────────────────────────────────────────────────────────────────────────────


def test_bank_conflicts_are_counted_and_drawn(ask):
    lesson = course()["bank-conflict"]
    done = ask("count", source=lesson.source, grid="1", block="32,32", arguments=list(lesson.arguments))
    shared = next(each for each in done["metrics"] if each["title"] == "Wavefronts of shared memory")
    # 32 warps write a row each, 1 wavefront, and read a column each, 32 words of one bank
    assert (shared["value"], shared["ideal"]) == (32 * (1 + 32), 64)
    load = next(each for each in done["lines"] if each["text"].startswith("ld.shared"))
    assert (load["inst_executed"], load["shared_wavefronts"]) == (32, 1024)
    worst = max(done["pictures"], key=lambda each: each["cost"])
    assert (worst["line"], worst["cost"], worst["ideal"]) == (load["line"], 32, 1)
    assert all(drawn.startswith("<svg") for drawn in worst["drawn"])


# ── explanations ────────────────────────────────────────────────────────────────────────


def test_an_instruction_is_explained_with_the_lanes_values(ask):
    found = ask("explain", text="again: @%p shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1; // XOR", values=["%r2=lane*10", "%p=1"])
    assert (found["found"], found["title"]) == ("instruction", "@%p shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;")
    assert found["modifiers"][1] == [".bfly", "from the lane whose number differs by XOR"]
    (output,) = found["outputs"]
    assert [int(value, 16) for value in output["values"]] == [10 * (lane ^ 1) for lane in range(32)]
    assert len(found["pictures"]) == 1


@pytest.mark.parametrize(
    ("text", "found", "pictures"),
    [
        ("prmt.b32 %r1, %r2, 0, 0x0123;", "instruction", 2),
        ("ld.shared.u32 %r1, [%r2];", "instruction", 1),
        ("bra done;", "instruction", 0),
        (".shared .b8 tile[256];", "directive", 0),
        ("adx.u32 %r1, %r2;", "wrong", 0),
        ("// only a comment", "", 0),
        ("}", "", 0),
        ("", "", 0),
        (".nonsense", "", 0),
    ],
)
def test_every_line_has_an_explanation_or_none(ask, text, found, pictures):
    explained = ask("explain", text=text)
    assert explained["found"] == found
    assert len(explained.get("pictures", [])) == pictures


def test_a_value_that_is_none_is_refused(ask):
    error = ask("explain", text="add.u32 %r1, %r2, 5;", values=["%r2=five"])
    assert error["kind"] == "request"


# ── litmus tests ────────────────────────────────────────────────────────────────────────

MP = """PTX MP
{ x = 0; f = 0; P1:r0 = 0; P1:r1 = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.ACQUIRE.gpu r0, f  ;
 st.RELEASE.gpu f, 1   | ld.weak r1, x         ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.mark.parametrize(
    ("release", "acquire", "verdict"), [("relaxed", "relaxed", "allowed"), ("release", "acquire", "forbidden")]
)
def test_a_litmus_test_has_all_outcomes_drawn(ask, release, acquire, verdict):
    """Message passing (PTX 8.10.1): release and acquire forbid the flag without the data, relaxed accesses allow it."""
    found = ask("litmus", source=MP.replace("RELEASE", release).replace("ACQUIRE", acquire))
    assert found["verdict"] == verdict
    states = {(each["state"]["P1:r0"], each["state"]["P1:r1"]) for each in found["outcomes"] if each["allowed"]}
    assert states == {(0, 0), (0, 1), (1, 1)} | ({(1, 0)} if verdict == "allowed" else set())
    assert all(each["drawing"].startswith("<svg") for each in found["outcomes"])
    assert (found["explained"] is not None) is (verdict == "forbidden")


def test_what_is_no_litmus_test_is_told(ask):
    assert ask("litmus", source="hello")["message"].startswith("a litmus test has a name")
    assert ask("litmus", source=MP, model="7.0")["message"].startswith("there is no model '7.0'")

"""What notebooks show: well-formed HTML that has the texts, escaped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np

import ptxvm
from ptxvm.diagnostics import Diagnostic, Severity
from ptxvm.diagnostics.diagnostic import Span
from ptxvm.diagnostics.notebook import card
from ptxvm.machine.result import LaunchResult

RACE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) { .reg .b64 %rd<2>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret; }
"""


def shown(thing):
    """The heading and the rows that a notebook shows."""
    html = ET.fromstring(thing if isinstance(thing, str) else thing._repr_html_())  # noqa: S314 - our own text
    return html.findtext("strong"), [tuple(cell.text for cell in row) for row in html.iter("tr")]


def test_every_text_is_escaped():
    html = card('<b> & "x"', [("<th>", "a < b && '</td>'"), ("empty", "")])
    assert "<b>" not in html
    assert shown(html) == ('<b> & "x"', [("<th>", "a < b && '</td>'")])


def test_a_diagnostic():
    found = Diagnostic(
        Severity.ERROR, "P0305", "no '<x>'", line=3, column=4, label="here", help="write 'y'",
        related=(("declared & used", Span(0, 1)),),
    )  # fmt: skip
    rows = [("at", "here"), ("help", "write 'y'"), ("related", "declared & used")]
    assert shown(found) == ("3:4: error[P0305]: no '<x>'", rows)


def test_a_module_lists_its_kernels():
    heading, rows = shown(ptxvm.load(RACE))
    assert (heading, rows[1:]) == ("Module", [("kernel", "k(.u64 out)")])
    assert rows[0][0] == "source"
    assert rows[0][1].endswith(", for sm_80")


def test_a_result_and_its_findings():
    result = ptxvm.load(RACE).kernel().launch(1, 64, [np.zeros(1, np.uint32)], check="race")
    heading, rows = shown(result)
    assert (heading, rows[:2]) == ("LaunchResult", [("grid", "(1, 1, 1)"), ("block", "(64, 1, 1)")])
    (finding,) = result.findings
    assert ("finding", str(finding)) in rows
    heading, rows = shown(finding)
    assert heading == f"error[race]: {finding.message}"
    assert [name for name, _ in rows] == ["kernel", "access", "access", "missing"]


def test_a_result_tells_what_was_printed_and_how_often_it_ran():
    _, rows = shown(LaunchResult((2, 1, 1), (4, 1, 1), 3, 1200, 0, 0.25, "<p>\n", schedules=5, cluster=(2, 1, 1)))
    assert rows[2:] == [
        ("cluster", "(2, 1, 1)"), ("thread-instructions", "1,200"), ("time", "0.25 s"), ("schedules", "5"),
        ("printed", "<p>\n"),
    ]  # fmt: skip


def test_a_profile_shows_the_metrics_that_are_not_zero():
    result = ptxvm.load(RACE).kernel().launch(1, 64, [np.zeros(1, np.uint32)], profile=True)
    assert ("profile", "Profile of 'k': 8 instructions of warps on 1 line") in shown(result)[1]
    heading, rows = shown(result.profile)
    assert (heading, rows[:3]) == ("Profile of k", [("grid", "(1, 1, 1)"), ("block", "(64, 1, 1)"), ("engine", "jit")])
    assert ("inst_executed", "8") in rows
    assert ("threads_per_inst", "32") in rows
    assert not dict(rows).keys() & {"branches", "shared_load_requests"}

"""Schedules that are chosen by hand, saved, and replayed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ring_kernel import KERNEL

import ptxvm
from ptxvm.debug.console import Console
from ptxvm.debug.focus import NotThere
from ptxvm.debug.steps import Step
from ptxvm.debug.stops import Reason
from ptxvm.machine.warp_schedule import Choice, WarpSchedule

# Each thread adds 1 to a counter, and does so in two steps: what the warps leave depends on their order.
LOST = """.version 8.0
.target sm_80
.address_size 64
.visible .entry lost(.param .u64 counter)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [counter];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_an_order_that_loses_an_update_is_saved_and_replayed(debugged, tmp_path):
    """Warp 0 reads the counter; warp 1 runs to its end; then warp 0 overwrites what warp 1 has stored."""
    counter = np.zeros(1, np.uint32)
    session = debugged(LOST, 1, 64, [counter])
    session.start()
    session.issue(Choice(0, 1), 5)
    assert counter[0] == 1
    session.resume()
    assert counter[0] == 2  # one warp after the other: no update is lost
    session.start()
    assert counter[0] == 0
    session.issue(Choice(0, 0), 2)
    session.issue(Choice(0, 1), 5)
    saved = session.schedule
    assert session.resume().reason is Reason.ENDED
    assert counter[0] == 1
    file = tmp_path / "lost.json"
    file.write_text(saved.text)
    again = np.zeros(1, np.uint32)
    ptxvm.load(LOST).kernel().replay(file, [again])
    assert again[0] == 1
    assert WarpSchedule.of_text(saved.text) == saved


def test_a_saved_schedule_is_followed_in_a_session(debugged):
    counter = np.zeros(1, np.uint32)
    session = debugged(LOST, 1, 64, [counter])
    session.follow(WarpSchedule("lost", (1, 1, 1), (64, 1, 1), choices={n: Choice(0, 1) for n in range(5)}))
    session.resume()
    assert counter[0] == 2
    with pytest.raises(NotThere, match="a schedule of turn"):
        session.follow(WarpSchedule("turn", (1, 1, 1), (64, 1, 1)))


@pytest.mark.parametrize("choice", [Choice(9, 0), Choice(0, 1)])
def test_a_session_says_where_a_schedule_does_not_fit(debugged, choice):
    """There is no block 9; warp 1 has ended when it is let run once more."""
    session = debugged(LOST, 1, 64, [np.zeros(1, np.uint32)])
    session.follow(WarpSchedule("lost", (1, 1, 1), (64, 1, 1), choices=dict.fromkeys(range(6), choice)))
    with pytest.raises(NotThere, match=rf"does not fit this run: it lets warp {choice.warp} of block number {choice.cta}"):
        session.resume()
    session.start()
    assert session.resume().reason is Reason.ENDED


def test_a_schedule_that_does_not_fit_is_refused():
    kernel = ptxvm.load(LOST).kernel()
    with pytest.raises(ValueError, match="of the kernel 'turn'"):
        kernel.replay(WarpSchedule("turn", (1,), (64,)), [np.zeros(1, np.uint32)])
    late = WarpSchedule("lost", (1,), (64,), choices={3: Choice(0, 7)})
    with pytest.raises(ValueError, match="does not fit the run after 3 instructions"):
        kernel.replay(late, [np.zeros(1, np.uint32)])


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"ptxvm-schedule": 2}', '{"ptxvm-schedule": 1, "kernel": "k"}'])
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(ValueError, match="schedule"):
        WarpSchedule.of_text(text)


def test_the_console_saves_and_loads(debugged, out):
    held: dict[str, str] = {}
    files = SimpleNamespace(write=held.__setitem__, read=held.__getitem__)
    session = debugged(KERNEL, 1, 64, [out, 64])
    console = Console(session, files)
    for line in ("start", "issue warp 1 3", "save schedule s.json"):
        said = [each.text for each in console.execute(line)]
    assert said == ["3 choices are in s.json"]
    list(console.execute("load schedule s.json"))
    assert (console.failed, session.time, session.step(Step.WARP).reason) == (False, 0, Reason.STEP)

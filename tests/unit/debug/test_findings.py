"""What checks find under the debugger, and what logpoints say: both follow from a kernel with known mistakes."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
from ring_kernel import session_of

from ptxvm.debug import timeline
from ptxvm.debug.console import Console
from ptxvm.debug.focus import Focus
from ptxvm.debug.stops import Reason
from ptxvm.debug.values import NoValue, bits_of

HALF = """.version 8.0
.target sm_80
.address_size 64
.visible .entry half(.param .u64 out)
{
    .reg .pred %p, %q;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .shared .u32 buf[32];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 16;
    mov.u32 %r3, buf;
    mad.lo.u32 %r3, %r1, 4, %r3;
    @%p st.shared.u32 [%r3], %r1;
    bar.sync 0;
    @%p mov.u32 %r5, 7;
    ld.shared.u32 %r4, [%r3];
    setp.gt.u32 %q, %r4, 99;
    @%q bra NEXT;
NEXT:
    add.u32 %r4, %r5, %r4;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r4;
    ret;
}
"""
LINES = {text.strip(): number for number, text in enumerate(HALF.splitlines(), 1)}
BRANCH, ADD, STORE = LINES["@%q bra NEXT;"], LINES["add.u32 %r4, %r5, %r4;"], LINES["st.global.u32 [%rd2], %r4;"]


@pytest.fixture
def half(debugged):
    """A session whose upper 16 lanes read shared memory and a register that they have not written."""
    return lambda size: debugged(HALF, 1, 32, [np.zeros(size, np.uint32)])


def test_reads_of_what_has_no_value_are_caught_in_memory_and_in_registers(half):
    session = half(32)
    made = session.catch("init")
    session.start()
    for line, said in ((BRANCH, "byte 64 of the shared memory ('buf' + 64)"), (STORE, "register %r5")):
        stop = session.resume()
        assert (stop.reason, stop.numbers) == (Reason.CATCHPOINT, (made.number,))
        assert said in stop.message
        assert session.execution.focus.thread == 16
        assert session.execution.findings[-1].line == line
    assert session.resume().reason is Reason.ENDED


def test_going_back_to_a_finding_and_on_finds_it_again(half):
    session = half(32)
    session.catch("init")
    session.start()
    messages = [session.resume().message for _ in range(2)]
    assert session.reverse_resume().message.endswith(messages[1].partition(": ")[2])
    assert session.reverse_resume().message.endswith(messages[0].partition(": ")[2])
    assert [session.resume().message for _ in range(2)] == messages


@pytest.mark.parametrize("time", range(1, 15))
def test_findings_are_the_same_from_any_checkpoint_on(half, monkeypatch, time):
    """Where checkpoints stand follows from how long instructions take: it must not be seen."""
    monkeypatch.setattr(timeline, "PATIENCE", math.inf)
    session = half(32)
    session.catch("init")
    session.start()
    times = session.execution.timeline
    while times.now < time:
        times.advance(times.next())
    times._keep()
    times.go_to(0)
    messages = [session.resume().message for _ in range(2)]
    assert session.reverse_resume().message.endswith(messages[1].partition(": ")[2])
    assert session.reverse_resume().message.endswith(messages[0].partition(": ")[2])
    assert [session.resume().message for _ in range(2)] == messages


@pytest.mark.parametrize(("condition", "stops"), [("", True), ("%tid.x == 30", True), ("%tid.x == 3", False)])
def test_a_wild_access_is_caught_where_the_condition_holds_and_told_at_the_end(half, condition, stops):
    """The array has 30 elements: thread 30 is the first that is wrong."""
    session = half(30)
    session.catch("memory", condition)
    session.start()
    stop = session.resume()
    if stops:
        assert (stop.reason, session.execution.focus.thread) == (Reason.CATCHPOINT, 30)
        stop = session.resume()
    assert stop.reason is Reason.ENDED
    assert stop.message.startswith("out-of-bounds: writing 4 bytes")


@pytest.mark.parametrize(("condition", "threads"), [("", [30]), ("%tid.x == 30", [30]), ("%tid.x == 3", [])])
def test_going_back_stops_for_the_same_threads(half, condition, threads):
    """The thread that makes the finding has the focus, as forwards, and another one's condition does not count."""
    session = half(30)
    session.catch("memory", condition)
    session.start()
    while session.resume().reason is not Reason.ENDED:
        pass
    session.execution.focus = Focus(0, 0, 3)
    found = []
    while session.reverse_resume().reason is Reason.CATCHPOINT:
        found.append(session.execution.focus.thread)
    assert found == threads


def test_a_check_that_is_not_wanted_stops_nothing(half):
    session = half(32)
    session.catch("race")
    session.start()
    stop = session.resume()
    assert (stop.reason, stop.message) == (Reason.ENDED, "")


def test_a_logpoint_says_what_lanes_have_and_goes_on(half):
    session, said = half(32), []
    session.logged = said.append
    session.log_at(str(ADD), "{%r4} of {{{%p}}}", "%tid.x < 2 || %tid.x > 29")
    session.start()
    assert session.resume().reason is Reason.ENDED
    head = "[block (0,0,0), warp 0, "
    assert said == [
        f"{head}lane 0] 0x00000000 of {{true}}", f"{head}lane 1] 0x00000001 of {{true}}",
        f"{head}lanes 30-31] 0x00000000 of {{false}}",
    ]  # fmt: skip


def test_a_logpoint_says_nothing_again_where_time_goes_back(half):
    session, said = half(32), []
    session.logged = said.append
    session.log_at(str(ADD), "here")
    session.break_at(str(STORE))
    session.start()
    session.resume()
    session.go_to(0)
    assert said == ["[block (0,0,0), warp 0, lanes 0-31] here"]


def test_a_value_that_there_is_not_is_said_in_the_message(half):
    session, said = half(32), []
    session.printed = said.append
    session.log_at(str(ADD), "{%none}")
    session.start()
    session.resume()
    assert said[0].startswith("[block (0,0,0), warp 0, lanes 0-31] <there is no '%none' here")


@pytest.mark.parametrize("message", ["{", "}", "{1 +}", "{{}"])
def test_a_message_that_is_none_is_refused(half, message):
    with pytest.raises(NoValue):
        half(32).log_at(str(ADD), message)


def test_the_console_sets_and_lists_logpoints(half):
    console = Console(half(32))
    (made,) = console.execute(f'logpoint {ADD} "r4 {{%r4}}" if %tid.x == 5')
    assert made.text == f"Logpoint 1 at <half>:{ADD}"
    assert f'{ADD} if %tid.x == 5 "r4 {{%r4}}" at' in list(console.execute("info b"))[-1].text
    (wrong,) = console.execute("logpoint 12")
    assert wrong.text == 'a logpoint is LOCATION "TEXT", and a condition behind it'


def test_a_session_that_is_dropped_gives_its_memory_back():
    session = session_of(HALF, 1, 32, [np.zeros(32, np.uint32)])
    memory = session.image.memory
    gc.collect()  # sessions that others have dropped
    before = len(memory.table.items)
    session.break_at(str(BRANCH))
    session.start()
    session.resume()
    assert len(memory.table.items) > before
    del session
    gc.collect()
    assert len(memory.table.items) == before


CPP = """.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z5scalev()
{
    .reg .b32 %r<9>;
    .shared .align 4 .b32 _ZZ5scalevE4tile[32];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, _ZZ5scalevE4tile;
    st.shared.u32 [%r2], 7;
    ret;
}
"""


def test_a_variable_of_cpp_is_named_as_in_the_source(debugged):
    session = debugged(CPP, 1, 1, [])
    session.break_at("opcode ret")
    session.start()
    session.resume()
    assert bits_of(session.value("tile[0]")) == [7]
    with pytest.raises(NoValue, match="there is no 'ile'"):
        session.value("ile")


def test_to_name_a_register_that_the_code_does_not_use_changes_nothing(debugged):
    """A family of registers has those that are named; the engine has slots for these."""
    session = debugged(CPP, 1, 1, [])
    session.start()
    with pytest.raises(NoValue, match="no instruction of '_Z5scalev' uses '%r5'"):
        session.value("%r5")
    assert session.resume().reason is Reason.ENDED

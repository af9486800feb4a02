"""A session, forwards and backwards: what must hold follows from the kernel of `ring_kernel`."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from ring_kernel import KERNEL, LINES, expected

import ptxvm
from ptxvm.debug import inspection
from ptxvm.debug.breakpoints import hit_condition_of
from ptxvm.debug.focus import Focus, NotThere
from ptxvm.debug.run import NotRunning
from ptxvm.debug.session import Session
from ptxvm.debug.steps import NoStep, Step
from ptxvm.debug.stops import Reason
from ptxvm.debug.values import NoValue, bits_of
from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.warp_schedule import Choice


def value(session, text):
    """The value of an expression for the thread in focus, as bits."""
    return bits_of(session.value(text))[0]


def line(session):
    """The line of the PTX where the thread in focus is."""
    return inspection.current_line(session)


def test_it_runs_to_the_end(turn, out):
    turn.start()
    assert turn.resume().reason is Reason.ENDED
    assert out.tolist() == expected()


def test_nothing_can_be_asked_before_it_starts(turn):
    with pytest.raises(NotRunning):
        turn.resume()


def test_a_breakpoint_stops_before_its_line_for_the_thread_of_its_condition(turn):
    made = turn.break_at(str(LINES["st.shared.u32 [%r3], %r1;"]), "%tid.x == 37")
    turn.start()
    stop = turn.resume()
    assert (stop.reason, stop.numbers) == (Reason.BREAKPOINT, (made.number,))
    assert turn.execution.focus == Focus(0, 1, 5)
    assert value(turn, "%r1") == 37
    assert value(turn, "ring[37]") == 0
    turn.step(Step.INSTRUCTION)
    assert value(turn, "ring[37]") == 37


@pytest.mark.parametrize(
    ("where", "first"),
    [
        ("ring.cu:13", "add.u32 %r4, %r1, 1;"), ("opcode bar.*", "bar.sync 0;"), ("ODD", "call (%r6), hundred, (%r6);"),
        ("hundred", "add.u32 %out, %in, 100;"), ("*7", "bar.sync 0;"), ("hundred+1", None),
    ],
)  # fmt: skip
def test_a_breakpoint_may_be_named_in_many_ways(turn, where, first):
    if first is None:
        with pytest.raises(NotThere, match="no function or label 'hundred"):
            turn.break_at(where)
        return
    turn.break_at(where)
    turn.start()
    assert turn.resume().reason is Reason.BREAKPOINT
    assert line(turn) == LINES[first]


LOOP = """
.version 8.0
.target sm_80
.visible .entry loop() {
    .reg .b32 %i; .reg .pred %p;
    mov.u32 %i, 0;
AGAIN:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 9;
    @%p bra AGAIN;
    ret;
}
"""


@pytest.fixture
def loop():
    """A session of a loop that each of the four warps of two blocks runs nine times."""
    kernel = ptxvm.load(LOOP).kernel("loop")
    with closing(Session(kernel.module.image, kernel.function, LaunchOptions(2, 64), [], owner=kernel.module)) as session:
        yield session


@pytest.mark.parametrize(("passed", "condition"), [(0, ""), (1, ""), (5, ""), (5, "%i >= 2 && %tid.x == 40")])
def test_to_ignore_stops_is_to_continue_from_each(loop, passed, condition):
    """As GDB has it (5.1.6): the ignore count is that of the crossings, each of which would have stopped."""
    made = loop.break_at("AGAIN", condition)
    loop.start()
    for _ in range(passed + 1):
        assert loop.resume().reason is Reason.BREAKPOINT
    expected = loop.time, value(loop, "%i"), made.hits
    loop.start()
    made.ignore = passed
    assert loop.resume().reason is Reason.BREAKPOINT
    assert (loop.time, value(loop, "%i"), made.hits) == expected
    assert made.hits == passed + 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6, 7, 8]), ("7", [6, 7, 8]), (">= 7", [6, 7, 8]), ("> 7", [7, 8]), ("== 7", [6]), ("=7", [6]),
        ("<3", [0, 1]), ("<= 3", [0, 1, 2]), ("% 4", [3, 7]),
    ],
)  # fmt: skip
def test_a_hit_condition_chooses_stops(loop, text, values):
    loop.break_at("AGAIN").hit_condition = hit_condition_of(text)
    loop.start()
    found = []
    while loop.resume().reason is Reason.BREAKPOINT:
        found.append(value(loop, "%i"))
    assert found == values


@pytest.mark.parametrize("text", ["soon", "%", "% 0", "-1", "1 2"])
def test_what_is_no_hit_condition_is_refused(text):
    with pytest.raises(NotThere, match="a hit condition is a number of hits"):
        hit_condition_of(text)


def test_a_step_of_a_source_line_goes_to_the_next_loc(turn):
    turn.start()
    origins = []
    for _ in range(5):
        turn.step(Step.LINE)
        origins.append(inspection.stack(turn)[0].origin)
    assert origins == ["ring.cu:11", "ring.cu:12", "ring.cu:13", "ring.cu:14", "ring.cu:15"]  # thread 0 is even


def test_line_0_is_no_source_line(debugged, out):
    """What is of no source line (DWARF 4 6.2.2) belongs to a step of the line before it, and names no origin."""
    text = KERNEL.replace(".loc 1 11 0", ".loc 1 0 0").replace("rem.u32", ".loc 1 0 0\n    rem.u32")
    session = debugged(text, 1, 64, [out, 64])
    session.start()
    origins = []
    for _ in range(3):
        session.step(Step.LINE)
        origins.append(inspection.stack(session)[0].origin)
    assert origins == ["ring.cu:12", "ring.cu:13", "ring.cu:14"]
    for _ in range(2):
        session.reverse_step(Step.LINE)
    assert inspection.stack(session)[0].origin == "ring.cu:12"
    session.break_at("*turn+3")
    session.start()
    session.resume()
    assert inspection.stack(session)[0].origin == ""


def test_steps_go_into_functions_past_them_and_out_of_them(turn):
    turn.break_at("ODD")
    turn.start()
    turn.resume()
    assert turn.execution.focus.lane == 1
    turn.step(Step.LINE)
    assert [each.function for each in inspection.stack(turn)] == ["hundred", "turn"]
    turn.step(Step.FINISH)
    assert line(turn) == LINES["mul.wide.u32 %rd2, %r1, 4;"]
    assert value(turn, "%r6") == 102
    turn.reverse_step(Step.NEXT_LINE)
    assert (line(turn), value(turn, "%r6")) == (LINES["call (%r6), hundred, (%r6);"], 2)
    turn.step(Step.NEXT_LINE)
    assert (line(turn), value(turn, "%r6")) == (LINES["mul.wide.u32 %rd2, %r1, 4;"], 102)
    with pytest.raises(NoStep):
        turn.step(Step.FINISH)


def test_a_step_to_a_breakpoint_is_a_stop_there_and_it_goes_on_from_there(turn):
    made = turn.break_at(str(LINES["mov.u32 %r1, %tid.x;"]))
    turn.start()
    assert [turn.step(Step.INSTRUCTION).reason for _ in range(3)] == [Reason.STEP, Reason.BREAKPOINT, Reason.STEP]
    assert made.hits == 1
    turn.reverse_step(Step.INSTRUCTION)
    assert turn.step(Step.INSTRUCTION).reason is Reason.STEP


def test_a_divergent_warp_is_shown_in_groups_and_meets_again(turn):
    turn.break_at("ring.cu:15")
    turn.start()
    turn.resume()
    warp = next(inspection.warps(turn))
    assert [(group.mask, group.line) for group in warp.groups] == [
        (0x5555_5555, LINES["mul.lo.u32 %r6, %r6, 2;"]), (0xAAAA_AAAA, LINES["call (%r6), hundred, (%r6);"]),
    ]  # fmt: skip
    turn.delete()
    turn.step(Step.CONVERGE)
    warp = next(inspection.warps(turn))
    assert [(group.mask, group.line) for group in warp.groups] == [(0xFFFF_FFFF, LINES["mul.wide.u32 %rd2, %r1, 4;"])]
    turn.reverse_step(Step.WARP)
    assert len(next(inspection.warps(turn)).groups) == 2
    turn.reverse_step(Step.CONVERGE)
    assert line(turn) == LINES["@%p bra ODD;"]


def test_a_step_to_the_barrier_runs_the_block(turn):
    turn.start()
    turn.step(Step.BARRIER)
    assert line(turn) == LINES["add.u32 %r4, %r1, 1;"]
    assert [value(turn, f"ring[{n}]") for n in (0, 37, 63)] == [0, 37, 63]


def test_a_step_at_a_barrier_ends_behind_it(turn):
    turn.break_at("opcode bar.*")
    turn.start()
    turn.resume()
    assert turn.step(Step.INSTRUCTION).reason is Reason.STEP
    assert line(turn) == LINES["add.u32 %r4, %r1, 1;"]


def test_a_run_that_is_interrupted_stops_where_it_is(turn):
    turn.start()
    turn.interrupt()
    assert turn.resume().reason is Reason.INTERRUPT
    assert turn.resume().reason is Reason.ENDED
    turn.interrupt()
    assert turn.reverse_resume().reason is Reason.INTERRUPT
    assert turn.reverse_resume().reason is Reason.BEGIN


def test_a_warp_that_waits_is_seen_at_its_barrier(turn):
    turn.start()
    turn.issue(Choice(0, 1), 8)
    assert [(each.number, each.arrived, each.expected) for each in inspection.barriers(turn)] == [(0, 32, 64)]
    assert {each.status for each in inspection.warp_lanes(turn)} == {"waits at a barrier of its CTA"}
    with pytest.raises(NotThere, match="cannot run"):
        turn.issue(Choice(0, 1))


def test_each_time_has_one_state(turn, out):
    """What the registers are at a time is the same whether it is reached forwards, backwards, or from a checkpoint."""
    turn.start()
    seen = {}
    while turn.step(Step.WARP).reason is Reason.STEP:
        turn.execution.focus = Focus(0, 0, 0)
        seen[turn.time] = [(each.line, each.values) for each in inspection.warp_lanes(turn, ("%r6", "%r4", "%p"))]
    last = max(seen)
    for time in (last, 3, last // 2, last // 2 - 1, 1, last - 1):
        turn.go_to(time)
        turn.execution.focus = Focus(0, 0, 0)
        assert [(each.line, each.values) for each in inspection.warp_lanes(turn, ("%r6", "%r4", "%p"))] == seen[time]
    turn.go_to(0)
    assert not out.any()
    turn.resume()
    assert out.tolist() == expected()


def test_going_back_finds_the_last_breakpoint_and_then_the_beginning(turn):
    made = turn.break_at("opcode st.*")
    turn.start()
    first = turn.resume(), turn.time
    second = turn.resume(), turn.time
    assert (first[0].numbers, second[0].numbers) == ((made.number,), (made.number,))
    assert turn.resume().reason is Reason.ENDED
    assert (turn.reverse_resume().reason, turn.time) == (Reason.BREAKPOINT, second[1])
    assert (turn.reverse_resume().reason, turn.time) == (Reason.BREAKPOINT, first[1])
    assert (turn.reverse_resume().reason, turn.time) == (Reason.BEGIN, 0)


def test_a_watchpoint_tells_the_old_and_the_new_value(turn):
    turn.start()
    made = turn.watch("turn_param_0[9]")
    stop = turn.resume()
    assert (stop.reason, stop.numbers) == (Reason.WATCHPOINT, (made.number,))
    (change,) = stop.changes
    assert (change.line, change.old, change.new) == (LINES["st.global.u32 [%rd3], %r6;"], "0", "110")
    assert turn.execution.focus == Focus(0, 0, 9)
    turn.reverse_resume()
    assert (line(turn), value(turn, "turn_param_0[9]")) == (LINES["st.global.u32 [%rd3], %r6;"], 0)


def test_shared_memory_is_watched_for_reads(turn):
    turn.start()
    turn.watch("ring[5]", "read")
    assert turn.resume().reason is Reason.WATCHPOINT
    assert turn.execution.focus == Focus(0, 0, 4)  # which reads what the next thread left
    assert line(turn) == LINES["ld.shared.u32 %r6, [%r5];"] + 2


def test_a_change_is_a_part_of_the_run(turn, out):
    turn.break_at(str(LINES["st.global.u32 [%rd3], %r6;"]))
    turn.start()
    turn.resume()
    time = turn.time
    turn.assign("%r6", "7 * 6")
    turn.assign("turn_param_0[20]", "5")
    turn.delete()
    assert out[20] == 5
    turn.step(Step.INSTRUCTION)
    assert out[0] == 42
    turn.go_to(time - 1)
    assert out[20] == 0
    turn.go_to(time + 1)
    assert out[0] == 42
    turn.start()
    turn.resume()
    assert out.tolist() == expected()


def test_what_cannot_be_changed_or_read_is_said(turn):
    turn.start()
    for text in ("5", "%tid.x + 1"):
        with pytest.raises(NoValue, match="cannot be changed"):
            turn.assign(text, "1")
    with pytest.raises(NoValue, match="a null pointer"):
        turn.value(".global.u32[0]")
    with pytest.raises(NoValue, match=r"no state space '\.nope'; there are global shared local const param shared::cluster$"):
        turn.value(".nope.u32[0]")
    with pytest.raises(NotThere, match=r"name what is to be caught: nan memory init sync race$"):
        turn.catch("")
    with pytest.raises(NoValue, match="the shared memory has 256 bytes"):
        turn.value(".shared.u32[256]")


def test_casts_keep_the_space_of_a_variable(turn):
    """Thread 37 has stored its number in word 37 of `ring`."""
    turn.break_at(str(LINES["ld.shared.u32 %r6, [%r5];"]), "%tid.x == 37")
    turn.start()
    turn.resume()
    with pytest.raises(NoValue, match=r"no value is converted to a \.f16x2"):
        turn.value("(f16x2)1")
    for text in ("*((u32*)&ring + 37)", "((unsigned int*)&ring)[37]", "*(.u8*)(&ring + 4 * 37)", "(short)(65536 + 37)"):
        assert value(turn, text) == 37


def test_the_order_of_warps_is_chosen(turn):
    turn.start()
    turn.issue(Choice(0, 1), 3)
    assert turn.execution.focus == Focus(0, 1, 0)
    assert value(turn, "%r1") == 32
    turn.focus_on(Focus(0, 0, 0))
    assert line(turn) == LINES["ld.param.u64 %rd1, [turn_param_0];"]
    turn.reverse_step(Step.WARP)
    assert turn.time == 0  # warp 0 has executed nothing


def test_lanes_of_a_warp_may_go_apart(turn):
    turn.break_at("ring.cu:15")
    turn.start()
    turn.resume()
    turn.delete()
    turn.issue(Choice(0, 0, 1), 3)  # the odd lanes: call, add, ret
    groups = next(inspection.warps(turn)).groups
    assert [(group.mask, group.line) for group in groups] == [
        (0x5555_5555, LINES["mul.lo.u32 %r6, %r6, 2;"]), (0xAAAA_AAAA, LINES["mul.wide.u32 %rd2, %r1, 4;"]),
    ]  # fmt: skip


FAULTY = KERNEL.replace("[%rd3], %r6", "[%rd2], %r6")


def test_a_fault_stops_where_it_is_and_can_be_left_backwards(debugged, out):
    session = debugged(FAULTY, 1, 64, [out, 64])
    session.start()
    stop = session.resume()
    assert stop.reason is Reason.FAULT
    assert isinstance(stop.fault, Fault)
    assert stop.fault.kind == "null-pointer"
    assert line(session) == LINES["st.global.u32 [%rd3], %r6;"]
    assert value(session, "%r6") == expected()[0]
    session.reverse_step(Step.INSTRUCTION)
    assert line(session) == LINES["add.u64 %rd3, %rd1, %rd2;"]
    session.step(Step.INSTRUCTION)
    assert session.step(Step.INSTRUCTION).reason is Reason.FAULT


DEADLOCK = KERNEL.replace("bar.sync 0;", "bar.sync 0, 96;")


def test_a_deadlock_is_a_fault_of_the_waiting_threads(debugged, out):
    session = debugged(DEADLOCK, 1, 64, [out, 64])
    session.start()
    stop = session.resume()
    assert stop.fault is not None
    assert stop.fault.kind == "deadlock"
    assert {each.status for each in inspection.warp_lanes(session)} == {"waits at a barrier of its CTA"}


def test_a_race_is_caught_with_both_lines_and_left_backwards(debugged, out):
    """Without its barrier a warp may read what the next one has not written yet."""
    session = debugged(KERNEL.replace("bar.sync 0;", ""), 1, 64, [out, 64])
    made = session.catch("race")
    session.start()
    stop = session.resume()
    assert (stop.reason, stop.numbers) == (Reason.CATCHPOINT, (made.number,))
    read, write = LINES["ld.shared.u32 %r6, [%r5];"], LINES["st.shared.u32 [%r3], %r1;"]
    assert f"the read at line {read} and the write at line {write} are not ordered" in stop.message
    session.reverse_step(Step.INSTRUCTION)
    assert line(session) == read
    assert session.resume().numbers == (made.number,)  # it is found again, as the check went back too
    assert session.reverse_resume().reason is Reason.CATCHPOINT
    assert line(session) == read
    session.resume()
    assert session.resume().reason is Reason.ENDED


def test_a_fault_stops_under_a_check_too(debugged, out):
    session = debugged(FAULTY, 1, 64, [out, 64])
    session.catch("race")
    session.start()
    stop = session.resume()
    assert (stop.reason, stop.numbers) == (Reason.CATCHPOINT, ())
    assert stop.message.startswith("null-pointer: writing 4 bytes")


def test_a_kernel_without_races_runs_to_its_end_under_the_check(turn, out):
    turn.catch("race")
    turn.start()
    assert turn.resume().reason is Reason.ENDED
    turn.delete()
    turn.start()  # without the check, with the arguments as they were
    assert not out.any()
    turn.resume()
    assert out.tolist() == expected()


NAN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry roots(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    sqrt.rn.f32 %f2, %f1;
    add.f32 %f3, %f2, 0f3F800000;
    st.global.f32 [%rd3], %f3;
    ret;
}
"""


def test_the_condition_of_a_catchpoint_chooses_the_thread_both_ways(debugged):
    x = np.array([-4, 9, -1, -16], np.float32)
    session = debugged(NAN, 1, 4, [x])
    session.catch("nan", "%tid.x == 3")
    session.start()
    assert session.resume().reason is Reason.CATCHPOINT
    assert session.execution.focus.lane == 3
    session.focus_on(Focus(lane=1))
    assert session.reverse_resume().reason is Reason.CATCHPOINT
    assert session.execution.focus.lane == 3


def test_the_first_nan_is_caught_where_it_is_made(debugged):

    x = np.array([4, 9, -1, 16], np.float32)
    session = debugged(NAN, 1, 4, [x])
    made = session.catch("nan")
    session.start()
    stop = session.resume()
    assert (stop.reason, stop.numbers) == (Reason.CATCHPOINT, (made.number,))
    assert "sqrt.rn.f32" in stop.message
    assert session.execution.focus.lane == 2
    assert session.resume().numbers == (made.number,)  # the sum of a NaN is a new one in another register
    assert session.resume().reason is Reason.ENDED

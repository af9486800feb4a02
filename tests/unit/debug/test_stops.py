"""Where a run stops, forwards and backwards: what must hold follows from the kernel of `ring_kernel`."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from ring_kernel import LINES

import ptxvm
from ptxvm.debug import inspection
from ptxvm.debug.console import Console
from ptxvm.debug.focus import Focus
from ptxvm.debug.inspection import BarrierView
from ptxvm.debug.session import Session
from ptxvm.debug.steps import Step
from ptxvm.debug.stops import Reason
from ptxvm.debug.values import NoValue
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.warp_schedule import Choice

SHARED_STORE, STORE = str(LINES["st.shared.u32 [%r3], %r1;"]), str(LINES["st.global.u32 [%rd3], %r6;"])


def line(session):
    """The line of the PTX where the thread in focus is."""
    return str(inspection.current_line(session))


def test_a_condition_without_a_value_stops_once_and_says_why(turn):
    first = turn.break_at(SHARED_STORE, "%nothing == 3")
    second = turn.break_at(STORE)
    turn.start()
    stop = turn.resume()
    assert (stop.reason, stop.numbers, line(turn)) == (Reason.BREAKPOINT, (first.number,), SHARED_STORE)
    assert stop.message.startswith("whose condition `%nothing == 3` has no value: there is no '%nothing' here")
    assert turn.resume().numbers == (second.number,)


def test_the_condition_of_a_watchpoint_may_have_no_value_too(turn):
    turn.start()
    made = turn.watch("ring[7]", condition="%nothing")
    stop = turn.resume()
    assert (stop.reason, stop.numbers) == (Reason.WATCHPOINT, (made.number,))
    assert "%nothing" in stop.message
    assert turn.resume().reason is Reason.ENDED


@pytest.mark.parametrize("guard", ["%r1 < 60 && turn_param_0[%r1 + 4] == 0", "!(%r1 >= 60 || turn_param_0[%r1 + 4] != 0)"])
def test_what_stands_behind_and_and_or_is_read_only_where_it_is_needed(turn, guard):
    """C17 6.5.13, 6.5.14; the array has 64 elements, so that lanes 60 to 63 would read behind its end."""
    turn.break_at(STORE, f"%r1 == 0 && %r8 == 1 || %r1 > 40 && {guard}")
    turn.start()
    assert turn.resume().message == ""
    assert turn.execution.focus == Focus(0, 1, 9)


def test_guards_are_nested_as_deep_as_a_hand_writes_them(turn):
    turn.start()
    assert inspection.text_of(turn.value("(1 && " * 60 + "2" + ")" * 60)) == "1"
    with pytest.raises(NoValue, match="within each other"):
        turn.value("(1 && " * 70 + "2" + ")" * 70)


def test_the_old_value_at_a_watchpoint_is_what_was_there_before_the_instruction(turn):
    turn.start()
    turn.watch("turn_param_0[9]")
    assert turn.resume().changes[0].old == "0"
    turn.reverse_resume()
    assert turn.resume().changes[0].old == "0"  # going back has undone the store
    turn.reverse_resume()
    turn.assign("turn_param_0[9]", "5")
    assert turn.resume().changes[0].old == "5"


def test_logpoints_stop_nothing_backwards(turn):
    turn.log_at(SHARED_STORE, "here")
    turn.break_at(STORE)
    turn.start()
    turn.resume()
    turn.resume()
    assert turn.reverse_resume().reason is Reason.BREAKPOINT
    assert turn.reverse_resume().reason is Reason.BEGIN


def test_watchpoints_say_their_numbers_backwards_and_hear_their_conditions(turn):
    turn.start()
    turn.watch("ring[5]", "access", "%r1 == 63")
    made = turn.watch("ring[5]", "access", "%r1 == 4")  # which reads what the next thread left
    assert turn.resume().numbers == (made.number,)
    assert turn.resume().reason is Reason.ENDED
    stop = turn.reverse_resume()
    assert (stop.reason, stop.numbers) == (Reason.WATCHPOINT, (made.number,))
    assert turn.execution.focus.thread == 4
    assert turn.reverse_resume().reason is Reason.BEGIN  # the store is that of thread 5


def test_going_back_stops_where_a_nan_was_made(debugged):
    text = """.version 8.0
        .target sm_80
        .address_size 64
        .visible .entry root(.param .f32 x) {
            .reg .f32 %f<3>;
            ld.param.f32 %f1, [x];
            sqrt.rn.f32 %f2, %f1;
            add.f32 %f1, %f1, %f1;
            ret;
        }
        """
    session = debugged(text, 1, 1, [np.float32(-1)])
    made = session.catch("nan")
    session.start()
    stop = session.resume()
    assert (stop.numbers, stop.finding) == ((made.number,), "nan")
    assert session.resume().reason is Reason.ENDED
    stop = session.reverse_resume()
    assert (stop.reason, stop.numbers, line(session)) == (Reason.CATCHPOINT, (made.number,), "7")


def test_the_last_step_ends_the_kernel(turn):
    turn.start()
    assert turn.resume().reason is Reason.ENDED
    turn.go_to(turn.time - 1)
    assert turn.step(Step.WARP).reason is Reason.STEP  # that of warp 0; the other one is at its last
    assert turn.execution.focus.warp == 1
    assert turn.step(Step.WARP).reason is Reason.ENDED


def test_at_the_end_it_is_said_how_values_are_seen(turn):
    turn.start()
    turn.resume()
    with pytest.raises(NoValue, match="as the kernel has: go back a step"):
        turn.value("turn_param_0[9]")
    turn.reverse_step(Step.INSTRUCTION)
    assert inspection.text_of(turn.value("turn_param_0[9]")) == "110"


def test_going_to_a_time_may_be_interrupted(turn):
    turn.start()
    turn.resume()
    time = turn.time
    turn.execution.timeline.checkpoints = {0: turn.execution.timeline.checkpoints[0]}
    turn.interrupt()
    assert turn.go_to(time - 1).reason is Reason.INTERRUPT
    assert turn.time < time - 1
    turn.interrupt()
    assert turn.go_to(0).reason is Reason.STEP


def test_checkpoints_come_and_go_while_a_run_is_searched_backwards(turn, monkeypatch):
    """Each instruction makes one, as where a copy takes no time, and each second one is dropped where there are eight."""
    monkeypatch.setattr("ptxvm.debug.timeline.PATIENCE", 0)
    monkeypatch.setattr("ptxvm.debug.timeline.MOST_CHECKPOINTS", 8)
    first = turn.break_at(SHARED_STORE)
    turn.start()
    turn.resume()
    time = turn.time
    turn.delete(first.number)
    assert turn.resume().reason is Reason.ENDED
    assert turn.reverse_resume().reason is Reason.BEGIN
    turn.break_at(SHARED_STORE)
    turn.finished()
    while (stop := turn.reverse_resume()).reason is Reason.BREAKPOINT:
        assert line(turn) == SHARED_STORE
        found = turn.time
    assert (stop.reason, found) == (Reason.BEGIN, time)


def test_breakpoints_that_are_refused_take_no_number(turn):
    turn.start()
    with pytest.raises(NoValue):
        turn.break_at(STORE, "1 +")
    with pytest.raises(NoValue):
        turn.watch("ring[1]", condition=")")
    with pytest.raises(NoValue):
        turn.catch("nan", "(")
    assert turn.break_at(STORE).number == 1


CLUSTERS = """.version 8.0
    .target sm_90
    .address_size 64
    .visible .entry pairs() .reqnctapercluster 2 {
        .reg .b32 %r<4>;
        mov.u32 %r1, %tid.x;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        mov.u32 %r2, %r1;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        mov.u32 %r3, %r1;
        ret;
    }
    """


MBARRIERS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<4>; .reg .b64 %state;
    .shared .align 8 .b64 pads[2]; .shared .align 8 .b64 bar;
    mov.u32 %r1, bar;
    mbarrier.init.shared.b64 [%r1], 3;
    mbarrier.arrive.expect_tx.shared.b64 %state, [%r1], 48;
    mbarrier.arrive.shared.b64 %state, [%r1];
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 40;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 8;
    mbarrier.arrive.shared.b64 %state, [%r1];
    mbarrier.inval.shared.b64 [%r1];
    ret;
}
"""


def test_mbarriers_are_listed_with_their_phase_and_what_has_come(debugged):
    """Three arrivals and the announced bytes end a phase (PTX 9.7.13.15.5); bytes may come before they are announced."""
    session = debugged(MBARRIERS, 2, 1, [])
    session.start()
    seen = []
    for _ in range(9):
        seen.append([each[1:] for each in map(astuple, inspection.mbarriers(session)) if each[0] == (0, 0, 0)])
        session.step(Step.INSTRUCTION)
    at = 16
    assert seen == [
        [], [], [(at, 0, 0, 3, 0)], [(at, 0, 1, 3, 48)], [(at, 0, 2, 3, 48)], [(at, 0, 2, 3, 32)], [(at, 0, 2, 3, -8)],
        [(at, 0, 2, 3, 0)], [(at, 1, 0, 3, 0)],
    ]  # fmt: skip
    (said,) = Console(session).execute("info cuda barriers")
    assert said.text == "no thread waits at a barrier, and there is no mbarrier"
    session.reverse_step(Step.INSTRUCTION)
    assert [line.text.split() for line in Console(session).execute("info cuda barriers")] == [
        ["BlockIdx", "Mbarrier", "Phase", "Arrived", "Expected", "Bytes"], ["*", "(0,0,0)", "0x10", "1", "0", "3", "0"],
    ]  # fmt: skip


def test_barriers_of_clusters_are_listed_and_stepped_past(debugged):
    """A cluster has two CTAs of four threads: all eight must arrive (PTX 9.7.13.3)."""
    session = debugged(CLUSTERS, 4, 4, [])
    session.start()
    session.issue(Choice(1, 0), 2)
    assert inspection.barriers(session) == [BarrierView((0, 0, 0), None, 4, 8)]
    session.issue(Choice(1, 0))
    session.issue(Choice(2, 0), 3)
    assert inspection.barriers(session) == [BarrierView((0, 0, 0), None, 4, 8), BarrierView((2, 0, 0), None, 4, 8)]
    assert [line.text.split() for line in Console(session).execute("info cuda barriers")][2] == [
        "*",
        "(2,0,0)",
        "cluster",
        "4",
        "8",
    ]
    session.focus_on(Focus(1))
    assert session.step(Step.BARRIER).reason is Reason.STEP  # behind the barrier at which it waits
    assert line(session) == "9"
    session.step(Step.BARRIER)
    assert (session.execution.focus.cta, line(session)) == (1, "12")
    session.reverse_step(Step.BARRIER)
    assert line(session) == "11"


LAUNCHING = """.version 6.4
    .target sm_75
    .address_size 64
    .extern .func (.param .b64 buffer) cudaGetParameterBuffer(.param .b64 alignment, .param .b64 size);
    .extern .func (.param .b32 status) cudaLaunchDevice(
        .param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12],
        .param .b32 shared, .param .b64 stream);
    .visible .entry child(.param .u64 out);
    .visible .entry parent(.param .u64 out) {
        .reg .b64 %out, %kernel, %buffer; .reg .b32 %status;
        .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12];
        ld.param.u64 %out, [out];
        mov.u64 %kernel, child;
        call (%buffer), cudaGetParameterBuffer, (8, 8);
        st.u64 [%buffer], %out;
        st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
        st.param.b32 [block], 1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
        call (%status), cudaLaunchDevice, (%kernel, %buffer, grid, block, 0, 0);
        ret;
    }
    .visible .entry child(.param .u64 out) {
        .reg .b64 %out;
        ld.param.u64 %out, [out];
        st.global.u32 [%out], 7;
        ret;
    }
    """


@pytest.fixture
def launching():
    """Makes a console over `parent`, with the address that its child stores to."""
    made = []

    def make(out):
        kernel = ptxvm.load(LAUNCHING).kernel("parent")
        made.append(Session(kernel.module.image, kernel.function, LaunchOptions(1, 1), [out], owner=kernel.module))
        return Console(made[-1])

    yield make
    for each in made:
        each.close()


def says(console, *commands):
    """What is said to the last of some commands."""
    return [[line.text for line in console.execute(command)] for command in commands][-1]


def test_a_grid_that_a_kernel_launched_stops_as_the_kernel_does(launching):
    out = np.zeros(1, np.uint32)
    console = launching(out)
    said = says(console, "break child", "run")
    assert said[0] == "[Grid 2: child<<<(1,1,1),(1,1,1)>>>]"
    assert said[1] == "Breakpoint 1, child<<<(1,1,1),(1,1,1)>>>"
    assert says(console, "info cuda kernels")[-1].split() == ["*", "1", "-", "0", "2", "Active", "(1,1,1)", "(1,1,1)", "child"]
    assert out[0] == 0
    says(console, "stepi", "stepi")
    assert out[0] == 7
    assert says(console, "print %out") == [f"%out = {out.ctypes.data:#018x}"]
    says(console, "reverse-stepi")
    assert out[0] == 0
    assert says(console, "continue") == ["[parent<<<(1,1,1),(1,1,1)>>> has ended after 15 instructions]"]  # 12 and 3
    assert out[0] == 7


def test_going_back_leads_from_a_launched_grid_into_the_kernel_that_launched_it(launching):
    out = np.zeros(1, np.uint32)
    console = launching(out)
    says(console, "break child", "run")
    first = console.session.time
    assert console.session.reverse_step(Step.WARP).reason is Reason.STEP
    assert (console.session.launch[0], console.session.time) == (0, first - 1)
    assert console.session.step(Step.WARP).reason is Reason.BREAKPOINT
    assert (console.session.launch[0], console.session.time) == (1, first)
    console.session.finished()
    assert out[0] == 7
    console.session.go_to(0)
    assert (console.session.launch[0], out[0]) == (0, 0)
    console.session.finished()
    assert out[0] == 7


def test_a_store_of_a_launched_grid_is_watched(launching):
    out = np.zeros(1, np.uint32)
    console = launching(out)
    says(console, "start", f"watch .global.u32[{out.ctypes.data}]")
    assert says(console, "continue")[1].startswith("Watchpoint 1")
    assert (console.session.launch[1].name, out[0]) == ("child", 7)


DECLARED, CALLED = "    .visible .entry child(.param .u64 out);\n", "grid, block, 0, 0);\n"
WAITING = LAUNCHING.replace(
    DECLARED, f"    .extern .func (.param .b32 status) cudaDeviceSynchronize();\n{DECLARED}", 1
).replace(CALLED, f"{CALLED}call (%status), cudaDeviceSynchronize, ();\n", 1)


@pytest.fixture
def waiting():
    """A console over a kernel whose thread waits for the grid that it has launched, which stores 7; and where it stores."""
    out = np.zeros(1, np.uint32)
    kernel = ptxvm.load(WAITING).kernel("parent")
    session = Session(kernel.module.image, kernel.function, LaunchOptions(1, 1), [out], owner=kernel.module)
    yield Console(session), out
    session.close()


def test_a_grid_for_which_a_thread_waits_stops_as_the_kernel_does(waiting):
    console, out = waiting
    said = says(console, "break child", "run")
    assert said[:2] == ["[Grid 2: child<<<(1,1,1),(1,1,1)>>>]", "Breakpoint 1, child<<<(1,1,1),(1,1,1)>>>"]
    assert [line.split()[:2] + line.split()[-1:] for line in says(console, "info cuda kernels")[1:]] == [
        ["0", "-", "parent"],
        ["*", "1", "child"],
    ]
    assert out[0] == 0
    says(console, "stepi", "stepi")
    assert out[0] == 7
    says(console, "reverse-stepi")
    assert out[0] == 0
    assert says(console, "continue") == ["[parent<<<(1,1,1),(1,1,1)>>> has ended after 16 instructions]"]  # 13 and 3
    assert out[0] == 7


def test_a_step_over_the_call_that_waits_comes_to_the_next_instruction_of_the_thread(waiting):
    console, out = waiting
    says(console, "break *12", "start", "continue")
    assert "cudaDeviceSynchronize" not in next(console.where()).text
    says(console, "reverse-stepi")
    call = console.session.time
    assert "cudaDeviceSynchronize" in next(console.where()).text
    assert out[0] == 0
    assert "ret;" in says(console, "stepi")[-1]
    assert (console.session.launch[0], console.session.time, out[0]) == (0, call + 4, 7)
    assert "cudaDeviceSynchronize" in says(console, "reverse-stepi")[0]
    assert (console.session.launch[0], console.session.time, out[0]) == (0, call, 0)


def test_a_step_of_the_warp_at_the_call_that_waits_leads_into_the_grid(waiting):
    console, _ = waiting
    says(console, "break *11", "start", "continue")
    assert "cudaDeviceSynchronize" in next(console.where()).text
    said = says(console, "stepwarp")
    assert said[0] == "[Grid 2: child<<<(1,1,1),(1,1,1)>>>]"
    assert "ld.param.u64 %out, [out];" in said[-1]
    assert "cudaDeviceSynchronize" in says(console, "reverse-stepwarp")[-1]
    assert console.session.launch[0] == 0


def test_the_schedule_of_a_run_with_grids_that_are_waited_for_is_replayed(waiting):
    console, out = waiting
    says(console, "break child", "run", "issue warp 0 2")
    schedule = console.session.schedule
    out[0] = 0
    ptxvm.load(WAITING).kernel("parent").replay(schedule, [out])
    assert out[0] == 7


TREE = (
    LAUNCHING[: LAUNCHING.index("    .visible .entry child(")]
    + """
    .visible .global .align 8 .b64 log[32];
    .visible .global .u32 next;
    .visible .entry node(.param .u64 depth, .param .u64 name) {
        .reg .b64 %d, %name, %kernel, %buffer, %below, %at; .reg .b32 %status, %n, %c; .reg .pred %leaf, %twice;
        .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12];
        ld.param.u64 %d, [depth]; ld.param.u64 %name, [name];
        atom.global.add.u32 %n, [next], 1;
        mov.u64 %at, log; mad.wide.u32 %at, %n, 8, %at;
        st.global.u64 [%at], %name;
        setp.eq.u64 %leaf, %d, 0;
        @%leaf ret;
        mov.u32 %c, 1;
    again:
        mov.u64 %kernel, node;
        call (%buffer), cudaGetParameterBuffer, (8, 16);
        sub.u64 %below, %d, 1; st.u64 [%buffer], %below;
        mul.lo.u64 %below, %name, 10; cvt.u64.u32 %at, %c; add.u64 %below, %below, %at; st.u64 [%buffer+8], %below;
        st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
        st.param.b32 [block], 1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
        call (%status), cudaLaunchDevice, (%kernel, %buffer, grid, block, 0, 0);
        add.u32 %c, %c, 1;
        setp.le.u32 %twice, %c, 2;
        @%twice bra again;
        ret;
    }
"""
)


def test_grids_that_launch_grids_run_in_the_order_of_a_usual_run():
    """Each node launches two: a grid ends after its children, so that they run depth first (CUDA C++ guide, CDP)."""
    kernel = ptxvm.load(TREE).kernel("node")
    session = Session(kernel.module.image, kernel.function, LaunchOptions(1, 1), [2, 1], owner=kernel.module)
    session.break_at("node")
    session.start()
    numbers = []
    while session.resume().reason is not Reason.ENDED:
        numbers.append(session.launch[0])
    assert numbers == [0, 1, 2, 3, 4, 5, 6]
    expected = [1, 11, 111, 112, 12, 121, 122]
    assert kernel.module.symbol("log")[:7].tolist() == expected
    counted = session.result.instructions
    session.go_to(session.time // 2)
    session.finished()
    assert kernel.module.symbol("log")[:7].tolist() == expected
    session.close()
    usual = ptxvm.load(TREE).kernel("node")
    assert usual.launch(1, 1, [2, 1], engine="interp").instructions == counted
    assert usual.module.symbol("log")[:7].tolist() == expected


GLOBALS = "    .visible .global .align 8"
WAITING_TREE = (
    TREE.replace(GLOBALS, f"    .extern .func (.param .b32 s) cudaDeviceSynchronize();\n{GLOBALS}")
    .replace("add.u32 %c, %c, 1;", "@!%leaf call (%status), cudaDeviceSynchronize, (); add.u32 %c, %c, 1;")
    .replace(
        "        ret;\n    }\n",
        """        atom.global.add.u32 %n, [next], 1; mov.u64 %at, log; mad.wide.u32 %at, %n, 8, %at;
        neg.s64 %name, %name; st.global.u64 [%at], %name;
        ret;
    }
""",
    )
)


def test_grids_that_wait_for_grids_run_as_in_a_usual_run_and_backwards():
    """Each node waits for each of its two: it writes its name before them, and the negative name after them."""
    kernel = ptxvm.load(WAITING_TREE).kernel("node")
    session = Session(kernel.module.image, kernel.function, LaunchOptions(1, 1), [2, 1], owner=kernel.module)
    session.start()
    session.resume()
    expected = [1, 11, 111, 112, -11, 12, 121, 122, -12, -1]
    assert kernel.module.symbol("log")[:10].view(np.int64).tolist() == expected
    end = session.time
    for time in range(end, -1, -17):
        session.go_to(time)
        session.finished()
        assert (session.time, kernel.module.symbol("log")[:10].view(np.int64).tolist()) == (end, expected)
    session.close()


def test_a_fault_of_a_grid_that_was_launched_is_a_fault(launching):
    console = launching(0)
    said = [line.text for line in console.execute("run")]
    assert console.session.stop.reason is Reason.FAULT
    assert not console.failed
    assert any("in kernel child" in line for line in said)


ASKING = """.version 6.4
    .target sm_75
    .address_size 64
    .visible .entry asks() {
        .reg .b32 %t; .reg .pred %third;
        mov.u32 %t, %tid.x;
        setp.eq.u32 %third, %t, 3;
        @%third brkpt;
        add.u32 %t, %t, 1;
        brkpt;
        ret;
    }
    """


def test_code_that_asks_for_a_stop_gets_it_forwards_and_backwards():
    """PTX 9.7.19.1: `brkpt` suspends execution; under a guard, for the lanes where that holds (PTX 9.3)."""
    kernel = ptxvm.load(ASKING).kernel()
    session = Session(kernel.module.image, kernel.function, LaunchOptions(1, 32), owner=kernel.module)
    console = Console(session)
    says(console, "start")
    assert says(console, "continue")[0] == "Breakpoint, for which line 8 asks: @%third brkpt;"
    assert session.execution.focus == Focus(0, 0, 3)
    assert says(console, "continue")[0] == "Breakpoint, for which line 10 asks: brkpt;"
    assert session.execution.focus == Focus(0, 0, 3)
    assert says(console, "reverse-continue")[0] == "Breakpoint, for which line 8 asks: @%third brkpt;"
    says(console, "continue")
    assert says(console, "continue") == ["[asks<<<(1,1,1),(32,1,1)>>> has ended after 6 instructions]"]
    session.close()

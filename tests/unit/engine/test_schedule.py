"""The schedule: divergence, forward progress, barriers, calls, deadlocks, budgets.

Expectations follow from PTX 3.1 (independent thread scheduling), 9.7.12 (control flow) and 9.7.13 (barriers).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxvm

HEAD = ".version 6.4\n.target sm_75\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>;"
MINE = """
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;  mov.u32 %r2, %ctaid.x;  mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
"""


def kernel(body: str, before: str = "") -> ptxvm.Kernel:
    """A kernel of one pointer; %r1 is tid.x, %r4 the thread in the grid, %rd3 where its word is."""
    return ptxvm.load(f"{HEAD}{before}\n.visible .entry k(.param .u64 p) {{ {REGISTERS}{MINE}{body}\nret; }}").kernel("k")


def test_a_spin_lock_between_two_lanes_of_a_warp_ends() -> None:
    body = """
    LOOP: atom.global.cas.b32 %r5, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra LOOP;
    ld.volatile.global.u32 %r6, [%rd1+4];
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%rd1+4], %r6;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd1], 0;
    """
    memory = np.zeros(2, np.uint32)
    kernel(body).launch(grid=2, block=64, args=[memory])
    assert memory.tolist() == [0, 128]


def test_a_lane_may_wait_for_a_later_one() -> None:
    body = """
    setp.eq.u32 %p1, %r1, 31;
    @%p1 bra SET;
    WAIT: ld.volatile.global.u32 %r5, [%rd1+256];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra WAIT;
    bra DONE;
    SET: st.volatile.global.u32 [%rd1+256], 7;
    mov.u32 %r5, 7;
    DONE: st.global.u32 [%rd3], %r5;
    """
    memory = np.zeros(65, np.uint32)
    kernel(body).launch(block=32, args=[memory])
    assert memory[:32].tolist() == [7] * 32


def test_a_cta_may_wait_for_a_later_one() -> None:
    body = """
    setp.eq.u32 %p1, %r2, 99;
    @%p1 st.volatile.global.u32 [%rd1], 1;
    WAIT: ld.volatile.global.u32 %r5, [%rd1];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra WAIT;
    """
    memory = np.zeros(128 * 100, np.uint32)
    assert kernel(body).launch(grid=100, block=128, args=[memory]).thread_instructions > 100 * 128


@pytest.mark.parametrize("block", [1, 7, 32, 33, 100, 1000, 1024])
def test_barriers_order_the_threads_of_a_cta(block: int) -> None:
    body = """
    mul.lo.u32 %r5, %r1, 4;  mov.u32 %r6, buffer;  add.u32 %r7, %r6, %r5;
    st.shared.u32 [%r7], %r4;
    bar.sync 0;
    sub.u32 %r8, %r3, 1;  sub.u32 %r8, %r8, %r1;  mul.lo.u32 %r8, %r8, 4;  add.u32 %r8, %r8, %r6;
    ld.shared.u32 %r9, [%r8];
    st.global.u32 [%rd3], %r9;
    """
    memory = np.zeros(3 * block, np.uint32)
    kernel(body, ".shared .align 4 .b8 buffer[4096];").launch(grid=3, block=block, args=[memory])
    expected = np.arange(3 * block).reshape(3, block)[:, ::-1].ravel()
    assert np.array_equal(memory, expected)


def test_threads_that_ended_do_not_hold_a_barrier() -> None:
    body = """
    setp.ge.u32 %p1, %r1, 40;
    @%p1 exit;
    bar.sync 0;
    st.global.u32 [%rd3], 1;
    """
    memory = np.zeros(64, np.uint32)
    kernel(body).launch(block=64, args=[memory])
    assert memory.sum() == 40


def test_named_barriers_with_counts_and_arrivals() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 32;
    @!%p1 bra CONSUME;
    st.shared.u32 [slot], 42;
    bar.arrive 3, 64;
    bra DONE;
    CONSUME: bar.sync 3, 64;
    ld.shared.u32 %r5, [slot];
    st.global.u32 [%rd3], %r5;
    DONE:
    """
    memory = np.zeros(64, np.uint32)
    kernel(body, ".shared .u32 slot;").launch(block=64, args=[memory])
    assert memory.tolist() == [0] * 32 + [42] * 32


def test_a_deadlock_is_found_and_says_who_waits() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra FIRST;
    bar.sync 2, 64;  bar.sync 1, 64;
    bra DONE;
    FIRST: bar.sync 1, 64;  bar.sync 2, 64;
    DONE:
    """
    with pytest.raises(ptxvm.Fault) as caught:
        kernel(body).launch(block=64, args=[np.zeros(64, np.uint32)])
    assert caught.value.kind == "deadlock"
    assert "32 threads wait" in caught.value.message


def test_a_step_budget_ends_an_endless_loop() -> None:
    with pytest.raises(ptxvm.Fault) as caught:
        kernel("LOOP: bra LOOP;").launch(block=64, args=[np.zeros(64, np.uint32)], steps=1000)
    assert caught.value.kind == "step-budget"


def test_lanes_of_a_warp_converge_at_a_shuffle() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 5;
    mov.u32 %r5, 100;
    @%p1 bra FEW;
    add.u32 %r5, %r5, %r1;
    bra JOIN;
    FEW: mul.lo.u32 %r5, %r1, 2;
    JOIN: shfl.sync.bfly.b32 %r6, %r5, 1, 0x1f, 0xffffffff;
    st.global.u32 [%rd3], %r6;
    """
    memory = np.zeros(32, np.uint32)
    kernel(body).launch(block=32, args=[memory])
    own = [2 * t if t < 5 else 100 + t for t in range(32)]
    assert memory.tolist() == [own[t ^ 1] for t in range(32)]


FIBONACCI = """
.func (.param .b32 out) fib(.param .b32 n) {
    .reg .pred %p<2>; .reg .b32 %r<9>;
    ld.param.u32 %r1, [n];
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra BASE;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 v; st.param.b32 [a], %r2; call.uni (v), fib, (a); ld.param.b32 %r3, [v]; }
    sub.u32 %r4, %r1, 2;
    { .param .b32 a; .param .b32 v; st.param.b32 [a], %r4; call.uni (v), fib, (a); ld.param.b32 %r5, [v]; }
    add.u32 %r1, %r3, %r5;
    BASE: st.param.b32 [out], %r1;
    ret;
}
"""
CALL = """
    { .param .b32 a; .param .b32 v; st.param.b32 [a], %r1; call.uni (v), fib, (a); ld.param.b32 %r5, [v]; }
    st.global.u32 [%rd3], %r5;
"""


def test_recursion_of_lanes_to_different_depths() -> None:
    memory = np.zeros(12, np.uint32)
    kernel(CALL, FIBONACCI).launch(block=12, args=[memory])
    assert memory.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_endless_recursion_overflows_the_stack() -> None:
    endless = FIBONACCI.replace("@%p1 bra BASE;", "")
    with pytest.raises(ptxvm.Fault) as caught:
        kernel(CALL, endless).launch(block=32, args=[np.zeros(32, np.uint32)])
    assert caught.value.kind == "stack-overflow"


def test_calls_with_registers_for_parameters() -> None:
    sum3 = """.func (.reg .u32 %total) sum3(.reg .u32 %a, .reg .u32 %b, .reg .u32 %c)
        { add.u32 %total, %a, %b; add.u32 %total, %total, %c; ret; }"""
    memory = np.zeros(40, np.uint32)
    kernel("call (%r5), sum3, (%r1, %r3, 7); st.global.u32 [%rd3], %r5;", sum3).launch(block=40, args=[memory])
    assert memory.tolist() == [t + 47 for t in range(40)]


def test_a_fault_names_thread_and_line(alone: Callable[..., np.ndarray]) -> None:
    body = "setp.eq.u32 %p1, %r4, 70;\n@%p1 st.global.u32 [%rd3+400], 1;"
    with pytest.raises(ptxvm.Fault) as caught:
        kernel(body).launch(grid=3, block=32, args=[alone(96, np.uint32)])
    fault = caught.value
    assert (fault.kind, fault.place.cta, fault.place.thread) == ("out-of-bounds", (2, 0, 0), (6, 0, 0))
    assert fault.place.text.startswith("@%p1 st.global.u32")


def test_a_trap_is_a_fault() -> None:
    with pytest.raises(ptxvm.Fault) as caught:
        kernel("setp.eq.u32 %p1, %r1, 3;\n@%p1 trap;").launch(block=8, args=[np.zeros(8, np.uint32)])
    assert (caught.value.kind, caught.value.place.thread) == ("trap", (3, 0, 0))


def test_three_dimensional_grids() -> None:
    body = """
    mov.u32 %r5, %tid.y; mov.u32 %r6, %tid.z; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %ctaid.z;
    mad.lo.u32 %r9, %r8, 3, %r7;  mad.lo.u32 %r9, %r9, 2, %r2;     // CTA in a grid of (2, 3, 2)
    mad.lo.u32 %r9, %r9, 4, %r6;  mad.lo.u32 %r9, %r9, 3, %r5;  mad.lo.u32 %r9, %r9, 5, %r1;   // thread in (5, 3, 4)
    mul.wide.u32 %rd4, %r9, 4;  add.s64 %rd5, %rd1, %rd4;
    atom.global.add.u32 %r10, [%rd5], 1;
    """
    memory = np.zeros(2 * 3 * 2 * 5 * 3 * 4, np.uint32)
    kernel(body).launch(grid=(2, 3, 2), block=(5, 3, 4), args=[memory])
    assert (memory == 1).all()


def test_a_lane_that_spins_leaves_the_steps_to_the_lanes_that_work() -> None:
    """It polls once where all others wait or spin, and at intervals: a thousand turns of a loop are not a thousand polls."""
    body = """
    .shared .b32 flag;
    mov.b32 %r5, 0;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra WORK;
    POLL: add.u32 %r5, %r5, 1;
    ld.volatile.shared.b32 %r6, [flag];
    setp.eq.u32 %p2, %r6, 0;
    @%p2 bra POLL;
    bra DONE;
    WORK: add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 1000;
    @%p2 bra WORK;
    st.volatile.shared.b32 [flag], 1;
    DONE: st.global.u32 [%rd3], %r5;
    """
    memory = np.zeros(64, np.uint32)
    kernel(body).launch(block=64, args=[memory], engine="interp")
    assert 1 < memory[0] < 100
    assert (memory[32:] == 1000).all()


COUNTED = """
    .entry k(.param .u64 o) {
        .reg .b32 %r<5>; .reg .pred %few, %more;
        mov.u32 %r1, %tid.x; setp.lt.u32 %few, %r1, 64; setp.lt.u32 %more, %r1, 96; mov.u32 %r2, 224;
        @%few bra A; @%more bra B; bar.sync 2; ret;
        A: bar.sync 1, %r2; ret;
        B: bar.arrive 1, 224; bar.sync 0; ret;
    }
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_deadlock_at_a_barrier_with_a_count_says_how_many_threads_came(engine: str) -> None:
    """PTX 9.7.13.1: `bar.arrive` counts, and no thread waits there for it; a barrier of all threads has no count."""
    with pytest.raises(
        ptxvm.Fault, match=r"64 threads wait at line \d+ \(bar.sync 1, %r2\), where 96 of 224 have come to barrier 1"
    ) as at:
        ptxvm.load(HEAD + COUNTED).kernel().launch(1, 160, [np.zeros(1, np.uint32)], engine=engine)
    assert str(at.value).count("have come") == 1

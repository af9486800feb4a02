"""Calls that cannot stand where they are: of a function by itself, and through pointers; and stacks that grow."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.engine.jit.cfg import control_flow_graph

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<20>, %t; .reg .b64 %d<10>, %out; .reg .pred %p<4>;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %d0, %t, 4;
    add.u64 %out, %out, %d0;
BODY
    st.global.u32 [%out], %r1;
    ret;
}
"""


def both(functions: str, body: str, block: int = 64) -> np.ndarray:
    """What every engine leaves, which must be the same."""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel("k")
    return same(kernel, [np.zeros(block, np.uint32)], block=block)[0]


FIBONACCI = """
.func (.reg .b32 result) fibonacci(.reg .b32 n)
{
    .reg .b32 %a<5>; .reg .pred %q;
    setp.lt.u32 %q, n, 2;
    mov.u32 result, n;
    @%q ret;
    sub.u32 %a0, n, 1;
    call (%a1), fibonacci, (%a0);
    sub.u32 %a2, n, 2;
    call (%a3), fibonacci, (%a2);
    add.u32 result, %a1, %a3;
    ret;
}
"""


def test_a_function_that_calls_itself_twice() -> None:
    out = both(FIBONACCI, "and.b32 %r2, %t, 15; call (%r1), fibonacci, (%r2);")
    numbers = [0, 1]
    while len(numbers) < 16:
        numbers.append(numbers[-1] + numbers[-2])
    assert out.tolist() == [numbers[n % 16] for n in range(64)]


def test_functions_that_call_each_other_under_a_guard() -> None:
    functions = """
.func (.reg .b32 result) odd(.reg .b32 n);
.func (.reg .b32 result) even(.reg .b32 n)
{
    .reg .b32 %a; .reg .pred %q;
    mov.u32 result, 1;
    setp.ne.u32 %q, n, 0;
    sub.u32 %a, n, 1;
    @%q call (result), odd, (%a);
    ret;
}
.func (.reg .b32 result) odd(.reg .b32 n)
{
    .reg .b32 %a; .reg .pred %q;
    mov.u32 result, 0;
    setp.ne.u32 %q, n, 0;
    sub.u32 %a, n, 1;
    @%q call (result), even, (%a);
    ret;
}
"""
    out = both(functions, "call (%r1), even, (%t);")
    assert (out == 1 - np.arange(64) % 2).all()


def test_arguments_change_places_in_a_call_of_the_function_itself() -> None:
    functions = """
.func (.reg .b32 result) gcd(.reg .b32 a, .reg .b32 b)
{
    .reg .b32 %r; .reg .pred %q;
    setp.eq.u32 %q, b, 0;
    mov.u32 result, a;
    @%q ret;
    rem.u32 %r, a, b;
    call (result), gcd, (b, %r);
    ret;
}
"""
    out = both(functions, "add.u32 %r2, %t, 30; call (%r1), gcd, (%r2, 360);")
    assert (out == np.gcd(np.arange(64) + 30, 360)).all()


def test_each_lane_calls_the_function_that_its_pointer_names() -> None:
    functions = """
.func (.param .b32 r) one(.param .b32 x) { .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, 1; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) two(.param .b32 x) { .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, %a; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) sum(.param .b32 x)
{
    .reg .b32 %a<3>; .reg .pred %q;
    ld.param.u32 %a0, [x];
    bar.warp.sync 0xffffffff;
    shfl.sync.bfly.b32 %a1, %a0, 1, 31, 0xffffffff;
    st.param.b32 [r], %a1;
    ret;
}
.global .u64 table[2] = { one, two };
"""
    body = """
    mov.u64 %d1, table;
    and.b32 %r2, %t, 1;
    mul.wide.u32 %d2, %r2, 8;
    add.u64 %d1, %d1, %d2;
    ld.global.u64 %d3, [%d1];
    mov.u64 %d5, sum;
    { .param .b32 x; .param .b32 y;
      st.param.b32 [x], %t;
      shape: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (y), %d3, (x), shape;
      ld.param.b32 %r1, [y];
      st.param.b32 [x], %r1;
      call (y), %d5, (x), shape;
      ld.param.b32 %r1, [y];
    }
"""
    threads = np.arange(64)
    called = np.where(threads % 2, threads * 2, threads + 1)
    assert (both(functions, body) == called[threads ^ 1]).all()


def test_a_pointer_to_no_function() -> None:
    functions = ".func (.reg .b32 r) one(.reg .b32 x) { add.u32 r, x, 1; ret; }\n"
    body = """
    mov.u64 %d3, one;
    setp.eq.u32 %p0, %t, 9;
    @%p0 add.u64 %d3, %d3, 4;
    shape: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    call (%r1), %d3, (%t), shape;
"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel()
    assert same_fault(kernel, [np.zeros(64, np.uint32)], block=64).place.thread == (9, 0, 0)


def test_a_stack_ends_somewhere() -> None:
    functions = """
.func (.reg .b32 r) deep(.reg .b32 n)
{
    .local .b8 room[100];
    .reg .b32 %a; .reg .b64 %p;
    mov.u64 %p, room;
    st.local.u32 [%p], n;
    add.u32 %a, n, 1;
    call (r), deep, (%a);
    ld.local.u32 %a, [%p];
    add.u32 r, r, %a;
    ret;
}
"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", "call (%r1), deep, (%t);")).kernel()
    assert same_fault(kernel, [np.zeros(64, np.uint32)], block=32).kind == "stack-overflow"


def test_memory_that_a_function_takes_is_its_own_in_every_call() -> None:
    functions = """
.func (.reg .b32 r) walk(.reg .b32 n)
{
    .reg .b32 %a<3>; .reg .b64 %p<3>; .reg .pred %q;
    setp.eq.u32 %q, n, 0;
    mov.u32 r, 0;
    @%q ret;
    mul.wide.u32 %p0, n, 8;
    alloca.u64 %p1, %p0;
    st.local.u32 [%p1], n;
    sub.u32 %a0, n, 1;
    call (%a1), walk, (%a0);
    ld.local.u32 %a2, [%p1];
    add.u32 r, %a1, %a2;
    ret;
}
"""
    out = both(functions, "and.b32 %r2, %t, 7; call (%r1), walk, (%r2);")
    assert out.tolist() == [n % 8 * (n % 8 + 1) // 2 for n in range(64)]


def test_each_lane_jumps_to_the_label_that_its_index_names() -> None:
    body = """
    list: .branchtargets A, B, C, B;
    and.b32 %r2, %t, 3;
    brx.idx %r2, list;
A:
    mov.u32 %r1, 10;
    bra END;
B:
    mov.u32 %r1, 20;
C:
    add.u32 %r1, %r1, 30;
END:
"""
    out = both("", "mov.u32 %r1, 0;" + body)
    assert out.tolist() == [[10, 50, 30, 50][n % 4] for n in range(64)]


def test_a_function_returns_where_its_code_ends() -> None:
    functions = """
.func (.reg .b32 r) inner(.reg .b32 n) { add.u32 r, n, 1; }
.func (.reg .b32 r) outer(.reg .b32 n) { call (r), inner, (n); }
"""
    assert (both(functions, "call (%r1), outer, (%t);") == np.arange(64) + 1).all()


def test_a_loop_notices_that_a_block_is_freed() -> None:
    """The access has met the block in the turns before; it is freed in the fourth."""
    functions = """
        .extern .func (.param .b64 block) malloc(.param .b64 size);
        .extern .func free(.param .b64 block);"""
    body = """
        call (%d1), malloc, (64);
        mov.u32 %r1, 0;
    LOOP:
        st.global.u32 [%d1], %r1;
        setp.eq.u32 %p0, %r1, 3;
        @!%p0 bra NEXT;
        call free, (%d1);
    NEXT:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 10;
        @%p1 bra LOOP;"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel()
    assert same_fault(kernel, [np.zeros(1, np.uint32)]).kind == "use-after-free"


# ── pointers to what a call may not enter ───────────────────────────────────────────────

POINTED = """
.func (.reg .b32 r) one(.reg .b32 x) { add.u32 r, x, 1; ret; }
.func (.reg .b32 r) two(.reg .b32 x) { add.u32 r, x, 2; ret; }
.func (.param .b32 r) third(.param .align 4 .b8 x[12]) { .reg .b32 %a; ld.param.b32 %a, [x+8]; st.param.b32 [r], %a; ret; }
.func nothing() { }
.visible .entry other(.param .u32 x) { ret; }
"""
SHAPE = "named: .callprototype (.reg .b32 _) _ (.reg .b32 _);"


@pytest.mark.parametrize(
    ("named", "target", "said"),
    [
        ("named: .calltargets one;", "two", "'two', which is not in its list 'named'"),
        ("named: .calltargets one;", "other", "the kernel 'other'"),
        (SHAPE, "other", "the kernel 'other'"),
        (SHAPE, "third", "'third', whose parameters are not those of its prototype 'named'"),
        (SHAPE, "nothing", "'nothing', whose parameters are not those"),
    ],
)
def test_a_pointer_to_what_the_call_may_not_enter(named: str, target: str, said: str) -> None:
    # PTX 11.3: a list has all functions that the call may go to, a prototype their parameters; 11.1: a kernel is launched
    body = f"mov.u64 %d3, one; setp.eq.u32 %p0, %t, 9; @%p0 mov.u64 %d3, {target}; {named} call (%r1), %d3, (%t), named;"
    kernel = ptxvm.load(HEAD + POINTED + KERNEL.replace("BODY", body)).kernel("k")
    fault = same_fault(kernel, [np.zeros(64, np.uint32)], block=64, match=said)
    assert (fault.kind, fault.place.thread) == ("invalid-call", (9, 0, 0))


def test_functions_of_other_prototypes_do_not_matter() -> None:
    body = """
    .param .b32 answer; .param .align 4 .b8 given[12];
    mov.u64 %d3, one; mov.u64 %d4, third;
    named: .callprototype (.param .b32 _) _ (.param .align 4 .b8 _[12]);
    st.param.b32 [given+8], %t;
    call (answer), %d4, (given), named;
    ld.param.b32 %r1, [answer];
    """
    assert both(POINTED, body).tolist() == list(range(64))


def test_a_pointer_to_a_function_without_instructions() -> None:
    body = "mov.u64 %d3, nothing; named: .callprototype _ (); call %d3, (), named; add.u32 %r1, %t, 3;"
    assert both(POINTED, body).tolist() == list(range(3, 67))


# ── functions that are called from very many places ─────────────────────────────────────


def tree_of_calls(depth: int, body: str = "", room: int = 0) -> str:
    """Functions each of which calls the next two; the last ones give what they get."""
    functions = ""
    for n in reversed(range(depth)):
        deeper = f"call (%a), f{n + 1}, (x); call (%b), f{n + 2}, (x); add.u32 r, %a, %b;" if n < depth - 2 else "mov.u32 r, x;"
        local = f".local .align 4 .b8 own[{room}]; st.local.u32 [own+{room - 4}], x;" if room else ""
        functions += f".func (.reg .b32 r) f{n}(.reg .b32 x) {{ .reg .b32 %a, %b; {local} {body} {deeper} ret; }}\n"
    return functions


@pytest.mark.parametrize(("depth", "room"), [(12, 0), (14, 0), (12, 20_000)])
def test_calls_that_make_more_frames_than_can_stand_in_the_code(depth: int, room: int) -> None:
    # the number of leaves is a Fibonacci number; the stack is as deep as the longest chain, however large its frames are
    leaves = [1, 1]
    while len(leaves) < depth:
        leaves.append(leaves[-1] + leaves[-2])
    out = both(tree_of_calls(depth, room=room), "call (%r1), f0, (%t);")
    assert out.tolist() == [n * leaves[-1] for n in range(64)]


BARRIERS = "and.b32 %a, x, 1; setp.ne.u32 %p, %a, 0; @%p bra ODD; bar.sync 0; bra MET; ODD: bar.sync 0; MET:"


def test_lanes_part_and_meet_at_barriers_in_functions_that_stand_in_the_code_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow_graph, "MOST_COPIED", 200)  # of more the code takes a minute to make
    monkeypatch.setattr(control_flow_graph, "COPIES_PER_CODE", 0)
    out = both(tree_of_calls(8, f".reg .pred %p; {BARRIERS}"), "call (%r1), f0, (%t);")
    assert out.tolist() == [n * 21 for n in range(64)]


@pytest.mark.parametrize("body", ["", BARRIERS], ids=["straight", "barriers"])
def test_copies_of_a_function_may_share_registers(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree has 67 calls, of which 34 are leaves, of 9 functions; the first copy of each has registers of its own."""
    monkeypatch.setattr(control_flow_graph, "OWN_REGISTERS", 0)
    functions = tree_of_calls(9, f".reg .pred %p; {body}")
    out = both(functions, "call (%r1), f0, (%t);")
    assert out.tolist() == [n * 34 for n in range(64)]
    module = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", "call (%r1), f0, (%t);"))
    graph = control_flow_graph.ControlFlowGraph(module.image, module.kernel().function)
    assert (len(graph.frames), graph.shared) == (1 + 67, {})
    assert len({frame.registers for frame in graph.frames}) <= 1 + 2 * 9


def test_a_large_function_stands_a_few_times_however_often_it_is_called() -> None:
    """In each of 30 places it took half a second to compile; how often it is copied depends on its instructions."""
    size, calls = 900, 30
    steps = "mul.lo.u32 %a, %a, 3; add.u32 %a, %a, x;" * (size // 2)
    large = f".func (.reg .b32 r) large(.reg .b32 x) {{ .reg .b32 %a; mov.u32 %a, x; {steps} mov.u32 r, %a; ret; }}\n"
    body = "mov.u32 %r1, %t;" + "call (%r1), large, (%r1);" * calls
    want = list(range(64))
    for _ in range(calls):
        powers = pow(3, size // 2, 1 << 33)
        want = [(n * powers + n * (powers - 1) // 2) % (1 << 32) for n in want]
    assert both(large, body).tolist() == want
    module = ptxvm.load(HEAD + large + KERNEL.replace("BODY", body))
    graph = control_flow_graph.ControlFlowGraph(module.image, module.kernel().function)
    assert graph.shared
    assert graph.copied <= max(control_flow_graph.MOST_COPIED, control_flow_graph.COPIES_PER_CODE * (size + calls + 20))


def test_a_uniform_recursion() -> None:
    out = both(FIBONACCI, "mov.u32 %r2, 7; call (%r1), fibonacci, (%r2);")
    assert out.tolist() == [13] * 64

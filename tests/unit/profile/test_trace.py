"""Traces of launches: what is recorded follows from the text of the kernels, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.isa.effects import Verb

HEAD = ".version 8.1\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<20>; .reg .b16 %h<4>;\n"
OUT = "ld.param.u64 %rd1, [out];\n"


def traced(body, trace, *, block=32, grid=1, args=None, before="", shared="", **options):
    """The trace of a kernel with a body, whose instructions stand one on a line."""
    text = f"{HEAD}{before}.visible .entry k(.param .u64 out) {{ {REGISTERS}{shared}\n{body}\nret;\n}}"
    kernel = ptxvm.load(text).kernel()
    kernel.launch(grid, block, args if args is not None else [np.zeros(64, np.uint32)], trace=trace, **options)
    return trace


def only(trace, opcode):
    """The one instruction with an opcode."""
    (step,) = [step for step in trace.steps if step.bound.node.opcode == opcode]
    return step


def values(data):
    """Operands and their bits in the only lane."""
    return {datum.text: next(iter(datum.bits.values())) for datum in data}


# ── one thread ──────────────────────────────────────────────────────────────────────────


def test_a_thread_is_recorded_with_what_it_read_and_wrote():
    trace = traced("mov.u32 %r1, %tid.x;\nmad.lo.u32 %r2, %r1, 3, %r1;", ptxvm.Trace(0, thread=7))
    move, product, end = trace.steps
    assert (move.lanes, move.off, move.text, move.function) == ((7,), frozenset(), "mov.u32 %r1, %tid.x;", "k")
    assert (values(move.reads), values(move.writes)) == ({"%tid.x": 7}, {"%r1": 7})
    assert ([each.text for each in product.reads], values(product.writes)) == (["%r1", "%r1"], {"%r2": 28})
    assert (product.line - move.line, end.reads, end.writes) == (1, [], [])
    assert repr(trace) == "<Trace: 3 of 3 instructions of warps>"


def test_a_thread_is_named_by_number_or_coordinates():
    body = "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %ctaid.y;"
    for cta, thread in ((4, 9), ((1, 1), (1, 2))):  # number 4 of 3 x 2 CTAs; number 9 of 4 x 4 threads
        first, second, _ = traced(body, ptxvm.Trace(cta, thread=thread), block=(4, 4), grid=(3, 2)).steps
        assert (values(first.writes), values(second.writes)) == ({"%r1": 2}, {"%r2": 1})
        assert first.warp == ((1, 1, 0), 0)


def test_types_are_those_of_the_instruction_and_of_registers_where_that_has_bits():
    trace = traced("mov.b32 %f1, 0f40200000;\nmov.b32 %r1, %f1;\nadd.s32 %r2, %r1, 0;", ptxvm.Trace(0, thread=0))
    first, second, third, _ = trace.steps
    assert [str(each.type) for step in (first, second, third) for each in (*step.reads, *step.writes)] == [
        ".f32", ".f32", ".b32", ".s32", ".s32",
    ]  # fmt: skip


def test_a_guard_that_does_not_hold_leaves_nothing_read_and_written():
    body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 add.u32 %r1, %r1, 1;\n@!%p1 sub.u32 %r1, %r1, 1;"
    trace = traced(body, ptxvm.Trace(0, thread=4))
    assert (values(only(trace, "add").writes), only(trace, "add").off) == ({"%r1": 5}, frozenset())
    off = only(trace, "sub")
    assert (off.off, off.on, off.reads, off.writes) == ({4}, [], [], [])


def test_branches_tell_where_lanes_go_on():
    body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra THERE;\nmov.u32 %r2, 1;\nTHERE:\nmov.u32 %r3, 1;"
    away = traced(body, ptxvm.Trace(0, thread=1))
    assert only(away, "bra").targets == {1: only(away, "bra").line + 3}
    assert [step.text for step in away.steps][3] == "mov.u32 %r3, 1;"
    on = traced(body, ptxvm.Trace(0, thread=3))
    assert only(on, "bra").targets == {3: only(on, "bra").line + 1}


def test_a_table_of_branches_tells_the_chosen_line():
    body = "T: .branchtargets A, B;\nmov.u32 %r1, %tid.x;\nbrx.idx %r1, T;\nA: mov.u32 %r2, 1;\nB: mov.u32 %r3, 1;"
    step = only(traced(body, ptxvm.Trace(0, warp=0), block=2), "brx")
    assert step.targets == {0: step.line + 1, 1: step.line + 2}


def test_the_carry_flag_is_a_value():
    step = only(traced("mov.u32 %r1, -1;\nadd.cc.u32 %r2, %r1, 1;", ptxvm.Trace(0, thread=0)), "add")
    assert values(step.writes) == {"%r2": 0, "CC.CF": 1}


def test_called_functions_are_recorded():
    function = ".func (.reg .u32 %y) twice(.reg .u32 %x)\n{\nadd.u32 %y, %x, %x;\nret;\n}\n"
    trace = traced("mov.u32 %r1, 21;\ncall (%r2), twice, (%r1);\nmov.u32 %r3, %r2;", ptxvm.Trace(0, thread=0), before=function)
    assert [step.function for step in trace.steps] == ["k", "k", "twice", "twice", "k", "k"]
    assert values(only(trace, "call").reads) == {"%r1": 21}
    assert values(trace.steps[4].writes) == {"%r3": 42}


# ── memory ──────────────────────────────────────────────────────────────────────────────


def test_addresses_count_from_the_argument_that_they_are_in():
    body = OUT + "add.u64 %rd2, %rd1, 12;\nmov.u32 %r1, 7;\nst.global.u32 [%rd2+4], %r1;"
    trace = traced(body, ptxvm.Trace(0, thread=0))
    parameter, total = only(trace, "ld"), only(trace, "add")
    assert [each.places for each in parameter.accesses] == [{0: "param+0"}]
    assert [each.places for each in (*total.reads, *total.writes)] == [{0: "out+0"}, {0: "out+12"}]
    (store,) = only(trace, "st").accesses
    assert (store.verb, store.places, store.values, store.size) == (Verb.WRITE, {0: "out+16"}, {0: (7,)}, 4)


def test_atomics_have_the_values_before_and_after():
    trace = traced(OUT + "atom.global.add.u32 %r1, [%rd1], 5;", ptxvm.Trace(0, thread=3))
    (update,) = only(trace, "atom").accesses  # the fourth thread that adds 5
    assert (update.verb, update.places, update.values) == (Verb.UPDATE, {3: "out+0"}, {3: (15, 20, 5)})
    assert values(only(trace, "atom").writes) == {"%r1": 15}


def test_vector_atomics_have_the_elements_before_those_after_and_the_operands():
    trace = traced(OUT + "red.global.add.v2.f32 [%rd1], {0f3f800000, 0f40000000};", ptxvm.Trace(0, thread=1))
    (update,) = only(trace, "red").accesses
    ones, twos, fours = 0x3F800000, 0x40000000, 0x40800000  # 1, 2 and 4; the second thread finds 1 and 2
    assert (update.places, update.size, update.values) == ({1: "out+0"}, 8, {1: (ones, twos, twos, fours, ones, twos)})


def test_vectors_have_a_value_for_each_element():
    array = np.arange(64, dtype=np.uint32)
    trace = traced(OUT + "ld.global.v4.u32 {%r1, %r2, _, %r4}, [%rd1+16];", ptxvm.Trace(0, thread=0), args=[array])
    load = trace.steps[1]
    assert values(load.writes) == {"%r1": 4, "%r2": 5, "%r4": 7}
    assert [(each.places, each.values) for each in load.accesses] == [({0: "out+16"}, {0: (4, 5, 6, 7)})]


def test_shared_memory_counts_from_the_memory_of_the_cta_also_by_generic_addresses():
    body = "mov.u32 %r1, 9;\nst.shared.u32 [tile+8], %r1;\ncvta.shared.u64 %rd2, tile;\nld.u32 %r2, [%rd2+8];"
    trace = traced(body, ptxvm.Trace(1, thread=0), grid=2, shared=".shared .b8 tile[64];")
    assert [each.places for step in (only(trace, "st"), only(trace, "ld")) for each in step.accesses] == [
        {0: "shared+8"}, {0: "shared+8"},
    ]  # fmt: skip
    assert only(trace, "cvta").writes[0].places == {0: "shared+0"}


def test_an_asynchronous_copy_is_recorded_where_it_starts():
    body = OUT + "cp.async.ca.shared.global [tile+16], [%rd1+32], 16;\ncp.async.wait_all;"
    trace = traced(body, ptxvm.Trace(0, thread=0), block=1, shared=".shared .align 16 .b8 tile[64];")
    copy = trace.steps[1]
    assert [(each.verb, each.places, each.size) for each in copy.accesses] == [
        (Verb.READ, {0: "out+32"}, 16), (Verb.WRITE, {0: "shared+16"}, 16),
    ]  # fmt: skip


# ── warps and time ──────────────────────────────────────────────────────────────────────


def test_a_warp_is_recorded_with_the_values_of_its_lanes():
    trace = traced("mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 33;\n@%p1 neg.s32 %r2, %r1;", ptxvm.Trace(0, warp=1), block=34)
    assert {step.lanes for step in trace.steps} == {(0, 1)}
    negative = only(trace, "neg")
    assert (negative.off, negative.writes[0].bits) == ({0}, {1: (-33) % 2**32})


def test_time_counts_the_instructions_of_the_schedule():
    body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra MEET;\nmov.u32 %r2, 1;\nMEET:\nbar.sync 0;"
    trace = traced(body, ptxvm.Trace(), block=64)
    first = [(step.text.split()[0], step.time, step.end) for step in trace.steps if step.warp.warp == 0]
    # Both warps execute the first three; warp 1 alone the fourth, time 3; both wait from time 4 on, where they meet.
    assert first == [("mov.u32", 0, 1), ("setp.lt.u32", 1, 2), ("@%p1", 2, 3), ("bar.sync", 4, 5), ("ret;", 5, 6)]
    assert trace.executed == {((0, 0, 0), 0): 5, ((0, 0, 0), 1): 6}


def test_an_instruction_that_waits_is_long():
    body = """mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra LATER;\nbar.sync 1, 64;\nret;
        LATER: mov.u32 %r2, 1;\nmov.u32 %r2, 2;\nbar.sync 1, 64;"""
    trace = traced(body, ptxvm.Trace(), block=64)
    # Warp 0 comes to its barrier at time 3, and waits while warp 1 executes three instructions, the last its own barrier.
    assert [(step.warp.warp, step.time, step.end) for step in trace.steps if step.bound.node.opcode == "bar"] == [
        (0, 3, 7), (1, 6, 7),
    ]  # fmt: skip


def test_a_limit_counts_for_each_warp():
    trace = traced("mov.u32 %r1, 1;\nmov.u32 %r1, 2;", ptxvm.Trace(limit=2), block=64)
    assert (len(trace.steps), sum(trace.executed.values())) == (4, 6)
    assert len(traced("mov.u32 %r1, 1;", ptxvm.Trace(limit=None)).steps) == 2


def test_what_happened_before_a_fault_is_recorded():
    trace = ptxvm.Trace(0, thread=0)
    with pytest.raises(ptxvm.Fault):
        traced(OUT + "ld.global.u32 %r1, [%rd1+4096];\nmov.u32 %r2, 1;", trace)
    assert [step.bound.node.opcode for step in trace.steps] == ["ld", "ld"]
    assert trace.steps[1].writes == []


def test_a_second_launch_begins_anew():
    trace = traced("mov.u32 %r1, 1;", ptxvm.Trace(0, thread=0))
    assert len(traced("mov.u32 %r1, 1;", trace).steps) == 2


# ── what is refused ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ({"cta": 1, "thread": 0}, r"there is no CTA 1: the grid is \(1, 1, 1\)"),
        ({"cta": 0, "thread": (0, 1)}, r"there is no thread \(0, 1\): the block is \(32, 1, 1\)"),
        ({"cta": 0, "warp": 1}, r"there is no warp 1: a block \(32, 1, 1\) has 1"),
    ],
)
def test_what_a_launch_does_not_have_is_refused(which, said):
    with pytest.raises(ValueError, match=said):
        traced("", ptxvm.Trace(**which))


def test_a_trace_names_one_thing():
    with pytest.raises(ValueError, match="names its CTA"):
        ptxvm.Trace(thread=0)
    with pytest.raises(ValueError, match="not both"):
        ptxvm.Trace(0, thread=0, warp=0)


@pytest.mark.parametrize("options", [{"engine": "jit"}, {"check": "race"}, {"schedules": 2}, {"profile": True}])
def test_what_a_trace_cannot_be_with_is_refused(options):
    with pytest.raises(ptxvm.Unsupported, match="a trace"):
        traced("", ptxvm.Trace(0, thread=0), **options)

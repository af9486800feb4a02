"""The JIT: what it refuses, its faults, and what happens where its assumptions fail."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from engines import same_fault

import ptxvm
from ptxvm.engine.jit.ir.builder import Unit

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
OFFSET = """
.visible .entry k(.param .u64 out, .param .u32 first)
{
    .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [first];
    mov.u32 %r1, %tid.x;
    add.s32 %r2, %r0, %r1;
    mul.wide.s32 %d1, %r2, 1;
    mul.wide.u32 %d2, %r1, 8;
    add.u64 %d2, %d0, %d2;
    st.global.u64 [%d2], %d1;
    ret;
}
"""
LOAD = """
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<6>; .reg .b64 %d<6>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d0, %d2;
    ld.global.u32 %r2, [%d3];
    add.u64 %d4, %d1, %d2;
    st.global.u32 [%d4], %r2;
    ret;
}
"""
FOREVER = """
.visible .entry k()
{
AGAIN:
    bra AGAIN;
}
"""


@pytest.mark.parametrize("threads", [32, 64, 90, 256])
@pytest.mark.parametrize("first", [0, 0x7FFF_FFF0, 0xFFFF_FFF0])
def test_an_affine_value_that_wraps_is_computed_without_shapes(first: int, threads: int) -> None:
    out = np.zeros(threads, np.int64)
    ptxvm.load(HEAD + OFFSET).kernel().launch(block=threads, args=[out, np.uint32(first)], engine="jit")
    assert (out == (np.uint32(first) + np.arange(threads, dtype=np.uint32)).view(np.int32)).all()


def test_a_wild_access_is_the_same_fault_as_in_the_interpreter() -> None:
    kernel = ptxvm.load(HEAD + LOAD).kernel()
    fault = same_fault(kernel, [np.zeros(20, np.uint32), np.zeros(32, np.uint32)], block=32)
    assert (fault.kind, fault.place.thread) == ("out-of-bounds", (20, 0, 0))


def test_lanes_past_the_end_of_the_block_touch_nothing() -> None:
    out = np.zeros(20, np.uint32)
    ptxvm.load(HEAD + LOAD).kernel().launch(block=20, args=[np.arange(20, dtype=np.uint32), out], engine="jit")
    assert (out == np.arange(20)).all()


def test_an_endless_loop_ends_with_its_budget() -> None:
    with pytest.raises(ptxvm.Fault, match="did not end within 1000 steps"):
        ptxvm.load(HEAD + FOREVER).kernel().launch(block=32, steps=1000, engine="jit")


def test_ptxvm_alone_does_not_load_llvm() -> None:
    code = "import sys, ptxvm; ptxvm.load; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("check", [None, ("race", "sync", "init", "memory")])
def test_a_kernel_without_an_instruction_does_nothing(check) -> None:
    kernel = ptxvm.load(".version 6.4\n.target sm_75\n.address_size 64\n.entry k() {}\n").kernel()
    done = kernel.launch(3, 40, [], engine="jit", check=check)
    assert (done.thread_instructions, done.findings) == (0, [])
    assert kernel.dump("shapes").splitlines()[:2] == [
        "k: lanes may part anywhere, one warp at a time with masks",
        "CTAs of 1 threads; a vector has 32 lanes",
    ]


def test_constant_tables_have_names_of_their_own() -> None:
    unit = Unit(32)  # hash(-1) is hash(-2) in CPython
    assert unit.table("i32", (7, -1)) != unit.table("i32", (7, -2))


def test_nodes_that_do_not_settle_are_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxvm.engine.jit.translate.fixed_point.MOST_ROUNDS", 0)
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { bar.sync 0; ret; }"
    with pytest.raises(ptxvm.Crash, match="still change after 0 rounds"):
        ptxvm.load(text).kernel().launch(1, 20, engine="jit")

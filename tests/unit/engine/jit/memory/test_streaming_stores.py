"""Stores past the caches: they write what others write, wherever memory begins, and before whoever comes after a fence."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.run import runner

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
NEXT = """
.visible .entry next(.param .u64 in, .param .u64 out, .param .u32 n)
{
    .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<2>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.s32 %p0, %r4, %r0;
    @%p0 bra DONE;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.u32 %r5, [%d3];
    add.u32 %r6, %r5, 1;
    st.global.u32 [%d4], %r6;
DONE:
    ret;
}
"""
# A CTA fills some lines and raises a flag.
FLAG = """
.visible .entry flag(.param .u64 data, .param .u64 flag)
{
    .reg .b32 %r<8>; .reg .b64 %d<9>; .reg .pred %p<3>;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [flag];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d0, %d2;
    add.u32 %r2, %r1, 7;
    st.global.u32 [%d3], %r2;
    FENCE
    st.relaxed.gpu.global.u32 [%d1], 1;
    ret;
}
"""


@pytest.fixture(params=[0, runner.LARGE])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """From how many bytes on memory is large."""
    monkeypatch.setattr(runner, "LARGE", request.param)
    return int(request.param)


def lines(count: int, first: int) -> np.ndarray:
    """So many words, of which the first is so many bytes behind the beginning of a line."""
    room = np.zeros(4 * count + 128, np.uint8)
    begin = -room.ctypes.data % 64 + first
    return room[begin : begin + 4 * count].view(np.uint32)


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("first", [0, 4, 16, 32])
@pytest.mark.parametrize("count", [256, 4096, 4099, 100_001])
@pytest.mark.parametrize("block", [32, 96, 256])
def test_every_word_is_written(first: int, count: int, block: int) -> None:
    given, out = np.arange(count, dtype=np.uint32), lines(count, first)
    ptxvm.load(HEAD + NEXT).kernel().launch(-(-count // block), block, [given, out, np.int32(count)], engine="jit")
    assert (out == given + 1).all()


@pytest.mark.usefixtures("large")
def test_what_is_written_may_be_what_is_read() -> None:
    out = lines(8192, 0)
    out[:] = np.arange(8192)
    ptxvm.load(HEAD + NEXT).kernel().launch(32, 256, [out, out, np.int32(8192)], engine="jit")
    assert (out == np.arange(1, 8193)).all()


def kept(arguments: list[object]) -> int:
    """The bits of the record after a launch: where they are 0, stores go past the caches."""
    kernel = ptxvm.load(HEAD + NEXT).kernel()
    kernel.launch(32, 256, arguments, engine="jit", threads=1)
    (compiled,) = kernel.module.engine("jit")._compiled.values()
    (used,) = compiled.runners
    return int(used.record[runner.AT["cached_outputs"]])


@pytest.mark.skipif(not cpu.has("sse2"), reason="these stores are the x86's")
def test_stores_to_large_memory_that_is_only_written_go_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    given, out, count = lines(8192, 0), lines(8192, 0), np.int32(8192)
    assert "!nontemporal" in ptxvm.load(HEAD + NEXT).kernel().dump("llvm", 256)
    assert kept([given, out, count]) == runner.EVERY
    monkeypatch.setattr(runner, "LARGE", 4 * 8192)
    assert kept([given, out, count]) == runner.EVERY - 1
    assert kept([out, out, count]) == runner.EVERY
    monkeypatch.setattr(runner, "LARGE", 4 * 8192 + 1)
    assert kept([given, out, count]) == runner.EVERY


@pytest.mark.skipif(not cpu.has("sse2"), reason="these stores are the x86's")
@pytest.mark.parametrize(("fence", "settles"), [("fence.acq_rel.gpu;", 2), ("membar.gl;", 2), ("membar.cta;", 1), ("", 1)])
def test_a_fence_waits_for_them(fence: str, settles: int) -> None:
    text = ptxvm.load(HEAD + FLAG.replace("FENCE", fence)).kernel().dump("asm", 128)
    assert text.count("\tsfence\n") == settles  # the last one is at the end of the grid


@pytest.mark.skipif(not cpu.has("sse2"), reason="these stores are the x86's")
def test_a_launch_that_is_repeated_goes_past_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LARGE", 4 * 8192)
    kernel = ptxvm.load(HEAD + NEXT).kernel()
    for first in range(4):
        given, out = np.arange(first, first + 8192, dtype=np.uint32), lines(8192, 0)
        kernel.launch(32, 256, [given, out, np.int32(8192)], engine="jit", threads=1)
        assert (out == given + 1).all()
    (repeat,) = kernel.module.engine("jit")._relaunches.values()
    assert int(repeat.runner.record[runner.AT["cached_outputs"]]) == runner.EVERY - 1

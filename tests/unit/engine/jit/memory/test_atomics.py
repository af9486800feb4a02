"""Atomics on memory of the CTA: several lanes of a turn, each an update of its own place."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

# Threads `first` and later count at places of their own choice, and keep what they found there.
COUNTS = """
.version 8.3
.target sm_90
.address_size 64
.shared .align 8 .TYPE bins[16];
.visible .entry counts(.param .u64 places, .param .u64 found, .param .u64 totals, .param .u32 first)
{
    .reg .b32 %r<10>; .reg .b64 %d<14>; .reg .pred %p<2>; .reg .TYPE %v<4>;
    ld.param.u64 %d0, [places];
    ld.param.u64 %d1, [found];
    ld.param.u64 %d2, [totals];
    ld.param.u32 %r0, [first];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d3, %d0, %d3;
    mul.wide.u32 %d4, %r1, SIZE;
    add.u64 %d5, %d1, %d4;
    add.u64 %d6, %d2, %d4;
    mov.u32 %r3, bins;
    and.b32 %r4, %r1, 15;
    mad.lo.u32 %r5, %r4, SIZE, %r3;
    mov.u32 %r6, 0;
    cvt.TYPE.u32 %v0, %r6;
    st.shared.TYPE [%r5], %v0;
    bar.sync 0;
    ld.global.u32 %r7, [%d3];
    mad.lo.u32 %r7, %r7, SIZE, %r3;
    cvt.TYPE.u32 %v1, %r1;
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 atom.shared.add.TYPE %v2, [%r7], OPERAND;
    @%p0 st.global.TYPE [%d5], %v2;
    bar.sync 0;
    setp.lt.u32 %p0, %r1, 16;
    @!%p0 ret;
    ld.shared.TYPE %v3, [%r5];
    st.global.TYPE [%d6], %v3;
    ret;
}
"""


@pytest.mark.parametrize("first", [0, 64, 77])  # whole warps, and one of which a part counts
@pytest.mark.parametrize("threads", [256, 250])
@pytest.mark.parametrize(("type", "operand"), [("u32", "1"), ("u64", "1"), ("u32", "%v1"), ("u64", "%v1"), ("f32", "%v1")])
def test_each_lane_updates_its_place(type: str, operand: str, threads: int, first: int) -> None:
    size = int(type[1:]) // 8
    text = COUNTS.replace("TYPE", type).replace("SIZE", str(size)).replace("OPERAND", operand)
    text = text.replace(f"cvt.{type}.{type}", "mov.u32").replace("cvt.f32", "cvt.rn.f32")
    places = np.random.default_rng(1).integers(0, 16, threads, np.uint32)
    added = np.ones(threads, np.uint64) if operand == "1" else np.arange(threads, dtype=np.uint64)
    found, totals = np.zeros(threads, f"{type[0]}{size}"), np.zeros(16, f"{type[0]}{size}")
    ptxvm.load(text).kernel().launch(1, threads, [places, found, totals, np.uint32(first)], engine="jit")
    for place in range(16):
        here = np.flatnonzero((places == place) & (np.arange(threads) >= first))
        assert totals[place] == added[here].sum()
        order = here[np.argsort(found[here], kind="stable")]  # each found the sum of those before it (PTX 9.7.13.5)
        sums = np.concatenate([[0], np.cumsum(added[order])])
        assert set(found[here].tolist()) <= set(sums.tolist())
        if operand == "1":
            assert found[order].tolist() == list(range(len(here)))

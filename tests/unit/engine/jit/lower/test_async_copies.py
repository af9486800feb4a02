"""Copies in bulk: many lanes, sizes and CTAs at a time, and what is wrong with them (PTX 9.7.9.25.4)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import ENGINES, same, same_fault

import ptxvm

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
ROW = 256  # bytes of shared memory for each thread

# Each thread fetches `sizes[thread]` bytes from `source + offsets[thread]`, awaits them, adds 1 to each word, writes them back.
THROUGH = f"""
.visible .entry through(.param .u64 source, .param .u64 target, .param .u64 offsets, .param .u64 sizes)
{{
    .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<4>;
    .shared .align 16 .b8 room[{32 * ROW}];
    .shared .align 8 .b64 done;
    ld.param.u64 %d0, [source]; ld.param.u64 %d1, [target]; ld.param.u64 %d2, [offsets]; ld.param.u64 %d3, [sizes];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 32, %r0;
    mul.wide.u32 %d4, %r2, 4;
    add.u64 %d2, %d2, %d4;
    add.u64 %d3, %d3, %d4;
    ld.global.u32 %r3, [%d2];
    ld.global.u32 %r4, [%d3];
    cvt.u64.u32 %d5, %r3;
    add.u64 %d5, %d0, %d5;
    setp.ne.u32 %p0, %r0, 0;
@%p0 bra READY;
    mbarrier.init.shared.b64 [done], 32;
READY:
    bar.sync 0;
    mov.u32 %r5, room;
    mad.lo.u32 %r5, %r0, {ROW}, %r5;
    cvt.u64.u32 %d6, %r5;
    mbarrier.arrive.expect_tx.shared.b64 _, [done], %r4;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%d6], [%d5], %r4, [done];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [done], 0;
@!%p1 bra WAIT;
    mov.u32 %r6, 0;
    setp.eq.u32 %p2, %r4, 0;
@%p2 bra DONE;
LOOP:
    add.u32 %r7, %r5, %r6;
    ld.shared.u32 %r8, [%r7];
    add.u32 %r8, %r8, 1;
    st.shared.u32 [%r7], %r8;
    add.u32 %r6, %r6, 4;
    setp.lt.u32 %p3, %r6, %r4;
@%p3 bra LOOP;
    mul.wide.u32 %d7, %r2, {ROW};
    add.u64 %d8, %d1, %d7;
    fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%d8], [%d6], %r4;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
    ret;
}}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_copy_what_each_asks_for(engine: str, rng: np.random.Generator) -> None:
    """Three CTAs of 32 threads, each with a size of its own, none among them."""
    threads = 96
    source = rng.integers(0, 2**32, 4096, np.uint32)
    sizes = rng.integers(0, ROW // 16 + 1, threads).astype(np.uint32) * 16
    sizes[5], sizes[6] = 0, ROW
    offsets = rng.integers(0, (source.nbytes - ROW) // 16, threads).astype(np.uint32) * 16
    target = np.full((threads, ROW // 4), 7, np.uint32)
    ptxvm.load(HEAD + THROUGH).kernel().launch(3, 32, [source, target, offsets, sizes], engine=engine)
    expected = np.full_like(target, 7)
    for n, (offset, size) in enumerate(zip(offsets // 4, sizes // 4, strict=True)):
        expected[n, :size] = source[offset : offset + size] + np.uint32(1)
    assert (target == expected).all()


@pytest.mark.parametrize(
    ("size", "offset", "kind"),
    [(40, 0, "misaligned"), (64, 8, "misaligned"), (64, 4096 - 48, "out-of-bounds"), (ROW, 4096 - ROW, None)],
)
def test_what_is_wrong_is_said_alike(size: int, offset: int, kind: str | None) -> None:
    """One lane of the second CTA asks for something else than the others."""
    sizes, offsets = np.full(96, 16, np.uint32), np.zeros(96, np.uint32)
    sizes[32 + 9], offsets[32 + 9] = size, offset
    given = [np.zeros(1024, np.uint32), np.zeros((96, ROW // 4), np.uint32), offsets, sizes]
    kernel = ptxvm.load(HEAD + THROUGH).kernel()
    if kind is None:
        same(kernel, given, grid=3, block=32)
        return
    fault = same_fault(kernel, given, grid=3, block=32)
    assert (fault.kind, fault.place.cta, fault.place.thread) == (kind, (1, 0, 0), (9, 0, 0))

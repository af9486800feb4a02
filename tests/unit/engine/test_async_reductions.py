"""Warps that combine values in the shared memory of another CTA, `red.async` (PTX 9.7.13.7), on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

# Each CTA of a pair has eight words, which are 77; each thread of the other combines its value with one of them.
PTX = """
.version 8.1
.target sm_90
.address_size 64
.visible .entry combines(.param .u64 values, .param .u64 out) .reqnctapercluster 2 {
    .reg .b64 %values, %out; .reg .b32 %t, %rank, %other, %at, %bar, %r; .reg .pred %p, %few;
    .shared .align 16 .b32 own[8];
    .shared .align 8 .b64 done;
    ld.param.u64 %values, [values];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    setp.lt.u32 %few, %t, 8;
    @%p mbarrier.init.shared.b64 [done], 1;
    @%p mbarrier.arrive.expect_tx.shared.b64 _, [done], 128;
    mov.u32 %at, own;
    mad.lo.u32 %at, %t, 4, %at;
    @%few st.shared.b32 [%at], 77;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %rank, %cluster_ctarank;
    xor.b32 %other, %rank, 1;
    and.b32 %r, %t, 7;
    mov.u32 %at, own;
    mad.lo.u32 %at, %r, 4, %at;
    mapa.shared::cluster.u32 %at, %at, %other;
    mov.u32 %bar, done;
    mapa.shared::cluster.u32 %bar, %bar, %other;
    mad.wide.u32 %values, %t, 4, %values;
    ld.global.b32 %r, [%values];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.OPERATION [%at], %r, [%bar];
again:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [done], 0;
    @!%p bra again;
    mov.u32 %at, own;
    mad.lo.u32 %at, %t, 4, %at;
    @%few ld.shared.b32 %r, [%at];
    mad.lo.u32 %at, %rank, 8, %t;
    mad.wide.u32 %out, %at, 4, %out;
    @%few st.global.b32 [%out], %r;
    ret;
}
"""


@pytest.mark.parametrize("asynchronous", [None, "late"])
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("operation", "combine", "held"),
    [
        ("add.u32", np.add, np.uint32),
        ("add.s32", np.add, np.int32),
        ("and.b32", np.bitwise_and, np.uint32),
        ("or.b32", np.bitwise_or, np.uint32),
        ("xor.b32", np.bitwise_xor, np.uint32),
        ("min.s32", np.minimum, np.int32),
        ("max.u32", np.maximum, np.uint32),
    ],
)
def test_values_of_several_threads_come_to_one_word(operation, combine, held, engine, asynchronous):
    values = np.random.default_rng(1).integers(0, 1 << 32, (4, 8), dtype=np.uint32).view(held)
    out = np.zeros((2, 8), held)
    kernel = ptxvm.load(PTX.replace("OPERATION", operation)).kernel()
    kernel.launch(2, 32, [values, out], engine=engine, asynchronous=asynchronous)
    assert (out == combine.reduce(np.vstack([np.full((1, 8), 77, held), values]), dtype=held)).all()

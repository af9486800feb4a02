"""Late transfers end in pieces: what lanes start with one instruction is one piece (`--async late`)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

SOURCE = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %to; .reg .b32 %t, %at, %bar, %first, %other, %later; .reg .pred %p, %one;
    .shared .b32 slots[64];
    .shared .align 8 .b64 bars[33];
    ld.param.u64 %to, [out];
    mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0;
    mov.u32 %at, slots; mad.lo.u32 %at, %t, 4, %at;
    mov.u32 %bar, bars; mad.lo.u32 %bar, %t, 8, %bar;
    st.shared.b32 [%at], 0; st.shared.b32 [%at+128], 0;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    @%one mbarrier.init.shared::cta.b64 [bars+256], 1;
    bar.sync 0;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 4;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%at], 7, [%bar];
    @!%one bra done;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+256], 4;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [slots+128], 9, [bars+256];
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bars], 0;
    @!%p bra again;
    ld.shared.b32 %first, [slots]; ld.shared.b32 %other, [slots+124]; ld.shared.b32 %later, [slots+128];
    st.global.b32 [%to], %first; st.global.b32 [%to+4], %other; st.global.b32 [%to+8], %later;
done:
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_the_transfers_of_one_instruction_end_together_and_later_ones_do_not(engine):
    out = np.zeros(3, np.uint32)
    ptxvm.load(SOURCE).kernel("k").launch(1, 32, [out], engine=engine, asynchronous="late")
    assert out.tolist() == [7, 7, 0]

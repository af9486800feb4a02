"""When the interpreter ends asynchronous work: what takes how long, and loads of tensor memory.

`tests/unit/engine/test_completion.py` has what both engines do.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.interp.async_copies import Copies

COPIES = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %v, %bar; .reg .pred %done;
    .shared .align 16 .b8 tile[64];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %s, tile; add.u32 %bar, %s, 32;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 64;
    COPY COPY COPY COPY
    wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;
    ld.shared.b32 %v, [%s]; st.global.b32 [%o], %v;
    ret;
    }""".replace("COPY", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%i], 16, [%bar];")


def test_the_oldest_work_ends_without_a_copy_of_the_list_of_the_rest(monkeypatch):
    """Late work ends piece by piece: a copy for each piece would take a time that grows with the square of their number."""
    lists = []
    complete = Copies.complete

    def observed(self, share=None, most=None):
        before, count = self.under_way, len(self.under_way)
        complete(self, share, most)
        if most == 1 and count:
            lists.append((self.under_way is before, count - len(self.under_way)))

    monkeypatch.setattr(Copies, "complete", observed)
    out = np.zeros(1, np.uint32)
    ptxvm.load(COPIES).kernel("k").launch(args=[np.full(4, 42, np.uint32), out], asynchronous="late", engine="interp")
    assert out.tolist() == [42]
    assert lists == [(True, 1)] * 4


LOAD = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 out)
    {
    .reg .b64 %o; .reg .b32 %t, %d, %v, %w; .shared .b32 base;
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.b32 %d, [base];
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%d], {%t}; tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v}, [%d];
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%d], {%d}; tcgen05.wait::st.sync.aligned;
    USE
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %o, %t, 4, %o; st.global.b32 [%o], %v;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;
    ret;
    }"""


@pytest.mark.parametrize("use", ["", "add.u32 %w, %v, 1;"])
def test_a_load_of_tensor_memory_may_come_after_a_later_store(use):
    """The load is not waited for: late, it reads what the later store has written, at address 0."""
    out = np.zeros(32, np.uint32)
    kernel = ptxvm.load(LOAD.replace("USE", use)).kernel("k")
    kernel.launch(block=32, args=[out], asynchronous="early", engine="interp")
    assert out.tolist() == list(range(32))
    kernel.launch(block=32, args=[out], asynchronous="late", engine="interp")
    assert out.tolist() == [0] * 32

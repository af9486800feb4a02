"""Special registers on the JIT whose values only a run tells."""

from __future__ import annotations

import time

import numpy as np
import pytest

import ptxvm

TIMERS = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %i, %low, %high; .reg .b64 %d, %t;
    ld.param.u64 %d, [data];
    mov.u32 %i, %tid.x; mad.wide.u32 %d, %i, 16, %d;
    mov.u64 %t, %globaltimer; st.global.u64 [%d], %t;
    mov.u32 %low, %globaltimer_lo; mov.u32 %high, %globaltimer_hi; st.global.v2.u32 [%d+8], {%low, %high};
    ret;
}
"""


@pytest.mark.parametrize("threads", [1, 33, 64])
def test_the_timer_is_the_systems_clock(threads):
    """PTX 10.28: nanoseconds; both halves may be read alone."""
    data = np.zeros((threads, 2), np.uint64)
    kernel = ptxvm.load(TIMERS).kernel()
    before = time.time_ns()
    kernel.launch(1, threads, [data], engine="jit")
    after = time.time_ns()
    times, joined = data.T.astype(np.int64)
    assert (before <= times).all()
    assert (times <= after).all()
    # The clock may pass from one low half to the next between two reads, once in four seconds.
    assert (np.abs(joined - times) <= max(after - before, 1 << 32)).all()

"""Proxy fences: any thread between a write and the asynchronous access that reads it may execute one (PTX 8.9.5)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

WRITE, FENCE, BARRIER = "st.shared.b32 [%mine], %t;", "fence.proxy.async;", "bar.sync 0;"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
COPY, TOLD = "cp.async.ca.shared.global [%mine], [%here], 4;", "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
HEARD = "again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra again;"
MADE = "@%first mbarrier.init.shared::cta.b64 [bar], 96; bar.sync 0;"


def by(thread: int, line: str) -> str:
    """A line that one thread executes."""
    return f"setp.eq.u32 %p, %t, {thread}; @%p {line}"


def findings(*lines: str) -> list[tuple[str, ...]]:
    """What the check finds where 96 threads execute some lines, and thread 64 stores the tile."""
    body = "\n".join(lines)
    text = f"""
        .version 8.6
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out)
        {{
        .reg .b64 %i, %o, %here; .reg .b32 %t, %mine; .reg .pred %p, %first;
        .shared .align 128 .b8 tile[384];
        .shared .align 8 .b64 bar;
        ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
        mov.u32 %mine, tile; mad.lo.u32 %mine, %t, 4, %mine; mad.wide.u32 %here, %t, 4, %i;
        {body}
        setp.eq.u32 %p, %t, 64; @!%p bra done;
        {STORE} [%o], [tile], 384;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        done:
        ret;
        }}"""
    arrays = [np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)]
    found = ptxvm.load(text).kernel().launch(1, 96, arrays, check=("race",)).findings
    return [(each.kind, *(party.place.text.split()[0] for party in each.accesses)) for each in found]


@pytest.mark.parametrize(
    "lines",
    [
        (WRITE, FENCE, BARRIER),
        (WRITE, BARRIER, by(64, FENCE)),
        (WRITE, BARRIER, by(32, FENCE), BARRIER),
        (WRITE, "bar.warp.sync -1;", "and.b32 %mine, %t, 31; setp.eq.u32 %p, %mine, 0; @%p " + FENCE, BARRIER),
        (MADE, COPY, TOLD, HEARD, by(64, FENCE)),
        (MADE, COPY, TOLD, HEARD, by(32, FENCE), BARRIER),
    ],
    ids=["writers", "reader", "another", "one of each warp", "copies, reader", "copies, another"],
)
def test_a_fence_between_the_two_is_enough(lines):
    assert findings(*lines) == []


@pytest.mark.parametrize(
    ("lines", "write"),
    [
        ((WRITE, BARRIER), WRITE),
        ((by(32, FENCE), BARRIER, WRITE, BARRIER), WRITE),
        ((WRITE, by(32, FENCE), BARRIER), WRITE),
        ((MADE, COPY, TOLD, HEARD), COPY),
        ((MADE, COPY, FENCE, TOLD, HEARD), COPY),
    ],
    ids=["none", "before", "unordered", "copies", "copies under way"],
)
def test_no_fence_between_the_two_is_a_race(lines, write):
    assert ("race", write.split()[0], STORE) in findings(*lines)

"""A collective of a warp is executed once, by all lanes of its mask together, however they come to it.

`shfl.sync` waits until all of them execute it with the same mask (PTX 9.7.9.6), so that then they stand at it together.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """.version 7.8
.target sm_80
.address_size 64
"""
IN_GROUPS = f"""{HEAD}
.func (.reg .b32 %result) other(.reg .b32 %x, .reg .b32 %mask)
{{
    shfl.sync.bfly.b32 %result, %x, 1, 0x1f, %mask;
    ret;
}}
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t, %m<2>; .reg .b64 %out; .reg .pred %low, %even;
    mov.u32 %t, %laneid;
    setp.lt.u32 %low, %t, 8;
    vote.sync.ballot.b32 %m0, %low, -1;
    @%low bra LOW;
    xor.b32 %m0, %m0, -1;
    and.b32 %m1, %t, 1;
    setp.eq.u32 %even, %m1, 0;
    vote.sync.ballot.b32 %m1, %even, %m0;
    @!%even bra MET;
    vote.sync.ballot.b32 %m1, %even, %m1;
MET:
    call (%t), other, (%t, %m0);
    bra END;
LOW:
    call (%t), other, (%t, %m0);
END:
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %t;
    ret;
}}
"""
GUARDED = f"""{HEAD}
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t, %m; .reg .b64 %out; .reg .pred %low;
    mov.u32 %t, %laneid;
    setp.lt.u32 %low, %t, 8;
    vote.sync.ballot.b32 %m, %low, -1;
    @%low shfl.sync.bfly.b32 %t, %t, 1, 0x1f, %m;
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %t;
    ret;
}}
"""


def counts_of(text: str, engine: str, word: str) -> dict[str, int]:
    """What is counted of the line with a word, for two warps."""
    done = ptxvm.load(text).kernel().launch(2, 32, [np.zeros(1, np.uint32)], engine=engine, profile=True)
    assert done.profile is not None
    (counts,) = (line.counts for line in done.profile.lines if word in line.text)
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_lanes_that_come_in_groups_execute_it_together(engine: str) -> None:
    """The masks are those of lanes 0-7, and of lanes 8-31, whose odd ones come to the function before the even ones."""
    assert counts_of(IN_GROUPS, engine, "shfl.sync") == {
        "inst_executed": 2 * 2, "thread_inst_executed": 2 * 32, "thread_inst_executed_true": 2 * 32,
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_lanes_that_a_guard_keeps_from_it_pass_it_together_with_the_others(engine: str) -> None:
    assert counts_of(GUARDED, engine, "shfl.sync") == {
        "inst_executed": 2, "thread_inst_executed": 2 * 32, "thread_inst_executed_true": 2 * 8,
    }  # fmt: skip

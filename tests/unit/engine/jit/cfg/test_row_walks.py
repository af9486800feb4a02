"""Which loads of a loop walk along rows; expectations are read off the PTX."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.engine.jit.cfg.row_walks import row_walks

LOOP = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry walk(.param .u64 data, .param .u64 other, .param .u32 n)
{{
    .reg .b32 %r<9>; .reg .b64 %d<6>; .reg .pred %p<3>;
    .shared .align 4 .b8 held[4096];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [other];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, 0;
    mov.u32 %r6, held;
    ld.global.u64 %d2, [%d1];
NEXT:
    {inside}
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, %r0;
    @%p0 bra NEXT;
    st.global.u32 [%d0], %r5;
    ret;
}}
"""
CASES = {
    "a pointer moves on": ("ld.global.u32 %r5, [%d0]; add.u64 %d0, %d0, 4;", 1),
    "a pointer that was loaded before moves on": ("ld.global.u32 %r5, [%d2]; add.u64 %d2, %d2, 4;", 1),
    "an index moves on": ("mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3; ld.global.u32 %r5, [%d3];", 1),
    "two loads behind a pointer": ("ld.global.u32 %r5, [%d0]; ld.global.u32 %r4, [%d0+4]; add.u64 %d0, %d0, 8;", 2),
    "what is loaded leads to another load": (
        "ld.global.u32 %r5, [%d0]; add.u64 %d0, %d0, 4; mad.wide.u32 %d3, %r5, 4, %d1; ld.global.u32 %r4, [%d3];", 1,
    ),
    "a list": ("ld.global.u64 %d2, [%d2];", 0),
    "one place": ("ld.global.u32 %r5, [%d0];", 0),
    "a store": ("ld.global.u32 %r5, [%d0]; st.global.u32 [%d1], %r5; add.u64 %d0, %d0, 4;", 0),
    "an atomic": ("ld.global.u32 %r5, [%d0]; red.global.add.u32 [%d1], %r5; add.u64 %d0, %d0, 4;", 0),
    "a barrier": ("ld.global.u32 %r5, [%d0]; bar.sync 0; add.u64 %d0, %d0, 4;", 0),
    "a fence": ("ld.global.u32 %r5, [%d0]; membar.gl; add.u64 %d0, %d0, 4;", 0),
    "a strong load": ("ld.relaxed.gpu.global.u32 %r5, [%d0]; add.u64 %d0, %d0, 4;", 0),
    "a volatile load": ("ld.volatile.global.u32 %r5, [%d0]; add.u64 %d0, %d0, 4;", 0),
    "shared memory": ("ld.shared.u32 %r5, [%r6]; add.u32 %r6, %r6, 4;", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_row_walks(name: str) -> None:
    inside, count = CASES[name]
    assert len(row_walks(ptxvm.load(LOOP.format(inside=inside)).kernel().function)) == count

"""Stores of several lanes to one place: the last active one stays, as on the interpreter, and none where none is active.

PTX 8 leaves open which of them stays; ptxvm says that it is the last.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

BLOCK = 96
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out)
{{
    .shared .align 16 .b8 s[64];
    .reg .b32 %r<4>; .reg .b16 %h; .reg .b64 %d<8>; .reg .f64 %f<2>; .reg .pred %p;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.u64 %d3, %d0, %d2; ld.global.u32 %r1, [%d3]; cvt.u16.u32 %h, %r1;
    shr.u32 %r2, %r0, 5; mul.wide.u32 %d4, %r2, 16; add.u64 %d5, %d1, %d4;
    {store}
    ret;
}}
"""
STORES = {
    "all": "st.global.u32 [%d5], %r1;",
    "halves": "st.global.u16 [%d5+2], %h;",
    "a pair": "st.global.v2.u32 [%d5], {%r1, %r0};",
    "doubles": "cvt.rn.f64.u32 %f0, %r1; st.global.f64 [%d5+8], %f0;",
    "one lane": "and.b32 %r3, %r0, 31; setp.eq.u32 %p, %r3, 7; @%p st.global.u32 [%d5], %r1;",
    "lanes by what they hold": "setp.gt.u32 %p, %r1, 700; @%p st.global.u32 [%d5], %r1;",
    "no lane": "setp.gt.u32 %p, %r1, 7000; @%p st.global.u32 [%d5], %r1;",
    "a branch": "and.b32 %r3, %r0, 31; setp.ne.u32 %p, %r3, 0; @%p bra E; st.global.u32 [%d5+4], %r1; E:",
    "a loop": "L: st.global.u32 [%d5], %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 900; @%p bra L;",
    "shared": "and.b32 %r3, %r1, 3; setp.eq.u32 %p, %r3, 1; @%p st.shared.u32 [s+8], %r1; bar.sync 0;"
    "ld.shared.u32 %r3, [s+8]; st.global.u32 [%d5], %r3;",
}
WANTED = {
    "all": lambda data: data[31],
    "one lane": lambda data: data[7],
    "lanes by what they hold": lambda data: data[data > 700][-1] if (data > 700).any() else 5,
    "no lane": lambda _: 5,
}


@pytest.mark.parametrize("name", STORES)
def test_the_last_lane_stays(name: str, rng: np.random.Generator) -> None:
    kernel = ptxvm.load(KERNEL.format(store=STORES[name])).kernel()
    for _ in range(3):
        data = rng.integers(0, 1000, BLOCK, dtype=np.uint32)
        data[32:64] = rng.integers(0, 700, 32)
        (_, out) = same(kernel, [data, np.full(BLOCK // 32 * 4, 5, np.uint32)], block=BLOCK, threads=1)
        if name in WANTED:
            assert out[::4].tolist() == [WANTED[name](data[n : n + 32]) for n in range(0, BLOCK, 32)]

"""Which loops advance by a size of the grid; expectations are read off the PTX."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.engine.jit.cfg.grid_stride import grid_strides

LOOP = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry walk(.param .u64 data, .param .u32 n)
{{
    .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<3>;
    .shared .align 4 .b8 held[4096];
    ld.param.u64 %d0, [data];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %nctaid.x;
    mul.lo.u32 %r4, %r2, %r3;
NEXT:
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    {inside}
    setp.lt.u32 %p0, %r1, %r0;
    @%p0 bra NEXT;
    ret;
}}
"""
LOAD = "ld.global.u32 %r5, [%d2];"
CASES = {
    "by the grid": (f"{LOAD} add.u32 %r1, %r1, %r4;", 1),
    "by the grid, twice in an iteration": (f"{LOAD} add.u32 %r6, %r1, %r4; add.u32 %r1, %r6, %r4;", 1),
    "by the CTA": (f"{LOAD} add.u32 %r1, %r1, %r2;", 0),
    "with a barrier": (f"{LOAD} bar.sync 0; add.u32 %r1, %r1, %r4;", 0),
    "with an atomic": (f"{LOAD} atom.shared.add.u32 %r6, [held], %r5; add.u32 %r1, %r1, %r4;", 0),
    "in shared memory only": ("ld.shared.u32 %r5, [held]; add.u32 %r1, %r1, %r4;", 0),
    "afresh in each iteration": (f"{LOAD} add.u32 %r1, %r0, %r4;", 0),
    "around another loop": (f"IN: {LOAD} setp.eq.u32 %p1, %r5, 7; @%p1 bra IN; add.u32 %r1, %r1, %r4;", 0),
}


@pytest.mark.parametrize("name", CASES)
def test_grid_strides(name: str) -> None:
    inside, count = CASES[name]
    assert len(grid_strides(ptxvm.load(LOOP.format(inside=inside)).kernel().function)) == count

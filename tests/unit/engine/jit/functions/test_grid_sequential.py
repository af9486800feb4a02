"""How CTAs follow each other: every one runs once at its place, and who asks about one is told which it is."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
NUMBER = """
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ctaid.y;
    mov.u32 %r2, %ctaid.z;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %nctaid.y;
    mad.lo.u32 %r5, %r2, %r4, %r1;
    mad.lo.u32 %r5, %r5, %r3, %r0;
"""
# Each thread adds 1 to the word of its CTA, which is at the CTA's number.
VISIT = f"""
.visible .entry visit(.param .u64 out)
{{
    .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
{NUMBER}
    mul.wide.u32 %d1, %r5, 4;
    add.u64 %d2, %d0, %d1;
    red.global.add.u32 [%d2], 1;
    ret;
}}
"""
# One CTA does what it may not: an access past the end, a trap, a jump to nowhere, or it waits at two barriers.
WRONG = f"""
.visible .entry wrong(.param .u64 out, .param .u32 bad)
{{
    .reg .b32 %r<10>; .reg .b64 %d<4>; .reg .pred %p<3>;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r6, [bad];
{NUMBER}
    mov.u32 %r7, %tid.x;
    setp.ne.u32 %p0, %r5, %r6;
    @%p0 bra DONE;
    SLIP
DONE:
    mad.lo.u32 %r8, %r5, 2, 0;
    mul.wide.u32 %d1, %r8, 4;
    add.u64 %d2, %d0, %d1;
    st.global.u32 [%d2], 1;
    ret;
}}
"""
SLIPS = {
    "out-of-bounds": "st.global.u32 [%d0+240], %r5;",
    "misaligned": "st.global.u32 [%d0+2], %r5;",
    "trap": "trap;",
    "invalid-branch": "WAYS: .branchtargets DONE, DONE;\n    add.u32 %r9, %r7, 9;\n    brx.idx %r9, WAYS;",
    "deadlock": "shr.u32 %r9, %r7, 5;\n    setp.eq.u32 %p1, %r9, 0;\n    @%p1 bra FIRST;\n    bar.sync 1;\n    bra.uni DONE;\n"
    "FIRST:\n    bar.sync 2;",
}
GRIDS = [
    (1, 1, 1),
    (7, 1, 1),
    (4095, 1, 1),
    (4097, 1, 1),
    (9000, 1, 1),
    (1, 5, 3),
    (1, 1, 70),
    (5, 3, 2),
    (3000, 3, 1),
    (2, 4100, 1),
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [1, 64])
def test_every_cta_of_a_grid_runs_once_at_its_place(grid: tuple[int, int, int], block: int, threads: int) -> None:
    out = np.zeros(grid[0] * grid[1] * grid[2], np.uint32)
    ptxvm.load(HEAD + VISIT).kernel().launch(grid, block, [out], engine="jit", threads=threads)
    assert (out == block).all()


@pytest.mark.parametrize("kind", SLIPS)
@pytest.mark.parametrize("block", [64, 100])
@pytest.mark.parametrize("cta", [(0, 0, 0), (4, 0, 0), (3, 2, 1), (4, 2, 1)])
def test_a_fault_names_its_cta(kind: str, block: int, cta: tuple[int, int, int]) -> None:
    grid = (5, 3, 2)
    number = (cta[2] * grid[1] + cta[1]) * grid[0] + cta[0]
    out = np.zeros(2 * 30, np.uint32)
    with pytest.raises(ptxvm.Fault) as caught:
        ptxvm.load(HEAD + WRONG.replace("SLIP", SLIPS[kind])).kernel().launch(
            grid, block, [out, np.uint32(number)], engine="jit", threads=1
        )
    assert caught.value.kind == kind
    assert caught.value.place.cta == cta
    assert out[: 2 * number : 2].all()
    assert not out[2 * number + 2 :].any()


@pytest.mark.parametrize("block", [1, 31, 64, 100, 256])
def test_the_instructions_of_threads_are_those_of_the_interpreter(block: int) -> None:
    found = []
    for engine in ("interp", "jit"):
        out = np.zeros(30, np.uint32)
        result = ptxvm.load(HEAD + VISIT).kernel().launch((5, 3, 2), block, [out], engine=engine)
        found.append(result.thread_instructions)
    assert found == [30 * block * 12] * 2


ADD = """
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c)
{
    .reg .b32 %r<2>; .reg .b64 %d<8>; .reg .f32 %f<4>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    ld.param.u64 %d2, [c];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d3, %r0, 4;
    add.u64 %d4, %d0, %d3;
    add.u64 %d5, %d1, %d3;
    add.u64 %d6, %d2, %d3;
    ld.global.f32 %f0, [%d4];
    ld.global.f32 %f1, [%d5];
    add.f32 %f2, %f0, %f1;
    st.global.f32 [%d6], %f2;
    ret;
}
"""


@pytest.mark.parametrize("odd", [[], [0], [63], [64], [127], [5, 69], [200], list(range(256))])
def test_nans_among_many_lanes_are_canonical(odd: list[int]) -> None:
    a, b = np.arange(256, dtype=np.float32), np.full(256, 0.5, np.float32)
    a.view(np.uint32)[odd] = 0xFFC1_2345  # a NaN has the bits 0x7fffffff when it is computed with (PTX 9.7.3)
    wanted = (a + b).view(np.uint32)
    wanted[odd] = 0x7FFF_FFFF
    c = np.zeros(256, np.float32)
    ptxvm.load(HEAD + ADD).kernel().launch(block=256, args=[a, b, c], engine="jit")
    assert c.view(np.uint32).tolist() == wanted.tolist()

"""Warps that part and meet again (PTX 4.2 of the programming model: lanes of a warp may diverge): sums over strided rows."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

# The sum of every 32nd element from the lane's own on, as nvcc writes it: the iterations are counted beforehand.  Lanes
# of odd numbers go through the first elements one by one, in a loop of their own.
STRIDED = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out, .param .u32 n, .param .u32 alone)
{
    .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p<6>;
    ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [n]; ld.param.u32 %r1, [alone];
    mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, %r2;
    and.b32 %r5, %r2, 1; and.b32 %r6, %r5, %r1; setp.eq.u32 %p0, %r6, 0; @%p0 bra $meet;
    mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d0, %d2; ld.global.u32 %r7, [%d3]; add.u32 %r3, %r3, %r7;
    add.u32 %r3, %r3, 1;
    add.u32 %r4, %r4, 0;
$meet:
    setp.ge.u32 %p1, %r4, %r0; @%p1 bra $end;
    sub.u32 %r8, %r0, %r4; add.u32 %r8, %r8, 31; shr.u32 %r8, %r8, 5;
$again:
    mul.wide.u32 %d4, %r4, 4; add.u64 %d5, %d0, %d4; ld.global.u32 %r9, [%d5]; add.u32 %r3, %r3, %r9;
    add.u32 %r4, %r4, 32; add.u32 %r8, %r8, -1;
    setp.ne.u32 %p2, %r8, 0; @%p2 bra $again;
$end:
    mul.wide.u32 %d6, %r2, 4; add.u64 %d7, %d1, %d6; st.global.u32 [%d7], %r3;
    setp.lt.u32 %p3, %r4, 64; @%p3 bra $short;
    add.u32 %r10, %r4, 0; st.global.u32 [%d7+128], %r10;
$short:
    ret;
}
"""


def sums(x: np.ndarray, n: int, alone: int) -> np.ndarray:
    """What the kernel computes, lane by lane."""
    out = np.zeros(64, np.uint32)
    for lane in range(32):
        at, total = lane, 0
        if lane & 1 & alone:
            total += int(x[lane]) + 1
        while at < n:
            total, at = total + int(x[at]), at + 32
        out[lane] = total & 0xFFFF_FFFF
        out[32 + lane] = at if at >= 64 else 0
    return out


@pytest.mark.parametrize("n", [0, 7, 32, 37, 64, 100, 256])
@pytest.mark.parametrize("alone", [0, 1])
def test_lanes_that_part_and_meet_again(n: int, alone: int, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 1 << 32, 300, dtype=np.uint32), np.zeros(64, np.uint32)
    ptxvm.load(STRIDED).kernel().launch(1, 32, [x, out, np.uint32(n), np.uint32(alone)], engine="jit")
    assert np.array_equal(out, sums(x, n, alone))


def test_partial_warps_do_not_widen_the_shapes_of_whole_ones() -> None:
    """The index varies where lanes have left the loop: a whole warp still loads rows."""
    lines = ptxvm.load(STRIDED).kernel().dump("shapes", 32).splitlines()
    assert [line.split()[-1] for line in lines if "ld.global" in line] == ["contiguous"] * 2


@pytest.mark.parametrize("asking", ["activemask.b32 %r9;", "vote.ballot.b32 %r9, 1;"])
def test_lanes_at_collectives_join_those_that_ask_who_is_there(asking: str) -> None:
    """Lanes leave a loop with a shuffle one after the other, and meet behind it.

    The programming guide asks for `coalesced_threads()` behind a branch, and expects all that take it.
    """
    kernel = ptxvm.load(f"""
        .version 6.4\n.target sm_60\n.address_size 64
        .visible .entry k(.param .u64 data, .param .u64 out) {{
            .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p, %q;
            ld.param.u64 %d0, [data];
            ld.param.u64 %d1, [out];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %d2, %r0, 4;
            add.u64 %d0, %d0, %d2;
            add.u64 %d1, %d1, %d2;
            ld.global.u32 %r1, [%d0];
            mov.u32 %r2, 0;
            mov.u32 %r9, 0;
            shl.b32 %r3, 1, %r0;
        again:
            shfl.sync.idx.b32 %r4, %r1, %r0, 31, %r3;
            add.u32 %r2, %r2, 1;
            setp.lt.u32 %p, %r2, %r1;
            @%p bra again;
            setp.lt.u32 %q, %r1, 6;
            @%q bra done;
            {asking}
        done:
            st.global.u32 [%d1], %r9;
            ret;
        }}""").kernel()
    data = np.array([n * 7 % 11 for n in range(32)], np.uint32)
    _, found = same(kernel, [data, np.zeros_like(data)], block=32)
    there = sum(1 << n for n in range(32) if data[n] >= 6)
    assert found.tolist() == [there if n >= 6 else 0 for n in data]

"""Warps that go on in a more general version: nothing that their lanes have done is lost (expectations: NumPy)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

# Even lanes wait for the others at the second shfl.  The others exchange values among themselves, multiply to beyond 32 bits,
# where code for affine values gives way to code for any, and come to the second shfl (9.7.9.6 of PTX 8.0).  A carry, which
# only thread 0 of a warp has, lives until the end.
WAITING = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %t, %lane, %members, %x, %y, %n; .reg .b64 %d, %base, %out; .reg .pred %p;
    ld.param.u64 %base, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %out, %t, 4;
    add.u64 %out, %base, %out;
    and.b32 %lane, %t, 31;
    and.b32 %x, %t, 1;
    setp.ne.u32 %p, %x, 0;
    vote.sync.ballot.b32 %members, %p, 0xffffffff;
    mov.u32 %x, %t;
    not.b32 %y, %lane;
    add.cc.u32 %y, %y, 1;
    @!%p bra $meet;
    shfl.sync.bfly.b32 %y, %t, 2, 0x1f, %members;
    mul.lo.u32 %n, %t, 0x9000004;
    cvt.u64.u32 %d, %n;
    shr.u64 %d, %d, 8;
    cvt.u32.u64 %x, %d;
    add.u32 %x, %x, %y;
$meet:
    shfl.sync.bfly.b32 %y, %x, 1, 0x1f, 0xffffffff;
    addc.u32 %y, %y, 0;
    st.global.u32 [%out], %y;
    bar.sync 1, 64;
    ret;
}
"""


@pytest.mark.parametrize("block", [64, 256])
def test_lanes_that_wait_at_a_collective_keep_their_operands(block: int) -> None:
    t = np.arange(block, dtype=np.uint32)
    x = np.where(t & 1, (t * np.uint32(0x9000004) >> 8) + (t ^ 2), t)
    [found] = same(ptxvm.load(WAITING).kernel(), [np.zeros(block, np.uint32)], block=block)
    np.testing.assert_array_equal(found, x[t ^ 1] + (t % 32 == 0))

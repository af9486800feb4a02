"""CTAs that wait for each other: they run one after the other, as whole warps, until one spins for long.

Expectations follow from PTX 3.1 (a thread that spins does not keep others from running) and 9.7.13.1 (barriers).
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
# CTA n waits for the flag of CTA n+1, except the last; its sum of the numbers of its threads, through shared memory and a
# barrier on either side of the wait, is added to that of the CTA it waited for.
CHAIN = """
.visible .entry chain(.param .u64 flags, .param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<5>;
    .shared .align 4 .b8 held[512];
    ld.param.u64 %d0, [flags];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 2;
    mov.u32 %r4, held;
    add.u32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r2;
    and.b32 %r6, %r2, 3;
    setp.eq.u32 %p3, %r6, 0;
    bar.red.popc.u32 %r12, 0, %p3;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d3, %d0, %d2;
    add.u32 %r7, %r0, 1;
    setp.eq.u32 %p0, %r7, %r1;
    @%p0 bra LAST;
    ONLY
WAIT:
    ld.volatile.global.u32 %r8, [%d3+4];
    setp.eq.u32 %p1, %r8, 0;
    @%p1 bra WAIT;
LAST:
    bar.sync 0;
    xor.b32 %r9, %r3, 4;
    add.u32 %r9, %r9, %r4;
    ld.shared.u32 %r10, [%r9];
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra DONE;
    ld.volatile.global.u32 %r11, [%d3+4];
    add.u32 %r11, %r11, 1;
    st.volatile.global.u32 [%d3], %r11;
DONE:
    mov.u32 %r14, %ntid.x;
    mad.lo.u32 %r13, %r0, %r14, %r2;
    mul.wide.u32 %d4, %r13, 4;
    add.u64 %d5, %d1, %d4;
    mad.lo.u32 %r10, %r12, 1000, %r10;
    st.global.u32 [%d5], %r10;
    ret;
}
"""
FIRST = "setp.ne.u32 %p4, %r2, 0;\n    @%p4 bra LAST;"  # one thread waits, the others at the barrier
CTAS = 9


@pytest.mark.parametrize("only", ["", FIRST], ids=["all", "one"])
@pytest.mark.parametrize("block", [128, 40])
def test_ctas_that_wait_for_later_ones_keep_their_votes_and_shared_memory(only: str, block: int) -> None:
    kernel = ptxvm.load(HEAD + CHAIN.replace("ONLY", only)).kernel()
    flags, out = same(kernel, [np.zeros(CTAS + 1, np.uint32), np.zeros(CTAS * block, np.uint32)], grid=CTAS, block=block)
    assert flags.tolist() == [*range(CTAS, 0, -1), 0]
    assert (out.reshape(CTAS, block) == (np.arange(block) ^ 1) + 1000 * (block // 4)).all()


def test_a_kernel_with_a_spin_loop_keeps_its_shapes_outside_of_it() -> None:
    shapes = ptxvm.load(HEAD + CHAIN.replace("ONLY", "")).kernel().dump("shapes", 128)
    assert "whole warps, 4 abreast" in shapes
    assert {"gather", "scatter"}.isdisjoint(shapes.split("\n\nA value is")[0].split())


def test_a_deadlock_in_one_cta_is_reported_while_others_wait_for_it() -> None:
    text = """
.visible .entry stuck(.param .u64 flag)
{
    .reg .b32 %r<4>; .reg .b64 %d0; .reg .pred %p<4>;
    ld.param.u64 %d0, [flag];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p0, %r0, 1;
    @%p0 bra STUCK;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    ret;
STUCK:
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra FIRST;
    bar.sync 1;
    ret;
FIRST:
    bar.sync 2;
    ret;
}
"""
    with pytest.raises(ptxvm.Fault) as caught:
        ptxvm.load(HEAD + text).kernel().launch(2, 64, [np.zeros(1, np.uint32)], engine="jit", steps=1 << 24)
    assert caught.value.kind == "deadlock"


def test_whole_warps_side_by_side_may_test_one_phase() -> None:
    """The best code runs four warps abreast, which all ask for the same phase of an mbarrier (PTX 9.7.13.15.16)."""
    kernel = ptxvm.load("""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 s[128];
    .reg .b32 %r<6>; .reg .b64 %d<3>; .reg .pred %p<3>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 128;
    bar.sync 0;
    mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;
    mbarrier.arrive.shared.b64 _, [bar];
WAIT: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    xor.b32 %r3, %r1, 127; mad.lo.u32 %r3, %r3, 4, %r2; ld.shared.u32 %r4, [%r3];
    mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r4;
    ret;
}
""").kernel()
    assert "whole warps, 4 abreast" in kernel.dump("shapes", 128)
    assert kernel.dump("asm", 128)
    (out,) = same(kernel, [np.zeros(128, np.uint32)], grid=1, block=128)
    assert (out == 127 - np.arange(128)).all()

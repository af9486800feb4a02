"""Predicates whose lanes are known, across barriers, loops and branches that lanes leave.

Expectations are computed by NumPy; both engines must agree besides.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from engines import same

import ptxvm

THREADS = 128
# The lanes with `%a` add, behind a barrier, the value of their partner; `MEANWHILE` stands between.
SOURCE = f""".version 8.3\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 n)
{{
    .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %a, %b, %p;
    .shared .align 8 .b32 held[{THREADS}];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r2, [%d0];
    and.b32 %r3, %r0, 3;
    setp.eq.u32 %a, %r3, 0;
    setp.ne.u32 %b, %r3, 0;
    mul.lo.u32 %r4, %r0, 4;
    mov.u32 %r5, held;
    add.u32 %r4, %r4, %r5;
    st.shared.u32 [%r4], %r2;
    MEANWHILE
    bar.sync 0;
    @!%a bra others;
    xor.b32 %r4, %r4, 4;
    ld.shared.u32 %r6, [%r4];
    add.u32 %r2, %r2, %r6;
others:
    bar.sync 0;
    selp.u32 %r7, 1000, 0, %b;
    add.u32 %r2, %r2, %r7;
    st.global.u32 [%d1], %r2;
    ret;
}}
"""
# Lanes part by loaded data, so that warps leave the code for whole ones while the predicates live.
PARTED = """
    mov.u32 %r8, 0;
again: setp.ge.u32 %p, %r8, %r2;
    @%p bra done;
    mad.lo.u32 %r9, %r8, 3, %r9;
    add.u32 %r8, %r8, 1;
    bra again;
done:
"""
COMPLEMENT = "setp.gt.u32 %p, %r1, 5; @%p not.pred %a, %a;"  # for all lanes, if n is greater than 5
GUARDED = "setp.gt.u32 %p, %r2, 5; @%p not.pred %a, %a;"  # by loaded data
ANOTHER = "setp.le.u32 %p, %r1, 5; @%p bra kept; setp.ne.u32 %a, %r3, 2; setp.eq.u32 %b, %r3, 1; kept:"


@pytest.mark.parametrize("n", [5, 6])
@pytest.mark.parametrize(
    ("meanwhile", "changed"),
    [
        ("", lambda a, b, data, n: (a, b)),
        (PARTED, lambda a, b, data, n: (a, b)),
        (COMPLEMENT, lambda a, b, data, n: (~a if n > 5 else a, b)),
        (GUARDED, lambda a, b, data, n: (np.where(data > 5, ~a, a), b)),
        (PARTED + COMPLEMENT, lambda a, b, data, n: (~a if n > 5 else a, b)),
        (ANOTHER, lambda a, b, data, n: (a, b) if n <= 5 else (np.arange(THREADS) % 4 != 2, np.arange(THREADS) % 4 == 1)),
    ],
    ids=["barriers", "lanes that part", "complement", "guarded", "both", "another"],
)
def test_they_stay_what_they_are(meanwhile, changed, n, rng):
    data = rng.integers(0, 12, THREADS).astype(np.uint32)
    t = np.arange(THREADS)
    a, b = changed(t % 4 == 0, t % 4 != 0, data, n)
    kernel = ptxvm.load(SOURCE.replace("MEANWHILE", meanwhile)).kernel()
    _, found = same(kernel, [data, np.zeros_like(data), np.uint32(n)], block=THREADS)
    assert found.tolist() == (data + np.where(a, data[t ^ 1], 0) + np.where(b, 1000, 0)).tolist()


def test_branches_on_them_are_written_for_their_lanes_alone():
    """Code for warps whose lanes all go one way would never run."""
    text = ptxvm.load(SOURCE.replace("MEANWHILE", "")).kernel().dump("llvm", THREADS)
    (width,) = {*re.findall(r"masked.load.v(\d+)i32", text)}
    assert f"icmp eq i{width} " not in text

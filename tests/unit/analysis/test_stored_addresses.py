"""Which instructions store an address to memory that outlives the CTA; the expectations are read off the PTX."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.analysis.outputs import pointers
from ptxvm.analysis.stored_addresses import stores_address
from ptxvm.engine.call_targets import called

TEXT = """.version 8.3
.target sm_90
.address_size 64
.global .align 8 .b64 v;
.func nothing() {{ ret; }}
.func (.param .b64 r) next(.param .b64 x)
{{
    .reg .b64 %a;
    ld.param.b64 %a, [x]; add.u64 %a, %a, 8; st.param.b64 [r], %a;
    ret;
}}
.func (.reg .b64 r) same(.reg .b64 x) {{ mov.b64 r, x; ret; }}
.func itself(.param .b64 x)
{{
    .reg .b64 %a;
    ld.param.b64 %a, [x]; st.b64 [%a], %a;
    ret;
}}
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 n)
{{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
    .shared .align 8 .b64 s; .local .align 8 .b8 l[32];
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [n]; mov.u32 %r0, %tid.x;
    {}
    ret;
}}
"""
CALL = "{{ .param .b64 x; .param .b64 y; st.param.b64 [x], {}; call.uni (y), next, (x); ld.param.b64 %d3, [y]; }}"
STORED = {
    "as it is": "st.global.u64 [%d1], %d0;",
    "an element's": "mad.wide.u32 %d3, %r0, 8, %d0; st.global.u64 [%d1], %d3;",
    "by a generic address": "cvta.to.global.u64 %d3, %d0; cvta.global.u64 %d4, %d3; st.u64 [%d4], %d4;",
    "a half": "cvt.u32.u64 %r1, %d0; st.global.u32 [%d1], %r1;",
    "halves": "mov.b64 {%r1, %r2}, %d0; st.global.v2.u32 [%d1], {%r0, %r2};",
    "one of two": "setp.eq.u32 %p0, %r0, 0; selp.b64 %d3, %d0, %d1, %p0; st.global.u64 [%d1], %d3;",
    "another lane's": "cvt.u32.u64 %r1, %d0; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; st.global.u32 [%d1], %r2;",
    "a variable's": "mov.u64 %d3, v; st.global.u64 [%d1], %d3;",
    "a function's": "mov.u64 %d3, nothing; st.global.u64 [%d1], %d3;",
    "through shared memory": "st.shared.u64 [s], %d0; ld.shared.u64 %d3, [s]; st.global.u64 [%d1], %d3;",
    "later in a loop": "L: st.global.u64 [%d1], %d3; mov.u64 %d3, %d0; bra L;",
    "an atomic operand": "atom.global.exch.b64 %d3, [%d1], %d0;",
    "to where another one tells": "ld.global.u64 %d3, [%d0]; st.global.u64 [%d3], %d0;",
    "from a call": f"{CALL.format('%d0')} st.global.u64 [%d1], %d3;",
    "from a call in registers": "call.uni (%d3), same, (%d0); st.global.u64 [%d1], %d3;",
    "in a call": "{ .param .b64 x; st.param.b64 [x], %d0; call.uni itself, (x); }",
}
KEPT = {
    "a number": "st.global.u64 [%d1], %d2;",
    "what is there": "ld.global.u64 %d3, [%d0]; st.global.u64 [%d1], %d3;",
    "whether it is null": "setp.eq.u64 %p0, %d0, 0; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d1], %r1;",
    "an offset": "mov.u32 %r1, s; st.global.u32 [%d1], %r1;",
    "to local memory": """mov.u64 %d3, l; cvta.local.u64 %d4, %d3; st.u64 [%d4], %d0; st.u64 [%d4+8], %d1; ld.u64 %d5, [%d4+8];
        st.u32 [%d4+16], %r0; ld.u32 %r1, [%d4+16]; st.global.u32 [%d5], %r1;""",
    "a number from a call": f"{CALL.format('%d2')} st.global.u64 [%d1], %d3;",
    "a number beside one in shared memory": "st.shared.u64 [s], %d0; st.global.u64 [%d1], %d2;",
}


def stored(body: str) -> bool:
    """Does a kernel store the address of `a`, of `b`, or of something of the module?"""
    kernel = ptxvm.load(TEXT.format(body)).kernel()
    return stores_address(called(kernel.module.image, kernel.function), pointers(kernel.function)[:2]) is not None


@pytest.mark.parametrize("body", STORED.values(), ids=STORED)
def test_what_is_made_of_an_address_is_found(body: str) -> None:
    assert stored(body)


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_is_no_address_or_stays_in_the_cta_is_not(body: str) -> None:
    assert not stored(body)

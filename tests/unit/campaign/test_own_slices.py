"""Output slices: what each CTA writes is known where addresses are affine in its number, and nothing else is taken for such."""

from __future__ import annotations

from struct import pack

import numpy as np
import pytest

import ptxvm
from ptxvm.campaign.own_slices import Slice, own_slices
from ptxvm.machine.launch import launch_shape

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.global .u32 g[64];
.func f() {{ ret; }}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n, .param .align 4 .b8 s[12], .param .f32 x)
{{
    .reg .u64 %p<12>; .reg .u32 %r<16>; .reg .u16 %h<4>; .reg .pred %q<3>; .reg .f32 %f<3>; .reg .v2 .u32 %v;
    .shared .u32 t[64];
    ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; setp.lt.u32 %q0, %r2, 7;
    mad.lo.s32 %r4, %r1, %r3, %r2;
    {}
    ret;
}}
"""
WHOLE, PART = {0: Slice(0, 128, whole=True)}, {0: Slice(0, 128, whole=False)}
TO = "add.u64 %p3, %p0, %p2; st.global.u32 [%p3], 1;"  # the store whose offset is in %p2


def found(body: str, grid: object = 16, block: object = 32, array: np.ndarray | None = None) -> dict[int, Slice]:
    """The slices of a kernel whose argument n is 32, s three words, and x a float."""
    a = np.zeros(512, np.uint32) if array is None else array
    args = [a, np.zeros(512, np.uint32), 32, pack("3I", 4, 5, 6), np.float32(1)]
    function = ptxvm.load(KERNEL.format(body)).kernel().function
    return own_slices(function, args, launch_shape(grid, block))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "slices"),
    [
        ("mul.wide.s32 %p2, %r4, 4;" + TO, WHOLE),
        ("mul.wide.u32 %p2, %r4, 4; cvta.to.global.u64 %p4, %p0; add.s64 %p3, %p4, %p2; st.global.f32 [%p3], %f0;", WHOLE),
        ("cvt.u64.u32 %p4, %r4; shl.b64 %p2, %p4, 2;" + TO, WHOLE),
        ("shl.b32 %r5, %r4, 2; cvt.s64.s32 %p2, %r5;" + TO, WHOLE),
        ("mad.wide.u32 %p3, %r4, 4, %p0; st.u32 [%p3], 1;", WHOLE),
        ("mad.lo.u32 %r5, %r0, %r1, %r2; mul.wide.u32 %p2, %r5, 4;" + TO, WHOLE),  # n is 32, as the block
        ("shl.b32 %r5, %r1, 5; or.b32 %r6, %r5, %r2; mul.wide.u32 %p2, %r6, 4;" + TO, WHOLE),
        ("shl.b32 %r5, %r1, 5; or.b32 %r6, %r2, %r5; mul.wide.u32 %p2, %r6, 4;" + TO, WHOLE),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; st.global.u32 [%p3+8], 1;", {0: Slice(8, 128, whole=True)}),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; st.global.u32 [%p3+-8], 1;", {0: Slice(-8, 128, whole=True)}),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, 16; sub.u64 %p5, %p3, 16; add.u64 %p6, %p5, %p2; st.global.u32 [%p6], 1;",
         WHOLE),
        ("mad.wide.u32 %p3, %r4, 8, %p0; st.global.v2.u32 [%p3], {%r1, %r2};", {0: Slice(0, 256, whole=True)}),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p4, %p1, %p2; ld.global.u32 %r7, [%p4];" + TO, WHOLE),
        ("mul.wide.u32 %p2, %r4, 4; st.shared.u32 [t], 1;" + TO, WHOLE),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; @%q0 st.global.u32 [%p3], 1;", PART),
        ("mul.wide.u32 %p2, %r4, 4; @%q0 bra E; add.u64 %p3, %p0, %p2; st.global.u32 [%p3], 1; E:", PART),
        ("mul.wide.u32 %p2, %r4, 4; @%q0 ret;" + TO, PART),
        ("mul.wide.u32 %p2, %r4, 4; L: add.u32 %r9, %r9, 1; setp.lt.u32 %q1, %r9, %r2; @%q1 bra L;" + TO, WHOLE),
        ("mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; st.global.u16 [%p3], %h0;", {0: Slice(0, 128, whole=False)}),
        ("sub.u32 %r5, 31, %r2; mad.lo.u32 %r6, %r1, 32, %r5; mul.wide.u32 %p2, %r6, 4;" + TO, PART),
        ("mul.wide.u32 %p2, %r4, 8; add.u64 %p3, %p0, %p2; st.global.u32 [%p3], 1; st.global.u32 [%p3+4], 1;",
         {0: Slice(0, 256, whole=False)}),
        ("mov.u32 %r5, WARP_SZ; mad.lo.u32 %r6, %r1, %r5, %r2; mul.wide.u32 %p2, %r6, 4;" + TO, WHOLE),
        ("mov.u32 %r5, %nctaid.y; mul.lo.u32 %r6, %r5, %r4; mul.wide.u32 %p2, %r6, 4;" + TO, WHOLE),
        ("mov.u32 %r5, %ctaid.y; add.u32 %r6, %r5, %r4; mul.wide.u32 %p2, %r6, 4;" + TO, WHOLE),
        ("selp.b32 %r5, %r4, %r4, %q0; mul.wide.u32 %p2, %r5, 4;" + TO, WHOLE),
        ("cvt.u16.u32 %h0, %r4; cvt.u32.u16 %r5, %h0; mul.wide.u32 %p2, %r5, 4;" + TO, WHOLE),
        ("", {}),
    ],
)  # fmt: skip
def test_stores_at_affine_addresses(body: str, slices: dict[int, Slice]) -> None:
    assert found(body) == slices


@pytest.mark.parametrize(
    "body",
    [
        "mul.wide.u32 %p2, %r2, 4;" + TO,  # all CTAs write alike
        "mul.wide.u32 %p2, %r4, 2;" + TO,  # elements that overlap
        "mad.lo.u32 %r5, %r1, 31, %r2; mul.wide.u32 %p2, %r5, 4;" + TO,  # the last element of a CTA is the first of the next
        "mul.wide.u32 %p2, %r1, 4; add.u64 %p4, %p3, %p2; st.global.u32 [%p4], 1; mul.wide.u32 %p2, %r4, 4;" + TO,
        "mad.wide.u32 %p3, %r4, 4, %p0; mad.wide.u32 %p4, %r1, 4, %p0; st.u32 [%p3], 1; st.u32 [%p4], 1;",  # two steps
        "mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; st.global.u32 [%p3], 1; st.global.u32 [%p3+4], 1;",
        "mul.wide.u32 %p2, %r4, 4; ld.global.u32 %r7, [%p0];" + TO,  # it is read
        "mul.wide.u32 %p2, %r4, 4; st.global.u32 [g], 1;" + TO,  # a variable
        "mul.wide.u32 %p2, %r4, 4; ld.global.u64 %p4, [%p1]; add.u64 %p5, %p1, %p4; st.global.u32 [%p5], 1;" + TO,
        "mul.wide.u32 %p2, %r4, 4; red.global.add.u32 [%p1], 1;" + TO,
        "mul.wide.u32 %p2, %r4, 4; call f;" + TO,
        "mul.wide.u32 %p2, %r4, 4; st.global.u32 [%p1], 1;" + TO,  # the other array has none
        "mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p0, %p2; st.volatile.global.u32 [%p3], 1;",
        "mov.u32 %r5, %r4; @%q0 mov.u32 %r5, 0; mul.wide.u32 %p2, %r5, 4;" + TO,  # two definitions
        "@%q0 bra E; mul.wide.u32 %p2, %r4, 4; E:" + TO,  # a path without a definition
        "mul.wide.u32 %p2, %r8, 4;" + TO,  # none at all
        "L: add.u32 %r5, %r5, %r3; mul.wide.u32 %p2, %r5, 4; @%q0 bra L;" + TO,  # it depends on itself
        "mul.lo.u32 %r5, %r4, 0x7fffffff; mul.wide.u32 %p2, %r5, 4;" + TO,  # it wraps
        "sub.u32 %r5, %r4, 1; mul.wide.u32 %p2, %r5, 4;" + TO,  # -1 is a large unsigned number
        "mul.lo.u32 %r5, %r4, %r4; mul.wide.u32 %p2, %r5, 4;" + TO,
        "shl.b32 %r5, %r4, %r2; mul.wide.u32 %p2, %r5, 4;" + TO,
        "or.b32 %r5, %r4, 1; mul.wide.u32 %p2, %r5, 4;" + TO,
        "xor.b32 %r5, %r4, 1; mul.wide.u32 %p2, %r5, 4;" + TO,
        "popc.b32 %r5, %r4; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mul.hi.u32 %r5, %r4, 3; mul.wide.u32 %p2, %r5, 4;" + TO,
        "selp.b32 %r5, %r4, %r1, %q0; mul.wide.u32 %p2, %r5, 4;" + TO,
        "cvt.rn.f32.u32 %f0, %r4; cvt.rzi.u32.f32 %r5, %f0; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mov.f32 %f0, 0f3f800000; add.f32 %f1, %f0, %f0; mov.b32 %r5, %f1; mul.wide.u32 %p2, %r5, 4;" + TO,
        "ld.param.f32 %f0, [x]; mov.b32 %r5, %f0; mul.wide.u32 %p2, %r5, 4;" + TO,
        "cvt.rni.f32.f32 %f1, %f0; mov.b32 %r5, %f1; mul.wide.u32 %p2, %r5, 4;" + TO,
        "prmt.b32 %r5, %r4, 0, 0x3210; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mov.u32 %r5, %laneid; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mov.u32 %r5, %clock; mad.lo.u32 %r6, %r5, 0, %r4; mul.wide.u32 %p2, %r6, 4;" + TO,
        "mov.u32 %r5, %ntid.w; mad.lo.u32 %r6, %r5, 0, %r4; mul.wide.u32 %p2, %r6, 4;" + TO,
        "ld.param.u32 %r5, [s]; mad.lo.u32 %r6, %r1, %r5, %r2; mul.wide.u32 %p2, %r6, 4;" + TO,  # a part of a structure
        "ld.param.u32 %r5, [s+4]; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mov.v2.u32 %v, {%r4, %r1}; mul.wide.u32 %p2, %v.x, 4;" + TO,
        "cvt.u32.u64 %r5, %p0; mul.wide.u32 %p2, %r5, 4;" + TO,  # an address that is cut
        "add.u64 %p4, %p0, %p1; st.global.u32 [%p4], 1;",
        "sub.u64 %p4, %p0, %p1; st.global.u32 [%p4], 1;",
        "shl.b64 %p4, %p0, 1; st.global.u32 [%p4], 1;",
        "mov.u64 %p4, g; mul.wide.u32 %p2, %r4, 4; add.u64 %p5, %p4, %p2; add.u64 %p3, %p0, %p5; st.global.u32 [%p3], 1;",
        "activemask.b32 %r5; mul.wide.u32 %p2, %r5, 4;" + TO,
        "mov.b64 {%r5, %r6}, %p0; mul.wide.u32 %p2, %r5, 4;" + TO,
        "st.global.u32 [%p0+0], 1;",
        "cvta.shared.u64 %p4, %p0; mul.wide.u32 %p2, %r4, 4; add.u64 %p3, %p4, %p2; st.global.u32 [%p3], 1; st.u32 [%p1], 1;",
    ],
)
def test_all_else_has_none(body: str) -> None:
    assert found(body) == {}


def test_the_shape_of_a_launch_counts() -> None:
    """A grid of two dimensions has none; what a block of two dimensions writes is known, but not that it is all of it."""
    body = "mul.wide.u32 %p2, %r4, 4;" + TO
    assert found(body, (8, 2)) == {}
    assert found(body, 16, (32, 2)) == PART
    assert found(body, 16, 64) == {0: Slice(0, 256, whole=True)}


def test_too_few_arguments_have_none() -> None:
    """The launch refuses them."""
    function = ptxvm.load(KERNEL.format("mul.wide.u32 %p2, %r4, 4;" + TO)).kernel().function
    assert own_slices(function, [], launch_shape(16, 32)) == {}


def test_a_kernel_without_instructions_has_none() -> None:
    function = ptxvm.load(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { }").kernel().function
    assert own_slices(function, [], launch_shape(16, 32)) == {}

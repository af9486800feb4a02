"""Which sort of register an operand takes: untyped, integer or float of the same size; ptxas 13.0.88's verdicts on PTX 9.0."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.diagnostics import Severity

MODULE = """.version 9.0
.target {target}
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<40>; .reg .u32 %u<40>; .reg .s32 %s<40>; .reg .f32 %f<40>; .reg .f16x2 %x<40>;
    .reg .b64 %d<9>; .reg .u64 %w<9>; .reg .f64 %fd<9>; .reg .b16 %h<9>; .reg .u16 %y<9>; .reg .pred %p<9>;
    .shared .align 16 .b8 s[64];
    {line}
    ret;
}}
"""
SPARSE = "mma.sp::ordered_metadata.sync.aligned"


def vector(sort: str, count: int) -> str:
    """A vector of registers of a sort."""
    return "{" + ", ".join(f"%{sort}{n}" for n in range(count)) + "}"


def sparse(types: str, counts: tuple[int, int, int, int], sorts: str) -> str:
    """A sparse product whose D, A, B, C and metadata are in registers of five sorts."""
    matrices = ", ".join(vector(sort, count) for sort, count in zip(sorts, counts, strict=False))
    return f"{SPARSE}.{types} {matrices}, %{sorts[4]}9, 0;"


HALVES = "m16n8k16.row.col.f16.f16.f16.f16", (2, 2, 2, 2)
INTEGERS = "m16n8k32.row.col.s32.s8.s8.s32", (4, 2, 2, 4)
WIDE = "m16n8k16.row.col.f32.bf16.bf16.f32", (4, 2, 2, 4)
ONES = f"{{{', '.join(['0f3F800000'] * 4)}}}"
BYTES = "wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32"
PRODUCT = "wgmma.mma_async.sync.aligned"
TENSOR = "tcgen05.mma.cta_group::1.kind::f16"
EXTREME = "tcgen05.ld.red.sync.aligned.32x32b.x2.min"
QUARTERS, BITS = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32"
HALF_BYTES = "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32"
SPARSE_HALF_BYTES, WMMA = (
    "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32",
)
SMALL = "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16"
SMALL_SUM = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
SMALL_BYTES = "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32"
DOUBLES = "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64"
CONVERTED = "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f32"
TF32 = "wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32"
TAKEN = [
    ("sm_75", f"{QUARTERS} {vector('r', 4)}, {{%laneid, %r2}}, {vector('r', 2)}, {vector('r', 4)};"),
    ("sm_89", f"{HALF_BYTES} {vector('r', 2)}, {{%laneid}}, {{%r2}}, {{%r3, %laneid}};"),
    ("sm_90a", f"{BITS}.and.popc {vector('r', 2)}, {{%laneid}}, {{%r2}}, {vector('r', 2)};"),
    ("sm_89", f"{WMMA} {vector('r', 2)}, {{%r1}}, {{%r2}}, {{%laneid, %r3}};"),
    ("sm_90a", "st.shared.v2.f32 [s], {%f1, %tid.y};"),
    ("sm_90a", "st.shared.v2.b16 [s], {%tid.x, %tid.y};"),
    ("sm_90a", "st.shared.v2.b64 [s], {%d1, %clock64};"),
    ("sm_90a", "mov.b64 %d1, {%laneid, %tid.x};"),
    ("sm_90a", sparse(*HALVES, "rrrrf")),
    ("sm_90a", sparse(*HALVES, "xxxxu")),
    ("sm_90a", sparse(*INTEGERS, "sffur")),
    ("sm_90a", sparse(*WIDE, "fffff")),
    ("sm_90a", f"{PRODUCT}.m64n8k16.f16.f16.f16 {vector('x', 2)}, {vector('x', 4)}, %d2, %p1, 1, 1, 0;"),
    ("sm_90a", f"{PRODUCT}.m64n8k32.s32.s8.s8 {vector('s', 4)}, %w1, %d2, %p1;"),
    ("sm_100a", f"{TENSOR} [%r1], %w1, %w2, %u3, %p1;"),
    ("sm_103a", f"{EXTREME}.f32 {vector('f', 2)}, %s5, [%r1];"),
    ("sm_103a", f"{EXTREME}.u32 {vector('f', 2)}, {{%f5}}, [%r1];"),
    ("sm_90a", f"{SPARSE}.{INTEGERS[0]} {vector('r', 4)}, {{%r1, 1}}, {vector('r', 2)}, {{1, 2, 3, 4}}, %r9, 0;"),
    (
        "sm_90a",
        f"{SPARSE}.{WIDE[0]} {vector('f', 4)}, {vector('r', 2)}, {{1, %r1}}, {ONES}, %r9, 0;",
    ),
    ("sm_90a", "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1, %r2}, {1}, {%r3}, {4, 5};"),
    ("sm_90a", "mbarrier.arrive.shared.b64 %w1, [s];"),
    ("sm_90a", "ld.global.L2::cache_hint.b32 %r1, [%d1], %w1;"),
    ("sm_90a", "red.global.add.noftz.v2.f16x2 [%d1], {%x1, %x2};"),
    ("sm_90a", "st.global.v2.f32 [%d1], {%u1, %u2};"),
    ("sm_100a", "multimem.ld_reduce.relaxed.gpu.global.add.v4.bf16 {%y1, %y2, %y3, %y4}, [%d1];"),
    ("sm_100a", "multimem.st.relaxed.gpu.global.bf16x2 [%d1], %u1;"),
    ("sm_100a", "multimem.st.relaxed.gpu.global.bf16x2 [%d1], 1;"),
    ("sm_100a", "cvt.rz.ue8m0x2.bf16x2 %h1, %f2;"),
    ("sm_100a", "cvt.rn.bf16x2.ue8m0x2 %x1, %h2;"),
    ("sm_100a", "cvt.pack.sat.s16.s32 %x1, %x2, %s3;"),
    ("sm_100a", "add.f32.bf16 %f1, %y2, %f3;"),
    ("sm_100a", "fma.rn.f32.bf16 %f1, %y2, 1, %f3;"),
    ("sm_100a", "set.gtu.bf16.bf16 %y1, %h2, %h3;"),
    ("sm_100a", "set.gtu.bf16x2.bf16x2 %f1, %r2, %r3;"),
    ("sm_100a", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2, 1};"),
    ("sm_100a", "tcgen05.shift.cta_group::1.down [%x1];"),
    ("sm_100a", "cp.async.bulk.prefetch.tensor.2d.L2.global [%fd1, {%r1, %r2}];"),
    ("sm_90a", "ld.global.v2.u32 {%laneid, %r1}, [%d1];"),
    ("sm_90a", "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %laneid}, [s];"),
    ("sm_90a", "mov.b64 {%r1, %laneid}, %d1;"),
    ("sm_90a", "atom.global.v2.f32.add {%f1, %laneid}, [%d1], {%f1, %f2};"),
    ("sm_90a", "mov.v2.b32 {%r1, %r2}, %r3;"),
    ("sm_90a", f"{SMALL} {vector('r', 2)}, {{%laneid, %r1}}, {{%laneid}}, {vector('r', 2)};"),
    ("sm_120a", f"{SMALL} {{%r1, _}}, {vector('r', 2)}, {{%r1}}, {{%r1, %laneid}};"),
    ("sm_120a", f"{SMALL} {{%r1, %r2.b0}}, {vector('r', 2)}, {{%r1}}, {vector('r', 2)};"),
    ("sm_90a", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%laneid], [%d1], 16, [%laneid];"),
    ("sm_120a", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%clock64], 16, [%r1];"),
    ("sm_120a", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%laneid], [%d1], 16, [%r1];"),
    ("sm_90a", "st.shared.v2.u32 [s], {1.5, 0f3F800000};"),
    ("sm_90a", "st.shared.v2.u32 [s], {%f1, 1.5};"),
    ("sm_90a", "st.shared.v2.u64 [s], {0f3F800000, %fd1};"),
    ("sm_90a", "red.global.add.noftz.v2.f16x2 [%d1], {%f1, 1.5};"),
    (
        "sm_90a",
        f"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {vector('r', 2)}, {{1.5, %f1}}, {{%r3}}, {{1.5, 0f3F800000}};",
    ),
    ("sm_90a", f"{SMALL_SUM} {vector('f', 4)}, {vector('r', 4)}, {vector('r', 2)}, {{1.5, 0f3F800000, 1.5, 1.5}};"),
    ("sm_120a", f"{SMALL_SUM} {vector('f', 4)}, {vector('r', 4)}, {vector('r', 2)}, {{1.5, 1.5, 1.5, 1.5}};"),
    ("sm_120a", f"{SMALL} {vector('r', 2)}, {{1.5, %r1}}, {{%r1}}, {{%f1, 1.5}};"),
    ("sm_90a", "mov.v4.u32 {%u1, %u2, %u3, %u4}, %laneid;"),
    ("sm_90a", "mov.v2.f32 {%f1, %f2}, 1.5;"),
    ("sm_90a", "mov.v2.b64 {%d1, %d2}, s+4;"),
    ("sm_90a", "mov.b64 %d1, {%p1, %r2};"),
    ("sm_90a", "mov.b64 {%r1, %is_explicit_cluster}, %d1;"),
    ("sm_90a", "st.shared.v2.u32 [s], {%r2, %p1};"),
    ("sm_90a", "ld.shared.v2.b32 {%is_explicit_cluster, %r1}, [s];"),
    ("sm_90a", f"mma.sync.aligned.{WIDE[0]} {vector('f', 4)}, {vector('r', 4)}, {{%r1, %p1}}, {vector('f', 4)};"),
    ("sm_90a", f"{HALF_BYTES} {vector('r', 2)}, {{0f3F800000}}, {{%r2}}, {vector('r', 2)};"),
    ("sm_90a", "add.u32 %r1, %r2, k;"),
    ("sm_90a", "copysign.f32 %f1, k, %f2;"),
    ("sm_90a", "vadd.u32.u32.u32 %r1, %r2, k;"),
    ("sm_90a", "bfi.b32 %r1, %r2, k, 3, 4;"),
    ("sm_90a", "st.shared.v2.f32 [s], {%u1.b0, %u2};"),
    ("sm_90a", "st.shared.v2.b32 [s], {1.5, %f1};"),
    ("sm_90a", "mov.b64 %d1, {%f1, 0d3FF0000000000000};"),
    ("sm_90a", "st.shared.v2.b32 [s], {1.5, 0f3F800000};"),
    ("sm_90a", "st.shared.v2.b64 [s], {0f3F800000, 1.5};"),
    ("sm_90a", "stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {1.5, 0f3F800000};"),
    ("sm_90a", "wmma.store.d.sync.aligned.row.m8n8k4.f64 [%d1], {1.5, %fd1};"),
    ("sm_100a", "multimem.st.relaxed.gpu.global.v4.f16x2 [%d1], {%r1, %r2, %r3, 1};"),
    ("sm_90a", "tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%u1, %f2, %f3, %r4}];"),
    ("sm_90a", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%laneid}];"),
    (
        "sm_80",
        f"tex.grad.3d.v4.f32.f32 {vector('f', 4)}, [%d1, {vector('f', 4)}], {{%laneid, %f1, %f2, %f3}}, {vector('f', 4)};",
    ),
    ("sm_90a", f"tex.grad.2d.v4.f32.f32 {vector('f', 4)}, [%d1, {vector('f', 2)}], {{%laneid, %f1}}, {vector('f', 2)};"),
    ("sm_90a", "div.rn.f64 %fd1, k, %fd2;"),
    ("sm_90a", "sqrt.rz.f32 %f1, k;"),
    ("sm_90a", "shfl.sync.idx.b32 %r1, k, %r2, %r3, -1;"),
    ("sm_90a", "fma.rn.f16 %h1, %h2, k, %h3;"),
    ("sm_90a", f"{DOUBLES} {{%fd1, %clock64}}, {{1.5}}, {{%fd2}}, {{1.5, 1.5}};"),
    ("sm_90a", f"{SMALL_BYTES} {vector('r', 2)}, {{%r1}}, {{%r2}}, {{0f3F800000, %r2}};"),
    ("sm_100a", f"{SMALL_BYTES} {vector('r', 2)}, {{%r1}}, {{%f2}}, {{%f1, %r2}};"),
    ("sm_80", f"{BYTES} {vector('r', 8)}, {{%r1}}, {{%r1, %f2, %r3, %r4}}, {vector('r', 8)};"),
    ("sm_90a", f"{TF32} {vector('f', 8)}, {{%r1, %p1, %r2, %r3}}, {vector('r', 4)}, {vector('f', 8)};"),
    ("sm_90a", f"{CONVERTED} {{%r1, %r2, %r3, %r4}}, {vector('r', 8)}, {vector('r', 8)}, {{%laneid, {vector('f', 7)[1:]};"),
    ("sm_90a", "and.pred %p1, k, %p2;"),
    ("sm_100a", "add.f32.f16 %f1, %h1, k;"),
    ("sm_100a", "st.bulk [%laneid], %d1, 0;"),
]
LANE = "[%laneid]"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
TENSOR_COPY = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
REFUSED = [
    ("sm_120a", f"{BULK} {LANE}, [%d1], 16, [%r1];", "P2617"),
    ("sm_120a", f"{BULK} [%r1], [%d1], 16, {LANE};", "P2617"),
    ("sm_120a", f"{TENSOR_COPY} {LANE}, [%d1, {{%r1}}], [%r1];", "P3410"),
    ("sm_120a", f"{TENSOR_COPY} [%r1], [%d1, {{%r1}}], {LANE};", "P3410"),
    ("sm_90a", f"{SMALL} {vector('r', 2)}, {{1.5, %r1}}, {{%r1}}, {vector('r', 2)};", "P2703"),
    ("sm_103a", f"{SMALL} {vector('r', 2)}, {{%r1, 1.5}}, {{%r1}}, {vector('r', 2)};", "P2703"),
    ("sm_90a", f"{SMALL} {vector('r', 2)}, {vector('r', 2)}, {{%r1}}, {{%r1, 0}};", "P2712"),
    ("sm_90a", f"{SMALL} {vector('r', 2)}, {vector('r', 2)}, {{%r1}}, {{%r1, 1.5}};", "P2712"),
    ("sm_90a", f"{SMALL_SUM} {vector('f', 4)}, {vector('r', 4)}, {vector('r', 2)}, {{%r1, 0, 0, 0}};", "P2712"),
    ("sm_90a", "st.shared.v2.u32 [s], {0f3F800000, 1.5};", "P0304"),
    ("sm_90a", "st.shared.v2.u32 [s], {0f3F800000, %f1};", "P0304"),
    (
        "sm_90a",
        f"mma.sync.aligned.{WIDE[0]} {vector('f', 4)}, {vector('r', 4)}, {vector('r', 2)}, {{0f3F800000, 1.5, 1.5, 1.5}};",
        "P0304",
    ),
    ("sm_90a", "st.shared.v4.b32 [s], {%r1, %tid, %r1, %r1};", "P0304"),
    ("sm_90a", "mov.b64 %d1, {%ntid, %r1};", "P0304"),
    (
        "sm_90a",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %tid, %r1, %r1}, {%r1, %r2}, {%r1, %r2};",
        "P0304",
    ),
    ("sm_90a", "st.shared.v2.b16 [s], {%h1, %tid.x};", "P0304"),
    ("sm_90a", "st.shared.v2.b32 [s], {%r1, %clock64};", "P0304"),
    ("sm_90a", "st.shared.v2.b32 [s], {%globaltimer, %laneid};", "P0304"),
    ("sm_90a", "mov.b32 %r1, {%tid.y, %tid.x};", "P0304"),
    ("sm_90a", sparse(*HALVES, "frrrr"), "P2703"),
    ("sm_90a", sparse(*HALVES, "ruuur"), "P2703"),
    ("sm_90a", sparse(*HALVES, "rfrrr"), "P2703"),
    ("sm_90a", sparse(*HALVES, "rrfrr"), "P2703"),
    ("sm_90a", sparse(*INTEGERS, "frrrr"), "P2703"),
    ("sm_90a", sparse(*INTEGERS, "rrrfr"), "P2703"),
    ("sm_90a", f"{SPARSE}.{INTEGERS[0]} {vector('r', 4)}, {{1, 1}}, {vector('r', 2)}, {vector('r', 4)}, %r9, 0;", "P2703"),
    ("sm_90a", f"{SPARSE}.{WIDE[0]} {vector('f', 4)}, {vector('r', 2)}, {{1, 1}}, {vector('f', 4)}, %r9, 0;", "P2703"),
    ("sm_90a", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {1}, {%r3}, {%r4, %r5};", "P2703"),
    ("sm_90a", "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1, %r2}, {%f1}, {%r3}, {4, 5};", "P2703"),
    (
        "sm_90a",
        f"{BYTES} {vector('r', 8)}, {{1}}, {vector('r', 4)}, {vector('r', 8)};",
        "P2703",
    ),
    ("sm_90a", f"{PRODUCT}.m64n8k16.f16.f16.f16 {vector('u', 2)}, %d1, %d2, %p1, 1, 1, 0, 0;", "P2703"),
    ("sm_90a", f"{PRODUCT}.m64n8k16.f32.f16.f16 {vector('f', 4)}, {vector('u', 4)}, %d2, %p1, 1, 1, 0;", "P2703"),
    ("sm_90a", f"{PRODUCT}.m64n8k32.s32.s8.s8 {vector('x', 4)}, %d1, %d2, %p1;", "P2703"),
    ("sm_90a", f"{SPARSE}.{HALVES[0]} {vector('r', 2)}, {vector('r', 2)}, {vector('r', 2)}, {vector('r', 2)}, 5, 0;", "P0304"),
    ("sm_100a", f"{TENSOR} [%u1], %d1, %d2, %r3, %p1;", "P3501"),
    ("sm_100a", "tcgen05.shift.cta_group::1.down [%d1];", "P3501"),
    ("sm_100a", f"{TENSOR} [%r1], [%s2], %d2, %r3, %p1;", "P3501"),
    ("sm_103a", f"{EXTREME}.f32 {vector('f', 2)}, {vector('f', 2)}, [%r1];", "P3503"),
    ("sm_103a", f"{EXTREME}.f32 {vector('f', 2)}, {{_}}, [%r1];", "P3503"),
    ("sm_90a", "mbarrier.arrive.shared.b64 %fd1, [s];", "P0304"),
    ("sm_90a", "mbarrier.test_wait.shared.b64 %p1, [s], %fd2;", "P0304"),
    ("sm_90a", "ld.global.L2::cache_hint.b32 %r1, [%d1], %fd1;", "P0304"),
    ("sm_90a", "createpolicy.cvt.L2.b64 %fd1, %d1;", "P0304"),
    ("sm_90a", "elect.sync %f1|%p1, %r2;", "P0304"),
    ("sm_90a", "match.any.sync.b32 %f1, %r1, -1;", "P0304"),
    ("sm_90a", "red.global.add.noftz.v2.f16x2 [%d1], {%u1, %u2};", "P0304"),
    ("sm_90a", "red.global.add.noftz.v2.bf16 [%d1], {%y1, %y2};", "P0304"),
    ("sm_100a", "multimem.ld_reduce.relaxed.gpu.global.add.bf16x2 _, [%d1];", "P1816"),
    ("sm_100a", "multimem.red.relaxed.gpu.global.add.bf16x2 [%d1], %u1;", "P0304"),
    ("sm_100a", "cvt.rn.tf32.f32 %u1, %f2;", "P0304"),
    ("sm_100a", "cvt.rs.satfinite.e5m2x4.f32 %r1, {%f2, %f3, %f4, %f5}, %u6;", "P0304"),
    ("sm_100a", "cvt.rs.satfinite.e5m2x4.f32 %r1, {%f2, %f3, %f4, %f5}, 1;", "P0304"),
    ("sm_100a", "redux.sync.add.s32 %r1, %x2, -1;", "P0304"),
    ("sm_100a", "add.f32.f16 %f1, %y2, %f3;", "P0304"),
    ("sm_100a", "set.gtu.f16.f16 %y1, %h2, %h3;", "P0304"),
    ("sm_100a", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {1, 1};", "P0304"),
    ("sm_100a", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2, %laneid};", "P3504"),
    ("sm_100a", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2, %laneid}, [%r1];", "P3504"),
    ("sm_90a", "ld.global.b32 %laneid, [%d1];", "P0304"),
    ("sm_90a", "ld.global.v2.b32 {%r1, %tid}, [%d1];", "P0304"),
    ("sm_90a", "ld.global.v2.b32 {%r1, %clock64}, [%d1];", "P0304"),
    ("sm_90a", "wmma.load.a.sync.aligned.m16n16k16.row.global.u8 {%r1, %laneid}, [%d1];", "P2712"),
    ("sm_80", f"{QUARTERS} {vector('r', 4)}, {{%laneid, %r2}}, {vector('r', 2)}, {vector('r', 4)};", "P2712"),
    ("sm_90a", f"{HALF_BYTES} {vector('r', 2)}, {{%r1}}, {{%r2}}, {{%r3, %laneid}};", "P2712"),
    ("sm_90a", f"{BITS}.xor.popc {vector('r', 2)}, {{%laneid}}, {{%r2}}, {vector('r', 2)};", "P2712"),
    ("sm_100a", f"{BITS}.and.popc {vector('r', 2)}, {{%laneid}}, {{%r2}}, {vector('r', 2)};", "P2712"),
    ("sm_90a", f"{SPARSE_HALF_BYTES} {vector('r', 4)}, {vector('r', 2)}, {{%tid.x, %r1}}, {vector('r', 4)}, %r1, 0;", "P2712"),
    ("sm_90a", f"{WMMA} {vector('r', 2)}, {{%r1}}, {{%laneid}}, {vector('r', 2)};", "P2712"),
    ("sm_89", f"{WMMA} {vector('r', 2)}, {{%r1}}, {{%laneid}}, {vector('r', 2)};", "P2712"),
    ("sm_90a", "mov.b32 %r1, %tid;", "P1601"),
    ("sm_90a", "mbarrier.inval.shared.b64 [%laneid];", "P2908"),
    ("sm_90a", "prefetchu.L1 [%clock64];", "P1823"),
    ("sm_100a", f"{TENSOR} [%r1], %d1, %d2, %r3, {{1, 1, 1, 1}}, %p1;", "P0304"),
    ("sm_100a", "cp.async.bulk.prefetch.tensor.2d.L2.global [%clock64, {%r1, %r2}];", "P0304"),
    ("sm_100a", "cvta.to.global.u64 k, %d1;", "P0304"),
    (
        "sm_90a",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%s1, %s2, %s3, %s4}, {%r1, %r2, %r3, %r4}, {1, 1}, {0, 0, 0, 0};",
        "P2703",
    ),
    ("sm_90a", f"{PRODUCT}.m64n8k32.s32.u8.u8 {{1, 1, 1, 1}}, %d1, %d2, %p1;", "P2703"),
    ("sm_90a", "cp.async.ca.shared::cta.global [s], [16], 8;", "P1826"),
    ("sm_90a", "cp.async.bulk.prefetch.L2.global [16], %r2;", "P1826"),
    ("sm_90a", "cp.async.bulk.global.shared::cta.bulk_group [16], [s], 16;", "P1826"),
    ("sm_100a", "st.bulk [16], 8, 0;", "P1826"),
    ("sm_90a", "vmad.s32.u32.u32.s32.po %r1, -%r2.b0, %r3.w0, -%r2.b0;", "P0305"),
    ("sm_90a", "mov.v2.b32 %r1, %r2;", "P1607"),
    ("sm_90a", "mov.v2.b32 {%r1, %r2}, 1.5;", "P0304"),
    ("sm_90a", "mov.v2.f32 {%f1, %f2}, %u3;", "P0304"),
    ("sm_90a", "mov.b64 %d1, {%p1, %p2};", "P0304"),
    ("sm_90a", "mov.b64 %d1, {%is_explicit_cluster, %is_explicit_cluster};", "P0304"),
    ("sm_90a", "st.shared.v2.u32 [s], {%u2, %p1};", "P0304"),
    ("sm_90a", "st.shared.v2.b64 [s], {%d1, %p1};", "P0304"),
    (
        "sm_90a",
        f"{SPARSE}.{INTEGERS[0]} {{%r1, 0f3F800000, %r2, %r3}}, {vector('r', 2)}, {vector('r', 2)}, {vector('r', 4)}, %r9, 0;",
        "P0304",
    ),
    ("sm_90a", "shl.b32 %r1, %r2, k;", "P0304"),
    ("sm_90a", "st.shared.v2.f32 [s], {%u1.b0, %f2};", "P0304"),
    ("sm_90a", "st.shared.v2.b16 [s], {%h1.h1, %h2};", "P0304"),
    ("sm_90a", "st.shared.v2.b64 [s], {%d1.b3, %d2};", "P0304"),
    ("sm_90a", "elect.sync %r1.b0|%p1, 1;", "P0303"),
    ("sm_90a", f"{SMALL} {vector('r', 2)}, {vector('r', 2)}, {{%r1}}, {{%r1, %laneid}};", "P2712"),
    ("sm_100a", f"{SMALL} {{%r1, %laneid}}, {vector('r', 2)}, {{%r1}}, {vector('r', 2)};", "P2712"),
    ("sm_103a", f"{SMALL} {{%r1, _}}, {vector('r', 2)}, {{%r1}}, {vector('r', 2)};", "P2712"),
    ("sm_120a", f"{SMALL} {vector('r', 2)}, {vector('r', 2)}, {{%r1}}, {{%r1, %r1.b0}};", "P2703"),
    ("sm_100a", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2.b0, %r3}, [%r1];", "P3504"),
    ("sm_100a", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2.b0, %r3};", "P3504"),
    ("sm_90a", "redux.sync.add.u32 %r1, k, -1;", "P0304"),
    ("sm_90a", "multimem.red.relaxed.sys.global.add.u32 [%laneid], %r1;", "P1833"),
    ("sm_90a", "st.shared.v2.b32 [s], {k, %r1};", "P0304"),
    ("sm_90a", "add.bf16x2 %r1, k, %r2;", "P0304"),
    ("sm_100a", "multimem.st.relaxed.gpu.global.v4.f16x2 [%d1], {1, %r2, %r3, %r4};", "P0304"),
    ("sm_90a", "tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %f2, %f3, %u4}];", "P0304"),
    ("sm_90a", "tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %f2, %f3, 2}];", "P0304"),
    ("sm_90a", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, %laneid];", "P0304"),
    ("sm_90a", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%gridid}];", "P0304"),
    ("sm_90a", f"mma.sync.aligned.{WIDE[0]} {vector('f', 4)}, {vector('r', 4)}, {{%r1, %gridid}}, {vector('f', 4)};", "P0304"),
    (
        "sm_90a",
        f"tex.grad.3d.v4.f32.f32 {vector('f', 4)}, [%d1, {vector('f', 4)}], {{%laneid, %f1, %f2, %f3}}, {vector('f', 4)};",
        "P2818",
    ),
    (
        "sm_90a",
        f"tex.grad.cube.v4.f32.f32 {vector('f', 4)}, [%d1, {{%f1.h1, %f2, %f3, %f4}}], {vector('f', 4)}, {vector('f', 4)};",
        "P2818",
    ),
    ("sm_90a", "div.u64 %w1, k, %w2;", "P1834"),
    ("sm_90a", "rem.s64 %w1, %w2, k;", "P1834"),
    ("sm_90a", "div.rz.f32 %f1, k, %f2;", "P1834"),
    ("sm_90a", "sqrt.rz.f64 %fd1, k;", "P1834"),
    ("sm_80", "shfl.sync.idx.b32 %r1, k, %r2, %r3, -1;", "P1834"),
    ("sm_80", "match.any.sync.b32 %r1, k, -1;", "P1834"),
    ("sm_80", "st.shared.v2.b32 [s], {%cluster_ctarank, %r1};", "P0307"),
    ("sm_80", "st.shared.b32 [%cluster_ctarank], %r1;", "P0307"),
    ("sm_90a", f"{DOUBLES} {vector('fd', 2)}, {{%clock64}}, {{%fd2}}, {vector('fd', 2)};", "P2712"),
    ("sm_90a", f"{SMALL_BYTES} {vector('r', 2)}, {{%f1}}, {{%r2}}, {vector('r', 2)};", "P2703"),
    ("sm_90a", f"{SMALL_BYTES} {vector('r', 2)}, {{%r1}}, {{0f3F800000}}, {vector('r', 2)};", "P2703"),
    ("sm_100a", f"{SMALL_BYTES} {vector('r', 2)}, {{%f1}}, {{%r2}}, {vector('r', 2)};", "P2703"),
    ("sm_100a", f"{SMALL_BYTES} {vector('r', 2)}, {{%r1}}, {{%r2}}, {{%r2, 0f3F800000}};", "P2703"),
    ("sm_90a", f"{TF32} {vector('f', 8)}, {vector('r', 4)}, {{%r1, %f1, %r2, %r3}}, {vector('f', 8)};", "P2703"),
    ("sm_90a", f"{TF32} {vector('f', 8)}, {vector('r', 4)}, {{%r1, %r2, %r3, %p1}}, {vector('f', 8)};", "P2703"),
    ("sm_90a", f"{CONVERTED} {{%r1, %r2, %r3, %laneid}}, {vector('r', 8)}, {vector('r', 8)}, {vector('f', 8)};", "P2712"),
    ("sm_90a", "selp.u32 %r1, %r2, %r3, k;", "P0304"),
    ("sm_90a", "and.pred %p1, !k, %p2;", "P0304"),
    ("sm_100a", "add.f32.bf16 %f1, k, %f2;", "P0304"),
    ("sm_90a", "wmma.store.d.sync.aligned.row.m8n8k4.f64 [%d1], {%clock64, %fd1};", "P2712"),
    ("sm_90a", "wmma.load.b.sync.aligned.row.m8n8k4.f64 {%clock64}, [%d1];", "P2712"),
    ("sm_75", f"{BYTES} {vector('r', 8)}, {{%r1}}, {{%r1, %f2, %r3, %r4}}, {vector('r', 8)};", "P2703"),
    ("sm_100a", "st.bulk.shared::cta [%laneid], %d1, 0;", "P3208"),
    ("sm_90a", "st.shared.v2.b32 [s], {0f3F800000, 1.5};", "P0304"),
    ("sm_90a", "st.shared.v2.b64 [s], {1.5, 0f3F800000};", "P0304"),
    ("sm_90a", f"wmma.store.d.sync.aligned.row.m16n16k16.f32 [%d1], {{1.5, {vector('f', 7)[1:]};", "P2703"),
    ("sm_90a", f"wmma.store.d.sync.aligned.row.m16n16k16.f16 [%d1], {{1.5, {vector('r', 3)[1:]};", "P2703"),
    ("sm_100a", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2, 1.5};", "P2703"),
    ("sm_90a", "ld.global.u32 %r1, [%clock64].unified;", "P0303"),
    ("sm_90a", "stackrestore.u32 k;", "P2304"),
]


def codes(target: str, line: str) -> set[str]:
    """The errors of an instruction."""
    found = ptxvm.check(MODULE.format(target=target, line=line))
    return {each.code for each in found if each.severity is Severity.ERROR}


@pytest.mark.parametrize(("target", "line"), TAKEN)
def test_a_register_that_ptxas_takes(target, line):
    assert codes(target, line) == set()


@pytest.mark.parametrize(("target", "line", "code"), REFUSED)
def test_a_register_that_ptxas_refuses(target, line, code):
    assert codes(target, line) == {code}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mov.v2.f32 {%f0, %f1}, %f2;", "'mov.v2.f32' of one register"),
        ("mov.v4.b16 {%h0, %h1, %h2, %h3}, %h4;", "'mov.v4.b16' of one register"),
        ("mov.b64 %d, {%p, %r};", "a predicate among the elements of a vector"),
        ("mov.b64 {%p, %r}, %d;", "a predicate among the elements of a vector"),
        ("and.pred %p, k, %p;", "a function as a predicate"),
    ],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_what_ptxas_takes_without_a_meaning_is_not_run(engine, line, said):
    head = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    registers = ".reg .f32 %f<3>; .reg .b16 %h<5>; .reg .b64 %d; .reg .b32 %r; .reg .pred %p;"
    module = ptxvm.load(f"{head}.entry k ()\n{{\n  {registers}\n  {line}\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported, match=said):
        module.kernel().launch(engine=engine)


NOT_ALLOWED = "Special register argument not allowed for instruction"
MISMATCH = "Arguments mismatch for instruction"
SM_90 = "requires .target sm_90 or higher"
SPECIAL = {
    "mov.u32 %r1, %cluster_ctarank;": [f"Feature '%cluster_ctarank' {SM_90}"],
    "cvt.u64.u32 %d1, %cluster_ctarank;": [f"Feature '%cluster_ctarank' {SM_90}"],
    "mov.v4.u32 {%r1, %r2, %r3, %r4}, %cluster_ctaid;": [f"Feature '%cluster_ctaid' {SM_90}"],
    "add.u32 %r1, %cluster_ctarank, 1;": [f"Feature '%cluster_ctarank' {SM_90}", f"{NOT_ALLOWED} 'add'"],
    "st.shared.b32 [%cluster_ctarank], %cluster_ctarank;": [
        f"Feature '%cluster_ctarank' {SM_90}", f"Feature '%cluster_ctarank' {SM_90}", f"{NOT_ALLOWED} 'st'",
    ],
    "add.u32 %r1, %tid.x, %ctaid.x;": [f"{NOT_ALLOWED} 'add'"] * 2,
    "add.u32 %r1, %tid.x, %f1;": [f"{MISMATCH} 'add'"],
    "add.u64 %d1, %tid.x, %d1;": [f"{MISMATCH} 'add'"],
    "add.f32 %f1, %tid.x, %f1;": [f"{NOT_ALLOWED} 'add'"],
    "setp.eq.and.u32 %p1, %r1, %r2, %is_explicit_cluster;": [
        f"Feature '%is_explicit_cluster' {SM_90}", f"{NOT_ALLOWED} 'setp'",
    ],
    "bar.sync 0, %ntid.x;": [f"{NOT_ALLOWED} 'bar'"],
}  # fmt: skip


@pytest.mark.parametrize(("line", "said"), SPECIAL.items())
def test_special_registers_are_refused_in_the_words_of_ptxas(line, said):
    """What each needs is told wherever it stands; that it may not stand there, where all operands have their types."""
    found = ptxvm.check(MODULE.format(target="sm_80", line=line))
    assert [each.ptxas or each.message for each in found if each.severity is Severity.ERROR] == said

"""What the syntax of an instruction allows and the manual forbids; ptxas 13.5.37 accepts and refuses the same lines.

`tests/oracle/test_ptxas_variants.py` holds samples of all rules against ptxas; here are those that no conformance file has.
"""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.diagnostics import Severity

MODULE = """.version {version}
.target {target}
.address_size 64
.global .align 128 .b8 g[256];
.global .texref t;
.global .surfref plate;
.visible .entry k()
{{
    .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .f32 %f<8>; .reg .pred %p<2>; {wide}
    .shared .align 128 .b8 s[256];
    {line}
    ret;
}}
"""


def codes(line: str, target: str, version: str) -> set[str]:
    """The errors of an instruction."""
    wide = ".reg .b128 %q;" if "%q" in line else ""
    found = ptxvm.check(MODULE.format(version=version, target=target, line=line, wide=wide))
    return {each.code for each in found if each.severity is Severity.ERROR}


STORED = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
COMBINED = "red.async.relaxed.cluster.shared::{}.mbarrier::complete_tx::bytes"
ASYNCHRONOUS = [  # PTX 9.7.9.12, 9.7.9.13, 9.7.13.7
    (f"{STORED}.v2.b32 [%d0], {{%r0, %r1}}, [%d1];", set()),
    (f"{STORED}.v4.b64 [%d0], {{%d0, %d1, %d2, %d3}}, [%d1];", {"P3203"}),
    (f"{STORED}.v2.b32 [%d0], {{%r0, %r1, %r2, %r3}}, [%d1];", {"P3203"}),
    ("st.async.release.gpu.global.v2.b32 [%d0], {%r0, %r1};", {"P3203"}),
    ("st.async.release.sys.global.u32 [%d0], %r0, [%d1];", {"P3201"}),
    ("st.async.release.gpu.shared::cluster.u32 [%d0], %r0;", {"P3201", "P3202"}),
    ("st.async.weak.shared::cluster.u32 [%d0], %r0, [%d1];", {"P3201"}),
    (f"{COMBINED.format('cluster')}.add.u32 [%d0], %r0, [%d1];", set()),
    (f"{COMBINED.format('cluster')}.and.u32 [%d0], %r0, [%d1];", {"P3205"}),
    (f"{COMBINED.format('cta')}.inc.u32 [%d0], %r0, [%d1];", {"P3202"}),
    ("red.async.release.cluster.global.add.u32 [%d0], %r0;", {"P3201", "P3202"}),
    ("st.bulk.weak.shared::cta [%d0], 16, 0;", set()),
    ("st.bulk.weak.shared::cta [%d0], 20, 0;", {"P3206"}),
    ("st.bulk.weak.shared::cta [%d0], 16777224, 0;", {"P3206"}),
    ("st.bulk.weak.shared::cta [%d0], 16, 1;", {"P3207"}),
    ("st.bulk.weak.shared::cta [s], 16, 0;", {"P3208"}),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d0], [%d1], 16;", set()),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d0], [%d1], 16;", {"P2615"}),
]
ASYNCHRONOUS.append(("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%d0], [%d1], 16;", {"P2615"}))
CLUSTERS = [  # PTX 9.7.13.18, 9.7.19.5
    ("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, %r3}, %q;", set()),
    ("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1}, %q;", {"P3003"}),
    ("setmaxnreg.inc.sync.aligned.u32 24;", set()),
    ("setmaxnreg.inc.sync.aligned.u32 16;", {"P3002"}),
    ("setmaxnreg.dec.sync.aligned.u32 26;", {"P3002"}),
    ("setmaxnreg.dec.sync.aligned.u32 %r0;", {"P0304"}),
]
MEMORY = [  # PTX 9.7.9.15 to 9.7.9.20, 9.7.13.4, 9.7.19
    ("prefetchu.L1 [16];", {"P1823"}),
    ("prefetchu.L1 [s];", {"P1823"}),
    ("prefetchu.L1 [g];", set()),
    ("cvta.global.u64 %d0, %clock64;", {"P1824"}),
    ("cvta.global.u64 %d0, {%r0, %r1};", {"P1824", "P0304"}),
    ("discard.global.L2 [g], 64;", {"P2303"}),
    ("createpolicy.range.global.L2::evict_last.b64 %d0, [g], 128, 64;", {"P2306"}),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 0.5;", set()),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 0f3F800000;", set()),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, %f0;", set()),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 0.0;", {"P2307"}),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 0d3FF8000000000000;", {"P2307"}),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, -0.5;", {"P2307"}),
    ("fence.proxy.tensormap::generic.acquire.gpu [%d0], 64;", {"P2104"}),
    ("stackrestore.u64 16;", {"P2304"}),
    ("multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.v2.f16x2 {%r0, %r1}, [%d0];", set()),
    ("multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.v2.f16x2 {%r0, %r1}, [%d0];", {"P3104"}),
    ("multimem.red.relaxed.gpu.global.min.f16x2 [%d0], %r0;", {"P3105"}),
    ("mov.u32 _, %r0;", {"P1602"}),
    ("st.global.v2.u32 [g], {_, %r0};", {"P1817"}),
    ("prefetch.local.L2::evict_last [%d0];", {"P1822"}),
    ("isspacep.global %p0, 5;", set()),
    ("isspacep.global %p0, 1.5;", {"P1825"}),
    ("multimem.ld_reduce.relaxed.gpu.global.add.f16 %h0, [%d0];", {"P3102"}),
    ("multimem.ld_reduce.relaxed.gpu.global.min.acc::f32.v2.f16x2 {%r0, %r1}, [%d0];", {"P3104"}),
    ("alloca.u64 %d0, 8, 16;", set()),
    ("alloca.u64 %d0, 8, 3;", {"P2305"}),
    ("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0, %r1, %r2, %r3}, [s];", {"P2730"}),
]
SURFACES = [  # PTX 9.7.10.3, 9.7.11
    ("suld.b.1d.b32.trap {_, _}, [plate, {%r2}];", {"P2902"}),
    ("suld.b.1d.b32.trap {%h0, %h1, %h2}, [plate, {%r2}];", {"P2902"}),
    ("sust.b.1d.b32.trap [plate, {%r2}], {_, %h1};", {"P2903"}),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [t, {%f4, %f5}], %f6, {%r1, %r2};", {"P0303", "P2812"}),
]
COPIED = "cp.async.bulk.tensor.2d.shared::{}.global.mbarrier::complete_tx::bytes.multicast::cluster"
TENSORS = [  # PTX 9.7.9.27, 9.7.9.28, 9.7.16
    (f"{COPIED.format('cluster')} [%r0], [%d1, {{%r0, %r1}}], [%r2], %h0;", set()),
    (f"{COPIED.format('cta')} [%d0], [%d1, {{%r0, %r1}}], [%d2], %h0;", {"P3405"}),
    ("tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], 4, %r0;", set()),
    ("tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], 5, %r0;", {"P3407"}),
    ("tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], 13;", set()),
    ("tensormap.replace.tile.elemtype.global.b1024.b64 [%d0], 13;", {"P3406"}),
    ("tensormap.replace.tile.global_dim.elemtype.global.b1024.b32 [%d0], 1;", {"P0305"}),
    ("tensormap.replace.tile.rank.box_dim.global.b1024.b32 [%d0], 0, 1;", {"P0305"}),
    ("tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], 99;", {"P3408"}),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [%d1], 64;", {"P3409"}),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 64;", set()),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 0;", {"P3502"}),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 33;", {"P3502"}),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 1024;", {"P3502"}),
    ("tcgen05.ld.sync.aligned.16x256b.x128.b32 {%r0}, [%r1];", {"P3503"}),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, _}, [%r1];", {"P3504"}),
    ("tcgen05.cp.cta_group::1.64x128b [%r0], %d0;", {"P3506"}),
    ("tcgen05.cp.cta_group::1.128x256b.warpx4 [%r0], %d0;", {"P3506"}),
    ("tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::fill [%r0], [%r1], %d1, %r2, %p0;", {"P3603"}),
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::4X [%r0], %d0, %d1, %r1, [%r2], [%r3], %p0;", {"P3604"}),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %d1, %d2, %r3, %p1, 15;", set()),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %d1, %d2, %r3, %p1, 16;", {"P3602"}),
    ("tcgen05.mma.cta_group::1.kind::f8f6f4 [%r0], %d1, %d2, %r3, %p1, 3;", {"P3602"}),
    ("mapa.shared::cluster.u32 %r0, s, %r1;", set()),
    ("mapa.shared::cluster.u32 %r0, g, %r1;", {"P3001"}),
    ("prefetch.global.L1 g[1];", {"P0304"}),
    ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r0], %d0, %d1, %r1, [%r2], [%r3], %p0;", {"P3604"}),
]


@pytest.mark.parametrize(("line", "expected"), [*ASYNCHRONOUS, *CLUSTERS, *MEMORY, *SURFACES, *TENSORS])
def test_rules(line: str, expected: set[str]) -> None:
    assert codes(line, "sm_100a", "8.8") == expected


@pytest.mark.parametrize("sum", ["add.acc::f32.u32", "and.acc::f32.b64"])
def test_sums_in_f32_are_of_halves(sum: str) -> None:
    """There is no page of the manual: ptxas 13.5.37 refuses these."""
    bulk = "fabric.try_pullred.async.multimem.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys"
    assert codes(f"{bulk}.{sum}.sync [%r0], [%r1, %d2], 16, [%r2], 0xffffffff;", "sm_103a", "9.5") == {"P3702"}


def test_a_sparse_product_of_no_shape_has_no_registers_to_count() -> None:
    line = "mma.sp.sync.aligned.m16n8k128.row.col.f16.bf16.bf16.f16 {%r0, %r1}, {%r2, %r3, %r4, %r5}, {%r6, %r7, %r8, %r9}, "
    assert codes(line + "{%r0, %r1}, %r10, 0;", "sm_100a", "8.8") == {"P2701", "P2741"}


def test_a_mask_of_bytes_goes_with_its_word() -> None:
    """PTX 9.7.9.25.5"""
    line = "multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%d1], 16;"
    assert codes(line, "sm_100a", "9.1") == {"P2616"}


def test_four_small_floats_stand_in_32_bits() -> None:
    """PTX 9.7.5, 9.4"""
    assert codes("add.e4m3x4.e4m3x4 %r0, %r2, %r1;", "sm_100a", "9.4") == set()
    assert codes("add.e4m3x4.e4m3x4 %r0, %d0, %r1;", "sm_100a", "9.4") == {"P1410"}


MULTIPLIED = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1,"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, %r0,"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{MULTIPLIED} %p0, -1, 1, 0, 0;", set()),
        (f"{MULTIPLIED} 2, 1, 1, 0, 0;", {"P3304"}),
        (f"{MULTIPLIED} %p0, 2, 1, 0, 0;", {"P3304"}),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r0, %r1}, %d0, %d1, %p0, 1, 1, 0, 0;", {"P3306"}),
        (f"{SPARSE} 1, %p0, 1, 1, 0, 0;", set()),
        (f"{SPARSE} 2, %p0, 1, 1, 0, 0;", {"P3305"}),
    ],
)
def test_products_of_warp_groups(line: str, expected: set[str]) -> None:
    """PTX 9.7.15.5, 9.7.15.6"""
    assert codes(line, "sm_90a", "8.2") == expected


SUMS, FOUR, TWO = "{%f0, %f1, %f2, %f3}", "{%r0, %r1, %r2, %r3}", "{%r4, %r5}"
ADDED = "{%f4, %f5, %f6, %f7}"
HALVES = "mma.sp.sync.aligned.m16n8k32.row.col"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
SCALES = "%r6, {%h0, %h1}, %r7, {%h2, %h3}"
SMALL = "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e4m3.f32 {SUMS}, {FOUR}, {TWO}, {ADDED};", {"P2725"}),
        (f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e2m1.e4m3.f32 {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 0;",
         {"P2744"}),
        (f"{HALVES}.f32.f16.f16.f32 {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 0;", set()),
        (f"{HALVES}.f32.bf16.f16.f32 {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 0;", {"P2741"}),
        (f"{HALVES}.f16.f16.f16.f32 {TWO}, {FOUR}, {FOUR}, {TWO}, %r8, 0;", {"P2741"}),
        (f"{HALVES}.f32.f16.f16.f32 {{%f0, %f1, %f2, _}}, {FOUR}, {FOUR}, {ADDED}, %r8, 0;", set()),
        (f"{HALVES}.f32.f16.f16.f32 {{_, _, _, _}}, {FOUR}, {FOUR}, {ADDED}, %r8, 0;", {"P2742"}),
        (f"{HALVES}.f32.f16.f16.f32 {SUMS}, {FOUR}, {FOUR}, {{1, 2, 3, 4}}, %r8, 0;", {"P2703"}),
        (f"{HALVES}.f32.f16.f16.f32 {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 5;", {"P2743"}),
        (f"{SCALED} {SUMS}, {FOUR}, {TWO}, {ADDED}, {SCALES};", set()),
        (f"{SCALED} {SUMS}, {FOUR}, {FOUR}, {ADDED}, {SCALES};", {"P2742"}),
        (f"{SCALED} {SUMS}, {FOUR}, {TWO}, {ADDED}, %r6, {{%h0}}, %r7, {{%h2, %h3}};", {"P2746"}),
        (f"{SMALL} {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 0, {SCALES};", set()),
        (f"{SMALL} {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 1, {SCALES};", {"P2747"}),
    ],
)  # fmt: skip
def test_products_of_warps(line: str, expected: set[str]) -> None:
    """PTX 9.7.14.5, 9.7.14.6"""
    assert codes(line, "sm_120a", "8.8") == expected


def test_products_with_scales_that_came_later() -> None:
    """PTX 9.7.14.5.14: scales of .ue8m0 by fours; PTX 9.7.14.6.3: .kind::mxf4 is of an architecture."""
    scaled = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"
    line = f"{scaled} {SUMS}, {FOUR}, {TWO}, {ADDED}, {SCALES};"
    assert (codes(line, "sm_120a", "8.8"), codes(line, "sm_120a", "9.1")) == ({"P0306"}, set())
    assert codes(f"{SMALL} {SUMS}, {FOUR}, {FOUR}, {ADDED}, %r8, 0, {SCALES};", "sm_120f", "8.8") == {"P0307"}


def test_signed_bytes_are_made_of_four_bits() -> None:
    """PTX 9.7.14.5.15, 9.4"""
    assert codes("ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4 {%r0}, [s];", "sm_100a", "9.4") == set()
    assert codes("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.s4 {%r0}, [s];", "sm_100a", "9.4") == {"P2731"}


@pytest.mark.parametrize(("version", "expected"), [("6.4", set()), ("7.0", {"P2707"})])
def test_saturated_sums_of_halves(version: str, expected: set[str]) -> None:
    """PTX 9.7.14.4.5: since PTX 6.5 they are no more."""
    eight = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
    line = f"wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16.satfinite {FOUR}, {eight}, {eight}, {FOUR};"
    assert codes(line, "sm_75", version) == expected

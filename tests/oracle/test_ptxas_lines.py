"""Lines that ptxas takes beyond the manual, and lines that it refuses without a word of the manual.

Each line was asked of ptxas 13.0 at PTX 9.0; where one is on the PATH it is asked again.  Where ptxas 13.5 answers otherwise
(`isa/variants.jsonl.gz` of the reference data), the line is not here.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ptxas import errors

HEAD = """
.version 9.0
.target {target}
.address_size 64
.global .align 128 .b32 gv[64];
.shared .align 128 .b32 sv[64];
.shared .align 8 .b64 mb;
.global .texref gtex;
.visible .entry k() {{
.reg .pred %p<32>; .reg .b16 %h<32>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .f16 %fh<32>;
.reg .f16x2 %fhh<32>; .reg .f32 %f<64>; .reg .f64 %fd<32>; .reg .s16 %sh<32>; .reg .s32 %s<32>; .reg .b128 %q<32>;
.local .align 16 .b32 lv[64];
"""
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
OWN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
WITHIN = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
REDUCE = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
TENSOR = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
FOUR, HALVES = "{%r1,%r2,%r3,%r4}", "{%r1,%r2}"
SUMS, POINT = "{%f1,%f2,%f3,%f4}", "{%f5,%f6}"
STORE = "st.async.mbarrier::complete_tx::bytes"
SPARSE = f"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {HALVES}, {HALVES}, {HALVES}, {HALVES},"
MMA = "tcgen05.mma.cta_group::1.kind::f16"
FENCED = "[%d1], [%r2], 128"
REPLACE = "tensormap.replace.tile"

TAKEN = {
    "a mask or a policy in the place of an mbarrier": (
        "sm_90a",
        [f"{head} [%d1], [%d2], %r3, {bar};" for head in (BULK, OWN, WITHIN) for bar in ("%h1", "%sh1", "%d3", "0", "-1")]
        + [f"{REDUCE} [%d1], [%d2], %r3, {bar};" for bar in ("%d3", "1")],
    ),
    "the order of a matrix": (
        "sm_100a",
        [
            f"ldmatrix.sync.row.aligned.m8n8.x4.shared.b16 {FOUR}, [sv+16];",
            f"ldmatrix.sync.aligned.m8n8.x4.shared.b16.col {FOUR}, [sv+16];",
            f"stmatrix.sync.col.aligned.m8n8.x4.shared.b16 [sv+16], {FOUR};",
            "movmatrix.sync.row.aligned.m8n8.trans.b16 %r1, %r2;",
            "tcgen05.cp.cta_group::1.row.64x128b.warpx2::01_23 [%r1], %d2;",
            "tcgen05.ld.sync.aligned.row.32x32b.x1.b32 {%r1}, [%r2];",
            "tcgen05.st.sync.aligned.col.32x32b.x1.b32 [%r2], {%r1};",
        ],
    ),
    "the order of a matrix of a warpgroup, and a negated predicate": (
        "sm_90a",
        [
            f"wgmma.mma_async.sync.aligned.m64n8k32.f32.row.e5m2.e5m2 {SUMS}, %d1, %d2, %p1, 1, 1;",
            f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16.col {SUMS}, %d1, %d2, !%p1, 1, 1, 0, 0;",
            f"wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.row.e5m2.e5m2 {SUMS}, %d1, %d2, %r1, 0, !%p1, 1, 1;",
        ],
    ),
    "modifiers of another instruction": (
        "sm_90a",
        ["add.rank.u32 %r1, %r2, %r3;", "clz.elemtype.b64 %r1, %d2;", "mov.notanumber.b32 %r1, %r2;"],
    ),
    "words and predicates for a matrix": (
        "sm_90a",
        [
            f"movmatrix.sync.aligned.m8n8.trans.b16 {operands};"
            for operands in ("%r1, %p1", "%r1, !%p1", "%r1, gv+4", "%r1, 0f3F800000", "%p1, %r1")
        ]
        + [f"{SPARSE} {metadata}, 0;" for metadata in ("gv+4", "0f3F800000", "%f1")],
    ),
    "a predicate for the masks of lanes": (
        "sm_100a",
        [
            f"{MMA}.ashift [%r1], [%r2], %d2, %r3, %p2, %p1, 0;",
            f"{MMA} [%r1], %d1, %d2, %r3, !%p2, %p1, 0;",
            "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %d1, %d2, [%r4], %r3, %p2, %p1, 0;",
        ],
    ),
    "a texture before the brackets": (
        "sm_90a",
        [
            f"tex.base.2d.v4.u32.f32 {FOUR}|%p1, %d3, [%d1, {POINT}];",
            f"tex.2d.v4.u32.f32 {FOUR}, gtex, [%d1, {POINT}];",
            f"tex.level.2d.v4.u32.f32 {FOUR}, %d3, [gtex, {POINT}], %f1;",
            f"tld4.r.2d.v4.u32.f32 {FOUR}, %d3, [%d1, {POINT}];",
        ],
    ),
    "modifiers in another order": (
        "sm_90a",
        [f"tensormap.cp_fenceproxy.global.tensormap::generic.shared::cta.release.gpu.sync.aligned {FENCED};"],
    ),
    "a variable at a generic address": (
        "sm_100a",
        [
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [gv], [lv];",
            "tcgen05.alloc.cta_group::1.sync.aligned.b32 [gv], 32;",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [lv];",
            f"{STORE}.u32 [%d1], %r1, [gv];",
            "st.bulk.weak [sv], 16, 0;",
        ],
    ),
    "addresses that are loaded from": (
        "sm_100a",
        [
            "ld.u32 %r1, [%d1].unified;",
            "ld.global.nc.u32 %r1, [%d1+4].unified;",
            "atom.global.add.u32 %r1, [%d1].unified, %r2;",
            "mbarrier.arrive.b64 _, [%d1].unified;",
            f"{MMA} [%r1], [%r2].unified, %d2, %r3, %p1;",
        ],
    ),
    "what waits for other lanes has addresses for numbers": (
        "sm_90",
        [
            "bar.warp.sync gv+4;",
            "barrier.sync gv+4;",
            "shfl.sync.idx.b32 %r1, gv+4, %r2, %r3, %r4;",
            "vote.sync.all.pred %p1, %p2, gv+4;",
        ],
    ),
    "what is aligned has them on any target": (
        "sm_89",
        ["bar.sync gv+4;", "barrier.sync.aligned gv+4;", "nanosleep.u32 gv+4;"],
    ),
    "registers of several types in a matrix": (
        "sm_90a",
        [
            f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {SUMS}, {FOUR}, {{%f1,%r2}}, {SUMS};",
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1,%s2}, {%r1,%r2}, {%r1}, {%r1,%r2};",
            "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%d1], {1,%r2};",
        ],
    ),
    "constants of 64 bits": (
        "sm_90a",
        [f"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 {SUMS}, %d1, %d2, %p1, 0xFFFFFFFFFFFFFFFF, 1;"],
    ),
    "registers in braces without .vec": ("sm_90", [f"{STORE}.u32 [%r5], {FOUR}, [mb];", f"{STORE}.b64 [%r5], {{%d1}}, [mb];"]),
    "narrow registers where a space is named": (
        "sm_100a",
        [
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%h1];",
            "cp.async.mbarrier.arrive.shared.b64 [%h1];",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r1, [%h1];",
        ],
    ),
}
REFUSED = {
    "`.unified` of what is stored to, of other spaces, of other operands, of a variable without it": (
        "sm_100a",
        [
            "ld.global.u32 %r1, [gv].unified;",
            "ld.shared.u32 %r1, [%d1].unified;",
            "st.global.u32 [%d1].unified, %r1;",
            "red.global.add.u32 [%d1].unified, %r1;",
            "atom.shared.add.u32 %r1, [%d1].unified, %r2;",
            "prefetch.global.L1 [%d1].unified;",
            "mbarrier.init.b64 [%d1].unified, 1;",
            "cp.async.ca.shared.global [%r1], [%d1].unified, 4;",
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r1}], [%r1].unified;",
        ],
    ),
    "addresses for numbers": (
        "sm_100a",
        [
            "ld.global.L2::cache_hint.u32 %r1, [%d1], gv+4;",
            "atom.global.add.L2::cache_hint.u32 %r1, [%d1], %r2, gv+4;",
            "createpolicy.range.L2::evict_first.b64 %d1, [%d1], gv+4, 5;",
            "createpolicy.cvt.L2.b64 %d1, gv+4;",
            "div.u64 %d1, gv+4, 3;",
            "rem.s64 %d1, %d2, gv+4;",
            "vadd.u32.u32.u32 %r1, gv+4, %r2;",
            "vset.u32.u32.lt %r1, %r2, gv+4;",
            "mbarrier.test_wait.b64 %p1, [%d1], gv+4;",
            "mbarrier.pending_count.b64 %r1, gv+4;",
            "tcgen05.cp.cta_group::1.4x256b [%r1], gv+4;",
            f"{MMA} [%r1], gv+4, %d2, %r3, %p1;",
            f"{MMA} [%r1], %d1, %d2, gv+4, %p1;",
            "st.async.release.sys.global.u32 [%d1], gv+4;",
            "red.async.release.sys.global.add.u32 [%d1], gv+4;",
            f"{TENSOR}.L2::cache_hint [%r1], [%d2, {{%r10}}], [mb], gv+4;",
            f"{TENSOR}.multicast::cluster [%r1], [%d2, {{%r10}}], [mb], gv+4;",
        ],
    ),
    "addresses for numbers in descriptors": (
        "sm_90a",
        [
            f"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 {SUMS}, gv+4, %d2, %p1, 1, 1;",
            f"wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e5m2.e5m2 {SUMS}, %d1, gv+4, %r1, 0, %p1, 1, 1;",
        ],
    ),
    "addresses for numbers where lanes are waited for": (
        "sm_89",
        [
            "bar.warp.sync gv+4;",
            "barrier.sync gv+4, 64;",
            "barrier.arrive 1, gv+4;",
            "barrier.red.popc.u32 %r1, gv+4, %p1;",
            "shfl.sync.idx.b32 %r1, gv+4, %r2, %r3, %r4;",
            "vote.sync.all.pred %p1, %p2, gv+4;",
            "match.any.sync.b32 %r1, gv+4, %r2;",
            "redux.sync.add.u32 %r1, %r2, gv+4;",
        ],
    ),
    "narrow registers with addresses": (
        "sm_100a",
        [
            "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%h1];",
            "stmatrix.sync.aligned.m8n8.x1.b16 [%h1], {%r1};",
            "wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%r1,%r2}, [%h1];",
            "createpolicy.range.L2::evict_first.b64 %d1, [%h1], 5, 5;",
            "cp.async.mbarrier.arrive.b64 [%h1];",
            "prefetch.param.tensormap [%h1];",
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%h1], 32;",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%h1];",
            f"{REPLACE}.rank.shared::cta.b1024.b32 [%h1], 3;",
            "multimem.red.add.u32 [%r1], %r2;",
            f"{STORE}.u32 [%h1], %r1, [mb];",
            f"{STORE}.u32 [%r5], %r1, [%h1];",
            "st.bulk.weak.shared::cta [%h1], 16, 0;",
            f"{BULK} [%d1], [%d2], 16, [%h1];",
        ],
    ),
    "narrow registers with addresses in the cluster": (
        "sm_120a",
        [
            f"{BULK} [%h1], [%d1], 16, [mb];",
            f"{BULK} [%r1], [%r2], 16, [mb];",
            f"{BULK} [%d1], [%d2], 16, %h1;",
            f"{BULK}.multicast::cluster [%r1], [%r2], 16, [mb], %h1;",
            f"{TENSOR} %sh1, [%d2, {{%r10}}], [%r3];",
            f"{TENSOR} [%r1], [%d2, {{%r10}}], %q1;",
            f"{TENSOR} %f1, [%d2, {{%r10}}], [%r3];",
            f"{TENSOR} [%r1], [%r2, {{%r10}}], [%r3];",
        ],
    ),
    "floats where the machine subtracts one": ("sm_90a", [f"{REPLACE}.box_dim.shared::cta.b1024.b32 [%r5], 1, %f1;"]),
    "a float for a mask": ("sm_90a", [f"{TENSOR}.multicast::cluster [%r1], [%d2, {{%r10}}], [mb], %fh1;"]),
    "vectors of constants for a constant": (
        "sm_90a",
        ["cp.async.wait_group {1,2};", "discard.L2 [%d1], {128,1};", "pmevent.mask {1,2};"],
    ),
    "a negated constant is 0 or 1": ("sm_90a", ["bar.sync 0, !0;", "applypriority.L2::evict_normal [%d1], !0;"]),
    "vectors and special registers for addresses": (
        "sm_90a",
        [
            "mapa.u32 %r1, {%r1}, %r2;",
            "mapa.shared::cluster.u32 %r1, %tid.x, %r2;",
            "getctarank.shared::cluster.u32 %r1, %laneid;",
        ],
    ),
    "more registers in braces than one value has": (
        "sm_90a",
        [f"{STORE}.b32 [%r5], {FOUR}, [mb];", f"{STORE}.b64 [%r5], {{%d1,%d2}}, [mb];", f"{STORE}.v2.b32 [%r5], gv, [mb];"],
    ),
    "levels and offsets outside of registers": (
        "sm_90a",
        [
            f"tex.2d.v4.u32.f32 {FOUR}, [gtex, {POINT}], gv;",
            f"tex.level.2d.v4.u32.s32 {FOUR}, [gtex, {HALVES}], %tid.x;",
            f"tld4.r.2d.v4.f32.f32 {SUMS}, [gtex, {POINT}], %tid.x;",
            "txq.level.width.b32 %r1, [gtex], gv;",
            f"tex.grad.3d.v4.s32.f32 {FOUR}, [%d1, %d2, {SUMS}], {SUMS}, {SUMS};",
        ],
    ),
    "mbarriers outside of shared memory": (
        "sm_90a",
        [
            f"mbarrier.{rest};"
            for rest in (
                "init.b64 [gv], 1",
                "arrive.b64 _, [lv]",
                "expect_tx.b64 [gv], 16",
                "test_wait.parity.b64 %p1, [gv], 1",
            )
        ],
    ),
    "constants that are combined with a comparison of .bf16": (
        "sm_90a",
        [
            "set.lt.and.bf16.u16 %h1, %h2, %h2, 0;",
            "set.lt.and.u32.bf16x2 %r1, %r2, %r2, 1;",
            "setp.lt.and.bf16 %p1, %h2, %h2, 0;",
        ],
    ),
    "orders of matrices in another order": ("sm_90a", [f"{SPARSE} %r1, 0;".replace("row.col", "col.row")]),
    "metadata that ptxas orders": ("sm_100a", [f"{SPARSE} gv+4, 0;".replace("::ordered_metadata", "")]),
    "a variable where a space is named": ("sm_100a", ["st.bulk.weak.shared::cta [sv], 16, 0;"]),
    "a negative number of groups": ("sm_90a", ["wgmma.wait_group.sync.aligned 0xFFFFFFFFFFFFFFFF;"]),
    ".full behind another modifier": ("sm_90a", ["div.ftz.full.f32 %f1, %f2, %f3;"]),
    "modifiers that are no modifiers": ("sm_90a", ["add.row.u32 %r1, %r2, %r3;", "testp.normal.rank.f32.f32 %p1, %f1;"]),
}
CASES = [(target, text, True) for target, texts in TAKEN.values() for text in texts] + [
    (target, text, False) for target, texts in REFUSED.values() for text in texts
]

asked = pytest.mark.parametrize(("target", "text", "taken"), CASES, ids=[f"{target} {text}" for target, text, _ in CASES])


def module(target: str, text: str) -> str:
    """The line in a kernel; what a target does not have is left out."""
    return HEAD.format(target=target) + f"{text}\nret;\n}}\n"


@asked
def test_our_verdict(target, text, taken):
    found = errors(module(target, text))
    assert bool(found) != taken, [each.message for each in found] or "nothing is wrong"


@asked
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on the PATH")
def test_the_verdict_of_ptxas(target, text, taken, tmp_path):
    path = tmp_path / "case.ptx"
    path.write_text(module(target, text))
    command = ["ptxas", f"-arch={target.replace('sm', 'compute')}", str(path), "-o", str(tmp_path / "case")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode >= 0:  # it may die of a wrong line
        assert (done.returncode == 0) == taken, done.stderr

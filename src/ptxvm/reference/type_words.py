"""Types in words: what each is, where the manual has it, and since when."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import Decoded, candidates
from ptxvm.reference.inference import REGISTERS

FUNDAMENTAL = "5.2.1"

OTHERS = {
    word.strip(): (section.strip(), head.strip())
    for word, section, head in (
        line.split("|")
        for line in """
        f16x2     | 5.2.5       |
        b128      | 5.2.1       |
        bf16      | 5.2.3       | cvt.rn.bf16.f32
        tf32      | 5.2.3       | cvt.rna.tf32.f32
        e4m3      | 5.2.3       | wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3
        e5m2      | 5.2.3       | wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2
        e2m1      | 5.2.3       | mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32
        e2m3      | 5.2.3       | mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m3.f32
        e3m2      | 5.2.3       | mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e3m2.f32
        ue8m0     | 5.2.3       | mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0
        ue4m3     | 5.2.3 | mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
        s2f6x2    | 5.2.4       | cvt.rn.satfinite.s2f6x2.f32
        bf16x2    | 5.2.5       | cvt.rn.bf16x2.f32
        f32x2     | 5.2.5       | add.f32x2
        u16x2     | 5.2.5       | add.u16x2
        s16x2     | 5.2.5       | add.s16x2
        u8x4      | 5.2.5       | add.u8x4
        s8x4      | 5.2.5       | add.s8x4
        e4m3x2    | 5.2.5       | cvt.rn.satfinite.e4m3x2.f32
        e5m2x2    | 5.2.5       | cvt.rn.satfinite.e5m2x2.f32
        e2m1x2    | 5.2.5       | cvt.rn.satfinite.e2m1x2.f32
        e2m3x2    | 5.2.5       | cvt.rn.satfinite.e2m3x2.f32
        e3m2x2    | 5.2.5       | cvt.rn.satfinite.e3m2x2.f32
        ue8m0x2   | 5.2.5       | cvt.rz.ue8m0x2.f32
        e4m3x4    | 5.2.5       | multimem.ld_reduce.weak.global.add.e4m3x4
        e5m2x4    | 5.2.5       | multimem.ld_reduce.weak.global.add.e5m2x4
        e2m1x4    | 5.2.5       | cvt.rs.satfinite.e2m1x4.f32
        e2m3x4    | 5.2.5       | cvt.rs.satfinite.e2m3x4.f32
        e3m2x4    | 5.2.5       | cvt.rs.satfinite.e3m2x4.f32
        b8x16     | 9.7.14.5.15 | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32
        b6x16_p32 | 9.7.14.5.15 | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32
        b4x16_p64 | 9.7.14.5.15 | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64
        b1        | 9.7.14.2    | wmma.load.a.sync.aligned.row.m8n8k128.b1
        u4        | 9.7.14.2    | wmma.load.a.sync.aligned.row.m8n8k32.u4
        s4        | 9.7.14.2    | wmma.load.a.sync.aligned.row.m8n8k32.s4
        u2        | 9.7.9.22    | cvt.pack.sat.u2.s32.b32
        s2        | 9.7.9.22    | cvt.pack.sat.s2.s32.b32
        """.strip().splitlines()
    )
}
"""Types beside the fundamental ones: the section, and the mnemonic that brought a type which no directive declares."""


def is_type(word: str) -> bool:
    """Is it a type of PTX?  The algebra has some more, such as `.u128`."""
    return word in REGISTERS or word in OTHERS


def section(type: Type) -> str:
    """Where the manual has it."""
    return OTHERS[type.name][0] if type.name in OTHERS else FUNDAMENTAL


def first(type: Type) -> Decoded | None:
    """The instruction that brought a type; None of one that a directive declares, and of those that PTX always had."""
    mnemonic = OTHERS[type.name][1] if type.name in OTHERS else ""
    if not mnemonic:
        return None
    load_catalog()
    opcode, *words = mnemonic.split(".")
    return min(candidates(opcode, tuple(words)), key=lambda i: max(need.version for _, need in i.requirements()))

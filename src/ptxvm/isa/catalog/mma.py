"""Matrix products of a warp whose fragments the manual specifies (PTX 9.7.14.5)."""

from __future__ import annotations

from typing import Any

from ptxvm.algebra.types import Type, b1, f16, f32, s32
from ptxvm.isa.fragments import NARROW, Fragment, Product, mma_fragment, quarter_fragment
from ptxvm.isa.matrix import all_lanes, of_fragments, of_shapes
from ptxvm.isa.model import instruction

SHAPES = {
    "f16":       {"m8n8k4": "PTX 6.4, sm_70", "m16n8k8": "PTX 6.5, sm_75", "m16n8k16": "PTX 7.0, sm_80"},
    "bf16":      {"m16n8k8 m16n8k16": "PTX 7.0, sm_80"},
    "tf32":      {"m16n8k4 m16n8k8": "PTX 7.0, sm_80"},
    "e4m3 e5m2": {"m16n8k16": "PTX 8.7, sm_89", "m16n8k32": "PTX 8.4, sm_89"},
    "e3m2 e2m3 e2m1": {"m16n8k32": "PTX 8.7, sm_120a sm_120f"},
    "s8 u8":     {"m8n8k16": "PTX 6.5, sm_75", "m16n8k16 m16n8k32": "PTX 7.0, sm_80"},
    "s4 u4":     {"m8n8k32": "PTX 6.5, sm_75", "m16n8k32 m16n8k64": "PTX 7.0, sm_80"},
    "b1":        {"m8n8k128": "PTX 7.0, sm_75", "m16n8k128 m16n8k256": "PTX 7.0, sm_80"},
    "f64":       {"m8n8k4": "PTX 7.0, sm_80", "m16n8k4 m16n8k8 m16n8k16": "PTX 7.8, sm_90"},
}  # fmt: skip
LOOSE = "s8 u8 s4 u4 b1 e4m3 e5m2 e3m2 e2m3 e2m1"  # any register holds them
MNK = """
    .m8n8k4, .m8n8k16, .m8n8k32, .m8n8k128, .m16n8k4, .m16n8k8, .m16n8k16, .m16n8k32, .m16n8k64, .m16n8k128, .m16n8k256
"""


def multiplicand_type(i: Any) -> Type:
    """The type of A, or that of B where it is the narrower one."""
    return i.btype if i.btype.name in NARROW else i.atype


def in_quarters(i: Any) -> bool:
    """Is it the product of four at once?"""
    return i.mnk == "m8n8k4" and i.atype is f16


def fragments(i: Any) -> dict[str, Fragment]:
    """The four fragments."""
    types = {"d": i.dtype, "a": i.atype, "b": i.btype, "c": i.ctype}
    if in_quarters(i):
        orders = {"a": i.alayout, "b": i.blayout}
        return {matrix: quarter_fragment(matrix, type, orders.get(matrix, "row")) for matrix, type in types.items()}
    return {matrix: mma_fragment(matrix, type, i.mnk) for matrix, type in types.items()}


@of_shapes(SHAPES, multiplicand_type)
@of_fragments(fragments, loose=LOOSE)
@instruction(
    f"""
    mma.sync.aligned.mnk.alayout.blayout.dtype.atype.btype.ctype               d, a, b, c;
    mma.sync.aligned.mnk.alayout.blayout.kind.dtype.atype.btype.ctype          d, a, b, c;
    mma.sync.aligned.mnk.alayout.blayout.satfinite.dtype.atype.btype.ctype     d, a, b, c;
    mma.sync.aligned.mnk.alayout.blayout.dtype.atype.btype.ctype.op.popc       d, a, b, c;
    .mnk     = {{ {MNK} }};
    .alayout = .blayout = {{ .row, .col }};
    .kind    = {{ .kind::f8f6f4 }};
    .dtype   = .ctype = {{ .f16, .f32, .s32 }};
    .atype   = .btype = {{ .f16, .bf16, .tf32, .e4m3, .e5m2, .e3m2, .e2m3, .e2m1, .s8, .u8, .s4, .u4, .b1 }};
    .op      = {{ .xor, .and }};
    """,
    section="9.7.14.5.14",
    types="*: b32",
    needs={"": "PTX 6.4, sm_70", ".and": "PTX 7.1, sm_80", ".kind": "PTX 8.6, sm_100f sm_103f sm_110f sm_120f"},
)
def mma(i, a, b, c, warp):
    """Multiply two matrices and add a third, all in the registers of a warp; for bits, count the ones of A op B.

    `.m8n8k4` computes four products, of the quarters of the warp.
    """
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(Product(**fragments(i), operation=i.op or "mul", finite=i.satfinite), a, b, c)


@of_shapes(SHAPES, multiplicand_type)
@of_fragments(fragments, loose="f64")
@instruction(
    f"""
    mma.sync.aligned.mnk.alayout.blayout{{.rounding}}.dtype.atype.btype.ctype  d, a, b, c;
    .mnk      = {{ {MNK} }};
    .alayout  = .blayout = {{ .row, .col }};
    .rounding = {{ .rn, .rz, .rm, .rp }};
    .dtype    = .atype = .btype = .ctype = {{ .f64 }};
    """,
    section="9.7.14.5.14",
    types="*: b64",
    needs={"": "PTX 7.0, sm_80"},
)
def mma_f64(i, a, b, c, warp):
    """Multiply two matrices of f64 and add a third, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(Product(**fragments(i), rounding=i.rounding or "rn"), a, b, c)


# ── rules ───────────────────────────────────────────────────────────────────────────────

ALIKE = ("e4m3 e5m2 e3m2 e2m3 e2m1", "s8 u8", "s4 u4", "f16", "bf16", "tf32", "b1")
SUMS = {"f": (f16, f32), "s": (s32,), "u": (s32,), "b": (s32,)}


@mma.rule("P2720")
def types_that_do_not_go_together(i):
    """A and B are of one kind; integers and bits add up in s32, bf16 and tf32 in f32, other floats in f16 or f32."""
    alike = next(types.split() for types in ALIKE if i.atype.name in types.split())
    sums = (f32,) if i.atype.name in ("bf16", "tf32") else SUMS[i.atype.kind]
    if i.btype.name in alike and i.dtype in sums and i.ctype in sums:
        return None
    return "Unexpected instruction types specified for 'mma'"


@mma.rule("P2721")
def different_accumulators(i):
    """C and D have one type; only .m8n8k4 also adds f16 up in f32."""
    if i.dtype is i.ctype or (in_quarters(i) and i.dtype is f32):
        return None
    return f".dtype must be '{i.ctype}' when .ctype is '{i.ctype}' for 'mma' instruction with shape '.{i.mnk}'"


@mma.rule("P2722")
@mma_f64.rule("P2722")
def order_of_matrices(i):
    """A lies in rows and B in columns; only .m8n8k4 of f16 has the other orders."""
    if in_quarters(i) or (i.alayout, i.blayout) == ("row", "col"):
        return None
    wrong = "alayout" if i.alayout != "row" else "blayout"
    return f"Illegal {wrong} '.{i.bound[wrong]}' for instruction 'mma'"


@mma.rule("P2723")
def saturated_floats(i):
    """.satfinite is for integers."""
    integers = i.dtype is s32 and i.atype is not b1
    return "Illegal modifier '.satfinite' for instruction 'mma'" if i.satfinite and not integers else None


@mma.rule("P2724")
def bits_without_an_operation(i):
    """Bits have an operation, .xor.popc or .and.popc, and nothing else has."""
    return "Unexpected instruction types specified for 'mma'" if bool(i.op) != (i.atype is b1) else None


@mma.rule("P2725")
def narrow_floats_without_a_kind(i):
    """Floats of less than a byte need .kind::f8f6f4, which is for floats of a byte or less."""
    small = i.atype.is_float and i.atype.bits <= 8
    if (i.kind and not small) or (NARROW & {i.atype.name, i.btype.name} and not i.kind):
        return "Unexpected instruction types specified for 'mma'"
    return None


@mma.needs_when("PTX 8.7, sm_89")
def narrow_sums(i):
    """Are small floats added up in f16?"""
    return i.dtype is f16 and i.atype.is_float and i.atype.bits <= 8

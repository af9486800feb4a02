"""Warp matrix products: mma, whose fragments the manual specifies (PTX 9.7.14.5)."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from ptxvm.algebra.types import Type, f16, f32
from ptxvm.isa.emulated_products import added_elsewhere, converted_elsewhere, special_in_an_emulated_product
from ptxvm.isa.exactness import SUMS
from ptxvm.isa.fragments import NARROW, Arithmetic, Fragment, Product, mma_fragment, quarter_fragment
from ptxvm.isa.matrix import all_lanes, of_matrices, product_of
from ptxvm.isa.model import Decoded, Problem
from ptxvm.isa.operand_types import BITS, in_words, sort_of

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
SLOTS = """
    .mnk     = { .m8n8k4, .m8n8k16, .m8n8k32, .m8n8k128, .m16n8k4, .m16n8k8,
                 .m16n8k16, .m16n8k32, .m16n8k64, .m16n8k128, .m16n8k256 };
    .alayout = .blayout = { .row, .col };
    """


def multiplicand_type(i: Decoded) -> Type:
    """The type of A, or that of B where it is the narrower one."""
    return i.btype if i.btype.name in NARROW else i.atype


def in_quarters(i: Decoded) -> bool:
    """Is it the product of four at once?"""
    return i.mnk == "m8n8k4" and i.atype is f16


def fragments(i: Decoded) -> dict[str, Fragment]:
    """The four fragments."""
    types = {"d": i.dtype, "a": i.atype, "b": i.btype, "c": i.ctype}
    if in_quarters(i):
        orders = {"a": i.alayout, "b": i.blayout}
        return {matrix: quarter_fragment(matrix, type, orders.get(matrix, "row")) for matrix, type in types.items()}
    return {matrix: mma_fragment(matrix, type, i.mnk) for matrix, type in types.items()}


def product(i: Decoded, **how: Unpack[Arithmetic]) -> Product:
    """What the instruction computes."""
    return product_of(fragments(i), **how)


multiplication = partial(
    of_matrices,
    slots=SLOTS,
    shapes=SHAPES,
    type_of=multiplicand_type,
    fragments=fragments,
    section="9.7.14.5.14",
    types="a b c: b32 passed, *: b32",
    exact=SUMS,
)


# ── floats ──────────────────────────────────────────────────────────────────────────────


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout.dtype.atype.btype.ctype  d, a, b, c;
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    """,
    needs={"": "PTX 6.4, sm_70"},
)
def mma(i, a, b, c, warp):
    """Multiply two matrices of f16 and add a third, all in the registers of a warp.

    `.m8n8k4` computes four products, of the quarters of the warp.
    """
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i), a, b, c)


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout.dtype.atype.btype.ctype  d, a, b, c;
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .bf16, .tf32 };
    """,
    needs={"": "PTX 7.0, sm_80"},
)
def mma_alternate(i, a, b, c, warp):
    """Multiply two matrices of bf16 or tf32 and add a third of f32, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i), a, b, c)


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout{.kind}.dtype.atype.btype.ctype  d, a, b, c;
    .kind    = { .kind::f8f6f4 };
    .dtype   = .ctype = { .f16, .f32 };
    .atype   = .btype = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 };
    """,
    loose="e4m3 e5m2 e3m2 e2m3 e2m1",
    types="a b: b32 passed, c: b32 numbers passed, *: b32",
    needs={"": "PTX 8.4, sm_89", ".kind::f8f6f4": "PTX 8.6, sm_100f sm_103f sm_110f sm_120f"},
)
def mma_small(i, a, b, c, warp):
    """Multiply two matrices of floats of a byte or less and add a third, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i), a, b, c)


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout{.rounding}.dtype.atype.btype.ctype  d, a, b, c;
    .rounding = { .rn, .rz, .rm, .rp };
    .dtype    = .atype = .btype = .ctype = { .f64 };
    """,
    types="a b c: b64 passed, *: b64",
    loose="f64",
    needs={"": "PTX 7.0, sm_80"},
)
def mma_f64(i, a, b, c, warp):
    """Multiply two matrices of f64 and add a third, all in the registers of a warp: a chain of `fma`."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, rounding=i.rounding or "rn"), a, b, c)


# ── integers and bits ───────────────────────────────────────────────────────────────────


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout{.satfinite}.dtype.atype.btype.ctype  d, a, b, c;
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .s8, .u8, .s4, .u4 };
    """,
    loose="s8 u8 s4 u4",
    needs={"": "PTX 6.5, sm_75"},
)
def mma_integer(i, a, b, c, warp):
    """Multiply two matrices of bytes or half bytes and add a third of s32; the result wraps, or with .satfinite is limited."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, finite=i.satfinite), a, b, c)


@multiplication(
    """
    mma.sync.aligned.mnk.alayout.blayout.dtype.atype.btype.ctype.op.popc  d, a, b, c;
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .b1 };
    .op    = { .xor, .and };
    """,
    loose="b1",
    needs={"": "PTX 7.0, sm_75", ".and": "PTX 7.1, sm_80"},
)
def mma_bits(i, a, b, c, warp):
    """Combine the bits of each row of A with those of each column of B, count the ones, and add C."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, operation=i.op), a, b, c)


# ── rules ───────────────────────────────────────────────────────────────────────────────

ILLEGAL_TYPES = "Unexpected instruction types specified for 'mma'"
ALIKE = ("e4m3 e5m2 e3m2 e2m3 e2m1", "s8 u8", "s4 u4", "bf16", "tf32")


@mma_alternate.rule("P2720")
@mma_small.rule("P2720")
@mma_integer.rule("P2720")
def types_that_do_not_go_together(i):
    """A and B are of one kind: both of bytes, both of half bytes, both small floats, else both of one type."""
    alike = next(types.split() for types in ALIKE if i.atype.name in types.split())
    if i.btype.name in alike:
        return None
    return Problem("P2720", f"A is of {i.atype} and B of {i.btype}, which do not go together", word=i.btype.name,
                   help=f"B can be of {' or '.join(f'.{t}' for t in alike)}", ptxas=ILLEGAL_TYPES)  # fmt: skip


@mma.rule("P2721")
@mma_small.rule("P2721")
def different_accumulators(i):
    """C and D have one type; only .m8n8k4 also adds f16 up in f32."""
    if i.dtype is i.ctype or (in_quarters(i) and i.dtype is f32):
        return None
    return f".dtype must be '{i.ctype}' when .ctype is '{i.ctype}' for 'mma' instruction with shape '.{i.mnk}'"


def order_of_matrices(i: Decoded) -> str | None:
    """A lies in rows and B in columns; only .m8n8k4 of f16 has the other orders."""
    if in_quarters(i) or (i.alayout, i.blayout) == ("row", "col"):
        return None
    wrong = "alayout" if i.alayout != "row" else "blayout"
    return f"Illegal {wrong} '.{i.bound[wrong]}' for instruction 'mma'"


for each in (mma, mma_alternate, mma_small, mma_f64, mma_integer, mma_bits):
    each.rule("P2722")(order_of_matrices)
for each in (mma, mma_integer, mma_bits):
    each.rule("P2712")(special_in_an_emulated_product)
mma_small.rule("P2703")(converted_elsewhere)
mma_small.rule("P2712")(added_elsewhere)


@mma_integer.rule("P2703")
def words_of_bytes(i):
    """The small product of bytes has words: ptxas makes a larger product, or one of its own, of it.

    Before sm_100 that is a product of `wmma`; later one of `.m16n8k16`, with words of zero beside the rows of A and C.
    """
    if i.mnk != "m8n8k16":
        return None
    padded = [*(("a", item) for item in i.shape("a").items), *(("c", item) for item in i.shape("c").items[1:])]
    called = [(name, item) for name in "ab" for item in i.shape(name).items]
    for name, item in padded if i.target.number >= 100 else called:
        if sort_of(item) not in (BITS, "integers"):
            return Problem("P2703", f"{in_words(item)} stands where a word is needed", operand=name,
                           ptxas="Arguments mismatch for instruction 'mma'")  # fmt: skip
    return None


@mma_small.rule("P2725")
def narrow_floats_without_a_kind(i):
    """Floats of less than a byte need .kind::f8f6f4."""
    if i.kind or not NARROW & {i.atype.name, i.btype.name}:
        return None
    return Problem("P2725", "floats of less than a byte need .kind::f8f6f4", ptxas=ILLEGAL_TYPES)


@mma_small.needs_when("PTX 8.7")
def sums_in_f16(i):
    return i.dtype is f16

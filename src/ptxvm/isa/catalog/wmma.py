"""Warp matrix products: wmma, whose fragments are opaque (PTX 9.7.14.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from ptxvm.algebra.ports import Memory, Warp
from ptxvm.algebra.types import Type, f16, f32, s32, tf32, u64
from ptxvm.algebra.value import Value
from ptxvm.isa.access import ADDRESS, WEAK, has, of_a_word, vector_of_sinks, window
from ptxvm.isa.emulated_products import special_in_a_call, special_in_an_emulated_product
from ptxvm.isa.exactness import MOVED, SUMS
from ptxvm.isa.fragments import Arithmetic, Core, Fragment, Product, wmma_fragment
from ptxvm.isa.matrix import all_lanes, double_moved, of_matrices, product_of
from ptxvm.isa.model import Decoded, Problem

MULTIPLICANDS = {
    "f16":   {"m16n16k16": "PTX 6.0, sm_70", "m8n32k16 m32n8k16": "PTX 6.1, sm_70"},
    "s8 u8": {"m16n16k16 m8n32k16 m32n8k16": "PTX 6.3, sm_72"},
    "s4 u4": {"m8n8k32": "PTX 6.3, sm_75"},
    "b1":    {"m8n8k128": "PTX 6.3, sm_75"},
    "bf16":  {"m16n16k16 m8n32k16 m32n8k16": "PTX 7.0, sm_80"},
    "tf32":  {"m16n16k8": "PTX 7.0, sm_80"},
    "f64":   {"m8n8k4": "PTX 7.0, sm_80"},
}  # fmt: skip
ACCUMULATORS = {
    "f16": MULTIPLICANDS["f16"],
    "f32": {**MULTIPLICANDS["f16"], "m8n8k32 m8n8k128": "PTX 6.3, sm_75", "m16n16k8": "PTX 7.0, sm_80"},
    "s32": {**MULTIPLICANDS["s8 u8"], "m8n8k32 m8n8k128": "PTX 6.3, sm_75"},
    "f64": MULTIPLICANDS["f64"],
}
LOOSE = "s4 u4 b1"  # any register holds them

SHAPES = ".m16n16k16, .m8n32k16, .m32n8k16, .m8n8k32, .m8n8k128, .m16n16k8, .m8n8k4"


def element_type(i: Decoded) -> Type:
    """The type of the elements that are loaded or stored."""
    return i.type


# ── wmma.load, wmma.store ───────────────────────────────────────────────────────────────


def loaded(i: Decoded) -> dict[str, Fragment]:
    """The fragment that `wmma.load` makes."""
    return {"d": wmma_fragment(i.matrix, i.type, i.mnk)}


def stored(i: Decoded) -> dict[str, Fragment]:
    """The fragment that `wmma.store` takes."""
    return {"b": wmma_fragment("d", i.type, i.mnk)}


transfer = partial(
    of_matrices,
    slots=f".layout = {{ .row, .col }}; .mnk = {{ {SHAPES} }}; .ss = {{ .global, .shared, .shared::cta }};",
    type_of=element_type,
    needs={"": "PTX 6.0, sm_70", ".shared::cta": "PTX 7.8"},
    fixed=2,
    exact=MOVED,
)
loading = partial(transfer, shapes={**MULTIPLICANDS, **ACCUMULATORS}, fragments=loaded, loose=LOOSE, section="9.7.14.4.3")
storing = partial(transfer, shapes=ACCUMULATORS, fragments=stored, section="9.7.14.4.4")


@has(ADDRESS, of_a_word("a"))
@loading(
    """
    wmma.load.matrix.sync{.aligned}.layout.mnk{.ss}.type  d, [a]{, stride};
    .matrix = { .a, .b, .c };
    .type   = { .f16, .f32, .s32, .s8, .u8, .s4, .u4, .b1, .bf16, .tf32 };
    """,
    types="d: b32, a: u64, stride: u32 plain",
)
def wmma_load(i, a, stride, warp, mem):
    """Load a matrix from memory into the registers of a warp.

    `stride` counts elements from row to row, or from column to column; by default they adjoin.
    """
    yield warp.converge(all_lanes(warp))
    return load(i, loaded(i)["d"], a, stride, warp, mem)


@has(ADDRESS, of_a_word("a"))
@loading(
    """
    wmma.load.matrix.sync{.aligned}.layout.mnk{.ss}.type  d, [a]{, stride};
    .matrix = { .a, .b, .c };
    .type   = { .f64 };
    """,
    types="d: f64, a: u64, stride: u32 plain",
)
def wmma_load_f64(i, a, stride, warp, mem):
    """Load a matrix of f64 from memory into the registers of a warp."""
    yield warp.converge(all_lanes(warp))
    return load(i, loaded(i)["d"], a, stride, warp, mem)


@has(ADDRESS, of_a_word("a"))
@storing(
    """
    wmma.store.d.sync{.aligned}.layout.mnk{.ss}.type  [a], b{, stride};
    .type = { .f16, .f32, .s32 };
    """,
    types="a: u64, b: b32, stride: u32 plain",
)
def wmma_store(i, a, b, stride, warp, mem):
    """Store a matrix from the registers of a warp into memory."""
    yield warp.converge(all_lanes(warp))
    store(i, stored(i)["b"], a, b, stride, warp, mem)


@has(ADDRESS, of_a_word("a"))
@storing(
    """
    wmma.store.d.sync{.aligned}.layout.mnk{.ss}.type  [a], b{, stride};
    .type = { .f64 };
    """,
    types="a: u64, b: f64, stride: u32 plain",
)
def wmma_store_f64(i, a, b, stride, warp, mem):
    """Store a matrix of f64 from the registers of a warp into memory."""
    yield warp.converge(all_lanes(warp))
    store(i, stored(i)["b"], a, b, stride, warp, mem)


def load(i: Decoded, fragment: Fragment, base: Value, stride: Value | None, warp: Warp, mem: Memory) -> list[Value]:
    """The registers of a fragment from memory: whole words where their elements adjoin, else element by element."""
    word = Type.named[f"b{fragment.register}"]
    found: list[Value] = []
    for run in runs(fragment):
        if adjoining(i, fragment):
            start = address(i, fragment, base, stride, warp, run[0])
            found += mem.load(window(i), word, start, len(run) // fragment.packed, **WEAK)
            continue
        part = Type.named[f"b{fragment.width}"]
        starts = (address(i, fragment, base, stride, warp, element) for element in run)
        parts = [mem.load(window(i), part, start, **WEAK)[0].to(word) for start in starts]
        for first in range(0, len(run), fragment.packed):
            register = parts[first]
            for n in range(1, fragment.packed):
                register |= parts[first + n] << n * fragment.width
            found.append(register)
    return [found[n % len(found)] for n in range(fragment.registers)]


def store(
    i: Decoded, fragment: Fragment, base: Value, registers: Sequence[Value], stride: Value | None, warp: Warp, mem: Memory
) -> None:
    """The registers of a fragment to memory: whole words where their elements adjoin, else element by element."""
    word = Type.named[f"b{fragment.register}"]
    values = [register.view(word) for register in registers]
    for run in runs(fragment):
        if adjoining(i, fragment):
            start = address(i, fragment, base, stride, warp, run[0])
            words = values[run[0] // fragment.packed : (run[-1] + 1) // fragment.packed]
            mem.store(window(i), word, start, words, **WEAK)
            continue
        part = Type.named[f"b{fragment.width}"]
        for element in run:
            value = values[element // fragment.packed] >> element % fragment.packed * fragment.width
            start = address(i, fragment, base, stride, warp, element)
            mem.store(window(i), part, start, [value.to(part)], **WEAK)


def runs(fragment: Fragment) -> Iterator[range]:
    """The elements of a lane that are neighbours in the matrix."""
    run: int = fragment.layout.run  # type: ignore[attr-defined]
    return (range(first, first + run) for first in range(0, fragment.elements, run))


def adjoining(i: Decoded, fragment: Fragment) -> bool:
    """Do neighbours adjoin in memory too?"""
    return (i.layout == "row") != fragment.layout.transposed  # type: ignore[attr-defined]


def address(i: Decoded, fragment: Fragment, base: Value, stride: Value | None, warp: Warp, element: int) -> Value:
    """Where the element of each lane lies."""
    rows, columns = fragment.shape
    row, column = fragment.layout(warp.lane.to(u64), element)
    outer, inner = (row, column) if i.layout == "row" else (column, row)
    default = columns if i.layout == "row" else rows
    index = outer * (default if stride is None else stride.to(u64)) + inner
    bits = fragment.type.bits
    return base + (index * (bits // 8) if bits >= 8 else index * bits >> 3)


# ── wmma.mma ────────────────────────────────────────────────────────────────────────────


def multiplicand_type(i: Decoded) -> Type:
    """The type of A and B: f16 where none is named."""
    return i.atype if "atype" in i.bound else f16


def fragments(i: Decoded) -> dict[str, Fragment]:
    """The four fragments of `wmma.mma`."""
    type = multiplicand_type(i)
    types = {"d": i.dtype, "a": type, "b": type, "c": i.ctype}
    return {matrix: wmma_fragment(matrix, type, i.mnk) for matrix, type in types.items()}


def product(i: Decoded, **how: Unpack[Arithmetic]) -> Product:
    """What the instruction computes."""
    return replace(product_of(fragments(i), **how), core=Core.WMMA)


multiplication = partial(
    of_matrices,
    slots=f".alayout = .blayout = {{ .row, .col }}; .mnk = {{ {SHAPES} }};",
    shapes=MULTIPLICANDS,
    type_of=multiplicand_type,
    fragments=fragments,
    section="9.7.14.4.5",
    types="a b c: b32 passed, *: b32",
    fixed=1,
    exact=SUMS,
)


@multiplication(
    """
    wmma.mma.sync{.aligned}.alayout.blayout.mnk.dtype.ctype{.satfinite}  d, a, b, c;
    .dtype = .ctype = { .f16, .f32 };
    """,
    needs={"": "PTX 6.0, sm_70"},
)
def wmma_mma(i, a, b, c, warp):
    """Multiply two matrices of f16 and add a third, all in the registers of a warp.

    With .satfinite infinities become the largest finite numbers, and NaN becomes zero.
    """
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, finite=i.satfinite), a, b, c)


@multiplication(
    """
    wmma.mma.sync{.aligned}.alayout.blayout.mnk.dtype.atype.btype.ctype{.satfinite}  d, a, b, c;
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .bf16, .tf32 };
    """,
    needs={"": "PTX 7.0, sm_80"},
)
def wmma_mma_alternate(i, a, b, c, warp):
    """Multiply two matrices of bf16 or tf32 and add a third of f32, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i), a, b, c)


@multiplication(
    """
    wmma.mma.sync{.aligned}.alayout.blayout.mnk.dtype.atype.btype.ctype{.satfinite}  d, a, b, c;
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .s8, .u8, .s4, .u4 };
    """,
    needs={"": "PTX 6.3, sm_72"},
)
def wmma_mma_integer(i, a, b, c, warp):
    """Multiply two matrices of bytes or half bytes and add a third of s32; the result wraps, or with .satfinite is limited."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, finite=i.satfinite), a, b, c)


@multiplication(
    """
    wmma.mma.op.popc.sync{.aligned}.alayout.blayout.mnk.dtype.atype.btype.ctype  d, a, b, c;
    .op    = { .xor, .and };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .b1 };
    """,
    needs={"": "PTX 6.3, sm_75", ".and": "PTX 7.1, sm_80"},
)
def wmma_mma_bits(i, a, b, c, warp):
    """Combine the bits of each row of A with those of each column of B, count the ones, and add C."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, operation=i.op), a, b, c)


@multiplication(
    """
    wmma.mma.sync{.aligned}.alayout.blayout.mnk{.rounding}.dtype.atype.btype.ctype  d, a, b, c;
    .rounding = { .rn, .rz, .rm, .rp };
    .dtype    = .atype = .btype = .ctype = { .f64 };
    """,
    types="a b c: f64 passed, *: f64",
    needs={"": "PTX 7.0, sm_80"},
)
def wmma_mma_f64(i, a, b, c, warp):
    """Multiply two matrices of f64 and add a third, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp))
    return peers.multiply(product(i, rounding=i.rounding or "rn"), a, b, c)


# ── rules ───────────────────────────────────────────────────────────────────────────────


@wmma_mma_alternate.rule("P2704")
@wmma_mma_integer.rule("P2704")
def types_that_do_not_go_together(i):
    """A and B have one type."""
    if i.atype is i.btype:
        return None
    return Problem("P2704", f"A is of {i.atype} and B of {i.btype}: they must have one type", word=i.btype.name,
                   ptxas="Unexpected instruction types specified for 'wmma.mma'")  # fmt: skip


@wmma_mma.rule("P2707")
@wmma_mma_alternate.rule("P2707")
def saturated_floats(i):
    """.satfinite is for integers, and up to PTX 6.4 for f16 too."""
    if not i.satfinite or i.version < (6, 5):
        return None
    kind = "'wmma.mma' with floating point type"
    return f"Instruction '{kind}' with '.satfinite' is not supported starting from PTX ISA version 6.5"


def aligned_since(i: Decoded) -> str | None:
    """.aligned has to be written from PTX 6.3 on, and may not before."""
    if i.aligned == (i.version >= (6, 3)):
        return None
    if i.aligned:
        return f"Illegal modifier '.aligned' for instruction '{i.opcode}'"
    return f".aligned modifier required for instruction '{i.opcode}'"


def columns_of_small_elements(i: Decoded, matrix: str, type: Type, layout: str) -> str | None:
    """Elements of less than a byte lie in rows in A, and in columns in B."""
    if type.bits < 8 and layout != {"a": "row", "b": "col"}.get(matrix, layout):
        return f"Illegal alayout '.{layout}' for instruction '{i.opcode}'"
    return None


@wmma_load.rule("P2706")
def small_elements_loaded(i):
    """Elements of less than a byte lie in rows in A, and in columns in B."""
    return columns_of_small_elements(i, i.matrix, i.type, i.layout)


@wmma_mma_integer.rule("P2706")
@wmma_mma_bits.rule("P2706")
def small_elements_multiplied(i):
    """Elements of less than a byte lie in rows in A, and in columns in B."""
    orders = {"a": i.alayout, "b": i.blayout}
    wrong = (columns_of_small_elements(i, matrix, i.atype, order) for matrix, order in orders.items())
    return next(filter(None, wrong), None)


@wmma_load.rule("P2709")
@wmma_load_f64.rule("P2709")
def nothing_loaded(i):
    """Of the registers that are loaded at least one is a register."""
    return vector_of_sinks(i, "d")


@wmma_load.rule("P2712")
@wmma_load_f64.rule("P2712")
@wmma_store.rule("P2712")
@wmma_store_f64.rule("P2712")
def special_register_moved(i):
    """No element of what is loaded or stored is a special register: ptxas makes calls of these instructions."""
    return special_in_a_call(i, "d" if "d" in i.destinations() else "b")


@wmma_store.rule("P2703")
def double_stored(i):
    """No element of 32 bits that is stored is a constant of 64 bits: ptxas moves each."""
    return double_moved(i, "b", "mov")


for each in (wmma_mma_integer, wmma_mma_bits):
    each.rule("P2712")(special_in_an_emulated_product)


def is_one_by_one(i: Decoded) -> bool:
    """Does the tensor core multiply the registers of integers one at a time?"""
    return i.target.number < (90 if i.atype.bits < 8 else 80)


def special_multiplied(i: Decoded) -> Problem | None:
    """No element of A or B is a special register."""
    if all(item.kind != "special" for name in "ab" for item in i.shape(name).items):
        return None
    said = "a special register stands where one of the program is needed"
    return Problem("P2712", said, ptxas="Special register argument not allowed for instruction '_mma'")


@wmma_mma_integer.rule("P2712")
@wmma_mma_bits.rule("P2712")
def special_register_multiplied(i):
    """No element of A or B is a special register, where the tensor core multiplies them one register at a time."""
    return special_multiplied(i) if is_one_by_one(i) else None


@wmma_mma.rule("P2712")
def special_sum_that_is_converted(i):
    """Where C and D have two types, no element of the one of f16 is a special register: ptxas calls a conversion of it."""
    return special_in_a_call(i, "d" if i.dtype is f16 else "c") if i.dtype is not i.ctype else None


@wmma_mma_f64.rule("P2712")
def special_register_of_64_bits(i):
    """No element of A or B is a special register: each is an operand of its own."""
    return special_multiplied(i)


@wmma_mma_alternate.rule("P2703")
@wmma_mma_integer.rule("P2703")
@wmma_mma_bits.rule("P2703")
def registers_of_integers(i):
    """B of tf32, and integers that are multiplied a register at a time, are in registers of bits and integers."""
    one_by_one = "ab" if i.atype.is_int and is_one_by_one(i) else ""
    for name in "b" if i.atype is tf32 else one_by_one:
        if any(item.kind == "register" and not item.type.is_int for item in i.shape(name).items):
            return Problem("P2703", f"registers of bits or integers hold elements of {i.atype}", operand=name,
                           ptxas="Arguments mismatch for instruction '_mma'")  # fmt: skip
    return None


@wmma_load.rule("P2711")
def loaded_type(i):
    """A and B are of narrow types, C of a wide one."""
    wide = i.type in (f32, s32)
    if i.type is not f16 and wide == (i.matrix in "ab"):
        return f"Illegal type for {i.opcode}"
    return None


def result_thrown_away(i: Decoded) -> str | None:
    """Each register of the result is a register, and not `_`."""
    return "Sink '_' not allowed as a source operand" if any(x.kind == "sink" for x in i.shape("d").items) else None


PRODUCTS = (wmma_mma, wmma_mma_alternate, wmma_mma_integer, wmma_mma_bits, wmma_mma_f64)
for each in PRODUCTS:
    each.rule("P2710")(result_thrown_away)
for each in (wmma_load, wmma_load_f64, wmma_store, wmma_store_f64, *PRODUCTS):
    each.rule("P2708")(aligned_since)

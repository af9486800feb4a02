"""Warpgroup matrix products: wgmma (PTX 9.7.15)."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from functools import partial

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.ports import Peers, Request, Tasks, Warp
from ptxvm.algebra.types import b32, f16, f16x2, f32, s8, u8, u32
from ptxvm.algebra.value import Value
from ptxvm.isa import warpgroup
from ptxvm.isa.access import ORDER_OF_A_MATRIX, Trait, elements, has
from ptxvm.isa.exactness import SPARSE_SUMS, SUMS
from ptxvm.isa.matrix import all_lanes, one_word, selected, wrong_sort
from ptxvm.isa.model import Decoded, Problem, instruction
from ptxvm.isa.warpgroup import WarpgroupProduct

NEEDS = {"": "PTX 8.0, sm_90a"}
COLUMNS = range(8, 257, 8)
COLUMNS_OF_INTEGERS = (8, 24, *range(16, 257, 16))


def shapes(columns: Iterable[int], depth: int) -> str:
    """The shapes of 64 rows, as a slot has them."""
    return ", ".join(f".m64n{n}k{depth}" for n in sorted(columns))


# ── products ────────────────────────────────────────────────────────────────────────────


def registers_of_the_sum(i: Decoded) -> Problem | None:
    """D is a vector of N / 2 registers, or of N / 4 where each holds two sums of f16."""
    d, columns = i.shape("d"), int(i.mnk[len("m64n") :].partition("k")[0])
    wanted = columns // 4 if i.dtype is f16 else columns // 2
    if d.kind == "vector" and elements(d) == wanted:
        return None
    return Problem("P3301", f"D is a vector of {wanted} registers here", operand="d",
                   ptxas=f"Arguments mismatch for instruction '{i.opcode}'")  # fmt: skip


def sort_of_the_sum(i: Decoded) -> Problem | None:
    """The registers of D hold f32, two of f16, or an integer, as the sums are."""
    if any(item.kind == "integer" for item in i.shape("d").items):
        return Problem("P2703", "a constant cannot be a destination", operand="d",
                       ptxas=f"Result register required for instruction '{i.opcode}'")  # fmt: skip
    return wrong_sort(i, "d", {f32: f32, f16: f16x2}.get(i.dtype, u32))


def registers_of_a(i: Decoded) -> Problem | None:
    """A is a vector of four registers, or a descriptor."""
    a = i.shape("a")
    if a is None:
        return None
    if a.kind != "vector" or elements(a) != 4:
        return Problem("P3303", "A is a vector of 4 registers, or a descriptor of 64 bits", operand="a",
                       ptxas=f"Arguments mismatch for instruction '{i.opcode}'")  # fmt: skip
    return wrong_sort(i, "a", f16x2 if i.atype.is_float else b32)


def constants(i: Decoded) -> Problem | None:
    """imm-scale is 1 or -1; imm-trans, and scale-d where it is a constant, are 0 or 1."""
    for name, allowed in (
        ("scale_d", (0, 1)),
        ("scale_a", (1, -1)),
        ("scale_b", (1, -1)),
        ("trans_a", (0, 1)),
        ("trans_b", (0, 1)),
    ):
        value = i.value(name)
        if value is not None and value not in allowed:
            return Problem("P3304", f"this constant is {allowed[0]} or {allowed[1]}, not {value}", operand=name,
                           ptxas=f"unexpected value '{value}' for instruction '{i.opcode}'")  # fmt: skip
    return None


def selector(i: Decoded) -> Problem | None:
    """The selector of sparse metadata is 0 or 1; of 8-bit elements, where all threads give metadata, 0."""
    value, most = i.value("selector"), 0 if i.atype.bits == 8 else 1
    if value is None or 0 <= value <= most:
        return None
    return Problem("P3305", f"the selector is 0 to {most} here, not {value}", operand="selector",
                   ptxas=f"Argument 4 of instruction '{i.opcode}': value '{value}' out of range")  # fmt: skip


PRODUCT = Trait(
    rules=[("P3301", registers_of_the_sum), ("P3302", sort_of_the_sum), ("P3303", registers_of_a), ("P3304", constants)]
)
SPARSE = Trait(rules=[("P3305", selector)])
TYPES = """
    d: b32 update, a: b32, adesc bdesc: u64 plain numeric, scale_d: pred plain enables, metadata: b32 plain reg registers,
    selector: u32 imm, scale_a scale_b trans_a trans_b: s32 imm
    """
declared = partial(instruction, types=TYPES, needs=NEEDS, fixed="mma_async")
multiplying = partial(declared, section="9.7.15.5.2", exact=SUMS)
multiplying_sparse = partial(declared, section="9.7.15.6.4", exact=SPARSE_SUMS)
NEGATABLE = "{!}scale_d"
HALVES = "{!}scale_d, scale_a, scale_b, trans_a, trans_b"
HALVES_IN_REGISTERS = "{!}scale_d, scale_a, scale_b, trans_b"
SMALL = "{!}scale_d, scale_a, scale_b"
HEAD = "wgmma.mma_async.sync{.aligned}.mnk.dtype.atype.btype"
SPARSE_HEAD = HEAD.replace("mma_async", "mma_async.sp")
INTEGER_HEAD = HEAD.replace(".dtype", "{.satfinite}.dtype")
META = "metadata, selector"
HALF_SLOTS = f".mnk = {{ {shapes(COLUMNS, 16)} }}; .dtype = {{ .f16, .f32 }}; .atype = .btype = {{ .f16, .bf16 }};"
TF32_SLOTS = f".mnk = {{ {shapes(COLUMNS, 8)} }}; .dtype = {{ .f32 }}; .atype = .btype = {{ .tf32 }};"
FP8_SLOTS = f".mnk = {{ {shapes(COLUMNS, 32)} }}; .dtype = {{ .f16, .f32 }}; .atype = .btype = {{ .e4m3, .e5m2 }};"
INTEGER_SLOTS = f".mnk = {{ {shapes(COLUMNS_OF_INTEGERS, 32)} }}; .dtype = {{ .s32 }}; .atype = .btype = {{ .s8, .u8 }};"
BIT_SLOTS = (
    f".mnk = {{ {shapes(COLUMNS_OF_INTEGERS, 256)} }}; .dtype = {{ .s32 }}; .atype = .btype = {{ .b1 }}; .op = {{ .and }};"
)


def deeper(slots: str) -> str:
    """The slots of a sparse product, whose A has half of its elements: K is twice as large."""
    return re.sub(r"k(\d+)", lambda m: f"k{2 * int(m[1])}", slots)


def started(
    i: Decoded, d: Sequence[Value], a: Sequence[Value] | None, adesc: Value, bdesc: Value, scale_d: Value,
    warp: Warp, tasks: Tasks, *metadata: Value,
) -> Generator[Request, Peers, list[Value]]:  # fmt: skip
    """Start the product of the warp; of a sparse one, lanes of a group of four have its metadata, and a number selects them."""
    peers = yield warp.converge(all_lanes(warp), *map(one_word, metadata[:1]))
    product = warpgroup.product(
        i.mnk,
        i.dtype,
        i.atype,
        i.btype,
        sparse=bool(metadata),
        finite=word(i, "satfinite") is not None,
        operation=word(i, "op") or "mul",
    )
    transposed, negated = (
        (i.value(f"{name}_a") == wrong, i.value(f"{name}_b") == wrong) for name, wrong in (("trans", 1), ("scale", -1))
    )
    work = WarpgroupProduct(product, a is not None, transposed, negated)
    words = [] if product.sparsity is None else [[selected(peers, 0, warp.lane, metadata[1], product.sparsity.threads)]]
    return tasks.multiply(work, d, [adesc] if a is None else a, bdesc, scale_d, words)


def word(i: Decoded, name: str) -> str | None:
    """The word of a modifier that only some of the declarations have."""
    return i.bound.get(name)


@has(ORDER_OF_A_MATRIX, PRODUCT)
@multiplying(
    f"""
    {HEAD}  d, adesc, bdesc, {HALVES};
    {HEAD}  d, a, bdesc, {HALVES_IN_REGISTERS};
    {HALF_SLOTS}
    """
)
def wgmma_mma_async(i, d, a, adesc, bdesc, scale_d, scale_a, scale_b, trans_a, trans_b, warp, tasks):
    """Start to multiply two matrices of f16 or bf16 and add D, in the registers of a warpgroup."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks))


@has(ORDER_OF_A_MATRIX, PRODUCT)
@multiplying(f"{HEAD}  d, adesc, bdesc, {SMALL}; {HEAD}  d, a, bdesc, {SMALL}; {TF32_SLOTS}")
def wgmma_mma_async_tf32(i, d, a, adesc, bdesc, scale_d, scale_a, scale_b, warp, tasks):
    """Start to multiply two matrices of tf32 and add D, in the registers of a warpgroup."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks))


@has(ORDER_OF_A_MATRIX, PRODUCT)
@multiplying(f"{HEAD}  d, adesc, bdesc, {SMALL}; {HEAD}  d, a, bdesc, {SMALL}; {FP8_SLOTS}")
def wgmma_mma_async_fp8(i, d, a, adesc, bdesc, scale_d, scale_a, scale_b, warp, tasks):
    """Start to multiply two matrices of 8-bit floats and add D, in the registers of a warpgroup."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks))


@has(ORDER_OF_A_MATRIX, PRODUCT)
@multiplying(f"{INTEGER_HEAD}  d, adesc, bdesc, {NEGATABLE}; {INTEGER_HEAD}  d, a, bdesc, {NEGATABLE}; {INTEGER_SLOTS}")
def wgmma_mma_async_integer(i, d, a, adesc, bdesc, scale_d, warp, tasks):
    """Start to multiply two matrices of bytes and add D, in the registers of a warpgroup."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks))


@has(ORDER_OF_A_MATRIX, PRODUCT)
@multiplying(f"{HEAD}.op.popc  d, adesc, bdesc, {NEGATABLE}; {HEAD}.op.popc  d, a, bdesc, {NEGATABLE}; {BIT_SLOTS}")
def wgmma_mma_async_bits(i, d, a, adesc, bdesc, scale_d, warp, tasks):
    """Start to combine the bits of each row of A with those of each column of B, count the ones, and add D."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks))


@has(ORDER_OF_A_MATRIX, PRODUCT, SPARSE)
@multiplying_sparse(
    f"""
    {SPARSE_HEAD}  d, adesc, bdesc, {META}, {HALVES};
    {SPARSE_HEAD}  d, a, bdesc, {META}, {HALVES_IN_REGISTERS};
    {deeper(HALF_SLOTS)}
    """
)
def wgmma_mma_async_sp(i, d, a, adesc, bdesc, metadata, selector, scale_d, scale_a, scale_b, trans_a, trans_b, warp, tasks):
    """Start to multiply a sparse matrix of f16 or bf16 with a dense one and add D."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks, metadata, selector))


@has(ORDER_OF_A_MATRIX, PRODUCT, SPARSE)
@multiplying_sparse(
    f"{SPARSE_HEAD}  d, adesc, bdesc, {META}, {SMALL}; {SPARSE_HEAD}  d, a, bdesc, {META}, {SMALL}; {deeper(TF32_SLOTS)}"
)
def wgmma_mma_async_sp_tf32(i, d, a, adesc, bdesc, metadata, selector, scale_d, scale_a, scale_b, warp, tasks):
    """Start to multiply a sparse matrix of tf32 with a dense one and add D."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks, metadata, selector))


@has(ORDER_OF_A_MATRIX, PRODUCT, SPARSE)
@multiplying_sparse(
    f"{SPARSE_HEAD}  d, adesc, bdesc, {META}, {SMALL}; {SPARSE_HEAD}  d, a, bdesc, {META}, {SMALL}; {deeper(FP8_SLOTS)}"
)
def wgmma_mma_async_sp_fp8(i, d, a, adesc, bdesc, metadata, selector, scale_d, scale_a, scale_b, warp, tasks):
    """Start to multiply a sparse matrix of 8-bit floats with a dense one and add D."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks, metadata, selector))


SPARSE_INTEGER = INTEGER_HEAD.replace("mma_async", "mma_async.sp")


@has(ORDER_OF_A_MATRIX, PRODUCT, SPARSE)
@multiplying_sparse(
    f"""
    {SPARSE_INTEGER}  d, adesc, bdesc, {META}, {NEGATABLE};
    {SPARSE_INTEGER}  d, a, bdesc, {META}, {NEGATABLE};
    {deeper(INTEGER_SLOTS)}
    """
)
def wgmma_mma_async_sp_integer(i, d, a, adesc, bdesc, metadata, selector, scale_d, warp, tasks):
    """Start to multiply a sparse matrix of bytes with a dense one and add D."""
    return (yield from started(i, d, a, adesc, bdesc, scale_d, warp, tasks, metadata, selector))


@wgmma_mma_async.rule("P3306")
@wgmma_mma_async_sp.rule("P3306")
def types_of_halves(i: Decoded) -> str | None:
    """A and B are of one type; sums in f16 are of products of f16."""
    if i.atype is i.btype and (i.dtype is f32 or i.atype is f16):
        return None
    return f"Unexpected instruction types specified for '{i.opcode}'"


@wgmma_mma_async_integer.needs_when("PTX 8.4")
@wgmma_mma_async_sp_integer.needs_when("PTX 8.4")
def signed_and_unsigned(i: Decoded) -> bool:
    return {i.atype, i.btype} == {s8, u8}


# ── order ───────────────────────────────────────────────────────────────────────────────


@instruction("wgmma.fence.sync{.aligned};", section="9.7.15.7.1", needs=NEEDS, fixed="fence")
def wgmma_fence(i, warp, tasks):
    """Order accesses to registers and shared memory before those of the next products."""
    yield warp.converge(all_lanes(warp))
    tasks.fence_registers(AsyncKind.PRODUCT)


@instruction("wgmma.commit_group.sync{.aligned};", section="9.7.15.7.2", needs=NEEDS, fixed="commit_group")
def wgmma_commit_group(i, warp, tasks):
    """Make a group of the products that the warpgroup has started since it made the last one."""
    yield warp.converge(all_lanes(warp))
    tasks.commit(AsyncKind.PRODUCT)


@instruction("wgmma.wait_group.sync{.aligned}  n;", section="9.7.15.7.3", types="n: u32 imm", needs=NEEDS, fixed="wait_group")
def wgmma_wait_group(i, n, warp, tasks):
    """Wait until at most the `n` latest groups of products go on.

    A group is one of the warpgroup, so that it has ended for one warp where it has for all: a single thread may hand
    the matrices over.
    """
    tasks.wait(n, AsyncKind.PRODUCT)
    yield warp.converge_warpgroup(all_lanes(warp))


@wgmma_wait_group.rule("P3307")
def number_of_groups(i):
    """The number of groups is not negative."""
    n = i.value("n")
    return f"Argument 0 of instruction 'wgmma.wait_group': unexpected value '{n}'" if n is not None and n < 0 else None

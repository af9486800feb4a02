"""Work on tensor memory by compiled code: products by plans, loads and stores, and commits (`abi.tensor_record`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.tensor_record import CELLS, MOST_PIECES, PRODUCT, PRODUCTS
from ptxvm.engine.jit.abi.tile_product import HEIGHT, WIDTH, TileFunction
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.lower import tensor_scales
from ptxvm.engine.jit.lower.tile_products import least_exponents
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.shared_matrix import PIECE, Factor
from ptxvm.isa.tensor_memory import (
    COLUMNS,
    HALVED,
    LANES,
    Commit,
    InstructionDescriptor,
    Load,
    Multiply,
    Store,
    TensorWork,
    Tile,
    instruction_descriptor,
    shared_descriptor,
)
from ptxvm.machine import shared_matrix, tensor_products
from ptxvm.machine.per_lane import Array
from ptxvm.machine.tensor_memory import cells
from ptxvm.named_tuple import NamedTuple

START = (1 << 14) - 1  # the bits of a descriptor that say where the matrix begins
KINDS = ("f16", "tf32", "i8", "f8f6f4", "mxf8f6f4", *HALVED)
SIZES = {"f16": 2, "tf32": 4}  # bytes of elements that have more than one
ROW = 2 * PIECE  # bytes of a row of a K-major matrix, along K, and of a sparse A as it is stored
WORD = 32  # bits
OPERANDS = {"a": u64, "d": u64, "b": u64, "meta": u64, "idesc": u32, "enable": pred}
FURTHER = {"scale": u32, "scale_a": u64, "scale_b": u64}  # operands that an instruction may have
MASK = 1 << 39  # of columns that count as zeros: its bit in the descriptor
SUMS = 3 << 4  # the bits of an instruction descriptor that say the type of D, which are 0 for f16


class Quick(NamedTuple):
    """A function of the module that is tried before the host: its name, and its arguments behind the operands.

    It is for `whole` warps, or for any lanes.
    """

    name: str | None
    arguments: str
    whole: bool


def written(at: NodeBuilder, work: TensorWork, operands: Sequence[tuple[str, Type]]) -> Quick | None:
    """Write the function for some work, given the names and types of its operands; None where there is none."""
    if work.pairs or at.kernel.shadow is not None:
        return None
    unit, active = at.code.unit, at.active_text()
    if isinstance(work, Commit):
        _cells(unit)
        return Quick(_known(unit), ", ptr %ctx, i32 %ctaid.x", whole=False)
    if isinstance(work, Multiply) and _is_plain(work, operands):
        _cells(unit)
        return Quick(_product(at, work, operands), f", i32 {active}, ptr %ctx, i32 %ctaid.x, ptr %shared", whole=False)
    if isinstance(work, Load | Store) and _is_whole(work) and operands[0] == ("a", u64):
        _cells(unit)
        return Quick(_move(unit, work), ", i32 %warp, ptr %ctx, i32 %ctaid.x", whole=True)
    return None


def _cells(unit: Unit) -> None:
    fields = {field: offset(field) for field in ("slot", "row", "tensor_cells")}
    unit.helper("ptxvm.tensor", runtime("tensor_cells", words=len(CELLS), **fields))


# ── commits ─────────────────────────────────────────────────────────────────────────────


def _known(unit: Unit) -> str:
    """The function for a commit: all work is done already, of a CTA that is known to use no pairs."""
    return unit.helper("ptxvm.tensor.known", KNOWN)


KNOWN = """
define internal i32 @ptxvm.tensor.known(ptr %room, ptr %ctx, i32 %ctaid.x) #0 {
entry:
  %own = call ptr @ptxvm.tensor.cells(ptr %ctx, i32 %ctaid.x)
  %found = icmp ne ptr %own, null
  %done = zext i1 %found to i32
  ret i32 %done
}"""


# ── loads and stores ────────────────────────────────────────────────────────────────────


def _is_whole(work: Load | Store) -> bool:
    """Are whole words moved, which lie in one part, and nothing else is done?"""
    reduces = isinstance(work, Load) and work.operation
    return not (work.packed or reduces) and work.tile is not Tile.LANES_16_32B_TWICE


def _move(unit: Unit, work: Load | Store) -> str:
    """The function for a load or a store."""
    loads = isinstance(work, Load)
    name = f"ptxvm.tensor.{'load' if loads else 'store'}.{work.tile.value}.{work.registers}"
    if name in unit.helpers:
        return name
    rows, columns = cells(work.tile, work.registers, 0)
    table = unit.table("i32", tuple((rows * COLUMNS + columns).T.ravel().tolist()))
    both = ("%cell.at", "%word.at") if loads else ("%word.at", "%cell.at")
    return unit.helper(name, runtime(
        "tensor_move", name=name, table=table, registers=work.registers, width=int(columns.max()) + 1, step=STEP,
        other_lanes=-1 if work.tile is Tile.LANES_32_32B else -17, behind=0 if loads else STEP, source=both[0], target=both[1],
    ))  # fmt: skip


# ── products ────────────────────────────────────────────────────────────────────────────


def _is_plain(work: Multiply, operands: Sequence[tuple[str, Type]]) -> bool:
    """Are A and B just multiplied, or blocks of a dense A with scales?"""
    plain = [(name, type) for name, type in operands if not name.startswith("disabled") and (name, type) not in FURTHER.items()]
    changes = (work.blocks and work.sparse) or work.shifted or work.kind not in KINDS
    return not changes and plain == [(name, type) for name, type in OPERANDS.items() if work.sparse or name != "meta"]


def _kind(work: Multiply) -> int:
    """The number of a kind, of its scales, and of where and how A lies, in the upper half of a key, which is not 0."""
    number = KINDS.index(work.kind)
    for each in (work.in_tensor_memory, work.sparse, work.weights):
        number = 2 * number + each
    return (8 * number + work.blocks + 1) << 32


def _product(at: NodeBuilder, work: Multiply, operands: Sequence[tuple[str, Type]]) -> str:
    unit, masks = at.code.unit, sum(name.startswith("disabled") for name, _ in operands)
    scaled = any(name == "scale" for name, _ in operands)
    each = {"sparse": work.sparse, "weights": work.weights, f"blocks{work.blocks}": work.blocks, "scaled": scaled}
    marks = "".join(f".{mark}" for mark, there in each.items() if there)
    name = f"ptxvm.tensor.product.{work.kind}.{'memory' if work.in_tensor_memory else 'shared'}{marks}.{masks}"
    if name in unit.helpers:
        return name
    unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
    unit.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1 immarg")
    unit.helper("ptxvm.tensor.flipped", runtime("tensor_copied", piece=PIECE))
    size = at.kernel.shared_size
    named = ("b",) if work.in_tensor_memory else ("a", "b")
    return unit.helper(name, runtime(
        "tensor_product", name=name, kind=_kind(work), words=len(PRODUCT), plans=PRODUCTS, most_pieces=MOST_PIECES,
        tensor_products=offset("tensor_products"), operands="\n".join(_operands(work, operands)),
        fields=words_of_plan(PRODUCT, *PRODUCT[3:]), reach="\n".join(_reach(work, named, size)),
        of_a="\n".join(_rows_of_a() if work.in_tensor_memory else _pieces(unit, "a", ROW, work, "of.a", "fill")),
        of_b="\n".join(_pieces(unit, "b", ROW << work.sparse, work, "of.b", "all.of.b")),
        fill="\n".join(_fill(unit, work)), scales="\n".join(tensor_scales.collected(unit, work)),
    ))  # fmt: skip


def _operands(work: Multiply, operands: Sequence[tuple[str, Type]]) -> list[str]:
    """Load the operands of the lane; `%masked` says that some lanes of D stay, `%scaled` that it is scaled before."""
    lines, masks, short = [], "0", ["d", "meta", "scale_a", "scale_b"] + ["a"] * work.in_tensor_memory
    for number, (name, type) in enumerate(operands):
        llvm = f"i{8 if type is pred else type.bits}"
        lines += [
            f"  %{name}.room = getelementptr i8, ptr %room, i64 {STEP * number}",
            f"  %{name}.own = getelementptr {llvm}, ptr %{name}.room, i32 %lane",
            f"  %{name}{'.wide' * (name in short)} = load {llvm}, ptr %{name}.own, align 1",
        ]
        if name in short:
            lines.append(f"  %{name} = trunc i64 %{name}.wide to i32")
        if name.startswith("disabled"):
            lines += [
                f"  %{name}.at = getelementptr i32, ptr %masks, i64 {int(name.removeprefix('disabled'))}",
                f"  store i32 %{name}, ptr %{name}.at, align 4",
                f"  %{name}.all = or i32 {masks}, %{name}",
            ]
            masks = f"%{name}.all"
    named = "0" if work.in_tensor_memory else "%a"
    if not any(name == "scale" for name, _ in operands):
        lines.append("  %scale = add i32 0, 0")
    return [
        *lines,
        f"  %masked = icmp ne i32 {masks}, 0",
        f"  %a.named = or i64 {named}, 0",
        "  %scale.some = icmp ne i32 %scale, 0",
        "  %counted = icmp ne i8 %enable, 0",
        "  %scaled = and i1 %scale.some, %counted",
        f"  %sums = and i32 %idesc, {SUMS}",
        "  %halves = icmp eq i32 %sums, 0",
        "  %halves.scaled = and i1 %scaled, %halves",
    ]


def _reach(work: Multiply, named: Sequence[str], size: int) -> list[str]:
    """Do the matrices lie in shared memory, and A in cells that are allocated?"""
    lines, good = [], "true"
    for m in named:
        lines += [
            f"  %{m}.start.part = and i64 %{m}, {START}",
            f"  %{m}.start = shl i64 %{m}.start.part, 4",
            f"  %{m}.end.0 = add i64 %{m}.start, %{m}.last",
            f"  %{m}.end = or i64 %{m}.end.0, 127",
            f"  %{m}.inside = icmp ult i64 %{m}.end, {size}",
            f"  %{m}.good = and i1 {good}, %{m}.inside",
        ]
        good = f"%{m}.good"
    if work.in_tensor_memory:
        lines += [
            "  %a.lane = lshr i32 %a, 16",
            "  %a.column = and i32 %a, 65535",
            "  %a.first = icmp eq i32 %a.lane, 0",
            "  %a.words = trunc i64 %words to i32",
            "  %a.there = call i1 @ptxvm.tensor.allocated(ptr %own, i32 %a.column, i32 %a.words)",
            "  %a.cells.good = and i1 %a.first, %a.there",
            f"  %a.good = and i1 {good}, %a.cells.good",
        ]
        good = "%a.good"
    for m in ["meta"] * work.sparse + ["scale_a", "scale_b"] * bool(work.blocks):
        lines += [
            f"  %{m}.lane = lshr i32 %{m}, 16",
            f"  %{m}.column = and i32 %{m}, 65535",
            f"  %{m}.first = icmp eq i32 %{m}.lane, 0",
            f"  %{m}.count = trunc i64 %{m}.columns to i32",
            f"  %{m}.there = call i1 @ptxvm.tensor.allocated(ptr %own, i32 %{m}.column, i32 %{m}.count)",
            f"  %{m}.cells.good = and i1 %{m}.first, %{m}.there",
            f"  %{m}.good = and i1 {good}, %{m}.cells.good",
        ]
        good = f"%{m}.good"
    return [*lines, f"  %good = and i1 {good}, true"]


def _pieces(unit: Unit, m: str, row: int, work: Multiply, before: str, after: str) -> list[str]:
    """Fill the table of the addresses of the pieces of a matrix in shared memory, whose rows along K have so many bytes."""
    words, longs = "<16 x i32>", "<16 x i64>"

    def all_of(name: str, value: str, llvm: str = "i32") -> list[str]:
        vector = f"<16 x {llvm}>"
        return [
            f"  %{m}.{name}.one = insertelement {vector} poison, {llvm} {value}, i64 0",
            f"  %{m}.{name} = shufflevector {vector} %{m}.{name}.one, {vector} poison, <16 x i32> zeroinitializer",
        ]

    turned = _turned(unit, SIZES.get(work.kind, 1), row)
    shorts = [f"  %{m}.{word}.short = trunc i64 %{m}.{word} to i32" for word in ("start", "base", "mask", "unit")]
    return [
        *shorts,
        *all_of("starts", f"%{m}.start.short"),
        *all_of("bases", f"%{m}.base.short"),
        *all_of("masks", f"%{m}.mask.short"),
        *all_of("by", f"%{m}.unit.short"),
        *all_of("memory", "%shared.address", "i64"),
        f"  %{m}.table.of = inttoptr i64 %{m}.offsets to ptr",
        f"  br label %{m}.piece",
        f"{m}.piece:",
        f"  %{m}.n = phi i64 [ 0, %{before} ], [ %{m}.n.more, %{m}.piece ]",
        f"  %{m}.from = getelementptr i32, ptr %{m}.table.of, i64 %{m}.n",
        f"  %{m}.offset = load {words}, ptr %{m}.from, align 4",
        f"  %{m}.sum = add {words} %{m}.offset, %{m}.starts",
        f"  %{m}.place = and {words} %{m}.sum, splat (i32 262143)",
        f"  %{m}.line = lshr {words} %{m}.place, splat (i32 7)",
        f"  %{m}.from.base = sub {words} %{m}.line, %{m}.bases",
        f"  %{m}.turn = and {words} %{m}.from.base, %{m}.masks",
        f"  %{m}.moved = shl {words} %{m}.turn, %{m}.by",
        f"  %{m}.swizzled = xor {words} %{m}.place, %{m}.moved",
        f"  %{m}.wide = zext {words} %{m}.swizzled to {longs}",
        f"  %{m}.address = add {longs} %{m}.wide, %{m}.memory",
        f"  %{m}.to = getelementptr i64, ptr %{m}.table, i64 %{m}.n",
        f"  store {longs} %{m}.address, ptr %{m}.to, align 64",
        f"  %{m}.n.more = add i64 %{m}.n, 16",
        f"  %{m}.n.over = icmp uge i64 %{m}.n.more, %{m}.pieces",
        f"  br i1 %{m}.n.over, label %{m}.there, label %{m}.piece",
        f"{m}.there:",
        f"  %{m}.in.rows = icmp eq i64 %{m}.units, 0",
        f"  br i1 %{m}.in.rows, label %{m}.k.major, label %{m}.turned",
        f"{m}.turned:",
        f"  call void @{turned}(ptr %{m}.table, i64 %{m}.pieces, i64 %{m}.units, i64 %{m}.copy)",
        f"  br label %{m}.k.major",
        f"{m}.k.major:",
        *_flipped(m, f"%{m}.pieces", after),
    ]


def _flipped(m: str, pieces: str, after: str) -> list[str]:
    """Copy a matrix that is negated, with other signs."""
    return [
        f"  %{m}.as.it.is = icmp eq i64 %{m}.flip, 0",
        f"  br i1 %{m}.as.it.is, label %{after}, label %{m}.negated",
        f"{m}.negated:",
        f"  call void @ptxvm.tensor.flipped(ptr %{m}.table, i64 {pieces}, i64 %{m}.copy, i64 %{m}.flip)",
        f"  br label %{after}",
    ]


def _turned(unit: Unit, size: int, row: int) -> str:
    """The function that copies an MN-major matrix, of elements of so many bytes, to rows of so many bytes along K."""
    name, count = f"ptxvm.tensor.turned.{size}.{row}", PIECE // size
    elements = [
        f"""\
  %e{n} = extractelement <{count} x i{8 * size}> %held, i64 {n}
  %to{n} = getelementptr i8, ptr %to, i64 {row * n}
  store i{8 * size} %e{n}, ptr %to{n}, align {size}"""
        for n in range(count)
    ]
    return unit.helper(name, runtime(
        "tensor_turned", name=name, size=size, count=count, bits=8 * size, rows=row * count, piece=PIECE,
        elements="\n".join(elements),
    ))  # fmt: skip


def _rows_of_a() -> list[str]:
    """Fill the table for A in tensor memory: two pieces of 16 bytes of each row of a part."""
    return [
        "  %a.column.wide = zext i32 %a.column to i64",
        "  %a.column.bytes = shl i64 %a.column.wide, 2",
        "  %a.begin = add i64 %cells, %a.column.bytes",
        "  br label %a.row",
        "a.row:",
        "  %a.r = phi i64 [ 0, %of.a ], [ %a.r.more, %a.row ]",
        "  %a.row.of.part = add i64 %a.r, %p.row",
        "  %a.lane.at = getelementptr i32, ptr %lanes.table, i64 %a.row.of.part",
        "  %a.lane.short = load i32, ptr %a.lane.at, align 4",
        "  %a.lane.wide = zext i32 %a.lane.short to i64",
        "  %a.down = shl i64 %a.lane.wide, 11",
        "  %a.piece.0 = add i64 %a.begin, %a.down",
        "  %a.piece.1 = add i64 %a.piece.0, 16",
        "  %a.two = shl i64 %a.r, 1",
        "  %a.to.0 = getelementptr i64, ptr %a.table, i64 %a.two",
        "  %a.to.1 = getelementptr i64, ptr %a.to.0, i64 1",
        "  store i64 %a.piece.0, ptr %a.to.0, align 8",
        "  store i64 %a.piece.1, ptr %a.to.1, align 8",
        "  %a.r.more = add i64 %a.r, 1",
        "  %a.r.over = icmp uge i64 %a.r.more, %height",
        "  br i1 %a.r.over, label %a.rows.there, label %a.row",
        "a.rows.there:",
        "  %a.all = shl i64 %height, 1",
        *_flipped("a", "%a.all", "fill"),
    ]


def _fill(unit: Unit, work: Multiply) -> list[str]:
    """Write a sparse A with its zeros, or multiply A by its scales."""
    if not work.sparse:
        return [*tensor_scales.widened(work, "a"), "  br label %multiply"]
    size = SIZES.get(work.kind, 1)
    called, chunks = _filled(unit, size), ROW // (2 * min(size, 2))  # of a row
    return [
        "  %meta.place = zext i32 %meta.column to i64",
        "  %meta.bytes = shl i64 %meta.place, 2",
        "  %meta.begin = add i64 %cells, %meta.bytes",
        f"  %p.bytes = mul i64 %p.row, {4 * chunks}",
        "  %p.places = add i64 %places, %p.bytes",
        "  %stored = shl i64 %height, 1",
        f"  call void @{called}(ptr %a.table, i64 %stored, i64 %meta.begin, i64 %p.places, i64 %filled)",
        "  br label %multiply",
    ]


def _filled(unit: Unit, size: int) -> str:
    """The function that writes a sparse A, of elements of so many bytes, with its zeros.

    A chunk has two of four elements, or one of two of four bytes.
    """
    name, stored = f"ptxvm.tensor.filled.{size}", 16 if size == 1 else 32
    count, whole = 8 * PIECE // stored, 2 * stored  # chunks of a piece, and bits of one with its zeros
    lines = []
    for n in range(count):
        lines += [
            f"  %q{n} = add i64 %first, {n}",
            f"  %place.at{n} = getelementptr i32, ptr %places.table, i64 %q{n}",
            f"  %place{n} = load i32, ptr %place.at{n}, align 4",
            f"  %byte{n} = lshr i32 %place{n}, 3",
            f"  %byte.wide{n} = zext i32 %byte{n} to i64",
            f"  %word.place{n} = add i64 %metadata, %byte.wide{n}",
            f"  %word.at{n} = inttoptr i64 %word.place{n} to ptr",
            f"  %word{n} = load i32, ptr %word.at{n}, align 4",
            f"  %nibble{n} = and i32 %place{n}, 7",
            f"  %down{n} = shl i32 %nibble{n}, 2",
            f"  %code{n} = lshr i32 %word{n}, %down{n}",
            f"  %stored{n} = extractelement <{count} x i{stored}> %held, i64 {n}",
            f"  %wide{n} = zext i{stored} %stored{n} to i{whole}",
            *_chunk(n, size, whole),
            f"  %to{n} = getelementptr i{whole}, ptr %whole, i64 %q{n}",
            f"  store i{whole} %made{n}, ptr %to{n}, align {whole // 8}",
        ]
    return unit.helper(name, runtime(
        "tensor_filled", name=name, count=count, stored=stored, piece=PIECE, chunks="\n".join(lines),
    ))  # fmt: skip


def _chunk(n: int, size: int, whole: int) -> list[str]:
    """Put the stored elements `%wide` of a chunk where the two lower pairs of bits of `%code` say; the second one prevails."""
    type, bits = f"i{whole}", 8 * size
    as_wide = "zext i32 %at{0}.{1} to i64" if whole > WORD else "add i32 %at{0}.{1}, 0"
    if size == WORD // 8:  # both indices are of the halves of one element
        return [
            f"  %half{n} = and i32 %code{n}, 2",
            f"  %at{n}.0 = shl i32 %half{n}, 4",
            f"  %up{n}.0 = {as_wide.format(n, 0)}",
            f"  %made{n} = shl {type} %wide{n}, %up{n}.0",
        ]
    step = bits.bit_length() - 1
    return [
        f"  %i{n}.0 = and i32 %code{n}, 3",
        f"  %rest{n} = lshr i32 %code{n}, 2",
        f"  %i{n}.1 = and i32 %rest{n}, 3",
        *(f"  %at{n}.{e} = shl i32 %i{n}.{e}, {step}" for e in range(2)),
        *(f"  %up{n}.{e} = {as_wide.format(n, e)}" for e in range(2)),
        f"  %e{n}.0 = and {type} %wide{n}, {(1 << bits) - 1}",
        f"  %e{n}.1 = lshr {type} %wide{n}, {bits}",
        f"  %put{n}.0 = shl {type} %e{n}.0, %up{n}.0",
        f"  %put{n}.1 = shl {type} %e{n}.1, %up{n}.1",
        f"  %hides{n} = shl {type} {(1 << bits) - 1}, %up{n}.1",
        f"  %shows{n} = xor {type} %hides{n}, -1",
        f"  %left{n} = and {type} %put{n}.0, %shows{n}",
        f"  %made{n} = or {type} %left{n}, %put{n}.1",
    ]


# ── the host's part ─────────────────────────────────────────────────────────────────────


def can_be_planned(work: Multiply, idesc: InstructionDescriptor, operands: Mapping[str, int]) -> bool:
    """Are A and B just multiplied, where they lie or as copies, or blocks of a dense A with scales?

    Elements of less than a byte lie in another way in tensor memory than in shared memory, and are not copied, but for half
    bytes.
    """
    narrow = work.kind not in HALVED and any(each.bits < tensor_products.BYTE for each in (idesc.a, idesc.b))
    copied = work.in_tensor_memory or work.sparse or work.blocks or any(idesc.transposed + idesc.negated)
    turned_rows = work.in_tensor_memory and idesc.transposed[0]
    scales_of_stored = work.sparse and work.blocks
    return not (scales_of_stored or work.shifted or operands.get("zeros", 0) & MASK or (narrow and copied) or turned_rows)


def sign_bits(bits: int) -> int:
    """The sign bits of the elements of eight bytes."""
    return sum(1 << first + bits - 1 for first in range(0, 64, bits))


def plan(
    host: Host, work: Multiply, function: TileFunction, operands: Mapping[str, int]
) -> tuple[list[int], list[Array]] | None:
    """The words of the plan of a product that is done where the matrices lie, or on copies, and the tables that they name."""
    idesc = instruction_descriptor(work, operands["idesc"])
    bits = idesc.a.bits if work.kind in HALVED else max(8, idesc.a.bits)
    if work.kind not in KINDS or idesc.stored * bits != 8 * ROW:
        return None
    halved = tensor_products.half_of_the_lanes(work, idesc.m)
    parts = 1 if halved else LANES // idesc.m
    lanes = np.ascontiguousarray(tensor_products.lanes_of_rows(work, 0, idesc.m if halved else LANES), np.int32)
    least = least_exponents((idesc.a, idesc.b), idesc.m, idesc.n // parts)
    code = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type] # `tile_product.CALL` has made it
    words = {
        "key": operands["idesc"] | _kind(work), "b": operands["b"] & ~START, "function": code,
        "out": host.plan_tables.room.ctypes.data, "least": least.ctypes.data, "rows.16": idesc.m // HEIGHT,
        "columns.8": idesc.n // parts // WIDTH, "height": idesc.m, "lanes": lanes.ctypes.data, "words": ROW // 4,
        "parts": parts, "kept": host.plan_tables.kept.ctypes.data, "filled": host.plan_tables.copies[2].ctypes.data,
    }  # fmt: skip
    tables: list[Array] = [lanes, least]
    matrices = {"b": Factor(0, idesc.n, idesc.k, bits, idesc.transposed[1])}
    if not work.in_tensor_memory:
        words["a"] = operands["a"] & ~START
        matrices["a"] = Factor(0, idesc.m, idesc.stored, bits, idesc.transposed[0])
    for m, copy, negated in zip("ab", host.plan_tables.copies, idesc.negated, strict=False):
        words |= {f"{m}.copy": copy.ctypes.data, f"{m}.flip": sign_bits(idesc.a.bits) if negated else 0}
    if work.sparse:
        lane, column, place = tensor_products.places_of_metadata(work, 0, idesc)
        cell = lane * COLUMNS + column + idesc.selector
        places = np.ascontiguousarray(WORD * cell + place, np.int32)
        count = idesc.selector + tensor_products.count_of_metadata(idesc)
        words |= {"places": places.ctypes.data, "meta.columns": count}
        tables.append(places)
    if work.blocks:
        words |= tensor_scales.words(host, work, idesc, tables)
    for m, factor in matrices.items():
        descriptor = shared_descriptor(operands[m])
        if descriptor.absolute:
            return None
        offsets = shared_matrix.offsets(descriptor, factor).astype(np.int64).ravel()
        table = np.ascontiguousarray(offsets, np.int32)
        of_matrix = {
            "offsets": table.ctypes.data, "pieces": len(table), "last": int(offsets.max()), "base": descriptor.base,
            "mask": descriptor.swizzle.mask, "unit": (PIECE * descriptor.swizzle.atom).bit_length() - 1,
            "units": len(table) // factor.depth if factor.transposed else 0,
        }  # fmt: skip
        words |= {f"{m}.{word}": each for word, each in of_matrix.items()}
        tables.append(table)
    words["part"] = words["b.pieces"] // parts
    return [int(words.get(word) or 0) for word in PRODUCT], tables

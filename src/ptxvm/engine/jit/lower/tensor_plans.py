"""Work on tensor memory by compiled code: products by plans, loads and stores, and commits (`abi.tensor_record`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.tensor_record import CELLS, MOST_PIECES, OF_MATRIX, PRODUCT, PRODUCTS
from ptxvm.engine.jit.abi.tile_product import HEIGHT, WIDTH, TileFunction
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.lower.tile_products import least_exponents
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.shared_matrix import PIECE, Factor
from ptxvm.isa.tensor_memory import (
    COLUMNS,
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
KINDS = ("f16", "tf32", "i8", "f8f6f4")  # whose elements functions for tiles take as they are
TURNED = {"f16": 2, "i8": 1, "f8f6f4": 1}  # bytes of the elements of which compiled code takes MN-major matrices
ROW = 2 * PIECE  # bytes of a row of a K-major matrix, along K
OPERANDS = ("a", "d", "b", "idesc", "enable")


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
    """Are A and B just multiplied, and D is added as it is?"""
    types = {"a": u64, "d": u64, "b": u64, "idesc": u32, "enable": pred}
    plain = [(name, type) for name, type in operands if not name.startswith("disabled")]
    changes = work.blocks or work.shifted or work.sparse or work.weights or work.kind not in KINDS
    return not changes and plain == [(name, types[name]) for name in OPERANDS]


def _kind(work: Multiply) -> int:
    """The number of a kind and of where A lies, in the upper half of a key, which is not 0."""
    return (2 * KINDS.index(work.kind) + work.in_tensor_memory + 1) << 32


def _product(at: NodeBuilder, work: Multiply, operands: Sequence[tuple[str, Type]]) -> str:
    unit, masks = at.code.unit, sum(name.startswith("disabled") for name, _ in operands)
    name = f"ptxvm.tensor.product.{work.kind}.{'memory' if work.in_tensor_memory else 'shared'}.{masks}"
    if name in unit.helpers:
        return name
    unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
    turned = _turned(unit, TURNED[work.kind]) if work.kind in TURNED else ""
    size = at.kernel.shared_size
    named = ("b",) if work.in_tensor_memory else ("a", "b")
    return unit.helper(name, runtime(
        "tensor_product", name=name, kind=_kind(work), words=len(PRODUCT), plans=PRODUCTS, most_pieces=MOST_PIECES,
        tensor_products=offset("tensor_products"), operands="\n".join(_operands(work, operands)),
        fields=words_of_plan(PRODUCT, *PRODUCT[3:]), reach="\n".join(_reach(work, named, size)),
        of_a="\n".join(_rows_of_a() if work.in_tensor_memory else _pieces("a", "of.a", "of.b", turned)),
        of_b="\n".join(_pieces("b", "of.b", "multiply", turned)),
    ))  # fmt: skip


def _operands(work: Multiply, operands: Sequence[tuple[str, Type]]) -> list[str]:
    """Load the operands of the lane; `%masked` says that some lanes of D stay."""
    lines, masks, short = [], "0", ("a", "d") if work.in_tensor_memory else ("d",)
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
            lines.append(f"  %{name}.all = or i32 {masks}, %{name}")
            masks = f"%{name}.all"
    named = "0" if work.in_tensor_memory else "%a"
    return [*lines, f"  %masked = icmp ne i32 {masks}, 0", f"  %a.named = or i64 {named}, 0"]


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
    return [*lines, f"  %good = and i1 {good}, true"]


def _pieces(m: str, before: str, after: str, turned: str) -> list[str]:
    """Fill the table of the addresses of the pieces of a matrix in shared memory; `turned` makes those of a K-major copy."""
    words, longs = "<16 x i32>", "<16 x i64>"

    def all_of(name: str, value: str, llvm: str = "i32") -> list[str]:
        vector = f"<16 x {llvm}>"
        return [
            f"  %{m}.{name}.one = insertelement {vector} poison, {llvm} {value}, i64 0",
            f"  %{m}.{name} = shufflevector {vector} %{m}.{name}.one, {vector} poison, <16 x i32> zeroinitializer",
        ]

    shorts = [f"  %{m}.{word}.short = trunc i64 %{m}.{word} to i32" for word in ("start", "base", "mask")]
    return [
        *shorts,
        *all_of("starts", f"%{m}.start.short"),
        *all_of("bases", f"%{m}.base.short"),
        *all_of("masks", f"%{m}.mask.short"),
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
        f"  %{m}.moved = shl {words} %{m}.turn, splat (i32 4)",
        f"  %{m}.swizzled = xor {words} %{m}.place, %{m}.moved",
        f"  %{m}.wide = zext {words} %{m}.swizzled to {longs}",
        f"  %{m}.address = add {longs} %{m}.wide, %{m}.memory",
        f"  %{m}.to = getelementptr i64, ptr %{m}.table, i64 %{m}.n",
        f"  store {longs} %{m}.address, ptr %{m}.to, align 64",
        f"  %{m}.n.more = add i64 %{m}.n, 16",
        f"  %{m}.n.over = icmp uge i64 %{m}.n.more, %{m}.pieces",
        f"  br i1 %{m}.n.over, label %{m}.there, label %{m}.piece",
        f"{m}.there:",
        *_copied(m, after, turned),
    ]


def _copied(m: str, after: str, turned: str) -> list[str]:
    """Copy an MN-major matrix to a K-major one, and take the addresses of its pieces."""
    if not turned:
        return [f"  br label %{after}"]
    return [
        f"  %{m}.as.it.is = icmp eq i64 %{m}.copy, 0",
        f"  br i1 %{m}.as.it.is, label %{after}, label %{m}.turned",
        f"{m}.turned:",
        f"  call void @{turned}(ptr %{m}.table, i64 %{m}.pieces, i64 %{m}.units, i64 %{m}.copy)",
        f"  br label %{after}",
    ]


def _turned(unit: Unit, size: int) -> str:
    """The function that copies an MN-major matrix, of elements of so many bytes, to a K-major one."""
    name, count = f"ptxvm.tensor.turned.{size}", PIECE // size
    elements = [
        f"""\
  %e{n} = extractelement <{count} x i{8 * size}> %held, i64 {n}
  %to{n} = getelementptr i8, ptr %to, i64 {ROW * n}
  store i{8 * size} %e{n}, ptr %to{n}, align {size}"""
        for n in range(count)
    ]
    return unit.helper(name, runtime(
        "tensor_turned", name=name, size=size, count=count, bits=8 * size, rows=ROW * count, piece=PIECE,
        elements="\n".join(elements),
    ))  # fmt: skip


def _rows_of_a() -> list[str]:
    """Fill the table for A in tensor memory: two pieces of 16 bytes of each row."""
    return [
        "  %a.column.wide = zext i32 %a.column to i64",
        "  %a.column.bytes = shl i64 %a.column.wide, 2",
        "  %a.begin = add i64 %cells, %a.column.bytes",
        "  br label %a.row",
        "a.row:",
        "  %a.r = phi i64 [ 0, %of.a ], [ %a.r.more, %a.row ]",
        "  %a.lane.at = getelementptr i32, ptr %lanes.table, i64 %a.r",
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
        "  br i1 %a.r.over, label %of.b, label %a.row",
    ]


# ── the host's part ─────────────────────────────────────────────────────────────────────


def _can_be_turned(work: Multiply, idesc: InstructionDescriptor) -> bool:
    """Can compiled code copy what is MN-major?  A in tensor memory has rows, and narrow elements are not alone in a byte."""
    in_rows = work.in_tensor_memory and idesc.transposed[0]
    return not in_rows and all(each.bits == 8 * TURNED.get(work.kind, 0) for each in (idesc.a, idesc.b))


def plan(
    host: Host, work: Multiply, function: TileFunction, operands: Mapping[str, int]
) -> tuple[list[int], list[Array]] | None:
    """The words of the plan of a product that was done where the matrices lie, and the tables that they name."""
    idesc = instruction_descriptor(work, operands["idesc"])
    if work.kind not in KINDS or idesc.k * max(8, idesc.a.bits) != 2 * 8 * PIECE:
        return None
    lanes = np.ascontiguousarray(tensor_products.lanes_of_rows(work, 0, idesc.m), np.int32)
    least = least_exponents((idesc.a, idesc.b), idesc.m, idesc.n)
    code = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type] # `tile_product.CALL` has made it
    words = {
        "key": operands["idesc"] | _kind(work), "b": operands["b"] & ~START, "function": code,
        "out": host.plan_tables.room.ctypes.data, "least": least.ctypes.data, "rows.16": idesc.m // HEIGHT,
        "columns.8": idesc.n // WIDTH, "height": idesc.m, "lanes": lanes.ctypes.data, "words": 2 * PIECE // 4,
    }  # fmt: skip
    tables: list[Array] = [lanes, least]
    matrices = {"b": Factor(0, idesc.n, idesc.k, max(8, idesc.a.bits), idesc.transposed[1])}
    if not work.in_tensor_memory:
        words["a"] = operands["a"] & ~START
        matrices["a"] = Factor(0, idesc.m, idesc.k, max(8, idesc.a.bits), idesc.transposed[0])
    if any(idesc.transposed) and not _can_be_turned(work, idesc):
        return None
    for m, factor in matrices.items():
        descriptor = shared_descriptor(operands[m])
        if descriptor.swizzle.atom > 1 or descriptor.absolute:
            return None
        offsets = shared_matrix.offsets(descriptor, factor).astype(np.int64).ravel()
        table = np.ascontiguousarray(offsets, np.int32)
        copy, units = (
            (host.plan_tables.copies["ab".index(m)].ctypes.data, len(table) // idesc.k) if factor.transposed else (0, 0)
        )
        of_matrix = table.ctypes.data, len(table), int(offsets.max()), descriptor.base, descriptor.swizzle.mask, copy, units
        words |= {f"{m}.{word}": each for word, each in zip(OF_MATRIX, of_matrix, strict=True)}
        tables.append(table)
    return [int(words.get(word) or 0) for word in PRODUCT], tables

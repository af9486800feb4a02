"""Blocks with scales in products by compiled code (PTX 9.7.16.10.7): scales are collected from tensor memory.

Functions for tiles multiply half bytes by scales, which they take in registers; bytes are multiplied before, and become bf16.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.lower.tile_products import NAN, TILE, least_of_scales
from ptxvm.isa import fragments
from ptxvm.isa.fragments import Product
from ptxvm.isa.shared_matrix import PIECE
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import COLUMNS, HALVED, InstructionDescriptor, Multiply
from ptxvm.machine import tensor_core, tensor_products
from ptxvm.machine.per_lane import Array
from ptxvm.machine.warp_matrix import where


def collected(unit: Unit, work: Multiply) -> list[str]:
    """Collect the scales of the rows of A and B, and multiply those of B by them where that is done before the product."""
    if not work.blocks:
        return ["  br label %each.part"]
    unit.declare("llvm.masked.gather.v16f32.v16p0", "<16 x float>", "<16 x ptr>", "i32", "<16 x i1>", "<16 x float>")
    called, lines = unit.helper("ptxvm.tensor.scales", runtime("tensor_scales", nan=NAN)), []
    for m in ("scale_a", "scale_b"):
        lines += [
            f"  %{m}.place = zext i32 %{m}.column to i64",
            f"  %{m}.bytes = shl i64 %{m}.place, 2",
            f"  %{m}.begin = add i64 %cells, %{m}.bytes",
            f"  call void @{called}(i64 %{m}.table, i64 %{m}.count.all, i64 %{m}.begin, i64 %{m}.held)",
        ]
    return [*lines, *widened(work, "b"), "  br label %each.part"]


def widened(work: Multiply, m: str) -> list[str]:
    """Multiply the elements of a matrix by scales, unless they are half bytes, which the function for tiles multiplies."""
    if not work.blocks or work.kind in HALVED:
        return []
    arguments = ", ".join(f"i64 %scale_{m}.{word}" for word in ("held", "values", "factors", "exponents", "least", "product"))
    pieces = f"%{m}.pieces" if m == "b" or not work.in_tensor_memory else "%a.all"
    return [f"  call void @ptxvm.tensor.widened(ptr %{m}.table, i64 {pieces}, {arguments})"]


# ── the host's part ─────────────────────────────────────────────────────────────────────


def words(host: Host, work: Multiply, idesc: InstructionDescriptor, tables: list[Array]) -> dict[str, int]:
    """The words of a plan about the scales of A and B; `tables` gets the tables that they name."""
    product, halved, behind = tensor_products.product_of(work, idesc), work.kind in HALVED, 0
    found: dict[str, int] = {}
    places = places_in_registers(product, idesc.m) if halved else [np.arange(rows)[:, None] for rows in (idesc.m, idesc.n)]
    held = np.zeros(sum(int(each.max()) // PIECE + 1 for each in places) * PIECE, np.uint8)
    least = held if halved else np.zeros(idesc.m + idesc.n, np.uint16)
    elements, copies = (idesc.a, idesc.b), host.plan_tables.copies[3:]
    for m, place, first, element, copy in zip("ab", places, idesc.scale_ids, elements, copies, strict=True):
        lanes, columns = tensor_products.cells_of_scales(work, idesc, f"scale_{m}")
        byte = (first + np.arange(columns.shape[1])) % 4
        sources = 4 * (lanes[:, None] * COLUMNS + columns) + byte
        table = np.ascontiguousarray(np.stack([sources, place], axis=-1), np.int32)
        values, factors, exponents = tables_of_scales(element, idesc.scales)
        of_matrix = {
            "table": table.ctypes.data, "count.all": place.size, "columns": int(columns.max()) + 1,
            "held": held.ctypes.data + behind, "values": values.ctypes.data, "factors": factors.ctypes.data,
            "exponents": exponents.ctypes.data, "least": least.ctypes.data + 2 * behind, "product": copy.ctypes.data,
        }  # fmt: skip
        found |= {f"scale_{m}.{word}": each for word, each in of_matrix.items()}
        tables += [table, values, factors, exponents]
        behind += int(place.max()) // PIECE * PIECE + PIECE
    tables += [held, least]
    return found | {"least": least.ctypes.data}


def places_in_registers(product: Product, rows_of_a: int) -> list[Array]:
    """Of the scales of a product of half bytes, `(rows, blocks)` of A and of B: the bytes of the registers of all tiles.

    `tile_products.registers_of_scales` has the registers of A, and then those of B.
    """
    scaling = product.scaling
    assert scaling is not None  # noqa: S101 - for mypy
    tile = fragments.scaling(TILE, scaling.a.shape[1], scaling.a.type)
    found = []
    for of_tile, rows in ((where(tile.a)[0], rows_of_a), (where(tile.b)[0].T, product.d.shape[1])):
        tiles = np.arange(rows // len(of_tile))[:, None, None]
        found.append((tiles * (4 * WARP) + of_tile).reshape(rows, -1))
    return found


@cache
def tables_of_scales(type: Type, of_scales: Type) -> tuple[Array, Array, Array]:
    """What each byte of a small float means, what each scale does, and the least exponent of numbers with it."""
    with np.errstate(all="ignore"):
        values = tensor_core.table(type, type, tensor_core.SHIFT.get(type.name, 0))[0].astype(np.float32)
        factors = tensor_core.table(of_scales, of_scales, 0)[0].astype(np.float32)
    return np.resize(values, 256), factors, least_of_scales(type, np.arange(256))

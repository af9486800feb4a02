"""The products of `tcgen05.mma`: matrices in shared and tensor memory, with their scales and metadata (PTX 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ptxvm.algebra.types import f16
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa import fragments
from ptxvm.isa.fragments import CHUNKS, Core, Product
from ptxvm.isa.shared_matrix import PIECE, Factor
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import (
    DEEPER,
    DEPTHS,
    HALVED,
    LANES,
    InstructionDescriptor,
    InvalidDescriptor,
    Multiply,
    instruction_descriptor,
    shared_descriptor,
    zero_columns,
)  # fmt: skip
from ptxvm.machine import shared_matrix, tensor_core
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.tensor_core import Architecture, Matrices
from ptxvm.machine.tensor_engine import FasterProducts, InPlace, Machine, ctas, pieces_of
from ptxvm.machine.tensor_memory import TensorMemory
from ptxvm.machine.warp_matrix import split
from ptxvm.machine.warpgroup_matrix import no_fma

WIDEST = 32  # bits of an element
BYTE = 8  # bits
SCALES = "scale_a", "scale_b"
Factors: TypeAlias = tuple[tuple[Factor, PerLane], ...]
"""B and A, or B alone, with the addresses of their pieces."""


@lru_cache(maxsize=64)
def product_of(work: Multiply, idesc: InstructionDescriptor) -> Product:
    """The product of the whole matrices, 16 rows at a time."""
    shape, halved, made = f"m16n{idesc.n}k{idesc.k}", work.kind in HALVED, fragments.mma_fragment
    stored = fragments.half_as_deep(shape) if work.sparse else shape
    a, b = (
        fragments.halved_fragment(name, own) if halved else made(name, type, own)
        for name, type, own in (("a", idesc.a, stored), ("b", idesc.b, shape))
    )
    sparsity = fragments.sparsity(idesc.a, shape, paired=halved) if work.sparse else None
    scaling = fragments.scaling(shape, blocks_of(work, idesc), idesc.scales) if idesc.scales is not None else None
    return Product(a, b, made("c", idesc.d, shape), made("d", idesc.d, shape), finite=idesc.saturates, scaling=scaling,
                   sparsity=sparsity, core=Core.TCGEN05)  # fmt: skip


def factors(work: Multiply, operands: Mapping[str, int]) -> Factors:
    """B, and A where it is in shared memory, with the addresses of their pieces; of a pair, the halves that each CTA has."""
    first, of_a = operands.get("zeros", 0) >> 56 & 0x3F, 0 if work.in_tensor_memory else operands["a"]
    return _factors(work, operands["idesc"], first, operands["b"], of_a)


@lru_cache(maxsize=64)
def _factors(work: Multiply, descriptor: int, first: int, of_b: int, of_a: int) -> Factors:
    """A loop names the same matrices again and again."""
    idesc = instruction_descriptor(work, descriptor)
    bits = 4 if work.kind in HALVED else max(8, idesc.a.bits)
    b = Factor(first, idesc.n // work.ctas, idesc.k, bits, idesc.transposed[1])
    found = (b, addresses_of(b, of_b))
    if work.in_tensor_memory:
        return (found,)
    a = Factor(0, idesc.m // work.ctas, idesc.stored, bits, idesc.transposed[0])
    return found, (a, addresses_of(a, of_a))


def addresses_of(factor: Factor, bits: int) -> PerLane:
    """The addresses of the pieces of A or B, whose swizzle fits its elements (PTX 9.7.16.10.3)."""
    descriptor = shared_descriptor(bits)
    if descriptor.absolute and factor.transposed:
        raise InvalidDescriptor("bit 52 of the descriptor of a matrix asks for an absolute address, and it is transposed")
    if factor.transposed and (descriptor.swizzle.atom > 1) is not (factor.bits == WIDEST):
        raise InvalidDescriptor("a transposed matrix of 32 bits has the swizzle of 128 bytes that moves 32, and no other has")
    return shared_matrix.addresses(descriptor, factor)


def multiply(work: Multiply, machine: Machine, lane: int, operands: Mapping[str, int]) -> None:
    """D = A * B + D: of a pair, each CTA has half of the rows of A and D, and half of the columns of B."""
    idesc = instruction_descriptor(work, operands["idesc"])
    lanes = ctas(work, machine, lane)
    faster = machine.faster if is_plain(work, idesc, operands) else None
    left = in_place(work, machine, faster, lanes, operands, idesc) if faster else lanes
    if not left:
        return
    product = product_of(work, idesc)
    read = [matrices_of(work, machine, each, operands, product) for each in lanes]
    right = np.vstack([there[0] for there in read])
    if idesc.negated[1]:
        right = right ^ sign(product.b)
    right = right.T.copy()
    if "zeros" in operands:
        right[:, zero_columns(operands["zeros"], idesc.m, idesc.n)] = 0
    keep = np.split(disabled(operands, work.ctas), work.ctas)
    own = [(each, there[1:], kept) for each, there, kept in zip(lanes, read, keep, strict=True) if each in left]
    made = [of_cta(work, machine, each, operands, (product, of_a, right)) for each, of_a, _ in own]
    for (each, _, kept), parts in zip(own, made, strict=True):
        for (rows, columns), part in parts:
            changed = ~kept[rows]
            machine.tensor_memory(each).cells[rows[changed], columns] = part[changed]


PLAIN = (False, False)


def is_plain(work: Multiply, idesc: InstructionDescriptor, operands: Mapping[str, int]) -> bool:
    """Are A and B K-major and just multiplied, and are all cells of D written, which lie in one part?

    Elements of less than a byte lie in another way in tensor memory than in shared memory.
    """
    narrow = work.in_tensor_memory and idesc.a.bits < BYTE
    halves = work.pairs and idesc.m == LANES  # of the columns of D, in halves of the lanes
    changes = narrow or halves or work.blocks or work.shifted or work.sparse or operands.get("scale", 0)
    masks = operands.get("zeros", 0) >> 39 & 1 or any(operands.get(f"disabled{n}", 0) for n in range(4 * work.ctas))
    as_it_is = idesc.negated == idesc.transposed == PLAIN
    return as_it_is and not (changes or masks) and not (work.weights and idesc.m < LANES)


def in_place(
    work: Multiply, machine: Machine, faster: FasterProducts, lanes: Sequence[int], operands: Mapping[str, int],
    idesc: InstructionDescriptor,
) -> list[int]:  # fmt: skip
    """Multiply where the matrices lie, in the CTA of each lane; returns the lanes that are left to the way of all products."""
    of_a, of_d = operands["a"] & 0xFFFF_FFFF, operands["d"] & 0xFFFF_FFFF
    memories = [machine.tensor_memory(lane) for lane in lanes]
    for memory in memories:
        memory.check(of_d, idesc.n, "matrix D")
        if work.in_tensor_memory:
            memory.check(of_a, idesc.k * idesc.a.bits // 32, "matrix A")
    named = tuple([operands.get(name, 0) for name in ("a", "b", "d", "idesc", "zeros")])
    key = work, named, tuple(lanes), tuple([memory.cells.ctypes.data for memory in memories])
    calls = faster.remembered(key, lambda: calls_of(work, faster, lanes, memories, operands))
    enabled = bool(operands["enable"])
    return [lane for lane, call in zip(lanes, calls, strict=True) if call is None or not call(enabled)]


def calls_of(
    work: Multiply, faster: FasterProducts, lanes: Sequence[int], memories: Sequence[TensorMemory], operands: Mapping[str, int]
) -> list[InPlace | None]:
    """The code for the part of a product in the CTA of each lane."""
    idesc, found = instruction_descriptor(work, operands["idesc"]), []
    product = product_of(work, idesc)
    there = [[faster.addresses_of_pieces(each, places) for _, places in factors(work, operands)] for each in lanes]
    of_b = np.concatenate([own[0] for own in there])
    for memory, own in zip(memories, there, strict=True):
        if work.in_tensor_memory:
            address, size = operands["a"] & 0xFFFF_FFFF, idesc.k * idesc.a.bits // 8
            rows = lanes_of_rows(work, address, idesc.m)
            own.append(memory.addresses(rows, address & 0xFFFF)[:, None] + np.arange(0, size, PIECE))
        ((rows, columns),) = blocks_of_d(work, memory, operands["d"] & 0xFFFF_FFFF, idesc)
        found.append(faster.in_place(product, own[1], of_b, memory.addresses(rows, columns.start)))
    return found


def matrices_of(work: Multiply, machine: Machine, lane: int, operands: Mapping[str, int], product: Product) -> list[Matrices]:
    """B, and A where it is in shared memory, as the shared memory of a lane's CTA has them: rows along N or M."""
    there: list[Matrices] = []
    for factor, addresses in factors(work, operands):
        fragment = product.a if there else product.b
        packed = f"b{fragment.type.bits}" if fragment.type.bits < 8 and not fragment.halved else ""
        pieces = pieces_of(packed, machine, lane, addresses)
        there.append(shared_matrix.elements(factor, pieces[None])[0])
    return there


def of_cta(
    work: Multiply, machine: Machine, lane: int, operands: Mapping[str, int],
    matrices: tuple[Product, list[Matrices], Matrices],
) -> list[tuple[tuple[PerLane, slice], PerLane]]:  # fmt: skip
    """The rows of D that lie in the tensor memory of a lane's CTA: their lanes and columns, and the new values."""
    idesc, memory = instruction_descriptor(work, operands["idesc"]), machine.tensor_memory(lane)
    product, in_shared, right = matrices
    left = in_shared[0] if in_shared else of_tensor_memory(work, memory, operands["a"] & 0xFFFF_FFFF, idesc)
    if idesc.negated[0]:
        left = left ^ sign(product.a)
    blocks = blocks_of_d(work, memory, operands["d"] & 0xFFFF_FFFF, idesc)
    same_lanes(work, operands, idesc)
    added = accumulators(np.hstack([memory.cells[rows, columns] for rows, columns in blocks]), idesc, operands)
    further = [metadata(work, memory, operands["meta"] & 0xFFFF_FFFF, idesc)] if work.sparse else []
    further += scales(work, memory, operands, idesc) if work.blocks else []
    made = of_copies(machine.faster, product, left, right, added, further)
    return list(zip(blocks, np.split(made.astype(np.uint32), len(blocks), axis=1), strict=True))


def of_copies(
    faster: FasterProducts | None, product: Product, left: Matrices, right: Matrices, added: Matrices, further: list[Matrices]
) -> Matrices:
    """The product; of copies of A or of its metadata, each is multiplied with its part of the columns."""
    of_rows, of_columns = [left, *further[:1]], [right, added, *further[1:]]
    count, made = max(map(len, of_rows)) // len(added), []
    rows = [np.split(each, count) if len(each) > len(added) else [each] * count for each in of_rows]
    columns = [np.split(each, count, axis=1) for each in of_columns]
    for (a, *of_a), (b, c, *of_b) in zip(zip(*rows, strict=True), zip(*columns, strict=True), strict=True):
        more = [*of_a, *of_b]
        quick = None if faster is None else faster.multiply(product, a, b, c, more)
        made.append(by_sixteen(product, a, b, c, more) if quick is None else quick)
    return np.hstack(made)


def same_lanes(work: Multiply, operands: Mapping[str, int], idesc: InstructionDescriptor) -> None:
    """A, D and the metadata begin at the same lane where they take half of the lanes of each warp (PTX 9.7.16.10.8.5)."""
    names = ["d"] + ["a"] * work.in_tensor_memory + ["meta"] * work.sparse
    lanes = {operands[name] >> 16 & 0xFFFF for name in names}
    if len(lanes) > 1 and half_of_the_lanes(work, idesc.m):
        said = "matrices A and D and the metadata of 64 rows in a CTA begin at the same lane"
        raise AccessFault("tensor-memory", said, operands["d"] & 0xFFFF_FFFF)


def sign(fragment: fragments.Fragment) -> PerLane:
    """The sign bit of elements."""
    bits = fragment.type.bits - 1 + (2 if fragment.type.bits == 4 and not fragment.halved else 0)
    found: PerLane = np.array(1 << bits, f"u{max(8, fragment.width) // 8}")
    return found


def by_sixteen(product: Product, left: Matrices, right: Matrices, added: Matrices, further: list[Matrices]) -> Matrices:
    """The product, 16 rows at a time, which lie in caches; all at once where sums of groups come first, which are few."""
    height = len(left) if product.a.halved else 16
    count = len(left) // height
    a, b, c = left.reshape(count, height, -1), np.broadcast_to(right, (count, *right.shape)), added.reshape(count, height, -1)
    of_b = [further.pop()] if product.scaling is not None else []
    more = [each.reshape(count, height, -1) for each in further] + [np.broadcast_to(x, (count, *x.shape)) for x in of_b]
    made = tensor_core.multiply(product, Architecture.BLACKWELL, a, b, c, no_fma, more)
    return made.reshape(added.shape)


@lru_cache(maxsize=64)
def lanes_of_rows(work: Multiply, address: int, m: int, matrix: str = "matrix A") -> PerLane:
    """The lane of each row of A, D or the metadata in a CTA (PTX 9.7.16.10.5); `m` counts the rows of all CTAs."""
    rows = np.arange(m // work.ctas)
    if half_of_the_lanes(work, m):
        rows = rows // 16 * WARP + rows % 16
        if address >> 16 not in (0, 16):
            raise AccessFault(
                "tensor-memory", f"{matrix} of 64 rows in a CTA begins at lane 0 or 16, not {address >> 16}", address
            )
    found = rows + (address >> 16)
    if found[-1] >= LANES:
        raise AccessFault("tensor-memory", f"{matrix} at {address:#x} goes beyond the lanes of tensor memory", address)
    found.flags.writeable = False
    return found


def lanes_of_a(work: Multiply, address: int, m: int) -> PerLane:
    """The lanes of A in a CTA: a copy of its rows for each part of D, in the lanes of that part.

    Kernels that run on the hardware have other rows in each copy, so that an instruction does several products.
    """
    return lanes_of_rows(work, address, m if half_of_the_lanes(work, m) else work.ctas * LANES)


def lanes_of_metadata(work: Multiply, address: int, m: int) -> PerLane:
    """The lanes of the metadata in a CTA: those of the rows of D that they are for."""
    return lanes_of_rows(work, address, m if half_of_the_lanes(work, m) else work.ctas * LANES, "the metadata")


def half_of_the_lanes(work: Multiply, m: int) -> bool:
    """Are the rows of A, D and the metadata in half of the lanes of each warp (PTX 9.7.16.10.5, layouts C and F)?"""
    return m // work.ctas == LANES // 2 and not work.weights and (work.sparse or not work.pairs)


def blocks_of_d(
    work: Multiply, memory: TensorMemory, address: int, idesc: InstructionDescriptor
) -> list[tuple[PerLane, slice]]:
    """The lanes and columns of D in a CTA, in one part.

    The columns of fewer rows lie in several parts: with .ws, and in pairs where each CTA has 64 rows of a dense A.
    """
    own = idesc.m // work.ctas
    parts = 1 if half_of_the_lanes(work, idesc.m) else LANES // own
    width, first = idesc.n // parts, address & 0xFFFF
    memory.check(address, width, "matrix D")
    rows = lanes_of_rows(work, address, idesc.m, "matrix D")
    found = [(rows + part * own, slice(first, first + width)) for part in range(parts)]
    if found[-1][0].max() >= LANES:
        raise AccessFault("tensor-memory", f"matrix D at {address:#x} goes beyond the lanes of tensor memory", address)
    return found


def of_tensor_memory(work: Multiply, memory: TensorMemory, address: int, idesc: InstructionDescriptor) -> Matrices:
    """The elements of A in tensor memory, packed in its words."""
    bits = 4 if work.kind in HALVED else max(8, idesc.a.bits)
    words = idesc.stored * bits // 32
    memory.check(address, words, "matrix A")
    column = address & 0xFFFF
    held = np.ascontiguousarray(memory.cells[lanes_of_a(work, address, idesc.m), column : column + words])
    found: Matrices = split(bits, held.view(np.uint8)).reshape(-1, idesc.stored)
    return found


def metadata(work: Multiply, memory: TensorMemory, address: int, idesc: InstructionDescriptor) -> Matrices:
    """The metadata of each row and chunk of a sparse A, four bits (PTX 9.7.16.10.8).

    PTX shows their layout in pictures only.  This one is that of CUTLASS for 128 rows in a CTA, and for any with `.ws`.  Where
    64 rows are in half of the lanes, each block of 16 rows is taken to lie in its lanes as one of 128 rows does: D and the
    metadata have the same lanes there (9.7.16.10.8.5).
    """
    columns = columns_of_metadata(work, memory, address, idesc)
    lanes, column, place = places_of_metadata(work, address, idesc)
    found: Matrices = memory.cells[lanes, columns.start + column] >> np.uint32(4) * place.astype(np.uint32) & np.uint32(15)
    return found


def places_of_metadata(work: Multiply, address: int, idesc: InstructionDescriptor) -> tuple[PerLane, PerLane, PerLane]:
    """Of each row and chunk of a sparse A, the lane and the column of its metadata, and which four bits of the word."""
    lanes, columns = lanes_of_metadata(work, address, idesc.m), count_of_metadata(idesc)
    row, chunk = np.arange(len(lanes))[:, None], np.arange(columns * CHUNKS)[None, :]
    if columns > 1:
        return lanes[row], chunk // CHUNKS, chunk % CHUNKS
    return lanes[row % 8 + row // 16 * 16 + chunk // 4 * 8], chunk // CHUNKS, row // 8 % 2 * 4 + chunk % 4


def count_of_metadata(idesc: InstructionDescriptor) -> int:
    """The columns of tensor memory that have metadata."""
    return 1 if idesc.a.bits >= 16 else 2


def columns_of_metadata(work: Multiply, memory: TensorMemory, address: int, idesc: InstructionDescriptor) -> range:
    """The columns of tensor memory that have the metadata of A.

    The selector names one of two columns of elements of 16 bits and more (CUTLASS: `id2` is the lowest bit of the address).
    """
    if idesc.selector > 1:
        raise Unsupported(f"'{work.mnemonic}' with the sparsity selector {idesc.selector}")
    count, first = count_of_metadata(idesc), (address & 0xFFFF) + idesc.selector
    memory.check(address + idesc.selector, count, "the metadata")
    return range(first, first + count)


def accumulators(cells: PerLane, idesc: InstructionDescriptor, operands: Mapping[str, int]) -> Matrices:
    """D before the product: zeros where it does not count; scaled down by a power of two."""
    if not operands["enable"]:
        cells = np.zeros_like(cells)
    if scale := operands.get("scale", 0):
        held = np.float16 if idesc.d is f16 else np.float32
        values = (cells.astype(np.uint16) if idesc.d is f16 else cells).view(held)
        scaled: Matrices = np.ldexp(values, -scale).astype(held).view(f"u{held().itemsize}")
        return scaled
    found: Matrices = cells.astype(np.uint16) if idesc.d is f16 else cells
    return found


def blocks_of(work: Multiply, idesc: InstructionDescriptor) -> int:
    """How many blocks with a scale of their own a row has: as many for each element in a deeper product (PTX 9.7.16.10.7.1)."""
    return work.blocks * idesc.k // (DEPTHS[work.kind] << work.sparse)


def scales(work: Multiply, memory: TensorMemory, operands: Mapping[str, int], idesc: InstructionDescriptor) -> list[Matrices]:
    """The scales of the rows of A and of the columns of B: bytes of the words that `cells_of_scales` names."""
    found = []
    for name, first in zip(SCALES, idesc.scale_ids, strict=True):
        address, (lanes, columns) = operands[name] & 0xFFFF_FFFF, cells_of_scales(work, idesc, name)
        memory.check(address, int(columns.max()) + 1, "the scales")
        words = memory.cells[lanes[:, None], (address & 0xFFFF) + columns]
        place = 8 * ((first + np.arange(columns.shape[1])) % 4).astype(np.uint32)
        found.append((words >> place).astype(np.uint8))
    return [found[0], found[1].T]


def cells_of_scales(work: Multiply, idesc: InstructionDescriptor, name: str) -> tuple[PerLane, PerLane]:
    """The lane of the scales of each row of A (`scale_a`) or column of B, and their columns, `(rows, blocks)`.

    32 rows have a column, with four scales.  Of a pair, each CTA has those of its rows, and those of all columns of B.  Where
    the columns of D lie in two halves of the lanes, so do their scales (CUTLASS, `ScaleFactorDuplicated2by2`).  In products of
    depth 96 they go on in the words of the next four scales, which are behind those of all rows.
    """
    count, first = (idesc.m // work.ctas, idesc.scale_ids[0]) if name == "scale_a" else (idesc.n, idesc.scale_ids[1])
    halves = 2 if name == "scale_b" and work.pairs and idesc.m == LANES else 1
    half, each = np.divmod(np.arange(count), count // halves)
    word = (first + np.arange(blocks_of(work, idesc))) // 4
    if word[-1] and idesc.k != DEEPER:
        raise InvalidDescriptor(f"the scales begin at byte {first}, and {work.blocks} bytes are needed")
    further = LANES // WARP * (1 if count <= LANES else 2)
    return half * (LANES // 2) + each % WARP, each[:, None] // WARP + word * further


def disabled(operands: Mapping[str, int], ctas: int) -> PerLane:
    """The lanes of tensor memory that keep their D, CTA by CTA."""
    words = np.array([operands.get(f"disabled{n}", 0) for n in range(4 * ctas)], np.uint32)
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)

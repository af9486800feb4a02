"""The cells of tensor memory that work reads and writes, as blocks of lanes and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import HALVED, LANES, CopyToTensor, Load, Move, Multiply, Shift, instruction_descriptor
from ptxvm.machine import tensor_memory, tensor_products, tensor_unit
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.tensor_memory import TensorMemory

EVERY_LANE = (1 << LANES) - 1


@dataclass(frozen=True, slots=True)
class CellBlock:
    """Cells of some lanes, a bit each in a mask, in the columns from `first` to before `end`."""

    lanes: int
    first: int
    end: int
    reads: bool
    writes: bool
    accumulates: bool = False
    """Is it matrix D of a product?"""
    partly: bool = False
    """May the work leave some of the cells unread?"""

    def overlaps(self, other: CellBlock) -> bool:
        """Do the blocks have a cell in common?"""
        return bool(self.lanes & other.lanes) and self.first < other.end and other.first < self.end

    def covers(self, other: CellBlock) -> bool:
        """Does the block have all cells of another?"""
        return not other.lanes & ~self.lanes and self.first <= other.first and other.end <= self.end

    def conflicts(self, other: CellBlock) -> bool:
        """Do both access a cell that one of them writes?"""
        return (self.writes or other.writes) and self.overlaps(other)


def of_move(work: Move, memory: TensorMemory, warp: int, operands: Mapping[str, int]) -> list[CellBlock]:
    """The cells of a load or store of a warp, with the columns of both parts of a tile that has two."""
    split = operands.get("split", 0)
    rows, columns = tensor_memory.cells_of(work, memory, warp, operands["a"] & 0xFFFF_FFFF, split)
    reads, width = isinstance(work, Load), 2 if work.packed else 1
    found = []
    for half in (slice(0, WARP // 2), slice(WARP // 2, WARP)):
        first, end = int(columns[half].min()), int(columns[half].max()) + width
        found.append(CellBlock(mask(rows[half].reshape(-1)), first, end, reads=reads, writes=not reads, partly=True))
    return found


def of_thread(work: CopyToTensor | Multiply | Shift, memory: TensorMemory, operands: Mapping[str, int]) -> list[CellBlock]:
    """The cells of a copy, shift or product, in one of the CTAs."""
    if isinstance(work, Shift):
        address = operands["a"] & 0xFFFF_FFFF
        memory.check(address, tensor_unit.SHIFTED, "a shift")
        first, moved = address & 0xFFFF, EVERY_LANE >> (address >> 16) << (address >> 16)
        return [CellBlock(moved, first, first + tensor_unit.SHIFTED, reads=True, writes=True, partly=True)]
    if isinstance(work, CopyToTensor):
        address, width = operands["a"] & 0xFFFF_FFFF, work.bytes // 4
        memory.check(address, width, "a copy")
        first, height = address & 0xFFFF, tensor_unit.height_of_copy(work)
        lanes = [(address >> 16) + warp * WARP + row for warp in range(len(work.warps)) for row in range(height)]
        return [CellBlock(mask(lanes), first, first + width, reads=False, writes=True)]
    idesc = instruction_descriptor(work, operands["idesc"])
    found = [
        CellBlock(mask(rows), columns.start, columns.stop, bool(operands["enable"]), writes=True, accumulates=True)
        for rows, columns in tensor_products.blocks_of_d(work, memory, operands["d"] & 0xFFFF_FFFF, idesc)
    ]
    if work.in_tensor_memory:
        address, words = operands["a"] & 0xFFFF_FFFF, idesc.stored * (4 if work.kind in HALVED else max(8, idesc.a.bits)) // 32
        memory.check(address, words, "matrix A")
        first = address & 0xFFFF
        found.append(
            CellBlock(
                mask(tensor_products.lanes_of_a(work, address, idesc.m)), first, first + words, reads=True, writes=work.shifted
            )
        )
    if work.sparse:
        address = operands["meta"] & 0xFFFF_FFFF
        held = tensor_products.columns_of_metadata(work, memory, address, idesc)
        lanes = tensor_products.lanes_of_metadata(work, address, idesc.m)
        found.append(CellBlock(mask(lanes), held.start, held.stop, reads=True, writes=False, partly=True))
    for name in tensor_products.SCALES if work.blocks else ():
        address, (rows, of_rows) = operands[name] & 0xFFFF_FFFF, tensor_products.cells_of_scales(work, idesc, name)
        first, words = address & 0xFFFF, int(of_rows.max()) + 1
        memory.check(address, words, "the scales")
        found.append(CellBlock(mask(rows), first, first + words, reads=True, writes=False, partly=True))
    return found


def of_allocation(operands: Mapping[str, int]) -> list[CellBlock]:
    """The cells that are given back."""
    first = operands["a"] & 0xFFFF
    return [CellBlock(EVERY_LANE, first, first + operands["columns"], reads=False, writes=True)]


def mask(lanes: Iterable[int] | PerLane) -> int:
    """Lanes as bits."""
    found = 0
    for lane in lanes:
        found |= 1 << int(lane)
    return found

"""Tensor memory: 512 columns of 128 lanes for each CTA, allocated column by column (PTX 9.7.16.1, 9.7.16.7, 9.7.16.8)."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ptxvm.isa.tensor_memory import COLUMNS, LANES, WARP_LANES, Load, Move, Tile
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.per_lane import Array, PerLane

Cells = npt.NDArray[np.uint32]
UNIT = 32  # columns of the smallest allocation
NO_PAIR = ".cta_group::2 needs a pair of CTAs: a launch in clusters of an even number of them"


class TensorMemory:
    """The tensor memory of a CTA: cells `(lanes, columns)`, and the allocations as first column and number of columns."""

    def __init__(self) -> None:
        self.cells: Cells = np.zeros((LANES, COLUMNS), np.uint32)
        self.allocated: dict[int, int] = {}
        self.requests: dict[int, int] = {}  # of warps that wait: how many columns, in the order in which they came
        self.granted: dict[int, int] = {}  # to warps that have yet to allocate: the first column
        self.given_up = False
        self.ctas = 0  # of an instruction, which all have in common; 0 before the first

    def request(self, warp: int, columns: int) -> None:
        """A warp wants columns; `grant` tells when it has them."""
        if columns < UNIT or columns > COLUMNS or columns & (columns - 1):
            raise AccessFault("tensor-memory", f"columns are allocated by 32, 64, 128, 256 or 512, not by {columns}")
        if self.given_up:
            raise AccessFault("tensor-memory", "the CTA has relinquished its permit to allocate tensor memory")
        self.requests[warp] = columns

    def grant(self) -> list[int]:
        """Allocate columns for the warps that wait, as far as there are enough; these warps."""
        found = []
        for warp, columns in list(self.requests.items()):
            first = self._free(columns)
            if first is not None:
                del self.requests[warp]
                self.allocated[first] = columns
                self.granted[warp] = first
                found.append(warp)
        return found

    def _free(self, columns: int) -> int | None:
        """The first of so many columns that are free."""
        free = np.ones(COLUMNS, np.bool_)
        for first, count in self.allocated.items():
            free[first : first + count] = False
        return next((at for at in range(0, COLUMNS, columns) if free[at : at + columns].all()), None)

    def allocate(self, warp: int) -> int:
        """The address of the columns that a warp was granted."""
        return self.granted.pop(warp)

    def addresses(self, lanes: PerLane, column: int) -> PerLane:
        """Where the cells of some lanes in a column lie in the memory of this machine."""
        return lanes * (COLUMNS * 4) + (self.cells.ctypes.data + 4 * column)

    def used_by(self, ctas: int) -> None:
        """An instruction of `.cta_group::1` or `::2` uses it: all of a kernel have the same (PTX 9.7.16.7.1)."""
        if self.ctas not in (0, ctas):
            said = f"an instruction with .cta_group::{ctas} after one with .cta_group::{self.ctas}: a kernel has one of the two"
            raise AccessFault("tensor-memory", said)
        self.ctas = ctas

    def free(self, address: int, columns: int) -> None:
        """Give columns back."""
        if self.allocated.get(address) != columns:
            held = self.allocated.get(address)
            why = f"{held} columns were allocated there" if held else "no allocation begins there"
            raise AccessFault("tensor-memory", f"dealloc of {columns} columns at {address:#x}: {why}", address)
        del self.allocated[address]

    def leaked(self) -> str:
        """Names the columns that have not been given back; empty where all have."""
        held = ", ".join(f"{count} columns at {first:#x}" for first, count in self.allocated.items())
        return f"a CTA ends, and has not given back {held} of tensor memory" if held else ""

    def check(self, address: int, columns: int, action: str) -> None:
        """Are all of some columns from an address on allocated?"""
        first = address & 0xFFFF
        if not any(start <= first and first + columns <= start + count for start, count in self.allocated.items()):
            said = f"{action} of {plural(columns, 'column')} at {address:#x} of tensor memory, which are not allocated"
            raise AccessFault("tensor-memory", said, address)


# ── loads and stores ────────────────────────────────────────────────────────────────────


@cache
def cells(tile: Tile, registers: int, split: int) -> tuple[PerLane, PerLane]:
    """The row and the column of each register of each lane: `(32, registers)` (PTX 9.7.16.2.3.1)."""
    t, r = np.arange(WARP_LANES)[:, None], np.arange(registers)[None, :]
    match tile:
        case Tile.LANES_32_32B:
            row, column = t + 0 * r, r + 0 * t
        case Tile.LANES_16_64B:
            row, column = t // 4 + t % 2 * 8 + 0 * r, 2 * r + t % 4 // 2
        case Tile.LANES_16_128B:
            row, column = t // 4 + r % 2 * 8, r // 2 * 4 + t % 4
        case Tile.LANES_16_256B:
            row, column = t // 4 + r % 4 // 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2
        case _:
            row, column = t % 16 + 0 * r, r + t // 16 * split
    return row, column


def cells_of(move: Move, memory: TensorMemory, warp: int, address: int, split: int) -> tuple[PerLane, PerLane]:
    """The lanes and columns of the registers of a warp, which may reach a quarter of the lanes."""
    lane, column = address >> 16, address & 0xFFFF
    own = warp % 4 * WARP_LANES
    allowed = (own,) if move.tile is Tile.LANES_32_32B else (own, own + 16)
    if lane not in allowed:
        reach = " or ".join(map(str, allowed))
        said = f"warp {warp} of the CTA names lane {lane} of tensor memory; here it reaches lane {reach}"
        raise AccessFault("tensor-memory", said, address)
    width = 2 if move.packed else 1
    rows, columns = cells(move.tile, move.registers, split // width)
    memory.check(address, (int(columns.max()) + 1) * width, "a load or store")
    return rows + lane, columns * width + column


def load(move: Load, memory: TensorMemory, warp: int, address: int, split: int) -> list[Array]:
    """The registers of a warp; then what each lane's reduction finds."""
    rows, columns = cells_of(move, memory, warp, address, split)
    words = memory.cells[rows, columns]
    if move.packed:
        words = words & 0xFFFF | memory.cells[rows, columns + 1] << 16
    found = list(np.ascontiguousarray(words.T))
    return [*found, extreme(move, words)] if move.operation else found


def extreme(move: Load, words: Cells) -> PerLane:
    """The least or greatest value of each lane."""
    if not move.type.is_float:
        values = words.view(np.int32) if move.type.is_signed else words
        return (values.min(axis=1) if move.operation == "min" else values.max(axis=1)).view(np.uint32)
    floats = words.view(np.float32)
    floats = np.abs(floats) if move.absolute else floats
    choose = {
        ("min", False): np.fmin, ("max", False): np.fmax, ("min", True): np.minimum, ("max", True): np.maximum,
    }[move.operation, move.propagates]  # fmt: skip
    best = choose.reduce(floats, axis=1)
    made: PerLane = np.where(np.isnan(best), np.uint32(0x7FFF_FFFF), best.view(np.uint32))
    return made


def store(move: Move, memory: TensorMemory, warp: int, address: int, split: int, values: list[PerLane]) -> None:
    """Store the registers of a warp."""
    rows, columns = cells_of(move, memory, warp, address, split)
    words = np.stack(values, axis=1)
    if move.packed:
        memory.cells[rows, columns], memory.cells[rows, columns + 1] = words & 0xFFFF, words >> 16
    else:
        memory.cells[rows, columns] = words

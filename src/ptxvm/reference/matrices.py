"""Matrices in the registers of a warp: which lane holds which elements."""

from __future__ import annotations

from dataclasses import dataclass

from ptxvm.isa.catalog.matrix import shared_matrices
from ptxvm.isa.catalog.mma import fragments as mma_fragments
from ptxvm.isa.catalog.wmma import loaded, stored
from ptxvm.isa.fragments import Fragment
from ptxvm.isa.model import Decoded
from ptxvm.isa.special_registers import WARP


def fragments_of(i: Decoded) -> dict[str, Fragment]:
    """The fragments that the operands of an instruction are, by name; of other instructions none."""
    if i.of.family == "mma":
        return mma_fragments(i)
    if (moved := shared_matrices(i)) is not None:
        return {next(iter(i.destinations()), "b"): moved.fragment}
    name = i.of.meaning.__name__
    if name.startswith("wmma_load"):
        return loaded(i)
    return stored(i) if name.startswith("wmma_store") else {}


def matrix_of(i: Decoded, operand: str) -> str:
    """The matrix that an operand is: `wmma.load.a` loads A into its operand `d`, and ldmatrix some that have no name."""
    if shared_matrices(i) is not None:
        return "each matrix"
    loads = "matrix" in i.of.modifiers
    return str(i.matrix).upper() if loads and i.matrix in ("a", "b", "c") else "D" if loads else operand.upper()


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbours of a matrix that one lane holds, from its element `first` on."""

    lane: int
    first: int
    row: int
    column: int
    count: int
    down: bool

    @property
    def elements(self) -> str:
        """`2-3`, or the only one."""
        return f"{self.first}" if self.count == 1 else f"{self.first}-{self.first + self.count - 1}"


def pieces(fragment: Fragment) -> list[Piece]:
    """The matrix as runs of neighbours; of several matrices in a warp, the first."""
    place = {
        fragment.layout(lane, element): (lane, element)
        for lane in range(WARP)
        if lane // 4 % fragment.matrices == 0
        for element in range(fragment.elements)
    }
    rows, columns = fragment.shape

    def goes_on(row: int, column: int, step: tuple[int, int]) -> bool:
        lane, element = place[row, column]
        return place.get((row + step[0], column + step[1])) == (lane, element + 1)

    down = not goes_on(0, 0, (0, 1)) and goes_on(0, 0, (1, 0))
    step = (1, 0) if down else (0, 1)
    found, done = [], set[tuple[int, int]]()
    for row in range(rows):
        for column in range(columns):
            if (row, column) in done:
                continue
            at, count = (row, column), 1
            while goes_on(*at, step):
                at, count = (at[0] + step[0], at[1] + step[1]), count + 1
                done.add(at)
            lane, first = place[row, column]
            found.append(Piece(lane, first, row, column, count, down))
    return found

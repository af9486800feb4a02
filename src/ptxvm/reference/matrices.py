"""Matrices in the registers of a warp: which lane holds which elements."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ptxvm.algebra.types import b16, b32
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog.matrix import shared_matrices
from ptxvm.isa.catalog.wmma import loaded, stored
from ptxvm.isa.effects import COMPUTES, Summary
from ptxvm.isa.fragments import Fragment, Lane, Product
from ptxvm.isa.model import Decoded
from ptxvm.isa.notation import Operand
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.summary import summary
from ptxvm.isa.tensor_memory import Move, Tile
from ptxvm.machine.faults import plural
from ptxvm.machine.tensor_memory import cells

OF_WARPGROUPS = "wgmma"  # the family whose matrices the four warps of a group share
HELD = frozenset({"mma", "mma_sparse", OF_WARPGROUPS, "wmma", "tensor_memory"})
"""The families whose instructions work on matrices that lie in registers, beside those of `ldmatrix` and `stmatrix`."""


def fragments_of(i: Decoded) -> dict[str, Fragment]:
    """The fragments that the operands of an instruction are, by name; of other instructions none."""
    if (moved := shared_matrices(i)) is not None:
        return {next(iter(i.destinations()), "b"): moved.fragment}
    name = i.of.meaning.__name__
    if name.startswith("wmma_load"):
        return loaded(i)
    if name.startswith("wmma_store"):
        return stored(i)
    if (move := _summary(i).moves) is not None:
        return _cells_moved(move, i)
    product = _summary(i).product
    return {} if product is None else _factors(product, i)


def _factors(product: Product, i: Decoded) -> dict[str, Fragment]:
    """The matrices of a product that stand in registers; of `wgmma`, some are in shared memory."""
    named = {"d": product.d, "a": product.a, "b": product.b, "c": product.c}
    if product.sparsity is not None:
        named["metadata"] = product.sparsity.metadata
    if product.scaling is not None:
        named |= {"scale_a": product.scaling.a, "scale_b": product.scaling.b}
    written = {name for operand in i.form.operands for name in operand.names}
    return {name: fragment for name, fragment in named.items() if name in written}


def _summary(i: Decoded) -> Summary:
    """The summary of an instruction on matrices, or of a variant without its operands."""
    if i.of.family not in HELD or not i.of.executes:
        return COMPUTES
    return summary(i if i.shapes else _with_operands(i))


def _with_operands(i: Decoded) -> Decoded:
    """The variant with operands of the sorts that its form has."""
    return replace(i, shapes={name: _stands_for(i, operand, name) for operand in i.form.operands for name in operand.names})


def _stands_for(i: Decoded, operand: Operand, name: str) -> Shape:
    """What an operand may be: matrices and scales are vectors, and the numbers of a byte and a thread one of two."""
    spec, register = i.operand_type(name), Shape("register", b32)
    if "imm" in spec.marks:
        return Shape("integer", value=0)
    if operand.address:
        return Shape("address", items=(register,))
    count = {"b32": 1, "u16": 2}.get(spec.type) if "warp" in i.of.effects else None
    return register if count is None else Shape("vector", items=(register,) * count)


def _cells_moved(move: Move, i: Decoded) -> dict[str, Fragment]:
    """The cells of tensor memory that a warp moves: rows are its lanes, columns those from the address on."""
    split = i.value("split") or 0
    if move.tile is Tile.LANES_16_32B_TWICE and split < move.registers:
        return {}  # the two parts of the tile overlap, or their distance is not known
    rows, columns = cells(move.tile, move.registers, split)
    halves = 2 if move.packed else 1

    def layout(lane: Lane, element: int) -> tuple[Lane, Lane]:
        register, half = divmod(element, halves)
        return int(rows[lane, register]), int(columns[lane, register]) * halves + half

    shape = int(rows.max()) + 1, (int(columns.max()) + 1) * halves
    type = b16 if move.packed else b32
    return {next(iter(i.destinations()), "b"): Fragment(type, shape, layout, move.registers * halves, move.registers)}


WORDS = {"metadata": "metadata of A", "scale_a": "scales of A", "scale_b": "scales of B"}


def matrix_of(i: Decoded, operand: str) -> str:
    """The matrix that an operand is: `wmma.load.a` loads A into its `d`, `wmma.store.d` stores D from its `b`."""
    if shared_matrices(i) is not None:
        return "each matrix"
    if "tmem" in i.of.effects:
        return "tensor memory"
    if "matrix" in i.of.modifiers:
        return str(i.matrix).upper()
    if i.of.meaning.__name__.startswith("wmma_store"):
        return "D"
    named = WORDS.get(operand, operand.upper())
    return f"{named} (rows 16w to 16w + 15 in warp w)" if i.of.family == OF_WARPGROUPS else named


@dataclass(frozen=True, slots=True)
class Period:
    """A wide fragment is one of `columns` again and again, each time with elements that are `step` higher."""

    columns: int
    step: int

    def of(self, fragment: Fragment) -> Fragment:
        """The first of them."""
        return replace(fragment, shape=(fragment.shape[0], self.columns), elements=self.step)

    @property
    def said(self) -> str:
        """What the others are."""
        return f"{plural(self.columns, 'column')} further, the same lanes hold the elements {self.step} higher, and so on"


@cache
def period(fragment: Fragment) -> Period | None:
    """The least period of a fragment; None where it has none, or is a single one."""
    columns = fragment.shape[1]
    place = _places(fragment)
    for width in (n for n in range(1, columns // 2 + 1) if columns % n == 0):
        step = fragment.elements * width // columns
        if step and all(
            place.get((row, column + width)) == (lane, element + step)
            for (row, column), (lane, element) in place.items()
            if column + width < columns
        ):
            return Period(width, step)
    return None


def _places(fragment: Fragment) -> dict[tuple[int, int], tuple[int, int]]:
    """The lane and element that hold each row and column; of several matrices in a warp, of the first."""
    return {
        fragment.layout(lane, element): (lane, element)
        for lane in reversed(range(WARP))
        if lane // 4 % fragment.matrices == 0
        for element in range(fragment.elements)
    }


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
    """The matrix as runs of neighbours; of several matrices in a warp the first, and of lanes with the same the first."""
    place = _places(fragment)
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

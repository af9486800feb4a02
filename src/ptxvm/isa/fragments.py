"""Fragments: the layout of matrices in the registers of a warp (PTX 9.7.14).

A layout is a small function `(lane, element) -> (row, column)`.  It reckons with a lane number and with a `Value`
alike, so that `wmma.load` and `wmma.store` find their addresses by the function that `mma` finds its elements by.

Most fragments are tiles of 8 rows.  In a tile, lanes 4n to 4n+3 hold row n, a run of neighbours each: as many as a
register holds of a multiplicand, two of an accumulator.  B lies as A does, transposed.  The manual specifies the
fragments of `mma` and leaves those of `wmma` open; the ones here are those of the machine code that ptxas 13.0 makes
for sm_75 and later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypedDict

from ptxvm.algebra.types import Type, bf16, e2m1, f16, f32, u4
from ptxvm.dataclass import dataclass

Lane: TypeAlias = Any
"""A number of a lane or of an element: an int, an array of them, or a `Value`, with the operators of integers."""

Layout = Callable[[Lane, int], tuple[Lane, Lane]]
"""Where an element of a lane stands: `(lane, element) -> (row, column)`."""

HEIGHT = 8  # of a tile
CHUNKS = 8  # whose metadata a register holds
NARROW = frozenset({"e2m1", "e2m3", "e3m2"})  # which stand in a byte each


@dataclass(frozen=True)
class Tiles:
    """A layout of tiles: each lane holds `run` neighbours of each; `corners` are their upper left elements."""

    run: int
    corners: tuple[tuple[int, int], ...]
    transposed: bool = False

    def __call__(self, lane: Lane, element: int) -> tuple[Lane, Lane]:
        """The row and column of an element of a lane."""
        top, left = self.corners[element // self.run]
        row, column = (lane >> 2) + top, (lane & 3) * self.run + (left + element % self.run)
        return (column, row) if self.transposed else (row, column)

    @property
    def elements(self) -> int:
        """How many elements a lane holds."""
        return self.run * len(self.corners)


@dataclass(frozen=True)
class Fragment:
    """A matrix in the registers of a warp.

    `elements` is how many different ones a lane holds; its registers may hold them more than once.  A warp may hold
    several `matrices` of the shape; then lane `n` has to do with the one numbered `n // 4 % matrices`.  Floats of less than
    a byte stand in a byte each, or those of four bits in half bytes (`halved`).
    """

    type: Type
    shape: tuple[int, int]
    layout: Layout
    elements: int
    registers: int
    matrices: int = 1
    halved: bool = False

    @property
    def width(self) -> int:
        """The bits that an element takes in a register."""
        return 8 if self.type.name in NARROW and not self.halved else self.type.bits

    @property
    def register(self) -> int:
        """The bits of a register."""
        return max(32, self.width)

    @property
    def packed(self) -> int:
        """How many elements a register holds."""
        return self.register // self.width

    def element(self, number: int) -> int:
        """Which element stands at a position of the registers: the upper ones of a `wmma` fragment repeat the lower."""
        return number % self.elements


class Arithmetic(TypedDict, total=False):
    """How a `Product` is computed, beside its fragments."""

    operation: str
    finite: bool
    rounding: str


@dataclass(frozen=True)
class Sparsity:
    """The positions of the elements of a sparse A (PTX 9.7.14.6.1): of each `chunk` of a row, half are stored.

    `metadata` is a fragment of four bits for each chunk: two indices, of elements or of pairs of them.
    """

    chunk: int
    metadata: Fragment

    @property
    def threads(self) -> int:
        """How many lanes of each group of four have metadata."""
        rows, chunks = self.metadata.shape
        return rows * chunks // (HEIGHT * self.metadata.elements)


@dataclass(frozen=True)
class Scaling:
    """The scales of blocks of K (PTX 9.7.14.3): fragments of A's, a row of them for each row, and of B's, a column each."""

    a: Fragment
    b: Fragment


class Core(Enum):
    """The instruction that a tensor core runs; they add up differently."""

    MMA = "mma"
    WMMA = "wmma"
    WGMMA = "wgmma"
    TCGEN05 = "tcgen05"


@dataclass(frozen=True)
class Product:
    """What a matrix instruction computes: D = A * B + C.

    `operation` is `mul`, or `xor` or `and` for the bits of `.b1`, whose ones are then counted; `finite` is
    `.satfinite`; `rounding` is for f64.
    """

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    operation: str = "mul"
    finite: bool = False
    rounding: str = "rn"
    sparsity: Sparsity | None = None
    scaling: Scaling | None = None
    core: Core = Core.MMA

    @property
    def multiply_adds(self) -> int:
        """How many elements of A, stored ones, are multiplied by an element of B and added."""
        rows, depth = self.a.shape
        return rows * depth * self.d.shape[1] * self.d.matrices

    @property
    def further(self) -> tuple[Fragment, ...]:
        """The fragments beside A, B and C that the product reads."""
        sparse = () if self.sparsity is None else (self.sparsity.metadata,)
        return sparse if self.scaling is None else (*sparse, self.scaling.a, self.scaling.b)


def dimensions(shape: str) -> tuple[int, int, int]:
    """`m16n8k8` as (16, 8, 8): A is m by k, B k by n, C and D m by n."""
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


# ── tiles ───────────────────────────────────────────────────────────────────────────────


def multiplicand(rows: int, depth: int, run: int, *, pairs: bool, transposed: bool) -> Tiles:
    """The tiles of A, or of B transposed: along the depth, 8 rows at a time, or 16 in which two tiles alternate."""
    step = 16 if pairs else HEIGHT
    corners = tuple(
        (top, left)
        for first in range(0, rows, step)
        for left in range(0, depth, 4 * run)
        for top in range(first, min(first + step, rows), HEIGHT)
    )
    return Tiles(run, corners, transposed)


def accumulator(rows: int, columns: int, *, transposed: bool = False) -> Tiles:
    """The tiles of C and D: down the rows, column of tiles after column of tiles."""
    corners = tuple((top, left) for left in range(0, columns, 8) for top in range(0, rows, HEIGHT))
    return Tiles(2, corners, transposed)


def tiles(matrix: str, type: Type, shape: str, *, flipped: bool) -> Tiles:
    """The layout of matrix `a`, `b`, `c` or `d`; flipped, the instruction computes the transposed product."""
    m, n, k = dimensions(shape)
    run = max(1, 32 // (8 if type.name in NARROW else type.bits))
    if matrix == "a":
        return multiplicand(m, k, run, pairs=not flipped, transposed=False)
    if matrix == "b":
        return multiplicand(n, k, run, pairs=flipped, transposed=True)
    return accumulator(n, m, transposed=True) if flipped else accumulator(m, n)


def of_tiles(matrix: str, type: Type, shape: str, *, flipped: bool = False, registers: int = 0) -> Fragment:
    """A fragment of tiles, in so many registers or as many as it needs."""
    m, n, k = dimensions(shape)
    extent = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    layout = tiles(matrix, type, shape, flipped=flipped)
    fragment = Fragment(type, extent, layout, layout.elements, registers)
    return fragment if registers else replace(fragment, registers=layout.elements // fragment.packed)


@cache
def mma_fragment(matrix: str, type: Type, shape: str) -> Fragment:
    """The fragment of `mma` (PTX 9.7.14.5)."""
    return of_tiles(matrix, type, shape)


@cache
def wmma_fragment(matrix: str, type: Type, shape: str) -> Fragment:
    """The fragment of `wmma` (PTX 9.7.14.4).

    The multiplicands of `.f16` have eight registers, whatever they need.  `.m8n32k16` of floats is computed as the
    transposed `.m32n8k16`.
    """
    flipped = shape == "m8n32k16" and type in (f16, bf16, f32)
    registers = 8 if type is f16 and matrix in "ab" else 0
    return of_tiles(matrix, type, shape, flipped=flipped, registers=registers)


# ── sparse matrices and scales ──────────────────────────────────────────────────────────


def half_as_deep(shape: str) -> str:
    """The shape whose dense A lies as the stored half of a sparse A (PTX 9.7.14.6.2)."""
    m, n, k = dimensions(shape)
    return f"m{m}n{n}k{k // 2}"


@cache
def halved_fragment(matrix: str, shape: str) -> Fragment:
    """A fragment of e2m1 in half bytes (PTX 9.7.14.5.14)."""
    return replace(mma_fragment(matrix, u4, shape), type=e2m1, halved=True)


@dataclass(frozen=True)
class Metadata:
    """The layout of metadata in a group of four lanes: four bits for each chunk (PTX 9.7.14.6.2).

    The register of a lane is that of lane `% threads` of its group.  It holds four chunks each of two rows that are eight
    apart, or eight chunks of one row (`by_row`), where even lanes have the upper rows.
    """

    threads: int
    by_row: bool

    def __call__(self, lane: Lane, element: int) -> tuple[Lane, Lane]:
        """The row and chunk of four bits of a lane."""
        thread = lane & (self.threads - 1)
        if self.by_row:
            return (lane >> 2) + (thread & 1) * HEIGHT, (thread >> 1) * 8 + element
        return (lane >> 2) + element // 4 * HEIGHT, thread * 4 + element % 4


@cache
def sparsity(type: Type, shape: str, *, paired: bool) -> Sparsity:
    """The sparsity of the A of a shape: one of two tf32, two of four elements, or two of four pairs of half bytes."""
    rows, _, depth = dimensions(shape)
    chunk = 2 if type.bits == 32 else 8 if paired else 4
    chunks = depth // chunk
    layout = Metadata(rows * chunks // (HEIGHT * CHUNKS), by_row=type.bits <= 8)
    return Sparsity(chunk, Fragment(u4, (rows, chunks), layout, CHUNKS, 1))


def scale_of_row(lane: Lane, element: int) -> tuple[Lane, Lane]:
    """The scales of A: even lanes have those of the upper rows, odd ones those of the lower rows."""
    return (lane >> 2) + (lane & 1) * HEIGHT, element


def scale_of_column(lane: Lane, element: int) -> tuple[Lane, Lane]:
    """The scales of B: those of a column."""
    return element, lane >> 2


@cache
def scaling(shape: str, blocks: int, type: Type) -> Scaling:
    """The scales of A and B, in the lowest bytes of registers."""
    m, n, _ = dimensions(shape)
    return Scaling(
        Fragment(type, (m, blocks), scale_of_row, blocks, 1), Fragment(type, (blocks, n), scale_of_column, blocks, 1)
    )


# ── mma.m8n8k4 ──────────────────────────────────────────────────────────────────────────
#
# Four products at once, of quarters of the warp: lanes 4q to 4q+3 have the upper or left half of the matrices of
# product q, lanes 16+4q to 16+4q+3 the rest (PTX 9.7.14.5.1).


def along_k(lane: Lane, element: int) -> tuple[Lane, Lane]:
    """A in rows, B in columns transposed, C and D of f16: a lane holds the elements of a row."""
    return (lane & 3) + (lane >> 4) * 4, element


def across_k(lane: Lane, element: int) -> tuple[Lane, Lane]:
    """A in columns, or B in rows transposed: a lane holds four elements of a column."""
    return (lane >> 4) * 4 + element, lane & 3


def float_quads(lane: Lane, element: int) -> tuple[Lane, Lane]:
    """C and D of f32: a lane holds pairs of four tiles of 2 by 4."""
    return (lane & 1) + (lane >> 4) * 4 + (element & 2), (lane & 2) + ((element & 4) + (element & 1))


def swapped(layout: Layout) -> Layout:
    """The layout of the transposed matrix."""

    def swap(lane: Lane, element: int) -> tuple[Lane, Lane]:
        row, column = layout(lane, element)
        return column, row

    return swap


@cache
def quarter_fragment(matrix: str, type: Type, order: str = "row") -> Fragment:
    """The fragment of `mma.m8n8k4` with `.f16`, where A or B is in the order `row` or `col`."""
    if matrix == "a":
        return Fragment(f16, (8, 4), along_k if order == "row" else across_k, 4, 2, matrices=4)
    if matrix == "b":
        return Fragment(f16, (4, 8), swapped(along_k if order == "col" else across_k), 4, 2, matrices=4)
    layout, registers = (along_k, 4) if type is f16 else (float_quads, 8)
    return Fragment(type, (8, 8), layout, 8, registers, matrices=4)

"""The engine as work on tensor memory needs it: tensor memory of CTAs, shared memory in pieces, faster code for products."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from ptxvm.algebra.types import u4
from ptxvm.isa.fragments import Product
from ptxvm.isa.tensor_memory import TensorWork
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.tensor_core import Matrices
from ptxvm.machine.tensor_memory import TensorMemory
from ptxvm.machine.warp_matrix import split

InPlace: TypeAlias = Callable[[bool], bool]
"""`multiply(enabled)`: D = A * B + D where the matrices lie.

D counts as zero unless it is `enabled`.  False where it cannot.
"""


class FasterProducts(Protocol):
    """Faster code for products, which gives the same bits."""

    def multiply(
        self, product: Product, left: Matrices, right: Matrices, added: Matrices, further: Sequence[Matrices] = ()
    ) -> Matrices | None:
        """A product with the same bits; None where there is no code for it."""

    def in_place(self, product: Product, a: PerLane, b: PerLane, d: PerLane) -> InPlace | None:
        """The code for a product, given where the pieces of A and B and the rows of D lie; None where there is none."""

    def remembered(self, key: Hashable, make: Callable[[], list[InPlace | None]]) -> list[InPlace | None]:
        """What was made for a key, in this launch, or is made now."""

    def addresses_of_pieces(self, lane: int, addresses: PerLane) -> PerLane:
        """Where pieces of 16 bytes of shared memory lie in the memory of this machine."""


class Machine(Protocol):
    """The part of an engine that work on tensor memory needs."""

    def tensor_memory(self, lane: int) -> TensorMemory:
        """The tensor memory of the CTA of a lane."""

    def warp_of(self, lane: int) -> int:
        """The number of the warp of a lane in its CTA."""

    def of_pair(self, lane: int, rank: int) -> int:
        """The lane with the same number in the even (0) or odd (1) CTA of the pair; AccessFault where there is no pair."""

    def read_pieces(self, lane: int, addresses: PerLane) -> PerLane:
        """Pieces of 16 bytes of shared memory: rows of four words."""

    def read_words(self, lane: int, addresses: PerLane) -> PerLane:
        """Words of shared memory."""

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""

    @property
    def faster(self) -> FasterProducts | None:
        """Faster code for products; None where there is none."""


def ctas(work: TensorWork, machine: Machine, lane: int) -> list[int]:
    """A lane of each CTA on whose tensor memory a lane works: its own, or the even and the odd one of its pair."""
    return [machine.of_pair(lane, 0), machine.of_pair(lane, 1)] if work.pairs else [lane]


def pieces_of(format: str, machine: Machine, lane: int, addresses: PerLane) -> PerLane:
    """Pieces of shared memory as rows of four words; what pads 16 elements of four or six bits is not read."""
    if not format:
        return machine.read_pieces(lane, addresses.reshape(-1))
    filled = np.arange(0, 16 * int(format[1]) // 8, 4, dtype=np.uint64)
    words = machine.read_words(lane, (addresses.reshape(-1, 1) + filled).reshape(-1))
    return widened(format, np.ascontiguousarray(words).view(np.uint8)).view(np.uint32)


def widened(format: str, pieces: PerLane) -> PerLane:
    """Pieces of 16 elements of four or six bits, without their padding, as 16 bytes each (PTX 9.7.16.9.1)."""
    if format.startswith("b4"):
        found: PerLane = split(u4.bits, pieces.reshape(-1, 8)).reshape(-1, 16) << np.uint8(2)
        return np.ascontiguousarray(found)
    bits = np.unpackbits(pieces.reshape(-1, 12), axis=-1, bitorder="little").reshape(-1, 16, 6)
    return np.packbits(bits, axis=-1, bitorder="little").reshape(-1, 16)

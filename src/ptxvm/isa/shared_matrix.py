"""Matrices in shared memory that a descriptor describes, for `wgmma` and `tcgen05` (PTX 9.7.15.5.1.2, 9.7.16.3, 9.7.16.4).

A matrix consists of pieces of 16 bytes: neighbours along K where it is K-major, along M or N where it is MN-major.
"""

from __future__ import annotations

from enum import Enum

from ptxvm.dataclass import dataclass

PIECE = 16  # bytes
FIELD = 14  # bits of an address or an offset, which are in units of 16 bytes


class Swizzle(Enum):
    """How the pieces of the rows of a pattern are permuted: the length of a row, and what moves as a whole, in pieces."""

    NONE = 1, 1
    BYTES_32 = 2, 1
    BYTES_64 = 4, 1
    BYTES_128 = 8, 1
    BYTES_128_BY_32 = 8, 2

    def __init__(self, width: int, atom: int) -> None:
        self.width, self.atom = width, atom

    @property
    def mask(self) -> int:
        """The bits of the number of a row of 128 bytes that permute its atoms."""
        return self.width // self.atom - 1


@dataclass(frozen=True)
class MatrixDescriptor:
    """The fields of a descriptor, in bytes; `base` is the row at which the pattern of the swizzle begins.

    With `absolute`, `leading` is the address of the row that goes on where the pattern ends.
    """

    start: int
    leading: int
    stride: int
    base: int
    swizzle: Swizzle
    absolute: bool = False


WARPGROUP_SWIZZLES = dict(enumerate((Swizzle.NONE, Swizzle.BYTES_128, Swizzle.BYTES_64, Swizzle.BYTES_32)))


def warpgroup_descriptor(bits: int) -> MatrixDescriptor:
    """The descriptor of a `wgmma` (PTX 9.7.15.5.1.2.2)."""
    start, leading, stride = ((bits >> first & (1 << FIELD) - 1) * PIECE for first in (0, 16, 32))
    return MatrixDescriptor(start, leading, stride, bits >> 49 & 7, WARPGROUP_SWIZZLES[bits >> 62])


@dataclass(frozen=True)
class Factor:
    """A or B in shared memory: `rows` along M or N, from row `first` on, of elements of some bits."""

    first: int
    rows: int
    depth: int
    bits: int
    transposed: bool = False

    @property
    def per_piece(self) -> int:
        """How many elements a piece holds."""
        return 8 * PIECE // self.bits

"""The addresses of matrices in shared memory, piece by piece, and their elements (PTX 9.7.15.5.1.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxvm.isa.shared_matrix import PIECE, Factor, MatrixDescriptor, Swizzle
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.warp_matrix import split

EIGHT = 8  # rows of a pattern
WINDOW = np.uint64(0x3_FFFF)  # the addresses that a descriptor reaches
LINE = np.uint64(7)  # the bits of an address in 128 bytes


@lru_cache(maxsize=64)
def addresses(descriptor: MatrixDescriptor, factor: Factor) -> PerLane:
    """The addresses of all pieces: `(rows, pieces of a row)`, or `(depth, pieces of a column)` of an MN-major matrix."""
    found_offsets = offsets(descriptor, factor)
    found = np.uint64(descriptor.start) + found_offsets & WINDOW
    row = (found >> LINE) - np.uint64(descriptor.base) & np.uint64(descriptor.swizzle.mask)
    found ^= row * np.uint64(PIECE * descriptor.swizzle.atom)
    found.flags.writeable = False  # a loop names the same matrices again and again
    return found


def offsets(descriptor: MatrixDescriptor, factor: Factor) -> PerLane:
    """How far the pieces lie from where the matrix begins, before they are swizzled."""
    first = descriptor.start // PIECE % descriptor.swizzle.width if descriptor.absolute else 0
    leading = descriptor.leading - (descriptor.start - first * PIECE if descriptor.absolute else 0)
    return _offsets(leading, descriptor.stride, descriptor.swizzle, factor, first)


@lru_cache(maxsize=64)
def _offsets(leading: int, stride: int, swizzle: Swizzle, factor: Factor, first: int) -> PerLane:
    """The canonical layout before it is swizzled (PTX 9.7.15.5.1.2.1.3); `first` is the piece of its row that begins it."""
    width, rows = swizzle.width, np.arange(factor.first, factor.first + factor.rows)
    if not factor.transposed:
        pieces = first + np.arange(factor.depth * factor.bits // (8 * PIECE))
        along = (pieces % width - first) * PIECE + pieces // width * leading
        across = rows % EIGHT * (width * PIECE) + rows // EIGHT * stride
        return _grid(across, along)
    columns, units = np.arange(factor.depth), rows[:: factor.per_piece] // factor.per_piece
    if swizzle is Swizzle.NONE:
        return _grid(columns % EIGHT * PIECE + columns // EIGHT * leading, units * stride)
    height = EIGHT // swizzle.atom
    down = columns % height * (width * PIECE) + columns // height * stride
    return _grid(down, units % width * PIECE + units // width * leading)


def _grid(first: PerLane, second: PerLane) -> PerLane:
    found: PerLane = (first[:, None] + second[None, :]).astype(np.uint64)
    return found


def elements(factor: Factor, pieces: PerLane) -> PerLane:
    """The elements `(matrices, rows, depth)` of pieces `(matrices, pieces, 4)` of words, in the order of `addresses`."""
    count = len(pieces)
    flat = split(factor.bits, np.ascontiguousarray(pieces).view(np.uint8).reshape(count, -1))
    if not factor.transposed:
        return flat.reshape(count, factor.rows, factor.depth)
    found: PerLane = flat.reshape(count, factor.depth, factor.rows).swapaxes(1, 2)
    return found

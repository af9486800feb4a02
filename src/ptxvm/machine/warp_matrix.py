"""The fragments of warps as matrices, and back (PTX 9.7.14).

Registers are arrays of words of 32 or 64 bits, one for each lane, warp after warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import tensor_core
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.tensor_core import Architecture, FusedMultiplyAdd

Registers = Sequence[PerLane]
"""The registers of a fragment, each with an element for every lane."""


def multiply(product: Product, architecture: Architecture, *registers: Registers, fma: FusedMultiplyAdd) -> list[PerLane]:
    """The registers of D = A * B + C; `registers` are those of A, B and C, and of the `further` fragments."""
    fragments = (product.a, product.b, product.c, *product.further)
    left, right, added, *further = (matrices(*each) for each in zip(fragments, registers, strict=True))
    return registers_of(product.d, tensor_core.multiply(product, architecture, left, right, added, fma, further))


def matrices(fragment: Fragment, registers: Registers) -> PerLane:
    """The bits of the matrices that the lanes of whole warps hold: `(matrices, rows, columns)`."""
    lanes = np.stack(registers, axis=-1)
    flat = split(fragment.width, lanes.view(np.uint8)).reshape(-1, WARP * fragment.packed * fragment.registers)
    return flat[:, where(fragment)].reshape(-1, *fragment.shape)


def registers_of(fragment: Fragment, stack: PerLane) -> list[PerLane]:
    """The registers of the lanes that hold a stack of matrices of the bits of elements."""
    flat = stack.reshape(-1, fragment.matrices * fragment.shape[0] * fragment.shape[1])
    lanes = np.ascontiguousarray(flat[:, element_positions(fragment)]).view(f"u{fragment.register // 8}")
    return [np.ascontiguousarray(lanes[..., n]).reshape(-1) for n in range(fragment.registers)]


def split(width: int, bytes_: PerLane) -> PerLane:
    """The elements of `width` bits in some bytes, the lowest first."""
    if width == 1:
        return np.unpackbits(bytes_, axis=-1, bitorder="little")
    if width == 4:
        return np.stack((bytes_ & np.uint8(15), bytes_ >> np.uint8(4)), axis=-1)
    return bytes_.view(f"u{width // 8}")


@cache
def where(fragment: Fragment) -> PerLane:
    """For each element of a warp's matrices, its position among the elements of the lanes."""
    table = np.full((fragment.matrices, *fragment.shape), -1)
    for lane in range(WARP):
        for element in range(fragment.elements):
            matrix = lane // 4 % fragment.matrices
            table[matrix, *fragment.layout(lane, element)] = lane * fragment.packed * fragment.registers + element
    return table


@cache
def element_positions(fragment: Fragment) -> PerLane:
    """For each lane and position in its registers, the element of the warp's matrices."""
    rows, columns = fragment.shape
    table = np.empty((WARP, fragment.packed * fragment.registers), np.int64)
    for lane in range(WARP):
        for position in range(table.shape[1]):
            row, column = fragment.layout(lane, fragment.element(position))
            table[lane, position] = (lane // 4 % fragment.matrices * rows + row) * columns + column
    return table

"""Undefined elements of matrix products: those of D in a row of A, a column of B or at a place of C that has one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.engine.interp.shadow_algebra import NO_ORIGIN
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import warp_matrix
from ptxvm.machine.per_lane import PerLane
from ptxvm.machine.warp_matrix import Registers


def undefined(
    product: Product, masks: Sequence[Registers], origins: Sequence[Registers]
) -> list[tuple[PerLane, PerLane]]:  # fmt: skip
    """The undefined bits of each register of D, and where they come from; given are those of A, B and C.

    An element of A that `mma.sp` stores counts for its row.
    """
    fragments = product.a, product.b, product.c
    a, b, c = (_origins_of_elements(*each) for each in zip(fragments, masks, origins, strict=True))
    found = np.maximum(np.maximum(a.max(axis=2, keepdims=True), b.max(axis=1, keepdims=True)), c)
    bits = np.where(found != NO_ORIGIN, (1 << product.d.width) - 1, 0).astype(f"u{product.d.width // 8}")
    return list(zip(warp_matrix.registers_of(product.d, bits), _of_registers(product.d, found), strict=True))


def _origins_of_elements(fragment: Fragment, masks: Registers, origins: Registers) -> PerLane:
    """The origin of each undefined element of the matrices that warps hold; `NO_ORIGIN` of the others."""
    words = np.repeat(np.stack(origins, axis=-1), fragment.packed, axis=-1)
    flat = words.reshape(-1, WARP * fragment.packed * fragment.registers)
    found = flat[:, warp_matrix.where(fragment)].reshape(-1, *fragment.shape)
    return np.where(warp_matrix.matrices(fragment, masks) != 0, found, NO_ORIGIN)


def _of_registers(fragment: Fragment, elements: PerLane) -> list[PerLane]:
    """For each register of a fragment, the greatest number among its elements in each lane."""
    flat = elements.reshape(-1, fragment.matrices * fragment.shape[0] * fragment.shape[1])
    lanes = flat[:, warp_matrix.element_positions(fragment)].reshape(-1, fragment.registers, fragment.packed).max(axis=-1)
    return list(np.ascontiguousarray(lanes.T))

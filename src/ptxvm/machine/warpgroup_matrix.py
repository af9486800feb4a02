"""The products of `wgmma` for stacks of warps, from registers and shared memory (PTX 9.7.15.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.isa.fragments import Product
from ptxvm.isa.shared_matrix import Factor, warpgroup_descriptor
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WARPS, WarpgroupProduct
from ptxvm.machine import shared_matrix, tensor_core
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import LaneNumbers, PerLane
from ptxvm.machine.tensor_core import Architecture
from ptxvm.machine.warp_matrix import Registers, matrices, registers_of

Faster = Callable[[Product, PerLane, PerLane, PerLane, Sequence[PerLane]], PerLane | None]
"""Faster code for a product, given A, B, C and what else it reads; None where it leaves the product."""

Reader = Callable[[int, PerLane], PerLane]
"""Reads pieces of 16 bytes for a warp, given their addresses in shared memory: rows of four words."""


def one_of_each_warp(descriptors: PerLane) -> list[int]:
    """The descriptor of each warp, which all lanes must have (PTX 9.7.15.5.2)."""
    by_warp = descriptors.reshape(-1, WARP)
    if (wrong := by_warp != by_warp[:, :1]).any():
        lane = int(np.argmax(wrong))
        raise AccessFault("invalid-descriptor", "the lanes of a warp have different matrix descriptors", lane_index=lane)
    return [int(each) for each in by_warp[:, 0]]


def factors(spec: WarpgroupProduct, warps: LaneNumbers, a: Registers, b: PerLane) -> list[tuple[Factor, list[PerLane]]]:
    """The factors in shared memory, each with the addresses of its pieces for every warp.

    `warps` are the numbers of the warps in their CTAs; `a` is the descriptor of A where it is not in registers.
    """
    of_b = spec.b
    found = [(of_b, [shared_matrix.addresses(warpgroup_descriptor(each), of_b) for each in one_of_each_warp(b)])]
    if not spec.in_registers:
        own = one_of_each_warp(a[0])
        rows = [spec.a(int(warp) % WARPS) for warp in warps]
        found.append((rows[0], [shared_matrix.addresses(warpgroup_descriptor(d), r) for d, r in zip(own, rows, strict=True)]))
    return found


def multiply(
    spec: WarpgroupProduct, architecture: Architecture, warps: LaneNumbers, d: Registers, a: Registers, b: PerLane,
    enabled: PerLane, further: Sequence[Registers], read: Reader, faster: Faster | None = None,
) -> list[PerLane]:  # fmt: skip
    """The registers of D = A * B + D, or of A * B in the lanes where D is not `enabled`; `faster` code may multiply."""
    product = spec.product
    there = []
    for factor, addresses in factors(spec, warps, a, b):
        pieces = np.stack([read(warp, each.reshape(-1)) for warp, each in enumerate(addresses)])
        there.append(shared_matrix.elements(factor, pieces))
    right = there[0].swapaxes(1, 2)
    left = matrices(product.a, a) if spec.in_registers else there[1]
    left, right = (
        negated(fragment.type, each) if change else each
        for fragment, each, change in zip((product.a, product.b), (left, right), spec.negated, strict=True)
    )
    added = matrices(product.c, [np.where(enabled, each, 0).astype(each.dtype) for each in d])
    metadata = [matrices(fragment, each) for fragment, each in zip(product.further, further, strict=True)]
    made = None if faster is None else _one_by_one(faster, product, (left, right, added, *metadata))
    if made is None:
        made = tensor_core.multiply(product, architecture, left, right, added, no_fma, metadata)
    return registers_of(product.d, made)


def _one_by_one(faster: Faster, product: Product, stacks: Sequence[PerLane]) -> PerLane | None:
    """The products of stacks of matrices by faster code; None where it leaves one of them."""
    made = [faster(product, left, right, added, further) for left, right, added, *further in zip(*stacks, strict=True)]
    found = [each for each in made if each is not None]
    return np.stack(found).astype(stacks[2].dtype) if len(found) == len(made) else None


def no_fma(rounding: str, a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """There is no product of f64 here."""
    raise NotImplementedError


def negated(type: Type, bits: PerLane) -> PerLane:
    """The bits of floats with the other sign."""
    found: PerLane = bits ^ bits.dtype.type(1 << type.bits - 1)
    return found

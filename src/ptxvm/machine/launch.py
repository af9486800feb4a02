"""The shape of a launch: grid and block, within the limits of the hardware (PTX 2.2, CUDA's compute capabilities)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, SupportsIndex, TypeAlias

from ptxvm.analysis.program import Function
from ptxvm.analysis.shared import most_static
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.isa.directives import CHIP_SHARED_BYTES, STATIC_SHARED_BYTES
from ptxvm.isa.targets import Target
from ptxvm.machine.options import extent
from ptxvm.syntax import tree

Extent = tuple[int, int, int]
Extents: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""Sizes as a caller gives them: one, or up to three."""

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)


class LaunchShape(NamedTuple):
    """CTAs of a grid and threads of a CTA, as (x, y, z)."""

    grid: Extent
    block: Extent

    @classmethod
    def of(
        cls, grid: SupportsIndex | tuple[SupportsIndex, ...], block: SupportsIndex | tuple[SupportsIndex, ...]
    ) -> LaunchShape:
        """The shape from integers or tuples of up to three.  ValueError where the hardware would refuse it."""
        shape = cls(_extent("grid", grid, MAX_GRID), _extent("block", block, MAX_BLOCK))
        if shape.threads > MAX_THREADS:
            raise ValueError(f"block {shape.block} has {shape.threads} threads; a CTA has at most {MAX_THREADS}")
        return shape

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return prod(self.block)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return prod(self.grid)

    def check(self, kernel: Function) -> None:
        """Refuse a block that `.reqntid` or `.maxntid` of the kernel does not allow (PTX 11.4)."""
        required, most = (_directive(kernel, name) for name in ("reqntid", "maxntid"))
        if required and required != self.block:
            raise ValueError(f"kernel '{kernel.name}' requires blocks of {required} (.reqntid), not {self.block}")
        if most and prod(most) < self.threads:
            raise ValueError(
                f"kernel '{kernel.name}' takes blocks of up to {prod(most)} threads (.maxntid), not {self.threads}"
            )


@lru_cache(maxsize=1024)
def _known_shape(grid: int | tuple[int, ...], block: int | tuple[int, ...]) -> LaunchShape:
    return LaunchShape.of(grid, block)


def launch_shape(grid: Extents, block: Extents) -> LaunchShape:
    """`LaunchShape.of`, cached."""
    return _known_shape(extent("grid", grid), extent("block", block))


def most_threads(kernel: Function) -> int:
    """The threads that a block of the kernel may have, by `.reqntid`, `.maxntid` and the hardware."""
    found = [sizes for name in ("reqntid", "maxntid") if (sizes := _directive(kernel, name))]
    return min(prod(found[0]), MAX_THREADS) if found else MAX_THREADS


def check_shared(kernel: Function, declared: int, dynamic: int) -> None:
    """Refuse too much shared memory: of variables alone (ptxas makes no code for them), or together with the launch's."""
    if declared + dynamic <= STATIC_SHARED_BYTES:
        return
    target = kernel.program.target if kernel.program is not None else Target(0)
    most = most_static(target)
    if declared > most:
        raise InvalidPTX(
            f"kernel '{kernel.name}' declares {declared:,} bytes of shared memory, and {target} has {most:,} for that"
        )
    if declared + dynamic > CHIP_SHARED_BYTES:
        raise ValueError(
            f"kernel '{kernel.name}' would have {declared + dynamic:,} bytes of shared memory for each CTA; "
            f"the most that there is are {CHIP_SHARED_BYTES:,}"
        )


def _extent(what: str, given: SupportsIndex | tuple[SupportsIndex, ...], limits: Extent) -> Extent:
    """Three sizes; omitted ones are 1."""
    found = extent(what, given)
    sizes = found if isinstance(found, tuple) else (found,)
    if not 1 <= len(sizes) <= len(limits):
        raise ValueError(f"{what} has one to three sizes (x, y, z), not {len(sizes)}")
    for axis, size, limit in zip("xyz", sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise ValueError(f"{what}.{axis} is {size}; it may be 1 to {limit}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _directive(kernel: Function, name: str) -> Extent | None:
    node = kernel.directives.get(name)
    if node is None:
        return None
    sizes = [each.value for each in node.arguments if isinstance(each, tree.Integer)]
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z

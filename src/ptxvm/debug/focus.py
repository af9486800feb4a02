"""The focus: the thread that commands are about, and the ways to name another one."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.launch import Extent, LaunchShape


class NotThere(ValueError):  # noqa: N818 - it says what happened
    """There is no such thing; the message says what there is."""


class NotInCode(NotThere):
    """No code has such a place; that of another launch may."""


@dataclass(frozen=True, slots=True)
class Focus:
    """A thread: its CTA by its number in the grid, its warp by its number in the CTA, and its lane."""

    cta: int = 0
    warp: int = 0
    lane: int = 0

    @property
    def thread(self) -> int:
        """The number of the thread in its CTA."""
        return self.warp * WARP + self.lane


def coordinates(number: int, extent: Extent) -> Extent:
    """The place of a thread in a CTA, by its number; x is the fastest."""
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


def number_of(place: Extent, extent: Extent, kind: str) -> int:
    """The number of a place, x first; NotThere outside the extent."""
    if not all(0 <= at < size for at, size in zip(place, extent, strict=True)):
        raise NotThere(f"there is no {kind} {shown(place)}: there are {shown(extent)}")
    return place[0] + extent[0] * (place[1] + extent[1] * place[2])


def cta_number(place: Extent, shape: LaunchShape) -> int:
    """The number of a CTA of a grid, by its place."""
    number_of(place, shape.grid, "block")
    if shape.cluster_size == 1:
        return number_of(place, shape.grid, "block")
    return next(number for number in range(shape.ctas) if shape.ctaid(number) == place)


def moved(focus: Focus, shape: LaunchShape, *, block: Extent | None, thread: Extent | None, warp: int | None,
          lane: int | None) -> Focus:  # fmt: skip
    """The focus, where some of its coordinates are given; NotThere for a thread that the launch has not."""
    warps = -(-shape.threads // WARP)
    if block is not None:
        focus = Focus(cta_number(block, shape))
    if thread is not None:
        number = number_of(thread, shape.block, "thread")
        focus = replace(focus, warp=number // WARP, lane=number % WARP)
    if warp is not None:
        if not 0 <= warp < warps:
            raise NotThere(f"there is no warp {warp}: a block has {warps}")
        focus = replace(focus, warp=warp, lane=0)
    if lane is not None:
        lanes = min(WARP, shape.threads - focus.warp * WARP)
        if not 0 <= lane < lanes:
            raise NotThere(f"there is no lane {lane}: warp {focus.warp} has {lanes}")
        focus = replace(focus, lane=lane)
    return focus


def shown(place: Extent) -> str:
    """`(0,1,0)`."""
    return f"({','.join(map(str, place))})"


def dimensions(extent: Extent) -> int:
    """How many threads or blocks an extent has."""
    return prod(extent)


__all__ = ["Focus", "NotInCode", "NotThere", "coordinates", "cta_number", "moved", "number_of", "shown"]

"""The layout of threads in one array of lanes: CTA, warp and special registers of each lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ptxvm.isa.special_registers import SPECIAL, WARP
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane


def at(value: PerLane, lanes: Lanes) -> PerLane:
    """A per-lane value at some lanes; a uniform value as it is."""
    return value if lanes is None or not np.ndim(value) else value[lanes]


def first(lanes: Lanes) -> int:
    """The first of some lanes."""
    return 0 if lanes is None else int(lanes[0])


def spread(value: PerLane, positions: PerLane) -> PerLane:
    """A value of the running lanes at some positions, as an array."""
    return value[positions] if np.ndim(value) else np.full(len(positions), value)


class LaneLayout:
    """The layout of a cohort's lanes: the CTA, the warp and the position of each lane."""

    def __init__(self, shape: LaunchShape, ctas: Sequence[int]) -> None:
        self.shape, self.ctas = shape, np.asarray(ctas, np.int64)
        self.threads = shape.threads
        self.size = self.threads * len(self.ctas)
        self.numbers: LaneNumbers = np.arange(self.size)
        self.thread = self.numbers % self.threads
        self.cta = self.numbers // self.threads
        self.warps_of_cta = -(-self.threads // WARP)
        self.warp = self.cta * self.warps_of_cta + self.thread // WARP
        self.lane = self.thread % WARP
        self.warp_start = self.numbers - self.lane
        self.warps = len(self.ctas) * self.warps_of_cta
        self._padded = self.warp * WARP + self.lane
        self._full = self.threads % WARP == 0
        self._known: dict[str, PerLane] = {}

    def count(self, lanes: Lanes) -> int:
        """How many lanes are selected; None selects all."""
        return self.size if lanes is None else len(lanes)

    def every(self, lanes: Lanes) -> LaneNumbers:
        """The numbers of the selected lanes; None selects all."""
        return self.numbers if lanes is None else lanes

    def chosen(self, lanes: Lanes, guard: Guard) -> tuple[PerLane, PerLane]:
        """The positions and numbers of the lanes whose guard holds; (None, lanes) where it holds for all."""
        if not np.ndim(guard):
            return (None, lanes) if guard else (np.empty(0, np.int64), np.empty(0, np.int64))
        chosen = np.flatnonzero(guard)
        if len(chosen) == self.count(lanes):
            return None, lanes
        return chosen, chosen if lanes is None else lanes[chosen]

    def warp_bits(self, truth: PerLane, lanes: Lanes) -> PerLane:
        """For each lane, a mask of the lanes of its warp for which a predicate is true."""
        if self._full:
            padded = truth
        else:
            padded = np.zeros(self.warps * WARP, np.bool_)
            padded[self._padded] = truth
        masks = np.packbits(padded, bitorder="little").view("<u4")
        return masks.take(self.warp if lanes is None else self.warp[lanes])

    def coordinates(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The CTA and thread of a lane as (x, y, z)."""
        cta, thread = int(self.ctas[self.cta[lane]]), int(self.thread[lane])
        return self.shape.ctaid(cta), _unfold(thread, self.shape.block)

    @cached_property
    def cta_number(self) -> PerLane:
        """The number of each lane's CTA in the grid; one number where the cohort has one CTA."""
        return self.ctas[self.cta] if len(self.ctas) > 1 else self.ctas[0]

    def special(self, name: str) -> PerLane:
        """The special registers that follow from a lane's position, or that are constant; None for any other."""
        if name not in self._known:
            register, _, component = name.partition(".")
            how, always = PLACES.get(register), SPECIAL[register].always
            if always is not None:
                self._known[name] = np.uint64(always)
            else:
                self._known[name] = None if how is None else how(self, "xyzw".find(component) if component else 0)
        return self._known[name]


def _unfold(number: PerLane, extent: tuple[int, int, int]) -> tuple[PerLane, PerLane, PerLane]:
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


def _of(extent: tuple[int, int, int], axis: int) -> PerLane:
    return np.uint64(extent[axis] if axis < len(extent) else 0)


def _coordinate(number: PerLane, extent: tuple[int, int, int], axis: int) -> PerLane:
    if axis >= len(extent):
        return np.uint64(0)
    if extent[axis] == 1:
        return np.uint64(0)
    found = _unfold(number, extent)[axis]
    return np.asarray(found).astype(np.uint64)[()]


def _ctaid(at: LaneLayout, axis: int) -> PerLane:
    if at.shape.cluster_size == 1 or axis >= 3:
        return _coordinate(at.cta_number, at.shape.grid, axis)
    return np.asarray(at.shape.ctaid(at.cta_number)[axis]).astype(np.uint64)[()]


def _clusters(at: LaneLayout) -> tuple[int, int, int]:
    """Clusters of the grid."""
    x, y, z = (count // size for count, size in zip(at.shape.grid, at.shape.cluster_extent, strict=True))
    return x, y, z


ONE, TWO, ALL = np.uint64(1), np.uint64(2), np.uint64(0xFFFF_FFFF)


def _mask(layout: LaneLayout, mask: Callable[[PerLane], PerLane]) -> PerLane:
    """A mask that follows from the bit of each lane."""
    return mask(ONE << layout.lane.astype(np.uint64))


PLACES: dict[str, Callable[[LaneLayout, int], PerLane]] = {
    "tid": lambda at, axis: _coordinate(at.thread, at.shape.block, axis),
    "ntid": lambda at, axis: _of(at.shape.block, axis),
    "ctaid": _ctaid,
    "nctaid": lambda at, axis: _of(at.shape.grid, axis),
    "laneid": lambda at, _: at.lane.astype(np.uint32),
    "warpid": lambda at, _: (at.thread // WARP).astype(np.uint32),
    "nwarpid": lambda at, _: np.uint32(at.warps_of_cta),
    "lanemask_eq": lambda at, _: _mask(at, lambda bit: bit),
    "lanemask_lt": lambda at, _: _mask(at, lambda bit: bit - ONE),
    "lanemask_le": lambda at, _: _mask(at, lambda bit: bit * TWO - ONE),
    "lanemask_gt": lambda at, _: _mask(at, lambda bit: ALL - (bit * TWO - ONE)),
    "lanemask_ge": lambda at, _: _mask(at, lambda bit: ALL - (bit - ONE)),
    "clusterid": lambda at, axis: _coordinate(at.cta_number // at.shape.cluster_size, _clusters(at), axis),
    "nclusterid": lambda at, axis: _of(_clusters(at), axis),
    "cluster_ctaid": lambda at, axis: _coordinate(at.cta_number % at.shape.cluster_size, at.shape.cluster_extent, axis),
    "cluster_nctaid": lambda at, axis: _of(at.shape.cluster_extent, axis),
    "cluster_ctarank": lambda at, _: np.asarray(at.cta_number % at.shape.cluster_size).astype(np.uint64)[()],
    "cluster_nctarank": lambda at, _: np.uint64(at.shape.cluster_size),
    "is_explicit_cluster": lambda at, _: np.uint64(at.shape.cluster is not None),
}

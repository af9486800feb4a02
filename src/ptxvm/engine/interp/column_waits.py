"""Warps that wait for columns of tensor memory: which wait, and when they go on (PTX 9.7.16.7.1)."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.interp.barriers import Key, Waiting
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lanes import at
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import LaneNumbers, PerLane


class ColumnWaits:
    """The warps of a cohort that wait for columns, by their CTA and their number in it."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.warps: dict[tuple[int, int], Waiting] = {}

    @property
    def waiting(self) -> list[Waiting]:
        """The warps that wait."""
        return list(self.warps.values())

    def arrive(self, key: Key, lanes: LaneNumbers, columns: PerLane) -> list[Waiting]:
        """Warps that have come together want columns; returns those that go on, and parts of warps, which get none."""
        layout, tensor = self.cohort.layout, self.cohort.tensor
        parts = []
        for own in np.split(lanes, np.flatnonzero(np.diff(layout.warp[lanes])) + 1):
            waiting, lane = Waiting(key, own), int(own[0])
            if len(own) < WARP:
                parts.append(waiting)
                continue
            warp = tensor.warp_of(lane)
            try:
                tensor.tensor_memory(lane).request(warp, int(at(columns, own[:1]).ravel()[0]))
            except AccessFault as fault:
                raise fault.at_lane(lane) from None
            self.warps[int(layout.cta[lane]), warp] = waiting
        return parts + self.settle()

    def settle(self) -> list[Waiting]:
        """Take out the warps for which there are columns."""
        memories = self.cohort.tensor.memories
        return [self.warps.pop((cta, warp)) for cta in sorted({cta for cta, _ in self.warps}) for warp in memories[cta].grant()]

    def __bool__(self) -> bool:
        return bool(self.warps)


__all__ = ["ColumnWaits"]

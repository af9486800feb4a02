"""A schedule that counts instructions and branches."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.converging_schedule import ConvergingSchedule
from ptxvm.engine.interp.counting_cohort import CountingCohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.ports import Wait
from ptxvm.engine.interp.routine import Routine
from ptxvm.machine.per_lane import Lanes, PerLane


class CountingSchedule(ConvergingSchedule):
    """Counts what groups of lanes execute, and the warps that diverge.

    A collective of a warp is executed when all lanes of its mask have come to it, by all of them together.
    """

    cohort: CountingCohort

    def __init__(self, cohort: CountingCohort, code: Executable, kernel: Routine) -> None:
        super().__init__(cohort, code, kernel)
        self.counter = cohort.counter

    def step(self, key: Key, lanes: Lanes) -> None:
        """Run one segment for a group, and count its instructions."""
        if not self.meets(key, lanes):
            self.executed(key, self.cohort.warps_of(lanes), lanes)
        super().step(key, lanes)

    def pass_by(self, key: Key, staying: Lanes, going: Lanes) -> None:
        """Count lanes that a guard keeps from a collective: they pass it together with the lanes of their warp that arrive."""
        if self.meets(key, staying):
            every = np.concatenate([self.cohort.layout.every(lanes) for lanes in (staying, going)])
            self.executed(key, self.cohort.warps_of(every) - self.cohort.warps_of(going), staying)
        super().pass_by(key, staying, going)

    def finish(self, key: Key, lanes: Lanes) -> None:
        """Finish an instruction for one group, and count a collective."""
        if self.meets(key, lanes):
            self.executed(key, self.cohort.warps_of(lanes), lanes)
        super().finish(key, lanes)

    def meets(self, key: Key, lanes: Lanes) -> bool:
        """Is it a collective, where lanes of a warp wait for each other?"""
        request = self.code.routines[key[1]].compiled(key[2], whole=lanes is None).request
        return request is not None and request.wait is Wait.WARP

    def executed(self, key: Key, warps: int, lanes: Lanes) -> None:
        """Count the instructions of a segment for a group."""
        routine = self.code.routines[key[1]]
        segment = routine.segments[key[2]]
        self.counter.executed(routine.function, segment.start, segment.end, warps, self.cohort.layout.count(lanes))

    def branched(self, key: Key, lanes: Lanes, places: PerLane) -> None:
        """Count the warps that diverge."""
        self.counter.branched(self.last(key), self.divergent(lanes, places))

    def divergent(self, lanes: Lanes, places: PerLane) -> int:
        """The number of warps whose lanes go on at several places."""
        if (places == places[0]).all():
            return 0
        layout = self.cohort.layout
        warps = layout.warp[layout.every(lanes)]
        first, last = np.full(layout.warps, places.max()), np.zeros(layout.warps, places.dtype)
        np.minimum.at(first, warps, places)
        np.maximum.at(last, warps, places)
        return int(np.count_nonzero(first < last))


__all__ = ["CountingSchedule"]

"""A schedule that counts instructions and branches."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.converging_schedule import ConvergingSchedule
from ptxvm.engine.interp.counting_cohort import CountingCohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.routine import Routine
from ptxvm.machine.per_lane import Lanes, PerLane


class CountingSchedule(ConvergingSchedule):
    """Counts what groups of lanes execute, and the warps that diverge."""

    cohort: CountingCohort

    def __init__(self, cohort: CountingCohort, code: Executable, kernel: Routine) -> None:
        super().__init__(cohort, code, kernel)
        self.counter = cohort.counter

    def step(self, key: Key, lanes: Lanes) -> None:
        """Run one segment for a group, and count its instructions."""
        routine = self.code.routines[key[1]]
        segment = routine.segments[key[2]]
        count = self.cohort.layout.count(lanes)
        self.counter.executed(routine.function, segment.start, segment.end, self.cohort.warps_of(lanes), count)
        super().step(key, lanes)

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

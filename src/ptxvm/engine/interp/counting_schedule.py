"""A schedule that counts instructions and branches, and parts the lanes of a warp only where one may wait for another."""

from __future__ import annotations

from functools import cache

import numpy as np

from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.counting_cohort import CountingCohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.ports import Action
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import FAIR, Schedule
from ptxvm.isa.effects import Jump
from ptxvm.machine.per_lane import Guard, Lanes, PerLane

PATIENCE = 1 << 17  # steps after which other lanes run, whatever the code does


class CountingSchedule(Schedule):
    """Runs the group that is least far in the code, so that diverged lanes meet again.

    Other lanes run where that group reads memory as synchronisation does: it may wait for what they write.
    """

    cohort: CountingCohort

    def __init__(self, cohort: CountingCohort, code: Executable, kernel: Routine) -> None:
        super().__init__(cohort, code, kernel)
        self.counter = cohort.counter
        self.last_other = 0  # the last step of a group that was not the first
        self.may_wait = cache(self._may_wait)

    def choose(self) -> Key:
        """The group that runs next."""
        found = min(self.ready)
        patience = FAIR if self.may_wait(found[1], found[2]) else PATIENCE
        if len(self.ready) > 1 and self.steps - self.last_other >= patience:
            self.last_other = self.steps
            return min(self.ready, key=lambda key: self.since.get(key, 0))
        return found

    def _may_wait(self, number: int, segment: int) -> bool:
        routine = self.code.routines[number]
        part = routine.segments[segment]
        effects = [bound.summary for bound in routine.function.instructions[part.start : part.end]]
        return any(each.polls or each.sleeps or any(access.strong for access in each.accesses) for each in effects)

    def step(self, key: Key, lanes: Lanes) -> None:
        """Run one segment for a group, and count its instructions."""
        routine = self.code.routines[key[1]]
        segment = routine.segments[key[2]]
        count = self.cohort.layout.count(lanes)
        self.counter.executed(routine.function, segment.start, segment.end, self.cohort.warps_of(lanes), count)
        super().step(key, lanes)

    def follow(self, action: Action | None, key: Key, lanes: Lanes, guard: Guard, raws: PerLane) -> None:
        """Send the lanes on, and count the warps that diverge."""
        if action is not None and action.jump in (Jump.GOTO, Jump.SWITCH):
            going = np.broadcast_to(True if guard is None else guard, self.cohort.layout.count(lanes))
            self.counter.branched(self.last(key), self.divergent(lanes, self.places(action, key, going, raws)))
        super().follow(action, key, lanes, guard, raws)

    def places(self, action: Action, key: Key, going: PerLane, raws: PerLane) -> PerLane:
        """The segment at which each lane goes on."""
        routine = self.code.routines[key[1]]
        if action.jump is Jump.GOTO:
            return np.where(going, routine.segment_at(action.symbol.index), key[2] + 1)
        targets = np.array([routine.segment_at(target.index) for target in action.symbol.targets])
        return np.where(going, targets[np.minimum(raws[0], len(targets) - 1)], key[2] + 1)

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

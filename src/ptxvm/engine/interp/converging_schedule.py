"""A schedule that parts the lanes of a warp only where one may wait for another: for counts and traces."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ptxvm.engine import spin_loops
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.ports import Action
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import FAIR, Schedule
from ptxvm.isa.effects import Collective, Jump
from ptxvm.machine.per_lane import Guard, Lanes, PerLane

PATIENCE = 1 << 17  # steps after which other lanes run, whatever the code does
OF_LANES = (Collective.LANES, Collective.WARPGROUP, Collective.COLUMNS)  # collectives of the warp's own lanes


class ConvergingSchedule(Schedule):
    """Runs the group that is least far in the code, so that diverged lanes meet again; collectives run after all other code.

    Collectives are in the order that the code has with each function in the place of its call, as in compiled code: lanes in
    a function may wait for lanes that have not left a loop before its call.

    In a kernel with spin loops other lanes run where that group reads memory as synchronisation does: it may wait for what
    they write.
    """

    def __init__(self, cohort: Cohort, code: Executable, kernel: Routine) -> None:
        super().__init__(cohort, code, kernel)
        self.last_other = 0  # the last step of a group that was not the first
        self.may_wait: Callable[[int, int], bool] = cache(self._may_wait)
        self.rank: Callable[[Key], tuple[object, ...]] = cache(self._rank)
        self.call_sites = code.call_sites(kernel.function)
        self.spins = bool(spin_loops.spins(code.image, kernel.function))

    def choose(self) -> Key:
        """The group that runs next."""
        found = min(self.ready, key=self.rank)
        patience = FAIR if self.may_wait(found[1], found[2]) else PATIENCE
        if len(self.ready) > 1 and self.steps - self.last_other >= patience:
            self.last_other = self.steps
            return min(self.ready, key=lambda key: self.since.get(key, 0))
        return found

    def _may_wait(self, number: int, segment: int) -> bool:
        routine = self.code.routines[number]
        part = routine.segments[segment]
        effects = [bound.summary for bound in routine.function.instructions[part.start : part.end]]
        synchronises = self.spins and any(access.strong for each in effects for access in each.accesses)
        return synchronises or any(each.polls or each.sleeps for each in effects)

    def _rank(self, key: Key) -> tuple[object, ...]:
        """The sort key of a group: the lowest one runs."""
        routine = self.code.routines[key[1]]
        start = routine.segments[key[2]].start
        if routine.function.instructions[start].summary.collective not in OF_LANES:
            return (False, key)
        function = routine.function  # it waits for lanes of the warp, which come from other code
        position: tuple[int, ...] = (start,)
        while len(sites := self.call_sites[function]) == 1:
            ((function, call),) = sites
            position = (call, *position)
        return (True, not sites, position, key)  # code with several callers is before the code that calls it

    def follow(self, action: Action | None, key: Key, lanes: Lanes, guard: Guard, raws: PerLane) -> None:
        """Send the lanes on, and tell of a branch."""
        if action is not None and action.jump in (Jump.GOTO, Jump.SWITCH):
            going = np.broadcast_to(True if guard is None else guard, self.cohort.layout.count(lanes))
            self.branched(key, lanes, self.places(action, key, going, raws))
        super().follow(action, key, lanes, guard, raws)

    def branched(self, key: Key, lanes: Lanes, places: PerLane) -> None:
        """Lanes have executed the branch at the end of a segment; `places` are the segments at which they go on."""
        raise NotImplementedError

    def places(self, action: Action, key: Key, going: PerLane, raws: PerLane) -> PerLane:
        """The segment at which each lane goes on."""
        routine = self.code.routines[key[1]]
        if action.jump is Jump.GOTO:
            return np.where(going, routine.segment_at(action.symbol.index), key[2] + 1)
        targets = np.array([routine.segment_at(target.index) for target in action.symbol.targets])
        return np.where(going, targets[np.minimum(raws[0], len(targets) - 1)], key[2] + 1)


__all__ = ["ConvergingSchedule"]

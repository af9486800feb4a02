"""A schedule that issues one instruction at a time: of the group whose turn it is, or of a warp or lane that is chosen."""

from __future__ import annotations

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.converging_schedule import ConvergingSchedule
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.routine import Routine
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane


@dataclass(frozen=True, slots=True)
class Issue:
    """An instruction that is about to be executed: its place in the code, and the lanes of a cohort that execute it."""

    schedule: SteppingSchedule
    key: Key
    lanes: Lanes

    @property
    def routine(self) -> Routine:
        """The code that it belongs to."""
        return self.schedule.code.routines[self.key[1]]

    @property
    def bound(self) -> Bound:
        """The instruction."""
        return self.routine.function.instructions[self.key[2]]

    @property
    def numbers(self) -> LaneNumbers:
        """The lanes, by their numbers in the cohort."""
        return self.schedule.cohort.layout.every(self.lanes)


class SteppingSchedule(ConvergingSchedule):
    """Issues one instruction at a time; the instruction that `decide` has found runs next."""

    decided: Issue | None = None

    def __init__(self, cohort: Cohort, code: Executable, kernel: Routine) -> None:
        super().__init__(cohort, code, kernel)
        self.may_wait = self._may_wait  # without a cache, so that its state can be copied
        self.other_then = 0  # `last_other` after the instruction that was decided

    @property
    def can_run(self) -> bool:
        """Is there a group that can run?"""
        return bool(self.ready) or self.release_stuck()

    def decide(self, only: LaneNumbers | None = None) -> Issue | None:
        """The next instruction: of any lanes, or of some (in order); None where these lanes cannot run.

        To ask again gives the same answer, and changes nothing.
        """
        self.decided = None
        before = self.other_then = self.last_other
        if not self.can_run:
            return None
        if only is None:
            key = super().choose()
            self.last_other, self.other_then = before, self.last_other
            self.decided = Issue(self, key, self.merged(key))
        else:
            self.decided = self.issue_of(only)
        return self.decided

    def issue_of(self, only: LaneNumbers) -> Issue | None:
        """The next instruction of some lanes: that of the group that is least far."""
        for key in sorted(self.ready):
            lanes = self.merged(key)
            mine = only if lanes is None else np.intersect1d(only, lanes, assume_unique=True)
            if len(mine):
                return Issue(self, key, None if len(mine) == self.cohort.size else mine)
        return None

    def merged(self, key: Key) -> Lanes:
        """The lanes of a group, in order; None for all lanes of the cohort."""
        before = self.since.get(key, 0)
        lanes = super().take(key)
        self.ready[key], self.since[key] = [lanes], before
        return lanes

    def issue(self) -> None:
        """Execute the instruction that was decided."""
        if self.cohort.copies.under_way:
            self.completion(self)
        decided, self.decided = self.decided, None
        if decided is None:
            raise ValueError("no instruction was decided")
        self.steps += 1
        self.last_other = self.other_then
        self.cohort.yields = False
        self.step(decided.key, self.take_of(decided))

    def step(self, key: Key, lanes: Lanes) -> None:
        """Run one instruction for a group; where it faults the lanes stay before it."""
        try:
            super().step(key, lanes)
        except Fault:
            self.push(key, lanes)
            raise

    def take_of(self, issue: Issue) -> Lanes:
        """Take the lanes of an instruction; others at the same place stay ready."""
        layout, lanes = self.cohort.layout, self.take(issue.key)
        if layout.count(issue.lanes) < layout.count(lanes):
            self.ready[issue.key] = [np.setdiff1d(layout.every(lanes), layout.every(issue.lanes), assume_unique=True)]
        return issue.lanes

    def branched(self, key: Key, lanes: Lanes, places: PerLane) -> None:
        """Lanes have executed a branch."""


__all__ = ["Issue", "SteppingSchedule"]

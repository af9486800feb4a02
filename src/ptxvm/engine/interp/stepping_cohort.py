"""A cohort whose accesses are observed, and whose clocks count instructions, so that each run is the same."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.cohort import CLOCKS, Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.observed_memory import ObservedMemory, Values
from ptxvm.engine.interp.watched_cohort import WatchedCohort
from ptxvm.engine.interp.watched_memory import WatchedMemory
from ptxvm.isa.effects import Verb
from ptxvm.machine.per_lane import Lanes, PerLane


class Observer(Protocol):
    """Follows the execution of a grid."""

    time: int
    """The instructions that have been issued."""

    observes: bool
    """Does it want to know of all accesses?  Of those to mbarriers it knows always."""

    def accessed(self, memory: ObservedMemory, access: Access, verb: Verb, lanes: Lanes, address: PerLane) -> None:
        """Lanes have accessed memory."""


class SteppingMemory(ObservedMemory):
    """Memory whose accesses an observer may follow."""

    observer: Observer

    def observe(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Tell the observer of an access."""
        if self.observer.observes or "mbarrier" in access.attributes:
            self.observer.accessed(self, access, verb, lanes, address)


class CountedClocks(Cohort):
    """A cohort whose clocks count the instructions that were issued."""

    observer: Observer

    def special(self, name: str, lanes: Lanes) -> PerLane:
        """The value of a special register; a clock counts the instructions that were issued."""
        if name in CLOCKS:
            return np.uint64(self.observer.time >> (32 if name.endswith("_hi") else 0))
        return super().special(name, lanes)


class SteppingCohort(CountedClocks):
    """A cohort that is run instruction by instruction."""

    mem: SteppingMemory

    def __init__(self, inputs: CohortInputs, observer: Observer) -> None:
        super().__init__(inputs, SteppingMemory)
        self.observer = self.mem.observer = observer


class WatchedSteppingMemory(SteppingMemory, WatchedMemory):
    """Memory whose accesses an observer may follow, and a checker does."""


class WatchedSteppingCohort(CountedClocks, WatchedCohort):
    """A cohort that is run instruction by instruction, and reports to a checker."""

    def __init__(self, inputs: CohortInputs, observer: Observer) -> None:
        WatchedCohort.__init__(self, inputs, WatchedSteppingMemory)
        self.observer = observer
        if isinstance(self.mem, WatchedSteppingMemory):
            self.mem.observer = observer


__all__ = ["Observer", "SteppingCohort", "WatchedSteppingCohort"]

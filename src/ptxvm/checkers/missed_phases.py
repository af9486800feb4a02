"""Missed phases: a wait has to look at an mbarrier before the next phase ends, too (PTX 9.7.13.15.16).

A test by parity finds the last phase over, and no earlier one.  A thread that comes so late that the phase behind has ended as
well finds the parity that it waits for under way again, and waits for a phase that nothing may ever end.  In the run that is
followed the thread came in time; in another it may not, unless the end of the next phase comes after its look.  So all
arrivals of a phase, together, must come after each thread that found the phase before over: after one lane of its warp, since
lanes that wait together look together.

What has to come first is the thread's look, and none of its accesses has to be visible: so arrivals without a release, and
those of asynchronous work, tell how far the threads have come that they follow (`clocks.PROGRESS`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from ptxvm.checkers.clocks import PROGRESS, Clocks, Knowledge, joined, of_kind
from ptxvm.checkers.mbarrier_phases import Location
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WARPS
from ptxvm.machine.events import Access, Threads


@dataclass(frozen=True, slots=True)
class MissedPhase:
    """A test of an mbarrier by a thread, and the arrival, or the end of a transfer, that ended the next phase."""

    test: Access
    thread: int
    end: Access
    other: int


class MissedPhases:
    """The threads that found the last phase of each mbarrier over, and what its arrivals since then come after."""

    def __init__(self, clocks: Clocks, report: Callable[[MissedPhase], None] | None) -> None:
        """Nothing is followed where there is no `report`."""
        self.clocks, self.report = clocks, report
        self._looked: dict[Location, dict[int, tuple[Access, int]]] = defaultdict(dict)  # by thread: its test and its clock
        self._arrived: dict[Location, Knowledge] = {}

    def forget(self, location: Location) -> None:
        """An mbarrier is initialised or invalidated."""
        self._looked.pop(location, None)
        self._arrived.pop(location, None)

    def found_over(self, access: Access, threads: Threads, location: Location) -> None:
        """Threads have found the last phase over."""
        if self.report is None:
            return
        looked = self._looked[location]
        for thread, now in zip(threads.tolist(), self.clocks.now[threads].tolist(), strict=True):
            looked.setdefault(thread, (access, now))

    def arrive(self, threads: Threads, location: Location) -> Knowledge | None:
        """Threads arrive, or work that they started has ended; the progress that this tells of."""
        if self.report is None:
            return None
        progress = of_kind(self.clocks.snapshot(threads), PROGRESS)
        self._arrived[location] = joined(self._arrived.get(location), progress)
        return progress

    def meet_warpgroups(self, threads: Threads) -> None:
        """The warps of some warpgroups have waited for products, which each of them took part in (PTX 9.7.15.7.3)."""
        if self.report is None:
            return
        home = self.clocks.home(threads)
        group = home + (threads - home) // (WARPS * WARP) * (WARPS * WARP)
        for each in np.unique(group).tolist():
            self.clocks.come_as_far(threads[group == each])

    def complete(self, access: Access, thread: int, location: Location) -> None:
        """A thread ends the current phase: each warp that found the one before over must have looked by now."""
        looked, arrived = self._looked.pop(location, {}), self._arrived.pop(location, {})
        if self.report is None:
            return
        late: dict[tuple[int, int], MissedPhase] = {}
        known: set[tuple[int, int]] = set()
        for other, (test, stamp) in looked.items():
            home = int(self.clocks.home(other))
            warp = home, (other - home) // WARP
            row = arrived.get((PROGRESS, 0, home))
            if row is not None and row[other - home] >= stamp:
                known.add(warp)
            else:
                late[warp] = MissedPhase(test, other, access, thread)
        for warp, missed in late.items():
            if warp not in known:
                self.report(missed)


__all__ = ["MissedPhase", "MissedPhases"]

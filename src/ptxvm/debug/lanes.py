"""Where the lanes of a cohort are: their places in the code, and what they wait for."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.barriers import Key, Waiting
from ptxvm.engine.interp.calls import SITE
from ptxvm.engine.interp.lanes import at
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.stepping_schedule import SteppingSchedule
from ptxvm.machine.per_lane import Array
from ptxvm.syntax.tree import Location


class Status(enum.Enum):
    """What a lane does."""

    ACTIVE = "active"
    """It may execute its instruction."""
    WARP = "waits for lanes of its warp"
    BARRIER = "waits at a barrier of its CTA"
    CLUSTER = "waits at the barrier of its cluster"
    COLUMNS = "waits for columns of tensor memory"
    ENDED = "has ended"


STATUSES = tuple(Status)


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that a lane is in: its code, and the instruction that it executes next or has called from."""

    depth: int
    routine: Routine
    index: int

    @property
    def bound(self) -> Bound:
        """The instruction."""
        return self.routine.function.instructions[self.index]

    @property
    def location(self) -> Location | None:
        """The source line of the instruction; of one that is of no line, 0 (DWARF 4 6.2.2), that of the last before it."""
        before = reversed(self.routine.function.instructions[: self.index + 1])
        return next((each.location for each in before if each.location is None or each.location.line), self.bound.location)


class LanePlaces:
    """The place of each lane of a cohort at one time: arrays with one element for each lane.

    `status` numbers `STATUSES`; the other arrays are of no use for lanes that have ended.
    """

    def __init__(self, schedule: SteppingSchedule) -> None:
        self.schedule, self.layout = schedule, schedule.cohort.layout
        size = self.layout.size
        self.status = np.full(size, STATUSES.index(Status.ENDED))
        self.depth, self.routine, self.index = (np.zeros(size, np.int64) for _ in range(3))
        for status, key, lanes in self._groups():
            self.status[lanes] = STATUSES.index(status)
            self.depth[lanes], self.routine[lanes], self.index[lanes] = -key[0], key[1], key[2]

    def _groups(self) -> Iterator[tuple[Status, Key, Array]]:
        schedule, layout = self.schedule, self.layout
        for key, parts in schedule.ready.items():
            for part in parts:
                yield Status.ACTIVE, key, layout.every(part)
        waits: list[tuple[Status, list[Waiting]]] = [(Status.WARP, pool) for pool in schedule.warps.pools.values()]
        waits += [(Status.BARRIER, each.waiting) for each in schedule.barriers.barriers.values()]
        waits.append((Status.CLUSTER, schedule.cluster_barriers.waiting))
        waits.append((Status.COLUMNS, schedule.columns.waiting))
        for status, pool in waits:
            for waiting in pool:
                yield status, waiting.key, waiting.lanes

    def status_of(self, lane: int) -> Status:
        """What a lane does."""
        return STATUSES[int(self.status[lane])]

    def frame(self, lane: int) -> Frame | None:
        """The innermost function of a lane; None where it has ended."""
        if self.status_of(lane) is Status.ENDED:
            return None
        routine = self.schedule.code.routines[int(self.routine[lane])]
        return Frame(int(self.depth[lane]), routine, int(self.index[lane]))

    def stack(self, lane: int) -> list[Frame]:
        """The functions that a lane is in, the innermost first."""
        frame = self.frame(lane)
        found = [] if frame is None else [frame]
        sites = self.schedule.calls.sites
        for depth in range(int(self.depth[lane]) if found else 0, 0, -1):
            number, index = divmod(int(at(sites[depth], np.array([lane])).ravel()[0]), SITE)
            found.append(Frame(depth - 1, self.schedule.code.routines[number], index))
        return found


__all__ = ["Frame", "LanePlaces", "Status"]

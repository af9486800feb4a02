"""The barriers of clusters: which threads have arrived, which wait, and when they are released (PTX 9.7.13.3)."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.interp.barriers import Waiting
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.machine.per_lane import LaneNumbers, PerLane


class ClusterBarriers:
    """The barrier of each cluster of a cohort.

    A lane that has arrived waits until all live threads of its cluster have; one that has not passes at once, since the
    barrier at which it arrived last is complete.
    """

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.arrived = np.zeros(cohort.size, np.bool_)
        self.threads = cohort.layout.threads * cohort.layout.shape.cluster_size
        self.waiting: list[Waiting] = []

    def arrive(self, lanes: LaneNumbers) -> list[Waiting]:
        """Lanes arrive; returns the lanes that are released."""
        self.arrived[lanes] = True
        return self.settle()

    def wait(self, waiting: Waiting) -> list[Waiting]:
        """Lanes wait; returns those of them that need not."""
        self.waiting.append(waiting)
        return self._released()

    def settle(self) -> list[Waiting]:
        """Complete the barriers at which all live threads have arrived; returns the lanes that are released."""
        everyone = (self.arrived | ~self.cohort.alive).reshape(-1, self.threads).all(axis=1)
        complete = everyone & self.arrived.reshape(-1, self.threads).any(axis=1)
        if not complete.any():
            return []
        for cluster in np.flatnonzero(complete).tolist():
            self.arrived[cluster * self.threads : (cluster + 1) * self.threads] = False
            self.cohort.cluster_barrier_opened(cluster)
        return self._released()

    def _released(self) -> list[Waiting]:
        """Take out the waiting lanes whose barrier is complete."""
        released, left = [], []
        for each in self.waiting:
            stays: PerLane = self.arrived[each.lanes]
            if not stays.all():
                released.append(Waiting(each.key, each.lanes[~stays]))
            if stays.any():
                left.append(Waiting(each.key, each.lanes[stays]))
        self.waiting = left
        for each in released:
            self.cohort.cluster_barrier_passed(each.key, each.lanes)
        return released

    def __bool__(self) -> bool:
        return bool(self.waiting)

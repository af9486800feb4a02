"""The order that barriers of clusters make: what precedes an arrival with .release precedes what follows the wait.

An arrival with .relaxed releases what a fence has released before it (PTX 9.7.13.4, `fence.mbarrier_init`).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ptxvm.algebra.memory_order import Scope
from ptxvm.checkers.clocks import PROGRESS, Knowledge, joined, of_kind
from ptxvm.checkers.patterns import Patterns
from ptxvm.machine.events import ClusterStep, Threads


class ClusterOrder:
    """The knowledge that threads pass on at the barriers of their clusters (PTX 9.7.13.3)."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns, self.clocks = patterns, patterns.clocks
        self._arriving: dict[int, Knowledge] = {}
        self._complete: dict[int, Knowledge] = {}
        self._relaxed: dict[int, Knowledge] = {}
        self._relaxed_complete: dict[int, Knowledge] = {}
        self._waited: dict[int, Knowledge] = defaultdict(dict)  # by CTA

    def step(self, step: ClusterStep, cluster: int, threads: Threads) -> None:
        """Threads arrive at the barrier of a cluster, which its first thread names; or it is complete; or they go on."""
        match step:
            case ClusterStep.ARRIVED | ClusterStep.ARRIVED_RELAXED:
                arriving = self._arriving if step is ClusterStep.ARRIVED else self._relaxed
                for part in self._by_cta(threads):
                    arriving[cluster] = joined(arriving.get(cluster), self.clocks.snapshot(part))
                    self.clocks.tick(part)
                if step is ClusterStep.ARRIVED_RELAXED:
                    progress = of_kind(self._relaxed[cluster], PROGRESS)
                    self._arriving[cluster] = joined(self._arriving.get(cluster), progress)
                if step is ClusterStep.ARRIVED_RELAXED and (fenced := self.patterns.fence_knowledge(threads, Scope.CLUSTER)):
                    self._arriving[cluster] = joined(self._arriving.get(cluster), fenced)
            case ClusterStep.COMPLETE:
                self._complete[cluster] = self._arriving.pop(cluster, {})
                self._relaxed_complete[cluster] = self._relaxed.pop(cluster, {})
            case ClusterStep.PASSED:
                if known := self._complete.get(cluster):
                    self.clocks.learn(threads, known)
                if known := self._relaxed_complete.get(cluster):
                    for part in self._by_cta(threads):
                        cta = int(self.clocks.home(part[0]))
                        self._waited[cta] = joined(self._waited[cta], known)

    def outlasts(self, cta: int) -> Knowledge:
        """The operations that end before a CTA goes on, by its first thread: .relaxed arrivals order them, but no memory."""
        return self._waited.get(cta, {})

    def _by_cta(self, threads: Threads) -> list[Threads]:
        home = self.clocks.home(threads)
        return [threads[home == cta] for cta in np.unique(home).tolist()]

"""Happens-before between the grids of a launch: a grid and the grids that its threads launch (CUDA Dynamic Parallelism)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ptxvm.checkers.clocks import Clocks, Knowledge, joined
from ptxvm.machine.events import Threads


class GridOrder:
    """The knowledge of a grid at its beginning, and of a thread that waits for grids; by grid numbers."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._launched: dict[int, Knowledge] = {}  # what the launching thread knew
        self._children: dict[int, list[int]] = defaultdict(list)
        self._ended: dict[int, Knowledge] = {}

    def launches(self, grid: int, thread: int) -> None:
        """A thread launches a grid, which will know what the thread knows."""
        self._launched[grid] = self.clocks.snapshot(np.array([thread], np.int64))
        self._children[self.clocks.grids.grid(thread)].append(grid)
        self.clocks.tick(np.array([thread], np.int64))

    def begins(self, grid: int, threads: Threads, after: Sequence[int]) -> None:
        """The threads of a launched grid begin, after some grids have ended."""
        known = self._launched.pop(grid)
        for each in after:
            known = joined(known, self._all_of(each))
        self.clocks.learn(threads, known)

    def ended(self, grid: int) -> None:
        """A grid has ended, with all that it has launched."""
        self._ended[grid] = self._all_of(grid)

    def waited(self, threads: Threads, grids: Sequence[int]) -> None:
        """Threads have waited for grids, which have ended."""
        for grid in grids:
            self.clocks.learn(threads, self._ended[grid])

    def _all_of(self, grid: int) -> Knowledge:
        """All accesses of a grid whose threads have ended, and those of its children that have ended."""
        if grid in self._ended:
            return self._ended[grid]
        known = self.clocks.all_of(grid)
        for child in self._children[grid]:
            known = joined(known, self._ended.get(child, {}))
        return known


__all__ = ["GridOrder"]

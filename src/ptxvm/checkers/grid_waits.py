"""What a grid does ahead of `griddepcontrol.wait` (PTX 9.7.13.13): accesses that come after the wait of no thread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.clocks import Clocks
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.events import Threads


class GridWaits:
    """The threads of a grid that have waited for the grids before it, and those that came after such a wait."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._after = np.zeros(len(clocks.now), np.bool_)  # by thread
        self._waits: dict[int, tuple[int, int]] = {}  # of a thread of each warp: its number and its clock

    def waited(self, threads: Threads) -> None:
        """Threads have waited."""
        for thread, now in zip(threads.tolist(), self.clocks.now[threads].tolist(), strict=True):
            self._waits.setdefault(thread // WARP, (thread, now))
        self._of(threads)
        self._after[threads] = True
        self.clocks.tick(threads)  # what the threads did before has an earlier stamp

    def ahead(self, threads: Threads) -> npt.NDArray[np.bool_]:
        """Which of the threads know of no wait?"""
        after = self._of(threads)
        if after.all() or not self._waits:
            return ~after
        some = np.unique(threads[~after])
        waits = np.array(list(self._waits.values()), np.int64)
        asking, other = np.repeat(some, len(waits)), np.tile(waits, (len(some), 1)).T
        known = ~self.clocks.unknown(asking, *other).reshape(len(some), len(waits))
        self._after[some[known.any(axis=1)]] = True
        return ~self._after[threads]

    def _of(self, threads: Threads) -> npt.NDArray[np.bool_]:
        """Which of the threads are known to come after a wait?  Grids that the kernel launches have further threads."""
        if len(self._after) < len(self.clocks.now):
            self._after = np.concatenate([self._after, np.zeros(len(self.clocks.now) - len(self._after), np.bool_)])
        return self._after[threads]


__all__ = ["GridWaits"]

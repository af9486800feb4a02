"""Proxy fences: the writes by the generic proxy that the async proxy may see (PTX 8.6, 9.7.9.25.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.clocks import Clocks, Knowledge
from ptxvm.checkers.shadow import Packing, Records
from ptxvm.machine.events import Threads


class ProxyFences:
    """The last proxy fence of each thread."""

    def __init__(self, clocks: Clocks, packing: Packing) -> None:
        self.clocks, self.packing = clocks, packing
        self._fenced = np.zeros(len(clocks.now), np.int64)  # the clock of each thread at its last fence
        self._known: dict[int, Knowledge] = {}  # and its knowledge then

    def grow(self, threads: int) -> None:
        """Add the threads of a new grid."""
        self._fenced = np.concatenate([self._fenced, np.zeros(threads, np.int64)])

    def fence(self, threads: Threads) -> None:
        """Threads have executed `fence.proxy.async`."""
        self._fenced[threads] = self.clocks.now[threads]
        for thread in threads.tolist():
            self._known[thread] = self.clocks.snapshot(np.array([thread], np.int64))
        self.clocks.tick(threads)

    def unfenced(self, last: Records, threads: Threads) -> npt.NDArray[np.int64]:
        """The positions of last writes that are ordered before the threads' accesses, without a proxy fence between."""
        writers, stamps = self.packing.thread_of(last), self.packing.stamp_of(last)
        ordered = (last != 0) & (writers < self.clocks.grids.agents)
        ordered &= (writers == threads) | ~self.clocks.unknown(threads, writers, stamps)
        ordered &= stamps > self._fenced[np.where(ordered, writers, 0)]
        found = [
            n for n in np.flatnonzero(ordered).tolist() if not self._knew(int(threads[n]), int(writers[n]), int(stamps[n]))
        ]
        return np.array(found, np.int64)

    def _knew(self, thread: int, writer: int, stamp: int) -> bool:
        """Was the write known to the thread at its last fence?"""
        home = int(self.clocks.home(writer))
        row = self._known.get(thread, {}).get(home)
        return row is not None and bool(row[writer - home] >= stamp)


__all__ = ["ProxyFences"]

"""Proxy fences: the writes by the generic proxy that the async proxy may see (PTX 8.6, 9.7.9.25.2, 9.7.13.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.state_space import Space
from ptxvm.checkers.clocks import Clocks, Knowledge
from ptxvm.checkers.shadow import Packing, Records
from ptxvm.machine.events import Threads

ASYNC_SPACES = {
    Proxy.ASYNC: (Space.GLOBAL, Space.SHARED), Proxy.ASYNC_GLOBAL: (Space.GLOBAL,), Proxy.ASYNC_SHARED: (Space.SHARED,),
}  # fmt: skip
"""The state spaces whose accesses a fence of a proxy orders."""


class ProxyFences:
    """The last proxy fence of each thread, for each state space."""

    def __init__(self, clocks: Clocks, packing: Packing) -> None:
        self.clocks, self.packing = clocks, packing
        self._fenced = {space: np.zeros(len(clocks.now), np.int64) for space in ASYNC_SPACES[Proxy.ASYNC]}  # clocks of threads
        self._known: dict[tuple[int, Space], Knowledge] = {}  # and their knowledge then

    def grow(self, threads: int) -> None:
        """Add the threads of a new grid."""
        more = np.zeros(threads, np.int64)
        self._fenced = {space: np.concatenate([fenced, more]) for space, fenced in self._fenced.items()}

    def fence(self, threads: Threads, spaces: tuple[Space, ...]) -> None:
        """Threads have executed `fence.proxy.async`, for some state spaces."""
        for space in spaces:
            self._fenced[space][threads] = self.clocks.now[threads]
        for thread in threads.tolist():
            known = self.clocks.snapshot(np.array([thread], np.int64))
            self._known |= {(thread, space): known for space in spaces}
        self.clocks.tick(threads)

    def unfenced(self, space: Space, last: Records, threads: Threads) -> npt.NDArray[np.int64]:
        """The positions of last writes that are ordered before the threads' accesses, without a proxy fence between."""
        if space not in self._fenced:
            return np.zeros(0, np.int64)
        writers, stamps = self.packing.thread_of(last), self.packing.stamp_of(last)
        ordered = (last != 0) & (writers < self.clocks.grids.agents)
        ordered &= (writers == threads) | ~self.clocks.unknown(threads, writers, stamps)
        ordered &= stamps > self._fenced[space][np.where(ordered, writers, 0)]
        found = [
            n
            for n in np.flatnonzero(ordered).tolist()
            if not self._knew(int(threads[n]), space, int(writers[n]), int(stamps[n]))
        ]
        return np.array(found, np.int64)

    def _knew(self, thread: int, space: Space, writer: int, stamp: int) -> bool:
        """Was the write known to the thread at its last fence?"""
        home = int(self.clocks.home(writer))
        row = self._known.get((thread, space), {}).get(home)
        return row is not None and bool(row[writer - home] >= stamp)


__all__ = ["ASYNC_SPACES", "ProxyFences"]

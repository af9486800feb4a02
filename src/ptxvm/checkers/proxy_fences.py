"""Proxy fences: the writes by the generic proxy that the async proxy may see (PTX 8.6, 9.7.9.25.2, 9.7.13.4)."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.state_space import Space
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.remembered_fences import RememberedFences
from ptxvm.checkers.shadow import Packing, Records
from ptxvm.machine.events import Threads

ASYNC_SPACES = {
    Proxy.ASYNC: (Space.GLOBAL, Space.SHARED), Proxy.ASYNC_GLOBAL: (Space.GLOBAL,), Proxy.ASYNC_SHARED: (Space.SHARED,),
}  # fmt: skip
"""The state spaces whose accesses a fence of a proxy orders."""


class ProxyFences:
    """The last proxy fences of each thread, for each state space."""

    def __init__(self, clocks: Clocks, packing: Packing) -> None:
        self.clocks, self.packing = clocks, packing
        self._fenced = {space: np.zeros(len(clocks.now), np.int64) for space in ASYNC_SPACES[Proxy.ASYNC]}  # clocks of threads
        self.fences = RememberedFences[Space](clocks)

    def grow(self, threads: int) -> None:
        """Add the threads of a new grid."""
        more = np.zeros(threads, np.int64)
        self._fenced = {space: np.concatenate([fenced, more]) for space, fenced in self._fenced.items()}

    def fence(self, threads: Threads, spaces: tuple[Space, ...]) -> None:
        """Threads have executed `fence.proxy.async`, for some state spaces."""
        for space in spaces:
            self._fenced[space][threads] = self.clocks.now[threads]
        self.fences.add(threads, spaces)

    def unfenced(self, space: Space, last: Records, threads: Threads, copied: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The positions of last writes that are ordered before the threads' accesses, without a proxy fence between.

        A fence of any thread counts that the write precedes and that precedes the access (PTX 8.9.5).  Those that are `copied`
        are of `cp.async`, whose writes are of the generic proxy.
        """
        if space not in self._fenced:
            return np.zeros(0, np.int64)
        writers, stamps = self.packing.thread_of(last), self.packing.stamp_of(last)
        own = writers < self.clocks.grids.agents
        ordered = (last != 0) & (own | copied)
        ordered &= (writers == threads) | ~self.clocks.unknown(threads, writers, stamps)
        ordered &= ~own | (stamps > self._fenced[space][np.where(ordered & own, writers, 0)])
        fenced = cache(partial(self._fenced_between, space))
        found = [n for n in np.flatnonzero(ordered).tolist() if not fenced(int(threads[n]), int(writers[n]), int(stamps[n]))]
        return np.array(found, np.int64)

    def _fenced_between(self, space: Space, thread: int, writer: int, stamp: int) -> bool:
        """Has the thread executed a fence behind the write, or does it know one of another thread behind the write?"""
        if any(self.fences.covers(fence, writer, stamp) for fence in self.fences.of_thread(space, thread)):
            return True
        return any(
            self.fences.covers(fence, writer, stamp) and self.clocks.knows(thread, fence.thread, fence.stamp)
            for fence in self.fences.of(space)
        )


__all__ = ["ASYNC_SPACES", "ProxyFences"]

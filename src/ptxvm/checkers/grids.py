"""Thread numbering of a launch: the threads of its grids, and the agents of their asynchronous copies.

Threads are numbered grid after grid and CTA by CTA, so those of a CTA follow each other.  The agent of thread t, which does
its asynchronous copies, has the number t + `agents`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import Scope

Ints = npt.NDArray[np.int64]
ThreadNumbers: TypeAlias = Any
"""The number of a thread, or an array of them; results have the same kind."""

NO_AGENTS = 1 << 62


class Grids:
    """The first threads of the grids and CTAs of a launch."""

    def __init__(self, size: int, threads: int, capacity: int, cluster: int = 1) -> None:
        """The host's grid has `threads` threads in CTAs of `size`; there is space for `capacity` threads with their agents.

        `cluster` CTAs of it that follow each other are a cluster; each CTA of a launched grid is one.
        """
        self._cluster, self._host = size * cluster, threads
        self._first, self._sizes, self._numbers = np.array([0], np.int64), np.array([size], np.int64), [0]
        self._size, self._capacity = size, capacity
        self.threads = threads
        self.agents = NO_AGENTS

    def add(self, number: int, size: int, threads: int) -> None:
        """Add a grid."""
        self._numbers.append(number)
        self._first, self._sizes = np.append(self._first, self.threads), np.append(self._sizes, size)
        self.threads += threads

    def add_agents(self) -> bool:
        """Give numbers to the agents; false if there are too many threads."""
        if self.agents == NO_AGENTS:
            self.agents = self._capacity // self._cluster * self._cluster
        return self.threads <= self.agents

    def first_of_cta(self, threads: ThreadNumbers) -> ThreadNumbers:
        """The number of the first thread of the CTA of a thread; for an agent, of its CTA's first agent."""
        if len(self._first) == 1:
            return threads // self._size * self._size  # also right for agents: their first number is a multiple of the size
        shifted = (threads >= self.agents) * np.int64(self.agents)
        plain = threads - shifted
        grid = self._grid(plain)
        return plain - (plain - self._first[grid]) % self._sizes[grid] + shifted

    def together(self, one: ThreadNumbers, other: ThreadNumbers) -> ThreadNumbers:
        """Are the threads of the same CTA?"""
        if len(self._first) == 1:
            return one // self._size == other // self._size
        return self.first_of_cta(one) == self.first_of_cta(other)

    def cluster(self, thread: int) -> int:
        """The first thread of the cluster around a thread of the host's grid; in other grids, the first thread of the CTA."""
        return thread // self._cluster * self._cluster if thread < self._host else int(self.first_of_cta(thread))

    def scope(self, one: ThreadNumbers, other: ThreadNumbers) -> Ints:
        """The rank of the narrowest scope that includes threads together: their CTA's, their cluster's or the device's."""
        found: Ints = np.where(self.together(one, other), Scope.CTA.rank, Scope.GPU.rank)
        if self._cluster > self._size:
            near = (one % self.agents // self._cluster == other % self.agents // self._cluster) & (
                one % self.agents < self._host
            )
            found = np.where(near, np.minimum(found, Scope.CLUSTER.rank), found)
        return found

    def size(self, thread: int) -> int:
        """The number of threads in the CTA of a thread."""
        return int(self._sizes[self._grid(thread % self.agents)])

    def grid(self, thread: int) -> int:
        """The number of the grid of a thread; the host's grid is 0."""
        return self._numbers[int(self._grid(thread % self.agents))]

    def of(self, grid: int) -> range:
        """The threads of a grid."""
        index = self._numbers.index(grid)
        ends = [*self._first[index : index + 2].tolist(), self.threads]
        return range(ends[0], ends[1])

    def _grid(self, threads: ThreadNumbers) -> ThreadNumbers:
        return np.searchsorted(self._first, threads, "right") - 1


__all__ = ["NO_AGENTS", "Grids"]

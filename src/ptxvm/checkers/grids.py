"""Thread numbering of a launch: the threads of its grids, and the agents of their asynchronous work.

Threads are numbered grid after grid and CTA by CTA, so those of a CTA follow each other.  The numbers from `agents` on are for
agents, which do asynchronous work for threads: a block of them has one for each thread of a CTA, in the same order.
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
        """The host's grid has `threads` threads in CTAs of `size`; there is space for `capacity` threads, and as many agents.

        `cluster` CTAs of it that follow each other are a cluster; each CTA of a launched grid is one.
        """
        self._cluster, self._host = size * cluster, threads
        self._first, self._sizes, self._numbers = np.array([0], np.int64), np.array([size], np.int64), [0]
        self._size, self._capacity = size, capacity
        self.threads = threads
        self.agents = NO_AGENTS
        self._owners = np.zeros(0, np.int64)
        self._given = 0  # agents

    def add(self, number: int, size: int, threads: int) -> None:
        """Add a grid."""
        self._numbers.append(number)
        self._first, self._sizes = np.append(self._first, self.threads), np.append(self._sizes, size)
        self.threads += threads

    def add_agents(self, first: int) -> int | None:
        """Number a block of agents for the CTA of which `first` is the first thread; None if there are too many."""
        size = self.size(first)
        if self.agents == NO_AGENTS:
            self.agents = self._capacity // self._size * self._size
        if self.threads > self.agents or self._given + size > self._capacity:
            return None
        while self._given + size > len(self._owners):
            self._owners = np.concatenate([self._owners, np.zeros(max(size, len(self._owners)), np.int64)])
        self._owners[self._given : self._given + size] = np.arange(first, first + size)
        self._given += size
        return self.agents + self._given - size

    @property
    def has_agents(self) -> bool:
        """Is there asynchronous work that agents do?"""
        return self._given > 0

    def owner(self, numbers: ThreadNumbers) -> ThreadNumbers:
        """The thread that an agent works for; a thread itself."""
        if not self._given:
            return numbers
        of_agents = numbers >= self.agents
        return np.where(of_agents, self._owners[np.where(of_agents, numbers - self.agents, 0)], numbers)

    def first_of_cta(self, threads: ThreadNumbers) -> ThreadNumbers:
        """The number of the first thread of the CTA of a thread; for an agent, of the first agent of its block."""
        if len(self._first) == 1:
            return threads // self._size * self._size  # also right for agents: their first number is a multiple of the size
        plain = self.owner(threads)
        grid = self._grid(plain)
        return threads - (plain - self._first[grid]) % self._sizes[grid]

    def together(self, one: ThreadNumbers, other: ThreadNumbers) -> ThreadNumbers:
        """Are the threads of the same CTA?"""
        if len(self._first) == 1:
            return one // self._size == other // self._size
        return self.first_of_cta(one) == self.first_of_cta(other)

    @property
    def clustered(self) -> bool:
        """Has a cluster of the host's grid several CTAs?"""
        return self._cluster > self._size

    def cluster(self, thread: int) -> int:
        """The first thread of the cluster around a thread of the host's grid; in other grids, the first thread of the CTA."""
        return thread // self._cluster * self._cluster if thread < self._host else int(self.first_of_cta(thread))

    def scope(self, one: ThreadNumbers, other: ThreadNumbers) -> Ints:
        """The rank of the narrowest scope that includes threads together: their CTA's, their cluster's or the device's."""
        found: Ints = np.where(self.together(one, other), Scope.CTA.rank, Scope.GPU.rank)
        if self.clustered:
            one, other = self.owner(one), self.owner(other)
            near = (one // self._cluster == other // self._cluster) & (one < self._host)
            found = np.where(near, np.minimum(found, Scope.CLUSTER.rank), found)
        return found

    def size(self, thread: int) -> int:
        """The number of threads in the CTA of a thread."""
        return int(self._sizes[self._grid(self.owner(thread))])

    def grid(self, thread: int) -> int:
        """The number of the grid of a thread; the host's grid is 0."""
        return self._numbers[int(self._grid(self.owner(thread)))]

    def of(self, grid: int) -> range:
        """The threads of a grid."""
        index = self._numbers.index(grid)
        ends = [*self._first[index : index + 2].tolist(), self.threads]
        return range(ends[0], ends[1])

    def _grid(self, threads: ThreadNumbers) -> ThreadNumbers:
        return np.searchsorted(self._first, threads, "right") - 1


__all__ = ["NO_AGENTS", "Grids"]

"""Asynchronous copies as accesses with an order of their own (PTX 8.9.1.1, 9.7.9.25.3).

A copy comes after earlier operations of its thread.  It precedes nothing until the thread waits for its group, or until an
mbarrier signals its end.  So a copy is an access of an *agent*, one for each thread: no thread knows the accesses of an agent,
not even the agent's own thread.  Once the thread has waited, they count as its own accesses, made at that time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.checkers.clocks import Clocks, Knowledge, joined
from ptxvm.checkers.shadow import AllocationShadow, Records
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.machine.events import Access, Offsets, Threads

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class PendingCopies:
    """The accesses of copies under way; the arrays have an element for each thread."""

    shadow: AllocationShadow
    access: Access
    site: int
    writes: bool
    threads: Threads
    offsets: Offsets
    records: Records
    group: Ints
    kind: AsyncKind = AsyncKind.COPY

    def of(self, some: Mask) -> PendingCopies:
        """The accesses of some threads."""
        return PendingCopies(
            self.shadow, self.access, self.site, self.writes, self.threads[some], self.offsets[some], self.records[some],
            self.group[some], self.kind,
        )  # fmt: skip


class Agents:
    """The agents of the threads of a launch."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks, self.grids = clocks, clocks.grids
        self.now = np.ones(0, np.int64)
        self.groups = {kind: np.zeros(0, np.int64) for kind in AsyncKind}
        self.begun: list[PendingCopies] = []
        self._posted: dict[int, deque[tuple[int, Knowledge]]] = defaultdict(deque)
        self.grow()

    def grow(self) -> None:
        """Add agents for the threads of new grids."""
        if not self.grids.add_agents():
            raise Unsupported(f"the check 'race' of asynchronous copies by more than {self.grids.agents:,} threads")
        more = np.zeros(self.grids.threads - len(self.now), np.int64)
        self.now = np.concatenate([self.now, more + 1])
        self.groups = {kind: np.concatenate([column, more]) for kind, column in self.groups.items()}

    def awaited(
        self, threads: Threads, left: int, kind: AsyncKind, settle: Callable[[PendingCopies], None], *, reading: bool
    ) -> None:
        """Threads have waited for all but their last `left` groups: settle these copies, or only their reads."""
        waits = np.zeros(self.grids.threads, np.bool_)
        waits[threads] = True
        remaining = []
        for each in self.begun:
            done = waits[each.threads] & (each.group < self.groups[kind][each.threads] - left)
            if each.kind is kind and done.any() and not (reading and each.writes):
                settle(each.of(done))
                each = each.of(~done)  # noqa: PLW2901 - the rest of it
            if len(each.threads):
                remaining.append(each)
        self.begun = remaining

    def posted(self, threads: Threads) -> None:
        """An mbarrier will signal the end of all copies so far, and of those that the threads know to have ended."""
        for thread in threads.tolist():
            self._posted[thread].append((int(self.now[thread]), self._ended(thread)))
        self.now[threads] += 1

    def _ended(self, thread: int) -> Knowledge:
        """What a thread knows of agents: work that it starts now comes after their work."""
        known = self.clocks.snapshot(np.array([thread], np.int64))
        return {key: row for key, row in known.items() if isinstance(key, int) and key >= self.grids.agents}

    def signalled(self, threads: Threads) -> Knowledge:
        """The knowledge that an mbarrier signals: the copies up to the oldest post of each thread, and what came before."""
        posts = [self._posted[thread].popleft() for thread in threads.tolist()]
        stamps = np.array([stamp for stamp, _ in posts], np.int64)
        own = self.clocks.row(threads + self.grids.agents, stamps)
        return reduce(joined, (before for _, before in posts), own)

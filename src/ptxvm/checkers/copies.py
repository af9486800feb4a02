"""Asynchronous copies as accesses with an order of their own (PTX 8.9.1.1, 9.7.9.25.3).

A copy comes after what its thread did before, and before nothing until the thread waits for its group, or until an mbarrier
tells of its end.  So it is an access of an *agent*, of which each thread has one: its accesses are known to nobody, the
thread included.  Once the thread has waited, they are as if it had done them itself, then.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.clocks import Clocks, Knowledge
from ptxvm.checkers.shadow import Records, Shadow
from ptxvm.machine.events import Access, Offsets, Threads

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Begun:
    """Accesses of copies under way; arrays with an element for each thread."""

    shadow: Shadow
    access: Access
    site: int
    writes: bool
    threads: Threads
    offsets: Offsets
    records: Records
    group: Ints
    kind: str = "copies"

    def of(self, some: Mask) -> Begun:
        """Some of them."""
        return Begun(
            self.shadow, self.access, self.site, self.writes, self.threads[some], self.offsets[some], self.records[some],
            self.group[some], self.kind,
        )  # fmt: skip


class Agents:
    """The agents of the threads of a grid: that of thread t has the number t + `first`."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks, self.first = clocks, len(clocks.now)
        self.now = np.ones(self.first, np.int64)
        self.groups = {kind: np.zeros(self.first, np.int64) for kind in ("copies", "bulk", "mbarrier")}
        self.begun: list[Begun] = []
        self._posted: dict[int, deque[int]] = defaultdict(deque)

    def awaited(self, threads: Threads, left: int, kind: str, settle: Callable[[Begun], None], *, reading: bool) -> None:
        """Threads have waited for all their groups but the last few: settle those copies, or what they read."""
        waits = np.zeros(self.first, np.bool_)
        waits[threads] = True
        kept = []
        for each in self.begun:
            done = waits[each.threads] & (each.group < self.groups[kind][each.threads] - left)
            if each.kind == kind and done.any() and not (reading and each.writes):
                settle(each.of(done))
                each = each.of(~done)  # noqa: PLW2901 - what is left of it
            if len(each.threads):
                kept.append(each)
        self.begun = kept

    def posted(self, threads: Threads) -> None:
        """An mbarrier is going to tell of the end of all copies so far."""
        for thread in threads.tolist():
            self._posted[thread].append(int(self.now[thread]))
        self.now[threads] += 1

    def told(self, threads: Threads) -> Knowledge:
        """What an mbarrier tells: the copies up to the oldest post of each thread."""
        stamps = np.array([self._posted[thread].popleft() for thread in threads.tolist()], np.int64)
        return self.clocks.row(threads + self.first, stamps)

"""The queue of deferred work of a cluster: when its work ends (`asynchronous=` of a launch).

`late` work ends where a thread waits for it, and the oldest ends where no warp of the cluster does anything but look for phases
of mbarriers.  `random` work ends at some of the host calls about asynchronous work, by a seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.engine.jit.abi.host import DeferredWork, Role
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.per_lane import Array, LaneNumbers

POLLS = 3  # of a warp, in vain, since any thread of the cluster has done anything else: then the oldest work ends
OFTEN, ALL = 0.3, 0.1  # how probably some work, or all of it, ends at a host call
UNGROUPED = (AsyncKind.TENSOR_LOAD, AsyncKind.TENSOR_STORE)  # kinds of work that is waited for without groups: as if in one


class WorkQueue:
    """The work of the threads from `first` on, in the order in which it began; `finish` ends a piece of work."""

    def __init__(self, first: int, count: int, finish: Callable[[DeferredWork], None], seed: Sequence[int] | None) -> None:
        """With a `seed`, work ends at random."""
        self.first, self._finish = first, finish
        self.under_way: list[DeferredWork] = []
        self.accumulators: dict[tuple[int, int], Array] = {}
        self._groups = {kind: np.zeros(count, np.int64) for kind in AsyncKind}
        self._random = None if seed is None else np.random.default_rng(seed)
        self._polls: Counter[int] = Counter()

    def start(self, work: DeferredWork) -> None:
        """Threads start work."""
        work.groups = self._groups[work.kind][work.threads - self.first]
        self.under_way.append(work)
        self._passed()

    def commit(self, threads: LaneNumbers, kind: AsyncKind) -> None:
        """Threads make a group of the work of a kind that they have started."""
        self._groups[kind][threads - self.first] += 1
        self._passed()

    def wait(self, threads: LaneNumbers, kind: AsyncKind, left: int) -> None:
        """Threads wait for all but their `left` latest groups."""
        made, waits = self._groups[kind] + (kind in UNGROUPED), np.zeros(len(self._groups[kind]), np.bool_)
        waits[threads - self.first] = True
        pending: list[DeferredWork] = []
        for work in self.under_way:
            if work.kind is not kind or work.role is Role.ARRIVAL:
                pending.append(work)
                continue
            mine = work.threads - self.first
            pending += self._end(work, whole(work, waits[mine] & (work.groups < made[mine] - left)))
        self.under_way = pending
        self._passed()

    def poll(self, threads: LaneNumbers) -> None:
        """Threads have found that a phase is not over."""
        if not self.under_way:
            return
        if self._random is not None:
            self._choose(self._random)
            return
        warp = int(threads[0]) // WARP
        self._polls[warp] += 1
        if self._polls[warp] >= POLLS:
            self._polls.clear()
            self.end(most=1)

    def _passed(self) -> None:
        """Threads have done something else than to look for a phase."""
        self._polls.clear()
        if self._random is not None and self.under_way:
            self._choose(self._random)

    def _choose(self, random: np.random.Generator) -> None:
        chance = random.random()
        if chance < OFTEN:
            self.end(None if chance < ALL else random.random(len(self._groups[AsyncKind.COPY])) < 0.5)

    def end(self, share: Array | None = None, most: int | None = None) -> None:
        """End the work of a share of the threads (None: of all), or the oldest `most` pieces, each after what it follows."""
        pending: list[DeferredWork] = []
        order = CompletionOrder()
        for n, work in enumerate(self.under_way):
            if most == 0:
                pending += self.under_way[n:]
                break
            due = order.free(work)
            if share is not None:
                due &= share[work.threads - self.first]
            due = whole(work, due)
            if most is not None and due.any():
                most -= 1
            left = self._end(work, due)
            pending += left
            for each in left:
                order.hold(each)
        self.under_way = pending

    def _end(self, work: DeferredWork, due: Array) -> list[DeferredWork]:
        """End the part of some work that is due; returns what is left."""
        if not due.any():
            return [work]
        self._finish(work if due.all() else work.of(np.flatnonzero(due)))
        return [] if due.all() else [work.of(np.flatnonzero(~due))]


def whole(work: DeferredWork, due: Array) -> Array:
    """Which threads are due: where a warp does the work, all or none."""
    return np.full(len(due), bool(due.all())) if work.role in (Role.STORE, Role.PRODUCT) else due


class CompletionOrder:
    """The work that must end before other work (`engine.interp.async_copies.CompletionOrder` has the same rules)."""

    def __init__(self) -> None:
        self._busy: dict[AsyncKind, list[LaneNumbers]] = {AsyncKind.COPY: [], AsyncKind.TENSOR: []}
        self._cells = False
        self._multiplying: list[LaneNumbers] = []

    def free(self, work: DeferredWork) -> Array:
        """The threads whose work may end now."""
        if work.role is Role.ARRIVAL and (busy := self._busy[work.kind]):
            return ~np.isin(work.threads, np.concatenate(busy))
        if work.role is Role.PRODUCT and self._multiplying:
            return ~np.isin(work.threads, np.concatenate(self._multiplying))
        return np.full(len(work.threads), not (work.role is Role.CELLS and self._cells))

    def hold(self, work: DeferredWork) -> None:
        """Some work goes on: what follows it waits."""
        if work.role in (Role.COPY, Role.CELLS):
            self._busy[work.kind].append(work.threads)
        if work.role is Role.PRODUCT:
            self._multiplying.append(work.threads)
        self._cells |= work.role is Role.CELLS


__all__ = ["WorkQueue"]

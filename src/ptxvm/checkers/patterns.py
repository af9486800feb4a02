"""Release and acquire patterns (PTX 8.8): knowledge passes from thread to thread through a location.

A write publishes *heads*: the knowledge of its thread at a release on the location, or at an earlier fence, with the scope and
the thread of that release or fence.  A read-modify-write that observes a write passes its heads on.  A strong read that
observes a write collects the heads.  An acquire on that location, or a fence, learns the heads that are morally strong with it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.checkers.clocks import Clocks, Knowledge, joined, of_kind
from ptxvm.machine.events import Threads
from ptxvm.named_tuple import NamedTuple

Location = tuple[int, int]  # a shadow and the offset of an element
Heads = dict[tuple[int, int], Knowledge]  # by thread and scope: a later head includes the earlier ones


class Observers(NamedTuple):
    """The threads that have observed a write, with their clocks at that time."""

    record: int
    clocks: dict[int, int]


class Patterns:
    """The heads in a grid."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.active = False  # has any thread released?
        self.observed: dict[Location, Observers] = {}
        self._published: dict[Location, tuple[int, Heads]] = {}
        self._fenced: dict[int, Heads] = defaultdict(dict)
        self._released: dict[tuple[int, Location], Heads] = defaultdict(dict)
        self._pending: dict[int, Heads] = defaultdict(dict)
        self._pending_at: dict[tuple[int, Location], Heads] = defaultdict(dict)

    def acquire_collected(self, thread: int, order: Order, scope: Scope) -> None:
        """An acquiring fence learns the heads that its thread has collected."""
        if order.acquires and thread in self._pending:
            self._take_in(thread, scope.rank, self._pending[thread])

    def fence(self, thread: int, order: Order, scope: Scope) -> None:
        """A releasing fence becomes a head of the later writes of its thread."""
        if order.releases:
            self.active = True
            self._fenced[thread][thread, scope.rank] = self.clocks.snapshot(np.array([thread], np.int64))
            self.clocks.tick(thread)

    def fence_of_kind(self, thread: int, kind: str) -> None:
        """A partial fence becomes a head, too: of what its thread knows of the operations of one kind."""
        self.active = True
        key, known = (thread, Scope.CLUSTER.rank), self.clocks.snapshot(np.array([thread], np.int64))
        merge(self._fenced[thread], {key: of_kind(known, kind)})
        self.clocks.tick(thread)

    def acquire_of_kind(self, thread: int, kind: str) -> None:
        """A partial fence that acquires learns what the collected heads say of the operations of one kind."""
        self.clocks.learn(np.array([thread], np.int64), of_kind(self.collected(thread), kind))

    def collected(self, thread: int) -> Knowledge:
        """The knowledge that the next acquiring fence of a thread gives it, if the scope is wide enough."""
        found: Knowledge = {}
        for knowledge in self._pending.get(thread, {}).values():
            found = joined(found, knowledge)
        return found

    def fence_knowledge(self, threads: Threads, least: Scope = Scope.CTA) -> Knowledge | None:
        """The knowledge that a relaxed arrival passes on: of the last releasing fences of its thread, of a scope or wider."""
        found: Knowledge | None = None
        for thread in threads.tolist():
            for (_, rank), knowledge in self._fenced.get(thread, {}).items():
                found = joined(found, knowledge) if rank >= least.rank else found
        return found

    def await_fence(self, threads: Threads, knowledge: Knowledge) -> None:
        """Collect knowledge that threads learn at their next acquiring fence."""
        for thread in threads.tolist():
            merge(self._pending[thread], {(thread, Scope.CTA.rank): knowledge})

    def publish(self, thread: int, location: Location, record: int, order: Order, rank: int) -> Heads:
        """Publish the heads of a strong write; returns them."""
        heads = dict(self._fenced.get(thread, {}))
        if order.releases:
            self.active = True
            self._released[thread, location][thread, rank] = self.clocks.snapshot(np.array([thread], np.int64))
            self.clocks.tick(thread)
        merge(heads, self._released.get((thread, location), {}))
        if heads:
            self._published[location] = (record, heads)
        return heads

    def collect(self, thread: int, location: Location, record: int) -> Heads:
        """Collect the heads of a morally strong write that a strong read observes; returns them."""
        found = self._published.get(location)
        if found is None or found[0] != record:
            return {}
        merge(self._pending[thread], found[1])
        merge(self._pending_at[thread, location], found[1])
        return found[1]

    def heads(self, location: Location, record: int) -> Heads:
        """The heads that a write has published."""
        found = self._published.get(location)
        return found[1] if found is not None and found[0] == record else {}

    def pass_on(self, location: Location, record: int, mine: Heads, observed: Heads) -> None:
        """A read-modify-write also publishes the heads of the write that it observed."""
        if observed:
            heads = dict(observed)
            merge(heads, mine)
            self._published[location] = (record, heads)

    def acquire(self, thread: int, location: Location, rank: int) -> None:
        """An acquire on a location learns the heads that were collected there."""
        if (thread, location) in self._pending_at:
            self._take_in(thread, rank, self._pending_at[thread, location])

    def observe(self, thread: int, location: Location, record: int) -> None:
        """Record that a strong read observes a morally strong write."""
        found = self.observed.get(location)
        if found is None or found.record != record:
            found = self.observed[location] = Observers(record, {})
        found.clocks.setdefault(thread, int(self.clocks.now[thread]))

    def _take_in(self, thread: int, rank: int, heads: Heads) -> None:
        for (head, scope), knowledge in list(heads.items()):
            if min(scope, rank) >= self.clocks.grids.scope(head, thread):
                self.clocks.learn(np.array([thread], np.int64), knowledge)
                del heads[head, scope]


def merge(heads: Heads, more: Heads) -> None:
    """Add heads to others; equal thread and scope are joined."""
    for key, knowledge in more.items():
        heads[key] = joined(heads.get(key), knowledge)

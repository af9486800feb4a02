"""Fence-SC order: the order of fence.sc operations (PTX 8.9.3), as far as a run decides it.

The order of two morally strong fence.sc, F and G, is open unless one order contradicts the run.  Such a contradiction has three
parts: F precedes an access X in base causality order, X precedes an access Y in communication order, and Y precedes G in base
causality order.  If G came first, Y would precede X in causality order, which Coherence and Causality (8.10.1 and 8.10.6) rule
out.  Then F synchronizes with G.

The knowledge of fences travels with the knowledge of threads, under two keys: `FENCED` has the accesses before the fences that
precede the thread's next operation, `OFFERED` the accesses that its next fence.sc must know.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from ptxvm.algebra.memory_order import Scope
from ptxvm.checkers.clocks import FENCED, OFFERED, Clocks, Knowledge, joined
from ptxvm.checkers.strength import WIDE
from ptxvm.dataclass import dataclass

Location = tuple[int, int, int]  # a shadow, the offset of an element and its size
Reach = tuple[int, int]  # a thread of a strong access, the first of its CTA, and the rank of its scope
Log = dict[Reach, Knowledge]

GRID = -1  # in place of a CTA: fences whose scope includes the whole grid
CLUSTER = -2  # less the first thread of a cluster: fences whose scope includes it


@dataclass(slots=True)
class Cell:
    """The knowledge that accesses to one location offer to later communicating accesses."""

    written: Log = field(default_factory=dict)
    read: Log = field(default_factory=dict)
    last: Knowledge = field(default_factory=dict)  # the knowledge that the last write offers
    changes: int = 0
    writes: int = 0


class FenceOrder:
    """The fence.sc of a grid, and the strong accesses that come after them."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.active = False  # has there been a fence.sc?
        self._narrow = False  # and one whose scope does not include the whole grid?
        self._cells: dict[Location, Cell] = {}
        self._received: dict[tuple[int, Location], int] = {}  # by thread: the value of `changes` at its last access
        self._offered: dict[tuple[int, Location], tuple[int, int]] = {}  # its knowledge and the writes at its last read

    def fence(self, thread: int, scope: Scope) -> None:
        """Record a fence.sc: it learns the accesses that must precede it, and marks its knowledge for later fences."""
        self.active = True
        home, cluster = int(self.clocks.home(thread)), CLUSTER - self.clocks.grids.cluster(thread)
        wide = [GRID] if scope.rank >= WIDE else []
        self._narrow |= not wide
        narrow = [home, *([cluster] if scope.rank >= Scope.CLUSTER.rank else [])]
        taken: Knowledge = {}
        for group, cta, row in self.clocks.part(thread, OFFERED):
            if group in (*narrow, *wide):
                taken = joined(taken, {cta: row})
        groups = [*wide, *(narrow if self._narrow else [])]
        known = joined(taken, self.clocks.snapshot(np.array([thread], np.int64)))
        marks: Knowledge = {(FENCED, group, cta): row for cta, row in known.items() if isinstance(cta, int) for group in groups}
        self.clocks.learn(np.array([thread], np.int64), joined(taken, marks))

    def receive(self, thread: int, location: Location, rank: int, *, reads: bool, writes: bool) -> Knowledge:
        """A strong access learns from the earlier accesses that it communicates with, if they are morally strong with it.

        A write precedes an access that reads from it, even if the two race.  Returns the knowledge that they offer.
        """
        cell = self._cells.get(location)
        if cell is None:
            return {}
        knowledge = cell.last if reads else {}
        for log in (cell.written, cell.read) if writes else (cell.written,):
            for reach in self._strong(log, thread, rank):
                knowledge = joined(knowledge, log[reach])
        if knowledge and self._received.get((thread, location)) != cell.changes:
            self._received[thread, location] = cell.changes
            offers: Knowledge = {(OFFERED, *key[1:]): row for key, row in knowledge.items() if isinstance(key, tuple)}
            self.clocks.learn(np.array([thread], np.int64), offers)
        return knowledge

    def offer_read(self, thread: int, location: Location, rank: int) -> None:
        """A strong read offers the fences that precede it to later writes."""
        cell = self._cells.setdefault(location, Cell())
        now = self.clocks.number(thread), cell.writes
        if self._offered.get((thread, location)) != now:  # a thread that spins offers the same only once
            self._offered[thread, location] = now
            self._log(cell, cell.read, thread, rank, self._fenced(thread))

    def offer_write(self, thread: int, location: Location, rank: int, received: Knowledge) -> None:
        """A strong write offers its fences, and those of the accesses before it: coherence order is transitive."""
        cell = self._cells.setdefault(location, Cell())
        cell.writes += 1
        for log in (cell.written, cell.read):
            for reach in self._strong(log, thread, rank):
                del log[reach]
        cell.last = joined(received, self._fenced(thread))
        self._log(cell, cell.written, thread, rank, cell.last)

    def _fenced(self, thread: int) -> Knowledge:
        return {(FENCED, group, cta): row for group, cta, row in self.clocks.part(thread, FENCED)}

    def _log(self, cell: Cell, log: Log, thread: int, rank: int, knowledge: Knowledge) -> None:
        if knowledge:
            reach = int(self.clocks.home(thread)), min(rank, WIDE)
            log[reach] = joined(log.get(reach), knowledge)
            cell.changes += 1

    def _strong(self, log: Log, thread: int, rank: int) -> list[Reach]:
        """The accesses of a log that are morally strong with an access."""
        return [(cta, scope) for cta, scope in log if min(scope, rank) >= self.clocks.grids.scope(cta, thread)]


__all__ = ["FenceOrder"]

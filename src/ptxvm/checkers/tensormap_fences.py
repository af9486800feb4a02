"""Fences of the tensormap proxy: the writes of tensor maps that copies of tensors may see (PTX 8.6, 9.7.13.4, 9.7.13.16).

Copies read their tensor map through the tensormap proxy.  A write through the generic proxy reaches it by a fence that releases
after the write (`fence.proxy.tensormap::generic.release`, or the one in `tensormap.cp_fenceproxy`), and by one that acquires
before the copy, ordered after it.  The address of a fence that acquires is not looked at.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from ptxvm.algebra.memory_order import Order
from ptxvm.checkers.clocks import Clocks, Knowledge
from ptxvm.machine.events import Threads

FENCES = 8  # of a thread that are remembered: a thread that runs ahead of others makes further ones


class TensormapFence(NamedTuple):
    """A fence of a thread: its clock, and what it knew."""

    thread: int
    stamp: int
    known: Knowledge


class TensormapFences:
    """The last fences of each thread, by whether they release or acquire."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._fences: dict[tuple[int, Order], deque[TensormapFence]] = {}

    def fence(self, threads: Threads, order: Order) -> None:
        """Threads have executed a fence."""
        for thread in threads.tolist():
            fence = TensormapFence(thread, int(self.clocks.now[thread]), self.clocks.snapshot(np.array([thread], np.int64)))
            for each in (Order.RELEASE, Order.ACQUIRE) if order is Order.ACQ_REL else (order,):
                self._fences.setdefault((thread, each), deque(maxlen=FENCES)).append(fence)
        self.clocks.tick(threads)

    def between(self, writer: int, stamp: int, thread: int) -> bool:
        """Do fences order a write of a thread before what another does now through the tensormap proxy?"""
        acquired = [each for each in self._of(Order.ACQUIRE) if self.clocks.knows(thread, each.thread, each.stamp)]
        return any(
            self._covers(release, writer, stamp) and self._covers(acquire, release.thread, release.stamp)
            for release in self._of(Order.RELEASE)
            for acquire in acquired
        )

    def _of(self, order: Order) -> list[TensormapFence]:
        return [fence for (_, each), fences in self._fences.items() if each is order for fence in fences]

    def _covers(self, fence: TensormapFence, thread: int, stamp: int) -> bool:
        """Does a fence come after what a thread did at a time of its clock?"""
        home = int(self.clocks.home(thread))
        return home in fence.known and bool(fence.known[home][thread - home] >= stamp)


__all__ = ["TensormapFences"]

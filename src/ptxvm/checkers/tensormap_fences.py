"""Fences of the tensormap proxy: the writes of tensor maps that copies of tensors may see (PTX 8.6, 9.7.13.4, 9.7.13.16).

Copies read their tensor map through the tensormap proxy.  A write through the generic proxy reaches it by a fence that releases
after the write (`fence.proxy.tensormap::generic.release`, or the one in `tensormap.cp_fenceproxy`), and by one that acquires
before the copy, ordered after it.  The address of a fence that acquires is not looked at.
"""

from __future__ import annotations

from ptxvm.algebra.memory_order import Order
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.remembered_fences import RememberedFences
from ptxvm.machine.events import Threads


class TensormapFences:
    """The last fences of each thread, by whether they release or acquire."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.fences = RememberedFences[Order](clocks)

    def fence(self, threads: Threads, order: Order) -> None:
        """Threads have executed a fence."""
        self.fences.add(threads, (Order.RELEASE, Order.ACQUIRE) if order is Order.ACQ_REL else (order,))

    def between(self, writer: int, stamp: int, thread: int) -> bool:
        """Do fences order a write of a thread before what another does now through the tensormap proxy?"""
        acquired = [each for each in self.fences.of(Order.ACQUIRE) if self.clocks.knows(thread, each.thread, each.stamp)]
        return any(
            self.fences.covers(release, writer, stamp) and self.fences.covers(acquire, release.thread, release.stamp)
            for release in self.fences.of(Order.RELEASE)
            for acquire in acquired
        )


__all__ = ["TensormapFences"]

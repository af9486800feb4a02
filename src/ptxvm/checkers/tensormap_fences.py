"""Fences of the tensormap proxy: the writes of tensor maps that copies of tensors may see (PTX 8.6, 9.7.13.4, 9.7.13.16).

Copies read their tensor map through the tensormap proxy.  A write through the generic proxy reaches it by a fence that releases
after the write (`fence.proxy.tensormap::generic.release`, or the one in `tensormap.cp_fenceproxy`), and by one that acquires
before the copy, ordered after it.  A fence that acquires is for the bytes from its address on, if it has one.
"""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.memory_order import Order
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.remembered_fences import RememberedFences
from ptxvm.machine.events import Threads, Words

RANGE = 128  # bytes for which a fence with an address acquires, the only size there is (PTX 9.7.13.4)


class TensormapFences:
    """The last fences of each thread, by whether they release or acquire, and by their address."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.fences = RememberedFences[tuple[Order, int | None]](clocks)
        self.acquired: set[int | None] = set()  # the addresses of fences that acquire; None is for all memory

    def fence(self, threads: Threads, order: Order, addresses: Words | None) -> None:
        """Threads have executed a fence, for the tensor maps at their addresses."""
        if addresses is None:
            self._add(threads, order, None)
            return
        for address in np.unique(addresses).tolist():
            self._add(threads[addresses == address], order, address)

    def _add(self, threads: Threads, order: Order, address: int | None) -> None:
        releases = [(Order.RELEASE, None)] if order is not Order.ACQUIRE else []
        acquires = [(Order.ACQUIRE, address)] if order is not Order.RELEASE else []
        self.acquired.update(address for _, address in acquires)
        self.fences.add(threads, [*releases, *acquires])

    def covering(self, address: int) -> tuple[int | None, ...]:
        """The addresses of the fences that acquire for a byte; for all bytes of a tensor map they are mostly the same."""
        return tuple(start for start in self.acquired if start is None or start <= address < start + RANGE)

    def between(self, writer: int, stamp: int, thread: int, covering: tuple[int | None, ...]) -> bool:
        """Do fences, with some addresses, order a write before what another thread does now through the tensormap proxy?"""
        fences = (each for start in covering for each in self.fences.of((Order.ACQUIRE, start)))
        acquired = [each for each in fences if self.clocks.knows(thread, each.thread, each.stamp)]
        return any(
            self.fences.covers(release, writer, stamp) and self.fences.covers(acquire, release.thread, release.stamp)
            for release in self.fences.of((Order.RELEASE, None))
            for acquire in acquired
        )


__all__ = ["TensormapFences"]

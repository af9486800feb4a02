"""Fences of the tensormap proxy: the writes of tensor maps that copies of tensors may see (PTX 8.6, 9.7.13.4, 9.7.13.16).

Copies read their tensor map through the tensormap proxy.  A write through the generic proxy reaches it by a fence that releases
after the write (`fence.proxy.tensormap::generic.release`, or the one in `tensormap.cp_fenceproxy`), and by one that acquires
before the copy, ordered after it.  A fence that acquires is for the bytes from its address on, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxvm.algebra.memory_order import Order
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.remembered_fences import Fence, RememberedFences
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
        releases = [(Order.RELEASE, None)] if order is not Order.ACQUIRE else []
        if order is Order.RELEASE:
            self.fences.add(threads, releases)
            return
        for address in [None] if addresses is None else np.unique(addresses).tolist():
            self.acquired.add(address)
            self.fences.add(
                threads if addresses is None else threads[addresses == address], [*releases, (Order.ACQUIRE, address)]
            )

    def between(self, writer: int, stamp: int, thread: int, address: int) -> bool:
        """Do fences order a write of a thread to an address before what another does there now through the tensormap proxy?"""
        acquired = [each for each in self._acquiring(address) if self.clocks.knows(thread, each.thread, each.stamp)]
        return any(
            self.fences.covers(release, writer, stamp) and self.fences.covers(acquire, release.thread, release.stamp)
            for release in self.fences.of((Order.RELEASE, None))
            for acquire in acquired
        )

    def _acquiring(self, address: int) -> Iterator[Fence]:
        """The fences that acquire for an address."""
        for start in self.acquired:
            if start is None or start <= address < start + RANGE:
                yield from self.fences.of((Order.ACQUIRE, start))


__all__ = ["TensormapFences"]

"""Synchronisation by strong accesses: release and acquire patterns, and Fence-SC order (PTX 8.8 and 8.9.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.fence_order import FenceOrder
from ptxvm.checkers.launch_order import LaunchOrder, Word
from ptxvm.checkers.patterns import Heads, Location, Patterns
from ptxvm.checkers.shadow import AllocationShadow, Packing, Records
from ptxvm.checkers.strength import Sites
from ptxvm.machine.events import Access, Offsets, Threads


def elements(access: Access, threads: Threads, offsets: Offsets, *more: Records) -> tuple[npt.NDArray[np.int64], ...]:
    """The scalars of an access, each an operation of its own (PTX 8.2.4): threads, offsets, and the arrays in `more`."""
    if access.count == 1:
        return threads, offsets, *more
    starts = offsets[:, None] + np.arange(access.count) * access.type.bytes
    return threads.repeat(access.count), starts.ravel(), *(each.repeat(access.count) for each in more)


class Communication:
    """The strong accesses and the fences of a grid."""

    def __init__(self, clocks: Clocks, packing: Packing, sites: Sites) -> None:
        self.clocks, self.packing, self.sites = clocks, packing, sites
        self.patterns, self.fence_order = Patterns(clocks), FenceOrder(clocks)
        self.launches: LaunchOrder | None = None  # of a launch beside which others may run

    def fence(self, thread: int, order: Order, scope: Scope) -> None:
        """A thread has executed a fence."""
        self.patterns.acquire_collected(thread, order, scope)
        if self.launches is not None:
            self.launches.fence(thread, order, scope)
        if order is Order.SC:
            self.fence_order.fence(thread, scope)
        self.patterns.fence(thread, order, scope)

    def passes_on(self, site: int) -> bool:
        """Can a read-modify-write pass on knowledge?"""
        return self.patterns.active or self.sites[site].order.releases or self._meets_launches

    def collect(self, shadow: AllocationShadow, site: int, threads: Threads, offsets: Offsets) -> None:
        """Strong reads observe the writes that they are morally strong with."""
        writes = shadow.wrote[offsets >> shadow.shift]
        strong = (writes != 0) & self._strong(site, writes, threads)
        fences, rank = self.fence_order.active, int(self.sites.scope[site])
        for n in range(len(threads)) if fences else np.flatnonzero(strong).tolist():
            thread, offset, write = int(threads[n]), int(offsets[n]), int(writes[n])
            element = shadow.number, offset, int(self.sites.size[site])
            if fences:
                self.fence_order.receive(thread, element, rank, reads=True, writes=False)
            if strong[n]:
                self._observe(site, thread, (shadow.number, offset), write)
            if fences:
                self.fence_order.offer_read(thread, element, rank)
        for thread, offset in zip(threads.tolist(), offsets.tolist(), strict=True) if self._meets_launches else ():
            self._collect_of_launches(shadow, site, thread, offset)

    @property
    def _meets_launches(self) -> bool:
        """Are there other launches that a thread could learn from?"""
        return self.launches is not None and self.launches.has_offers

    def _collect_of_launches(self, shadow: AllocationShadow, site: int, thread: int, offset: int) -> None:
        """A strong read observes the last strong write of a word, by whatever launch."""
        if self.launches is not None and shadow.allocation.space is Space.GLOBAL:
            word, rank = self._word(shadow, site, offset), int(self.sites.scope[site])
            self.launches.collect(thread, word, self.sites[site].order, rank)

    def _offer(self, shadow: AllocationShadow, site: int, offset: int, record: int, heads: Heads, *, update: bool) -> None:
        """Other launches may observe a strong write; an update of what none has offered, as of a counter, offers nothing."""
        word, rank = self._word(shadow, site, offset), int(self.sites.scope[site])
        if self.launches is None or shadow.allocation.space is not Space.GLOBAL:
            return
        if heads or not update or self.launches.has_offer(word):
            thread, stamp = int(self.packing.thread_of(record)), int(self.packing.stamp_of(record))
            observed = self.launches.observed(word, rank) if update else None
            self.launches.publish(thread, word, stamp, rank, heads, observed)

    def _word(self, shadow: AllocationShadow, site: int, offset: int) -> Word:
        return shadow.allocation.origin + offset, int(self.sites.size[site])

    def _observe(self, site: int, thread: int, location: Location, write: int) -> None:
        """A strong read observes a write that it is morally strong with."""
        self.patterns.observe(thread, location, write)
        self.patterns.collect(thread, location, write)
        if self.sites[site].order.acquires:
            self.patterns.acquire(thread, location, int(self.sites.scope[site]))

    def publish(self, shadow: AllocationShadow, site: int, threads: Threads, offsets: Offsets, records: Records) -> None:
        """Strong writes publish what their threads have released; the reads that observe them will collect it."""
        order, rank, size = self.sites[site].order, int(self.sites.scope[site]), int(self.sites.size[site])
        for thread, offset, each in zip(threads.tolist(), offsets.tolist(), records.tolist(), strict=True):
            element = shadow.number, offset, size
            received = (
                self.fence_order.receive(thread, element, rank, reads=False, writes=True) if self.fence_order.active else {}
            )
            heads = self.patterns.publish(thread, (shadow.number, offset), each, order, rank)
            self._offer(shadow, site, offset, each, heads, update=False)
            if self.fence_order.active:
                self.fence_order.offer_write(thread, element, rank, received)

    def pass_on(
        self, shadow: AllocationShadow, site: int, threads: Threads, offsets: Offsets, before: Records, records: Records
    ) -> None:
        """Read-modify-writes observe and publish, one after the other."""
        order, rank, reads = self.sites[site].order, int(self.sites.scope[site]), bool(self.sites[site].bound.i.destinations())
        size, last = int(self.sites.size[site]), dict[int, int]()
        for thread, offset, old, mine in zip(
            threads.tolist(), offsets.tolist(), before.tolist(), records.tolist(), strict=True
        ):
            location, write, element = (shadow.number, offset), last.get(offset, old), (shadow.number, offset, size)
            received = (
                self.fence_order.receive(thread, element, rank, reads=True, writes=True) if self.fence_order.active else {}
            )
            observed: Heads = {}
            if write and self._strong_pair(site, write, thread):
                observed = self.patterns.heads(location, write)
                if reads and observed:
                    self.patterns.collect(thread, location, write)
                    if order.acquires:
                        self.patterns.acquire(thread, location, rank)
            if reads and self._meets_launches:
                self._collect_of_launches(shadow, site, thread, offset)
            published = self.patterns.publish(thread, location, mine, order, rank)
            self.patterns.pass_on(location, mine, published, observed)
            self._offer(shadow, site, offset, mine, published, update=True)
            if self.fence_order.active:
                self.fence_order.offer_write(thread, element, rank, received)
            last[offset] = mine

    def _strong_pair(self, site: int, write: int, thread: int) -> bool:
        other = self.packing.thread_of(write)
        needed = np.atleast_1d(self.clocks.grids.scope(other, thread))
        return other == thread or bool(self.sites.morally_strong(site, np.array([self.packing.site_of(write)]), needed)[0])

    def _strong(self, site: int, writes: Records, threads: Threads) -> npt.NDArray[np.bool_]:
        needed = self.clocks.grids.scope(self.packing.thread_of(writes), threads)
        return self.sites.morally_strong(site, self.packing.site_of(writes), needed)


__all__ = ["Communication", "elements"]

"""Waits for products of warpgroups: a group of `wgmma` has ended for all threads where it has for one (PTX 9.7.15.7.2).

A product counts as a read by the first lane of each warp, at the time of that warp's wait.  What is ordered after the wait of
any thread of the warpgroup is ordered after these reads, though nothing orders their other accesses.  All warps of a
warpgroup execute the same waits, so that they correspond by their numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

import numpy as np

from ptxvm.checkers.clocks import Clocks, Ints
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WARPS
from ptxvm.machine.events import Threads


class WarpgroupWaits:
    """The waits of warps: the clocks of their lanes, by the first lane."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.sites = set[int]()  # of products
        self._waits: dict[int, list[tuple[Threads, Ints]]] = defaultdict(list)

    def awaited(self, threads: Threads) -> None:
        """Threads have waited for products.  The lanes of a warp come to a wait together, or in parts one after the other."""
        first = threads - (threads - self.clocks.home(threads)) % WARP
        for reader in np.unique(first).tolist():
            mine = threads[first == reader]
            part, waits = (mine, self.clocks.now[mine]), self._waits[reader]
            if waits and not np.isin(mine, waits[-1][0]).any():
                earlier = waits.pop()
                threads_of, stamps = (np.concatenate(both) for both in zip(earlier, part, strict=True))
                order = np.argsort(threads_of)
                part = threads_of[order], stamps[order]
            waits.append(part)
        if (leaders := threads[first == threads]).size:
            self.clocks.tick(leaders)  # so that the clock tells by which wait a product has ended

    def over(self, thread: int, reader: int, stamp: int) -> bool:
        """Does a thread know that the product has ended which the first lane of a warp counts as its read?"""
        own = self._waits.get(reader, [])
        if own and own[-1][0][0] != reader:  # other lanes are at a wait that the first one has not come to
            own = own[:-1]
        number = bisect_right(own, stamp, key=lambda wait: int(wait[1][0])) - 1
        home = int(self.clocks.home(reader))
        first = reader - (reader - home) % (WARPS * WARP)
        return number >= 0 and any(
            number < len(waits := self._waits.get(each, [])) and self._knows(thread, *waits[number])
            for each in range(first, first + WARPS * WARP, WARP)
        )

    def _knows(self, thread: int, others: Threads, stamps: Ints) -> bool:
        """Does a thread know what one of some threads had done?  It knows what it did itself."""
        return thread in others or not self.clocks.unknown(np.full(len(others), thread), others, stamps).all()

"""Misuse of mbarriers: of memory that holds none, of one as ordinary memory, of its counts (PTX 9.7.13.15)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxvm.isa.mbarrier import COUNT, PENDING, PHASE, TRANSACTION_BITS, TRANSACTIONS
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Threads, Words

Report = Callable[[Access, int, str], None]  # an access, its thread, and what is wrong
SIZE = 8


class Mbarriers:
    """Where there are mbarriers."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._held: dict[Allocation, set[int]] = {}

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read: a test of an mbarrier, or an ordinary read."""
        if "mbarrier" in access.attributes:
            self._expect(access, threads, allocation, offsets)
        else:
            self._spare(access, threads, allocation, offsets, "reads from")

    def wrote(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have written: an mbarrier begins or ends, or an ordinary write."""
        how = access.attributes.get("mbarrier")
        if how is None:
            self._spare(access, threads, allocation, offsets, "writes to")
            return
        held = self._held.setdefault(allocation, set())
        for thread, offset in zip(threads.tolist(), offsets.tolist(), strict=True):
            if how == "init" and offset in held:
                self.report(
                    access, thread, "there is an mbarrier already, which must be invalidated before its memory is used again"
                )
            elif how == "inval" and offset not in held:
                self.report(access, thread, "there is no mbarrier to be invalidated")
            if allocation.space != "shared":
                self.report(access, thread, f"an mbarrier lies in .shared, and this is in .{allocation.space}")
            (held.add if how == "init" else held.discard)(offset)

    def signalled(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, words: tuple[Words, Words]
    ) -> None:
        """Threads have updated mbarriers."""
        self._expect(access, threads, allocation, offsets)
        before, after = words
        turned = (before ^ after) >> np.uint64(PHASE) != 0
        more = _count(after) > _count(before)
        if access.attributes["mbarrier"] in ("arrive", "drop"):
            for n in np.flatnonzero(more & ~turned).tolist()[:1]:
                self.report(access, int(threads[n]), "more arrivals than the mbarrier expects in a phase")
            if "noComplete" in access.bound.node.words:
                for n in np.flatnonzero(turned).tolist()[:1]:
                    self.report(access, int(threads[n]), "the arrival ends the phase, which .noComplete rules out")
        if access.attributes["mbarrier"] == "complete":
            for n in np.flatnonzero(_transactions(after) >= TRANSACTION_BITS // 2).tolist()[:1]:
                self.report(access, int(threads[n]), "more transactions have ended than the phase expects")

    def ended(self, allocation: Allocation) -> None:
        """Some memory is no more."""
        self._held.pop(allocation, None)

    def _expect(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """There must be an mbarrier."""
        held = self._held.get(allocation, set())
        for n in np.flatnonzero([offset not in held for offset in offsets.tolist()]).tolist()[:1]:
            self.report(access, int(threads[n]), "there is no mbarrier: it has not been initialised, or is no more")

    def _spare(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: str) -> None:
        """There must be none."""
        held = self._held.get(allocation)
        if not held:
            return
        first, size = np.fromiter(held, np.int64), access.type.bytes * access.count
        touched = ((offsets[:, None] < first + SIZE) & (offsets[:, None] + size > first)).any(axis=1)
        for n in np.flatnonzero(touched).tolist()[:1]:
            self.report(access, int(threads[n]), f"this {verb} an mbarrier as if it were ordinary memory")


def _count(words: Words) -> Words:
    return words >> np.uint64(PENDING) & np.uint64(COUNT)


def _transactions(words: Words) -> Words:
    return words >> np.uint64(TRANSACTIONS) & np.uint64(TRANSACTION_BITS)

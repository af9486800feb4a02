"""Races between launches: bytes of global memory that two launches touch, one of them writing, without an order.

A launch leaves its footprint: for each byte of global memory a write and a read, weak ones rather than strong ones.  Two
launches that no stream or event orders may run at once, so their accesses of one byte are compared as those of two CTAs
are (PTX 8.7.1): they race unless both are strong, of one size, and of a scope that has the whole device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.strength import WIDE, Site, Sites
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Scenes, Threads
from ptxvm.machine.streams import StreamLaunch

Records = npt.NDArray[np.int64]
SITE = 40  # where the number of the site begins in a record; below is the thread


@dataclass(slots=True)
class Marks:
    """What a launch did to the bytes of an allocation: a write and a read of each, 0 for none."""

    allocation: Allocation
    wrote: Records
    read: Records

    @property
    def start(self) -> int:
        """The first byte."""
        return self.allocation.origin

    @property
    def where(self) -> str:
        """What it is a part of."""
        return str(self.allocation)

    @property
    def gone(self) -> bool:
        """Has it been a block of the heap?  Then what has its address now is another one."""
        return self.allocation.heap is not None and not self.allocation.live

    @property
    def end(self) -> int:
        """Past the last byte."""
        return self.start + len(self.wrote)


@dataclass(eq=False, slots=True)
class Footprint:
    """All that a launch did to global memory."""

    turn: StreamLaunch
    scenes: Scenes
    sites: Sites = field(default_factory=Sites)
    marks: dict[int, Marks] = field(default_factory=dict)
    report: Callable[[Marks, Site, int, int], None] = field(default=lambda *_: None)
    """Of memory that is freed while the launch may use it: one access, its thread and address."""

    def freed(self, allocation: Allocation) -> None:
        """The host frees some memory: what has its address from now on is another allocation."""
        marks = self.marks.pop(allocation.origin, None)
        if marks is None:
            return
        for held in (marks.wrote, marks.read):
            for at in np.flatnonzero(held)[:1].tolist():
                record = int(held[at])
                self.report(marks, self.sites[record >> SITE], record & (1 << SITE) - 1, marks.start + at)
                return

    def note(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, operation: str) -> None:
        """Threads have accessed global memory."""
        if allocation.space != "global":
            return
        marks = self.marks.get(allocation.origin)
        size = allocation.end - allocation.origin
        if marks is None or len(marks.wrote) < size:
            marks = self.marks[allocation.origin] = Marks(allocation, np.zeros(size, np.int64), np.zeros(size, np.int64))
        site = self.sites.number(access, operation)
        records = threads | site << SITE
        weak = not self.sites.scope[site]
        held = marks.read if operation == "read" else marks.wrote
        for n in range(access.type.bytes * access.count):
            at = offsets + n
            held[at] = records if weak else np.where(self._is_weak(held[at]), held[at], records)

    def supersedes(self, earlier: Footprint) -> bool:
        """Forget what an earlier launch, ordered before this one, did where this one did the same; is nothing left of it?

        What is not ordered after this launch need not be ordered after that one either, and races with both if it does
        with one: an access by the same instruction to the same byte.
        """
        alike = self.sites.numbers_of(earlier.sites)
        for theirs in earlier.marks.values():
            for mine in self.marks.values():
                start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
                if start < end:
                    for kind in ("wrote", "read"):
                        then, now = (getattr(each, kind)[start - each.start : end - each.start] for each in (theirs, mine))
                        then[alike[then >> SITE] == now >> SITE] = 0
        earlier.marks = {at: marks for at, marks in earlier.marks.items() if marks.wrote.any() or marks.read.any()}
        return not earlier.marks

    def _is_weak(self, records: Records) -> npt.NDArray[np.bool_]:
        kept: npt.NDArray[np.bool_] = (records != 0) & (self.sites.scope[records >> SITE] == 0)
        return kept


@dataclass(frozen=True, slots=True)
class Clash:
    """Two accesses of two launches that race: of the earlier launch and of the later one."""

    footprints: tuple[Footprint, Footprint]
    sites: tuple[Site, Site]
    threads: tuple[int, int]
    address: int
    marks: Marks


def clashes(earlier: Footprint, later: Footprint) -> Iterator[Clash]:
    """The races of two launches, one for each pair of places in the code."""
    seen: set[tuple[Site, Site]] = set()
    for mine, theirs in product(later.marks.values(), earlier.marks.values()):
        if not (mine.gone or theirs.gone):
            start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
            for kinds in (("wrote", "wrote"), ("wrote", "read"), ("read", "wrote")):
                for clash in compared(earlier, later, (theirs, mine), (start, end), kinds):
                    if clash.sites not in seen:
                        seen.add(clash.sites)
                        yield clash


def compared(
    earlier: Footprint, later: Footprint, marks: tuple[Marks, Marks], part: tuple[int, int], kinds: tuple[str, str]
) -> Iterator[Clash]:
    """The races of one kind in a range of addresses, at the first byte of each pair of sites."""
    if part[0] >= part[1]:
        return
    held = [getattr(each, kind)[part[0] - each.start : part[1] - each.start] for each, kind in zip(marks, kinds, strict=True)]
    both = np.flatnonzero((held[0] != 0) & (held[1] != 0))
    one, other = held[0][both], held[1][both]
    _, first = np.unique((one >> SITE) << 20 | other >> SITE, return_index=True)
    for n in first.tolist():
        sites = earlier.sites[int(one[n]) >> SITE], later.sites[int(other[n]) >> SITE]
        if not strong_together(*sites):
            threads = int(one[n]) & (1 << SITE) - 1, int(other[n]) & (1 << SITE) - 1
            yield Clash((earlier, later), sites, threads, part[0] + int(both[n]), marks[1])


def strong_together(one: Site, other: Site) -> bool:
    """Are accesses of two grids of a device morally strong?"""
    return one.size == other.size and one.scope >= WIDE and other.scope >= WIDE


Report = Callable[[Clash], None]


def compare_with_others(mine: Footprint, others: Sequence[StreamLaunch], report: Report) -> None:
    """Report the races of a launch with those before it that no order separates from it."""
    for turn in others:
        if turn.number not in mine.turn.before and turn.left is not None:
            for clash in clashes(turn.left, mine):
                report(clash)

"""Races between launches: two unordered launches access the same bytes of global memory, and one of them writes.

A launch leaves a footprint: for each byte of global memory one write and one read, a weak one if there is any.  Two launches
that no stream or event orders may run concurrently, so their accesses of one byte are compared like those of two CTAs
(PTX 8.7.1): they race unless both are strong, of one size, and of a scope that includes the whole device, or the system where
they are on two devices.

What a programmatic launch does ahead of its `griddepcontrol.wait` has a footprint of its own, which is compared with the
launches that may not have ended then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import product

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import GridStep, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.checkers.grid_waits import GridWaits
from ptxvm.checkers.strength import WIDE, Site, Sites
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Scenes, Threads
from ptxvm.machine.streams import StreamLaunch

Records = npt.NDArray[np.int64]
SITE = 40  # the first bit of the site in a record; the thread is below


@dataclass(slots=True)
class ByteAccesses:
    """The accesses of a launch to the bytes of an allocation: one write and one read of each byte, 0 for none."""

    allocation: Allocation
    wrote: Records
    read: Records

    @property
    def start(self) -> int:
        """The address of the first byte."""
        return self.allocation.origin

    @property
    def where(self) -> str:
        """The name of the allocation."""
        return str(self.allocation)

    @property
    def gone(self) -> bool:
        """Is it a freed block of the heap?  Its address may belong to another block now."""
        return self.allocation.heap is not None and not self.allocation.live

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.start + len(self.wrote)


@dataclass(eq=False, slots=True)
class Footprint:
    """The accesses of a launch to global memory."""

    launch: StreamLaunch
    scenes: Scenes
    sites: Sites = field(default_factory=Sites)
    accesses: dict[int, ByteAccesses] = field(default_factory=dict)
    waits: GridWaits | None = None  # of a programmatic launch
    ahead: Footprint | None = None  # what it does before the wait
    lets_dependents_begin: bool = False
    lets_them_begin_ahead: bool = False  # do threads say so before they wait?
    waited: bool = False
    report: Callable[[ByteAccesses, Site, int, int], None] = field(default=lambda *_: None)
    """Called when memory is freed that the launch may still use: with one access, its thread and its address."""

    def freed(self, allocation: Allocation) -> None:
        """The host frees an allocation: later, its addresses belong to other allocations."""
        marks = self.accesses.pop(allocation.origin, None)
        if marks is None:
            return
        for held in (marks.wrote, marks.read):
            for at in np.flatnonzero(held)[:1].tolist():
                record = int(held[at])
                self.report(marks, self.sites[record >> SITE], record & (1 << SITE) - 1, marks.start + at)
                return

    def note(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Threads have accessed global memory."""
        if allocation.space is not Space.GLOBAL:
            return
        if self.waits is not None and (early := self.waits.ahead(threads)).any():
            if self.ahead is None:
                self.ahead = Footprint(self.launch, self.scenes)
            self.ahead.note(access, threads[early], allocation, offsets[early], verb)
        marks = self.accesses.get(allocation.origin)
        size = allocation.end - allocation.origin
        if marks is None or len(marks.wrote) < size:
            marks = self.accesses[allocation.origin] = ByteAccesses(
                allocation, np.zeros(size, np.int64), np.zeros(size, np.int64)
            )
        site = self.sites.number(access, verb)
        records = threads | site << SITE
        weak = not self.sites.scope[site]
        held = marks.read if verb is Verb.READ else marks.wrote
        for n in range(access.type.bytes * access.count):
            at = offsets + n
            held[at] = records if weak else np.where(self._is_weak(held[at]), held[at], records)

    def stepped(self, threads: Threads, step: GridStep) -> None:
        """Threads let dependent grids begin, or wait for those that this one depends on."""
        if step is GridStep.WAIT:
            self.waited = True
            if self.waits is not None:
                self.waits.waited(threads)
        else:
            self.lets_dependents_begin = True
            self.lets_them_begin_ahead |= self.waits is not None and bool(self.waits.ahead(threads).any())

    def supersedes(self, earlier: Footprint) -> bool:
        """Drop the accesses of an earlier launch, ordered before this one, that this launch repeats; is none left?

        A launch that is not ordered after this launch need not be ordered after the earlier one either.  It races with both
        if it races with one: a repeated access is by the same instruction to the same byte.
        """
        alike = self.sites.numbers_of(earlier.sites)
        for theirs in earlier.accesses.values():
            for mine in self.accesses.values():
                start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
                if start < end:
                    for kind in ("wrote", "read"):
                        then, now = (getattr(each, kind)[start - each.start : end - each.start] for each in (theirs, mine))
                        then[alike[then >> SITE] == now >> SITE] = 0
        earlier.accesses = {at: marks for at, marks in earlier.accesses.items() if marks.wrote.any() or marks.read.any()}
        return not earlier.accesses

    def _is_weak(self, records: Records) -> npt.NDArray[np.bool_]:
        weak: npt.NDArray[np.bool_] = (records != 0) & (self.sites.scope[records >> SITE] == 0)
        return weak


@dataclass(frozen=True, slots=True)
class LaunchRace:
    """Two racing accesses: one of the earlier launch and one of the later launch."""

    footprints: tuple[Footprint, Footprint]
    sites: tuple[Site, Site]
    threads: tuple[int, int]
    address: int
    accesses: ByteAccesses


def clashes(earlier: Footprint, later: Footprint) -> Iterator[LaunchRace]:
    """The races of two launches, one for each pair of instructions."""
    seen: set[tuple[Site, Site]] = set()
    for mine, theirs in product(later.accesses.values(), earlier.accesses.values()):
        if not (mine.gone or theirs.gone):
            start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
            for kinds in (("wrote", "wrote"), ("wrote", "read"), ("read", "wrote")):
                for clash in compared(earlier, later, (theirs, mine), (start, end), kinds):
                    if clash.sites not in seen:
                        seen.add(clash.sites)
                        yield clash


def compared(
    earlier: Footprint,
    later: Footprint,
    marks: tuple[ByteAccesses, ByteAccesses],
    part: tuple[int, int],
    kinds: tuple[str, str],
) -> Iterator[LaunchRace]:
    """The races of one kind in a range of addresses: the first byte of each pair of sites."""
    if part[0] >= part[1]:
        return
    needed = WIDE if earlier.launch.device == later.launch.device else Scope.SYS.rank
    held = [getattr(each, kind)[part[0] - each.start : part[1] - each.start] for each, kind in zip(marks, kinds, strict=True)]
    both = np.flatnonzero((held[0] != 0) & (held[1] != 0))
    one, other = held[0][both], held[1][both]
    _, first = np.unique((one >> SITE) << 20 | other >> SITE, return_index=True)
    for n in first.tolist():
        sites = earlier.sites[int(one[n]) >> SITE], later.sites[int(other[n]) >> SITE]
        if not strong_together(*sites, needed):
            threads = int(one[n]) & (1 << SITE) - 1, int(other[n]) & (1 << SITE) - 1
            yield LaunchRace((earlier, later), sites, threads, part[0] + int(both[n]), marks[1])


def strong_together(one: Site, other: Site, needed: int) -> bool:
    """Are accesses of two grids morally strong, with scopes of a rank that is `needed`, or more?"""
    return one.size == other.size and one.scope >= needed and other.scope >= needed


Report = Callable[[LaunchRace], None]


def compare_with_others(mine: Footprint, report: Report) -> None:
    """Report the races of a launch with others that are not ordered before it, and have ended."""
    for launch in mine.launch.others:
        unordered = mine if launch.number not in mine.launch.before else mine.ahead
        if launch.number not in mine.launch.begins_after and unordered is not None and launch.footprint is not None:
            for clash in clashes(launch.footprint, unordered):
                report(clash)

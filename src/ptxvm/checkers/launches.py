"""Races between launches: two unordered launches access the same bytes of global memory, and one of them writes.

A launch leaves a footprint: for each byte of global memory one write and one read, a weak one if there is any.  Two launches
that no stream or event orders may run concurrently, so their accesses of one byte are compared like those of two CTAs
(PTX 8.7.1): they race unless both are strong, of one size, and of a scope that includes the whole device, or the system where
they are on two devices.

Launches that synchronise, as a thread of one acquires what another has released (`launch_order`), are compared access by
access from then on: an access races with the last one of the other launch that its thread does not know.

What a programmatic launch does ahead of its `griddepcontrol.wait` has a footprint of its own, which is compared with the
launches that may not have ended then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import product

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import GridStep, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.checkers.clocks import Clocks
from ptxvm.checkers.grid_waits import GridWaits
from ptxvm.checkers.launch_order import LaunchOrder, order_of
from ptxvm.checkers.strength import WIDE, Site, Sites
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.machine.aliases import MAPPED
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Scenes, Threads
from ptxvm.machine.streams import DEVICE, StreamLaunch

Records = npt.NDArray[np.int64]
SITE = 40  # the first bit of the site in a record; the thread is below


@dataclass(slots=True)
class ByteAccesses:
    """The accesses of a launch to the bytes of an allocation: one write and one read of each byte, 0 for none.

    `stamps` are those of their threads' clocks: of the writes, and of the reads.
    """

    allocation: Allocation
    wrote: Records
    read: Records
    stamps: dict[str, Records]

    @classmethod
    def of(cls, allocation: Allocation) -> ByteAccesses:
        """None yet."""
        size = allocation.end - allocation.origin
        wrote, read, *stamps = (np.zeros(size, np.int64) for _ in range(4))
        return cls(allocation, wrote, read, dict(zip(("wrote", "read"), stamps, strict=True)))

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
    runs: list[dict[int, ByteAccesses]] = field(default_factory=lambda: [{}])  # of each run, by the address of the allocation
    order: LaunchOrder | None = None  # what its threads know of other launches
    waits: GridWaits | None = None  # of a programmatic launch
    ahead: Footprint | None = None  # what it does before the wait
    lets_dependents_begin: bool = False
    lets_them_begin_ahead: bool = False  # do threads say so before they wait?
    waited: bool = False
    report: Callable[[ByteAccesses, Site, int, int], None] = field(default=lambda *_: None)
    """Called when memory is freed that the launch may still use: with one access, its thread and its address."""

    raced: Callable[[LaunchRace], None] = field(default=lambda _: None)

    @property
    def accesses(self) -> dict[int, ByteAccesses]:
        """Those of the last run."""
        return self.runs[-1]

    @property
    def all_accesses(self) -> list[ByteAccesses]:
        """Those of all runs."""
        return [each for run in self.runs for each in run.values()]

    def follow(self, clocks: Clocks) -> LaunchOrder:
        """Follow the order of the launch among others in a new run, which has these clocks."""
        if self.accesses:
            self.runs.append({})
        self.order = LaunchOrder(self.launch, clocks, self._synchronised)
        return self.order

    def _synchronised(self, other: StreamLaunch) -> None:
        """Another launch is about to synchronise with this one: nothing has ordered their accesses so far."""
        for race in clashes(other.footprint, self, self.accesses.values()):
            self.raced(race)

    def freed(self, allocation: Allocation) -> None:
        """The host frees an allocation that the launch may still use."""
        used = self.forget(allocation)
        for marks, held in ((each, held) for each in used for held in (each.wrote, each.read)):
            for at in np.flatnonzero(held)[:1].tolist():
                record = int(held[at])
                self.report(marks, self.sites[record >> SITE], record & (1 << SITE) - 1, marks.start + at)
                return

    def forget(self, allocation: Allocation) -> list[ByteAccesses]:
        """Forget the accesses of an allocation, and give them: later, its addresses belong to other allocations."""
        return [marks for run in self.runs if (marks := run.pop(allocation.origin, None)) is not None]

    def note(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb, stamps: Records
    ) -> None:
        """Threads have accessed global memory when their clocks were at `stamps`."""
        if allocation.space is not Space.GLOBAL:
            return
        for mine, place, within in MAPPED.aliases.places(allocation, offsets):
            self.note_in_place(access, threads[mine], place, within, verb, stamps[mine])

    def note_in_place(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb, stamps: Records
    ) -> None:
        """The same, of memory that has one address, or where what stands for all of its addresses is known."""
        if self.waits is not None and (early := self.waits.ahead(threads)).any():
            if self.ahead is None:
                self.ahead = Footprint(self.launch, self.scenes)
            self.ahead.note_in_place(access, threads[early], allocation, offsets[early], verb, stamps[early])
        marks = self.accesses.get(allocation.origin)
        size = allocation.end - allocation.origin
        if marks is None or len(marks.wrote) < size:
            marks = self.accesses[allocation.origin] = ByteAccesses.of(allocation)
        site = self.sites.number(access, verb)
        records = threads | site << SITE
        weak = not self.sites.scope[site]
        kind = "read" if verb is Verb.READ else "wrote"
        held, when = getattr(marks, kind), marks.stamps[kind]
        for n in range(access.type.bytes * access.count):
            at = offsets + n
            for launch in self.order.known.values() if self.order is not None else ():
                self._compare(launch, marks, records, at, kind)
            stays = np.zeros(len(at), np.bool_) if weak else self._is_weak(held[at])
            held[at[~stays]], when[at[~stays]] = records[~stays], stamps[~stays]

    def _compare(self, launch: StreamLaunch, marks: ByteAccesses, records: Records, at: Offsets, kind: str) -> None:
        """Report the races of accesses, a byte of each, with the last ones of a launch that has synchronised with this one."""
        order, other = self.order, launch.footprint
        if order is None:
            return
        threads = records & (1 << SITE) - 1
        for theirs in other.accesses.values():
            place = at + (marks.start - theirs.start)
            inside = np.flatnonzero((place >= 0) & (place < len(theirs.wrote)))
            for held in ("wrote",) if kind == "read" else ("wrote", "read"):
                there = inside[getattr(theirs, held)[place[inside]] != 0]
                if not len(there) or theirs.gone or marks.gone:
                    continue
                earlier, stamps = (each[place[there]] for each in (getattr(theirs, held), theirs.stamps[held]))
                writers, addresses = earlier & (1 << SITE) - 1, marks.start + at[there]
                loose = order.unknown(order_of(launch), threads[there], writers, stamps)
                for n in np.flatnonzero(loose & (other.sites.scope[earlier >> SITE] > 0)).tolist():
                    size = int(other.sites.size[int(earlier[n]) >> SITE])
                    word, write = (int(addresses[n]) & -size, size), (int(writers[n]), int(stamps[n]))
                    loose[n] = not order.knows_observation(int(threads[there[n]]), order_of(launch), word, write)
                pairs = np.stack([earlier[loose], records[there][loose]])
                for race in races((other, self), pairs, addresses[loose], marks):
                    self.raced(race)

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
        for theirs in earlier.all_accesses:
            for mine in self.all_accesses:
                start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
                if start < end:
                    for kind in ("wrote", "read"):
                        then, now = (getattr(each, kind)[start - each.start : end - each.start] for each in (theirs, mine))
                        then[alike[then >> SITE] == now >> SITE] = 0
        earlier.runs = [
            {at: marks for at, marks in run.items() if marks.wrote.any() or marks.read.any()} for run in earlier.runs
        ]
        return not earlier.all_accesses

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


def clashes(earlier: Footprint, later: Footprint, accesses: Iterable[ByteAccesses]) -> Iterator[LaunchRace]:
    """The races of accesses of the later launch with the earlier one, one for each pair of instructions."""
    seen: set[tuple[Site, Site]] = set()
    for mine, theirs in product(accesses, earlier.all_accesses):
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
    held = [getattr(each, kind)[part[0] - each.start : part[1] - each.start] for each, kind in zip(marks, kinds, strict=True)]
    both = np.flatnonzero((held[0] != 0) & (held[1] != 0))
    yield from races((earlier, later), np.stack([each[both] for each in held]), part[0] + both, marks[1])


def races(
    footprints: tuple[Footprint, Footprint], records: Records, addresses: Offsets, marks: ByteAccesses
) -> Iterator[LaunchRace]:
    """The races among pairs of unordered accesses, with the records of each launch: the first of each pair of sites."""
    earlier, later = footprints
    needed = WIDE if earlier.launch.device == later.launch.device else Scope.SYS.rank
    one, other = records
    _, first = np.unique((one >> SITE) << 20 | other >> SITE, return_index=True)
    for n in first.tolist():
        sites = earlier.sites[int(one[n]) >> SITE], later.sites[int(other[n]) >> SITE]
        if not strong_together(*sites, needed):
            threads = int(one[n]) & (1 << SITE) - 1, int(other[n]) & (1 << SITE) - 1
            yield LaunchRace(footprints, sites, threads, int(addresses[n]), marks)


def strong_together(one: Site, other: Site, needed: int) -> bool:
    """Are accesses of two grids morally strong, with scopes of a rank that is `needed`, or more?"""
    return one.size == other.size and one.scope >= needed and other.scope >= needed


def compare_with_others(mine: Footprint) -> None:
    """Report the races of a launch that ends with others that are not ordered before it, and have ended.

    Those that have synchronised with it were compared when they did.
    """
    with DEVICE.lock:
        mine.launch.ended = True
        for launch in mine.launch.ended_beside():
            unordered = mine if launch.number not in mine.launch.before else mine.ahead
            if launch.number in mine.launch.begins_after or unordered is None or launch.number in order_of(mine.launch).known:
                continue
            for clash in clashes(launch.footprint, unordered, unordered.all_accesses):
                mine.raced(clash)

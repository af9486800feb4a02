"""Data races: conflicting accesses that are neither morally strong nor ordered by causality (PTX 8.7.1).

The detector follows one run.  Each access is compared with the records of the bytes that it touches: an earlier access of
another thread that conflicts, is not morally strong with this one, and is not known to its thread, races with it.  Where
the earlier one is a strong write, a known thread that observed it orders it as well (`observation`, PTX 8.9.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import Order, PartialFence, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.faint import faint
from ptxvm.analysis.program import Bound, Program
from ptxvm.checkers.clocks import MBARRIERS, PROGRESS, TENSOR_MEMORY, Clocks, Knowledge, joined, only
from ptxvm.checkers.cluster_order import ClusterOrder
from ptxvm.checkers.communication import Communication, elements
from ptxvm.checkers.copy_agents import GROUPED, Agents, PendingCopies
from ptxvm.checkers.cta_ends import CtaEnd, outliving
from ptxvm.checkers.grid_order import GridOrder
from ptxvm.checkers.mbarrier_phases import Location, Phases, phases
from ptxvm.checkers.missed_phases import MissedPhase, MissedPhases
from ptxvm.checkers.overflow_records import OverflowRecords
from ptxvm.checkers.proxy_fences import ASYNC_SPACES, ProxyFences
from ptxvm.checkers.race_pair import Cause, Race
from ptxvm.checkers.shadow import AllocationShadow, Cells, Packing, Records
from ptxvm.checkers.strength import Sites, invalidates
from ptxvm.checkers.tensor_order import MOVES, TensorOrder, TensorRace
from ptxvm.checkers.tensormap_fences import TensormapFences
from ptxvm.checkers.warpgroup_waits import WarpgroupWaits
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.summary import orders_lanes
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, BarrierKey, Offsets, Scene, StoredValues, Threads, Words

PRIVATE = frozenset({Space.LOCAL, Space.PARAM, Space.CONST})


class RaceDetector:
    """The race detector for one run of a grid."""

    def __init__(
        self, scene: Scene, report: Callable[[Race], None], tensors: Callable[[TensorRace], None] = lambda _: None,
        ends: Callable[[CtaEnd], None] = lambda _: None, missed: Callable[[MissedPhase], None] | None = None,
    ) -> None:  # fmt: skip
        """`report` gets races on memory, `tensors` those on tensor memory, `ends` those with the end of a CTA.

        `missed` gets the phases of mbarriers that a thread may miss; without it they are not looked for.
        """
        shape = scene.shape
        self.packing = Packing.of(shape.ctas * shape.threads)
        self.clocks = Clocks(shape.ctas, shape.threads, self.packing, shape.cluster_size)
        self.grids = self.clocks.grids
        self._check_size()
        self.phases, self.sites = Phases(), Sites()
        self.missed_phases = MissedPhases(self.clocks, missed)
        self.communication = Communication(self.clocks, self.packing, self.sites)
        self.patterns = self.communication.patterns
        self.report, self.ends = report, ends
        self.proxy_fences = ProxyFences(self.clocks, self.packing)
        self.tensormap_fences = TensormapFences(self.clocks)
        self.grid_order = GridOrder(self.clocks)
        self._agents: Agents | None = None
        self.tensor_order = TensorOrder(self.patterns, partial(getattr, self, "agents"), tensors)
        self._shadows: dict[Allocation, AllocationShadow] = {}
        self._made = 0
        # The site of a copy that does what another lane's does: races with others are reported for that one.
        self._repeating = 0
        self.cluster_order = ClusterOrder(self.patterns)
        self._arrived: dict[BarrierKey, Knowledge] = {}
        self.warpgroup_waits = WarpgroupWaits(self.clocks)
        self._invalidates_mbarriers = cache(invalidates_mbarriers)
        self._faint = cache(lambda function: faint(function) if function is not None else frozenset())

    def _check_size(self) -> None:
        if self.grids.threads > min(self.grids.agents, self.packing.threads - 1):
            raise Unsupported(f"the check 'race' of so many threads in grids that kernels launch: {self.grids.threads:,}")

    # ── accesses ────────────────────────────────────────────────────────────────────────

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        if allocation.space in PRIVATE or (access.attributes and access.attributes.get("asynchronous")):
            return
        shadow, site, _, cells, wide, every = self._recorded(access, Verb.READ, threads, allocation, offsets)
        self._compare_images(shadow, site, cells, shadow.wrote[cells], wide)
        self._compare_with_writes(shadow, site, cells, wide)
        if self.sites.scope[site] and "mbarrier" not in access.attributes:
            self.communication.collect(shadow, site, *elements(access, threads, offsets))
        self._record_reads(shadow, cells, every, wide)

    def wrote(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, left: StoredValues | None = None
    ) -> None:
        """Threads have written."""
        if allocation.space in PRIVATE or (access.attributes and access.attributes.get("asynchronous")):
            return
        shadow, site, records, cells, wide, every = self._recorded(access, Verb.WRITE, threads, allocation, offsets)
        self._note_values(shadow, cells, wide, left)
        self._write(shadow, site, cells, wide, every)
        if "mbarrier" in access.attributes:
            for offset in offsets.tolist():
                self.phases.forget((shadow.number, offset))
                self.missed_phases.forget((shadow.number, offset))
        if self.sites.scope[site]:
            self.communication.publish(shadow, site, *elements(access, threads, offsets, records))

    def _note_values(self, shadow: AllocationShadow, cells: Cells, threads: Threads, left: StoredValues | None) -> None:
        """Mark the cells in which unordered writes have stored different values."""
        last = shadow.wrote[cells]
        other = last != 0
        if other.any():
            writers = self.packing.thread_of(last)
            other &= (writers != threads) & self.clocks.unknown(threads, writers, self.packing.stamp_of(last))
        if shadow.writers is not None and shadow.writers.any_of(cells):
            other |= np.isin(cells, self._unordered(shadow.writers, cells, threads))
        if left is None:  # the values are not known
            shadow.differ[cells] = True
            return
        bits = left.bits.view(shadow.last_values.dtype).ravel()
        same = (shadow.last_values[cells] == bits) & self.sites.plain[self.packing.site_of(last)]
        differ = other & (shadow.differ[cells] | ~same) | ~np.repeat(left.own, len(cells) // len(left.own))
        shadow.last_values[cells], shadow.differ[cells] = bits, False
        shadow.differ[cells[differ]] = True

    def _unordered(self, overflow: OverflowRecords, cells: Cells, threads: Threads) -> Cells:
        """The cells with overflow records that the threads do not know."""
        apart = self.clocks.differing(threads, cells)
        where, held, (which, asking) = overflow.of(cells[apart], taking=False)
        others, mine = self.packing.thread_of(held[which]), threads[apart][asking]
        loose = (others != mine) & self.clocks.unknown(mine, others, self.packing.stamp_of(held[which]))
        found: Cells = where[which[loose]]
        return found

    def updated(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read and written in one step, as a sequence of updates."""
        if allocation.space in PRIVATE:
            return
        shadow, site, records, cells, wide, every = self._recorded(access, Verb.UPDATE, threads, allocation, offsets)
        before = shadow.wrote[offsets >> shadow.shift]
        self._write(shadow, site, cells, wide, every, observes=True)
        if self.communication.passes_on(site):
            self.communication.pass_on(shadow, site, threads, offsets, before, records)

    # ── asynchronous copies, mbarriers ──────────────────────────────────────────────────

    @property
    def agents(self) -> Agents:
        """The agents of asynchronous copies; made at the first copy."""
        if self._agents is None:
            self._agents = Agents(self.clocks, self.phases)
        return self._agents

    def copying(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Agents read or write, after the earlier operations of their threads."""
        agents, kind = self.agents, access.attributes["group"]
        site = self._site(access, verb)
        if kind is AsyncKind.PRODUCT:
            self.warpgroup_waits.sites.add(site)
        shadow = self._shadow(allocation, access)
        of_threads = agents.of(threads, kind)
        records = self.packing.record(site, agents.now(of_threads), of_threads)
        cells, wide, every = shadow.cells_of(access, offsets, threads, records)
        if access.attributes["proxy"] is Proxy.ASYNC:
            self._compare_proxies(shadow, site, cells, wide)
        if verb is not Verb.READ:
            self._repeating = site if access.attributes.get("repeats") else 0
            self._write(shadow, site, cells, wide, every)
            self._repeating = 0
        else:
            self._compare_with_writes(shadow, site, cells, wide)
            self._record_reads(shadow, cells, every, wide)
        if kind in GROUPED:
            group, writes = agents.groups[kind][threads], verb is not Verb.READ
            agents.begin(PendingCopies(shadow, access, site, writes, threads, offsets, records, group, kind))

    def _compare_proxies(self, shadow: AllocationShadow, site: int, cells: Cells, threads: Threads) -> None:
        """Report ordered writes that the async proxy does not see for want of a proxy fence (PTX 9.7.9.25.2).

        What `tcgen05.alloc` writes keeps its order with accesses of the address by other instructions (PTX 9.7.16.6.1).
        """
        last, later = shadow.wrote[cells], self.sites[site]
        copied = self.sites.copied[self.packing.site_of(last)]
        for n in self.proxy_fences.unfenced(shadow.allocation.space, last, threads, copied).tolist():
            earlier = self.sites[int(self.packing.site_of(last[n]))]
            if later.of_tensor_core or not earlier.of_tensor_core:
                writer = int(self.grids.owner(self.packing.thread_of(last[n])))
                ends, byte = (writer, int(threads[n])), int(cells[n]) << shadow.shift
                self.report(Race(shadow.allocation, (earlier, later), ends, byte, cause=Cause.UNFENCED))
                return

    def mapped(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have started a copy by a tensor map, which it reads through the tensormap proxy."""
        if allocation.space in PRIVATE:
            return
        shadow, site, _, cells, wide, every = self._recorded(access, Verb.READ, threads, allocation, offsets)
        self._compare_with_writes(shadow, site, cells, wide)
        self._record_reads(shadow, cells, every, wide)
        last = shadow.wrote[cells]
        writers, stamps = self.packing.thread_of(last), self.packing.stamp_of(last)
        fenced = cache(self.tensormap_fences.between)  # most cells of a map have one writer
        for n in np.flatnonzero((last != 0) & (writers < self.grids.agents)).tolist():
            writer, thread, stamp = int(writers[n]), int(wide[n]), int(stamps[n])
            ordered = self.grids.grid(writer) == self.grids.grid(thread) and self.clocks.knows(thread, writer, stamp)
            byte = int(cells[n]) << shadow.shift
            if ordered and not fenced(writer, stamp, thread, self.tensormap_fences.covering(allocation.origin + byte)):
                pair = self.sites[int(self.packing.site_of(last[n]))], self.sites[site]
                self.report(Race(shadow.allocation, pair, (writer, thread), byte, cause=Cause.UNMAPPED))
                return

    def tensormap_fenced(self, threads: Threads, order: Order, addresses: Words | None) -> None:
        """Threads have executed a fence of the tensormap proxy."""
        self.tensormap_fences.fence(threads, order, addresses)

    def grouped(self, threads: Threads, kind: AsyncKind) -> None:
        """Threads have completed groups of copies."""
        self.agents.grouped(threads, kind)

    def awaited(self, threads: Threads, left: int, kind: AsyncKind, *, reading: bool) -> None:
        """Threads have waited for copies; from now on the copies count as their own accesses."""
        if kind in MOVES:
            self.tensor_order.awaited(threads, kind)
            return
        self.agents.awaited(threads, left, kind, self._settle, reading=reading)
        if kind is AsyncKind.PRODUCT:
            self.missed_phases.meet_warpgroups(threads)
            self.warpgroup_waits.awaited(threads)

    def _settle(self, begun: PendingCopies) -> None:
        """Make the records of ended copies records of their threads."""
        shadow = begun.shadow
        mine = self.packing.record(begun.site, self.clocks.now[begun.threads], begun.threads)
        cells, _, new = shadow.cells_of(begun.access, begun.offsets, begun.threads, mine)
        _, _, old = shadow.cells_of(begun.access, begun.offsets, begun.threads, begun.records)
        overflow, held = (shadow.writers, shadow.wrote) if begun.writes else (shadow.readers, shadow.read)
        if overflow is not None:
            overflow.replace(cells, old, new)
        still = held[cells] == old
        held[cells[still]] = new[still]

    def posted(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """An mbarrier will be told the end of work: it has to be there before the threads ask for that."""
        shadow, site, _, cells, wide, _ = self._recorded(access, Verb.UPDATE, threads, allocation, offsets)
        self._compare_with_writes(shadow, site, cells, wide)
        kind = access.attributes["group"]
        if kind is not AsyncKind.MBARRIER:
            self.agents.posted(threads, kind)
            return
        for thread, offset in zip(threads.tolist(), offsets.tolist(), strict=True):
            self.agents.counted(thread, (shadow.number, offset))

    def signalled(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, words: tuple[Words, Words]
    ) -> None:
        """Threads, or ended copies, have updated mbarriers, one after the other."""
        shadow, site, _, cells, wide, every = self._recorded(access, Verb.UPDATE, threads, allocation, offsets)
        if not access.attributes.get("asynchronous"):
            self._write(shadow, site, cells, wide, every, observes=True)
        for offset in np.unique(offsets).tolist():
            mine = np.flatnonzero(offsets == offset)
            location = (shadow.number, offset)
            for part, over in phases((words[0][mine], words[1][mine])):
                these = threads[mine[part]]
                self.phases.arrive(location, self.missed_phases.arrive(these, location))
                self.phases.arrive(location, self._with_mbarrier(access, these, location))
                if over:
                    self.missed_phases.complete(access, int(these[-1]), location)
                    self.phases.complete(location)

    def _with_mbarrier(self, access: Access, threads: Threads, location: Location) -> Knowledge | None:
        """The knowledge that arrivals pass on: of their threads, or the end of copies."""
        if access.attributes.get("asynchronous"):
            return self.agents.signalled(threads, access.attributes["group"], location)
        if access.attributes["mbarrier"] not in (MbarrierStep.ARRIVE, MbarrierStep.DROP):
            return None
        if access.attributes["order"] is Order.RELAXED:
            return self.patterns.fence_knowledge(threads)
        knowledge = self.clocks.snapshot(threads)
        self.clocks.tick(threads)
        return knowledge

    def phase_over(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have found a phase of an mbarrier over; a test whose result has no effect orders nothing."""
        if access.bound in self._faint(access.bound.function):
            return
        shadow = self._shadow(allocation, access)
        for offset in np.unique(offsets).tolist():
            location, mine = (shadow.number, offset), threads[offsets == offset]
            self.missed_phases.found_over(access, mine, location)
            if not (knowledge := self.phases.over(location)):
                continue
            if access.attributes["order"] is Order.ACQUIRE:
                self.clocks.learn(mine, knowledge)
            else:
                self.clocks.learn(mine, only(knowledge, PROGRESS))
                self.patterns.await_fence(mine, knowledge)

    # ── records ─────────────────────────────────────────────────────────────────────────

    def _recorded(
        self, access: Access, verb: Verb, threads: Threads, allocation: Allocation, offsets: Offsets
    ) -> tuple[AllocationShadow, int, Records, Cells, Threads, Records]:
        """The shadow of an access, its site and its records; and its cells, with the thread and the record of each."""
        site = self._site(access, verb)
        shadow = self._shadow(allocation, access)
        records = self.packing.record(site, self.clocks.now[threads], threads)
        return shadow, site, records, *shadow.cells_of(access, offsets, threads, records)

    def _site(self, access: Access, verb: Verb) -> int:
        number = self.sites.number(access, verb)
        if number >= self.packing.sites:
            raise Unsupported(f"the check 'race' of {number:,} accesses in the code, in so large a grid")
        return number

    def _shadow(self, allocation: Allocation, access: Access) -> AllocationShadow:
        shadow = self._shadows.get(allocation)
        if shadow is None:
            self._made += 1
            shadow = self._shadows[allocation] = AllocationShadow(allocation, self._made, self._covers, self.packing)
        if access.type.bytes < shadow.grain:
            shadow.refine(access.type.bytes)
        return shadow

    # ── races ───────────────────────────────────────────────────────────────────────────

    def _write(
        self, shadow: AllocationShadow, site: int, cells: Cells, threads: Threads, records: Records, *, observes: bool = False
    ) -> None:
        """Compare a write with all earlier accesses, and record it as the last write."""
        last, read = shadow.wrote[cells], shadow.read[cells]
        self._compare_images(shadow, site, cells, last, threads)
        stays = self._outlives(shadow, site, (cells, last, threads), observes=observes)
        shadow.read[cells] = 0
        unread = self._outlives(shadow, site, (cells, read, threads))
        shadow.read[cells[unread]] = read[unread]
        for overflow in (shadow.writers, shadow.readers):
            if overflow is not None and overflow.any_of(cells):
                self._compare_further(shadow, overflow, site, cells, threads, writing=True)
        shadow.wrote[cells] = records
        stored = shadow.wrote[cells]
        lost = np.flatnonzero(stored != records)
        stays &= (stored == records) & (last != records)
        if stays.any():  # a third access may know only one of the two, or be morally strong with only one
            shadow.further_writes().add(cells[stays], last[stays])
        if len(lost):  # several threads wrote in one step
            self._judge(shadow, site, cells[lost], stored[lost], threads[lost])
            if not observes:
                shadow.further_writes().add(cells[lost], records[lost])

    def _compare_images(self, shadow: AllocationShadow, site: int, cells: Cells, last: Records, threads: Threads) -> None:
        """Report last writes that accesses of the same grid cannot see in any order: one of the two is an image access."""
        proxy = self.sites[site].proxy
        if not proxy and not shadow.written_as_image:
            return
        shadow.written_as_image |= bool(proxy) and self.sites[site].writes
        there = np.flatnonzero(last != 0)
        unseen = ~self.sites.see_each_other(site, self.packing.site_of(last[there]), self._needed(last[there], threads[there]))
        for n in there[unseen].tolist():
            writer, thread = int(self.grids.owner(self.packing.thread_of(last[n]))), int(threads[n])
            if self.grids.grid(writer) == self.grids.grid(thread):
                pair, byte = (self.sites[int(self.packing.site_of(last[n]))], self.sites[site]), int(cells[n]) << shadow.shift
                self.report(Race(shadow.allocation, pair, (writer, thread), byte, cause=Cause.INCOHERENT))
                return

    def _compare(
        self, shadow: AllocationShadow, site: int, cells: Cells, records: Records, threads: Threads, *, observes: bool = False
    ) -> npt.NDArray[np.int64]:
        """Report races with earlier accesses; returns the positions of the earlier accesses that this one does not know.

        With `observes`, morally strong accesses are left out: a read-modify-write is ordered after what it observes.
        """
        others = self.packing.thread_of(records)
        there = np.flatnonzero((records != 0) & (others != threads))
        if not len(there):
            return there
        mine, others = threads[there], others[there]
        loose = there[self.clocks.unknown(mine, others, self.packing.stamp_of(records[there]))]
        if not len(loose):
            return loose
        return loose[self._judge(shadow, site, cells[loose], records[loose], threads[loose], observes=observes)]

    def _compare_with_writes(self, shadow: AllocationShadow, site: int, cells: Cells, threads: Threads) -> None:
        """Report races with earlier writes."""
        self._compare(shadow, site, cells, shadow.wrote[cells], threads)
        if shadow.writers is not None and shadow.writers.any_of(cells):
            self._compare_further(shadow, shadow.writers, site, cells, threads)

    def _judge(
        self, shadow: AllocationShadow, site: int, cells: Cells, records: Records, threads: Threads, *, observes: bool = False
    ) -> npt.NDArray[np.int64]:
        """Report the races among unordered accesses; returns the positions of those that stay unordered."""
        others = self.packing.site_of(records)
        strong = self.sites.morally_strong(site, others, self._needed(records, threads))
        racing = np.flatnonzero(~strong)
        if len(racing) and self.patterns.observed:
            racing = racing[~self._seen(shadow, cells[racing], records[racing], threads[racing])]
        if len(racing) and not self.warpgroup_waits.sites.isdisjoint(others[racing].tolist()):
            pairs = list(zip(records[racing].tolist(), threads[racing].tolist(), strict=True))
            over = {pair for pair in set(pairs) if self._product_over(*pair)}
            racing = racing[[pair not in over for pair in pairs]]
        if self.sites.of_warp[others[racing]].any():
            mates = self.clocks.mates(threads[racing], self.packing.thread_of(records[racing]))
            racing = racing[~(self.sites.of_warp[others[racing]] & mates)]
        executed: npt.NDArray[np.bool_] = np.zeros(len(records), np.bool_)
        if len(racing) and self.sites.of_mbarrier[site]:
            racing = racing[[not self._made_known(records[n], int(threads[n])) for n in racing.tolist()]]
            if self.sites[site].invalidates:
                executed[racing] = [self._executed(records[n], int(threads[n])) for n in racing.tolist()]
                racing = racing[[not executed[n] or not self._is_look(int(others[n])) for n in racing.tolist()]]
        if len(racing):
            equal = self.sites.plain[others] & self.sites.plain[site] & ~shadow.differ[cells]
            equal &= self.sites.size[others] == self.sites.size[site]
            equal |= (others == site) & (site == self._repeating)
            racing = racing[np.argsort((equal | executed)[racing], kind="stable")]  # for each pair of sites, errors first
            _, first = np.unique(others[racing], return_index=True)
            for n in racing[first].tolist():
                pair = self.sites[int(others[n])], self.sites[site]
                byte = int(cells[n]) << shadow.shift
                earlier = int(self.grids.owner(self.packing.thread_of(records[n])))  # an agent counts as its thread
                cause = Cause.EXECUTED if executed[n] else Cause.UNORDERED
                ends = earlier, int(threads[n])
                self.report(Race(shadow.allocation, pair, ends, byte, cause=cause, equal_values=bool(equal[n])))
        return np.flatnonzero(~strong) if observes else np.arange(len(records))

    def _product_over(self, record: int, thread: int) -> bool:
        """Is the earlier access the read of a product of a warpgroup that the thread knows to have ended?"""
        if int(self.packing.site_of(record)) not in self.warpgroup_waits.sites:
            return False
        reader, stamp = int(self.packing.thread_of(record)), int(self.packing.stamp_of(record))
        return self.warpgroup_waits.over(thread, reader, stamp)

    def _made_known(self, record: int, thread: int) -> bool:
        """Is the earlier access one of an mbarrier that `fence.mbarrier_init` has made known to the thread?"""
        if not self.sites.of_mbarrier[self.packing.site_of(record)]:
            return False
        other, stamp = int(self.packing.thread_of(record)), int(self.packing.stamp_of(record))
        return self.clocks.knows_of_kind(MBARRIERS, thread, other, stamp)

    def _executed(self, record: int, thread: int) -> bool:
        """Is the earlier access one of an mbarrier, which its lane executed before a collective that the thread comes after?"""
        if not self.sites.of_mbarrier[self.packing.site_of(record)]:
            return False
        other, stamp = int(self.packing.thread_of(record)), int(self.packing.stamp_of(record))
        return self.clocks.knows_of_kind(PROGRESS, thread, other, stamp)

    def _is_look(self, site: int) -> bool:
        """Does an access test an mbarrier, and its thread decide by the result whether to go on?

        Then it has the result before what depends on it, and cannot read what is written after that (PTX 8.10.4).
        """
        bound = self.sites[site].bound
        return self.sites[site].verb is Verb.READ and bound not in self._faint(bound.function)

    def _seen(self, shadow: AllocationShadow, cells: Cells, records: Records, threads: Threads) -> npt.NDArray[np.bool_]:
        """Which threads know of an observation of the write?"""
        places = cells << shadow.shift & -self.sites.size[self.packing.site_of(records)]
        each, where = np.unique(places, return_inverse=True)
        observed = [self.patterns.observed.get((shadow.number, place)) for place in each.tolist()]
        of_place = np.array([found.record if found is not None else 0 for found in observed], np.int64)
        seen: npt.NDArray[np.bool_] = of_place[where] == records
        for n in np.flatnonzero(seen).tolist():
            found = observed[where[n]]
            seen[n] = found is not None and any(
                self.clocks.knows(int(threads[n]), other, stamp) for other, stamp in found.clocks.items()
            )
        return seen

    def _compare_further(
        self,
        shadow: AllocationShadow,
        overflow: OverflowRecords,
        site: int,
        cells: Cells,
        threads: Threads,
        *,
        writing: bool = False,
    ) -> None:
        """Report races with overflow records; a write removes the records that it stands for."""
        apart = self.clocks.differing(threads, cells)  # bound the pairs: many readers and many writers would make a square
        cells, threads = cells[apart], threads[apart]
        where, held, (which, asking) = overflow.of(cells, taking=writing)
        stays = self._outlives(shadow, site, (where[which], held[which], threads[asking]))
        if writing:
            still = np.zeros(len(where), np.bool_)
            still[which[stays]] = True
            overflow.add(where[still], held[still])

    def _outlives(
        self, shadow: AllocationShadow, site: int, met: tuple[Cells, Records, Threads], *, observes: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Report races with earlier accesses; returns which of them this access does not stand for."""
        cells, earlier, threads = met
        loose = self._compare(shadow, site, cells, earlier, threads, observes=observes)
        stays: npt.NDArray[np.bool_] = np.zeros(len(cells), np.bool_)
        if self.sites.scope[site]:
            others, same_cta = self.packing.site_of(earlier), self.grids.together(self.packing.thread_of(earlier), threads)
            stays = (earlier != 0) & ~self.sites.covers(np.array([site]), others, same_cta)
            if observes:
                stays &= ~self.sites.morally_strong(site, others, self._needed(earlier, threads))
        stays[loose] = True
        return stays

    def _record_reads(self, shadow: AllocationShadow, cells: Cells, records: Records, threads: Threads) -> None:
        """Record the last read of each cell; an older read that the new one does not imply becomes an overflow record."""
        before = shadow.read[cells]
        shadow.read[cells] = records
        last = shadow.read[cells] == records
        displaced = np.flatnonzero(last & (before != 0) & (before != records))
        if len(displaced):
            overflowing = displaced[~self._stands_for(records[displaced], before[displaced], threads[displaced])]
            if len(overflowing):
                shadow.further_reads().add(cells[overflowing], before[overflowing])
        if not last.all():  # several threads read in one step
            shadow.further_reads().add(cells[~last], records[~last])

    def _stands_for(self, later: Records, earlier: Records, threads: Threads) -> npt.NDArray[np.bool_]:
        """Does every access that races with an earlier read also race with a later one, of these threads?"""
        others = self.packing.thread_of(earlier)
        known = (others == threads) | ~self.clocks.unknown(threads, others, self.packing.stamp_of(earlier))
        stands: npt.NDArray[np.bool_] = known & self.sites.covers(
            self.packing.site_of(later), self.packing.site_of(earlier), self.grids.together(others, threads)
        )
        return stands

    def _covers(self, later: Records, earlier: Records) -> npt.NDArray[np.bool_]:
        """The same for two reads of one thread; copies under way may end in any order."""
        own = self.packing.thread_of(later) < self.grids.agents
        found: npt.NDArray[np.bool_] = own & self.sites.covers(self.packing.site_of(later), self.packing.site_of(earlier), own)
        return found

    def _needed(self, records: Records, threads: Threads) -> Cells:
        """The ranks of the scopes that include each access and thread."""
        return self.grids.scope(self.packing.thread_of(records), threads)

    # ── release and acquire ─────────────────────────────────────────────────────────────

    def fenced(self, threads: Threads, order: Order | Proxy | PartialFence, scope: Scope) -> None:
        """Threads have executed a fence."""
        if isinstance(order, Proxy):
            if order in ASYNC_SPACES:
                self.proxy_fences.fence(threads, ASYNC_SPACES[order])
            return
        for thread in threads.tolist():
            if order is PartialFence.AFTER_THREAD_SYNC:
                self.patterns.acquire_of_kind(thread, TENSOR_MEMORY)
            elif isinstance(order, PartialFence):
                self.patterns.fence_of_kind(thread, MBARRIERS if order is PartialFence.MBARRIER_INIT else TENSOR_MEMORY)
            else:
                self.communication.fence(thread, order, scope)

    def ended(self, allocation: Allocation, first: int | None) -> None:
        """The memory of some CTAs has ended; `first` is their first thread, if all of their threads have ended."""
        shadow = self._shadows.pop(allocation, None)
        if shadow is None or first is None or allocation.space is not Space.SHARED:
            return
        if not self.grids.clustered and not self.grids.has_agents:
            return
        for record, owner, byte in outliving(shadow, self.cluster_order, self.packing, first, self._goes_on):
            site, thread = self.sites[int(self.packing.site_of(record))], int(self.packing.thread_of(record))
            self.ends(CtaEnd(allocation, site, int(self.grids.owner(thread)), owner, byte & -site.size))

    def _goes_on(self, site: int) -> bool:
        """Is it work that does not end with its thread?"""
        return not self.sites[site].bound.summary.own_groups

    # ── barriers ────────────────────────────────────────────────────────────────────────

    def ctas_synchronized(self, first: int, ctas: int) -> None:
        """All threads of some CTAs have met; `first` is the first of these threads."""
        self.clocks.meet_ctas(first, ctas)

    def arrived(self, key: BarrierKey, threads: Threads) -> None:
        """Threads of a CTA pass their knowledge to a barrier, and go on."""
        self._arrived[key] = joined(self._arrived.get(key), self.clocks.snapshot(threads))
        self.clocks.tick(threads)

    def opened(self, key: BarrierKey, groups: Sequence[tuple[Bound, Threads]]) -> None:
        """Join the clocks of the threads at a barrier: each that waits learns what all know."""
        more = self._arrived.pop(key, None)
        if not groups:
            return
        threads = np.concatenate([each for _, each in groups])
        home = int(self.clocks.home(threads[0]))
        if len(threads) == self.grids.size(home) and more is None:
            self.clocks.meet_ctas(home, 1)
        else:
            self.clocks.meet(threads, more)

    def warps_synchronized(self, bound: Bound, groups: Sequence[Threads]) -> None:
        """Lanes have met: `bar.warp.sync` orders their accesses, other collectives do not (PTX 9.7.13.2)."""
        if orders_lanes(bound.i):
            for threads in groups:
                self.clocks.meet(threads)
        elif self._invalidates_mbarriers(bound.program):
            for threads in groups:
                self._come_as_far(threads)

    def all_warps_synchronized(self, bound: Bound, first: int, ctas: int) -> None:
        """The same for all warps of some CTAs."""
        if orders_lanes(bound.i):
            self.clocks.meet_warps(first, ctas)
        elif self._invalidates_mbarriers(bound.program):
            size = self.grids.size(first)
            for cta in range(first, first + ctas * size, size):
                for warp in range(cta, cta + size, WARP):
                    self._come_as_far(np.arange(warp, min(warp + WARP, cta + size), dtype=np.int64))

    def _come_as_far(self, threads: Threads) -> None:
        """Lanes have waited for each other at a collective that orders no accesses."""
        self.clocks.come_as_far(threads)
        self.clocks.tick(threads)

    # ── device-side launches ────────────────────────────────────────────────────────────

    def launches(self, grid: int, thread: int) -> None:
        """A thread launches a grid."""
        self.grid_order.launches(grid, thread)

    def child_begins(self, scene: Scene, after: Sequence[int]) -> None:
        """A launched grid begins, after some grids have ended."""
        threads = self.clocks.grow(scene.grid, scene.shape.ctas, scene.shape.threads)
        self._check_size()
        self.proxy_fences.grow(len(threads))
        if self._agents is not None:
            self._agents.grow()
        self.grid_order.begins(scene.grid, threads, after)

    def child_ends(self, grid: int) -> None:
        """A grid has ended, together with all grids that it launched."""
        self.grid_order.ended(grid)

    def waited(self, threads: Threads, grids: Sequence[int]) -> None:
        """Threads have waited for ended grids."""
        self.grid_order.waited(threads, grids)


def invalidates_mbarriers(program: Program | None) -> bool:
    """Does a module have an `mbarrier.inval`?"""
    functions = program.made_functions.values() if program is not None else ()
    return any(invalidates(bound) for function in functions for bound in function.instructions)


__all__ = ["RaceDetector"]

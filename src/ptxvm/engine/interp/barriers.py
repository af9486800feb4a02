"""Reconvergence at barriers and warp collectives: which threads wait, and when they are released (PTX 9.7.13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.faults import Count
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane
from ptxvm.named_tuple import NamedTuple

Key = tuple[int, int, int]  # minus the depth of calls, the routine, the segment


class Waiting(NamedTuple):
    """Lanes that wait in a segment."""

    key: Key
    lanes: LaneNumbers


@dataclass(slots=True)
class BarrierPhase:
    """One barrier of one CTA in one phase: the threads that arrived, and how many must arrive."""

    threads: int | None = None
    waiting: list[Waiting] = field(default_factory=list)
    arrived: list[PerLane] = field(default_factory=list)
    ayes: int = 0
    voters: int = 0


class WarpWaits:
    """Lanes that wait at warp collectives, by mnemonic."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.pools: dict[str, list[Waiting]] = {}
        self.meeting: dict[str, int] = {}  # how many warps meet

    def arrive(self, mnemonic: str, waiting: Waiting, warps: int) -> Iterator[Waiting]:
        """Lanes arrive at a collective of so many warps; yields the lanes that are released."""
        self.meeting[mnemonic] = warps
        pool = self.pools.setdefault(mnemonic, [])
        pool.append(waiting)
        yield from self.settle(mnemonic)

    def settle(self, mnemonic: str) -> list[Waiting]:
        """Release the lanes whose partners have all arrived with the same mask (PTX 9.7.13.9)."""
        here = self._here([self.pools[mnemonic]])
        wanted, ready = self._complete(here)
        lanes = np.flatnonzero(ready)
        if lanes.size:
            ready[lanes] = self.agree(lanes, wanted[lanes])
        if self.meeting[mnemonic] > 1 and lanes.size:
            ready &= self._whole(ready, self.meeting[mnemonic])
        return self._release(mnemonic, ready, wanted)

    def _whole(self, ready: PerLane, warps: int) -> PerLane:
        """A predicate of all lanes: are all lanes of its group of so many warps ready?  None of them may have ended."""
        layout = self.cohort.layout
        of_cta = -(-layout.warps_of_cta // warps)
        group = layout.cta.astype(np.int64) * of_cta + layout.thread.astype(np.int64) // (warps * WARP)
        return np.bincount(group[ready], minlength=int(group[-1]) + 1)[group] == warps * WARP

    def settle_stuck(self) -> list[Waiting]:
        """Release lanes with different masks in warps that could never go on otherwise; PTX leaves their results open."""
        layout = self.cohort.layout
        alive = layout.warp_bits(self.cohort.alive, None)
        stuck = alive & ~layout.warp_bits(self._here(self.pools.values()), None) == 0
        found = []
        for mnemonic, pool in self.pools.items():
            if self.meeting[mnemonic] > 1:
                continue
            wanted, ready = self._complete(self._here([pool]))
            found += self._release(mnemonic, ready & stuck, wanted)
        return found

    def _here(self, pools: Iterable[list[Waiting]]) -> PerLane:
        """A predicate of all lanes: does the lane wait in one of the pools?"""
        here = np.zeros(self.cohort.size, np.bool_)
        for pool in pools:
            for waiting in pool:
                here[waiting.lanes] = True
        return here

    def _complete(self, here: PerLane) -> tuple[PerLane, PerLane]:
        """The live lanes that each lane waits for, and a predicate: does the lane wait, and do all of these wait too?"""
        layout = self.cohort.layout
        wanted = self.cohort.members & layout.warp_bits(self.cohort.alive, None)
        return wanted, here & (wanted & ~layout.warp_bits(here, None) == 0)

    def agree(self, lanes: Lanes, wanted: PerLane) -> PerLane:
        """A predicate of some lanes, or of all: do all partners of the lane wait for the same lanes?"""
        if not np.ndim(wanted) or (wanted == wanted[0]).all():
            return True
        layout = self.cohort.layout
        _, which = np.unique(layout.warp[lanes].astype(np.int64) << 32 | wanted, return_inverse=True)
        same = np.zeros(int(which.max()) + 1, np.uint32)
        np.bitwise_or.at(same, which, np.uint32(1) << layout.lane[lanes].astype(np.uint32))
        return wanted & ~same[which] == 0

    def _release(self, mnemonic: str, ready: PerLane, wanted: PerLane) -> list[Waiting]:
        """Take lanes out of a pool."""
        if not ready.any():
            return []
        released: dict[Key, list[LaneNumbers]] = {}
        left = []
        for waiting in self.pools[mnemonic]:
            go = ready[waiting.lanes]
            if go.any():
                released.setdefault(waiting.key, []).append(waiting.lanes[go])
            if not go.all():
                left.append(Waiting(waiting.key, waiting.lanes[~go]))
        self.pools[mnemonic] = left
        self.cohort.lanes_missed(mnemonic, np.flatnonzero(ready & (wanted != self.cohort.members)))
        self.cohort.members[ready] = wanted[ready]
        self.cohort.warps_synchronized(mnemonic, np.flatnonzero(ready))
        return [Waiting(key, together(parts)) for key, parts in released.items()]

    def __bool__(self) -> bool:
        return any(self.pools.values())


class CtaBarriers:
    """The barriers of all CTAs of a cohort."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.barriers: dict[tuple[int, int], BarrierPhase] = {}

    def arrive(
        self, lanes: LaneNumbers, numbers: PerLane, threads: PerLane, votes: PerLane, key: Key | None, bound: Bound
    ) -> list[Waiting]:
        """Lanes arrive at barriers, and wait there if `key` is given; returns the lanes that are released.

        `numbers`, `threads` (or None) and `votes` (or None) are arrays like `lanes`.
        """
        ctas = self.cohort.layout.cta[lanes]
        where = ctas * 256 + numbers
        released: list[Waiting] = []
        for each in np.unique(where):
            chosen = where == each
            cta, number = divmod(int(each), 256)
            barrier = self.barriers.setdefault((cta, number), BarrierPhase())
            some = lanes[chosen]
            barrier.arrived.append(some)
            if threads is not None:
                barrier.threads = int(threads[chosen][0])
            self.cohort.barrier_joined(cta, number, some, None if threads is None else barrier.threads, bound)
            if key is not None:
                barrier.waiting.append(Waiting(key, some))
                barrier.voters += len(some)
                if votes is not None:
                    barrier.ayes += int(np.count_nonzero(votes[chosen]))
            released += self.settle(cta, number)
        return released

    def settle(self, cta: int, number: int) -> list[Waiting]:
        """Open a barrier if enough threads have arrived."""
        barrier = self.barriers[cta, number]
        if not barrier.arrived or not self._complete(cta, barrier):
            return []
        del self.barriers[cta, number]
        cohort = self.cohort
        for waiting in barrier.waiting:
            cohort.votes_for[waiting.lanes] = barrier.ayes
            cohort.voters[waiting.lanes] = barrier.voters
        cohort.barrier_opened(cta, number, barrier.waiting)
        return barrier.waiting

    def settle_all(self) -> list[Waiting]:
        """Check every barrier again, after threads have ended."""
        return [w for cta, number in list(self.barriers) for w in self.settle(cta, number)]

    def _complete(self, cta: int, barrier: BarrierPhase) -> bool:
        """Have enough threads arrived: all live ones, or `threads`?  A warp that arrived whole counts as 32 (PTX 9.7.13.1)."""
        layout, threads = self.cohort.layout, self.cohort.layout.threads
        here = np.zeros(layout.warps_of_cta * WARP, np.bool_)
        for lanes in barrier.arrived:
            here[layout.thread[lanes]] = True
        alive = np.zeros_like(here)
        alive[:threads] = self.cohort.alive[cta * threads : (cta + 1) * threads]
        if barrier.threads is None:
            return bool((here | ~alive).all())
        whole = (here | ~alive).reshape(-1, WARP).all(axis=1) & here.reshape(-1, WARP).any(axis=1)
        counted = np.where(whole, WARP, here.reshape(-1, WARP).sum(axis=1)).sum()
        return bool(counted >= barrier.threads)

    def count(self, number: int, barrier: BarrierPhase) -> dict[int, Count]:
        """How many threads have come to a barrier, and how many it expects; nothing where that is the whole CTA."""
        if barrier.threads in (None, self.cohort.layout.warps_of_cta * WARP):
            return {}
        return {number: (len(set().union(*(lanes.tolist() for lanes in barrier.arrived))), barrier.threads)}

    def __bool__(self) -> bool:
        return any(b.waiting for b in self.barriers.values())


def together(parts: list[LaneNumbers]) -> LaneNumbers:
    """The lanes of all parts, in order."""
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


def release_whole(cohort: Cohort, votes: PerLane) -> None:
    """All threads of all CTAs are at one barrier: release them, and count their votes."""
    layout = cohort.layout
    cohort.ctas_synchronized()
    cohort.voters[...] = layout.threads
    if votes is not None:
        ballots = np.broadcast_to(votes, cohort.size).reshape(-1, layout.threads).sum(axis=1)
        cohort.votes_for = ballots.astype(np.uint32)[layout.cta]

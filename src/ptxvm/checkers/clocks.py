"""Vector clocks: what each thread of a grid knows of the others, compressed by CTA and warp.

Every thread has a clock, which stamps its accesses.  Thread t *knows* an access of thread u with stamp c if the access precedes
the next operation of t in base causality order (PTX 8.9.5).  After a barrier of a whole CTA, its threads know all accesses of
the CTA: this takes one number per thread, not one per pair.  The same holds for a whole warp.  `Knowledge` holds the rest: what
release and acquire, or barriers of some of the threads, make known.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.grids import Grids
from ptxvm.checkers.shadow import Packing
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.events import Threads

Ints = npt.NDArray[np.int64]
FENCED, OFFERED = "fenced", "offered"  # kinds of knowledge that `fence_order` attaches to threads
TENSOR_MEMORY, MBARRIERS = "tensor memory", "mbarriers"  # knowledge of the operations of one kind alone, by partial fences
PROGRESS = "progress"  # how far other threads must have come, whether or not their accesses are visible
Key = int | tuple[str, int, int]
Knowledge = dict[Key, Ints]  # by the first thread of a CTA: the last known clock of each of its threads; never modified


def joined(a: Knowledge | None, b: Knowledge) -> Knowledge:
    """The union of two pieces of knowledge."""
    if a is None or a is b:
        return b
    together = dict(a)
    for cta, row in b.items():
        mine = a.get(cta)
        if mine is not row:
            together[cta] = row if mine is None else np.maximum(mine, row)
    return together


def of_kind(knowledge: Knowledge, kind: str) -> Knowledge:
    """The part of a piece of knowledge that concerns operations of one kind."""
    found: Knowledge = {(kind, 0, cta): row for cta, row in knowledge.items() if isinstance(cta, int)}
    return joined(only(knowledge, kind), found)


def only(knowledge: Knowledge, kind: str) -> Knowledge:
    """The part of a piece of knowledge that is of one kind alone."""
    return {key: row for key, row in knowledge.items() if isinstance(key, tuple) and key[0] == kind}


class Clocks:
    """The clocks of the threads of a grid and of the grids that it launches."""

    def __init__(self, ctas: int, threads: int, packing: Packing, cluster: int = 1) -> None:
        """A grid of CTAs of some threads, `cluster` of which are a cluster."""
        self.grids = Grids(threads, ctas * threads, packing.threads // 2, cluster)
        self._limit = packing.stamps
        self.home = self.grids.first_of_cta
        self.now = np.ones(ctas * threads, np.int64)
        self.cta_known = np.zeros(ctas * threads, np.int64)  # the thread knows every access of its CTA up to this stamp
        self.warp_known = np.zeros(ctas * threads, np.int64)  # and of its warp
        self.warps_used = False
        self._which = np.zeros(ctas * threads, np.int64)  # the number of the further knowledge of each thread; 0 is none
        self._held: dict[int, Knowledge] = {}
        self._parts: dict[tuple[int, str], list[tuple[int, int, Ints]]] = {}
        self._last, self._most = 0, 64

    def grow(self, grid: int, ctas: int, threads: int) -> Threads:
        """Add a grid; returns its threads."""
        first = self.grids.threads
        self.grids.add(grid, threads, ctas * threads)
        more = np.zeros(ctas * threads, np.int64)
        self.now = np.concatenate([self.now, more + 1])
        self.cta_known, self.warp_known, self._which = (
            np.concatenate([column, more]) for column in (self.cta_known, self.warp_known, self._which)
        )
        return np.arange(first, self.grids.threads, dtype=np.int64)

    # ── questions ───────────────────────────────────────────────────────────────────────

    def unknown(self, threads: Threads, others: Threads, stamps: Ints) -> npt.NDArray[np.bool_]:
        """Which accesses, of `others` with `stamps`, does each thread not know?"""
        same: npt.NDArray[np.bool_] = self.grids.together(others, threads)
        known = same & (stamps <= self.cta_known[threads])
        if self.warps_used:
            known |= self.mates(threads, others) & (stamps <= self.warp_known[threads])
        if self._held and not known.all():
            self._ask_further(known, threads, others, stamps)
        return np.logical_not(known)

    def mates(self, threads: Threads, others: Threads) -> npt.NDArray[np.bool_]:
        """Which threads are of one warp with the others?"""
        home = self.home(threads)
        found: npt.NDArray[np.bool_] = self.grids.together(others, threads) & (
            (others - home) // WARP == (threads - home) // WARP
        )
        return found

    def _ask_further(self, known: npt.NDArray[np.bool_], threads: Threads, others: Threads, stamps: Ints) -> None:
        rest = np.flatnonzero(~known)
        which = self._which[threads[rest]]
        for number in np.unique(which[which > 0]).tolist():
            at = rest[which == number]
            ctas = self.home(others[at])
            for cta in np.unique(ctas).tolist():
                row = self._held[number].get(cta)
                if row is not None:
                    mine = at[ctas == cta]
                    known[mine] = stamps[mine] <= row[others[mine] - cta]

    def knows(self, thread: int, other: int, stamp: int) -> bool:
        """Does a thread know an access?  It knows its own accesses."""
        if thread == other:
            return True
        return not self.unknown(np.array([thread], np.int64), np.array([other], np.int64), np.array([stamp], np.int64))[0]

    def knows_of_kind(self, kind: str, thread: int, other: int, stamp: int) -> bool:
        """Does a thread know an operation of a kind that partial fences order?"""
        home = int(self.home(other))
        return self.knows(thread, other, stamp) or any(
            cta == home and stamp <= row[other - home] for _, cta, row in self.part(thread, kind)
        )

    def differing(self, threads: Threads, groups: Ints) -> Ints:
        """The positions of at most two threads for each group and state of knowledge; the other threads know the same."""
        home = self.home(threads)
        warps = home << 6 | (threads - home) // WARP
        columns = (self._which[threads], self.warp_known[threads], self.cta_known[threads], warps, groups)
        order = np.lexsort(columns)
        same = np.ones(max(len(order) - 1, 0), np.bool_)
        for column in columns:
            same &= column[order[1:]] == column[order[:-1]]
        third = np.zeros(len(order), np.bool_)
        third[2:] = same[1:] & same[:-1]
        return order[~third]

    # ── learning ────────────────────────────────────────────────────────────────────────

    def snapshot(self, threads: Threads) -> Knowledge:
        """The joint knowledge of some threads, including their own accesses; usually they are of one CTA."""
        home = self.home(threads)
        cta = int(home[0])
        if (home != cta).any():
            return reduce(joined, [self.snapshot(threads[home == each]) for each in np.unique(home)])
        within = threads - cta
        row = np.full(self.grids.size(cta), self.cta_known[threads].max())
        if self.warps_used:
            for warp in np.unique(within // WARP).tolist():
                mates = slice(warp * WARP, (warp + 1) * WARP)
                row[mates] = np.maximum(row[mates], self.warp_known[threads[within // WARP == warp]].max())
        row[within] = self.now[threads]
        return joined(self.further(threads), {cta: row})

    def all_of(self, grid: int) -> Knowledge:
        """The joint knowledge of the threads of a grid, including all their accesses."""
        threads = self.grids.of(grid)
        size = self.grids.size(threads.start)
        own: Knowledge = {cta: self.now[cta : cta + size].copy() for cta in threads[::size]}
        return joined(self.further(np.arange(threads.start, threads.stop, dtype=np.int64)), own)

    def further(self, threads: Threads) -> Knowledge | None:
        """The joint knowledge of threads, beside what barriers made known of their CTA and warp; None is nothing."""
        found: Knowledge | None = None
        if self._held:
            which = self._which[threads]
            for number in np.unique(which[which > 0]).tolist():
                found = joined(found, self._held[number])
        return found

    def learn(self, threads: Threads, knowledge: Knowledge) -> None:
        """Add knowledge to threads; threads with equal knowledge keep sharing one record."""
        before = self._which[threads]
        for number in np.unique(before).tolist():
            self._which[threads[before == number]] = self._hold(joined(self._held.get(number), knowledge))

    def number(self, thread: int) -> int:
        """The number of a thread's knowledge; it changes when the thread learns more."""
        return int(self._which[thread])

    def part(self, thread: int, kind: str) -> list[tuple[int, int, Ints]]:
        """The knowledge of one kind that a thread carries: the group, the CTA, and the row of clocks."""
        key = self.number(thread), kind
        if key not in self._parts:
            column = self._held.get(key[0], {})
            self._parts[key] = [(k[1], k[2], row) for k, row in column.items() if isinstance(k, tuple) and k[0] == kind]
        return self._parts[key]

    def _hold(self, knowledge: Knowledge) -> int:
        """Number a piece of knowledge; knowledge that no thread has is dropped from time to time."""
        if len(self._held) > self._most:
            self._held = {n: self._held[n] for n in np.unique(self._which).tolist() if n}
            self._parts.clear()
            self._most = 2 * len(self._held) + 64
        self._last += 1
        self._held[self._last] = knowledge
        return self._last

    def row(self, threads: Threads, stamps: Ints) -> Knowledge:
        """The knowledge of the accesses of some threads up to their stamps, and nothing else."""
        found: Knowledge = {}
        home = self.home(threads)
        for cta in np.unique(home).tolist():
            mine = home == cta
            found[cta] = row = np.zeros(self.grids.size(cta), np.int64)
            np.maximum.at(row, threads[mine] - cta, stamps[mine])
        return found

    def tick(self, threads: Threads | int) -> None:
        """Advance the clocks of threads: later accesses have new stamps."""
        self.now[threads] += 1
        if int(np.max(self.now[threads])) >= self._limit:
            raise Unsupported(f"the check 'race' of a thread that synchronises {self._limit:,} times")

    # ── barriers ────────────────────────────────────────────────────────────────────────

    def meet_ctas(self, first: int, ctas: int) -> None:
        """All threads of some CTAs have met, CTA by CTA; `first` is the first thread."""
        size = self.grids.size(first)
        mine = slice(first, first + ctas * size)
        latest = self.now[mine].reshape(ctas, size).max(axis=1).repeat(size)
        self.cta_known[mine] = latest
        self.now[mine] = latest
        self.tick(np.arange(mine.start, mine.stop, dtype=np.int64))
        if self._held:
            for cta in range(mine.start, mine.stop, size):
                self._share(np.arange(cta, cta + size, dtype=np.int64), cta)

    def meet_warps(self, first: int, ctas: int) -> None:
        """All lanes of all warps of some CTAs have met, warp by warp; `first` is the first thread."""
        self.warps_used = True
        size = self.grids.size(first)
        count, whole = ctas * size, -(-size // WARP) * WARP
        mine = slice(first, first + count)
        for column in (self.cta_known, self.now):
            padded = np.zeros((ctas, whole), np.int64)
            padded[:, :size] = column[mine].reshape(ctas, size)
            latest = padded.reshape(ctas, -1, WARP).max(axis=2).repeat(WARP, axis=1)[:, :size]
            column[mine] = latest.ravel()
        self.warp_known[mine] = self.now[mine]
        self.tick(np.arange(first, first + count, dtype=np.int64))
        if self._held:
            for start in range(first, first + count, size):
                for warp in range(start, start + size, WARP):
                    self._share(np.arange(warp, min(warp + WARP, start + size), dtype=np.int64), None)

    def meet(self, threads: Threads, more: Knowledge | None = None) -> None:
        """Some threads of a CTA have met; they also learn `more`."""
        together = self.snapshot(threads)
        if more is not None:
            together = joined(more, together)
        self.learn(threads, together)
        self.tick(threads)

    def come_as_far(self, threads: Threads) -> None:
        """Some threads have waited for each other: each knows how far the others have come, and nothing of their accesses."""
        self.learn(threads, of_kind(self.snapshot(threads), PROGRESS))

    def _share(self, threads: Threads, cta: int | None) -> None:
        """Each thread learns the further knowledge of all; knowledge of `cta`, if given, is implied and dropped."""
        found = self.further(threads)
        if found is not None:
            rest = {other: row for other, row in found.items() if other != cta}
            self._which[threads] = self._hold(rest) if rest else 0

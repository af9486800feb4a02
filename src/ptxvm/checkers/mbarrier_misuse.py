"""Misuse of mbarriers: operations without an mbarrier, ordinary accesses to one, wrong counts (PTX 9.7.13.15)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.state_space import Space
from ptxvm.isa.effects import Verb
from ptxvm.isa.mbarrier import COUNT, PENDING, PHASE, TRANSACTION_BITS, TRANSACTIONS, must_not_complete
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Threads, Words

Report = Callable[[Access, int, str], None]  # an access, its thread, and what is wrong
Location = tuple[Allocation, int]
SIZE = 8


class Mbarriers:
    """Tracks the mbarriers of a launch and their phases."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._held: dict[Allocation, set[int]] = {}
        self._unseen: set[Location] = set()  # mbarriers whose last phase no thread has found over
        self._phases: dict[Location, int] = {}  # the number of completed phases
        self._states: dict[int, dict[Location, int]] = {}  # by returned state: the last phase of each mbarrier with this state

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read: a test of an mbarrier, or an ordinary read."""
        if "mbarrier" in access.attributes:
            self._expect(access, threads, allocation, offsets)
        else:
            self._spare(access, threads, allocation, offsets, "reads from")

    def wrote(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have written: they initialise or invalidate an mbarrier, or write ordinarily."""
        how = access.attributes.get("mbarrier")
        if how is None:
            self._spare(access, threads, allocation, offsets, "writes to")
            return
        held = self._held.setdefault(allocation, set())
        for thread, offset in zip(threads.tolist(), offsets.tolist(), strict=True):
            if how is MbarrierStep.INIT and offset in held:
                self.report(
                    access, thread, "there is an mbarrier already, which must be invalidated before its memory is used again"
                )
            elif how is MbarrierStep.INVAL and offset not in held:
                self.report(access, thread, "there is no mbarrier to be invalidated")
            if allocation.space is not Space.SHARED:
                self.report(access, thread, f"an mbarrier lies in .shared, and this is in .{allocation.space}")
            if how is MbarrierStep.INIT and not _count(words_at(allocation, offset)):
                self.report(access, thread, f"an mbarrier is for 1 to {COUNT:,} arrivals")
            (held.add if how is MbarrierStep.INIT else held.discard)(offset)
            self._unseen.discard((allocation, offset))
            self._forget_states({(allocation, offset)})

    def updated(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have executed atomics."""
        self._spare(access, threads, allocation, offsets, "updates")

    def copying(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Threads have started a copy."""
        self._spare(access, threads, allocation, offsets, "copies to" if verb is Verb.WRITE else "copies from")

    def phase_over(self, allocation: Allocation, offsets: Offsets) -> None:
        """A thread has found the last phase over."""
        if self._unseen:
            self._unseen -= {(allocation, offset) for offset in offsets.tolist()}

    def signalled(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, words: tuple[Words, Words]
    ) -> None:
        """Threads have updated mbarriers."""
        self._expect(access, threads, allocation, offsets)
        before, after = words
        turned = (before ^ after) >> np.uint64(PHASE) != 0
        more = _count(after) > _count(before)
        if access.attributes["mbarrier"] in (MbarrierStep.ARRIVE, MbarrierStep.DROP):
            for n in np.flatnonzero(more & ~turned).tolist()[:1]:
                self.report(access, int(threads[n]), "more arrivals than the mbarrier expects in a phase")
            for n in np.flatnonzero(before == after).tolist()[:1]:
                self.report(access, int(threads[n]), f"an arrival counts as 1 to {COUNT:,}")
            self._arrive_in_turn(access, threads, allocation, offsets, turned)
            self._give_states(allocation, offsets, before)
            if must_not_complete(access.bound.i):
                for n in np.flatnonzero(turned).tolist()[:1]:
                    self.report(access, int(threads[n]), "the arrival ends the phase, which .noComplete rules out")
        elif turned.any():
            self._unseen |= {(allocation, offset) for offset in offsets[turned].tolist()}
        for offset in offsets[turned].tolist():
            self._phases[allocation, offset] = self._phases.get((allocation, offset), 0) + 1
        self._count_transactions(access, threads, words)

    def asked(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, states: Words) -> None:
        """A tested state must come from this mbarrier, in its current phase or the one before (PTX 9.7.13.15.16)."""
        pairs, first = np.unique(np.stack([offsets.view(np.uint64), states]), axis=1, return_index=True)
        for thread, offset, state in zip(threads[first].tolist(), *pairs.tolist(), strict=True):
            phases, location = self._states.get(state, {}), (allocation, offset)
            over = self._phases.get(location, 0) - phases.get(location, 0)
            if location not in phases:
                whose = "of another mbarrier" if phases else "that no arrival has given"
                self.report(access, thread, f"the state is one {whose}")
            elif over > 1:
                self.report(
                    access, thread, f"since the arrival that gave the state {over} phases have ended, and only 1 may have"
                )

    def _give_states(self, allocation: Allocation, offsets: Offsets, states: Words) -> None:
        """Record the states that arrivals return, phase by phase."""
        over: dict[int, int] = {}
        last: dict[int, int] = {}
        for offset, state in zip(offsets.tolist(), states.tolist(), strict=True):
            if last.get(offset, state) >> PHASE != state >> PHASE:
                over[offset] = over.get(offset, 0) + 1
            last[offset] = state
            location = allocation, offset
            self._states.setdefault(state, {})[location] = self._phases.get(location, 0) + over.get(offset, 0)

    def _forget_states(self, locations: set[Location]) -> None:
        """Drop the states that these mbarriers returned."""
        for location in locations:
            self._phases.pop(location, None)
        for phases in self._states.values():
            for location in locations & phases.keys():
                del phases[location]

    def _arrive_in_turn(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, turned: npt.NDArray[np.bool_]
    ) -> None:
        """A thread must find a phase over before any thread arrives in the next phase (PTX 9.7.13.15.4)."""
        if not self._unseen and not turned.any():
            return
        for thread, offset, over in zip(threads.tolist(), offsets.tolist(), turned.tolist(), strict=True):
            location = allocation, offset
            if location in self._unseen and not access.attributes.get("asynchronous"):
                self.report(
                    access, thread, "an arrival in the next phase before any thread found the last one over (test_wait)"
                )
                self._unseen.discard(location)
            if over:
                self._unseen.add(location)

    def _count_transactions(self, access: Access, threads: Threads, words: tuple[Words, Words]) -> None:
        """Both the expected and the completed transactions may be ahead of the other, up to a limit."""
        before, after = (_transactions(each) for each in words)
        change = after - before
        past = (abs(change) > TRANSACTION_BITS // 2) | (abs(after) > COUNT)
        for n in np.flatnonzero(past).tolist()[:1]:
            self.report(access, int(threads[n]), f"more than {COUNT:,} transactions are expected, or have ended unexpected")

    def ended(self, allocation: Allocation) -> None:
        """An allocation has ended."""
        self._held.pop(allocation, None)
        self._unseen = {location for location in self._unseen if location[0] is not allocation}
        self._forget_states({location for phases in self._states.values() for location in phases if location[0] is allocation})

    def _expect(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Report accesses where there is no mbarrier."""
        held = self._held.get(allocation, set())
        for n in np.flatnonzero([offset not in held for offset in offsets.tolist()]).tolist()[:1]:
            self.report(access, int(threads[n]), "there is no mbarrier: it has not been initialised, or is no more")

    def _spare(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: str) -> None:
        """Report accesses where there is an mbarrier."""
        held = self._held.get(allocation)
        if not held:
            return
        first, size = np.fromiter(held, np.int64), access.type.bytes * access.count
        touched = ((offsets[:, None] < first + SIZE) & (offsets[:, None] + size > first)).any(axis=1)
        for n in np.flatnonzero(touched).tolist()[:1]:
            self.report(access, int(threads[n]), f"this {verb} an mbarrier as if it were ordinary memory")


def _count(words: Words) -> Words:
    return words >> np.uint64(PENDING) & np.uint64(COUNT)


def _transactions(words: Words) -> npt.NDArray[np.int64]:
    """The pending transactions; below 0 if more have completed than are expected."""
    held = (words >> np.uint64(TRANSACTIONS) & np.uint64(TRANSACTION_BITS)).astype(np.int64)
    return np.where(held > TRANSACTION_BITS // 2, held - TRANSACTION_BITS - 1, held)


def words_at(allocation: Allocation, offset: int) -> Words:
    """The word of an mbarrier."""
    start = offset - (allocation.start - allocation.origin)
    return allocation.bytes[start : start + SIZE].view(np.uint64)

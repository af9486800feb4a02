"""Happens-before between launches: release and acquire patterns through memory that launches share (PTX 8.8 and 8.9.4).

A strong write to global memory leaves an *offer* for the threads of other launches: the heads of release patterns that it
publishes.  A strong read that observes the write collects them, and an acquire learns what they know, where the write, the
read, the release and the acquire have scopes that include both launches: the device, or the system where they are on two.

What threads know of other launches travels with all that they know, under the key `(LAUNCHED, launch, CTA)`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.checkers.clocks import Clocks, Knowledge, joined, only
from ptxvm.checkers.patterns import Heads, merge
from ptxvm.checkers.strength import WIDE
from ptxvm.machine.events import Threads
from ptxvm.machine.streams import DEVICE, StreamLaunch
from ptxvm.named_tuple import NamedTuple

LAUNCHED = "launched"
WHOLE = -1  # in place of a CTA: all that a launch has done, as it ended before
NUMBERS = count(1)
Ints = npt.NDArray[np.int64]
Word = tuple[int, int]  # the address of an element and its size
Agent = tuple[int, int]  # a launch and one of its threads


class Offer(NamedTuple):
    """What a strong write leaves for others: its place in the order of the run, its scope, and heads by device and scope.

    `writer` and `stamp` are those of the write, `observers` the threads that have read it, with their clocks at that time.
    """

    number: int
    device: int
    rank: int
    heads: Heads
    writer: Agent
    stamp: int
    observers: dict[Agent, int]


def order_of(launch: StreamLaunch) -> LaunchOrder:
    """The order of a launch that a checker follows."""
    order: LaunchOrder = launch.footprint.order
    return order


class LaunchOrder:
    """What the threads of a launch offer to those of others, and learn from them."""

    def __init__(self, launch: StreamLaunch, clocks: Clocks, synchronised: Callable[[StreamLaunch], None]) -> None:
        """`synchronised` gets each launch of which a thread observes or knows something for the first time, before it does."""
        self.launch, self.clocks, self.synchronised = launch, clocks, synchronised
        self.offers: dict[Word, Offer] = {}
        self.known: dict[int, StreamLaunch] = {}
        """The launches that have synchronised with this one, by their numbers."""
        self._pending: dict[int, Heads] = defaultdict(dict)  # what threads learn at their next acquiring fence
        self._pending_at: dict[tuple[int, Word], Heads] = defaultdict(dict)  # and at their next acquire of a word
        earlier = [each for each in launch.others if each.number in launch.before]
        self._ended: Knowledge = {(LAUNCHED, each.number, WHOLE): np.ones(1, np.int64) for each in earlier}
        for each in earlier:
            self._learn(np.arange(len(clocks.now)), order_of(each).learnt())

    def learnt(self) -> Knowledge:
        """What the threads of the launch together know of others."""
        return only(self.clocks.further(np.arange(len(self.clocks.now))) or {}, LAUNCHED)

    def _others(self) -> Iterator[StreamLaunch]:
        """The launches that no stream or event orders before this one: they have ended, or run beside it."""
        for each in (*self.launch.others, *DEVICE.running):
            if each is not self.launch and each.footprint is not None and each.number not in self.launch.before:
                yield each

    def _orders(self) -> Iterator[LaunchOrder]:
        return map(order_of, self._others())

    @property
    def has_offers(self) -> bool:
        """Is there something that a thread could learn?"""
        return any(each.offers for each in self._orders())

    def _needed(self, device: int) -> int:
        """The rank of the narrowest scope that includes a device and this launch."""
        return WIDE if device == self.launch.device else Scope.SYS.rank

    # ── patterns ────────────────────────────────────────────────────────────────────────

    def observed(self, word: Word, rank: int) -> Offer | None:
        """The last strong write of a word, by whatever launch, if a strong access of this one observes it."""
        offers = [each.offers[word] for each in (self, *self._orders()) if word in each.offers]
        last = max(offers, default=None)
        return None if last is None or min(last.rank, rank) < self._needed(last.device) else last

    def collect(self, thread: int, word: Word, order: Order, rank: int) -> None:
        """A strong read collects the heads of the write that it observes; an acquire learns those of its word at once."""
        last = self.observed(word, rank)
        if last is None:
            return
        self._meet({last.writer[0]})
        last.observers.setdefault((self.launch.number, thread), int(self.clocks.now[thread]))
        merge(self._pending[thread], last.heads)
        merge(self._pending_at[thread, word], last.heads)
        if order.acquires:
            self._take_in(thread, rank, self._pending_at[thread, word])

    def fence(self, thread: int, order: Order, scope: Scope) -> None:
        """An acquiring fence learns the heads that its thread has collected."""
        if order.acquires and thread in self._pending:
            self._take_in(thread, scope.rank, self._pending[thread])

    def publish(self, thread: int, word: Word, stamp: int, rank: int, heads: Heads, observed: Offer | None = None) -> None:
        """Offer the heads of a strong write, and those of the write that it observed if it is a read-modify-write."""
        offered: Heads = dict(observed.heads) if observed is not None else {}
        for (_, scope), knowledge in heads.items():
            if scope >= WIDE:
                merge(offered, {(self.launch.device, scope): self._for_others(knowledge)})
        writer = self.launch.number, thread
        self.offers[word] = Offer(next(NUMBERS), self.launch.device, rank, offered, writer, stamp, {})

    def has_offer(self, word: Word) -> bool:
        """Has any launch offered something by a write of a word?"""
        return any(word in each.offers for each in (self, *self._orders()))

    def _for_others(self, knowledge: Knowledge) -> Knowledge:
        """Knowledge of this grid, as other launches have it."""
        own: Knowledge = {(LAUNCHED, self.launch.number, cta): row for cta, row in knowledge.items() if isinstance(cta, int)}
        return joined(joined(only(knowledge, LAUNCHED), self._ended), own)

    def _take_in(self, thread: int, rank: int, heads: Heads) -> None:
        for (device, scope), knowledge in list(heads.items()):
            if min(scope, rank) >= self._needed(device):
                self._learn(np.array([thread], np.int64), knowledge)
                del heads[device, scope]

    def _learn(self, threads: Threads, knowledge: Knowledge) -> None:
        self._meet({key[1] for key in knowledge if isinstance(key, tuple)})
        if knowledge:
            self.clocks.learn(threads, knowledge)

    def _meet(self, launches: set[int]) -> None:
        """Synchronise with launches, by their numbers."""
        for each in [each for each in self._others() if each.number in launches - self.known.keys()]:
            self.synchronised(each)
            self.known[each.number] = each
            order_of(each).known[self.launch.number] = self.launch

    # ── questions ───────────────────────────────────────────────────────────────────────

    def unknown(self, other: LaunchOrder, threads: Threads, accesses: Ints, stamps: Ints) -> npt.NDArray[np.bool_]:
        """Which accesses of another launch, of its threads with stamps, does each thread not know?"""
        unknown = np.ones(len(threads), np.bool_)
        homes = np.asarray(other.clocks.home(accesses))
        numbers = np.array([self.clocks.number(thread) for thread in threads.tolist()], np.int64)
        for number in np.unique(numbers).tolist():
            same = numbers == number
            for launch, cta, row in self.clocks.part(int(threads[np.argmax(same)]), LAUNCHED):
                if launch != other.launch.number:
                    continue
                if cta == WHOLE:
                    unknown[same] = False
                    break
                mine = np.flatnonzero(same & (homes == cta))
                unknown[mine] &= stamps[mine] > row[accesses[mine] - cta]
        return unknown

    def knows_observation(self, thread: int, other: LaunchOrder, word: Word, write: tuple[int, int]) -> bool:
        """Does a thread know that one of its launch has observed a strong write, of a thread with a stamp (PTX 8.9.5)?"""
        offer = other.offers.get(word)
        if offer is None or (offer.writer[1], offer.stamp) != write:
            return False
        mine = ((agent, clock) for (launch, agent), clock in offer.observers.items() if launch == self.launch.number)
        return any(self.clocks.knows(thread, agent, clock) for agent, clock in mine)


__all__ = ["LaunchOrder", "order_of"]

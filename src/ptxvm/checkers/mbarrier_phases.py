"""Happens-before by mbarriers: a thread that finds a phase over follows all arrivals of the phase (PTX 9.7.13.15.16)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from ptxvm.checkers.clocks import Knowledge, joined
from ptxvm.dataclass import dataclass
from ptxvm.isa.mbarrier import PHASE
from ptxvm.machine.events import Words

Location = tuple[int, int]


@dataclass(eq=False, slots=True)
class Batch:
    """Transfers of a thread that an mbarrier counts in one phase: the agent that does them, and how many are under way.

    `knowledge` is what their end makes known: the accesses of the agent, and what the thread knew of agents when it started
    them.  `thread_knew` is the number of all that it knew then.
    """

    agent: int
    phase: int
    knowledge: Knowledge
    under_way: int = 0
    thread_knew: int = 0


class Phases:
    """The knowledge that the mbarriers of a grid pass on, by location."""

    def __init__(self) -> None:
        self._current: dict[Location, Knowledge] = {}
        self._over: dict[Location, Knowledge] = {}
        self._counted: dict[Location, set[Batch]] = defaultdict(set)
        self._numbers = Counter[Location]()

    def forget(self, location: Location) -> None:
        """An mbarrier is initialised or invalidated."""
        self._current.pop(location, None)
        self._over.pop(location, None)
        self._counted.pop(location, None)

    def number(self, location: Location) -> int:
        """The number of phases that are over."""
        return self._numbers[location]

    def arrive(self, location: Location, knowledge: Knowledge | None) -> None:
        """A thread arrives, with its knowledge."""
        if knowledge is not None:
            self._current[location] = joined(self._current.get(location), knowledge)

    def counts(self, location: Location, batch: Batch) -> None:
        """A transfer of a batch has ended in the current phase."""
        self._counted[location].add(batch)

    def complete(self, location: Location) -> None:
        """The current phase is over; a batch of which transfers are still under way makes nothing known."""
        for batch in self._counted.pop(location, ()):
            if not batch.under_way:
                self.arrive(location, batch.knowledge)
        self._numbers[location] += 1
        self._over[location] = self._current.pop(location, {})

    def over(self, location: Location) -> Knowledge:
        """The knowledge of all arrivals in the last phase."""
        return self._over.get(location, {})


def phases(words: tuple[Words, Words]) -> Iterator[tuple[slice, bool]]:
    """Split the updates of one mbarrier, in their order, after each end of a phase; does the part end a phase?"""
    before, after = words
    completions = np.flatnonzero((before ^ after) >> np.uint64(PHASE))
    start = 0
    for end in completions.tolist():
        yield slice(start, end + 1), True
        start = end + 1
    if start < len(before):
        yield slice(start, len(before)), False

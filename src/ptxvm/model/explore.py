"""Exploration of the paths through the threads of a kernel: every choice of values for its reads, before any axiom.

What a read may find are the first values of memory, and what some way of some thread writes there.  So the ways are gone
again until nothing new is written.  That has an end, for a write whose value would come from itself is none: such values
come out of thin air (PTX 8.10.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, pairwise, product
from typing import Any

from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.single_thread import Payload, Stage
from ptxvm.model.automaton import automata
from ptxvm.model.combinations import overlap, together
from ptxvm.model.deadline import seconds_left
from ptxvm.model.histories import History
from ptxvm.model.path_run import Before, Chain, Locate, Walk, Written
from ptxvm.model.paths import Encounter, Path
from ptxvm.model.program import Location, Thread

MANY = 4
"""So many chains are told apart; of a value with more it is not known how it came."""
TURNS = 16
"""So often a loop is gone through that has no other way out."""
UNKNOWN: tuple[Chain, ...] = (frozenset(),)


class Values:
    """What each location may hold: its first value, and all that is written over it, with the chains behind it."""

    def __init__(self, first: Mapping[str, int]) -> None:
        self.first = first
        self.written: dict[Location, dict[int, tuple[Chain, ...]]] = {}
        self.gave: dict[tuple[Encounter, str], list[Payload]] = {}
        self.met: dict[str, set[frozenset[Encounter]]] = {}
        self.histories: dict[Location, History] = {}

    def give(self, encounter: Encounter, thread: str, payload: Payload) -> bool:
        """A thread gives values to the threads that it meets; were they not known before?"""
        known = self.gave.setdefault((encounter, thread), [])
        if payload in known:
            return False
        known.append(payload)
        return True

    def end(self, path: Path) -> bool:
        """A way ends, on which its thread has met others so often; is it something new?"""
        known = self.met.setdefault(path.thread.name, set())
        met = frozenset(one.encounter for one in path.exchanges)
        is_new = met not in known
        known.add(met)
        return is_new

    def given(self, encounter: Encounter, thread: str) -> list[Payload | None]:
        """What a thread may give there; None if it may end before: a meeting does not wait for threads that have ended."""
        stays_away = any(encounter not in met for met in self.met.get(thread, ()))
        return [*self.gave.get((encounter, thread), []), *([None] if stays_away else [])]

    def write(self, written: Written) -> bool:
        """A way writes; is it something new?"""
        known, value = self.written.setdefault(written.location, {}), written.value
        before = known.get(value, ())
        known[value] = shortest({*before, *written.chains})
        return self.histories.setdefault(written.location, History()).add(written) or known[value] != before

    def behind(self, location: Location, value: int) -> tuple[Chain, ...]:
        """How a read of the location may come by the value."""
        if value == self.initial(location) or any(o != location and overlap(o, location) for o in self.written):
            return UNKNOWN
        return self.written.get(location, {}).get(value, UNKNOWN)

    def chained(self) -> dict[Location, History]:
        """Where all writes have one order."""
        alone = {location for location in self.written if sum(overlap(location, other) for other in self.written) == 1}
        return {location: self.histories[location] for location in alone if self.histories[location].has_one_order}

    def initial(self, location: Location) -> int:
        """Its bytes of the first value of its variable."""
        return part(self.first.get(location.variable, 0), location.offset, location.size)

    def at(self, location: Location, before: Before) -> list[int]:
        """What a read of the location may find: in each run of bytes, what any write that covers it puts there."""
        over = [other for other in self.written if overlap(other, location)]
        if over == [location] and (found := self.histories[location].after(before, self.initial(location))) is not None:
            return sorted(found)
        ends = {location.offset, location.offset + location.size}
        ends |= {end for other in over for end in (other.offset, other.offset + other.size) if inside(end, location)}
        cuts = sorted(ends)
        found = {0}
        for start, end in pairwise(cuts):
            here = Location(location.variable, start, end - start)
            values = {self.initial(here)}
            for other in over:
                if overlap(other, here):
                    values.update(part(value, start - other.offset, here.size) for value in self.written[other])
            found = {low | value << 8 * (start - location.offset) for low, value in product(found, values)}
        return sorted(found)


def part(value: int, offset: int, size: int) -> int:
    """Some bytes of a value."""
    return value >> 8 * offset & (1 << 8 * size) - 1


def inside(end: int, location: Location) -> bool:
    """Does it cut the location in two?"""
    return location.offset < end < location.offset + location.size


def shortest(chains: Collection[Chain]) -> tuple[Chain, ...]:
    """Those that need no more than another does."""
    least = [chain for chain in chains if not any(other < chain for other in chains)]
    return tuple(sorted(least, key=sorted)) if len(least) <= MANY else UNKNOWN


class Explorer:
    """Goes all ways through the threads of a kernel."""

    def __init__(
        self, stage: Stage, threads: Sequence[Thread], locate: Locate, values: Values, keep: Mapping[str, Sequence[str]]
    ) -> None:
        self.stage, self.threads, self.locate, self.values, self.keep = stage, threads, locate, values, keep
        self.cta_threads = stage.shape.threads
        self.automata = automata(stage, threads, locate, keep)
        self.was_cut = [False] * len(threads)

    def run(self, jumps_back: int) -> Iterator[tuple[Path, ...]]:
        """A way for each thread, each of which could feed the reads of the others.

        Where a thread comes to no end without jumping back more often, it may, up to a limit.
        """
        ways = self.every_way(jumps_back)
        while jumps_back < TURNS and any(cut and not paths for paths, cut in zip(ways, self.was_cut, strict=True)):
            jumps_back *= 2
            ways = self.every_way(jumps_back)
        return together(ways, self.values.initial, self.values.chained())

    def every_way(self, jumps_back: int) -> list[list[Path]]:
        """All ways of all threads."""
        for passed_on in count():
            self.new, self.most = False, dict.fromkeys((thread.name for thread in self.threads), 0)
            ways = [list(self.ways(number, jumps_back)) for number in range(len(self.threads))]
            if not self.new or passed_on > sum(self.most.values()):
                break
        return ways

    def ways(self, number: int, jumps_back: int) -> Iterator[Path]:
        """All ways of one thread."""
        thread, self.was_cut[number] = self.threads[number], False
        left: list[list[Any]] = [[]]
        while left:
            seconds_left()
            walk = Walk(thread, self.cta_threads, self.locate, self.values, left.pop(), jumps_back)
            try:
                registers = self.automata[number].walk(walk)
            except Fault as fault:
                registers, walk.path.fault = {}, fault
            left += walk.others
            self.was_cut[number] |= walk.was_cut
            for written in walk.written:
                self.new |= self.values.write(written)
            for gave in walk.gave:
                self.new |= self.values.give(*gave)
            self.most[thread.name] = max(self.most[thread.name], len(walk.written) + len(walk.gave))
            if registers is not None:
                walk.path.registers.update(registers)
                self.new |= self.values.end(walk.path)
                yield walk.path

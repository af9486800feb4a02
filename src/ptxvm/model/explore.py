"""Exploration of the paths through the threads of a kernel: every choice of values for its reads, before any axiom.

A read may find the initial value of memory, or a value that some path of some thread writes there.  So the paths are explored
again until no new value is written.  This ends, for a write whose value would depend on itself is dropped: such values come
out of thin air (PTX 8.10.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, pairwise, product

from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.single_thread import Payload, Stage
from ptxvm.model.automaton import automata
from ptxvm.model.combinations import overlap, together
from ptxvm.model.deadline import seconds_left
from ptxvm.model.histories import History
from ptxvm.model.litmus_program import Location, Thread
from ptxvm.model.path_run import Chain, Chosen, EarlierAccesses, Locate, PathRun, PathWrite
from ptxvm.model.paths import Encounter, Path

MANY = 4
"""The most chains that are kept for a value; a value with more has an unknown origin."""
MOST_JUMPS_BACK = 16
"""The limit of backward jumps for a thread that has no shorter path to its end."""
UNKNOWN: tuple[Chain, ...] = (frozenset(),)


class LocationValues:
    """The values that each location may hold: the initial value and all written values, with the chains behind them."""

    def __init__(self, first: Mapping[str, int]) -> None:
        self.first = first
        self.written: dict[Location, dict[int, tuple[Chain, ...]]] = {}
        self.offered: dict[tuple[Encounter, str], list[Payload]] = {}
        self.meetings: dict[str, set[frozenset[Encounter]]] = {}
        self.histories: dict[Location, History] = {}

    def offer(self, encounter: Encounter, thread: str, payload: Payload) -> bool:
        """Record values that a thread gives at a meeting; returns whether they are new."""
        known = self.offered.setdefault((encounter, thread), [])
        if payload in known:
            return False
        known.append(payload)
        return True

    def end(self, path: Path) -> bool:
        """Record the meetings of a complete path; returns whether this set of meetings is new."""
        known = self.meetings.setdefault(path.thread.name, set())
        meetings = frozenset(one.encounter for one in path.exchanges)
        is_new = meetings not in known
        known.add(meetings)
        return is_new

    def offers(self, encounter: Encounter, thread: str) -> list[Payload | None]:
        """The values that a thread may give at a meeting; None if it may end before: a meeting waits for live threads only."""
        stays_away = any(encounter not in met for met in self.meetings.get(thread, ()))
        return [*self.offered.get((encounter, thread), []), *([None] if stays_away else [])]

    def write(self, written: PathWrite) -> bool:
        """Record a write of a path; returns whether it is new."""
        known, value = self.written.setdefault(written.location, {}), written.value
        before = known.get(value, ())
        known[value] = shortest({*before, *written.chains})
        return self.histories.setdefault(written.location, History()).add(written) or known[value] != before

    def chains_behind(self, location: Location, value: int) -> tuple[Chain, ...]:
        """The chains of writes through which a read of the location may find the value."""
        if value == self.initial(location) or any(o != location and overlap(o, location) for o in self.written):
            return UNKNOWN
        return self.written.get(location, {}).get(value, UNKNOWN)

    def chained(self) -> dict[Location, History]:
        """The histories of the locations whose writes all have one order."""
        alone = {location for location in self.written if sum(overlap(location, other) for other in self.written) == 1}
        return {location: self.histories[location] for location in alone if self.histories[location].has_one_order}

    def initial(self, location: Location) -> int:
        """The bytes of the location in the initial value of its variable."""
        return part(self.first.get(location.variable, 0), location.offset, location.size)

    def at(self, location: Location, before: EarlierAccesses) -> list[int]:
        """The values that a read of the location may find: each run of bytes is initial or from any write that covers it."""
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
    """Does this offset cut the location in two?"""
    return location.offset < end < location.offset + location.size


def shortest(chains: Collection[Chain]) -> tuple[Chain, ...]:
    """The chains that contain no other chain; an unknown origin if there are more than `MANY`."""
    least = [chain for chain in chains if not any(other < chain for other in chains)]
    return tuple(sorted(least, key=sorted)) if len(least) <= MANY else UNKNOWN


class Explorer:
    """Explores all paths through the threads of a kernel."""

    def __init__(
        self, stage: Stage, threads: Sequence[Thread], locate: Locate, values: LocationValues, keep: Mapping[str, Sequence[str]]
    ) -> None:
        self.stage, self.threads, self.locate, self.values, self.keep = stage, threads, locate, values, keep
        self.cta_threads = stage.shape.threads
        self.automata = automata(stage, threads, locate, keep)
        self.was_cut = [False] * len(threads)

    def run(self, jumps_back: int) -> Iterator[tuple[Path, ...]]:
        """The combinations of one path for each thread in which writes feed all reads.

        While a thread has no path to its end, the bound of backward jumps is doubled, up to `MOST_JUMPS_BACK`.
        """
        ways = self.all_paths(jumps_back)
        while jumps_back < MOST_JUMPS_BACK and any(cut and not paths for paths, cut in zip(ways, self.was_cut, strict=True)):
            jumps_back *= 2
            ways = self.all_paths(jumps_back)
        return together(ways, self.values.initial, self.values.chained())

    def all_paths(self, jumps_back: int) -> list[list[Path]]:
        """All paths of all threads; repeats until no value is new, or no value can pass through more writes."""
        for passed_on in count():
            self.new, self.most = False, dict.fromkeys((thread.name for thread in self.threads), 0)
            ways = [list(self.paths(number, jumps_back)) for number in range(len(self.threads))]
            if not self.new or passed_on > sum(self.most.values()):
                break
        return ways

    def paths(self, number: int, jumps_back: int) -> Iterator[Path]:
        """All paths of one thread."""
        thread, self.was_cut[number] = self.threads[number], False
        left: list[list[Chosen]] = [[]]
        while left:
            seconds_left()
            run = PathRun(thread, self.cta_threads, self.locate, self.values, left.pop(), jumps_back)
            try:
                registers = self.automata[number].run(run)
            except Fault as fault:
                registers, run.path.fault = {}, fault
            left += run.others
            self.was_cut[number] |= run.was_cut
            for written in run.written:
                self.new |= self.values.write(written)
            for gave in run.offered:
                self.new |= self.values.offer(*gave)
            self.most[thread.name] = max(self.most[thread.name], len(run.written) + len(run.offered))
            if registers is not None:
                run.path.registers.update(registers)
                self.new |= self.values.end(run.path)
                yield run.path

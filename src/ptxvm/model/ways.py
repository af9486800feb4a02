"""The ways through the threads of a kernel: all that its reads could make of it, whatever the axioms say of them.

What a read may find are the first values of memory, and what some way of some thread writes there.  So the ways are gone
again until nothing new is written.  That has an end, for a write whose value would come from itself is none: such values
come out of thin air (PTX 8.10.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, product

from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.alone import Stage
from ptxvm.model.events import Kind
from ptxvm.model.paths import Path
from ptxvm.model.program import Location, Thread
from ptxvm.model.values import Read, Value
from ptxvm.model.walk import Chain, Locate, Walk

MANY = 4
"""So many chains are told apart; of a value with more it is not known how it came."""
UNKNOWN: tuple[Chain, ...] = (frozenset(),)


class Values:
    """What each location may hold: its first value, and all that is written over it, with the chains behind it."""

    def __init__(self, first: Mapping[str, int]) -> None:
        self.first = first
        self.written: dict[Location, dict[int, tuple[Chain, ...]]] = {}

    def write(self, location: Location, value: int, chains: tuple[Chain, ...]) -> bool:
        """A way writes; is it something new?"""
        known = self.written.setdefault(location, {})
        before = known.get(value, ())
        known[value] = shortest({*before, *chains})
        return known[value] != before

    def behind(self, location: Location, value: int) -> tuple[Chain, ...]:
        """How a read of the location may come by the value."""
        if value == self.initial(location) or any(o != location and overlap(o, location) for o in self.written):
            return UNKNOWN
        return self.written.get(location, {}).get(value, UNKNOWN)

    def initial(self, location: Location) -> int:
        """Its bytes of the first value of its variable."""
        return part(self.first.get(location.variable, 0), location.offset, location.size)

    def at(self, location: Location) -> list[int]:
        """What a read of the location may find: in each run of bytes, what any write that covers it puts there."""
        over = [other for other in self.written if overlap(other, location)]
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


def overlap(a: Location, b: Location) -> bool:
    """Have they a byte in common (PTX 8.2.1)?"""
    return a.variable == b.variable and a.offset < b.offset + b.size and b.offset < a.offset + a.size


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

    def run(self, jumps_back: int) -> Iterator[tuple[Path, ...]]:
        """A way for each thread, each of which could feed the reads of the others."""
        for passed_on in count():
            self.new, self.most = False, dict.fromkeys((thread.name for thread in self.threads), 0)
            ways = [list(self.ways(number, jumps_back)) for number in range(len(self.threads))]
            if not self.new or passed_on > sum(self.most.values()):
                break
        ends = [[self.end(path) for path in paths] for paths in ways]
        return (tuple(end.path for end in chosen) for chosen in product(*ends) if self.are_fed(chosen))

    def ways(self, number: int, jumps_back: int) -> Iterator[Path]:
        """All ways of one thread."""
        thread = self.threads[number]
        left: list[list[int]] = [[]]
        while left:
            walk = Walk(thread, self.locate, self.values, left.pop(), jumps_back)
            try:
                registers = self.stage.run(number, walk, self.keep.get(thread.name, ()))
            except Fault as fault:
                registers, walk.path.fault = {}, fault
            left += walk.others
            for written in walk.written:
                self.new |= self.values.write(*written)
            self.most[thread.name] = max(self.most[thread.name], len(walk.written))
            if registers is not None:
                walk.path.registers.update(registers)
                yield walk.path

    def end(self, path: Path) -> End:
        """What a way needs and gives."""
        finds = {one.left.event: one.right for one in path.taken if isinstance(one.left, Read)}
        reads = [(event.location, finds[event.key]) for event in path.events if event.kind is Kind.READ and event.location]
        writes = [(event.location, event.value) for event in path.events if event.kind is Kind.WRITE and event.location]
        needs = {(location, value) for location, value in reads if value != self.values.initial(location)}
        return End(path, frozenset(needs), frozenset(writes))

    @staticmethod
    def are_fed(chosen: tuple[End, ...]) -> bool:
        """Is there a write for what each read of these ways finds?  Most ways do not fit together."""
        gives = frozenset[Held]().union(*(end.gives for end in chosen))
        places = {location for location, _ in gives}
        return all(
            any(other != location and overlap(other, location) for other in places)
            for end in chosen
            for location, _ in end.needs - gives
        )


Held = tuple[Location, Value]
"""A value at a location."""


@dataclass(frozen=True, slots=True)
class End:
    """A way that was gone, what its reads need of others, and what its writes give them."""

    path: Path
    needs: frozenset[Held]
    gives: frozenset[Held]

"""Combinations of paths: each value that one thread reads or receives, another writes or gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ptxvm.dataclass import dataclass
from ptxvm.machine.single_thread import Payload
from ptxvm.model.deadline import seconds_left
from ptxvm.model.histories import History
from ptxvm.model.litmus_program import Location
from ptxvm.model.memory_events import EventKind
from ptxvm.model.paths import FOREVER, Encounter, Path
from ptxvm.model.search import Steps, flattened
from ptxvm.model.values import Key, ReadValue, Value
from ptxvm.named_tuple import NamedTuple

LocatedValue = tuple[Location, Value]
"""A value at a location."""
Offer = tuple[Encounter, str]
"""A meeting, and a thread that gives a value there."""
Initial = Callable[[Location], int]


def overlap(a: Location, b: Location) -> bool:
    """Do the locations have a byte in common (PTX 8.2.1)?"""
    return a.variable == b.variable and a.offset < b.offset + b.size and b.offset < a.offset + a.size


class CoherentAccess(NamedTuple):
    """An access to a location whose writes have one order: a strong read, a write, or both."""

    found: Value | None
    written: Value | None


def coherent_accesses(
    path: Path, finds: Mapping[Key, Value], chained: Mapping[Location, History]
) -> Mapping[Location, Sequence[Sequence[CoherentAccess]]]:
    """The accesses of a path to the locations in `chained`; reads that are not morally strong with the writes are left out."""
    found: dict[Location, list[list[CoherentAccess]]] = {}
    of_atomic = {e.atomic: e for e in path.events if e.kind is EventKind.WRITE and e.atomic}
    for event in path.events:
        location = event.location
        if location is None or location not in chained or (event.kind is EventKind.WRITE and event.atomic):
            continue
        written = of_atomic.get(event.key) if event.kind is EventKind.READ else event
        if written is None and not chained[location].is_strong_with(path.thread, event.scope):
            continue
        access = CoherentAccess(finds.get(event.key), written.value if written else None)
        sequences = found.setdefault(location, [[]])
        if event.end >= FOREVER:
            sequences.append([access])
        else:
            sequences[0].append(access)
    return found


@dataclass(frozen=True, slots=True)
class PathSummary:
    """A complete path, the values that its reads need from others, and the values that its writes give."""

    path: Path
    needs: frozenset[LocatedValue]
    provides: frozenset[LocatedValue]
    accesses: Mapping[Location, Sequence[Sequence[CoherentAccess]]]
    """Its accesses to each location, in order; each asynchronous access is a sequence of its own."""
    offered: Mapping[Offer, Payload]
    taken: Mapping[Offer, Payload | None]
    """The values that it gives to the threads that it meets, and takes from them."""

    @classmethod
    def of(cls, path: Path, initial: Initial, chained: Mapping[Location, History]) -> PathSummary:
        """Summarise a path."""
        finds = {one.left.event: one.right for one in path.conditions if isinstance(one.left, ReadValue)}
        reads = [(e.location, finds[e.key]) for e in path.events if e.kind is EventKind.READ and e.location]
        writes = [e for e in path.events if e.kind is EventKind.WRITE and e.location]
        offers = {(one.encounter, one.thread): one.offered for one in path.exchanges}
        taken = {(one.encounter, other): payload for one in path.exchanges for other, payload in one.received.items()}
        return cls(
            path,
            frozenset((location, value) for location, value in reads if value != initial(location)),
            frozenset((e.location, e.value) for e in writes if e.location),
            coherent_accesses(path, finds, chained),
            offers,
            taken,
        )


def together(
    ways: Sequence[Sequence[Path]], initial: Initial, chained: Mapping[Location, History]
) -> Iterator[tuple[Path, ...]]:
    """The combinations of one path for each thread in which writes feed all reads; most combinations are dropped."""
    ends = [[PathSummary.of(path, initial, chained) for path in paths] for paths in ways]
    for chosen in matching_exchanges(ends):
        seconds_left()
        if reads_have_writes(chosen) and all(has_a_history(location, chosen, initial(location)) for location in chained):
            yield with_others([end.path for end in chosen])


def reads_have_writes(chosen: Sequence[PathSummary]) -> bool:
    """Is there a write for each value that these paths read?"""
    gives = frozenset[LocatedValue]().union(*(end.provides for end in chosen))
    return all(
        any(other != location and overlap(other, location) for other, _ in gives)
        for end in chosen
        for location, _ in end.needs - gives
    )


def has_a_history(location: Location, chosen: Sequence[PathSummary], initial: int) -> bool:
    """Can the accesses to a location be interleaved so that each strong read finds the last write?

    All writes to the location have one order.  This is coherence, and the atomicity of atomic operations, for strong accesses
    in scope of each other.
    """
    threads = [coherent_accesses for end in chosen for coherent_accesses in end.accesses.get(location, ())]
    seen = set[tuple[Value, ...]]()
    left: list[tuple[Value, tuple[int, ...]]] = [(initial, (0,) * len(threads))]
    while left:
        value, done = left.pop()
        if (value, *done) in seen:
            continue
        seen.add((value, *done))
        if all(n == len(coherent_accesses) for n, coherent_accesses in zip(done, threads, strict=True)):
            return True
        for n, coherent_accesses in enumerate(threads):
            if done[n] < len(coherent_accesses) and coherent_accesses[done[n]].found in (None, value):
                new = coherent_accesses[done[n]].written
                left.append((value if new is None else new, (*done[:n], done[n] + 1, *done[n + 1 :])))
    return False


def matching_exchanges(ends: Sequence[Sequence[PathSummary]]) -> Iterator[tuple[PathSummary, ...]]:
    """The combinations of one path for each thread in which each thread takes what the others give."""

    def further(
        before: tuple[PathSummary, ...], said: Mapping[Offer, Payload | None], offered: int
    ) -> Steps[tuple[PathSummary, ...]]:
        if len(before) == len(ends):
            if offered == len(said) - list(said.values()).count(None):  # every thread that another one meets has come
                yield before
            return
        for end in ends[len(before)]:
            if all(said.get(one, payload) == payload for one, payload in (*end.offered.items(), *end.taken.items())):
                more = {**said, **end.offered, **end.taken} if end.offered else said
                yield further((*before, end), more, offered + len(end.offered))

    return flattened(further((), {}, 0))


def with_others(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The same paths; a dependency on a value from another thread becomes a dependency on what that thread has read."""
    exchanges = {(one.encounter, one.thread): one for path in paths for one in path.exchanges}
    others = {
        key: exchanges[one.encounter, other] for one in exchanges.values() for key, other in one.keys.items()
    }  # fmt: skip

    def reads(keys: frozenset[Key]) -> frozenset[Key]:
        found, left, seen = set[Key](), [*keys], set[Key]()
        while left:
            key = left.pop()
            if key in seen:
                continue
            seen.add(key)
            if key in others:
                left += others[key].comes_from
            else:
                found.add(key)
        return frozenset(found)

    if not others:
        return tuple(paths)
    return tuple(
        replace(path, events=[replace(e, data=reads(e.data), control=reads(e.control)) for e in path.events])
        for path in paths
    )  # fmt: skip

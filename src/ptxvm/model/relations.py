"""Binary relations over the events of one execution, with the operators in which chapter 8 is written.

An event is a number from 0; a relation keeps, for each event, the set of its successors as the bits of one integer, and
so does a set of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ptxvm.dataclass import dataclass

T = TypeVar("T")

Events = int
"""A set of events: bit i stands for event i."""


def members(events: Events) -> Iterator[int]:
    """The events of a set, the lowest first."""
    while events:
        lowest = events & -events
        yield lowest.bit_length() - 1
        events ^= lowest


@dataclass(frozen=True, slots=True)
class Relation:
    """Which events precede which: `rows[a]` is the set of the events that `a` precedes."""

    rows: tuple[Events, ...]

    @classmethod
    def empty(cls, count: int) -> Relation:
        """The empty relation."""
        return cls((0,) * count)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], count: int) -> Relation:
        """The relation of these pairs."""
        rows = [0] * count
        for a, b in pairs:
            rows[a] |= 1 << b
        return cls(tuple(rows))

    @classmethod
    def where(cls, events: Sequence[T], holds: Callable[[T, T], bool]) -> Relation:
        """The relation of all pairs for which the condition holds."""
        return cls(tuple(sum(1 << j for j, b in enumerate(events) if holds(a, b)) for a in events))

    @classmethod
    def identity(cls, events: Events, count: int) -> Relation:
        """Each event of the set, related to itself."""
        return cls(tuple(events & 1 << i for i in range(count)))

    def __or__(self, other: Relation) -> Relation:
        if not isinstance(other, Relation):  # `Symbolic` defines the operation for both
            return NotImplemented
        return Relation(tuple([a | b for a, b in zip(self.rows, other.rows, strict=True)]))

    def __and__(self, other: Relation) -> Relation:
        if not isinstance(other, Relation):
            return NotImplemented
        return Relation(tuple([a & b for a, b in zip(self.rows, other.rows, strict=True)]))

    def __sub__(self, other: Relation) -> Relation:
        if not isinstance(other, Relation):
            return NotImplemented
        return Relation(tuple([a & ~b for a, b in zip(self.rows, other.rows, strict=True)]))

    def __bool__(self) -> bool:
        return any(self.rows)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        return bool(self.rows[pair[0]] >> pair[1] & 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((a, b) for a, row in enumerate(self.rows) for b in members(row))

    def then(self, other: Relation) -> Relation:
        """The composition: `a` precedes `b` here, and `b` precedes `c` there."""
        rows, there = [], other.rows
        for row in self.rows:
            left, reached = row, 0
            while left:  # `members`, in place: this is the loop in which the search spends its time
                lowest = left & -left
                reached |= there[lowest.bit_length() - 1]
                left ^= lowest
            rows.append(reached)
        return Relation(tuple(rows))

    @property
    def inverse(self) -> Relation:
        """Each pair the other way round."""
        return Relation.of(((b, a) for a, b in self), len(self.rows))

    @property
    def or_same(self) -> Relation:
        """This, or the same event."""
        return Relation(tuple([row | 1 << i for i, row in enumerate(self.rows)]))

    @property
    def transitive(self) -> Relation:
        """The transitive closure."""
        rows = list(self.rows)
        for middle, bit in enumerate([1 << i for i in range(len(rows))]):
            if through := rows[middle]:
                rows = [row | through if row & bit else row for row in rows]
        return Relation(tuple(rows))

    def between(self, first: Events, second: Events) -> Relation:
        """The pairs that lead from one set to another."""
        return Relation(tuple([row & second if first >> i & 1 else 0 for i, row in enumerate(self.rows)]))

    def joined(self, a: int, b: int) -> Relation:
        """The transitive closure of this transitive relation with the pair `a`, `b`."""
        beyond, rows = self.rows[b] | 1 << b, list(self.rows)
        for i, row in enumerate(rows):
            if i == a or row >> a & 1:
                rows[i] = row | beyond
        return Relation(tuple(rows))

    @property
    def is_irreflexive(self) -> bool:
        """Does no event precede itself?"""
        return not any(row >> i & 1 for i, row in enumerate(self.rows))

    @property
    def is_acyclic(self) -> bool:
        """Is there no path from an event back to itself?"""
        left = [row for row in self.rows if row]
        if not left:
            return True
        return self.transitive.is_irreflexive

    def path(self, start: int, goal: int) -> list[int]:
        """A shortest path of at least one step, with both ends; empty if there is none."""
        before: dict[int, int] = {}
        queue = [start]
        for at in queue:
            for following in members(self.rows[at]):
                if following not in before:
                    before[following] = at
                    queue.append(following)
        if goal not in before:
            return []
        way = [goal]
        while len(way) == 1 or way[-1] != start:
            way.append(before[way[-1]])
        return way[::-1]

    @property
    def cycle(self) -> list[int]:
        """A shortest cycle, its first event again at the end; empty if there is none."""
        ways = (self.path(i, i) for i in range(len(self.rows)) if self.rows[i])
        return min((way for way in ways if way), key=len, default=[])

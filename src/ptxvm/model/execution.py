"""An execution: its events and decisions, and the relations that all versions of chapter 8 share.

An execution is decided in steps, and each step is a copy that knows more: first the path of each thread, then the writes that
reads take and the orders of barriers and fence.sc pairs, at last the coherence order.  A copy keeps all relations that were
computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Self

from ptxvm.algebra.memory_order import Order
from ptxvm.model.litmus_test import Test
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.relations import Events, Relation
from ptxvm.model.values import Key

Cell = tuple[str, int]
"""Bytes that are always accessed together: a variable, and the offset of the first byte."""

WHOLE, WORD = 8, 4
"""The size in bytes of a variable whose size the test does not give, and what an access of all of it has at least."""


class Execution:
    """The base of every version of the model.  The relations are properties, computed on first use."""

    sources: Mapping[tuple[int, Cell], int]
    """Decided second: the write that each read takes for each cell."""
    barriers: Relation
    """Decided second: from arrivals to the waits that they open."""
    fence_sc: Relation
    """Decided second: 8.8.3 in 6.4, 8.9.3 in 9.1."""
    coherence: Relation
    """Decided last: 8.8.6 in 6.4, 8.9.6 in 9.1."""

    def __init__(self, test: Test, events: Sequence[Event]) -> None:
        self.test, self.events, self.count = test, tuple(events), len(events)

    def with_decisions(self, **decided: object) -> Self:
        """A copy of this execution with further decisions."""
        more = object.__new__(type(self))
        more.__dict__.update(self.__dict__, **decided)
        return more

    # ── sets of events ──────────────────────────────────────────────────────────────────

    def those(self, holds: Callable[[Event], bool]) -> Events:
        """The events for which the condition holds."""
        return sum(1 << i for i, event in enumerate(self.events) if holds(event))

    @cached_property
    def initial(self) -> Events:
        """The writes that initialise memory."""
        return self.those(lambda e: e.thread is None)

    @cached_property
    def writes(self) -> Events:
        """All writes."""
        return self.those(lambda e: e.kind is EventKind.WRITE)

    @cached_property
    def reads(self) -> Events:
        """All reads, also those of `red`."""
        return self.those(lambda e: e.kind is EventKind.READ)

    @cached_property
    def strong_writes(self) -> Events:
        """Strong writes."""
        return self.those(lambda e: e.kind is EventKind.WRITE and e.is_strong)

    @cached_property
    def fence_scs(self) -> Events:
        """`fence.sc` operations, including `membar`."""
        return self.those(lambda e: e.kind is EventKind.FENCE and e.order is Order.SC)

    # ── memory ──────────────────────────────────────────────────────────────────────────

    @cached_property
    def number(self) -> dict[Key, int]:
        """The number of each event, by its key."""
        return {event.key: i for i, event in enumerate(self.events)}

    @cached_property
    def ranges(self) -> list[tuple[str, int, int]]:
        """For each memory operation: the variable, the first byte, and the byte after the last."""
        found = []
        for event in self.events:
            if event.location is None:
                found.append(("", 0, 0))
                continue
            at, variable = event.location, self.test.physical(event.location.variable)
            size = at.size or self.test.sizes.get(variable, WHOLE)
            found.append((variable, at.offset, at.offset + size))
        return found

    def is_whole(self, variable: str, first: int, end: int) -> bool:
        """Are these bytes all of a variable?"""
        size = self.test.sizes.get(variable)
        return first == 0 and (end == size or (size is None and end >= WORD))

    @cached_property
    def cells(self) -> list[tuple[Cell, ...]]:
        """The cells of each memory operation."""
        cuts: dict[str, set[int]] = {}
        for variable, first, end in self.ranges:
            cuts.setdefault(variable, set()).update((first, end))
        starts = {variable: sorted(cut) for variable, cut in cuts.items()}
        return [
            tuple((variable, cut) for cut in starts[variable] if first <= cut < end) for variable, first, end in self.ranges
        ]

    @cached_property
    def memory(self) -> dict[Cell, list[int]]:
        """The writes of each cell, the initial write first."""
        found: dict[Cell, list[int]] = {}
        for i, event in enumerate(self.events):
            if event.kind is EventKind.WRITE:
                for cell in self.cells[i]:
                    found.setdefault(cell, []).append(i)
        return found

    @cached_property
    def overlap(self) -> Relation:
        """8.2.1: memory operations with a byte in common."""
        at = self.ranges
        return self.pairs(lambda i, j: bool(at[i][0]) and at[i][0] == at[j][0] and at[i][1] < at[j][2] and at[j][1] < at[i][2])

    @cached_property
    def overlap_completely(self) -> Relation:
        """8.2.1: memory operations on identical locations."""
        at = self.ranges
        return self.pairs(lambda i, j: bool(at[i][0]) and at[i] == at[j])

    def pairs(self, holds: Callable[[int, int], bool]) -> Relation:
        """The pairs of event numbers for which the condition holds."""
        numbers = range(self.count)
        return Relation(tuple([sum([1 << j for j in numbers if holds(i, j)]) for i in numbers]))

    @cached_property
    def read_modify_write(self) -> Relation:
        """From the read of an atomic operation to its write."""
        return Relation.of(
            (
                (self.number[event.atomic], i)
                for i, event in enumerate(self.events)
                if event.kind is EventKind.WRITE and event.atomic is not None
            ),
            self.count,
        )

    # ── threads ─────────────────────────────────────────────────────────────────────────

    @cached_property
    def program_order(self) -> Relation:
        """8.8.1: from an operation to those of its thread that start after it has ended."""

        def precedes(a: Event, b: Event) -> bool:
            one_vector = a.made_of == b.made_of and a.atomic != b.atomic  # the scalars of a vector have no order
            in_order = (a.end <= b.start and not one_vector) or a.key in b.follows
            return a.thread is not None and a.thread is b.thread and in_order

        return Relation.where(self.events, precedes)

    @cached_property
    def same_thread(self) -> Relation:
        """Pairs of different operations of one thread."""
        return Relation.where(self.events, lambda a, b: a is not b and a.thread is not None and a.thread is b.thread)

    @cached_property
    def same_cta(self) -> Relation:
        """Pairs of operations of one CTA."""
        return Relation.where(
            self.events,
            lambda a, b: a.thread is not None and b.thread is not None and a.thread.cta == b.thread.cta,
        )

    @cached_property
    def mutually_in_scope(self) -> Relation:
        """8.5: both are strong, and each scope includes the thread of the other."""

        def includes(a: Event, b: Event) -> bool:
            return (
                a is not b
                and a.is_strong
                and b.is_strong
                and a.thread is not None
                and b.thread is not None
                and a.thread.within(a.scope, b.thread)
                and b.thread.within(b.scope, a.thread)
            )

        return Relation.where(self.events, includes)

    @cached_property
    def dependencies(self) -> Relation:
        """From a read to the events that depend on it by a value or by a branch; in litmus tests no address does."""
        return Relation.of(
            ((self.number[read], i) for i, event in enumerate(self.events) for read in event.data | event.control),
            self.count,
        )

    # ── what was read ───────────────────────────────────────────────────────────────────

    @cached_property
    def reads_from(self) -> Relation:
        """8.8.7: from a write to each read that takes a byte of it."""
        return Relation.of(((write, read) for (read, _), write in self.sources.items()), self.count)

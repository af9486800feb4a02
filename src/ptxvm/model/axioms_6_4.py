"""The memory consistency model of PTX 6.4: every relation of chapter 8, and its axioms, in the order of the text.

A relation is a property, named as in the text and with its section.  `axioms_9_1` says what later text changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

from ptxvm.algebra.memory_order import Order
from ptxvm.dataclass import dataclass
from ptxvm.model.execution import Execution
from ptxvm.model.memory_events import EventKind
from ptxvm.model.relations import Events, Relation


class PTX64(Execution):
    """An execution as PTX 6.4 sees it."""

    name = "6.4"
    axioms_section = "8.9"
    mixed_size_section = "8.6.2"
    known_from_the_start: tuple[str, ...] = (
        *("reads", "writes", "morally_strong", "overlapping_program_order", "release_pattern", "acquire_pattern"),
        *("either_way", "conflict", "initial_before_all", "dependencies", "read_modify_write", "writers", "fence_scs"),
        *("same_location_program_order", "same_thread", "ordering_barriers"),
    )
    """The relations that follow from the events alone; the search computes them once."""

    # ── 8.6 Morally strong operations ───────────────────────────────────────────────────

    @cached_property
    def morally_strong(self) -> Relation:
        """8.6: of one thread, or each strong and in the scope of the other; if both access memory, the same bytes."""
        related = self.program_order | self.program_order.inverse | self.mutually_in_scope
        return related - (self.both_access_memory - self.overlap_completely)

    @cached_property
    def both_access_memory(self) -> Relation:
        """Pairs of memory operations."""
        memory = self.reads | self.writes
        return Relation(tuple(memory if memory >> i & 1 else 0 for i in range(self.count)))

    # ── 8.6.1 Conflict and data races ───────────────────────────────────────────────────

    @cached_property
    def conflict(self) -> Relation:
        """8.6.1: they overlap, and at least one is a write.  Nothing races with the start of memory."""
        one_writes = self.overlap.between(self.writes, ~self.initial) | self.overlap.between(~0, self.writes)
        return one_writes.between(~self.initial, ~self.initial) - Relation.identity(~0, self.count)

    @cached_property
    def data_race(self) -> Relation:
        """8.6.1: they conflict, neither precedes the other in causality order, and they are not morally strong.

        An atomic operation is one operation (8.4): what comes after its write comes after its read.
        """
        ordered = self.causality | self.read_modify_write.then(self.causality)
        return self.conflict - ordered - ordered.inverse - self.morally_strong

    @cached_property
    def mixed_size_race(self) -> Relation:
        """8.6.2: a data race in which the overlap is partial; the axioms do not apply to a program that has one."""
        return self.data_race - self.overlap_completely

    # ── 8.7 Release and acquire patterns ────────────────────────────────────────────────

    @cached_property
    def overlapping_program_order(self) -> Relation:
        """Program order between operations on the same bytes."""
        return self.program_order & self.overlap

    @cached_property
    def same_location_program_order(self) -> Relation:
        """Program order between operations on one location M."""
        return self.program_order & self.overlap_completely

    @cached_property
    def releases(self) -> Events:
        """8.4: the write of a release operation."""
        return self.those(lambda e: e.kind is EventKind.WRITE and e.order is Order.RELEASE)

    @cached_property
    def acquires(self) -> Events:
        """8.4: the read of an acquire operation; `red` is no read operation."""
        return self.those(lambda e: e.kind is EventKind.READ and e.order is Order.ACQUIRE and not e.is_red)

    @cached_property
    def strong_reads(self) -> Events:
        """8.4: strong read operations, which `red` is not."""
        return self.those(lambda e: e.kind is EventKind.READ and e.is_strong and not e.is_red)

    @cached_property
    def releasing_fences(self) -> Events:
        """8.7: any fence can begin a release pattern."""
        return self.those(lambda e: e.kind is EventKind.FENCE)

    @cached_property
    def acquiring_fences(self) -> Events:
        """8.7: any fence can end an acquire pattern."""
        return self.those(lambda e: e.kind is EventKind.FENCE)

    @cached_property
    def release_pattern(self) -> Relation:
        """8.7: from the first operation of a release pattern to its write on M."""
        return (
            Relation.identity(self.releases, self.count)
            | self.same_location_program_order.between(self.releases, self.strong_writes)
            | self.program_order.between(self.releasing_fences, self.strong_writes)
        )

    @cached_property
    def acquire_pattern(self) -> Relation:
        """8.7: from the read of M to the last operation of an acquire pattern."""
        return (
            Relation.identity(self.acquires, self.count)
            | self.same_location_program_order.between(self.strong_reads, self.acquires)
            | self.program_order.between(self.strong_reads, self.acquiring_fences)
        )

    # ── 8.8 Ordering of memory operations ───────────────────────────────────────────────

    @cached_property
    def observation(self) -> Relation:
        """8.8.2: a read takes the value of a morally strong write, perhaps through atomic operations."""
        observed = self.reads_from & self.morally_strong
        if not self.read_modify_write:
            return observed
        through_atomic = observed.then(self.read_modify_write).transitive
        return observed | through_atomic.then(observed)

    @cached_property
    def synchronizes(self) -> Relation:
        """8.8.4: fence.sc by fence.sc, barrier by barrier, and a release pattern that an acquire pattern observes."""
        return self.fence_sc | self.barriers.between(self.ordering_barriers, ~0) | self.patterns_synchronize

    @cached_property
    def ordering_barriers(self) -> Events:
        """Arrivals that order memory: all but relaxed ones."""
        return self.those(lambda e: e.kind is EventKind.ARRIVAL and e.barrier is not None and e.barrier.orders)

    @cached_property
    def patterns_synchronize(self) -> Relation:
        """8.8.4, 3: the first operation of one and the last of the other are morally strong."""
        observed = self.release_pattern.then(self.observation).then(self.acquire_pattern)
        return observed & self.morally_strong

    @cached_property
    def base_causality(self) -> Relation:
        """8.8.5: synchronization, with program order before and after it, and transitive."""
        before = self.program_order.or_same
        return before.then(self.synchronizes).then(before).transitive

    @cached_property
    def causality(self) -> Relation:
        """8.8.5: base causality, or an observation followed by base causality or by overlapping program order."""
        return self.base_causality | self.observation.then(self.base_causality | self.overlapping_program_order)

    # ── 8.8.6 Coherence order, 8.8.7 Communication order ────────────────────────────────

    @cached_property
    def initial_before_all(self) -> Relation:
        """8.2.4: memory is initialised before any thread starts."""
        return self.overlap.between(self.initial, self.writes & ~self.initial)

    @cached_property
    def required_coherence(self) -> Relation:
        """8.9.1: causality between overlapping writes is coherence; what is transitive with it is too."""
        return (self.initial_before_all | (self.causality & self.overlap).between(self.writes, self.writes)).transitive

    @cached_property
    def either_way(self) -> Relation:
        """8.8.6: overlapping writes that coherence relates, this way or the other, because they are morally strong."""
        return (self.morally_strong & self.overlap).between(self.writes, self.writes)

    @cached_property
    def from_reads(self) -> Relation:
        """8.8.7, 3: from a read to the writes that coherence has after what it read, byte by byte."""
        rows = [0] * self.count
        for (read, cell), write in self.sources.items():
            later = self.coherence.rows[write]
            if later:
                rows[read] |= later & self.writers[cell] & ~(1 << read)
        return Relation(tuple(rows))

    @cached_property
    def writers(self) -> dict[tuple[str, int], Events]:
        """The writes of each cell, as a set."""
        return {cell: sum(1 << write for write in writes) for cell, writes in self.memory.items()}

    @cached_property
    def communication(self) -> Relation:
        """8.8.7: reads-from, coherence and from-read order together."""
        return self.reads_from | self.coherence | self.from_reads

    # ── 8.9 Axioms: each is a relation that must be empty, or have no cycle ──────────────

    @cached_property
    def coherence_against_itself(self) -> Relation:
        """8.9.1: coherence order has all pairs that causality requires, so it is broken only if no order can have them."""
        return self.coherence

    @cached_property
    def fence_sc_against_causality(self) -> Relation:
        """8.9.2: morally strong fence.sc operations that causality orders and Fence-SC does not."""
        ordered = (self.causality & self.morally_strong).between(self.fence_scs, self.fence_scs)
        return ordered - self.fence_sc

    @cached_property
    def torn_reads(self) -> Relation:
        """8.9.3: from a write to a morally strong read that takes one byte from it, and another byte from an earlier write."""
        return (self.reads_from & self.from_reads.inverse) & self.morally_strong

    @cached_property
    def split_atomics(self) -> Relation:
        """8.9.3: from an atomic's read to its write, with a morally strong write between them in coherence order."""
        if not self.read_modify_write:
            return self.read_modify_write
        strong = self.morally_strong
        return (self.from_reads & strong).then(self.coherence & strong) & self.read_modify_write

    @cached_property
    def value_flow(self) -> Relation:
        """8.9.4: through memory from write to read, and in a thread along dependencies."""
        return self.reads_from | self.dependencies

    @cached_property
    def strong_communication_and_program_order(self) -> Relation:
        """8.9.5: program order between overlapping operations, and communication between morally strong ones."""
        return self.overlapping_program_order | (self.communication & self.morally_strong)

    @cached_property
    def communication_against_causality(self) -> Relation:
        """8.9.6: communication, here from a write to its reader or from a reader to a later write, then causality."""
        return (self.reads_from | self.from_reads).then(self.causality)

    def may_read(self, read: int, write: int) -> bool:
        """May the read take the write?  Not if the write comes later in its thread: 8.9.5 forbids it."""
        return not (read, write) in self.same_location_program_order  # noqa: E713 - `in` a relation


@dataclass(frozen=True)
class Axiom:
    """An axiom: its name, its number in the section, and a relation that must have a property."""

    name: str
    number: int
    must_be: Literal["acyclic", "irreflexive", "empty"]
    relation: Callable[[Any], Relation]  # of a version of the model, over relations or over formulas

    def section(self, model: type[PTX64]) -> str:
        """The section of the axiom."""
        return f"{model.axioms_section}.{self.number}"

    def holds(self, execution: Execution) -> bool:
        """Does this execution keep the axiom?"""
        relation = self.relation(execution)
        if self.must_be == "empty":
            return not relation
        return relation.is_irreflexive if self.must_be == "irreflexive" else relation.is_acyclic

    def counterexample(self, execution: Execution) -> list[int]:
        """The events on a cycle, the first again at the end; or the pair that should not be."""
        relation = self.relation(execution)
        if self.must_be == "acyclic":
            return relation.cycle
        if self.must_be == "empty":
            return [*next(iter(relation))]
        return next([i, i] for i, row in enumerate(relation.rows) if row >> i & 1)


BEFORE_COHERENCE = (
    Axiom("No Thin Air", 4, "acyclic", lambda x: x.value_flow),
    Axiom("Fence-SC", 2, "empty", lambda x: x.fence_sc_against_causality),
)
COHERENCE = Axiom("Coherence", 1, "irreflexive", lambda x: x.coherence_against_itself)
WITH_COHERENCE = (
    COHERENCE,
    Axiom("Causality", 6, "irreflexive", lambda x: x.communication_against_causality),
    Axiom("Single-Copy Atomicity", 3, "empty", lambda x: x.torn_reads),
    Axiom("Atomicity of RMW", 3, "empty", lambda x: x.split_atomics),
    Axiom("SC per Location", 5, "acyclic", lambda x: x.strong_communication_and_program_order),
)
"""In the order in which they are asked.  All but No Thin Air and Fence-SC need the coherence order; an order that has
more pairs can only break more of them, so an unfinished order that breaks one need not be finished."""

"""All executions of a test: a path for each thread, a write for each read, an order for each pair that needs one.

Causality order does not depend on coherence order, so it is worked out first, and coherence starts with what causality
requires.  Only pairs of morally strong writes are then ordered either way: a racing pair stays unordered (PTX 8.8.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import product

from ptxvm.dataclass import dataclass
from ptxvm.model.axioms_6_4 import BEFORE_COHERENCE, PTX64, WITH_COHERENCE, Axiom
from ptxvm.model.barrier_matching import barrier_orders
from ptxvm.model.deadline import seconds_left
from ptxvm.model.execution import WHOLE, Cell, Execution
from ptxvm.model.litmus_program import Location
from ptxvm.model.litmus_test import Test
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.names import register_names
from ptxvm.model.paths import Path, PathCondition, paths
from ptxvm.model.relations import Relation
from ptxvm.model.search import Steps, flattened
from ptxvm.model.values import COMPARISONS, Key, evaluate

LOOPS = 1
"""The bound of backward jumps on a path; 2 changes no verdict of the collected tests."""

Sources = dict[tuple[int, Cell], int]


@dataclass(frozen=True)
class Candidate:
    """An execution whose read values are known; it keeps all axioms, or breaks `broken`."""

    execution: PTX64
    known: Mapping[Key, int]
    registers: Mapping[str, int]
    broken: Axiom | None = None
    last: Mapping[Cell, int] = field(default_factory=dict)
    """The last writes of some cells, where they are given; coherence order decides the others."""

    def states(self) -> Iterator[dict[str, int]]:
        """The final states: each cell has the value of any write that is last in coherence order."""
        x = self.execution
        last: dict[Cell, list[int]] = {}
        for cell, writes in x.memory.items():
            following = x.writers[cell]
            last[cell] = [w for w in writes if not x.coherence.rows[w] & following & ~(1 << w)] or writes
        last |= {cell: [write] for cell, write in self.last.items()}
        for chosen in product(*last.values()):
            values = _memory(x, dict(zip(last, chosen, strict=True)), self.known)
            yield {**self.registers, **x.test.shown(values)}


def may_take(x: PTX64, read: int, write: int) -> bool:
    """May the read take the write?  Never within one atomic operation; the model decides the rest."""
    return (read, write) not in x.read_modify_write and x.may_read(read, write)


@dataclass
class Search:
    """The enumeration of the executions of one test."""

    test: Test
    model: type[PTX64]
    bound: int = LOOPS
    before_coherence: tuple[Axiom, ...] = BEFORE_COHERENCE
    with_coherence: tuple[Axiom, ...] = WITH_COHERENCE
    on_broken: Callable[[Candidate], None] = field(default=lambda _: None)
    on_stuck: Callable[[Candidate], None] = field(default=lambda _: None)
    takes: Callable[[PTX64, int, int], bool] = may_take
    """May a read take a write?  Writes that no axiom lets it take can be left out from the start."""

    def run(self) -> Iterator[Candidate]:
        """Every execution that keeps all axioms.

        An execution that breaks an axiom goes to `on_broken`; one whose barriers never open goes to `on_stuck`.
        """
        test = self.test
        of_code = product(*(paths(thread, self.bound) for thread in test.threads))
        for chosen in of_code if test.ways is None else test.ways(self.bound):
            for candidate in self.along(chosen):
                if (fault := next((path.fault for path in chosen if path.fault), None)) is not None:
                    raise fault
                yield candidate

    def along(self, chosen: tuple[Path, ...]) -> Iterator[Candidate]:
        """The executions along these paths."""
        events = [event for path in chosen for event in path.events]
        start = self.model(self.test, [*initial_writes(self.test, events), *events])
        for name in self.model.known_from_the_start:
            getattr(start, name)
        taken = [one for path in chosen for one in path.conditions]
        for sources, known in reads(start, taken, self.takes):
            registers = {name: 0 for thread in self.test.threads for name in register_names(thread)} | {
                f"{path.thread.name}:{register}": evaluate(value, known) or 0
                for path in chosen
                for register, value in path.registers.items()
                if not register.startswith("#")
            }
            reading = start.with_decisions(sources=sources)
            yield from self.synchronized(Candidate(reading, known, registers))

    def synchronized(self, candidate: Candidate) -> Iterator[Candidate]:
        """The candidates for each way to open the barriers and to order the fence.sc pairs."""
        reading = candidate.execution
        _ = reading.patterns_synchronize  # compute it once, for all copies below
        orders = list(barrier_orders(reading, candidate.known))
        if not orders:
            self.on_stuck(candidate)
        for barriers in orders:
            for fence_sc in fence_sc_orders(reading):
                x = reading.with_decisions(barriers=barriers, fence_sc=fence_sc)
                _ = x.causality
                x.__dict__["coherence"] = x.required_coherence
                now = Candidate(x, candidate.known, candidate.registers)
                if not self.breaks(now, self.before_coherence):
                    yield from flattened(self.coherent(now, [(a, b) for a, b in x.either_way if a < b]))

    def coherent(self, candidate: Candidate, undecided: list[tuple[int, int]]) -> Steps[Candidate]:
        """The candidates for each order of the pairs of writes that coherence must order; a step of the search."""
        seconds_left()
        if self.breaks(candidate, self.with_coherence):
            return
        x = candidate.execution
        order = x.coherence
        while undecided and (undecided[0] in order or undecided[0][::-1] in order):
            undecided = undecided[1:]
        if not undecided:
            yield candidate
            return
        a, b = undecided[0]
        for first, second in ((a, b), (b, a)):
            ordered = without_coherence(x).with_decisions(coherence=order.joined(first, second))
            yield self.coherent(Candidate(ordered, candidate.known, candidate.registers), undecided[1:])

    def breaks(self, candidate: Candidate, axioms: tuple[Axiom, ...]) -> bool:
        """Does the candidate break one of these axioms?  If so, it goes to `on_broken`."""
        for axiom in axioms:
            if not axiom.holds(candidate.execution):
                self.on_broken(Candidate(candidate.execution, candidate.known, candidate.registers, axiom))
                return True
        return False


FROM_COHERENCE = frozenset(
    "from_reads communication torn_reads split_atomics coherence_against_itself communication_against_causality "
    "strong_communication_and_program_order".split()
)
"""The relations to compute again when the coherence order changes."""


def without_coherence(x: PTX64) -> PTX64:
    """A copy of the execution without the relations that depend on coherence order."""
    fresh = x.with_decisions()
    for name in FROM_COHERENCE:
        fresh.__dict__.pop(name, None)
    return fresh


def initial_writes(test: Test, events: list[Event]) -> list[Event]:
    """The writes that initialise memory: one for each cell (6.4: 8.2.4)."""
    memory = Execution(test, events)
    cells = {(variable, first, end): cells for cells, (variable, first, end) in zip(memory.cells, memory.ranges, strict=True)}
    sizes: dict[Cell, int] = {}
    for variable, first, end in cells:
        if variable:
            inside = sorted({cell[1] for other in cells.values() for cell in other if cell[0] == variable})
            for at, following in zip(inside, [*inside[1:], end], strict=True):
                if first <= at < end:
                    sizes[variable, at] = min(following, end) - at if following > at else end - at
    for variable in test.variables:
        name = test.physical(variable)
        if all(cell[0] != name for cell in sizes):
            sizes[name, 0] = 0
    written = []
    for (variable, at), size in sizes.items():
        value = test.variables.get(variable, 0) >> 8 * at
        if size and size < test.sizes.get(variable, WHOLE):
            value &= (1 << 8 * size) - 1
        location = Location(variable, at, size)
        written.append(Event(EventKind.WRITE, (variable, at), f"{location} = {value}", location=location, value=value))
    return written


def reads(
    x: PTX64, taken: list[PathCondition], takes: Callable[[PTX64, int, int], bool]
) -> Iterator[tuple[Sources, dict[Key, int]]]:
    """Every choice of a write for each cell of each read with which the branches go as the paths require."""
    slots = [(i, cell) for i, event in enumerate(x.events) if event.kind is EventKind.READ for cell in x.cells[i]]
    choices = {slot: [w for w in x.memory[slot[1]] if takes(x, slot[0], w)] for slot in slots}

    def choose(n: int, sources: Sources, known: dict[Key, int]) -> Steps[tuple[Sources, dict[Key, int]]]:
        seconds_left()
        if n == len(slots):
            for values in flattened(_out_of_thin_air(x, sources, known, taken)):
                yield sources, values
            return
        for write in choices[slots[n]]:
            more = {**sources, slots[n]: write}
            values = _resolve(x, more, known)
            if all(_as_taken(one, values) for one in taken):
                yield choose(n + 1, more, values)

    return flattened(choose(0, {}, {}))


def _out_of_thin_air(x: PTX64, sources: Sources, known: dict[Key, int], taken: list[PathCondition]) -> Steps[dict[Key, int]]:
    """The values of all reads; a read that depends on itself may have any consistent value that the question names.

    No Thin Air forbids every execution with such a read; the search enumerates them so that the axiom can refuse them.
    """
    unknown = next((read for read, _ in sources if x.events[read].key not in known), None)
    if unknown is None:
        if all(_as_taken(one, known) for one in taken):
            yield known
        return
    own = {cell: write for (read, cell), write in sources.items() if read == unknown}
    for guess in sorted(x.test.condition.numbers):
        values = _resolve(x, sources, {**known, x.events[unknown].key: guess})
        if _value_at(x, unknown, own, values) == guess:
            yield _out_of_thin_air(x, sources, values, taken)


def _as_taken(one: PathCondition, known: Mapping[Key, int]) -> bool:
    left, right = evaluate(one.left, known), evaluate(one.right, known)
    return left is None or right is None or COMPARISONS[one.comparison](left, right) is one.outcome


def _resolve(x: PTX64, sources: Sources, known: dict[Key, int]) -> dict[Key, int]:
    """The values of all reads that can be computed so far."""
    known = {**known}
    waiting = {read for read, _ in sources if x.events[read].key not in known}
    while waiting:
        found = {
            read: value
            for read in waiting
            if all((read, cell) in sources for cell in x.cells[read])
            and (value := _value_at(x, read, {cell: sources[read, cell] for cell in x.cells[read]}, known)) is not None
        }
        if not found:
            break
        known.update({x.events[read].key: value for read, value in found.items()})
        waiting -= found.keys()
    return known


def _value_at(x: PTX64, read: int, sources: Mapping[Cell, int], known: Mapping[Key, int]) -> int | None:
    """The value at the location of an event: each cell from its write, the lowest byte first."""
    variable, start, end = x.ranges[read]
    total = 0
    for cell, write in sources.items():
        value = evaluate(x.events[write].value, known)
        if value is None:
            return None
        if x.ranges[write] == (variable, start, end) and all(other == write for other in sources.values()):
            return value
        size = _size(x, cell, end)
        total |= (value >> 8 * (cell[1] - x.ranges[write][1]) & (1 << 8 * size) - 1) << 8 * (cell[1] - start)
    return total


def _size(x: PTX64, cell: Cell, end: int) -> int:
    """The size of a cell in bytes: up to the next cell, or to `end`."""
    return min((other for name, other in x.memory if name == cell[0] and other > cell[1]), default=end) - cell[1]


def _memory(x: PTX64, last: Mapping[Cell, int], known: Mapping[Key, int]) -> dict[str, int]:
    """The final value of each variable."""
    values: dict[str, int] = {}
    for cell, write in last.items():
        variable, at = cell
        value = evaluate(x.events[write].value, known) or 0
        size, whole = _size(x, cell, x.ranges[write][2]), x.test.sizes.get(variable)
        if x.is_whole(variable, at, at + size) and all(other == cell for other in last if other[0] == variable):
            values[variable] = value
            continue
        mask = (1 << 8 * size) - 1
        part = value >> 8 * (at - x.ranges[write][1]) & mask
        first = x.test.variables.get(variable, 0)
        found = values.get(variable, first if whole is None else first & (1 << 8 * whole) - 1)
        values[variable] = found & ~(mask << 8 * at) | part << 8 * at
    for alias in x.test.aliases:
        values[alias] = values.get(x.test.physical(alias), 0)
    return values


def fence_sc_orders(x: PTX64) -> Iterator[Relation]:
    """Every acyclic order of the pairs of morally strong fence.sc operations (6.4: 8.8.3)."""
    pairs = [(a, b) for a, b in x.morally_strong.between(x.fence_scs, x.fence_scs) if a < b]
    for swapped in product((False, True), repeat=len(pairs)):
        order = Relation.of(((b, a) if swap else (a, b) for (a, b), swap in zip(pairs, swapped, strict=True)), x.count)
        if order.is_acyclic:
            yield order

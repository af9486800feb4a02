"""Barrier matching: which arrivals open which waits in an execution.

`bar.sync` is opened by all threads of its CTA that name it, once each: the n-th arrival of one thread belongs to the
n-th of every other.  A barrier with a count is opened by that many arrivals, whichever come first; it stays open, so that
a late thread passes, as the collected tests have it.  An execution in which a wait is never opened has no end,
and neither has one in which two barriers wait for each other: those are deadlocks, which no axiom forbids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product

from ptxvm.model.barrier_generations import phase_orders
from ptxvm.model.execution import Execution
from ptxvm.model.litmus_program import DEPTH, Barrier, Thread
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.relations import Relation
from ptxvm.model.values import Key, evaluate

BarrierKey = tuple[tuple[int, ...], str, int]
"""A barrier: its position in the hierarchy of scopes, its name, and its number."""

Pairs = list[tuple[int, int]]


def barrier_orders(execution: Execution, known: Mapping[Key, int]) -> Iterator[Relation]:
    """Every way in which the barriers of an execution can open; none if it cannot end."""
    if execution.test.cta_threads:
        yield from phase_orders(execution)
        return
    used: dict[BarrierKey, list[int]] = {}
    for i, event in enumerate(execution.events):
        if event.barrier and event.thread:
            used.setdefault(_key(event, known), []).append(i)
    if not used:
        yield Relation.empty(execution.count)
        return
    ways = [list(_openings(execution, barrier, numbers, known)) for barrier, numbers in used.items()]
    for chosen in product(*ways):
        order = Relation.of((pair for pairs in chosen for pair in pairs), execution.count)
        if (order | execution.program_order).is_acyclic:
            yield order


def _key(event: Event, known: Mapping[Key, int]) -> BarrierKey:
    assert event.barrier and event.thread  # noqa: S101, PT018 - for mypy; `barrier_orders` has checked
    depth = DEPTH[event.barrier.scope]
    return event.thread.cta[:depth], event.barrier.name, evaluate(event.identity, known) or 0


def _openings(execution: Execution, barrier: BarrierKey, numbers: list[int], known: Mapping[Key, int]) -> Iterator[Pairs]:
    """The ways in which one barrier opens: pairs of an arrival and a wait."""
    events = execution.events
    arrivals = [i for i in numbers if events[i].kind is EventKind.ARRIVAL]
    waits = [i for i in numbers if events[i].kind is EventKind.WAIT]
    count = next((events[i].count for i in numbers if events[i].count is not None), None)
    if count is not None:
        first = combinations(arrivals, evaluate(count, known) or 0)
        yield from ([(a, b) for a in openers for b in waits] for openers in first)
        return
    threads = [t for t in execution.test.threads if _comes(t, barrier, [events[i] for i in numbers])]
    came, left = ({t.name: [i for i in some if events[i].thread is t] for t in threads} for some in (arrivals, waits))
    rounds = max((len(of_thread) for of_thread in left.values()), default=0)
    if all(len(of_thread) >= rounds for of_thread in came.values()):
        yield [
            (came[a.name][n], left[b.name][n])
            for n in range(rounds)
            for a, b in product(threads, repeat=2)
            if n < len(left[b.name])
        ]


def _comes(thread: Thread, barrier: BarrierKey, events: list[Event]) -> bool:
    """Does the thread take part in the barrier?  A barrier number in a register is known only from the events."""
    within, name, number = barrier
    named = any(
        isinstance(i, Barrier) and i.name == name and i.identity == number and thread.cta[: len(within)] == within
        for i in thread.code
    )
    return named or any(event.thread is thread for event in events)

"""Barrier generations: a barrier opens when all its threads have arrived, and begins anew (PTX 9.7.13.1).

Without a count a barrier waits for every thread of the CTA that has not ended, and `bar.warp.sync` for the lanes of its
mask.  With a count it is opened by that many threads; a warp that comes whole counts as 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.special_registers import WARP
from ptxvm.model.execution import Execution
from ptxvm.model.litmus_program import Thread
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.relations import Relation
from ptxvm.model.search import Steps, flattened

OF_THE_CTA = -1
"""The warp of a barrier of the whole CTA."""

BarrierKey = tuple[tuple[int, int, int], int, str, int]
"""The CTA, the warp, the kind, and the number; the number of a warp barrier is its member mask."""
Queue = Sequence[int]
"""The arrivals of one thread at one barrier, in order."""
Phase = tuple[int, ...]
"""The arrivals that open a barrier together."""
Pairs = list[tuple[int, int]]


def phase_orders(x: Execution) -> Iterator[Relation]:
    """Every way in which the barriers of an execution can open, from arrivals to waits; none if it cannot end."""
    barriers: dict[BarrierKey, dict[str, list[int]]] = {}
    for i, event in enumerate(x.events):
        if event.kind is EventKind.ARRIVAL and event.thread:
            barriers.setdefault(_key(x, event), {}).setdefault(event.thread.name, []).append(i)
    waits = {(event.key[0], event.made_of): i for i, event in enumerate(x.events) if event.kind is EventKind.WAIT}
    for chosen in product(*(list(_openings(x, barrier, queues, waits)) for barrier, queues in barriers.items())):
        order = Relation.of((pair for opened, _ in chosen for pair in opened), x.count)
        ended = Relation.of((pair for _, left in chosen for pair in left), x.count)
        if (order | ended | x.program_order).is_acyclic:
            yield order


def _key(x: Execution, event: Event) -> BarrierKey:
    assert event.barrier and event.thread  # noqa: S101, PT018 - for mypy; `phase_orders` has checked
    kind = event.barrier.name
    warp = number_in_cta(x, event.thread) // WARP if event.barrier.of_warp else OF_THE_CTA
    return event.thread.cta, warp, kind, event.identity if isinstance(event.identity, int) else 0


def number_in_cta(x: Execution, thread: Thread) -> int:
    """The index of a thread in its CTA."""
    return x.test.threads.index(thread) % x.test.cta_threads


def _openings(
    x: Execution, barrier: BarrierKey, queues: Mapping[str, Queue], waits: Mapping[tuple[str, int], int]
) -> Iterator[tuple[Pairs, Pairs]]:
    """The ways in which one barrier opens: pairs of arrival and wait, and waits of ended threads with the waits after them."""
    count = next((x.events[i].count for queue in queues.values() for i in queue if x.events[i].count is not None), None)
    phases = _counted(x, queues, waits, count) if isinstance(count, int) else [_of_all(queues)]
    for chosen in phases:
        opened = [
            (arrival, wait)
            for phase in chosen
            for wait in (_wait(x, other, waits) for other in phase)
            if wait is not None
            for arrival in phase
        ]
        left: Pairs = []
        if count is None:
            waited = [(phase, wait) for phase in chosen for wait in [_wait(x, i, waits) for i in phase] if wait is not None]
            for phase, wait in waited:
                came = {x.events[i].key[0] for i in phase}
                absent = {thread.name for thread in x.test.threads if _is_awaited(x, thread, barrier)} - came
                left += [
                    (i, wait) for i, event in enumerate(x.events) if event.kind is EventKind.WAIT and event.key[0] in absent
                ]
        yield opened, left


def _is_awaited(x: Execution, thread: Thread, barrier: BarrierKey) -> bool:
    cta, warp, _, members = barrier
    if thread.cta != cta:
        return False
    number = number_in_cta(x, thread)
    return warp == OF_THE_CTA or (number // WARP == warp and bool(members >> number % WARP & 1))


def _wait(x: Execution, arrival: int, waits: Mapping[tuple[str, int], int]) -> int | None:
    """The wait of the same instruction; None for an instruction that only arrives."""
    return waits.get((x.events[arrival].key[0], x.events[arrival].made_of))


def _of_all(queues: Mapping[str, Queue]) -> list[Phase]:
    """The phases of a barrier without a count: the n-th arrivals of all threads that have one."""
    rounds = max(map(len, queues.values()))
    return [tuple(queue[n] for queue in queues.values() if n < len(queue)) for n in range(rounds)]


def _counted(
    x: Execution, queues: Mapping[str, Queue], waits: Mapping[tuple[str, int], int], needed: int
) -> Iterator[list[Phase]]:
    """The phases of a barrier with a count: each takes as many whole warps as it needs; a warp left over must not wait."""
    warps: dict[int, list[Queue]] = {}
    for thread in x.test.threads:
        if thread.name in queues:
            warps.setdefault(number_in_cta(x, thread) // WARP, []).append(queues[thread.name])
    if any(len({len(queue) for queue in warp}) > 1 for warp in warps.values()):
        raise Unsupported(
            "a barrier with a count at which some lanes of a warp come more often than others, in a litmus kernel"
        )
    rounds = {warp: len(of_warp[0]) for warp, of_warp in warps.items()}
    for chosen in flattened(_sequences(rounds, -(-needed // WARP))):
        left = {warp: rounds[warp] - sum(warp in phase for phase in chosen) for warp in warps}
        late = [i for warp, n in left.items() for queue in warps[warp] for i in queue[len(queue) - n :]]
        if not any(_wait(x, i, waits) is not None for i in late):
            done = dict.fromkeys(warps, 0)
            phases = []
            for phase in chosen:
                phases.append(tuple(queue[done[warp]] for warp in phase for queue in warps[warp]))
                done.update({warp: done[warp] + 1 for warp in phase})
            yield phases


def _sequences(
    rounds: Mapping[int, int], needed: int, before: tuple[tuple[int, ...], ...] = ()
) -> Steps[tuple[tuple[int, ...], ...]]:
    """The sequences of phases; each phase takes `needed` warps that have arrivals left, until too few are left."""
    ready = [warp for warp, left in rounds.items() if left]
    if len(ready) < needed:
        yield before
        return
    for phase in combinations(ready, needed):
        rest = {warp: left - (warp in phase) for warp, left in rounds.items()}
        yield _sequences(rest, needed, (*before, phase))

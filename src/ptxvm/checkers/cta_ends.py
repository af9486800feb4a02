"""Accesses of the shared memory of a CTA that has perhaps ended: of other CTAs, and of its own asynchronous work.

The shared memory of a CTA is there until its last thread ends.  So an access from another CTA must precede, in base causality
order, the end of one of its threads (PTX 5.1.7, 8.9.5; CUDA C++ Programming Guide, "Distributed Shared Memory").  A thread must
have seen the end of work that goes on without it, too: of a bulk copy or a product.  A copy that each thread groups and awaits
by itself (`cp.async`) is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ptxvm.checkers.clocks import TENSOR_MEMORY, Clocks, joined
from ptxvm.checkers.cluster_order import ClusterOrder
from ptxvm.checkers.shadow import AllocationShadow, Cells, Packing, Records
from ptxvm.checkers.strength import Site
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.window import stride
from ptxvm.named_tuple import NamedTuple


class CtaEnd(NamedTuple):
    """An access by a thread, or by work of it, of a CTA's memory: nothing orders it before the CTA's end.

    `owner` is the first thread of the CTA.
    """

    allocation: Allocation
    site: Site
    thread: int
    owner: int
    byte: int


def outliving(
    shadow: AllocationShadow, clusters: ClusterOrder, packing: Packing, first: int, goes_on: Callable[[int], bool]
) -> Iterator[tuple[int, int, int]]:  # fmt: skip
    """One access of each site: its record, the first thread of the CTA that may have ended before, and a byte.

    The windows of the allocation are those of the CTAs from the one with the thread `first` on.  Work of a site `goes_on`
    where it does not end with its thread.
    """
    clocks = clusters.clocks
    size, space = clocks.grids.size(first), shadow.allocation.space
    cells, records = _of_others(shadow, clocks, packing, first)
    owners = first + size * ((cells << shadow.shift) // stride(space, shadow.allocation.window))
    seen = set[int]()
    for owner in np.unique(owners).tolist():
        known = joined(clusters.outlasts(owner), clocks.snapshot(np.arange(owner, owner + size, dtype=np.int64)))
        mine = np.flatnonzero(owners == owner)
        threads, stamps = packing.thread_of(records[mine]), packing.stamp_of(records[mine])
        for n, thread, stamp in zip(mine.tolist(), threads.tolist(), stamps.tolist(), strict=True):
            home, site = int(clocks.home(thread)), int(packing.site_of(records[n]))
            row = known.get(home)
            own = clocks.home(clocks.grids.owner(thread)) == owner
            if site in seen or (row is not None and row[thread - home] >= stamp):
                continue
            if not own or (goes_on(site) and not _is_over(clusters, range(owner, owner + size), thread, stamp)):
                seen.add(site)
                yield int(records[n]), owner, int(cells[n]) << shadow.shift


def _is_over(clusters: ClusterOrder, threads: Iterable[int], agent: int, stamp: int) -> bool:
    """Has one of the threads seen that work is over?  A relaxed test of an mbarrier tells that, though it orders no memory."""
    clocks, patterns = clusters.clocks, clusters.patterns
    home = int(clocks.home(agent))
    for thread in threads:
        collected = patterns.collected(thread)
        rows = [collected[key] for key in (home, (TENSOR_MEMORY, 0, home)) if key in collected]
        if clocks.knows_of_kind(TENSOR_MEMORY, thread, agent, stamp) or any(stamp <= row[agent - home] for row in rows):
            return True
    return False


def _of_others(shadow: AllocationShadow, clocks: Clocks, packing: Packing, first: int) -> tuple[Cells, Records]:
    """The records of agents, and of threads of other CTAs, with their cells; one of each for a CTA's window suffices."""
    every = [(np.flatnonzero(held), held[held != 0]) for held in (shadow.wrote, shadow.read)]
    every += [overflow.held for overflow in (shadow.writers, shadow.readers) if overflow is not None]
    cells, records = (np.concatenate(parts) for parts in zip(*every, strict=True))
    windows = (cells << shadow.shift) // stride(shadow.allocation.space, shadow.allocation.window)
    threads = packing.thread_of(records)
    homes = clocks.home(clocks.grids.owner(threads))
    foreign = np.flatnonzero((homes != first + windows * clocks.grids.size(first)) | (threads >= clocks.grids.agents))
    _, one = np.unique(np.stack([windows[foreign], records[foreign]]), axis=1, return_index=True)
    return cells[foreign[one]], records[foreign[one]]


__all__ = ["CtaEnd", "outliving"]

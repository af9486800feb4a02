"""Accesses of the shared memory of a CTA that has perhaps ended: by threads of its cluster that its end does not come after.

The shared memory of a CTA is there until its last thread ends.  So an access from another CTA must precede, in base causality
order, the end of one of its threads (PTX 5.1.7, 8.9.5; CUDA C++ Programming Guide, "Distributed Shared Memory").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ptxvm.checkers.clocks import Clocks, joined
from ptxvm.checkers.cluster_order import ClusterOrder
from ptxvm.checkers.shadow import AllocationShadow, Cells, Packing, Records
from ptxvm.checkers.strength import Site
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.window import stride


class CtaEnd(NamedTuple):
    """An access by a thread of the memory of a CTA, of which `owner` is the first thread; nothing orders it before its end."""

    allocation: Allocation
    site: Site
    thread: int
    owner: int
    byte: int


def outliving(
    shadow: AllocationShadow, clusters: ClusterOrder, packing: Packing, first: int
) -> Iterator[tuple[int, int, int]]:  # fmt: skip
    """One access of each site: its record, the first thread of the CTA that may have ended before, and a byte.

    The windows of the allocation are those of the CTAs from the one with the thread `first` on.
    """
    clocks = clusters.clocks
    size, space = clocks.grids.size(first), shadow.allocation.space
    cells, records = _of_other_ctas(shadow, clocks, packing, first)
    owners = first + size * ((cells << shadow.shift) // stride(space, shadow.allocation.window))
    seen = set[int]()
    for owner in np.unique(owners).tolist():
        known = joined(clusters.outlasts(owner), clocks.snapshot(np.arange(owner, owner + size, dtype=np.int64)))
        mine = np.flatnonzero(owners == owner)
        threads, stamps = packing.thread_of(records[mine]), packing.stamp_of(records[mine])
        for n, thread, stamp in zip(mine.tolist(), threads.tolist(), stamps.tolist(), strict=True):
            home, site = int(clocks.home(thread)), int(packing.site_of(records[n]))
            row = known.get(home)
            if site not in seen and (row is None or row[thread - home] < stamp):
                seen.add(site)
                yield int(records[n]), owner, int(cells[n]) << shadow.shift


def _of_other_ctas(shadow: AllocationShadow, clocks: Clocks, packing: Packing, first: int) -> tuple[Cells, Records]:
    """The records of threads and agents of other CTAs, with their cells; one of each for a CTA's window suffices."""
    every = [(np.flatnonzero(held), held[held != 0]) for held in (shadow.wrote, shadow.read)]
    every += [overflow.held for overflow in (shadow.writers, shadow.readers) if overflow is not None]
    cells, records = (np.concatenate(parts) for parts in zip(*every, strict=True))
    windows = (cells << shadow.shift) // stride(shadow.allocation.space, shadow.allocation.window)
    homes = clocks.home(clocks.grids.owner(packing.thread_of(records)))
    foreign = np.flatnonzero(homes != first + windows * clocks.grids.size(first))
    _, one = np.unique(np.stack([windows[foreign], records[foreign]]), axis=1, return_index=True)
    return cells[foreign[one]], records[foreign[one]]


__all__ = ["CtaEnd", "outliving"]

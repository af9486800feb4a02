"""Memory leaks: blocks of the heap to which no pointer is left when the grid has ended.

The heap outlives a grid.  So a block is no leak as long as its address is stored somewhere in global memory: a later grid may
free it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Threads

POINTER = np.dtype(np.uint64)


@dataclass(slots=True)
class HeapBlocks:
    """The blocks that one call of `malloc` has returned, with their threads."""

    bound: Bound
    threads: list[int] = field(default_factory=list)
    blocks: list[Allocation] = field(default_factory=list)


class Leaks:
    """The blocks that a run has allocated, by call."""

    def __init__(self) -> None:
        self._calls: dict[Bound, HeapBlocks] = {}

    def allocated(self, bound: Bound, threads: Threads, blocks: Sequence[Allocation]) -> None:
        """Threads have allocated blocks."""
        call = self._calls.setdefault(bound, HeapBlocks(bound))
        call.threads += threads.tolist()
        call.blocks += blocks

    def lost(self, allocations: Sequence[Allocation]) -> list[HeapBlocks]:
        """The live blocks that are out of reach, by call."""
        candidates = {block for call in self._calls.values() for block in call.blocks if block.live}
        reached = candidates - out_of_reach(candidates, [each for each in allocations if each.space is Space.GLOBAL])
        found = []
        for call in self._calls.values():
            pairs = [(t, b) for t, b in zip(call.threads, call.blocks, strict=True) if b.live and b not in reached]
            if pairs:
                found.append(HeapBlocks(call.bound, [t for t, _ in pairs], [b for _, b in pairs]))
        return found


def out_of_reach(blocks: set[Allocation], allocations: Sequence[Allocation]) -> set[Allocation]:
    """The blocks without a pointer in other memory or in reachable blocks."""
    left = set(blocks)
    work = [each for each in allocations if each not in blocks]
    while work and left:
        found = pointed_at(work, left)
        left -= found
        work = list(found)
    return left


def pointed_at(sources: Sequence[Allocation], blocks: set[Allocation]) -> set[Allocation]:
    """The blocks with a pointer to them, or into them, in some of the sources."""
    ordered = sorted(blocks, key=lambda block: block.start)
    starts = np.array([block.start for block in ordered], np.uint64)
    ends = np.array([block.end for block in ordered], np.uint64)
    found: set[Allocation] = set()
    for source in sources:
        words = pointers(source)
        at = np.searchsorted(starts, words, "right") - 1
        inside = (at >= 0) & (words < ends[np.maximum(at, 0)])
        found |= {ordered[n] for n in np.unique(at[inside]).tolist()}
    return found


def pointers(source: Allocation) -> npt.NDArray[np.uint64]:
    """The aligned words of an allocation, as possible pointers."""
    skipped = -source.start % POINTER.itemsize
    whole = source.bytes[skipped:]
    return whole[: len(whole) // POINTER.itemsize * POINTER.itemsize].view(POINTER)

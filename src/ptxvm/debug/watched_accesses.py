"""The accesses of a grid to the bytes of watchpoints, and where it has made mbarriers."""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.state_space import Space
from ptxvm.debug.breakpoints import Breakpoints, Bytes, Watchpoint
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.lane_memory import LaneMemory
from ptxvm.engine.interp.observed_memory import ObservedMemory
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane


class WatchedAccesses:
    """Follows the accesses of a grid for watchpoints.

    `mbarriers` are the places in shared memory, each an allocation and an offset, where one was made at some time: going back
    in time leaves them.
    """

    def __init__(self, breakpoints: Breakpoints) -> None:
        self.breakpoints = breakpoints
        self.time = 0
        self.observes = False
        self.found: list[tuple[Watchpoint, LaneNumbers]] = []
        self.mbarriers: set[tuple[Allocation, int]] = set()

    def accessed(self, memory: ObservedMemory, access: Access, verb: Verb, lanes: Lanes, address: PerLane) -> None:
        """Note the watchpoints whose bytes lanes have accessed, and mbarriers that they have made."""
        if access.attributes.get("mbarrier") is MbarrierStep.INIT:
            for _, (allocation, _, offsets) in memory.touched_by_lane(access, lanes, address):
                self.mbarriers |= {(allocation, offset) for offset in offsets.tolist()}
        if not self.observes:
            return
        size, every = access.type.bytes * access.count, memory.layout.every(lanes)
        for watch in self.breakpoints.watchpoints:
            wanted = watch.bytes
            if verb not in watch.verbs:
                continue
            for position, (allocation, _, offsets) in memory.touched_by_lane(access, lanes, address):
                first = offsets + (allocation.origin if allocation.home is None else 0)
                if allocation.space.window is not (Space.GLOBAL if wanted.space is Space.CONST else wanted.space):
                    continue
                begin = start_of(memory, wanted)
                hit = (first < begin + wanted.size) & (first + size > begin) if begin is not None else np.zeros(1, np.bool_)
                if np.any(hit):
                    self.found.append((watch, np.atleast_1d(every[position])[np.broadcast_to(hit, len(every[position]))]))

    def take(self) -> list[tuple[Watchpoint, LaneNumbers]]:
        """What was found since the last time."""
        found, self.found = self.found, []
        return found


class Observing:
    """Within `with`, accesses are followed where there are watchpoints."""

    def __init__(self, accesses: WatchedAccesses) -> None:
        self.accesses = accesses

    def __enter__(self) -> None:
        self.accesses.observes = bool(self.accesses.breakpoints.watchpoints)
        self.accesses.found = []

    def __exit__(self, *_: object) -> None:
        self.accesses.observes = False


def start_of(memory: LaneMemory, wanted: Bytes) -> int | None:
    """Where bytes begin in the allocation that has them; None where the cohort has not that CTA."""
    if wanted.space not in (Space.SHARED, Space.LOCAL):
        return wanted.start
    window, layout = memory.window(wanted.space), memory.layout
    ctas = np.flatnonzero(layout.ctas == wanted.cta)
    if window is None or not len(ctas):
        return None
    piece = int(ctas[0]) if wanted.space is Space.SHARED else int(ctas[0]) * layout.threads + wanted.thread
    return piece * window.stride + wanted.start


__all__ = ["Observing", "WatchedAccesses", "start_of"]

"""The table in which compiled code looks up whether a warp knows the accesses of a time (`memory.told_order`)."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ptxvm.engine.jit.checks.cell_tags import Suspicious
from ptxvm.engine.jit.checks.told_knowledge import EVERY, Layers
from ptxvm.engine.jit.memory.tags import EPOCH, MANY
from ptxvm.engine.jit.memory.told_order import ALL, HEADER, MOST, NOTE, STAMPS, TIMES
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.backing import Bytes
from ptxvm.machine.per_lane import Array

FULL = (1 << WARP) - 1
SHIFT = EPOCH.bit_length() - 1
MOST_STAMPS = (1 << 32) - 2 * EPOCH


class ToldTable:
    """The times of a grid, which CTA ran at each, and what its warps know of the others.

    A CTA runs from a time until another one does.  CTAs have numbers, in the order in which they begin.
    """

    def __init__(self, room: Bytes, grid: int) -> None:
        """Nothing is known; `room` begins with the stamps, and `grid` is the time at which the grid begins."""
        self._grid = grid
        self._stamps = room[STAMPS:HEADER].view(np.uint32)
        self._table = room[HEADER + NOTE * MOST :][: 4 * TIMES].view(np.uint32)
        room[:HEADER], self._table[:] = 0, 0
        self._stamp = 0
        self._begins: list[int] = []  # when a CTA began to run, or went on after others ...
        self._numbers: list[int] = []  # ... and which CTA
        self._owners = np.zeros(TIMES, np.uint32)  # the same by place, in front of the last of them
        self._count = 0  # of CTAs that have begun

    @property
    def since(self) -> int:
        """The time from which on the CTA runs."""
        return self._begins[-1]

    def begin(self, time: int) -> int:
        """A CTA begins; returns its number."""
        self._count += 1
        self.run(time, self._count - 1)
        return self._count - 1

    def run(self, time: int, number: int) -> None:
        """A CTA runs from a time on."""
        if self._numbers:
            self._owners[self.place(self.since) : self.place(time)] = self._numbers[-1]
        self._begins.append(time)
        self._numbers.append(number)

    def ran_at(self, time: int) -> int:
        """The number of the CTA that ran at a time."""
        return self._numbers[bisect_right(self._begins, time) - 1]

    def place(self, time: int) -> int:
        """The place of a time in the table."""
        return time - self._grid >> SHIFT

    def enter(self, known: Layers, own: int) -> int:
        """Enter whose accesses some tables tell of, and those of this CTA up to a time; returns the stamp."""
        self._stamp += EPOCH
        if self._stamp > MOST_STAMPS:
            raise Suspicious("threads tell each other too often")
        every = [0] * self._count
        every[self._numbers[-1]] = own
        for layer in known:
            times, steps = layer.parts
            for (_, warp), fences in steps.items():
                if (place := self.place(fences.get(FULL, 0))) in range(TIMES):
                    self._table[place] = self._stamp | warp
            for (cta, number), time in times.items():
                if number == EVERY and every[cta] < time:
                    every[cta] = time
        until = max(map(self.place, every)) + 1
        self._owners[self.place(self.since) : until] = self._numbers[-1]
        owners = self._owners[:until]
        told = np.arange(len(owners)) <= ((np.array(every) - self._grid) >> SHIFT)[owners]
        self._table[: len(owners)][told] = self._stamp | ALL
        return self._stamp

    def stamp(self, warps: int | slice, stamp: int) -> None:
        """Some warps know what has been entered with a stamp."""
        self._stamps[warps] = stamp

    def unknown(self, tags: Array, found: Array, warp: int) -> Array:
        """Which of the accesses that are `found` are not in the table for a warp?"""
        places, low = (tags - np.uint32(self._grid)) >> np.uint32(SHIFT), tags & np.uint32(EPOCH - 1)
        apart = self._table[np.minimum(places, TIMES - 1)] ^ self._stamps[warp]
        told = (places < TIMES) & (((apart == ALL) & (low <= MANY)) | ((apart == low // WARP) & (low < MANY)))
        return np.flatnonzero((found != 0) & ~(told & bool(self._stamps[warp])))

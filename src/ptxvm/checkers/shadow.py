"""Shadow memory: the last writer and the last readers of each byte.

A record is one number, site, stamp and thread side by side, 0 for none; bytes that were always accessed together share a
cell.  A cell has the last write and the last read, and beside each all those that it does not stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.overflow_records import Covers, OverflowRecords
from ptxvm.machine.allocation import Allocation

Records = npt.NDArray[np.int64]
OneOrMore: TypeAlias = Any
"""A record, or an array of them; what is taken out of it is of the same kind."""
Cells = npt.NDArray[np.int64]

MAX_GRAIN = 4


@dataclass(frozen=True, slots=True)
class Packing:
    """How records are packed: the bit where the stamp begins, above the thread, and where the site does."""

    stamp: int
    site: int

    @classmethod
    def of(cls, threads: int) -> Packing:
        """One for a grid of so many threads, their agents, and some grids that they launch."""
        bits = max(24, (4 * threads).bit_length())
        return cls(bits, 63 - max(12, 41 - bits))

    @property
    def threads(self) -> int:
        """How many there is room for."""
        return 1 << self.stamp

    @property
    def stamps(self) -> int:
        """How many there is room for."""
        return 1 << self.site - self.stamp

    @property
    def sites(self) -> int:
        """How many there is room for."""
        return 1 << 63 - self.site

    def record(self, site: int, stamps: Records, threads: Records) -> Records:
        """The records of an access."""
        return stamps << self.stamp | threads | site << self.site

    def thread_of(self, records: OneOrMore) -> OneOrMore:
        """Whose they are."""
        return records & self.threads - 1

    def stamp_of(self, records: OneOrMore) -> OneOrMore:
        """When they were."""
        return records >> self.stamp & self.stamps - 1

    def site_of(self, records: OneOrMore) -> OneOrMore:
        """What they did."""
        return records >> self.site


class Shadow:
    """The shadow of one allocation."""

    def __init__(self, allocation: Allocation, number: int, covers: Covers, packing: Packing) -> None:
        self.allocation, self.number, self._covers, self._packing = allocation, number, covers, packing
        self.written_as_image = False
        self.shift = MAX_GRAIN.bit_length() - 1
        cells = -(-(allocation.end - allocation.origin) // MAX_GRAIN)
        self.wrote, self.read = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.held = np.zeros(cells, np.uint32)  # what the last store has left, where that is told
        self.differ = np.zeros(cells, np.bool_)  # have writes that nothing orders stored different values?
        self.writers: OverflowRecords | None = None  # made when they are first needed
        self.readers: OverflowRecords | None = None

    @property
    def grain(self) -> int:
        """Bytes of a cell."""
        return 1 << self.shift

    def refine(self, size: int) -> None:
        """Make cells as small as an access."""
        while self.grain > size:
            self.shift -= 1
            self.wrote, self.read = np.repeat(self.wrote, 2), np.repeat(self.read, 2)
            self.held, self.differ = self.held.view(f"u{self.grain}"), np.repeat(self.differ, 2)
            for crowd in (self.writers, self.readers):
                if crowd is not None:
                    crowd.halve()

    def further_writes(self) -> OverflowRecords:
        """The writes beside the last one."""
        if self.writers is None:
            self.writers = OverflowRecords(len(self.wrote), self._covers, self._packing.stamp)
        return self.writers

    def further_reads(self) -> OverflowRecords:
        """The reads beside the last one."""
        if self.readers is None:
            self.readers = OverflowRecords(len(self.read), self._covers, self._packing.stamp)
        return self.readers

"""Shadow memory: who wrote and who read each byte last.

A record is one number, `site << 46 | stamp << 24 | thread`, 0 for none; bytes that were always accessed together share a
cell.  A cell has the last write and the last read, and beside each all those that it does not stand for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.crowd import Covers, Crowd
from ptxvm.machine.allocation import Allocation

Records = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int64]

STAMP, SITE = 24, 46  # where the parts of a record begin
THREAD = (1 << STAMP) - 1
CLOCK = (1 << (SITE - STAMP)) - 1
MAX_SITES = 1 << 17
MAX_GRAIN = 4


class Shadow:
    """The shadow of one allocation."""

    def __init__(self, allocation: Allocation, number: int, covers: Covers) -> None:
        self.allocation, self.number, self._covers = allocation, number, covers
        self.shift = MAX_GRAIN.bit_length() - 1
        cells = -(-(allocation.end - allocation.origin) // MAX_GRAIN)
        self.wrote, self.read = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.writers: Crowd | None = None  # made when they are first needed
        self.readers: Crowd | None = None

    @property
    def grain(self) -> int:
        """Bytes of a cell."""
        return 1 << self.shift

    def refine(self, size: int) -> None:
        """Make cells as small as an access."""
        while self.grain > size:
            self.shift -= 1
            self.wrote, self.read = np.repeat(self.wrote, 2), np.repeat(self.read, 2)
            for crowd in (self.writers, self.readers):
                if crowd is not None:
                    crowd.halve()

    def further_writes(self) -> Crowd:
        """The writes beside the last one."""
        if self.writers is None:
            self.writers = Crowd(len(self.wrote), self._covers)
        return self.writers

    def further_reads(self) -> Crowd:
        """The reads beside the last one."""
        if self.readers is None:
            self.readers = Crowd(len(self.read), self._covers)
        return self.readers


def record(site: int, stamps: Records, threads: Records) -> Records:
    """The records of an access."""
    return stamps << STAMP | threads | site << SITE


def thread_of(records: Records) -> Records:
    """Whose they are."""
    return records & THREAD


def stamp_of(records: Records) -> Records:
    """When they were."""
    return records >> STAMP & CLOCK


def site_of(records: Records) -> Records:
    """What they did."""
    return records >> SITE

"""Shadow memory: who wrote and who read each byte last.

A record is one number, `site << 46 | stamp << 24 | thread`, 0 for none; bytes that were always accessed together share a
cell.  A cell has two records of each kind: the last, and one of another thread that the last one does not supersede.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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

    def __init__(self, allocation: Allocation, number: int) -> None:
        self.allocation, self.number = allocation, number
        self.shift = MAX_GRAIN.bit_length() - 1
        cells = -(-(allocation.end - allocation.origin) // MAX_GRAIN)
        self.wrote, self.read = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.also_wrote: Records | None = None  # made when they are first needed
        self.also_read: Records | None = None

    @property
    def grain(self) -> int:
        """Bytes of a cell."""
        return 1 << self.shift

    def refine(self, size: int) -> None:
        """Make cells as small as an access."""
        while self.grain > size:
            self.shift -= 1
            self.wrote, self.read = np.repeat(self.wrote, 2), np.repeat(self.read, 2)
            if self.also_wrote is not None:
                self.also_wrote = np.repeat(self.also_wrote, 2)
            if self.also_read is not None:
                self.also_read = np.repeat(self.also_read, 2)

    def second_writes(self) -> Records:
        """The second records of writes."""
        if self.also_wrote is None:
            self.also_wrote = np.zeros_like(self.wrote)
        return self.also_wrote

    def second_reads(self) -> Records:
        """The second records of reads."""
        if self.also_read is None:
            self.also_read = np.zeros_like(self.read)
        return self.also_read


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

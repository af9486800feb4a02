"""Shadow memory: the last write and the last reads of each byte.

A record is one number that packs a site, a stamp and a thread; 0 is none.  Bytes that were always accessed together share a
cell.  A cell has its last write and its last read, and overflow records for accesses that these do not stand for.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.checkers.overflow_records import Covers, OverflowRecords
from ptxvm.dataclass import dataclass
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Threads

Records = npt.NDArray[np.int64]
OneOrMore: TypeAlias = Any
"""A record, or an array of them; extracted fields have the same kind."""
Cells = npt.NDArray[np.int64]

MAX_GRAIN = 4


@dataclass(frozen=True, slots=True)
class Packing:
    """The layout of records: the first bit of the stamp, above the thread, and the first bit of the site."""

    stamp: int
    site: int

    @classmethod
    def of(cls, threads: int) -> Packing:
        """The layout for a grid with this many threads, their agents, and some launched grids."""
        bits = max(24, (4 * threads).bit_length())
        return cls(bits, 63 - max(12, 41 - bits))

    @property
    def threads(self) -> int:
        """The number of threads that fit."""
        return 1 << self.stamp

    @property
    def stamps(self) -> int:
        """The number of stamps that fit."""
        return 1 << self.site - self.stamp

    @property
    def sites(self) -> int:
        """The number of sites that fit."""
        return 1 << 63 - self.site

    def record(self, site: int, stamps: Records, threads: Records) -> Records:
        """Pack the records of an access."""
        return stamps << self.stamp | threads | site << self.site

    def thread_of(self, records: OneOrMore) -> OneOrMore:
        """The threads of records."""
        return records & self.threads - 1

    def stamp_of(self, records: OneOrMore) -> OneOrMore:
        """The stamps of records."""
        return records >> self.stamp & self.stamps - 1

    def site_of(self, records: OneOrMore) -> OneOrMore:
        """The sites of records."""
        return records >> self.site


class AllocationShadow:
    """The shadow of one allocation."""

    def __init__(self, allocation: Allocation, number: int, covers: Covers, packing: Packing) -> None:
        self.allocation, self.number, self._covers, self._packing = allocation, number, covers, packing
        self.written_as_image = False
        self.shift = MAX_GRAIN.bit_length() - 1
        cells = -(-(allocation.end - allocation.origin) // MAX_GRAIN)
        self.wrote, self.read = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.last_values = np.zeros(cells, np.uint32)  # the value of the last store, where values are followed
        self.differ = np.zeros(cells, np.bool_)  # have unordered writes stored different values?
        self.writers: OverflowRecords | None = None  # made on first use
        self.readers: OverflowRecords | None = None

    @property
    def grain(self) -> int:
        """The size of a cell in bytes."""
        return 1 << self.shift

    def cells_of(self, access: Access, offsets: Offsets, threads: Threads, records: Records) -> tuple[Cells, Threads, Records]:
        """The cells of an access, with the thread and the record of each cell."""
        count = access.type.bytes * access.count >> self.shift
        cells = offsets >> self.shift
        if count == 1:
            return cells, threads, records
        return (cells[:, None] + np.arange(count)).ravel(), threads.repeat(count), records.repeat(count)

    def refine(self, size: int) -> None:
        """Split cells until they are no larger than an access."""
        while self.grain > size:
            self.shift -= 1
            self.wrote, self.read = np.repeat(self.wrote, 2), np.repeat(self.read, 2)
            self.last_values, self.differ = self.last_values.view(f"u{self.grain}"), np.repeat(self.differ, 2)
            for overflow in (self.writers, self.readers):
                if overflow is not None:
                    overflow.halve()

    def further_writes(self) -> OverflowRecords:
        """The overflow records of writes."""
        if self.writers is None:
            self.writers = OverflowRecords(len(self.wrote), self._covers, self._packing.stamp)
        return self.writers

    def further_reads(self) -> OverflowRecords:
        """The overflow records of reads."""
        if self.readers is None:
            self.readers = OverflowRecords(len(self.read), self._covers, self._packing.stamp)
        return self.readers

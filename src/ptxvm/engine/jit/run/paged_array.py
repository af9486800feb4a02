"""Demand paging: arrays whose bytes come from elsewhere when a launch first touches them, in whole pages.

An access to what is not here leaves compiled code on the slow path of its bounds check (`paged_callbacks`), as compiled code
only knows the runs of pages that are here.  An array that is read in order has ever more of its pages fetched ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxvm.machine.backing import Bytes, address_of

PAGE = 1 << 16  # bytes
AHEAD = 1 << 22  # bytes, the most that are fetched at once

Source = Callable[[int, int, Bytes], object]
"""Fills room with the bytes of an array from one position to another."""


class PagedArray:
    """The bytes of an array, of which pages come from a source when they are first asked for."""

    def __init__(self, bytes: Bytes, source: Source) -> None:
        self.bytes, self.source = bytes, source
        self.address = address_of(bytes)
        self._here = np.zeros(-(-len(bytes) // PAGE), np.bool_)
        self._expected, self._size = -1, PAGE  # where the last fetch ended, and what it was to fetch

    def present(self, first: int, end: int) -> tuple[int, int]:
        """Have some bytes here; gives the whole run of bytes around them that are here."""
        if (missing := self._missing(first, end)) is not None:
            self._size = min(2 * self._size, AHEAD) if missing == self._expected else PAGE
            self._expected = -(-max(end, missing + self._size) // PAGE) * PAGE
            self.fetch(missing, self._expected)
        return self._run(first // PAGE)

    def fetch(self, first: int, end: int) -> None:
        """Have those pages here that hold some bytes, and no others."""
        wanted = ~self._here[first // PAGE : -(-end // PAGE)]
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False)) + first // PAGE
        for start, stop in (edges * PAGE).reshape(-1, 2).tolist():
            part = self.bytes[start:stop]
            self.source(start, start + len(part), part)
            self._here[start // PAGE : stop // PAGE] = True

    def _missing(self, first: int, end: int) -> int | None:
        """The start of the first missing page, of those that hold some bytes; None if none is missing."""
        here = self._here[first // PAGE : -(-end // PAGE)]
        return None if here.all() else (first // PAGE + int(here.argmin())) * PAGE

    def _run(self, page: int) -> tuple[int, int]:
        """The bytes of the pages around one that are here."""
        before, after = self._here[page::-1], self._here[page:]
        start = 0 if before.all() else page + 1 - int(before.argmin())
        stop = len(self._here) if after.all() else page + int(after.argmin())
        return start * PAGE, min(stop * PAGE, len(self.bytes))


class DemandPaging:
    """The arrays of a launch whose bytes may not be here, by their addresses.

    One thread at a time calls it.
    """

    def __init__(self, arrays: Sequence[PagedArray]) -> None:
        self.arrays = arrays

    def at(self, address: int) -> PagedArray | None:
        """The array at an address."""
        return next((each for each in self.arrays if 0 <= address - each.address < len(each.bytes)), None)

    def present(self, address: int, size: int) -> tuple[int, int] | None:
        """Have some bytes here; gives the addresses of the run around them that is here, None for memory that always is."""
        array = self.at(address)
        if array is None:
            return None
        start, end = array.present(address - array.address, address - array.address + size)
        return array.address + start, array.address + end

    def fetch_all(self) -> None:
        """Have all bytes of all arrays here."""
        for each in self.arrays:
            each.fetch(0, len(each.bytes))


__all__ = ["PAGE", "DemandPaging", "PagedArray", "Source"]

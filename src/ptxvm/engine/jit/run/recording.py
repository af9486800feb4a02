"""Recordings: arrays in an arena, with a map of the bytes that a launch writes, and one of those that it reads."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ptxvm.engine.jit.abi.launch_record import AT
from ptxvm.engine.jit.run.paged_array import DemandPaging
from ptxvm.machine import backing
from ptxvm.machine.backing import Bytes

ALIGNMENT = mmap.ALLOCATIONGRANULARITY  # bytes of an array's start: a file can be mapped there
HUGE = 1 << 21  # bytes of a large page of the host
BACKED = np.uint64(3 << 62)  # bits of a page in `pagemap`: it is in memory, or on a disk


class Recording:
    """An arena with arrays of some sizes in bytes, all zero, and its maps, of which the host only backs what is touched.

    A byte of a map is 0 until its byte of the arena is touched.  The address of each array is a multiple of that of a page, or
    `shifts` bytes beyond.  `paging` has the arrays of the launch, in the arena or not, whose bytes come when they are touched.
    The CTAs are those of a `grid` of this number, if they are a part of one.
    """

    paging: DemandPaging | None = None
    grid: int | None = None

    def __init__(self, sizes: Sequence[int], shifts: Sequence[int] | None = None) -> None:
        self.sizes, self.starts, end = sizes, list[int](), ALIGNMENT
        self.shifts = [0] * len(sizes) if shifts is None else shifts
        for size, shift in zip(sizes, self.shifts, strict=True):
            self.starts.append(end + shift)
            end += -(-(size + shift) // ALIGNMENT) * ALIGNMENT
        self.size = -(-end // HUGE) * HUGE
        self._pages = mmap.mmap(-1, 3 * self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._parts: list[Bytes] = np.split(np.frombuffer(self._pages, np.uint8), 3)

    def array(self, number: int) -> Bytes:
        """An array."""
        return self._part(0, number)

    def written(self, number: int) -> Bytes:
        """The map of the bytes of an array that were written."""
        return self._part(1, number)

    def read(self, number: int) -> Bytes:
        """The map of the bytes of an array that were read."""
        return self._part(2, number)

    def fill(self, number: int, descriptor: int, offset: int) -> None:
        """Give an array its contents: those of a file at an offset, of which only pages that are touched are read.

        The offset is as far beyond a multiple of a page as the array is.
        """
        shift = self.shifts[number]
        backing.overlay(self.array(number).ctypes.data - shift, self.sizes[number] + shift, descriptor, offset - shift)

    def expect_output(self, number: int) -> None:
        """Have large pages of the host for an array that is only written, and for its map: they are backed in fewer steps.

        More memory is backed than with small ones, where the launch writes here and there.
        """
        if hasattr(mmap, "MADV_HUGEPAGE"):
            for part in (0, 1):
                shift = self.shifts[number]
                start, size = self.starts[number] - shift, self.sizes[number] + shift
                self._pages.madvise(mmap.MADV_HUGEPAGE, part * self.size + start, size)

    def forget_maps(self) -> None:
        """Give the memory of the maps back; the arrays stay, as long as there is a view of one."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED, self.size, 2 * self.size)

    def enter(self, record: memoryview) -> None:
        """Fill in the fields of the launch record that recorded code reads."""
        record[AT["arena"]], record[AT["arena_size"]] = self._parts[0].ctypes.data, self.size
        record[AT["to_writes"]], record[AT["to_reads"]] = self.size, 2 * self.size

    def _part(self, part: int, number: int) -> Bytes:
        start = self.starts[number]
        return self._parts[part][start : start + self.sizes[number]]


def backed(map: Bytes) -> list[tuple[int, int]]:
    """The parts of a map, as starts and ends, that the host has memory for; all others are zero.

    That is the whole map where the host does not say (it is `/proc/self/pagemap` of Linux that does).
    """
    first, last = map.ctypes.data // mmap.PAGESIZE, -(-(map.ctypes.data + len(map)) // mmap.PAGESIZE)
    pages = b""
    if sys.platform == "linux":
        with suppress(OSError), Path("/proc/self/pagemap").open("rb", buffering=0) as file:
            file.seek(8 * first)
            pages = file.read(8 * (last - first))
    if len(pages) < 8 * (last - first):
        return [(0, len(map))]
    there = np.flatnonzero(np.diff((np.frombuffer(pages, np.uint64) & BACKED) != 0, prepend=False, append=False))
    edges = (there + first) * mmap.PAGESIZE - map.ctypes.data
    return [(max(start, 0), min(end, len(map))) for start, end in edges.reshape(-1, 2).tolist()]


__all__ = ["Recording", "backed"]

"""Recordings: arrays in an arena, with a map of the bytes that a launch writes, and one of those that it reads."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

from ptxvm.engine.jit.abi.launch_record import AT
from ptxvm.machine.backing import Bytes

ALIGNMENT = 256  # bytes, as of device memory
HUGE = 1 << 21  # bytes of a large page of the host


class Recording:
    """An arena with arrays of some sizes in bytes, all zero, and its maps, of which the host only backs what is touched.

    A byte of a map is 0 until its byte of the arena is touched.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.starts, end = sizes, list[int](), ALIGNMENT
        for size in sizes:
            self.starts.append(end)
            end += -(-size // ALIGNMENT) * ALIGNMENT
        self.size = -(-end // HUGE) * HUGE
        pages = mmap.mmap(-1, 3 * self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._parts: list[Bytes] = np.split(np.frombuffer(pages, np.uint8), 3)

    def array(self, number: int) -> Bytes:
        """An array."""
        return self._part(0, number)

    def written(self, number: int) -> Bytes:
        """The map of the bytes of an array that were written."""
        return self._part(1, number)

    def read(self, number: int) -> Bytes:
        """The map of the bytes of an array that were read."""
        return self._part(2, number)

    def enter(self, record: memoryview) -> None:
        """Fill in the fields of the launch record that recorded code reads."""
        record[AT["arena"]], record[AT["arena_size"]] = self._parts[0].ctypes.data, self.size
        record[AT["to_writes"]], record[AT["to_reads"]] = self.size, 2 * self.size

    def _part(self, part: int, number: int) -> Bytes:
        start = self.starts[number]
        return self._parts[part][start : start + self.sizes[number]]


__all__ = ["Recording"]

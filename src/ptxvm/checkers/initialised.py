"""Uninitialised reads: of shared and local memory, blocks of `malloc`, and device memory without a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Bits, Offsets, Threads

PARAMETERS = "the parameters of a launch"  # the name of buffers for child grids, which begin without a value
STACKS = frozenset({Space.SHARED, Space.LOCAL})
Report = Callable[[Access, int, Allocation, int, list[int]], None]  # access, thread, allocation, offset, missing bytes


class InitialisedBytes:
    """Tracks which bytes have a value, in memory that begins without one.

    `fresh` is device memory that had no value before the launch.  Loads from shared and local memory hand on what they find,
    and `missing` follows it; what else reads bytes without a value is reported.
    """

    def __init__(self, fresh: set[Allocation], report: Report) -> None:
        self.fresh, self.report = fresh, report
        self._blocks: set[Allocation] = set()  # of the heap: those of earlier launches have what these have written
        self._written: dict[Allocation, npt.NDArray[np.bool_]] = {}

    def allocated(self, blocks: Iterable[Allocation]) -> None:
        """Threads have allocated blocks of the heap."""
        self._blocks.update(blocks)

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        if allocation.space in STACKS and hands_on(access):
            return
        missing = self.missing(allocation, offsets, access.type.bytes * access.count)
        if missing is None or not missing.any():
            return
        missing = missing & used(access)
        if (wrong := missing.any(0)).any():
            first = int(np.argmax(wrong))
            self.report(
                access, int(threads[first]), allocation, int(offsets[first]), np.flatnonzero(missing[:, first]).tolist()
            )

    def wrote(self, access: Access, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have written."""
        written = self._of(allocation)
        if written is not None:
            for n in range(access.type.bytes * access.count):
                written[offsets + n] = True

    def missing(self, allocation: Allocation, offsets: Offsets, size: int) -> Bits | None:
        """The bytes of each access that have no value; None if all have one."""
        written = self._of(allocation)
        return None if written is None else ~written[offsets + np.arange(size)[:, None]]

    def lost(self, allocation: Allocation, offsets: Offsets, missing: Bits) -> None:
        """Some bytes receive a value, others lose theirs."""
        written = self._of(allocation)
        for n, row in enumerate(missing if written is not None else ()):
            written[offsets + n] = ~row  # type: ignore[index]

    def parameters_passed(self, source: Allocation, target: Allocation) -> None:
        """A grid takes its parameters from a buffer that its parent has filled."""
        written = self._of(source)
        if written is not None:
            first = source.start - source.origin
            flags = self._written[target] = np.ones(target.end - target.origin, np.bool_)
            flags[target.start - target.origin :][: source.size] = written[first : first + source.size]

    def ended(self, allocation: Allocation) -> None:
        """An allocation has ended."""
        self._written.pop(allocation, None)
        self._blocks.discard(allocation)

    def _of(self, allocation: Allocation) -> npt.NDArray[np.bool_] | None:
        """The bytes of an allocation that have a value; None if all have one from the start."""
        found = self._written.get(allocation)
        if found is None:
            begins_empty = allocation.space in STACKS or allocation.name == PARAMETERS
            if not begins_empty and allocation not in self.fresh and allocation not in self._blocks:
                return None
            found = self._written[allocation] = np.zeros(allocation.end - allocation.origin, np.bool_)
        return found


def hands_on(access: Access) -> bool:
    """Does an access hand undefined values on: is it that of a load into registers?"""
    summary = access.bound.summary
    return not (summary.copies or summary.having(Verb.UPDATE) or "asynchronous" in access.attributes)


def used(access: Access) -> Bits:
    """The bytes of a load that count, a row for each: all, unless a pragma names them (PTX 12.2)."""
    size, loads = access.type.bytes * access.count, access.bound.summary.having(Verb.READ)
    mask = access.bound.used_bytes if loads else None
    rows = [mask is None or bool(mask >> n & 1) for n in range(size)]
    return np.array(rows, np.bool_)[:, None]

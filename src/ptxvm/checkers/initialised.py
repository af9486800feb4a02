"""Reads of bytes that nobody has written: shared and local memory, blocks of `malloc`, device memory without a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Threads

Report = Callable[[Access, int, Allocation, int], None]  # an access, its thread, and where it reads what has no value


class InitialisedBytes:
    """Which bytes of the memory that begins without a value have one.

    It is kept from run to run for what outlives a run; `known` are the allocations that were there, with a value, before.
    """

    def __init__(self, known: set[Allocation], report: Report) -> None:
        self.known, self.report = known, report
        self._written: dict[Allocation, npt.NDArray[np.bool_]] = {}

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        written = self._of(allocation, access)
        if written is None:
            return
        size = access.type.bytes * access.count
        for n in range(size):
            if not (good := written[offsets + n]).all():
                first = int(np.argmin(good))
                self.report(access, int(threads[first]), allocation, int(offsets[first]))
                return

    def wrote(self, access: Access, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have written."""
        written = self._of(allocation, access)
        if written is not None:
            for n in range(access.type.bytes * access.count):
                written[offsets + n] = True

    def _of(self, allocation: Allocation, access: Access) -> npt.NDArray[np.bool_] | None:
        """The bytes of an allocation; None where all have a value."""
        if allocation in self.known or allocation.space in ("param", "const") or access.space == "param":
            return None
        found = self._written.get(allocation)
        if found is None:
            found = self._written[allocation] = np.zeros(allocation.end - allocation.origin, np.bool_)
        return found

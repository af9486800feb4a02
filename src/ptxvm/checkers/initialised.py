"""Reads of bytes that nobody has written: shared and local memory, blocks of `malloc`, device memory without a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, Threads

HEAP_BLOCK = "a block of malloc"  # as `machine.heap` names them
Report = Callable[[Access, int, Allocation, int], None]  # an access, its thread, and where it reads what has no value


class InitialisedBytes:
    """Which bytes of the memory that begins without a value have one.

    `fresh` is device memory that had none before the launch.
    """

    def __init__(self, fresh: set[Allocation], report: Report) -> None:
        self.fresh, self.report = fresh, report
        self._written: dict[Allocation, npt.NDArray[np.bool_]] = {}

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        written = self._of(allocation, access)
        if written is None:
            return
        for element in range(0, access.type.bytes * access.count, access.type.bytes):
            good = written[offsets + element]
            for n in range(element + 1, element + access.type.bytes):
                more = written[offsets + n]
                # Compilers copy a structure in local memory by words, its padding with it.
                good = good | more if allocation.space == "local" else good & more
            if not good.all():
                first = int(np.argmin(good))
                self.report(access, int(threads[first]), allocation, int(offsets[first]))
                return

    def wrote(self, access: Access, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have written."""
        written = self._of(allocation, access)
        if written is not None:
            for n in range(access.type.bytes * access.count):
                written[offsets + n] = True

    def ended(self, allocation: Allocation) -> None:
        """Some memory is no more."""
        self._written.pop(allocation, None)

    def _of(self, allocation: Allocation, access: Access) -> npt.NDArray[np.bool_] | None:
        """The bytes of an allocation; None where all have a value."""
        begins_without = allocation.space in ("shared", "local") or allocation.name == HEAP_BLOCK or allocation in self.fresh
        if not begins_without or access.space == "param":  # arguments of calls are copied, not stored
            return None
        found = self._written.get(allocation)
        if found is None:
            found = self._written[allocation] = np.zeros(allocation.end - allocation.origin, np.bool_)
        return found

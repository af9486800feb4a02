"""The callbacks of a launch with paged arrays: what an access touches is fetched by the slow path of its bounds check.

The table that compiled code searches has the runs of pages that are here, in place of whole arrays, so all other accesses come
to the slow path.  The quick path is that of a usual launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.launch_record import AT, ROWS
from ptxvm.engine.jit.run.callbacks import Callbacks, flags, lanes_of
from ptxvm.engine.jit.run.paged_array import PAGE, DemandPaging
from ptxvm.machine.allocation import Allocation

if TYPE_CHECKING:
    import numpy.typing as npt


class PagedCallbacks(Callbacks):
    """The callbacks of a kernel that runs on paged arrays."""

    @property
    def paging(self) -> DemandPaging:
        """The paged arrays of the launch."""
        recording = self.launch.recording
        if recording is None or recording.paging is None:
            raise Crash("a launch without paged arrays asks for their pages; please report this")
        return recording.paging

    def learn(self, allocation: Allocation) -> None:
        """Enter an allocation in the table that compiled code searches, unless it is paged."""
        if self.paging.at(allocation.start) is None:
            super().learn(allocation)

    def _check_access(self, number: int, addresses: npt.NDArray[np.uint64], mask: int, warp: int) -> None:
        super()._check_access(number, addresses, mask, warp)
        site = self.facts.sites[number]
        if site.space in self.windows:
            return
        for address in np.unique(addresses[lanes_of(mask)]).tolist():
            if (run := self.paging.present(address, site.size)) is not None:
                self._learn_run(*run)

    def _learn_run(self, start: int, end: int) -> None:
        """Enter bytes that are here in the table, in place of a part of them that it has."""
        count = int(self.record[AT["row_count"]])
        known = self.rows[:count]
        parts = np.flatnonzero((known[:, 0] >= start) & (known[:, 1] <= end))
        at = int(parts[0]) if parts.size else count if count < ROWS else start // PAGE % ROWS
        allocation = self.memory.table.find(start)
        if allocation is None:
            raise Crash(f"pages at 0x{start:x} belong to no allocation; please report this")
        self.rows[at] = start, end, allocation.origin, flags(allocation.space, allocation.writable)
        if at == count:
            self.record[AT["row_count"]] = count + 1
        else:
            self.known_rows = 0

    def _work(self, number: int, room: int, mask: int, warp: int) -> None:
        """Have everything here before the host works: it reads memory without asking."""
        self.paging.fetch_all()
        super()._work(number, room, mask, warp)


__all__ = ["PagedCallbacks"]

"""Snapshots: copies of the memory that outlives a grid, to be restored before another run of it."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation


class Snapshot:
    """A copy of the contents of memory."""

    def __init__(self, allocations: Sequence[Allocation]) -> None:
        self._held = [(each, each.bytes.copy()) for each in outliving(allocations)]

    def restore(self) -> None:
        """Write the copy back."""
        for allocation, values in self._held:
            if allocation.live:
                allocation.bytes[:] = values


def outliving(allocations: Sequence[Allocation]) -> list[Allocation]:
    """The memory that a grid may change and that outlives it."""
    return [each for each in allocations if each.writable and each.space is Space.GLOBAL and not each.yields]

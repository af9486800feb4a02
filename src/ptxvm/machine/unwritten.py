"""Device memory that nothing has written since it was allocated: a client of the driver gives it a value by copies and kernels.

Only the check `init` fills it.  Memory counts as written from the first copy to some of it, and from the first launch after
its allocation, whatever the kernel used of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakSet

from ptxvm.machine.allocation import Allocation
from ptxvm.machine.device import allocation_at

UNWRITTEN: WeakSet[Allocation] = WeakSet()


def written(address: int) -> None:
    """The host, or a copy, writes to the memory at an address."""
    if UNWRITTEN and (found := allocation_at(address)) is not None:
        UNWRITTEN.discard(found)


def launched(allocations: Iterable[Allocation]) -> list[Allocation]:
    """A launch begins, which may write all of some memory: what is unwritten of it until now."""
    found = [each for each in allocations if each in UNWRITTEN] if UNWRITTEN else []
    for each in found:
        UNWRITTEN.discard(each)
    return found


__all__ = ["UNWRITTEN", "launched", "written"]

"""The memory of textures and surfaces: allocations of the device, or arrays of the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture_surface import AccessedBytes

Ints = npt.NDArray[np.int64]


class Images:
    """The memory of the images of a launch."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._arrays: dict[tuple[int, int], Allocation] = {}

    def parts(self, touched: AccessedBytes) -> Iterator[tuple[Allocation, Ints, Ints]]:
        """The accessed bytes by allocation: the lanes that touch it, and their offsets in it."""
        addresses = touched.addresses.astype(np.uint64)
        if not len(addresses):
            return
        columns = self.memory.table.columns
        owners = columns.owners(addresses)
        size = np.uint64(touched.element * touched.count)
        outside = (addresses < columns.start[owners]) | (addresses + size > columns.end[owners])
        owners[outside] = -1
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            allocation = columns.items[owner] if owner >= 0 else self._of_the_host(touched.array)
            yield allocation, touched.lanes[mine], touched.addresses[mine] - allocation.origin

    def _of_the_host(self, array: Array) -> Allocation:
        """The allocation of an array of the host, one for all images of the array and of its parts."""
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        start, end = byte_bounds(whole)
        return self._arrays.setdefault(
            (start, end), Allocation(start, end - start, Space.GLOBAL, f"an array of {array.dtype.name}", live=False)
        )


__all__ = ["Images"]

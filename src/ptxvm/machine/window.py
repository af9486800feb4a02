"""Windows: the shared memory of each CTA, and the local memory of each thread, of a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.machine.backing import Bytes
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.layout import align
from ptxvm.machine.memory import Memory, as_index, fetch, put
from ptxvm.machine.per_lane import Array, LaneNumbers, Lanes, PerLane

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.machine import atomics

Offset: TypeAlias = "npt.NDArray[np.uint64] | npt.NDArray[np.uint32] | np.uint64 | np.uint32"

GRAINS = 256, 1024  # bytes: the least and the greatest alignment of a window
PAGE = 1 << 12  # bytes: addresses at this distance fall into the same lines of the first cache
RANK = 24  # bits of an address in shared memory below the rank of its CTA in the cluster
MASKED_RANKS = range(16)  # the CTAs of a cluster that a mask of 16 bits can name
LOW_WORD = np.uint64(0xFFFF_FFFF)
WITHIN = (1 << RANK) - 1
NOWHERE = 56  # bits of a generic address below the rank of a CTA that there is not


def grain(space: Space, size: int) -> int:
    """The alignment of a window.

    A kernel may align a pointer into its shared memory, as for a swizzle of 128 bytes: it is to be the same in every CTA.
    """
    least, greatest = GRAINS
    return min(max(least, 1 << (size - 1).bit_length()), greatest) if space is Space.SHARED else least


def stride(space: Space, size: int) -> int:
    """Bytes from a window to the next one.

    Those of the threads of a warp would push each other out of the processor's caches at a distance of so many pages.
    """
    step = align(max(size, 1), grain(space, size))
    return step + grain(space, size) if space is Space.LOCAL and step % PAGE == 0 else step


@contextmanager
def elsewhere(windows: Iterable[Window]) -> Iterator[None]:
    """Child grids run meanwhile: they may not access the windows of the CTA that waits for them."""
    allocations = [window.allocation for window in windows]
    for allocation in allocations:
        allocation.foreign += 1
    try:
        yield
    finally:
        for allocation in allocations:
            allocation.foreign -= 1


class Window:
    """One piece of shared or local memory for each CTA or thread of a cohort; an address is an offset in the piece.

    `piece` is the number of the piece of every lane of the cohort.  All pieces are one allocation, so generic addresses
    work too; through them as well a lane reaches its own piece only, or those of its cluster.  In a cluster of several
    CTAs an address has the rank of the CTA above its offset, as on hardware; `base` is that part for each lane.
    """

    def __init__(self, memory: Memory, space: Space, size: int, piece: npt.NDArray[np.integer], cluster: int = 1) -> None:
        """`cluster` pieces in sequence are those of a cluster: a generic address reaches all of them."""
        self.space, self.size, self._memory = space, size, memory
        self.stride = stride(space, size)
        pieces = int(piece.max()) + 1
        owner = "CTA" if space is Space.SHARED else "thread"
        self.allocation = memory.allocate(
            self.stride * pieces, grain(space, size), space, f"the {space} memory", detail=f"{plural(size)} for each {owner}"
        )
        self.home = piece.astype(np.int64) * self.stride
        self.allocation.home, self.allocation.window = self.home, size
        self.base: npt.NDArray[np.uint64] | None = None
        if cluster > 1:
            self.base = piece.astype(np.uint64) % np.uint64(cluster) << np.uint64(RANK)
            self.allocation.home = self.home - (piece.astype(np.int64) % cluster) * self.stride
            self.allocation.pieces, self.allocation.stride = cluster, self.stride
        self._rows: dict[int, LaneNumbers] = {}
        self._is_single = pieces == 1

    @property
    def pieces(self) -> Bytes:
        """The bytes, one row for each piece."""
        rows: Bytes = self.allocation.bytes.reshape(-1, self.stride)[:, : self.size]
        return rows

    def clear(self) -> None:
        """Zero all pieces, for the next CTAs."""
        self.allocation.bytes.fill(0)

    def release(self) -> None:
        """Release the memory."""
        self._memory.release(self.allocation)

    def offsets(self, address: Offset, lanes: Lanes = None) -> Offset:
        """The offsets of addresses in this space; only their low 32 bits count."""
        if self.base is None:
            return address & LOW_WORD
        return (address - (self.base if lanes is None else self.base[lanes])) & LOW_WORD

    def positions(self, offset: PerLane, lanes: Lanes = None) -> PerLane:
        """The positions in the allocation of offsets."""
        at = np.asarray(offset).astype(np.int64)
        return (self.home if lanes is None else self.home[lanes]) + at

    def load(self, dtype: np.dtype[np.generic], offset: Offset, count: int = 1, lanes: Lanes = None) -> PerLane:
        """`Memory.load` for offsets; one offset for all lanes gives an array too, unless there is a single piece."""
        view, index = self.resolve(dtype, offset, count, lanes, writing=False)
        return fetch(view, index, count)

    def store(
        self,
        dtype: np.dtype[np.generic],
        offset: Offset,
        values: PerLane,
        count: int = 1,
        lanes: Lanes = None,
    ) -> None:
        """`Memory.store` for offsets."""
        view, index = self.resolve(dtype, offset, count, lanes, writing=True)
        put(view, index, values, count)

    def atomic(
        self,
        dtype: np.dtype[np.generic],
        offset: Offset,
        operation: str,
        operands: Sequence[PerLane],
        update: atomics.Update | None = None,
        lanes: Lanes = None,
        *,
        old: bool = True,
    ) -> PerLane:
        """`Memory.atomic` for offsets."""
        from ptxvm.machine import atomics  # noqa: PLC0415 - compiled code does its own

        view, index = self.resolve(dtype, offset, 1, lanes, writing=True)
        return atomics.apply(view, index, operation, operands, update, old=old)

    def to_generic(self, offset: Offset, lanes: Lanes = None) -> npt.NDArray[np.uint64]:
        """The generic addresses of offsets."""
        where: npt.NDArray[np.uint64] = self.positions(offset, lanes).view(np.uint64)
        return where + np.uint64(self.allocation.start)

    def from_generic(self, address: npt.NDArray[np.uint64] | np.uint64, lanes: Lanes = None) -> npt.NDArray[np.uint64]:
        """The offsets of generic addresses."""
        home = self.home if lanes is None else self.home[lanes]
        return address - np.uint64(self.allocation.start) - home.view(np.uint64)

    def contains(self, address: PerLane, lanes: Lanes = None) -> PerLane:
        """Which generic addresses lie here?"""
        return self.from_generic(address, lanes) < self.size

    def addresses(self, offset: PerLane, lanes: Lanes = None) -> PerLane:
        """The addresses in this space of offsets."""
        if self.base is None:
            return offset
        return offset + (self.base if lanes is None else self.base[lanes])

    def resolve(
        self, dtype: np.dtype[np.generic], offset: Offset, count: int, lanes: Lanes, *, writing: bool
    ) -> tuple[Array, PerLane]:
        """`Memory.resolve` for offsets."""
        size = dtype.itemsize * count
        shift = size.bit_length() - 1
        index: PerLane
        if isinstance(offset, np.ndarray):
            self._check(offset, size, writing=writing)
            index = as_index(offset >> offset.dtype.type(shift))
        else:
            index = int(offset)
            if index % size or index > self.size - size:
                raise self._refuse(np.array([offset]), size, writing=writing)
            index >>= shift
        view = self.allocation.view(dtype, count)
        if self._is_single:
            return view, index
        rows = self._rows.get(shift)
        if rows is None:
            rows = self._rows[shift] = as_index(self.home >> shift)
        return view, index + (rows if lanes is None else rows[lanes])

    def places(self, offset: npt.NDArray[np.uint64], size: int, lane: int) -> npt.NDArray[np.uint64]:
        """Where pieces of some bytes that a lane reads lie in the memory of this machine."""
        self._check(offset, size, writing=False)
        return offset + np.uint64(self.allocation.origin + int(self.home[lane]))

    def _check(self, offset: Array, size: int, *, writing: bool) -> None:
        """AccessFault where an access is out of bounds, or misaligned; `size` is a power of two."""
        last, bits = self.size - size, int(np.bitwise_or.reduce(offset, axis=None))
        if bits & (size - 1) or (bits > last and (last < 0 or int(offset.max()) > last)):
            raise self._refuse(offset.ravel(), size, writing=writing)

    def fitting(self, offset: Array, size: int) -> npt.NDArray[np.bool_]:
        """Which lanes are in bounds?"""
        good: npt.NDArray[np.bool_] = (offset % size == 0) & (offset <= max(self.size - size, 0)) & (self.size >= size)
        return good

    def _refuse(self, offset: Array, size: int, *, writing: bool) -> AccessFault:
        lane = int(np.argmin(self.fitting(offset, size)))
        address = int(offset[lane])
        verb = "writing" if writing else "reading"
        where = f"{verb} {plural(size)} at {address:#x} of .{self.space}: "
        if address % size:
            return AccessFault("misaligned", f"{where}the address must be a multiple of {size}", address, size, lane)
        why = f"the {self.space} memory has {plural(self.size)}"
        if self.space is Space.SHARED and 0 < (rank := address >> RANK) < MASKED_RANKS.stop:
            why = f"there is no CTA {rank} in a launch without clusters, which `cluster=` gives it, and {why}"
        return AccessFault("out-of-bounds", where + why, address, size, lane)


class ClusterWindow(Window):
    """The shared memory of all CTAs of a cluster (`.shared::cluster`): an address has the rank of a CTA above its offset."""

    def __init__(self, own: Window, cluster: int) -> None:
        """`own` is the window of each CTA's own shared memory."""
        self.space, self.size, self.stride, self.allocation = Space.SHARED_CLUSTER, own.size, own.stride, own.allocation
        self.cluster = cluster
        self.first = own.home - own.home // own.stride % cluster * own.stride  # of each lane, where rank 0 begins
        self.home, self.base = self.first, None

    def positions(self, offset: PerLane, lanes: Lanes = None) -> PerLane:
        """The positions in the allocation of addresses."""
        at = np.asarray(offset).astype(np.int64)
        return (self.first if lanes is None else self.first[lanes]) + (at >> RANK) * self.stride + (at & WITHIN)

    def from_generic(self, address: npt.NDArray[np.uint64] | np.uint64, lanes: Lanes = None) -> npt.NDArray[np.uint64]:
        """The addresses in the cluster of generic addresses."""
        rank, at = np.divmod(super().from_generic(address, lanes), np.uint64(self.stride))
        return rank << np.uint64(RANK) | at

    def contains(self, address: npt.NDArray[np.uint64], lanes: Lanes = None) -> npt.NDArray[np.bool_]:
        """Which generic addresses lie in the cluster?"""
        inside: npt.NDArray[np.bool_] = super().from_generic(address, lanes) < self.cluster * self.stride
        return inside

    def resolve(
        self, dtype: np.dtype[np.generic], offset: Offset, count: int, lanes: Lanes, *, writing: bool
    ) -> tuple[Array, PerLane]:
        """`Memory.resolve` for addresses."""
        size = dtype.itemsize * count
        wanted = np.broadcast_to(offset, len(self.first) if lanes is None else len(lanes))
        if not self.fitting(wanted, size).all():
            raise self._refuse(wanted, size, writing=writing)
        return self.allocation.view(dtype, count), as_index(self.positions(wanted, lanes) // size)

    def fitting(self, offset: Array, size: int) -> npt.NDArray[np.bool_]:
        """Which lanes are in bounds?"""
        good: npt.NDArray[np.bool_] = super().fitting(offset & offset.dtype.type(WITHIN), size)
        there: npt.NDArray[np.bool_] = offset >> offset.dtype.type(RANK) < self.cluster
        return good & there

    def _refuse(self, offset: Array, size: int, *, writing: bool) -> AccessFault:
        lane = int(np.argmin(self.fitting(offset, size)))
        rank, address = int(offset[lane]) >> RANK, int(offset[lane])
        if rank < self.cluster:
            return super()._refuse(offset & offset.dtype.type(WITHIN), size, writing=writing)
        verb = "writing" if writing else "reading"
        said = f"{verb} {plural(size)} at {address:#x} of .{self.space}: there is no CTA {rank} in a cluster of {self.cluster}"
        return AccessFault("out-of-bounds", said, address, size, lane)

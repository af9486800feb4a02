"""Asynchronous transfers of a cohort: copies in bulk and of tensors, one for each thread that starts one (PTX 9.7.9.25)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access, Transferring
from ptxvm.engine.interp.lane_memory import CohortLanes
from ptxvm.machine.per_lane import Addresses, LaneNumbers, PerLane
from ptxvm.machine.transfer_pieces import Pieces

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(slots=True)
class UnderWay:
    """A transfer of one lane; `group` is the number of groups that the lane had committed before.

    `began` is a number for the transfers that lanes started together; `map` the address of the tensor map, if there is one.
    """

    copying: Transferring
    lanes: LaneNumbers
    pieces: Pieces
    group: PerLane
    began: int
    map: int | None = None

    @property
    def kind(self) -> AsyncKind:
        """What waits for it."""
        return self.copying.kind

    def of(self, positions: PerLane) -> UnderWay:
        """The transfer itself: it is one."""
        return self

    def by_barrier(self) -> list[UnderWay]:
        """The part of the transfer whose bytes each mbarrier counts."""
        return [replace(self, pieces=each) for each in self.pieces.split(len(self.pieces.barriers))]

    @property
    def written(self) -> Addresses:
        """The addresses that it writes."""
        pieces = self.pieces
        if pieces.present is None or pieces.fill is not None:
            return pieces.target
        return pieces.target[pieces.present]

    def every(self, addresses: Addresses) -> LaneNumbers:
        """The lane, once for each address."""
        return np.full(len(addresses), self.lanes[0])

    def reachable(self, cohort: CohortLanes) -> bool:
        """Are all its addresses in bounds?  A watched cohort reports the others; any other raises the fault."""
        kind, unit = self.copying.transfer, self.pieces.unit
        read, _ = self.pieces.read()
        for space, addresses, writing in ((kind.origin, read, False), (kind.to, self.written, True)):
            if addresses is not None and len(addresses):
                access = self.copying.access(space, unit)
                good = cohort.mem.reachable(access, self.every(addresses), addresses, writing=writing)
                if len(good) < len(addresses):
                    return False
        return True

    def end(self, cohort: CohortLanes) -> None:
        """Move the bytes, then tell the mbarriers."""
        from ptxvm.machine import reductions  # noqa: PLC0415 - few kernels have transfers

        kind, pieces, mem = self.copying.transfer, self.pieces, cohort.mem
        read, some = pieces.read()
        found = self._load(cohort, kind.origin, read) if read is not None else pieces.data
        assert found is not None  # noqa: S101 - what is not read is given
        rows, target = pieces.filled(reductions.moved(kind, pieces.element, found), some)
        lanes, access = self.every(target), self.copying.access(kind.to, pieces.unit, combines=bool(kind.operation))
        if kind.operation:
            old = self._load(cohort, kind.to, target)
            rows = reductions.combined(kind.operation, pieces.element, old, rows, flushes=kind.flushes)
        if len(target):
            mem.store(access, lanes, None, target, as_columns(rows, access))
        for barrier in pieces.barriers:
            where, amount = np.array([barrier], np.uint64), np.array([pieces.amount], np.uint64)
            mem.atomic(self.copying.barrier, self.lanes, None, where, self.copying.update, [amount])

    def _load(self, cohort: CohortLanes, space: Space, addresses: Addresses) -> npt.NDArray[np.uint8]:
        access = self.copying.access(space, self.pieces.unit)
        if not len(addresses):
            return np.empty((0, self.pieces.unit), np.uint8)
        return as_rows(cohort.mem.load(access, self.every(addresses), None, addresses), len(addresses))


def as_rows(loaded: PerLane, count: int) -> npt.NDArray[np.uint8]:
    """The bytes of what was loaded, a row for each lane."""
    columns = np.reshape(loaded, (-1, count))
    return np.ascontiguousarray(columns.T).view(np.uint8).reshape(count, -1)


def as_columns(rows: npt.NDArray[np.uint8], access: Access) -> list[PerLane]:
    """Rows of bytes as the elements of an access, a column for each."""
    return list(np.ascontiguousarray(np.ascontiguousarray(rows).view(access.dtype).reshape(len(rows), -1).T))

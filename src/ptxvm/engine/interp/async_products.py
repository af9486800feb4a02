"""Asynchronous products of warps, whose registers change when the machine ends them (PTX 9.7.15.5, 9.7.15.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ptxvm.engine.interp.lane_memory import CohortLanes, located
from ptxvm.engine.interp.ports import Multiplying
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import GROUPS
from ptxvm.machine import warpgroup_matrix
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import LaneNumbers, PerLane, RegisterFile


class ProductCohort(CohortLanes, Protocol):
    """The part of a cohort that its products use."""

    size: int
    own: RegisterFile


@dataclass
class Product:
    """Products that warps started with one instruction: the registers and descriptors of their lanes, warp after warp.

    D stays in its registers, at `slots` of a file: products of one accumulator come one after the other.
    """

    work: Multiplying
    lanes: LaneNumbers
    file: RegisterFile
    slots: Sequence[int]
    a: Sequence[PerLane]
    b: PerLane
    enabled: PerLane
    further: Sequence[Sequence[PerLane]]
    group: PerLane
    kind: str = GROUPS

    def of(self, positions: PerLane) -> Product:
        """The products of the lanes at some positions."""
        return replace(
            self, lanes=self.lanes[positions], a=[each[positions] for each in self.a], b=self.b[positions],
            enabled=self.enabled[positions], further=[[each[positions] for each in part] for part in self.further],
            group=self.group[positions],
        )  # fmt: skip

    def whole(self, due: PerLane) -> PerLane:
        """Which lanes are due: all lanes of a warp, or none."""
        found: PerLane = np.repeat(due[::WARP], WARP)
        return found

    def reads(self, cohort: ProductCohort) -> tuple[LaneNumbers, PerLane]:
        """The pieces of shared memory that the first lane of each warp will read: lanes and addresses."""
        lanes, places = [], []
        with self._placed():
            there = warpgroup_matrix.factors(self.work.spec, self._warps(cohort), self.a, self.b)
        for _, found in there:
            for leader, each in zip(self.lanes[::WARP], found, strict=True):
                addresses = each.reshape(-1)
                lanes.append(np.full(len(addresses), leader))
                places.append(addresses)
        return np.concatenate(lanes), np.concatenate(places)

    def finish(self, cohort: ProductCohort) -> None:
        """Read shared memory and the registers of D, and write them."""
        d = [np.broadcast_to(self._register(cohort, slot), cohort.size)[self.lanes] for slot in self.slots]

        def read(warp: int, addresses: PerLane) -> PerLane:
            lanes = np.full(len(addresses), self.lanes[warp * WARP])
            words = cohort.mem.load(self.work.access, lanes, None, addresses)
            return np.ascontiguousarray(np.reshape(words, (4, -1)).T)

        with self._placed():
            made = warpgroup_matrix.multiply(
                self.work.spec, self.work.architecture, self._warps(cohort), [each.view(np.uint32) for each in d], self.a,
                self.b, self.enabled, self.further, read,
            )  # fmt: skip
        for slot, old, value in zip(self.slots, d, made, strict=True):
            self._put(cohort, slot, value.view(old.dtype))

    def _warps(self, cohort: ProductCohort) -> LaneNumbers:
        found: LaneNumbers = cohort.layout.thread[self.lanes[::WARP]] // WARP
        return found

    def _register(self, cohort: ProductCohort, slot: int) -> PerLane:
        return self.file[slot] if slot >= 0 else cohort.own[~slot]

    def _put(self, cohort: ProductCohort, slot: int, value: PerLane) -> None:
        """Rebind a register: its old array may be that of others."""
        whole = np.array(np.broadcast_to(self._register(cohort, slot), cohort.size))
        whole[self.lanes] = value
        if slot >= 0:
            self.file[slot] = whole
        else:
            cohort.own[~slot] = whole

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """A fault gets its instruction and lane."""
        try:
            yield
        except AccessFault as fault:
            raise located(fault, self.work.access, self.lanes) from None

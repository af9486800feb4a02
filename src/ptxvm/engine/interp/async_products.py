"""Asynchronous products of warps, whose registers change when the machine ends them (PTX 9.7.15.5, 9.7.15.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.lane_memory import CohortLanes, located
from ptxvm.engine.interp.ports import Multiplying
from ptxvm.engine.interp.register_slots import RegisterSlots
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import warpgroup_matrix
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import LaneNumbers, PerLane, RegisterFile


class ProductCohort(CohortLanes, Protocol):
    """The part of a cohort that its products use."""

    size: int
    own: RegisterFile


@dataclass
class StartedProduct:
    """Products that warps started with one instruction: the registers and descriptors of their lanes, warp after warp.

    D stays in its registers: products of one accumulator come one after the other.
    """

    work: Multiplying
    lanes: LaneNumbers
    registers: RegisterSlots
    a: Sequence[PerLane]
    b: PerLane
    enabled: PerLane
    further: Sequence[Sequence[PerLane]]
    group: PerLane
    kind: AsyncKind = AsyncKind.PRODUCT

    @property
    def bound(self) -> Bound:
        """The instruction."""
        return self.work.bound

    def of(self, positions: PerLane) -> StartedProduct:
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
        lanes, pieces = [], []
        with self._placed():
            there = warpgroup_matrix.factors(self.work.spec, self._warps(cohort), self.a, self.b)
        for _, found in there:
            for leader, each in zip(self.lanes[::WARP], found, strict=True):
                addresses = each.reshape(-1)
                lanes.append(np.full(len(addresses), leader))
                pieces.append(addresses)
        every = np.concatenate(lanes)
        return every, cohort.mem.shared.addresses(np.concatenate(pieces), every)

    def finish(self, cohort: ProductCohort) -> None:
        """Read shared memory and the registers of D, and write them."""
        d = self.registers.read(cohort, self.lanes)

        def read(warp: int, addresses: PerLane) -> PerLane:
            lanes = np.full(len(addresses), self.lanes[warp * WARP])
            words = cohort.mem.load(self.work.access, lanes, None, cohort.mem.shared.addresses(addresses, lanes))
            return np.ascontiguousarray(np.reshape(words, (4, -1)).T)

        with self._placed():
            made = warpgroup_matrix.multiply(
                self.work.spec, self.work.architecture, self._warps(cohort), [each.view(np.uint32) for each in d], self.a,
                self.b, self.enabled, self.further, read,
            )  # fmt: skip
        self.registers.write(cohort, self.lanes, made)

    def _warps(self, cohort: ProductCohort) -> LaneNumbers:
        found: LaneNumbers = cohort.layout.thread[self.lanes[::WARP]] // WARP
        return found

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """A fault gets its instruction and lane."""
        try:
            yield
        except AccessFault as fault:
            raise located(fault, self.work.access, self.lanes) from None

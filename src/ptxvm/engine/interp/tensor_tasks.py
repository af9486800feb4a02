"""Tensor memory of a cohort's CTAs, and the asynchronous work on it (PTX 9.7.16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.lane_memory import CohortLanes, located
from ptxvm.engine.interp.lanes import spread
from ptxvm.engine.interp.ports import Tensor
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import Allocate, CopyToTensor, InvalidDescriptor, Multiply
from ptxvm.machine import tensor_unit
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane
from ptxvm.machine.tensor_memory import TensorMemory


class TensorCohort(CohortLanes, Protocol):
    """The part of a cohort that its tensor memory uses."""

    def product_started(self, access: Access, lanes: LaneNumbers, addresses: PerLane) -> None:
        """Lanes have started work that reads shared memory."""


@dataclass
class TensorTask:
    """Work that threads have started, one after the other in each CTA."""

    tensor: Tensor
    unit: TensorUnit
    lanes: LaneNumbers
    operands: dict[str, PerLane]
    group: PerLane
    kind: str = "tcgen05"

    def of(self, positions: PerLane) -> TensorTask:
        """The work of the threads at some positions."""
        operands = {name: each[positions] for name, each in self.operands.items()}
        return replace(self, lanes=self.lanes[positions], operands=operands, group=self.group[positions])

    def finish(self) -> None:
        """Do it."""
        self.unit.do(self.tensor, self.lanes, self.operands)


class TensorUnit:
    """The tensor memory of the CTAs of a cohort."""

    def __init__(self, cohort: TensorCohort, start: Callable[[TensorTask], None]) -> None:
        self.cohort, self.start = cohort, start
        self.memories: dict[int, TensorMemory] = {}
        self.doing: Tensor | None = None
        self.allocated_at: dict[int, tuple[Bound, int]] = {}  # of each CTA, the last instruction and its lane

    def perform(self, tensor: Tensor, lanes: Lanes, guard: Guard, operands: dict[str, PerLane]) -> list[PerLane]:
        """Do or start the work of some lanes."""
        every = self.cohort.layout.every(lanes)
        positions = np.flatnonzero(np.broadcast_to(True if guard is None else guard, len(every)))
        numbers = every[positions]
        given = {name: spread(each, positions) for name, each in operands.items()}
        if not len(numbers):
            return []
        if not tensor.work.asynchronous:
            return self.do(tensor, numbers, given)
        with self._placed(tensor, numbers):
            self._check(tensor, numbers, given)
        self.start(TensorTask(tensor, self, numbers, given, np.zeros(len(numbers), np.int64)))
        return []

    def do(self, tensor: Tensor, lanes: LaneNumbers, operands: dict[str, PerLane]) -> list[PerLane]:
        """Do the work of some lanes now."""
        self.doing = tensor
        if isinstance(tensor.work, Allocate):
            self.allocated_at.update((int(self.cohort.layout.cta[lane]), (tensor.bound, int(lane))) for lane in lanes)
        with self._placed(tensor, lanes):
            return tensor_unit.perform(tensor.work, self, lanes, operands)

    def _check(self, tensor: Tensor, lanes: LaneNumbers, operands: dict[str, PerLane]) -> None:
        """Check the descriptors and the addresses of shared memory that they name, and report what will be read."""
        for n, lane in enumerate(lanes.tolist()):
            own = {name: int(each[n]) for name, each in operands.items()}
            try:
                if isinstance(tensor.work, Multiply):
                    places = [each.reshape(-1) for _, each in tensor_unit.factors(tensor.work, own)]
                elif isinstance(tensor.work, CopyToTensor):
                    places = [tensor_unit.copy_addresses(tensor.work, own["b"]).reshape(-1)]
            except InvalidDescriptor as wrong:
                raise AccessFault("invalid-descriptor", str(wrong), lane_index=n) from None
            addresses = np.concatenate(places)
            lanes_of = np.full(len(addresses), lane)
            self.cohort.mem.reachable(tensor.read, lanes_of, addresses, writing=False)
            self.cohort.product_started(tensor.read, lanes_of, addresses)

    @contextmanager
    def _placed(self, tensor: Tensor, lanes: LaneNumbers) -> Iterator[None]:
        """A fault gets its instruction and lane."""
        try:
            yield
        except AccessFault as fault:
            raise located(fault, tensor.read, lanes) from None

    def leaked(self) -> tuple[str, Bound, int] | None:
        """What a CTA has not given back, with the instruction that allocated it and its lane."""
        for cta, memory in self.memories.items():
            if said := memory.leaked():
                return said, *self.allocated_at[cta]
        return None

    # ── what the work needs ─────────────────────────────────────────────────────────────

    def tensor_memory(self, lane: int) -> TensorMemory:
        """The tensor memory of the CTA of a lane."""
        return self.memories.setdefault(int(self.cohort.layout.cta[lane]), TensorMemory())

    def warp_of(self, lane: int) -> int:
        """The number of the warp of a lane in its CTA."""
        return int(self.cohort.layout.thread[lane]) // WARP

    def read_pieces(self, lane: int, addresses: PerLane) -> PerLane:
        """Pieces of 16 bytes of shared memory: rows of four words."""
        assert self.doing is not None  # noqa: S101 - for mypy; work is done for an instruction
        words = self.cohort.mem.load(self.doing.read, np.full(len(addresses), lane), None, addresses)
        return np.ascontiguousarray(np.reshape(words, (4, -1)).T)

    def multiply(self, *_: object) -> None:
        """The interpreter has no faster code."""

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""
        assert self.doing is not None  # noqa: S101 - for mypy; work is done for an instruction
        lanes, value = np.array([lane]), np.array([word], np.uint32)
        self.cohort.mem.store(self.doing.write, lanes, None, np.array([address], np.uint64), (value,))

"""Tensor memory of a cohort's CTAs, and the asynchronous work on it (PTX 9.7.16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Protocol

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.lane_memory import CohortLanes, located
from ptxvm.engine.interp.lanes import spread
from ptxvm.engine.interp.ports import TensorAccess
from ptxvm.engine.interp.register_slots import RegisterSlots
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import (
    Allocate,
    CopyToTensor,
    Free,
    InvalidDescriptor,
    Load,
    Move,
    Multiply,
    Shift,
    TensorWork,
)
from ptxvm.machine import tensor_blocks, tensor_engine, tensor_products, tensor_unit
from ptxvm.machine.faults import AccessFault, PlacedFault
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.machine.tensor_memory import NO_PAIR, TensorMemory


class TensorCohort(CohortLanes, Protocol):
    """The part of a cohort that its tensor memory uses."""

    size: int
    own: RegisterFile

    def product_started(self, access: Access, lanes: LaneNumbers, addresses: PerLane, starter: int | None = None) -> None:
        """A lane has started work that reads shared memory: of the CTAs of `lanes`, which correspond to it."""

    def tensor_started(
        self, bound: Bound, kind: AsyncKind | None, cta: int, lanes: LaneNumbers, blocks: Sequence[CellBlock]
    ) -> None:
        """A warp, or one lane, starts work on blocks of the tensor memory of a CTA of the cohort."""


@dataclass
class TensorTask:
    """Work that threads have started, one after the other in each CTA."""

    tensor: TensorAccess
    unit: TensorUnit
    lanes: LaneNumbers
    operands: dict[str, PerLane]
    group: PerLane
    kind: AsyncKind = AsyncKind.TENSOR

    @property
    def bound(self) -> Bound:
        """The instruction."""
        return self.tensor.bound

    def of(self, positions: PerLane) -> TensorTask:
        """The work of the threads at some positions."""
        operands = {name: each[positions] for name, each in self.operands.items()}
        return replace(self, lanes=self.lanes[positions], operands=operands, group=self.group[positions])

    def whole(self, due: PerLane) -> PerLane:
        """Which threads are due: where warps do the work, all lanes of a warp, or none."""
        found: PerLane = np.repeat(due[::WARP], WARP) if self.tensor.work.collective else due
        return found

    def finish(self) -> list[PerLane]:
        """Do it."""
        return self.unit.do(self.tensor, self.lanes, self.operands)


@dataclass
class TensorLoad(TensorTask):
    """Loads that warps have started, and the registers that they write when they end."""

    registers: RegisterSlots = field(kw_only=True)

    def finish(self) -> list[PerLane]:
        """Do it, and write the registers."""
        made = super().finish()
        self.registers.write(self.unit.cohort, self.lanes, made)
        return made


class Queue(Protocol):
    """The asynchronous work of a cohort."""

    early: bool

    def add(self, task: TensorTask) -> None:
        """Start work on tensor memory."""

    def loading(self, load: TensorLoad) -> None:
        """Loads have started whose registers are in use until the wait."""


def kind_of(work: TensorWork) -> AsyncKind:
    """The kind of the work, which says how it is waited for: by a commit, or by `tcgen05.wait`."""
    if not work.collective:
        return AsyncKind.TENSOR
    return AsyncKind.TENSOR_LOAD if isinstance(work, Load) else AsyncKind.TENSOR_STORE


class TensorUnit:
    """The tensor memory of the CTAs of a cohort."""

    faster = None

    def __init__(self, cohort: TensorCohort, queue: Queue) -> None:
        self.cohort, self.queue = cohort, queue
        self.memories: dict[int, TensorMemory] = {}
        self.doing: TensorAccess | None = None
        self.allocated_at: dict[int, tuple[Bound, int]] = {}  # of each CTA, the last instruction and its lane

    def perform(self, tensor: TensorAccess, lanes: Lanes, guard: Guard, operands: dict[str, PerLane]) -> None:
        """Do or start the work of some lanes."""
        numbers, of_lanes = self._named(lanes, guard, operands)
        if not len(numbers):
            return
        if not tensor.work.asynchronous:
            for first in range(0, len(numbers), WARP) if isinstance(tensor.work, Free) else ():
                warp = numbers[first : first + WARP]
                blocks = tensor_blocks.of_allocation({name: int(each[first]) for name, each in of_lanes.items()})
                self.cohort.tensor_started(tensor.bound, None, self._cta(int(warp[0])), warp, blocks)
            self.do(tensor, numbers, of_lanes)
            return
        if not self._check(tensor, numbers, of_lanes):
            return
        self.queue.add(TensorTask(tensor, self, numbers, of_lanes, np.zeros(len(numbers), np.int64), kind_of(tensor.work)))

    def load(
        self, tensor: TensorAccess, lanes: Lanes, file: RegisterFile, slots: Sequence[int], operands: dict[str, PerLane]
    ) -> list[PerLane]:
        """Start to load; returns what the registers hold until the load ends.

        Where the machine ends work at once, or a register is the module's, which every function sees, it ends at once.
        """
        numbers, of_lanes = self._named(lanes, None, operands)
        self._check(tensor, numbers, of_lanes)
        registers = RegisterSlots(file, slots)
        load = TensorLoad(
            tensor, self, numbers, of_lanes, np.zeros(len(numbers), np.int64), AsyncKind.TENSOR_LOAD, registers=registers
        )
        self.queue.loading(load)
        if self.queue.early or len(slots) < len(tensor.work.results) or min(slots) < 0:
            return TensorTask.finish(load)
        self.queue.add(load)
        return [each.view(np.uint32) for each in registers.read(self.cohort, numbers)]

    def _named(self, lanes: Lanes, guard: Guard, operands: dict[str, PerLane]) -> tuple[LaneNumbers, dict[str, PerLane]]:
        """The numbers of the lanes whose guard holds, and their operands."""
        every = self.cohort.layout.every(lanes)
        positions = np.flatnonzero(np.broadcast_to(True if guard is None else guard, len(every)))
        return every[positions], {name: spread(each, positions) for name, each in operands.items()}

    def do(self, tensor: TensorAccess, lanes: LaneNumbers, operands: dict[str, PerLane]) -> list[PerLane]:
        """Do the work of some lanes now."""
        self.doing = tensor
        if isinstance(tensor.work, Allocate):
            self.allocated_at.update((int(self.cohort.layout.cta[lane]), (tensor.bound, int(lane))) for lane in lanes)
        with self._placed(tensor, lanes):
            return tensor_unit.perform(tensor.work, self, lanes, operands)

    def _check(self, tensor: TensorAccess, lanes: LaneNumbers, operands: dict[str, PerLane]) -> bool:
        """Check the descriptors and the addresses, and report what will be read and written.

        Are all addresses in bounds?  A watched cohort reports the others; any other raises the fault.
        """
        work, step, good = tensor.work, WARP if tensor.work.collective else 1, True
        with self._placed(tensor, lanes):
            if work.collective:
                tensor_unit.whole_warps(lanes)
            for first in range(0, len(lanes), step):
                some = lanes[first : first + step]
                own = {name: each[first : first + step] for name, each in operands.items()}
                try:
                    blocks = self._blocks(work, int(some[0]), own)
                    good &= self._check_shared(tensor, int(some[0]), {name: int(each[0]) for name, each in own.items()})
                except InvalidDescriptor as wrong:
                    raise AccessFault("invalid-descriptor", str(wrong), lane_index=first) from None
                except PlacedFault:
                    raise
                except AccessFault as fault:
                    raise fault.at_lane(first + fault.lane_index) from None
                for cta, there in blocks if good else ():
                    self.cohort.tensor_started(tensor.bound, kind_of(work), cta, some, there)
        return good

    def _blocks(self, work: TensorWork, lane: int, operands: dict[str, PerLane]) -> list[tuple[int, list[CellBlock]]]:
        """The cells that a warp, or one lane, will read and write, in each CTA."""
        first = tensor_unit.uniform(operands)
        if isinstance(work, Move):
            there = tensor_blocks.of_move(work, self.tensor_memory(lane), self.warp_of(lane), first)
            return [(self._cta(lane), there)]
        if isinstance(work, CopyToTensor | Multiply | Shift):
            lanes = tensor_engine.ctas(work, self, lane)
            return [(self._cta(each), tensor_blocks.of_thread(work, self.tensor_memory(each), first)) for each in lanes]
        return []

    def _cta(self, lane: int) -> int:
        return int(self.cohort.layout.cta[lane])

    def _check_shared(self, tensor: TensorAccess, lane: int, operands: dict[str, int]) -> bool:
        """Check the matrices in shared memory, and report that they will be read; are all of their addresses in bounds?"""
        if isinstance(tensor.work, Multiply):
            pieces = [each.reshape(-1) for _, each in tensor_products.factors(tensor.work, operands)]
        elif isinstance(tensor.work, CopyToTensor):
            pieces = [tensor_unit.copy_addresses(tensor.work, operands["b"]).reshape(-1)]
        else:
            return True
        for each in tensor_engine.ctas(tensor.work, self, lane):
            offsets = np.concatenate(pieces)
            lanes_of = np.full(len(offsets), each)
            addresses = self.cohort.mem.shared.addresses(offsets, lanes_of)
            if len(self.cohort.mem.reachable(tensor.read, lanes_of, addresses, writing=False)) < len(addresses):
                return False
            self.cohort.product_started(tensor.read, lanes_of, addresses, lane)
        return True

    @contextmanager
    def _placed(self, tensor: TensorAccess, lanes: LaneNumbers) -> Iterator[None]:
        """A fault gets its instruction and lane."""
        try:
            yield
        except AccessFault as fault:
            raise located(fault, tensor.read, lanes) from None

    def leaked(self) -> tuple[str, Bound, int] | None:
        """The columns that a CTA has not freed, with the instruction that allocated them and its lane."""
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

    def of_pair(self, lane: int, rank: int) -> int:
        """The lane with the same number in the even or odd CTA of the pair."""
        layout = self.cohort.layout
        if layout.shape.cluster_size % 2:
            raise AccessFault("tensor-memory", NO_PAIR)
        return lane + (rank - int(layout.cta[lane]) % 2) * layout.threads

    def read_pieces(self, lane: int, addresses: PerLane) -> PerLane:
        """Pieces of 16 bytes of shared memory: rows of four words."""
        return self._read(lane, addresses, 4)

    def read_words(self, lane: int, addresses: PerLane) -> PerLane:
        """Words of shared memory."""
        return self._read(lane, addresses, 1)

    def _read(self, lane: int, addresses: PerLane, words: int) -> PerLane:
        assert self.doing is not None  # noqa: S101 - for mypy; work is done for an instruction
        lanes, mem = np.full(len(addresses), lane), self.cohort.mem
        found = mem.load(replace(self.doing.read, count=words), lanes, None, mem.shared.addresses(addresses, lanes))
        return np.ascontiguousarray(np.reshape(found, (words, -1)).T)

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""
        assert self.doing is not None  # noqa: S101 - for mypy; work is done for an instruction
        lanes, value = np.array([lane]), np.array([word], np.uint32)
        self.cohort.mem.store(self.doing.write, lanes, None, np.array([address], np.uint64), (value,))

"""The port `tmem`: work on tensor memory is done at once, by functions of the module or by host calls (PTX 9.7.16)."""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.lower import tensor_plans
from ptxvm.engine.jit.lower.tensor_plans import Quick
from ptxvm.engine.jit.lower.tile_products import Tiles
from ptxvm.engine.jit.node.port import Port, Request
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import Free, Multiply, TensorWork, instruction_descriptor
from ptxvm.machine import tensor_unit
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.tensor_core import Architecture
from ptxvm.machine.tensor_memory import NO_PAIR, TensorMemory as Cells
from ptxvm.machine.tensor_products import product_of
from ptxvm.machine.window import RANK, Window

WORD = np.dtype(np.uint32)


class TensorMemory(Port):
    """The port `tmem`."""

    def converge_for_columns(self, members: Value, columns: Value) -> Request:
        """Wait for the lanes of the warp, and for columns."""
        return Request((members, columns))

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Do work by a function of the module, or by a host call."""
        inputs = [(value.type, value.raw) for value in operands.values()]
        call = TensorCall(work, tuple(operands), self.at.kernel.fast)
        named = [(name, type) for name, (type, _) in zip(operands, inputs, strict=True)]
        quick = tensor_plans.written(self.at, work, named) or Quick(None, "", whole=True)
        return self.at.host_call(self.bound, call, inputs, list(work.results), quick.name, quick.arguments, whole=quick.whole)


@dataclass(frozen=True)
class TensorCall:
    """Host call: work on tensor memory, and the names of its operands; `fast` for numerics within the bounds of the manual."""

    work: TensorWork
    names: tuple[str, ...]
    fast: bool

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Do it for the active lanes."""
        operands, machine = dict(zip(self.names, values, strict=True)), Machine(host, bound, fast=self.fast)
        found = tensor_unit.perform(self.work, machine, threads, operands)
        if isinstance(self.work, Free):
            host.columns.grant(bound, int(threads[0]))
        if not self.work.pairs:
            host.remember_cells(bound, int(threads[0]))
            if isinstance(self.work, Multiply):
                self._plan(host, machine, self.work, {name: int(each[0]) for name, each in operands.items()})
        return found

    def _plan(self, host: Host, machine: Machine, work: Multiply, operands: dict[str, int]) -> None:
        """Remember how compiled code multiplies alike, if the matrices are multiplied where they lie, or K-major copies."""
        idesc = instruction_descriptor(work, operands["idesc"])
        planned = tensor_plans.can_be_planned(work, idesc, operands)
        function = machine.faster.on_copies(product_of(work, idesc)) if planned else None
        made = None if function is None else tensor_plans.plan(host, work, function, operands)
        if made is not None:
            host.plan_tables.product(*made)


class Machine:
    """The memory and the functions that work on tensor memory needs, of the CTA that runs."""

    def __init__(self, host: Host, bound: Bound, *, fast: bool) -> None:
        self.host, self.bound, self.fast = host, bound, fast

    @property
    def window(self) -> Window:
        """The shared memory."""
        return self.host.windows[Space.SHARED]

    @property
    def faster(self) -> Tiles:
        """Functions for products."""
        return Tiles(self.host, self.window, Architecture.BLACKWELL, fast=self.fast)

    def tensor_memory(self, lane: int) -> Cells:
        """The tensor memory of the CTA of a thread."""
        return self.host.tensor_memory(self.bound, lane)

    def of_pair(self, lane: int, rank: int) -> int:
        """The thread with the same number in the even or odd CTA of the pair."""
        if self.host.cluster_size % 2:
            raise AccessFault("tensor-memory", NO_PAIR)
        return lane + (rank - lane // self.host.threads_per_cta % 2) * self.host.threads_per_cta

    def warp_of(self, lane: int) -> int:
        """The number of the warp of a thread in its CTA."""
        return lane % self.host.threads_per_cta // WARP

    def read_pieces(self, lane: int, addresses: Array) -> Array:
        """Pieces of 16 bytes of shared memory: rows of four words."""
        return self._read(lane, addresses, 4)

    def read_words(self, lane: int, addresses: Array) -> Array:
        """Words of shared memory."""
        return self._read(lane, addresses, 1)

    def _read(self, lane: int, addresses: Array, words: int) -> Array:
        view, index = self.window.resolve(WORD, addresses, words, np.full(len(addresses), lane), writing=False)
        found: Array = view[index]
        return found

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""
        rank = lane // self.host.threads_per_cta % self.host.cluster_size  # which an address in a cluster has above its offset
        offset = np.array([address - (rank << RANK) & 0xFFFF_FFFF], np.uint64)
        self.window.store(WORD, offset, np.array([word], np.uint32), 1, np.array([lane]))

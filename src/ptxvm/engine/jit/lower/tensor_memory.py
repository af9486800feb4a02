"""The port `tmem`: work on tensor memory is done at once, by host calls (PTX 9.7.16)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import TensorWork
from ptxvm.machine import tensor_unit
from ptxvm.machine.memory import Array
from ptxvm.machine.per_lane import LaneNumbers
from ptxvm.machine.tensor_memory import TensorMemory as Cells

WORD = np.dtype(np.uint32)


class TensorMemory(Port):
    """The port `tmem`."""

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Do work by a host call."""
        if work.lacks:
            raise Unsupported(f"'{work.mnemonic}' with '.{work.lacks}'")
        inputs = [(value.type, value.raw) for value in operands.values()]
        return self.at.host_call(self.bound, TensorCall(work, tuple(operands)), inputs, list(work.results))


@dataclass(frozen=True)
class TensorCall:
    """Host call: work on tensor memory, and the names of its operands."""

    work: TensorWork
    names: tuple[str, ...]

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Do it for the active lanes."""
        machine = Machine(host, host.tensor_memory(bound, int(threads[0])))
        return tensor_unit.perform(self.work, machine, threads, dict(zip(self.names, values, strict=True)))


class Machine:
    """What the work needs, of the CTA that runs."""

    def __init__(self, host: Host, memory: Cells) -> None:
        self.host, self.memory, self.window = host, memory, host.windows["shared"]

    def tensor_memory(self, lane: int) -> Cells:
        """The tensor memory of the CTA."""
        return self.memory

    def warp_of(self, lane: int) -> int:
        """The number of the warp of a thread in its CTA."""
        return lane % self.host.threads_per_cta // WARP

    def read_pieces(self, lane: int, addresses: Array) -> Array:
        """Pieces of 16 bytes of shared memory: rows of four words."""
        view, index = self.window.resolve(WORD, addresses, 4, np.full(len(addresses), lane), writing=False)
        found: Array = view[index]
        return found

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""
        offset = np.array([address & 0xFFFF_FFFF], np.uint64)
        self.window.store(WORD, offset, np.array([word], np.uint32), 1, np.array([lane]))

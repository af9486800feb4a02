"""The port `tmem`: work on tensor memory is done at once, by host calls (PTX 9.7.16)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, f32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import Multiply, TensorWork
from ptxvm.machine import tensor_unit
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.tensor_core import Architecture, Matrices
from ptxvm.machine.tensor_memory import NO_PAIR, TensorMemory as Cells
from ptxvm.machine.warp_matrix import matrices, registers_of
from ptxvm.machine.window import RANK

WORD = np.dtype(np.uint32)
TILES = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 2)
TileFunction: TypeAlias = Callable[[int, int, int, int, int], int]


class TensorMemory(Port):
    """The port `tmem`."""

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Do work by a host call."""
        inputs = [(value.type, value.raw) for value in operands.values()]
        functions = self._functions(work)
        inputs += [(u64, Affine(self.code.emit(f"ptrtoint ptr @{name} to i64"))) for name in functions.values()]
        call = TensorCall(work, tuple(operands), tuple(functions))
        return self.at.host_call(self.bound, call, inputs, list(work.results))

    def _functions(self, work: TensorWork) -> dict[Type, str]:
        """The functions of the module that multiply tiles, by the type of A and B: the host call gets their addresses."""
        if not isinstance(work, Multiply):
            return {}
        from ptxvm.engine.jit.values import mma_tiles  # noqa: PLC0415 - few kernels multiply matrices, and this imports much

        fast = self.at.kernel.fast
        found = {
            type: mma_tiles.written(self.code.unit, type, Architecture.BLACKWELL, fast=fast)
            for type in mma_tiles.KINDS.get(work.kind, ())
        }
        return {type: name for type, name in found.items() if name is not None}


@dataclass(frozen=True)
class TensorCall:
    """Host call: work on tensor memory, the names of its operands, and the types for which functions multiply tiles."""

    work: TensorWork
    names: tuple[str, ...]
    types: tuple[Type, ...] = ()

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Do it for the active lanes."""
        count = len(self.names)
        functions = {type: TILES(int(each[0])) for type, each in zip(self.types, values[count:], strict=True)}
        machine = Machine(host, bound, functions)
        return tensor_unit.perform(self.work, machine, threads, dict(zip(self.names, values[:count], strict=True)))


def in_fragments(fragment: Fragment, stack: Matrices) -> Matrices:
    """Matrices as the registers of their fragments: `(matrices, registers, lanes)`."""
    parts = [each.reshape(-1, WARP) for each in registers_of(fragment, np.ascontiguousarray(stack))]
    found: Matrices = np.ascontiguousarray(np.stack(parts, axis=1))
    return found


class Machine:
    """The memory and the functions that work on tensor memory needs, of the CTA that runs."""

    def __init__(self, host: Host, bound: Bound, functions: Mapping[Type, TileFunction]) -> None:
        self.host, self.bound, self.window, self.functions = host, bound, host.windows[Space.SHARED], functions

    def multiply(self, product: Product, left: Matrices, right: Matrices, added: Matrices) -> Matrices | None:
        """The product by a function of the module; None where there is none, or it leaves the product to the host."""
        function = self.functions.get(product.a.type)
        if function is None or product.a.type is not product.b.type or product.d.type is not f32:
            return None
        from ptxvm.engine.jit.values.mma_tiles import tile_product  # noqa: PLC0415 - it imports much

        (rows, depth), columns, tile = left.shape, right.shape[1] // 8, tile_product(product.a.type)
        a = in_fragments(tile.a, left.reshape(-1, 16, depth))
        b = in_fragments(tile.b, right.reshape(depth, columns, 8).swapaxes(0, 1))
        d = in_fragments(tile.d, added.reshape(-1, 16, columns, 8).swapaxes(1, 2).reshape(-1, 16, 8))
        if not function(a.ctypes.data, b.ctypes.data, d.ctypes.data, rows // 16, columns):
            return None
        tiles = matrices(tile.d, [np.ascontiguousarray(d[:, n]).reshape(-1) for n in range(tile.d.registers)])
        found: Matrices = tiles.reshape(-1, columns, 16, 8).swapaxes(1, 2).reshape(rows, -1)
        return found

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
        view, index = self.window.resolve(WORD, addresses, 4, np.full(len(addresses), lane), writing=False)
        found: Array = view[index]
        return found

    def store_word(self, lane: int, address: int, word: int) -> None:
        """Store a word in shared memory."""
        rank = lane // self.host.threads_per_cta % self.host.cluster_size  # which an address in a cluster has above its offset
        offset = np.array([address - (rank << RANK) & 0xFFFF_FFFF], np.uint64)
        self.window.store(WORD, offset, np.array([word], np.uint32), 1, np.array([lane]))

"""The port `tmem`: work on tensor memory is done at once, by host calls (PTX 9.7.16)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, f16, f32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.node.port import Port
from ptxvm.engine.jit.values.small_floats import least_exponent
from ptxvm.isa.fragments import Product
from ptxvm.isa.shared_matrix import PIECE
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import Multiply, TensorWork
from ptxvm.machine import tensor_core, tensor_unit
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.tensor_core import Matrices
from ptxvm.machine.tensor_memory import NO_PAIR, TensorMemory as Cells
from ptxvm.machine.window import RANK, Window

WORD = np.dtype(np.uint32)
TILES = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 3)
TileFunction: TypeAlias = Callable[[int, int, int, int, int, int, int, int], int]
HEIGHT, WIDTH = 16, 8  # of a tile


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

        return mma_tiles.written(self.code.unit, work.kind, fast=self.at.kernel.fast)


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


@cache
def in_f16(type: Type) -> Matrices:
    """Every bit pattern of a small float as an f16, which holds it exactly."""
    values, _ = tensor_core.table(type, type, tensor_core.SHIFT.get(type.name, 0))
    with np.errstate(all="ignore"):
        found: Matrices = values.astype(np.float16).view(np.uint16)
    return found


def addresses_of(matrix: Array, step: int) -> Array:
    """The addresses of every so many bytes of the rows of a matrix in memory."""
    first, along = np.arange(len(matrix)) * matrix.strides[0], np.arange(0, matrix.strides[0], step)
    found: Array = matrix.ctypes.data + first[:, None] + along
    return found


class Tiles:
    """Products by functions of the module, for the types of A and B that have one."""

    def __init__(self, window: Window, functions: Mapping[Type, TileFunction]) -> None:
        self.window, self.functions = window, functions

    def multiplies(self, type: Type) -> bool:
        """Is there a function for factors of a type?"""
        return type in self.functions

    def multiply_in_place(
        self, type: Type, a: Array, b: Array, d: Array, *, enabled: bool, least: tuple[int, int] = (1, 1)
    ) -> bool:
        """D = A * B + D by the function for a type, given addresses; false where it leaves the product to the host.

        `least` are the least exponents of A and B that are small numbers.
        """
        out = np.empty((len(d), len(b)), np.uint32)
        of_a, of_b, of_d = (np.ascontiguousarray(each, np.uint64) for each in (a, b, d))
        exponents = np.array(least, np.uint16)
        addresses = of_a.ctypes.data, of_b.ctypes.data, of_d.ctypes.data, out.ctypes.data, exponents.ctypes.data
        return bool(self.functions[type](*addresses, len(d) // HEIGHT, len(b) // WIDTH, enabled))

    def multiply(self, product: Product, left: Matrices, right: Matrices, added: Matrices) -> Matrices | None:
        """The product by a function of the module; None where there is none, or it leaves the product to the host."""
        type, other, least = product.a.type, product.b.type, (1, 1)
        if product.d.type is not f32 or product.finite:
            return None
        if product.a.type.bits <= 8 and self.multiplies(f16):
            least = least_exponent(type), least_exponent(other)
            left, right, type = in_f16(type)[left], in_f16(other)[right], f16
        elif type is not other or not self.multiplies(type):
            return None
        a, b = np.ascontiguousarray(left), np.ascontiguousarray(right.T)
        found: Matrices = added.astype(np.uint32)
        tables = addresses_of(a, PIECE), addresses_of(b, PIECE), addresses_of(found, found.strides[0])
        return found if self.multiply_in_place(type, *tables, enabled=True, least=least) else None

    def addresses_of_pieces(self, lane: int, addresses: Array) -> Array:
        """Where pieces of 16 bytes of shared memory lie in the memory of this machine."""
        flat = addresses.reshape(-1)
        view, index = self.window.resolve(WORD, flat, 4, np.full(len(flat), lane), writing=False)
        found: Array = index * PIECE + view.ctypes.data
        return found.reshape(addresses.shape)


class Machine:
    """The memory and the functions that work on tensor memory needs, of the CTA that runs."""

    def __init__(self, host: Host, bound: Bound, functions: Mapping[Type, TileFunction]) -> None:
        self.host, self.bound, self.window = host, bound, host.windows[Space.SHARED]
        self.faster = Tiles(self.window, functions)

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

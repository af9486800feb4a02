"""Addresses in the shared memory of a cluster: the rank of a CTA stands above the offset in its memory (PTX 5.1.7)."""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.window import RANK, WITHIN

BYTE = np.dtype(np.uint8)


class ClusterAddresses:
    """Addresses in the shared memory of a cluster of several CTAs."""

    def __init__(self, at: NodeBuilder) -> None:
        self.at, self.alg = at, at.alg

    def _scalar(self, name: str, bits: int = -1) -> Value:
        return Value(self.alg, u64, Affine(name, bits=bits))

    @property
    def base(self) -> Value:
        """The address at which the memory of the own CTA begins."""
        return self._scalar("%cluster.base", 0xFF << RANK)

    @property
    def start(self) -> Value:
        """The generic address of the memory of the CTA of rank 0."""
        return self._scalar("%cluster.start", -1 << 8)

    def own_offset(self, raw: Raw) -> Raw:
        """The offset of an address in the memory of the own CTA."""
        return self.alg.integer("sub", u64, raw, self.base.raw)

    def rank(self, address: Value) -> Value:
        """The rank of the CTA in which an address lies."""
        found: Value = (address & 0xFFFF_FFFF) >> RANK
        return found

    def of_rank(self, address: Value, rank: Value) -> Value:
        """The corresponding address in the CTA of a rank."""
        found: Value = (address & WITHIN) | (rank << RANK)
        return found

    def to_generic(self, address: Value) -> Value:
        """The generic address of one in the cluster."""
        found: Value = self.start + self.rank(address) * self.at.kernel.shared_stride + (address & WITHIN)
        return found

    def from_generic(self, address: Value) -> Value:
        """The address in the cluster of a generic one."""
        stride = self.at.kernel.shared_stride
        distance = address - self.start
        rank = distance // stride
        found: Value = (rank << RANK) | (distance - rank * stride)
        return found

    def of_others(self, address: Value) -> Value:
        """Does a generic address lie in the shared memory of another CTA of the cluster?"""
        kernel = self.at.kernel
        near = (address - self.start).compare("lt", address.lift(kernel.cluster_size * kernel.shared_stride))
        own = (address - self._scalar("%shared.address")).compare("lt", address.lift(kernel.shared_stride))
        found: Value = near & ~own
        return found

    def check(self, bound: Bound, address: Value, size: int) -> None:
        """Refuse an access outside the memory of the CTAs of the cluster."""
        kernel, within = self.at.kernel, address & WITHIN
        if kernel.trusted:
            return
        beyond = within.compare("ge", within.lift(max(kernel.shared_size - size + 1, 0)))
        wrong = self.rank(address).compare("ge", address.lift(kernel.cluster_size)) | beyond | (within & (size - 1)).ne(0)
        self.at.refuse(bound, wrong, OutsideCluster(size), [(u64, address.raw)])


@dataclass(frozen=True, slots=True)
class OutsideCluster:
    """Host call: the fault of an access outside the shared memory of the cluster."""

    size: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Raise the fault."""
        window = host.windows[Space.SHARED_CLUSTER]
        window.resolve(np.dtype(f"V{self.size}"), window.offsets(values[0], threads), 1, threads, writing=bound.summary.writes)

"""Accesses, copies and updates as the code of the interpreter names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b8, b32, b64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.eager import EAGER
from ptxvm.isa.tensor_map import SIZE
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.machine.per_lane import PerLane


@dataclass(eq=False)
class Access:
    """An instruction's access to memory."""

    bound: Bound
    space: Space
    type: Type
    count: int = 1
    attributes: AccessAttributes = field(default_factory=AccessAttributes)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds an element."""
        return arrays.dtype(self.type)

    @cached_property
    def element(self) -> Access:
        """The access of a single element of the vector."""
        return replace(self, count=1)

    def elements(self, address: PerLane) -> Iterator[PerLane]:
        """The addresses of the elements of vectors: of all first ones, of all second ones, and so on."""
        return (address + np.uint64(n * self.type.bytes) for n in range(self.count))


@dataclass(eq=False)
class CopyInstruction:
    """An asynchronous copy in the code of `size` bytes at once; `kind` says what waits for it."""

    bound: Bound
    size: int
    to: Space = Space.SHARED
    origin: Space = Space.GLOBAL
    kind: AsyncKind = AsyncKind.COPY

    def _access(self, space: Space, type: Type, count: int) -> Access:
        return Access(self.bound, space, type, count, {"asynchronous": True, "group": self.kind, "proxy": Proxy.GENERIC})

    @cached_property
    def target(self) -> Access:
        """The write of the copy."""
        return self._access(self.to, b32, self.size // b32.bytes)

    @cached_property
    def _byte(self) -> Access:
        return self._access(self.origin, b8, 1)

    @cached_property
    def _whole(self) -> Access:
        return self._access(self.origin, b32, self.size // b32.bytes)

    def reads(self, source_size: int) -> Sequence[tuple[Access, int]]:
        """The reads of the copy, with their offsets in the source: of all bytes, or of the first `source_size`."""
        return [(self._whole, 0)] if source_size == self.size else [(self._byte, at) for at in range(source_size)]


@dataclass(eq=False, slots=True)
class Update:
    """The update of an atomic: applied to lanes that do not conflict."""

    function: Callable[..., Value]
    types: tuple[Type, ...]
    operation: str

    def __call__(self, old: PerLane, *operands: PerLane) -> PerLane:
        """The new values."""
        values = [Value(EAGER, t, raw) for t, raw in zip(self.types, (old, *operands), strict=True)]
        return self.function(*values).raw


@dataclass(eq=False)
class Transferring:
    """A transfer in the code: the instruction, its kind, and the update of mbarriers at its end."""

    bound: Bound
    transfer: Transfer
    update: Update

    @property
    def kind(self) -> AsyncKind:
        """What waits for it."""
        return self.transfer.kind

    def access(self, space: Space, unit: int, *, combines: bool = False, repeats: bool = False) -> Access:
        """The access of pieces of some bytes; one that `combines` is an atomic operation (PTX 9.7.9.25.4.2)."""
        type, count = (b32, unit // b32.bytes) if unit > b64.bytes else (Type.named[f"b{8 * unit}"], 1)
        if self.transfer.pattern is Pattern.ZEROS:
            return Access(self.bound, window_of(space), type, count, {})
        proxy = Proxy.GENERIC if self.transfer.pattern is Pattern.VALUES else Proxy.ASYNC
        attributes: AccessAttributes = {"asynchronous": True, "group": self.kind, "proxy": proxy, "repeats": repeats}
        if combines:
            attributes |= {"order": Order.RELAXED, "scope": Scope.GPU}
        return Access(self.bound, window_of(space), type, count, attributes)

    @cached_property
    def map(self) -> Access:
        """The read of a tensor map."""
        return Access(self.bound, Space.GLOBAL, b64, SIZE // b64.bytes, {"proxy": Proxy.TENSORMAP})

    @cached_property
    def barrier(self) -> Access:
        """The update of an mbarrier."""
        attributes: AccessAttributes = {
            "order": Order.RELAXED, "scope": Scope.CLUSTER, "mbarrier": MbarrierStep.COMPLETE, "asynchronous": True,
            "group": AsyncKind.MBARRIER,
        }  # fmt: skip
        return Access(self.bound, window_of(self.transfer.shared), b64, 1, attributes)


def window_of(space: Space) -> Space:
    """The space without its sub-space, unless that is the shared memory of the cluster."""
    return space if space is Space.SHARED_CLUSTER else space.window

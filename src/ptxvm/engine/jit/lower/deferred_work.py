"""The ports `tasks` and `tmem` of deferred code: host calls start, commit and await asynchronous work (`abi.host`).

Loads of tensor memory are done at once: what an instruction reads of their registers is what was loaded (PTX 9.7.16.6.4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import ClassVar, Self

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b64, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.integer_algebra import updated
from ptxvm.engine.jit.abi.host import DeferredWork, Host, Role
from ptxvm.engine.jit.cfg import requirements
from ptxvm.engine.jit.lower.async_copies import PartialCopy, Tasks, TransferCall, places, values_of
from ptxvm.engine.jit.lower.tensor_memory import TensorCall, TensorMemory
from ptxvm.engine.jit.lower.warpgroup_on_host import WarpgroupMultiplication
from ptxvm.engine.jit.memory.memory import Memory
from ptxvm.isa.mbarrier import arrived, completed
from ptxvm.isa.tensor_memory import Load, TensorWork
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.transfer_pieces import Pieces
from ptxvm.machine.transfers import pieces
from ptxvm.machine.window import MASKED_RANKS, RANK, WITHIN

WORD = np.dtype(np.uint64)  # of an mbarrier


class DeferredTasks(Tasks):
    """The port `tasks` of deferred code."""

    def copy(self, target: Value, source: Value, size: Value, source_size: Value | None) -> None:
        """Start to copy."""
        read = size if source_size is None else source_size
        inputs = [(u64, target.raw), (u64, source.raw), (u32, read.to(u32).raw)]
        self.at.host_call(self.bound, StartCopy(size.raw.constant), inputs, [])

    def transfer(
        self, kind: Transfer, completed: Callable[..., Value], **operands: Sequence[Value | None] | Value | None
    ) -> None:
        """Start to move bytes; zeros are written at once."""
        if kind.pattern is Pattern.ZEROS:
            super().transfer(kind, completed, **operands)
            return
        call, inputs = TransferCall.of(kind, {name: values_of(value) for name, value in operands.items()})
        self.at.host_call(self.bound, StartTransfer(call), inputs, [])

    def multiply(
        self, product: WarpgroupProduct, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Start to multiply: D stays as it is until a wait."""
        if not requirements.defers_products(self.at.kernel.image, self.at.kernel.function):
            raise Unsupported("products in several functions that do not end at once, in the JIT", 'engine="interp" has them')
        parts = [d, a, [b, enabled], *further]
        call, inputs = WarpgroupMultiplication.of(self.bound, product, parts, fast=self.at.kernel.fast)
        names = [self.bound.operands[name] for name in self.bound.i.of.updates]
        slots = tuple(each.index for name in names for each in registers_in(name, self.bound))
        self.at.host_call(self.bound, StartProduct(call, slots), inputs, [])
        return list(d)

    def commit(self, kind: AsyncKind = AsyncKind.COPY) -> None:
        """Commit a group."""
        self.at.host_call(self.bound, CommitGroup(kind), [], [])

    def wait(self, groups: Value | None, kind: AsyncKind = AsyncKind.COPY, *, reading: bool = False) -> None:
        """Wait until at most so many groups are left."""
        left = 0 if groups is None else groups.raw.constant
        registers = requirements.accumulators(self.at.node.frame.function) if kind is AsyncKind.PRODUCT else []
        keys = [self.at.key(register) for register in registers]
        types = [register.type for register in registers]
        before = [(type, self.at.slot(key, type).raw) for key, type in zip(keys, types, strict=True)]
        slots = tuple(register.index for register in registers)
        after = self.at.host_call(self.bound, AwaitGroups(kind, left, slots), before, types)
        for key, type, value in zip(keys, types, after, strict=True):
            self.at.assign(key, type, value)

    def arrive(
        self, space: Space, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None,
        mask: Value | None = None, kind: AsyncKind = AsyncKind.COPY,
    ) -> None:  # fmt: skip
        """Update the mbarrier once more at the end of the work so far; with a `mask` those of several CTAs."""
        if before is not None:
            Memory(self.at, self.bound).atomic(
                space, b64, address, before, [], order=Order.RELEASE, scope=Scope.CTA, mbarrier=MbarrierStep.POSTPONE
            )
        masks = [] if mask is None else [(u32, mask.raw)]
        self.at.host_call(self.bound, PostArrival(space, kind), [(u64, address.to(u64).raw), *masks], [])


class DeferredTensorMemory(TensorMemory):
    """The port `tmem` of deferred code."""

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Start work that goes on beside the thread."""
        if not work.asynchronous or isinstance(work, Load):
            return super().tensor(work, **operands)
        inputs = [(value.type, value.raw) for value in operands.values()]
        call = TensorCall(work, tuple(operands), self.at.kernel.fast)
        return self.at.host_call(self.bound, StartTensorWork(call), inputs, [])


# ── host calls ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StartCopy:
    """Host call: threads start to copy `size` bytes."""

    size: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Check the addresses, and queue the copies."""
        target, source, read = values
        work = Copy(bound, AsyncKind.COPY, threads, self.size, target, source, np.minimum(read, self.size))
        work.ends(host)
        host.deferral.start(work)


@dataclass(frozen=True, slots=True)
class StartTransfer:
    """Host call: each active lane starts a transfer."""

    call: TransferCall

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Check the addresses, and queue the transfers that move anything."""
        made = []
        for lane in range(len(threads)):
            try:
                made.append(pieces(self.call.kind, host.memory, host.launch.clusters, self.call.operands(lane, values)))
                self.call.ends(host, made[lane], threads[lane : lane + 1])
            except AccessFault as wrong:
                raise wrong.at_lane(lane) from None
        some = np.flatnonzero([len(each.target) > 0 for each in made])
        if len(some):
            work = TransferWork(bound, self.call.kind.kind, threads[some], self.call, [made[n] for n in some])
            host.deferral.start(work)


@dataclass(frozen=True, slots=True)
class PostArrival:
    """Host call: mbarriers shall be arrived at when the work of a kind that the threads have started has ended."""

    space: Space
    kind: AsyncKind

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Queue the arrivals, those at the mbarriers of several CTAs one after the other."""
        address, *masks = values
        if not masks:
            host.deferral.start(Arrival(bound, self.kind, threads, self.space, address))
            return
        for rank in MASKED_RANKS:
            some = np.flatnonzero(masks[0] >> rank & 1)
            if len(some):
                there = address[some] & np.uint64(WITHIN) | np.uint64(rank << RANK)
                host.deferral.start(Arrival(bound, self.kind, threads[some], self.space, there))


@dataclass(frozen=True, slots=True)
class StartTensorWork:
    """Host call: threads start work on tensor memory."""

    call: TensorCall

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Queue it: of a store what its registers hold now."""
        stores = self.call.work.collective
        kind, role = (AsyncKind.TENSOR_STORE, StoreWork) if stores else (AsyncKind.TENSOR, CellWork)
        host.deferral.start(role(bound, kind, threads, self.call, [np.array(each) for each in values]))


@dataclass(frozen=True, slots=True)
class StartProduct:
    """Host call: a warp starts a product, whose D is in the registers `slots`."""

    call: WarpgroupMultiplication
    slots: tuple[int, ...]

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Queue it, with what its registers hold now."""
        self.call.check(threads)
        held = [np.array(each) for each in values]
        host.deferral.start(Product(bound, AsyncKind.PRODUCT, threads, self.call, self.slots, held, host.deferral.accumulators))


@dataclass(frozen=True, slots=True)
class CommitGroup:
    """Host call: threads commit a group of their work of a kind."""

    kind: AsyncKind

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Count it."""
        host.deferral.commit(threads, self.kind)


@dataclass(frozen=True, slots=True)
class AwaitGroups:
    """Host call: threads wait for all groups of a kind but the `left` latest; `slots` are registers that products change."""

    kind: AsyncKind
    left: int
    slots: tuple[int, ...]

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """End their work; gives the registers after it, as far as products have ended."""
        queue, warp = host.deferral, int(threads[0])
        queue.wait(threads, self.kind, self.left)
        if not self.slots:
            return []
        going_on = (each for each in queue.under_way if isinstance(each, Product) and int(each.threads[0]) == warp)
        busy = {slot for each in going_on for slot in each.slots}  # a later product goes on from what is there
        found = [queue.accumulators.get((warp, slot)) for slot in self.slots]
        for slot in self.slots:
            if slot not in busy:
                queue.accumulators.pop((warp, slot), None)
        return [old if new is None else new.view(np.uint32).view(old.dtype) for old, new in zip(values, found, strict=True)]


# ── work ────────────────────────────────────────────────────────────────────────────────


@dataclass
class Copy(DeferredWork):
    """Copies of `size` bytes, of which `read` come from the source; the others are zeros."""

    role: ClassVar[Role] = Role.COPY
    size: int = 0
    target: Array = ()  # type: ignore[assignment]
    source: Array = ()  # type: ignore[assignment]
    read: Array = ()  # type: ignore[assignment]

    def of(self, positions: Array) -> Self:
        """The copies of the threads at some positions."""
        part = super().of(positions)
        part.target, part.source, part.read = (each[positions] for each in (self.target, self.source, self.read))
        return part

    def ends(self, host: Host) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
        """Where whole copies are written and read: views of memory and indices; and which copies are whole."""
        some = np.flatnonzero(self.read == self.size)
        to = places(host, Space.SHARED, self.target, self.size, self.threads, writing=True)
        try:
            of = places(host, Space.GLOBAL, self.source[some], self.size, self.threads[some], writing=False)
        except AccessFault as wrong:
            raise wrong.at_lane(int(some[wrong.lane_index])) from None
        return to, of, some

    def finish(self, host: Host) -> None:
        """Copy."""
        (there, to), (here, of), some = self.ends(host)
        rows = np.zeros(len(self.threads), there.dtype)
        rows[some] = here[of]
        there[to] = rows
        PartialCopy(self.size)(host, self.bound, self.threads, [self.target, self.source, self.read])


@dataclass
class TransferWork(DeferredWork):
    """Transfers: the pieces of each thread."""

    role: ClassVar[Role] = Role.TRANSFER
    call: TransferCall | None = None
    pieces: Sequence[Pieces] = ()

    def of(self, positions: Array) -> Self:
        """The transfers of the threads at some positions."""
        part = super().of(positions)
        part.pieces = [self.pieces[n] for n in positions]
        return part

    def finish(self, host: Host) -> None:
        """Move the bytes, then tell the mbarriers."""
        assert self.call is not None  # noqa: S101 - for mypy
        for lane, made in enumerate(self.pieces):
            thread = self.threads[lane : lane + 1]
            try:
                self.call.move(host, made, thread)
                for barrier in made.barriers:
                    where = np.array([barrier], np.uint64)
                    signal(host, self.call.kind.shared, where, thread, partial(_completed, made.amount))
            except AccessFault as wrong:
                raise wrong.at_lane(lane) from None


@dataclass
class Arrival(DeferredWork):
    """Arrivals at mbarriers."""

    role: ClassVar[Role] = Role.ARRIVAL
    space: Space = Space.SHARED
    address: Array = ()  # type: ignore[assignment]

    def of(self, positions: Array) -> Self:
        """The arrivals of the threads at some positions."""
        part = super().of(positions)
        part.address = self.address[positions]
        return part

    def finish(self, host: Host) -> None:
        """Arrive."""
        signal(host, self.space, self.address, self.threads, partial(updated, arrived, u64))


@dataclass
class CellWork(DeferredWork):
    """Work of single threads on tensor memory, with its operands."""

    role: ClassVar[Role] = Role.CELLS
    call: TensorCall | None = None
    operands: Sequence[Array] = ()

    def of(self, positions: Array) -> Self:
        """The work of the threads at some positions."""
        part = super().of(positions)
        part.operands = [each[positions] for each in self.operands]
        return part

    def finish(self, host: Host) -> None:
        """Do it."""
        assert self.call is not None  # noqa: S101 - for mypy
        self.call(host, self.bound, self.threads, list(self.operands))


@dataclass
class StoreWork(CellWork):
    """A store of a warp to tensor memory, with what its registers held."""

    role: ClassVar[Role] = Role.STORE


@dataclass
class Product(DeferredWork):
    """A product of a warp; `values` has the registers of D first, which an earlier product may have changed meanwhile."""

    role: ClassVar[Role] = Role.PRODUCT
    call: WarpgroupMultiplication | None = None
    slots: Sequence[int] = ()
    values: Sequence[Array] = ()
    accumulators: dict[tuple[int, int], Array] = field(default_factory=dict)

    def finish(self, host: Host) -> None:
        """Multiply."""
        assert self.call is not None  # noqa: S101 - for mypy
        keys, d = [(int(self.threads[0]), slot) for slot in self.slots], self.values[: len(self.slots)]
        d = [self.accumulators.get(key, old) for key, old in zip(keys, d, strict=True)]
        made = self.call(host, self.bound, self.threads, [*d, *self.values[len(self.slots) :]])
        self.accumulators.update(zip(keys, made, strict=True))


def _completed(amount: int, word: int) -> int:
    """The word of an mbarrier after so many transactions."""
    return updated(completed, u64, word, amount)


def signal(host: Host, space: Space, address: Array, threads: LaneNumbers, update: Callable[[int], int]) -> None:
    """Update the mbarriers at addresses of some threads, one after the other."""
    if space is Space.GENERIC:
        space = Space.SHARED_CLUSTER
        address = host.windows[space].from_generic(address, threads)
    view, index = places(host, space, address, WORD.itemsize, threads, writing=True)
    words = view.view(WORD)
    for at in index.tolist():
        words[at] = update(int(words[at]))


__all__ = ["DeferredTasks", "DeferredTensorMemory"]

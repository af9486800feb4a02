"""The port `tasks`: asynchronous copies (PTX 9.7.9.25).  They may complete at any time; here they complete at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32, b64, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.memory.memory import Memory
from ptxvm.engine.jit.memory.pending_copies import PendingCopies
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.effects import Access, Verb
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.transfer_pieces import Pieces
from ptxvm.machine.transfers import pieces
from ptxvm.machine.window import RANK, WITHIN

WORD = 4  # bytes
HELD = {unit: np.dtype(f"V{unit}") for unit in (1, 2, 4, 8, 16)}  # pieces as single elements, which NumPy gathers much faster


class Tasks(Port):
    """The port `tasks`."""

    def copy(self, target: Value, source: Value, size: Value, source_size: Value | None) -> None:
        """Copy from .global to .shared: all bytes, or `source_size` bytes and then zeros."""
        count = size.raw.constant // WORD
        self._count(target, source, source_size, count)
        if source_size is None or (isinstance(source_size.raw, Affine) and source_size.raw.constant == count * WORD):
            self._whole(target, source, count)
            return
        source_size = source_size.to(u32)
        whole, none = source_size.compare("ge", source_size.lift(count * WORD)), source_size.eq(0)
        self.at.suspect_if((~(whole | none)).raw)
        self.at.refuse(self.bound, ~(whole | none), PartialCopy(count * WORD),
                       [(u64, target.raw), (u64, source.raw), (u32, source_size.raw)])  # fmt: skip
        with self.at.among(whole.raw):
            self._whole(target, source, count)
        with self.at.among(none.raw):
            self._store(target, [Value(self.alg, b32, Affine(0))] * count)

    def _count(self, target: Value, source: Value, source_size: Value | None, count: int) -> None:
        """Count the copy, in profiled code, as a load, by the lanes that read the source, and a store."""
        if self.at.events is None:
            return
        from ptxvm.engine.jit.memory.access_counters import count_access  # noqa: PLC0415 - little code is profiled

        read = partial(count_access, self.at, self.bound, Access(Verb.READ, Space.GLOBAL, b32, count), source.raw)
        if source_size is None:
            read()
        else:
            with self.at.among(source_size.to(u32).ne(0).raw):
                read()
        count_access(self.at, self.bound, Access(Verb.WRITE, Space.SHARED, b32, count), target.raw)

    def _whole(self, target: Value, source: Value, count: int) -> None:
        self._store(target, Memory(self.at, self.bound).load(Space.GLOBAL, b32, source, count, asynchronous=True))

    def _store(self, target: Value, words: list[Value]) -> None:
        Memory(self.at, self.bound).store(Space.SHARED, b32, target, words, asynchronous=True)

    def transfer(
        self, kind: Transfer, completed: Callable[..., Value], **operands: Sequence[Value | None] | Value | None
    ) -> None:
        """Move the bytes at once, and count them at the mbarriers."""
        by_name = {name: values_of(value) for name, value in operands.items()}
        call, inputs = TransferCall.of(kind, by_name)
        quick = self._quick(kind, [name for name, values in by_name.items() for _ in values], [type for type, _ in inputs])
        plans = f", i32 {self.at.active_text()}, ptr {self.at.launch_field('copy_plans')}, ptr %shared" if quick else ""
        (amount,) = self.at.host_call(self.bound, call, inputs, [u64], quick, plans, whole=False)
        if not kind.mbarrier:
            return
        (bar,) = by_name["bar"]
        if not kind.multicast:
            with self.at.among(amount.ne(0).raw):
                self._complete(kind, bar, completed, amount)
            return
        (mask,) = by_name["mask"]
        for rank in range(self.at.kernel.cluster_size):
            reached = (mask >> rank & 1).ne(0) & amount.ne(0)
            where = self._barrier_of(bar, rank, pair=kind.pair)
            with self.at.among(reached.raw):
                self._complete(kind, where, completed, amount)

    def _quick(self, kind: Transfer, names: list[str], types: list[Type]) -> str | None:
        """The function of the module that copies without the host."""
        if kind.pattern is not Pattern.TENSOR:
            return None
        from ptxvm.engine.jit.lower import copy_plans  # noqa: PLC0415 - few kernels have tensors

        return copy_plans.written(self.at, kind, names, types)

    def _complete(self, kind: Transfer, bar: Value, completed: Callable[..., Value], amount: Value) -> None:
        """Count bytes at an mbarrier."""
        Memory(self.at, self.bound).atomic(
            kind.shared, b64, bar, completed, [amount], order=Order.RELAXED, scope=Scope.CLUSTER, mbarrier=MbarrierStep.COMPLETE
        )

    def _barrier_of(self, bar: Value, rank: int, *, pair: bool) -> Value:
        """The mbarrier that counts the copy to the CTA of a rank (`machine.transfers.barrier_of`)."""
        if self.at.kernel.cluster_size == 1:
            return bar
        meant = bar.lift(rank) if not pair else ((bar >> RANK) & 1) | (rank & ~1)
        return (bar & WITHIN) | (meant << RANK)

    def multiply(
        self, product: WarpgroupProduct, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Multiply at once."""
        from ptxvm.engine.jit.lower.warpgroup_on_host import WarpgroupMultiplication  # noqa: PLC0415 - few multiply matrices, ...
        from ptxvm.engine.jit.values import mma_warpgroup  # noqa: PLC0415 - ... and this imports much

        size, fast = self.at.kernel.shared_size, self.at.kernel.fast
        work, inputs = WarpgroupMultiplication.of(self.bound, product, [d, a, [b, enabled], *further], fast=fast)
        quick = mma_warpgroup.written(self.code.unit, product, work.architecture, size, fast=fast)
        return self.at.host_call(self.bound, work, inputs, [b32] * len(d), quick, ", ptr %shared, i32 %warp")

    def fence_registers(self, kind: AsyncKind) -> None:
        """All work is done."""

    def commit(self, kind: AsyncKind = AsyncKind.COPY) -> None:
        """All copies are done; instrumented code counts the groups."""
        if kind is AsyncKind.COPY:
            PendingCopies(self.at).commit()

    def wait(self, groups: Value | None, kind: AsyncKind = AsyncKind.COPY, *, reading: bool = False) -> None:
        """All copies are done; in instrumented code these count as accesses of the threads from now on."""
        if kind is AsyncKind.COPY:
            PendingCopies(self.at).wait(groups)

    def arrive(
        self, space: Space, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None,
        mask: Value | None = None, kind: AsyncKind = AsyncKind.COPY,
    ) -> None:  # fmt: skip
        """Update the mbarrier, and once more since all work is complete; with a `mask` those of several CTAs."""
        if mask is not None:
            self._arrive_in_ctas(address, update, mask)
            return
        if kind is AsyncKind.COPY:
            PendingCopies(self.at).hand_over()
        port = Memory(self.at, self.bound)
        for each, how in ((before, MbarrierStep.POSTPONE), (update, MbarrierStep.ARRIVE)):
            if each is not None:
                apart = how is MbarrierStep.ARRIVE
                port.atomic(
                    space, b64, address, each, [], order=Order.RELEASE, scope=Scope.CTA, mbarrier=how, asynchronous=apart
                )

    def _arrive_in_ctas(self, address: Value, update: Callable[[Value], Value], mask: Value) -> None:
        """Update the mbarrier at an address in the CTAs of the cluster whose bit is set."""
        for rank in range(self.at.kernel.cluster_size):
            where = self._barrier_of(address, rank, pair=False)
            with self.at.among((mask >> rank & 1).ne(0).raw):
                Memory(self.at, self.bound).atomic(
                    Space.SHARED_CLUSTER, b64, where, update, [],
                    order=Order.RELEASE, scope=Scope.CLUSTER, mbarrier=MbarrierStep.ARRIVE,
                )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartialCopy:
    """Host call: a copy that reads fewer bytes than it writes."""

    size: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Copy byte by byte."""
        for lane in np.flatnonzero((values[2] > 0) & (values[2] < self.size)):
            target, source, source_size = (int(column[lane]) for column in values)
            try:
                held = host.memory.read(source, source_size)
            except AccessFault as wrong:
                raise wrong.at_lane(int(lane)) from None
            words = np.frombuffer(held.ljust(self.size, b"\0"), np.uint8)
            window, own = host.windows[Space.SHARED], threads[lane : lane + 1]
            for n in range(self.size):
                offsets = window.offsets(np.array([target + n], np.uint64), own)
                window.store(np.dtype(np.uint8), offsets, words[n : n + 1], 1, own)


def values_of(operand: Sequence[Value | None] | Value | None) -> list[Value]:
    """The values of an operand: of a vector its elements, of one that is left out none."""
    several = [operand] if isinstance(operand, Value) or operand is None else operand
    return [each for each in several if each is not None]


@dataclass(frozen=True, slots=True)
class TransferCall:
    """Host call: a transfer of each active lane, one after the other or, of values in registers, all at once.

    `counts` are the numbers of values of the operands.
    """

    kind: Transfer
    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, kind: Transfer, operands: Mapping[str, Sequence[Value]]) -> tuple[TransferCall, list[tuple[Type, Raw]]]:
        """The transfer of an instruction with the values of its operands, and all of these values."""
        inputs = [(each.type, each.raw) for values in operands.values() for each in values]
        return cls(kind, tuple((name, len(values)) for name, values in operands.items())), inputs

    @property
    def in_order(self) -> bool:
        """Must the CTAs of the grid run in order?  A reduction on the host is not atomic for other threads of it."""
        return bool(self.kind.operation) and self.kind.to is Space.GLOBAL

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Move the bytes; gives their number, which an mbarrier counts."""
        if self.of_registers and (stored := self.stored(host, threads, values)) is not None:
            return [stored]
        amounts = np.zeros(len(threads), np.uint64)
        for lane in range(len(threads)):
            operands = self.operands(lane, values)
            try:
                made = pieces(self.kind, host.memory, host.launch.clusters, operands)
                self.move(host, made, threads[lane : lane + 1])
            except AccessFault as wrong:
                raise wrong.at_lane(lane) from None
            amounts[lane] = made.amount
            if self.kind.pattern is Pattern.TENSOR:
                from ptxvm.engine.jit.lower import copy_plans  # noqa: PLC0415 - few kernels have tensors

                copy_plans.remember(host, self.kind, operands["map"][0])
        return [amounts]

    @property
    def of_registers(self) -> bool:
        """Does each lane store or combine values at one place, and are they counted by one mbarrier?"""
        return self.kind.pattern is Pattern.VALUES and self.kind.mbarrier and not self.kind.multicast

    def stored(self, host: Host, threads: LaneNumbers, values: list[Array]) -> Array | None:
        """Store the values of all lanes, or combine them with what is there.

        None where that is done lane by lane, as where an mbarrier is in another CTA.
        """
        target, *parts, bar = values
        if ((target ^ bar) >> np.uint64(RANK)).any() or any(each.dtype.kind != "u" for each in parts):
            return None
        rows = np.ascontiguousarray(np.stack(parts, axis=1))
        unit = rows.itemsize * len(parts)
        there, to = places(host, self.kind.to, target, unit, threads, writing=True)
        if self.kind.operation and self.kind.type is not None:
            from ptxvm.machine import reductions  # noqa: PLC0415 - few kernels have transfers

            reductions.combine_each(self.kind.operation, self.kind.type.name, there, to, rows)
        else:
            there[to] = rows.view(there.dtype)[:, 0]
        return np.full(len(threads), unit, np.uint64)

    def operands(self, lane: int, values: list[Array]) -> dict[str, list[int]]:
        """The operands of a lane, by their names."""
        columns = iter(values)
        return {name: [int(next(columns)[lane]) for _ in range(count)] for name, count in self.counts}

    def ends(self, host: Host, made: Pieces, thread: LaneNumbers) -> tuple[tuple[Array, Array], tuple[Array, Array] | None]:
        """Where the pieces of one thread are written and read: views of memory, and the index of each piece in them."""
        read, _ = made.read()
        written = made.target if made.present is None or made.fill is not None else made.target[made.present]
        to = places(host, self.kind.to, written, made.unit, np.repeat(thread, len(written)), writing=True)
        if read is None:
            return to, None
        return to, places(host, self.kind.origin, read, made.unit, np.repeat(thread, len(read)), writing=False)

    def move(self, host: Host, made: Pieces, thread: LaneNumbers) -> None:
        """Move the bytes of one thread."""
        from ptxvm.machine import reductions  # noqa: PLC0415 - few kernels have transfers

        rows, (_, some) = made.data, made.read()
        (there, to), source = self.ends(host, made, thread)
        if source is not None:
            here, of = source
            rows = here[of].view(np.uint8).reshape(len(of), made.unit)
        assert rows is not None  # noqa: S101 - a barrier that is not read has rows
        rows, _ = made.filled(reductions.moved(self.kind, made.element, rows), some)
        if self.kind.operation:
            old = there[to].view(np.uint8).reshape(rows.shape)
            rows = reductions.combined(self.kind.operation, made.element, old, rows, flushes=self.kind.flushes)
        there[to] = np.ascontiguousarray(rows).view(there.dtype)[:, 0]


def places(host: Host, space: Space, address: Array, unit: int, threads: LaneNumbers, *, writing: bool) -> tuple[Array, Array]:
    """A view of memory, and the index in it of the piece at each address of a thread."""
    held = HELD[unit]
    if not len(address):
        return np.empty(0, held), np.empty(0, np.intp)
    if (window := host.windows.get(space)) is not None:
        return window.resolve(held, window.offsets(address, threads), 1, threads, writing=writing)
    if host.memory.address_bits == 32:
        address = address & 0xFFFF_FFFF
    return host.memory.resolve(held, address, 1, space, threads, writing=writing)

"""Asynchronous copies of a cohort, and the mbarrier arrivals that follow them (PTX 9.7.9.25)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access, CopyInstruction, Transferring, Update
from ptxvm.engine.interp.async_products import ProductCohort, StartedProduct
from ptxvm.engine.interp.lane_memory import located
from ptxvm.engine.interp.lanes import spread
from ptxvm.engine.interp.ports import Multiplying
from ptxvm.engine.interp.register_slots import RegisterSlots
from ptxvm.engine.interp.tensor_tasks import TensorCohort, TensorLoad, TensorTask
from ptxvm.engine.interp.transfers import UnderWay
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.transfers import Pattern
from ptxvm.machine.cluster_queue import ClusterQueue
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile
from ptxvm.machine.transfers import pieces
from ptxvm.machine.window import MASKED_RANKS, RANK, WITHIN

Asynchronous: TypeAlias = "Copy | Arrival | StartedProduct | TensorTask | UnderWay"
UNGROUPED = (AsyncKind.TENSOR_LOAD, AsyncKind.TENSOR_STORE)
"""Kinds of work that is waited for without groups: as if in one group."""


@dataclass(slots=True)
class Copy:
    """Copies that lanes started with one instruction, as arrays of one length.

    `group` is the number of groups that the lane had committed before; a copy belongs to no group until the lane commits one
    more.
    """

    copying: CopyInstruction
    lanes: LaneNumbers
    target: PerLane
    source: PerLane
    source_size: PerLane
    group: PerLane
    mbarrier: PerLane = None
    amount: PerLane = None

    @property
    def kind(self) -> AsyncKind:
        """What waits for it."""
        return self.copying.kind

    def of(self, positions: PerLane) -> Copy:
        """The copies at some positions."""
        return Copy(
            self.copying, self.lanes[positions], self.target[positions], self.source[positions], self.source_size[positions],
            self.group[positions],
        )  # fmt: skip


@dataclass(slots=True)
class Arrival:
    """Arrivals at mbarriers, due when all earlier work of their lanes of a kind has ended."""

    access: Access
    update: Update
    lanes: LaneNumbers
    address: PerLane

    @property
    def kind(self) -> AsyncKind:
        """The kind of the work."""
        return self.access.attributes["group"]

    def of(self, positions: PerLane) -> Arrival:
        """The arrivals at some positions."""
        return Arrival(self.access, self.update, self.lanes[positions], self.address[positions])


class CopyCohort(ProductCohort, TensorCohort, Protocol):
    """The part of a cohort that its copies use."""

    clusters: ClusterQueue

    def products_started(self, product: Bound, lanes: LaneNumbers, file: RegisterFile) -> None:
        """Warps have started products of registers."""

    def copy_started(
        self, copying: CopyInstruction, lanes: LaneNumbers, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Lanes have started copies."""

    def transfer_started(self, begun: UnderWay) -> None:
        """A lane has started a transfer."""

    def copies_grouped(self, lanes: LaneNumbers, kind: AsyncKind) -> None:
        """Lanes have committed groups of copies."""

    def copies_awaited(self, lanes: LaneNumbers, groups: int, kind: AsyncKind, *, reading: bool) -> None:
        """Lanes have waited for groups of copies."""

    def arrival_posted(self, access: Access, lanes: LaneNumbers, address: PerLane) -> None:
        """An mbarrier will receive an arrival when work that lanes have started has ended."""


class Copies:
    """The asynchronous work of a cohort, in the order in which it began; `early` work ends when it begins."""

    early = False

    def __init__(self, cohort: CopyCohort) -> None:
        self.cohort = cohort
        self.under_way: list[Asynchronous] = []
        self.began = 0  # how often lanes have started transfers
        self.unwaited: list[StartedProduct | TensorLoad] = []  # whose registers no instruction may use, done or not
        self.groups = {kind: np.zeros(cohort.size, np.int64) for kind in AsyncKind}  # that lanes have made
        self.groups |= {kind: np.ones(cohort.size, np.int64) for kind in UNGROUPED}

    # ── what instructions ask for ───────────────────────────────────────────────────────

    def start(
        self, copying: CopyInstruction, lanes: Lanes, guard: Guard, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Start to copy `copying.size` bytes: `source_size` of them (None: all) are read, the rest are zeros."""
        lanes, positions = self._named(lanes, guard)
        there = np.full(len(lanes), copying.size) if source_size is None else spread(source_size, positions).astype(np.int64)
        begun = Copy(
            copying, lanes, spread(target, positions), spread(source, positions), np.clip(there, 0, copying.size),
            self.groups[copying.kind][lanes],
        )  # fmt: skip
        self._begin(begun)

    def transfer(self, copying: Transferring, lanes: Lanes, guard: Guard, operands: dict[str, Sequence[PerLane]]) -> None:
        """Start a transfer for each of some lanes."""
        lanes, positions = self._named(lanes, guard)
        self.began += 1
        spread_operands = {name: [spread(each, positions) for each in values] for name, values in operands.items()}
        for n, lane in enumerate(lanes.tolist()):
            own = {name: [int(each[n]) for each in values] for name, values in spread_operands.items()}
            try:
                made = pieces(copying.transfer, self.cohort.mem.machine, self.cohort.clusters, own)
            except AccessFault as wrong:
                raise wrong.placed(copying.bound, lane) from None
            one, map = lanes[n : n + 1], own["map"][0] if "map" in own else None
            begun = UnderWay(copying, one, made, self.groups[copying.kind][one], self.began, map)
            if len(made.target) and begun.reachable(self.cohort):
                self._begin_transfer(begun)
        self._end_early()

    def _begin_transfer(self, begun: UnderWay) -> None:
        """Record a transfer as under way; zeros are written at once."""
        if begun.copying.transfer.pattern is Pattern.ZEROS:
            begun.end(self.cohort)
            return
        self.under_way.append(begun)
        self.cohort.transfer_started(begun)

    def start_product(
        self, work: Multiplying, lanes: Lanes, file: RegisterFile, slots: Sequence[int], a: Sequence[PerLane], b: PerLane,
        enabled: PerLane, further: Sequence[Sequence[PerLane]],
    ) -> None:  # fmt: skip
        """Start products of whole warps; the registers of D are at `slots` of a file."""
        numbers, count = self.cohort.layout.every(lanes), self.cohort.layout.count(lanes)
        if (
            count % WARP
            or (self.cohort.layout.warp[numbers[::WARP]] != self.cohort.layout.warp[numbers[WARP - 1 :: WARP]]).any()
        ):
            fault = AccessFault("incomplete-warp", "a matrix product needs all 32 lanes of the warp")
            raise located(fault, work.access, lanes)

        def copied(value: PerLane) -> PerLane:
            return np.array(np.broadcast_to(value, count))

        parts = [[copied(each) for each in part] for part in further]
        product = StartedProduct(
            work, numbers, RegisterSlots(file, slots), [copied(each) for each in a], copied(b), copied(enabled), parts,
            self.groups[AsyncKind.PRODUCT][numbers],
        )  # fmt: skip
        leaders, addresses = product.reads(self.cohort)
        if len(self.cohort.mem.reachable(work.access, leaders, addresses, writing=False)) < len(addresses):
            return
        self.under_way.append(product)
        self.unwaited.append(product)
        self.cohort.product_started(work.access, leaders, addresses)
        self.cohort.products_started(work.bound, numbers, file)

    def add(self, task: TensorTask) -> None:
        """Start work on tensor memory."""
        self.under_way.append(task)
        self._end_early()

    def loading(self, load: TensorLoad) -> None:
        """Loads have started whose registers are in use until the wait."""
        self.unwaited.append(load)

    def _end_early(self) -> None:
        """End all work where the machine ends it at once; products end after their instruction, whose registers they change."""
        if self.early:
            self.complete()

    def _begin(self, begun: Copy) -> None:
        """Check the addresses, and record the copies as under way."""
        copying = begun.copying
        if not len(begun.lanes):
            return
        begun = begun.of(self.cohort.mem.reachable(copying.target, begun.lanes, begun.target, writing=True))
        for size in np.unique(begun.source_size[begun.source_size > 0]).tolist():
            begun = self._readable(begun, size)
        if len(begun.lanes):
            self.under_way.append(begun)
            self.cohort.copy_started(copying, begun.lanes, begun.target, begun.source, begun.source_size)
            self._end_early()

    def _readable(self, copy: Copy, source_size: int) -> Copy:
        """Drop the copies that read `source_size` bytes and whose source is out of bounds."""
        for access, offset in copy.copying.reads(source_size):
            some = np.flatnonzero(copy.source_size == source_size)
            good = self.cohort.mem.reachable(access, copy.lanes[some], copy.source[some] + np.uint64(offset), writing=False)
            if len(good) < len(some):
                copy = copy.of(np.delete(np.arange(len(copy.lanes)), np.delete(some, good)))
        return copy

    def commit(self, lanes: Lanes, guard: Guard, kind: AsyncKind) -> None:
        """Put the copies that each lane started since its last group into a new group."""
        lanes, _ = self._named(lanes, guard)
        self.groups[kind][lanes] += 1
        self.cohort.copies_grouped(lanes, kind)

    def wait(self, lanes: Lanes, guard: Guard, left: int, kind: AsyncKind, reading: bool) -> None:  # noqa: FBT001 - traced code calls it
        """End all groups of some lanes but the last `left`; with `reading`, wait only until their sources are read."""
        lanes, _ = self._named(lanes, guard)
        waits = np.zeros(self.cohort.size, np.bool_)
        waits[lanes] = True
        pending: list[Asynchronous] = []
        for each in self.under_way:
            if isinstance(each, Arrival) or each.kind is not kind:
                pending.append(each)
                continue
            due = waits[each.lanes] & (each.group < self.groups[kind][each.lanes] - left)
            if isinstance(each, StartedProduct | TensorTask):
                due = each.whole(due)
            pending += self._end(each, due)
        self.under_way = pending
        if kind in (AsyncKind.PRODUCT, AsyncKind.TENSOR_LOAD):
            self._waited_for(kind, waits, left)
        self.cohort.copies_awaited(lanes, left, kind, reading=reading)

    def _waited_for(self, kind: AsyncKind, waits: PerLane, left: int) -> None:
        """Lanes may use the registers of all work of a kind but that of the last groups."""
        groups = self.groups[kind]
        over = [
            (each, waits[each.lanes] & (each.group < groups[each.lanes] - left) & (each.kind is kind)) for each in self.unwaited
        ]
        self.unwaited = [
            part for each, done in over if not done.all()
            if isinstance(part := each.of(np.flatnonzero(~done)), StartedProduct | TensorLoad)
        ]  # fmt: skip

    def end_loads(self, due: Callable[[TensorLoad], bool]) -> None:
        """End the loads from tensor memory that are due, since an instruction depends on their registers."""
        loads = [each for each in self.under_way if isinstance(each, TensorLoad) and due(each)]
        for load in loads:
            self.under_way.remove(load)
            load.finish()

    def arrive(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, update: Update, mask: PerLane = None
    ) -> None:
        """Post an arrival at an mbarrier for the end of all work of its kind that the lanes have started.

        With a `mask`, it is the mbarrier at that address of each of these CTAs of the cluster.
        """
        lanes, positions = self._named(lanes, guard)
        there = spread(address, positions)
        if mask is None:
            self._post(Arrival(access, update, lanes, there))
        else:
            ctas = spread(mask, positions)
            for rank in MASKED_RANKS:
                some = np.flatnonzero(ctas >> np.uint32(rank) & np.uint32(1))
                where = there[some] & np.uint64(WITHIN) | np.uint64(rank << RANK)
                self._post(Arrival(access, update, lanes[some], where))
        self._end_early()

    def _post(self, arrival: Arrival) -> None:
        if len(arrival.lanes):
            self.cohort.mem.reachable(arrival.access, arrival.lanes, arrival.address, writing=True)
            self.cohort.arrival_posted(arrival.access, arrival.lanes, arrival.address)
            self.under_way.append(arrival)

    def _named(self, lanes: Lanes, guard: Guard) -> tuple[LaneNumbers, PerLane]:
        """The numbers of the lanes whose guard holds, and their positions among those that run."""
        every = self.cohort.layout.numbers if lanes is None else lanes
        positions = np.flatnonzero(np.broadcast_to(True if guard is None else guard, len(every)))
        return every[positions], positions

    # ── what the machine does ───────────────────────────────────────────────────────────

    def complete(self, share: Guard = None, most: int | None = None) -> None:
        """End the work of the lanes for which a predicate holds (None: of all), and signal their mbarriers.

        `most` is how many pieces of work end, the oldest first; None is all.  What lanes started together is one piece.
        """
        pending: list[Asynchronous] = []
        order = CompletionOrder(self.cohort)
        under_way, self.under_way = self.under_way, []
        considered, ending = 0, 0
        for each in under_way:
            began = each.began if isinstance(each, UnderWay) else 0
            together = began > 0 and began == ending
            if most is not None and not most and not together:
                break
            considered += 1
            due = order.free(each) & (True if share is None else share[each.lanes])
            if isinstance(each, StartedProduct | TensorTask):
                due = each.whole(due)
            if most is not None and due.any() and not together:
                most, ending = most - 1, began
            rest = self._end(each, due)
            pending += rest
            for one in rest:
                order.hold(one)
        under_way[:considered] = pending  # in place: late work ends piece by piece, and thousands may be under way
        under_way += self.under_way
        self.under_way = under_way

    def _end(self, each: Asynchronous, due: PerLane) -> list[Asynchronous]:
        """End the copies or arrivals that are due; returns those that are left."""
        if not due.any():
            return [each]
        done = each.of(np.flatnonzero(due))
        if isinstance(done, UnderWay):
            done.end(self.cohort)
        elif isinstance(done, Arrival):
            self.cohort.mem.atomic(done.access, done.lanes, None, done.address, done.update, [])
        elif isinstance(done, StartedProduct):
            done.finish(self.cohort)
        elif isinstance(done, TensorTask):
            done.finish()
        else:
            self._copy(done)
        return [] if due.all() else [each.of(np.flatnonzero(~due))]

    def _copy(self, copy: Copy) -> None:
        """Copy the bytes that are read, and fill the rest with zeros."""
        size = copy.copying.size
        moved = np.zeros((len(copy.lanes), size), np.uint8)
        for source_size in np.unique(copy.source_size[copy.source_size > 0]).tolist():
            some = np.flatnonzero(copy.source_size == source_size)
            moved[some, :source_size] = self._read(copy.copying, source_size, copy.lanes[some], copy.source[some])
        words = np.ascontiguousarray(moved.view(np.uint32).T)
        self.cohort.mem.store(copy.copying.target, copy.lanes, None, copy.target, list(words))

    def _read(self, copying: CopyInstruction, source_size: int, lanes: LaneNumbers, source: PerLane) -> PerLane:
        """Bytes of the source, a row for each lane."""
        reads = copying.reads(source_size)
        pieces = [self.cohort.mem.load(access, lanes, None, source + np.uint64(at)) for access, at in reads]
        columns = np.concatenate([np.reshape(piece, (-1, len(lanes))) for piece in pieces])
        return np.ascontiguousarray(columns.T).view(np.uint8)


class CompletionOrder:
    """The work that must end before other work: copies, or work on tensor memory, before an arrival behind them.

    Products of a lane end one after the other, since they may have one accumulator, and so does the work of a CTA on its
    tensor memory that a commit waits for.
    """

    def __init__(self, cohort: CopyCohort) -> None:
        self.layout = cohort.layout
        self.busy = {kind: np.zeros(cohort.size, np.bool_) for kind in (AsyncKind.COPY, AsyncKind.TENSOR)}
        self.multiplies = np.zeros(cohort.size, np.bool_)
        self.at_work: set[int] = set()  # CTAs

    def free(self, each: Asynchronous) -> PerLane:
        """The lanes of some work that may end now."""
        if isinstance(each, Arrival):
            return ~self.busy[each.kind][each.lanes]
        if isinstance(each, StartedProduct):
            return ~self.multiplies[each.lanes]
        if isinstance(each, TensorTask) and not each.tensor.work.collective:
            return ~np.isin(self.layout.cta[each.lanes], list(self.at_work))
        return np.ones(len(each.lanes), np.bool_)

    def hold(self, each: Asynchronous) -> None:
        """Some work goes on: what follows it waits."""
        if isinstance(each, Copy) and each.kind is AsyncKind.COPY:
            self.busy[AsyncKind.COPY][each.lanes] = True
        elif isinstance(each, StartedProduct):
            self.multiplies[each.lanes] = True
        elif isinstance(each, TensorTask) and not each.tensor.work.collective:
            self.busy[AsyncKind.TENSOR][each.lanes] = True
            self.at_work.update(self.layout.cta[each.lanes].tolist())

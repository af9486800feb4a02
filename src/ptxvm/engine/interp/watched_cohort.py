"""A watched cohort: reports barriers, collectives, fences, copies and images to a watcher."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32
from ptxvm.analysis.program import Bound, Function as PtxFunction
from ptxvm.analysis.provenance import Provenance
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.faults import listed
from ptxvm.engine.interp.accesses import Access, CopyInstruction
from ptxvm.engine.interp.barriers import Waiting
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs, LaneMemory
from ptxvm.engine.interp.lanes import at, spread
from ptxvm.engine.interp.objects import Objects
from ptxvm.engine.interp.ports import TextureAccess
from ptxvm.engine.interp.register_fences import RegisterFences
from ptxvm.engine.interp.registers_in_use import line_of, touched
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.segment import Slots
from ptxvm.engine.interp.shadow import ArgumentSlot, CohortShadow
from ptxvm.engine.interp.texture_memory import Images
from ptxvm.engine.interp.transfers import UnderWay
from ptxvm.engine.interp.watched_memory import WatchedMemory
from ptxvm.isa.effects import Verb
from ptxvm.isa.fences import proxy_of_fence
from ptxvm.isa.mbarrier import COUNT, EXPECTED, PENDING, TRANSACTION_BITS, TRANSACTIONS
from ptxvm.machine import texture_unit
from ptxvm.machine.builtins import Caller, Function
from ptxvm.machine.events import ClusterStep, Scene, Watcher
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.machine.texture_surface import AccessedBytes
from ptxvm.machine.texture_unit import Watched
from ptxvm.machine.transfer_pieces import Pieces

AT_ONCE = frozenset({"malloc", "__assertfail"})  # these refuse no lane, or stop all
MOST_POLLS = 500  # that fail in a row


def lacks(word: int) -> str:
    """The arrivals and bytes that an mbarrier waits for, from its word."""
    missing, bytes_ = word >> PENDING & COUNT, word >> TRANSACTIONS & TRANSACTION_BITS
    ahead = TRANSACTION_BITS + 1 - bytes_ if bytes_ > TRANSACTION_BITS // 2 else 0
    said = f"has {plural(missing, 'arrival')} of {word >> EXPECTED & COUNT} to come"
    if ahead:
        return f"{said}, and {plural(ahead)} have come that no expect_tx announced"
    return f"{said}, and {plural(bytes_)}" if bytes_ else said


class WatchState:
    """The state that all watched cohorts of a launch share: the watcher, the objects, the provenance of addresses."""

    def __init__(
        self, watcher: Watcher, images: Images, objects: Objects, provenance: dict[PtxFunction, Provenance], *, products: bool
    ) -> None:
        """`products` says that the code has asynchronous products, whose registers need fences."""
        self.products = products
        self.watcher, self.images, self.objects = watcher, images, objects
        self.variables = {bound: variable for each in provenance.values() for bound, variable in each.certain.items()}


class WatchedCohort(Cohort):
    """A cohort that reports to a watcher."""

    mem: WatchedMemory
    watcher: Watcher
    schedule: Schedule
    fences: RegisterFences | None = None

    def __init__(self, inputs: CohortInputs, memory_type: type[WatchedMemory] = WatchedMemory) -> None:
        super().__init__(inputs, memory_type)

    def watch(self, watching: WatchState, schedule: Schedule, scene: Scene) -> None:
        """Report to a watcher from now on."""
        self.watcher, self.images = watching.watcher, watching.images
        self.schedule, self.scene = schedule, scene
        self.on_images: dict[tuple[TextureAccess, int, int], Access] = {}
        self.before_wait = np.zeros(self.size, np.bool_)  # the lanes that have arrived at the barrier of their cluster
        self.last_collective: dict[str, Bound] = {}  # the last instruction of each collective
        self.together = 0  # the number of the transfers that lanes have started together last ...
        self.moved: dict[tuple[int, int], Pieces] = {}  # ... and what they move, by the warp and the first target
        self.mem.watch(self, watching.watcher, schedule, watching.variables)
        self.mem.threads = self.mem.threads + scene.first
        self.threads, self.first = self.mem.threads, int(self.mem.threads[0])
        self.follows_registers = watching.products
        self.fences = RegisterFences(self.size) if watching.products else None
        if any(each.planes is not None for each in schedule.code.routines):
            self.shadow = CohortShadow(self, watching.watcher, watching.objects, schedule.code.origins)
            self.shadow.start(schedule.kernel, schedule.file(schedule.kernel, 0), None)

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def texture(
        self, access: TextureAccess, lanes: Lanes, guard: Guard, operands: dict[str, Sequence[PerLane]]
    ) -> list[PerLane]:
        """Report accesses to images; a refused lane goes on without its access, and gets zeros."""
        count = self.layout.count(lanes)
        every = self.layout.every(lanes)
        work = access.work if isinstance(access.work, Watched) else None
        positions = np.flatnonzero(np.broadcast_to(True if guard is None else guard, count))
        while True:
            of_lanes = {name: [spread(each, positions) for each in values] for name, values in operands.items()}
            good = np.zeros(count, np.bool_)
            good[positions] = True
            try:
                touched = list(work.touched(self.memory, of_lanes)) if work is not None else []
                found = super().texture(access, lanes, good, operands)
            except AccessFault as fault:
                self.mem.refuse(
                    fault.placed(access.bound, int(every[positions[fault.lane_index]])),
                    Access(access.bound, Space.GENERIC, b32),
                )
                positions = positions[texture_unit.spared(access.work, self.memory, of_lanes, fault.lane_index)]
            else:
                break
        if work is not None:
            for each in touched:
                self.report_image(access, work, every[positions], each)
        return found

    def report_image(self, access: TextureAccess, work: Watched, lanes: LaneNumbers, touched: AccessedBytes) -> None:
        """Report the accessed bytes of an image."""
        how = self.on_images.get((access, touched.element, touched.count))
        if how is None:
            attributes = AccessAttributes(proxy=work.proxy)
            if work.verb is Verb.UPDATE:
                attributes |= AccessAttributes(order=Order.RELAXED, scope=Scope.GPU)
            how = Access(access.bound, Space.GLOBAL, Type.named[f"b{8 * touched.element}"], touched.count, attributes)
            self.on_images[access, touched.element, touched.count] = how
        tell = {Verb.READ: self.watcher.read, Verb.WRITE: self.watcher.wrote, Verb.UPDATE: self.watcher.updated}[work.verb]
        for allocation, mine, offsets in self.images.parts(touched):
            tell(how, self.threads[lanes[mine]], allocation, offsets)

    # ── asynchronous copies, mbarriers ──────────────────────────────────────────────────

    def copy_started(
        self, copying: CopyInstruction, lanes: LaneNumbers, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Report the reads and writes that the copies will do."""
        for size in np.unique(source_size[source_size > 0]).tolist():
            some = np.flatnonzero(source_size == size)
            for access, offset in copying.reads(size):
                for allocation, those, offsets in self.mem.touched(access, lanes[some], source[some] + np.uint64(offset)):
                    self.watcher.copying(access, those, allocation, offsets, Verb.READ)
        for allocation, those, offsets in self.mem.touched(copying.target, lanes, target):
            self.watcher.copying(copying.target, those, allocation, offsets, Verb.WRITE)

    def stepping(self, code: Sequence[Bound], slots: Slots, lanes: Lanes, file: RegisterFile) -> None:
        """Report registers of products and loads that are used before the wait."""
        if self.fences is not None:
            self.fences.stepping(code, lanes, file)
        for use in touched(self.copies.unwaited, code, slots, lanes, file):
            self.watcher.in_use(use.bound, int(self.threads[use.lane]), use.said, use.started)
        super().stepping(code, slots, lanes, file)

    def products_started(self, product: Bound, lanes: LaneNumbers, file: RegisterFile) -> None:
        """Report products without a fence before them."""
        if self.fences is not None and (found := self.fences.missing(product, lanes, file)) is not None:
            lane, said, other = found
            self.watcher.unfenced(product, int(self.threads[lane]), said, other)

    def work_fenced(self, lanes: Lanes, guard: Guard, kind: AsyncKind) -> None:
        """Record the fence."""
        if self.fences is not None:
            self.fences.fence(self.layout.every(lanes))

    def product_started(self, access: Access, lanes: LaneNumbers, addresses: PerLane, starter: int | None = None) -> None:
        """Report the reads that the products will do: by the thread that started them, for both CTAs of a pair."""
        for allocation, lanes_of, offsets in self.mem.touched(access, lanes, addresses):
            those = lanes_of if starter is None else np.full_like(lanes_of, self.threads[starter])
            self.watcher.copying(access, those, allocation, offsets, Verb.READ)

    def tensor_started(
        self, bound: Bound, kind: AsyncKind | None, cta: int, lanes: LaneNumbers, blocks: Sequence[CellBlock]
    ) -> None:
        """Report work on tensor memory."""
        self.watcher.tensor_started(bound, kind, self.barrier(cta, 0)[0], self.threads[lanes], blocks)

    def transfer_started(self, begun: UnderWay) -> None:
        """Report the reads and writes that a transfer will do, for each mbarrier that counts bytes of it."""
        repeats = self._repeats(begun)
        if begun.map is not None:
            access, where = begun.copying.map, np.array([begun.map], np.uint64)
            for allocation, those, offsets in self.mem.touched(access, begun.lanes, where):
                self.watcher.mapped(access, those, allocation, offsets)
        if not begun.pieces.barriers:
            self._report_transfer(begun, repeats=repeats)
        for barrier, one in zip(begun.pieces.barriers, begun.by_barrier(), strict=True):
            self.arrival_posted(begun.copying.barrier, begun.lanes, np.array([barrier], np.uint64))
            self._report_transfer(one, repeats=repeats)

    def _repeats(self, begun: UnderWay) -> bool:
        """Does another lane of the warp move the same by the same instruction?"""
        if begun.began != self.together:
            self.together, self.moved = begun.began, {}
        first = self.moved.setdefault((int(self.layout.warp[begun.lanes[0]]), int(begun.pieces.target[0])), begun.pieces)
        return first is not begun.pieces and begun.pieces.repeats(first)

    def _report_transfer(self, begun: UnderWay, *, repeats: bool) -> None:
        kind, unit = begun.copying.transfer, begun.pieces.unit
        read, _ = begun.pieces.read()
        parts = (kind.origin, read, Verb.READ), (kind.to, begun.written, Verb.UPDATE if kind.operation else Verb.WRITE)
        for space, addresses, verb in parts:
            if addresses is not None and len(addresses):
                access = begun.copying.access(space, unit, combines=verb is Verb.UPDATE, repeats=repeats)
                for allocation, those, offsets in self.mem.touched(access, begun.every(addresses), addresses):
                    self.watcher.copying(access, those, allocation, offsets, verb)

    def copies_grouped(self, lanes: LaneNumbers, kind: AsyncKind) -> None:
        """Report new groups of copies."""
        self.watcher.grouped(self.threads[lanes], kind)

    def copies_awaited(self, lanes: LaneNumbers, groups: int, kind: AsyncKind, *, reading: bool) -> None:
        """Report waits for groups of copies."""
        self.watcher.awaited(self.threads[lanes], groups, kind, reading=reading)

    def arrival_posted(self, access: Access, lanes: LaneNumbers, address: PerLane) -> None:
        """Report what mbarriers will be told."""
        for allocation, those, offsets in self.mem.touched(access, lanes, address):
            self.watcher.posted(access, those, allocation, offsets)

    def phase_over(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, over: PerLane) -> None:
        """Report the lanes that have found the phase over; raise a deadlock where no phase can end."""
        super().phase_over(access, lanes, guard, address, over)
        every = self.layout.every(lanes)
        asked = np.broadcast_to(True if guard is None else guard, len(every))
        found = np.flatnonzero(asked & over)
        self.mem.polling.lanes[every[asked]] = True
        self.mem.polling.lanes[every[found]] = False
        self.mem.polling.fruitless += 1
        if self.mem.polling.fruitless > MOST_POLLS and self.stuck():
            lane, where = every[asked][:1], np.atleast_1d(spread(address, np.flatnonzero(asked)))[:1]
            word = self._word(access, lane, where)
            # Wrong bytes make the threads of other mbarriers wait for arrivals, so that such a wait is looked for first.
            if word >> TRANSACTIONS & TRANSACTION_BITS or self.mem.polling.fruitless > 2 * MOST_POLLS:
                said = self.deadlock_message(access, lane, where, word)
                raise self.schedule.refuse("deadlock", said, access.bound, every[asked])
        if len(found):
            self.mem.polling.fruitless = 0
            for allocation, those, offsets in self.mem.touched(access, every[found], spread(address, found)):
                self.watcher.phase_over(access, those, allocation, offsets)

    def state_asked(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, state: PerLane) -> None:
        """Report tests of an mbarrier's phase by its states."""
        every = self.layout.every(lanes)
        chosen = np.arange(len(every)) if guard is None else np.flatnonzero(np.broadcast_to(guard, len(every)))
        states = np.broadcast_to(state, len(every))[chosen].view(np.uint64)
        for position, (allocation, those, offsets) in self.mem.touched_by_lane(access, every[chosen], spread(address, chosen)):
            self.watcher.asked(access, those, allocation, offsets, states[position])

    def stuck(self) -> bool:
        """Do all live lanes wait at barriers or for phases of mbarriers, with no copy under way?"""
        return self.schedule.all_wait(self.mem.polling.lanes) and not self.copies.under_way

    def _word(self, access: Access, lane: LaneNumbers, address: PerLane) -> int:
        """The word of an mbarrier."""
        return int(np.atleast_1d(LaneMemory.gather(self.mem, access, lane, address)).view(np.uint64)[0])

    def deadlock_message(self, access: Access, lane: LaneNumbers, address: PerLane, word: int) -> str:
        """The message for threads that wait for a phase that cannot end: what one of the mbarriers lacks."""
        count = int(np.count_nonzero(self.mem.polling.lanes & self.alive))
        waiting = f"{plural(count, 'thread')} wait{'s' * (count == 1)} for the end of a phase of an mbarrier"
        ((at, *_), *_) = [offsets.tolist() for _, _, offsets in self.mem.touched(access, lane, address)]
        made, announced, came = (
            line_of(held[at]) if at in held else "" for held in (self.mem.initialised, self.mem.announced, self.mem.brought)
        )
        made_by = f", which the instruction{made} initialised," if made else ""
        changed = " and".join(each for each in (announced, came) if each and word >> TRANSACTIONS & TRANSACTION_BITS)
        last = f" (announced or copied last by the instruction{changed})" if changed else ""
        return f"no thread can go on: {waiting}; the one here{made_by} {lacks(word)}{last}"

    # ── values ──────────────────────────────────────────────────────────────────────────

    def allocate_stack(self, bound: Bound, lanes: Lanes, guard: Guard, size: PerLane, alignment: PerLane) -> PerLane:
        """A block of `alloca`, which is unset."""
        start = super().allocate_stack(bound, lanes, guard, size, alignment)
        if self.shadow is not None:
            self.shadow.allocated(lanes, guard, start, size)
        return start

    def restore_stack(self, lanes: Lanes, guard: Guard, end: PerLane) -> PerLane:
        """Free blocks of `alloca`."""
        old = super().restore_stack(lanes, guard, end)
        if self.shadow is not None:
            self.shadow.restored(lanes, self.stack_pointer(lanes))
        return old

    def answered(self, name: str, target: ArgumentSlot, lanes: Lanes, answer: PerLane) -> None:
        """A function of the device has written its result: it is set, and `malloc`'s is tagged."""
        self.shadow.passed(None, target, lanes)
        if name == "malloc":
            blocks = [self.memory.table.find(address) for address in answer.tolist()]
            self.shadow.heap_results(target, lanes, blocks)

    # ── order ───────────────────────────────────────────────────────────────────────────

    def fence(
        self, bound: Bound, lanes: Lanes, guard: Guard, order: FenceKind, scope: Scope, address: PerLane | None = None
    ) -> None:
        """Report a fence."""
        chosen: PerLane | None = None
        if guard is not None:
            chosen, lanes = self.layout.chosen(lanes, guard)
            if lanes is not None and not len(lanes):
                return
        threads = self.mem.threads_of(lanes)
        self.watcher.fenced(threads, order, scope)
        if isinstance(order, Order) and proxy_of_fence(bound.i) is Proxy.TENSORMAP:
            every = np.arange(len(threads)) if chosen is None else chosen
            self.watcher.tensormap_fenced(threads, order, spread(address, every) if address is not None else None)

    def ctas_synchronized(self) -> None:
        """Report that all lanes have met at the barriers of their CTAs."""
        self.watcher.ctas_synchronized(self.first, len(self.layout.ctas))

    def arrive(self, bound: Bound, lanes: Lanes, guard: Guard, number: PerLane, threads: PerLane) -> None:
        """Report `bar.arrive`, barrier by barrier."""
        before = len(self.arrivals)
        super().arrive(bound, lanes, guard, number, threads)
        for _, those, numbers, _ in self.arrivals[before:]:
            keys = self.layout.cta[those] * 16 + numbers
            for key in np.unique(keys).tolist():
                self.watcher.arrived(self.barrier(key // 16, key % 16), self.threads[those[keys == key]])

    def barrier_opened(self, cta: int, number: int, waiting: Sequence[Waiting]) -> None:
        """Report the released threads, by the instruction at which they waited."""
        groups = [(self.schedule.last(each.key), self.threads[each.lanes]) for each in waiting]
        self.watcher.opened(self.barrier(cta, number), groups)

    def arrive_at_cluster(self, bound: Bound, lanes: Lanes, guard: Guard, releases: bool) -> None:  # noqa: FBT001 - traced code calls it
        """Report arrivals at the barriers of clusters."""
        before = len(self.cluster_arrivals)
        super().arrive_at_cluster(bound, lanes, guard, releases)
        for those in self.cluster_arrivals[before:]:
            if self.before_wait[those].any():
                again = those[self.before_wait[those]][0]
                said = "the thread arrives again at the barrier of its cluster, and has not waited there since its last arrival"
                self.watcher.out_of_turn(bound, int(self.threads[again]), said)
            self.before_wait[those] = True
            self._cluster_step(ClusterStep.ARRIVED if releases else ClusterStep.ARRIVED_RELAXED, those)

    def cluster_barrier_opened(self, cluster: int) -> None:
        """Report that the barrier of a cluster is complete."""
        size = self.layout.threads * self.layout.shape.cluster_size
        self.watcher.cluster_barrier(ClusterStep.COMPLETE, self.first + cluster * size, self.threads[:0])

    def cluster_barrier_passed(self, key: tuple[int, int, int], lanes: LaneNumbers) -> None:
        """Report lanes that go on."""
        if not self.before_wait[lanes].all():
            thread = int(self.threads[lanes[~self.before_wait[lanes]][0]])
            said = "the thread waits at the barrier of its cluster, and has not arrived there since its last wait"
            self.watcher.out_of_turn(self.schedule.last(key), thread, said)
        self.before_wait[lanes] = False
        self._cluster_step(ClusterStep.PASSED, lanes)

    def _cluster_step(self, step: ClusterStep, lanes: LaneNumbers) -> None:
        size = self.layout.threads * self.layout.shape.cluster_size
        clusters = lanes // size
        for cluster in np.unique(clusters).tolist():
            self.watcher.cluster_barrier(step, self.first + cluster * size, self.threads[lanes[clusters == cluster]])

    def barrier(self, cta: int, number: int) -> tuple[int, int]:
        """The key of a barrier: the first thread of its CTA, and its number."""
        return self.first + cta * self.layout.threads, number

    # ── functions of the device, and what cannot go on ──────────────────────────────────

    def ask(self, name: str, function: Function, lanes: LaneNumbers, arguments: Sequence[PerLane]) -> PerLane:
        """Call a function of the device lane by lane where it may refuse a lane; a refused lane gets 0."""
        if name in AT_ONCE:
            return super().ask(name, function, lanes, arguments)
        if name == "free":
            function = partial(self.free, function)
        answers = [self.ask_one(function, lanes[n : n + 1], [a[n : n + 1] for a in arguments]) for n in range(len(lanes))]
        values = [each for each in answers if each is not None]
        return np.array([0 if each is None else int(each[0]) for each in answers], values[0].dtype) if values else None

    def ask_one(self, function: Function, lane: PerLane, arguments: Sequence[PerLane]) -> PerLane:
        """Call a function of the device for one lane; None where it is refused."""
        bound = self.calling
        assert bound is not None  # noqa: S101 - for mypy; a function is called by an instruction
        try:
            return function(self, lane, arguments)
        except AccessFault as fault:
            self.mem.refuse(fault.placed(bound, int(lane[0])), Access(bound, Space.GENERIC, b32))
            return None

    def free(self, function: Function, cohort: Caller, lane: PerLane, arguments: Sequence[PerLane]) -> PerLane:
        """Free a block; refuse a block that has been freed before, even where another block has its address."""
        (address,) = arguments[0].tolist()
        gone = self.shadow.objects.replaced(int(self.shadow.demanded[lane[0]])) if self.shadow is not None else None
        if gone is not None and gone.start == address:
            said = f"free({address:#x}): that block of {plural(gone.size)} has been freed before"
            raise AccessFault("double-free", said, address)
        return function(cohort, lane, arguments)

    def abandoned(self, fault: Fault, bound: Bound, lanes: Lanes) -> bool:
        """Report that lanes cannot go on."""
        return self.watcher.refused(fault, bound, int(self.threads[0 if lanes is None else lanes[0]]))

    def allocated(self, bound: Bound, lanes: LaneNumbers, addresses: PerLane) -> None:
        """Report the blocks."""
        got = np.flatnonzero(addresses)
        blocks = [self.memory.table.find(address) for address in addresses[got].tolist()]
        self.watcher.allocated(bound, self.threads[lanes[got]], [block for block in blocks if block is not None])

    def barrier_joined(self, cta: int, number: int, lanes: LaneNumbers, count: int | None, bound: Bound) -> None:
        """Report the lanes that arrived at a barrier."""
        self.watcher.joined(self.barrier(cta, number), bound, self.threads[lanes], count)

    def collective(self, bound: Bound, lanes: Lanes, masks: PerLane) -> None:
        """Report the lanes that arrived at a collective, with their masks."""
        self.last_collective[bound.i.mnemonic] = bound
        count = self.layout.count(lanes)
        gone = self.layout.warp_bits(~self.alive, lanes)
        self.watcher.named(bound, self.mem.threads_of(lanes), np.broadcast_to(masks, count), gone)

    def lanes_meant(self, bound: Bound, lanes: Lanes, guard: Guard, lane: PerLane) -> None:
        """Report lanes that read the value of a lane that takes no part."""
        layout, count = self.layout, self.layout.count(lanes)
        members = np.broadcast_to(at(self.members, lanes), count)
        absent = members >> (np.broadcast_to(lane, count) & np.uint32(31)).astype(np.uint32) & np.uint32(1) == 0
        if guard is not None:
            absent = absent & guard
        if absent.any():
            where = np.flatnonzero(absent)
            numbers = layout.numbers[where] if lanes is None else lanes[where]
            gone = layout.warp_bits(~self.alive, numbers)
            self.watcher.meant(bound, self.threads[numbers], np.broadcast_to(lane, count)[where], members[where], gone)

    def lanes_missed(self, mnemonic: str, lanes: LaneNumbers) -> None:
        """Report the masks again: some lanes may have ended after the arrival."""
        if len(lanes):
            gone = self.layout.warp_bits(~self.alive, lanes)
            self.watcher.named(self.last_collective[mnemonic], self.threads[lanes], self.members[lanes], gone)

    def warps_synchronized(self, mnemonic: str, lanes: Lanes) -> None:
        """Report the lanes that have met, in groups of equal masks."""
        members, layout = at(self.members, lanes), self.layout
        if lanes is None and bool((members == layout.warp_bits(self.alive, None)).all()):
            self.watcher.all_warps_synchronized(self.last_collective[mnemonic], self.first, len(layout.ctas))
            return
        lanes = layout.numbers if lanes is None else lanes
        members = np.broadcast_to(members, len(lanes))
        keys = layout.warp[lanes].astype(np.int64) << 32 | members
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        groups = [lanes[which == n] for n in range(int(which.max()) + 1)]
        self.watcher.warps_synchronized(self.last_collective[mnemonic], [self.threads[group] for group in groups])
        for group, mask in zip(groups, members[first].tolist(), strict=True):
            if mask.bit_count() != len(group):
                said = f"lanes of a warp meet here and name different lanes: not all of {listed(mask)} name these"
                self.watcher.disagreed(self.last_collective[mnemonic], int(self.threads[group[0]]), said)


__all__ = ["WatchState", "WatchedCohort"]

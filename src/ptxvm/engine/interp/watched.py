"""A cohort that is watched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type, b32
from ptxvm.analysis.program import Bound, Function as PtxFunction
from ptxvm.analysis.provenance import Provenance
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.faults import listed
from ptxvm.engine.interp.barriers import Waiting
from ptxvm.engine.interp.cohort import Cohort, _offset
from ptxvm.engine.interp.images import Images
from ptxvm.engine.interp.lanes import at, spread
from ptxvm.engine.interp.objects import Objects
from ptxvm.engine.interp.ports import Access, Copying, TextureAccess, Update
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.shadow import Place, Shadow
from ptxvm.machine import texture_unit
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Function
from ptxvm.machine.events import Left, Scene, Watcher
from ptxvm.machine.faults import AccessFault, PlacedFault, plural
from ptxvm.machine.texture_surface import Touched
from ptxvm.machine.texture_unit import Watched

AT_ONCE = frozenset({"malloc", "__assertfail"})  # which refuse no lane, or stop all
ALL_OF_THEM = slice(None)
PATIENCE = 500  # turns


class Watching:
    """What the watched cohorts of a launch share: the watcher, the objects, and where addresses come from."""

    def __init__(self, watcher: Watcher, images: Images, objects: Objects, provenance: dict[PtxFunction, Provenance]) -> None:
        self.watcher, self.images, self.objects = watcher, images, objects
        self.variables = {bound: variable for each in provenance.values() for bound, variable in each.certain.items()}


def bit_patterns(values: Any) -> Any:
    """The bits of values, which are equal where NaNs are."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


class WatchedCohort(Cohort):
    """Tells a watcher what its lanes do."""

    watcher: Watcher
    schedule: Schedule

    def watch(self, watching: Watching, schedule: Schedule, scene: Scene) -> None:
        """From now on."""
        self.watcher, self.images = watching.watcher, watching.images
        self.schedule, self.scene = schedule, scene
        self.spinning = np.zeros(self.size, np.bool_)  # has it last found that a phase of an mbarrier is not over?
        self.fruitless = 0  # such turns since something else happened
        self.on_images: dict[tuple[TextureAccess, int, int], Access] = {}
        self.variables = watching.variables
        self.came: dict[str, Bound] = {}  # the last instruction of each collective
        layout = self.layout
        self.first = scene.first + int(layout.ctas[0]) * layout.threads  # the CTAs of a cohort follow each other
        self.threads = layout.numbers + self.first
        if any(each.planes is not None for each in schedule.code.routines):
            self.shadow = Shadow(self, watching.objects)
            self.shadow.start(schedule.kernel, schedule.file(schedule.kernel, 0), None)

    def release(self) -> None:
        """Tell that the windows are no more."""
        for window in (self.shared, self._local):
            if window is not None:
                self.watcher.ended(window.allocation)
                if self.shadow is not None:
                    self.shadow.released(window.allocation)
        super().release()

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def _load(self, access: Access, lanes: Any, address: Any, chosen: Any) -> Any:
        """Tell of it; where it is refused, go on without the lane, whose value is 0."""
        try:
            if "asynchronous" not in access.attributes:  # such a copy was looked at when it began
                self.keep_to_object(access, lanes, address)
            value = super()._load(access, lanes, address, chosen)
        except PlacedFault as fault:
            good = self.without(fault, access, lanes, address)
            count = self._count(lanes)
            value = np.zeros((access.count, count) if access.count > 1 else count, access.held)
            if len(good) and np.ndim(address):
                every = self.layout.numbers if lanes is None else lanes
                value[..., good] = self._load(access, every[good], address[good], None)
            return value
        if self.fruitless and "mbarrier" not in access.attributes:
            self.spinning[slice(None) if lanes is None else lanes] = False
        for allocation, those, offsets in self.places(access, lanes, address):
            self.watcher.read(access, those, allocation, offsets)
        return value

    def _store(self, access: Access, lanes: Any, address: Any, values: Sequence[Any]) -> None:
        """Tell of it; where it is refused, go on without the lane."""
        try:
            if "asynchronous" not in access.attributes:
                self.keep_to_object(access, lanes, address, writing=True)
            super()._store(access, lanes, address, values)
        except PlacedFault as fault:
            good = self.without(fault, access, lanes, address, writing=True)
            if len(good) and np.ndim(address):
                every = self.layout.numbers if lanes is None else lanes
                self._store(access, every[good], address[good], [at(v, good) for v in values])
            return
        self.fruitless = 0
        left = self.left(access, lanes, address, values) if self.watcher.follows_values else None
        for position, (allocation, those, offsets) in self.placed(access, lanes, address):
            self.watcher.wrote(access, those, allocation, offsets, left and left.of(position))

    def left(self, access: Access, lanes: Any, address: Any, values: Sequence[Any]) -> Left:
        """What a store has left: lanes that stored to one place find the value of the last of them."""
        shape = access.count, self._count(lanes)
        held = np.reshape(super()._load(access, lanes, address, None), (access.count, -1))
        bits = bit_patterns(np.broadcast_to(held, shape))
        stored = [np.broadcast_to(np.asarray(value).astype(access.held, copy=False), shape[1:]) for value in values]
        return Left(np.ascontiguousarray(bits.T), (bits == bit_patterns(np.stack(stored))).all(axis=0))

    def atomic(self, access: Access, lanes: Any, guard: Any, address: Any, update: Update, operands: Sequence[Any]) -> Any:
        """Tell of it; where it is refused, go on without the lane, whose value is 0."""
        try:
            if self.shadow is not None or self.held_to(access) is not None:
                chosen, those = self._chosen(lanes, guard) if guard is not None else (None, lanes)
                self.keep_to_object(access, those, address if chosen is None else spread(address, chosen), writing=True)
            old = super().atomic(access, lanes, guard, address, update, operands)
        except PlacedFault as fault:
            good = np.zeros(self._count(lanes), np.bool_)
            good[self.without(fault, access, lanes, address, writing=True)] = True
            return self.atomic(access, lanes, good if guard is None else guard & good, address, update, operands)
        seen = old
        if guard is not None:
            chosen, lanes = self._chosen(lanes, guard)
            if chosen is not None:
                if not len(chosen):
                    return old
                address, seen, operands = spread(address, chosen), old[chosen], [spread(o, chosen) for o in operands]
        self.fruitless = 0
        if "mbarrier" in access.attributes:
            self.tell_signal(access, lanes, address, seen, update(seen, *operands))
        else:
            self.tell_update(access, lanes, address, seen == operands[0] if update.operation == "cas" else None)
        return old

    def tell_signal(self, access: Access, lanes: Any, address: Any, before: Any, after: Any) -> None:
        """Tell of the updates of mbarriers."""
        count = self._count(lanes)
        before, after = np.broadcast_to(before, count), np.broadcast_to(after, count)
        for position, (allocation, those, offsets) in self.placed(access, lanes, address):
            self.watcher.signalled(access, those, allocation, offsets, (before[position], after[position]))

    def tell_update(self, access: Access, lanes: Any, address: Any, swapped: Any) -> None:
        """Tell of an atomic; of one that compares and swaps, which lanes `swapped`: the others only read."""
        if swapped is not None and not np.all(swapped):
            every, swapped = self.layout.numbers if lanes is None else lanes, np.broadcast_to(swapped, self._count(lanes))
            failed = np.flatnonzero(~swapped)
            for allocation, those, offsets in self.places(access, every[failed], spread(address, failed)):
                self.watcher.read(access, those, allocation, offsets)
            good = np.flatnonzero(swapped)
            lanes, address = every[good], spread(address, good)
            if not len(good):
                return
        for allocation, those, offsets in self.places(access, lanes, address):
            self.watcher.updated(access, those, allocation, offsets)

    def texture(self, access: TextureAccess, lanes: Any, guard: Any, operands: dict[str, Sequence[Any]]) -> list[Any]:
        """Tell what is read and written of images; where a lane is refused, go on without it, whose values are 0."""
        count = self._count(lanes)
        every = self.layout.numbers if lanes is None else lanes
        work = access.work if isinstance(access.work, Watched) else None
        positions = np.flatnonzero(np.broadcast_to(True if guard is None else guard, count))
        while True:
            given = {name: [spread(each, positions) for each in values] for name, values in operands.items()}
            good = np.zeros(count, np.bool_)
            good[positions] = True
            try:
                touched = list(work.touched(self.memory, given)) if work is not None else []
                found = super().texture(access, lanes, good, operands)
            except AccessFault as fault:
                self.refuse(fault.placed(access.bound, int(every[positions[fault.lane_index]])), Access(access.bound, "", b32))
                positions = positions[texture_unit.spared(access.work, self.memory, given, fault.lane_index)]
            else:
                break
        if work is not None:
            for each in touched:
                self.tell_image(access, work, every[positions], each)
        return found

    def tell_image(self, access: TextureAccess, work: Watched, lanes: Any, touched: Touched) -> None:
        """Tell of the bytes of an image."""
        how = self.on_images.get((access, touched.element, touched.count))
        if how is None:
            attributes = {"proxy": work.proxy, **({"order": "relaxed", "scope": "gpu"} if work.operation == "atomic" else {})}
            how = Access(access.bound, "global", Type.named[f"b{8 * touched.element}"], touched.count, attributes)
            self.on_images[access, touched.element, touched.count] = how
        tell = {"read": self.watcher.read, "write": self.watcher.wrote, "atomic": self.watcher.updated}[work.operation]
        for allocation, mine, offsets in self.images.parts(touched):
            tell(how, self.threads[lanes[mine]], allocation, offsets)

    def places(self, access: Access, lanes: Any, address: Any) -> Iterator[tuple[Allocation, Any, Any]]:
        """What an access touches: allocations, the threads that touch each, and where they do."""
        for _, place in self.placed(access, lanes, address):
            yield place

    def placed(self, access: Access, lanes: Any, address: Any) -> Iterator[tuple[Any, tuple[Allocation, Any, Any]]]:
        """The same, each with the positions of its lanes among those that run."""
        threads = self.threads if lanes is None else self.threads[lanes]
        window = self._window(access.space)
        if window is not None:
            home = window.home if lanes is None else window.home[lanes]
            offset = _offset(address)
            yield ALL_OF_THEM, (window.allocation, threads, home + (offset.astype(np.int64) if offset.ndim else int(offset)))
            return
        if not np.ndim(address):
            address = np.full(len(threads), address)
        if self.memory.address_bits == 32:
            address = address & np.uint64(0xFFFF_FFFF)
        if not len(address):
            return
        table = self.memory.table
        first = table.find(int(address[0]))
        if first is not None and int(address.min()) >= first.start and int(address.max()) < first.end:
            yield ALL_OF_THEM, (first, threads, (address - first.base).view(np.int64))
            return
        owners = table.columns.owners(address)
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            allocation = table.items[owner]
            yield mine, (allocation, threads[mine], (address[mine] - allocation.base).view(np.int64))

    def without(self, fault: PlacedFault, access: Access, lanes: Any, address: Any, *, writing: bool = False) -> Any:
        """The positions of the lanes that are in bounds, where the watcher lets them go on."""
        self.refuse(fault, access)
        good = self.fitting(access, lanes, address, writing=writing).copy()
        good[fault.lane == (self.layout.numbers if lanes is None else lanes)] = False
        return np.flatnonzero(good)

    def fitting(self, access: Access, lanes: Any, address: Any, *, writing: bool) -> Any:
        """Which lanes would be in bounds, and in those of the object?"""
        good = super().fitting(access, lanes, address, writing=writing)
        if (variable := self.held_to(access)) is not None:
            good = good & ~self.strays(variable, access, lanes, address)[0]
        wrong = self.astray(access, lanes, address, writing=writing)
        return good if wrong is None else good & ~wrong

    def held_to(self, access: Access) -> Variable | None:
        """The variable that an access must not leave, where that is known."""
        variable = self.variables.get(access.bound)
        return variable if variable is not None and access.space in ("generic", variable.space) else None

    def keep_to_object(self, access: Access, lanes: Any, address: Any, *, writing: bool = False) -> None:
        """Refuse an access that has left the variable or block which its address comes from."""
        wrong = self.astray(access, lanes, address, writing=writing)
        if wrong is not None and wrong.any():
            first = int(np.argmax(wrong))
            lane = first if lanes is None else int(lanes[first])
            at = int(address if not np.ndim(address) else address[first])
            tag = int(self.shadow.held[access.bound, writing][lane])
            fault = self.shadow.objects.explain(self, access, lane, at, tag, writing=writing)
            raise self._placed(fault.at_lane(first), access, lanes)
        if (variable := self.held_to(access)) is not None:
            self.keep_to_variable(variable, access, lanes, address, writing=writing)

    def astray(self, access: Access, lanes: Any, address: Any, *, writing: bool) -> Any:
        """Which lanes have left the objects of their addresses; None where none is known.  Copies have been looked at."""
        if self.shadow is None:
            return None
        tags = self.shadow.tags_held(access, lanes, writing=writing)
        if tags is None:
            return None
        every = self.layout.numbers if lanes is None else lanes
        return self.shadow.objects.strays(self, access, every, np.broadcast_to(address, len(every)).astype(np.uint64), tags)

    def keep_to_variable(self, variable: Variable, access: Access, lanes: Any, address: Any, *, writing: bool) -> None:
        """Refuse an access that has left the variable which its address comes from."""
        wrong, within = self.strays(variable, access, lanes, address)
        if wrong.any():
            lane = int(np.argmax(wrong))
            size, at = access.held.itemsize * access.count, int(within[lane])
            said = f"{'writing' if writing else 'reading'} {plural(size)} at byte {at} of '{variable.name}'"
            fault = AccessFault("out-of-bounds", f"{said}, which has {plural(variable.size)}", at, size, lane)
            raise self._placed(fault, access, lanes)

    def strays(self, variable: Variable, access: Access, lanes: Any, address: Any) -> tuple[Any, Any]:
        """Which lanes have left the variable, and where in it each is."""
        count = self._count(lanes)
        window = self.shared if variable.space == "shared" else self.local
        function: Any = access.bound.function
        place, start = self.schedule.code.image.place(variable, function)
        if access.space == "generic":
            offset = window.from_generic(np.broadcast_to(address, count), lanes)
        else:
            offset = np.broadcast_to(_offset(address), count).astype(np.uint64)
        begin = np.uint64(start) + (self.frame(lanes) if place == "frame" else np.uint64(0))
        within = (offset - begin).view(np.int64)
        size = access.held.itemsize * access.count
        return (within < 0) | (within > variable.size - size), within

    def refuse(self, fault: PlacedFault, access: Access) -> None:
        """Tell of a refused access; raise it where the watcher does not take it."""
        if not self.watcher.refused(self.schedule.fault(fault), access.bound, int(self.threads[fault.lane])):
            raise fault

    # ── asynchronous copies, mbarriers ──────────────────────────────────────────────────

    def reachable(self, access: Access, lanes: Any, address: Any, *, writing: bool) -> Any:
        """Tell of what is refused; the positions of the others."""
        try:
            self.keep_to_object(access, lanes, address, writing=writing)
            return super().reachable(access, lanes, address, writing=writing)
        except PlacedFault as fault:
            return self.without(fault, access, lanes, address, writing=writing)

    def copy_started(self, copying: Copying, lanes: Any, target: Any, source: Any, given: Any) -> None:
        """Tell what the copies are going to read and to write."""
        for size in np.unique(given[given > 0]).tolist():
            some = np.flatnonzero(given == size)
            for access, offset in copying.reads(size):
                for allocation, those, offsets in self.places(access, lanes[some], source[some] + np.uint64(offset)):
                    self.watcher.copying(access, those, allocation, offsets, "read")
        for allocation, those, offsets in self.places(copying.target, lanes, target):
            self.watcher.copying(copying.target, those, allocation, offsets, "write")

    def copies_grouped(self, lanes: Any, kind: str) -> None:
        """Tell of it."""
        self.watcher.grouped(self.threads[lanes], kind)

    def copies_awaited(self, lanes: Any, groups: int, kind: str, *, reading: bool) -> None:
        """Tell of it."""
        self.watcher.awaited(self.threads[lanes], groups, kind, reading=reading)

    def arrival_posted(self, lanes: Any) -> None:
        """Tell of it."""
        self.watcher.posted(self.threads[lanes])

    def phase_over(self, access: Access, lanes: Any, guard: Any, address: Any, over: Any) -> None:
        """Tell of the lanes for which it is over."""
        every = self.layout.numbers if lanes is None else lanes
        asked = np.broadcast_to(True if guard is None else guard, len(every))
        found = np.flatnonzero(asked & over)
        self.spinning[every[asked]] = True
        self.spinning[every[found]] = False
        self.fruitless += 1
        if self.fruitless > PATIENCE and self.stuck():
            raise self.schedule.refuse("deadlock", self.hopeless(), access.bound, every[asked])
        if len(found):
            self.fruitless = 0
            for allocation, those, offsets in self.places(access, every[found], spread(address, found)):
                self.watcher.phase_over(access, those, allocation, offsets)

    def state_asked(self, access: Access, lanes: Any, guard: Any, address: Any, state: Any) -> None:
        """Tell of the states."""
        every = self.layout.numbers if lanes is None else lanes
        chosen = np.arange(len(every)) if guard is None else np.flatnonzero(np.broadcast_to(guard, len(every)))
        states = np.broadcast_to(state, len(every))[chosen].view(np.uint64)
        for position, (allocation, those, offsets) in self.placed(access, every[chosen], spread(address, chosen)):
            self.watcher.asked(access, those, allocation, offsets, states[position])

    def stuck(self) -> bool:
        """Do all live lanes wait, for barriers or the phases of mbarriers, and will nothing else happen?"""
        waits = self.spinning | ~self.alive
        pools = [*self.schedule.warps.pools.values(), *(b.waiting for b in self.schedule.barriers.barriers.values())]
        for waiting in (each for pool in pools for each in pool):
            waits[waiting.lanes] = True
        return bool(waits.all()) and not self.copies.under_way

    def hopeless(self) -> str:
        """The threads that wait for a phase that does not end."""
        count = int(np.count_nonzero(self.spinning & self.alive))
        return f"no thread can go on: {plural(count, 'thread')} wait{'s' * (count == 1)} for the end of a phase of an mbarrier"

    # ── values ──────────────────────────────────────────────────────────────────────────

    def threads_of(self, lanes: Any) -> Any:
        """The numbers of the threads of some lanes."""
        return self.threads if lanes is None else self.threads[lanes]

    def allocate_stack(self, bound: Any, lanes: Any, guard: Any, size: Any, alignment: Any) -> Any:
        """A block, which has no value yet."""
        start = super().allocate_stack(bound, lanes, guard, size, alignment)
        if self.shadow is not None:
            self.shadow.allocated(lanes, guard, start, size)
        return start

    def restore_stack(self, lanes: Any, guard: Any, end: Any) -> Any:
        """Blocks are no more."""
        old = super().restore_stack(lanes, guard, end)
        if self.shadow is not None:
            self.shadow.restored(lanes, self.stack_pointer(lanes))
        return old

    def answered(self, name: str, target: Place, lanes: Any, answer: Any) -> None:
        """A function of the device has given its result a value."""
        self.shadow.passed(None, target, lanes)
        if name == "malloc":
            blocks = [self.memory.table.find(address) for address in answer.tolist()]
            self.shadow.heap_results(target, lanes, blocks)

    # ── order ───────────────────────────────────────────────────────────────────────────

    def fence(self, bound: Bound, lanes: Any, guard: Any, order: str, scope: str) -> None:
        """Tell of it."""
        if guard is not None:
            _, lanes = self._chosen(lanes, guard)
            if lanes is not None and not len(lanes):
                return
        self.watcher.fenced(self.threads if lanes is None else self.threads[lanes], order, scope)

    def all_met(self) -> None:
        """Tell of it."""
        self.watcher.met(self.first, len(self.layout.ctas))

    def arrive(self, bound: Any, lanes: Any, guard: Any, number: Any, threads: Any) -> None:
        """Tell of it, barrier by barrier."""
        before = len(self.arrivals)
        super().arrive(bound, lanes, guard, number, threads)
        for _, those, numbers, _ in self.arrivals[before:]:
            keys = self.layout.cta[those] * 16 + numbers
            for key in np.unique(keys).tolist():
                self.watcher.arrived(self.barrier(key // 16, key % 16), self.threads[those[keys == key]])

    def barrier_opened(self, cta: int, number: int, waiting: Sequence[Waiting]) -> None:
        """Report which threads waited where."""
        groups = [(self.schedule.last(each.key), self.threads[each.lanes]) for each in waiting]
        self.watcher.opened(self.barrier(cta, number), groups)

    def barrier(self, cta: int, number: int) -> tuple[int, int]:
        """What a barrier is known by: the first thread of the CTA, and its number."""
        return self.first + cta * self.layout.threads, number

    # ── functions of the device, and what cannot go on ──────────────────────────────────

    def ask(self, name: str, function: Function, lanes: Any, arguments: Sequence[Any]) -> Any:
        """Ask for lane after lane, where one may be refused that those behind it do not wait for; its answer is 0."""
        if name in AT_ONCE:
            return super().ask(name, function, lanes, arguments)
        if name == "free":
            function = partial(self.free, function)
        answers = [self.ask_one(function, lanes[n : n + 1], [a[n : n + 1] for a in arguments]) for n in range(len(lanes))]
        given = [each for each in answers if each is not None]
        return np.array([0 if each is None else int(each[0]) for each in answers], given[0].dtype) if given else None

    def ask_one(self, function: Function, lane: Any, arguments: Sequence[Any]) -> Any:
        """Ask for one lane; None where there is no answer."""
        bound: Any = self.calling
        try:
            return function(self, lane, arguments)
        except AccessFault as fault:
            self.refuse(fault.placed(bound, int(lane[0])), Access(bound, "", b32))
            return None

    def free(self, function: Function, cohort: Any, lane: Any, arguments: Sequence[Any]) -> Any:
        """Free a block, but not one that has come to the place of the block which is meant."""
        (address,) = arguments[0].tolist()
        gone = self.shadow.objects.replaced(int(self.shadow.demanded[lane[0]])) if self.shadow is not None else None
        if gone is not None and gone.start == address:
            said = f"free({address:#x}): that block of {plural(gone.size)} has been freed before"
            raise AccessFault("double-free", said, address)
        return function(cohort, lane, arguments)

    def abandoned(self, fault: Fault, bound: Bound, lanes: Any) -> bool:
        """Tell of it."""
        return self.watcher.refused(fault, bound, int(self.threads[0 if lanes is None else lanes[0]]))

    def allocated(self, bound: Bound, lanes: Any, addresses: Any) -> None:
        """Tell of the blocks."""
        got = np.flatnonzero(addresses)
        blocks = [self.memory.table.find(address) for address in addresses[got].tolist()]
        self.watcher.allocated(bound, self.threads[lanes[got]], [block for block in blocks if block is not None])

    def barrier_joined(self, cta: int, number: int, lanes: Any, count: int | None, bound: Bound) -> None:
        """Report which lanes came."""
        self.watcher.joined(self.barrier(cta, number), bound, self.threads[lanes], count)

    def collective(self, bound: Bound, lanes: Any, masks: Any) -> None:
        """Report the lanes that are named."""
        self.came[bound.i.mnemonic] = bound
        count = self._count(lanes)
        gone = self.layout.warp_bits(~self.alive, lanes)
        self.watcher.named(bound, self.threads if lanes is None else self.threads[lanes], np.broadcast_to(masks, count), gone)

    def lanes_meant(self, bound: Bound, lanes: Any, guard: Any, lane: Any) -> None:
        """Tell of lanes that read what no lane gives."""
        layout, count = self.layout, self._count(lanes)
        members = np.broadcast_to(at(self.members, lanes), count)
        absent = members >> (np.broadcast_to(lane, count) & np.uint32(31)).astype(np.uint32) & np.uint32(1) == 0
        if guard is not None:
            absent = absent & guard
        if absent.any():
            where = np.flatnonzero(absent)
            numbers = layout.numbers[where] if lanes is None else lanes[where]
            gone = layout.warp_bits(~self.alive, numbers)
            self.watcher.meant(bound, self.threads[numbers], np.broadcast_to(lane, count)[where], members[where], gone)

    def lanes_missed(self, mnemonic: str, lanes: Any) -> None:
        """Report the lanes that are named: some may have ended after they came."""
        if len(lanes):
            gone = self.layout.warp_bits(~self.alive, lanes)
            self.watcher.named(self.came[mnemonic], self.threads[lanes], self.members[lanes], gone)

    def warps_met(self, mnemonic: str, lanes: Any) -> None:
        """Tell of it, group by group of the lanes that named each other."""
        members, layout = at(self.members, lanes), self.layout
        if lanes is None and bool((members == layout.warp_bits(self.alive, None)).all()):
            self.watcher.all_warps_met(mnemonic, self.first, len(layout.ctas))
            return
        lanes = layout.numbers if lanes is None else lanes
        members = np.broadcast_to(members, len(lanes))
        keys = layout.warp[lanes].astype(np.int64) << 32 | members
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        groups = [lanes[which == n] for n in range(int(which.max()) + 1)]
        self.watcher.warps_met(mnemonic, [self.threads[group] for group in groups])
        for group, mask in zip(groups, members[first].tolist(), strict=True):
            if mask.bit_count() != len(group):
                said = f"lanes of a warp meet here and name different lanes: not all of {listed(mask)} name these"
                self.watcher.disagreed(self.came[mnemonic], int(self.threads[group[0]]), said)


__all__ = ["WatchedCohort", "Watching"]

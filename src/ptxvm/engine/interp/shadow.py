"""Shadow state of a watched cohort: unset bytes and provenance of memory, arguments and exchanged values.

Traced code keeps the shadows of registers (`tracked.py`).  Here are the shadows of memory, of arguments, and of the values
that lanes of a warp exchange.  The watcher keeps the set bytes of memory.  In memory a tag belongs to a cell of 4 bytes: an
address that is stored byte by byte loses its object.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lanes import at, spread
from ptxvm.engine.interp.objects import CALLS, AllocaBlock, Objects
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.shadow_algebra import LOST, NUMBER, SET, joined, lost, whole
from ptxvm.engine.interp.tracked import TAGS, UNSET, RegisterRead
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Watcher
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile

CELL = 4  # bytes
KEPT = frozenset({"exch", "cas", "add"})  # atomics that may leave an address
NOTHING = {TAGS: NUMBER, UNSET: SET}  # the shadows of a number that is set
BITS = np.arange(16, dtype=np.uint32)[:, None]


@dataclass(eq=False, slots=True)
class ArgumentSlot:
    """The location of an argument: a register in a file, or a `.param` variable in a frame."""

    symbol: Register | Variable
    routine: Routine
    file: RegisterFile
    offset: PerLane = None  # of a variable, in local memory


class CohortShadow:
    """The shadow state of a cohort."""

    def __init__(self, cohort: Cohort, watcher: Watcher, objects: Objects) -> None:
        self.cohort, self.watcher, self.objects = cohort, watcher, objects
        self.access_tags: dict[tuple[Bound, bool], PerLane] = {}
        self.new_block = NUMBER  # the tag of the last block of `alloca`
        self.demanded = np.zeros(cohort.size, np.int64)  # the tags of the last arguments of functions of the device
        self._cells: dict[Allocation, PerLane] = {}
        self._payload: dict[tuple[int, int], PerLane] = {}  # by plane, and number of the value
        self._calls: list[PerLane] = []
        self._blocks: list[AllocaBlock] = []

    # ── registers ───────────────────────────────────────────────────────────────────────

    def taken(self, shadow: PerLane, lanes: Lanes) -> PerLane:
        """The shadow of a register at some lanes."""
        return at(shadow, lanes)

    def start(self, routine: Routine, file: RegisterFile, lanes: Lanes) -> None:
        """At the entry of a function its registers are unset."""
        for slot, mask in routine.unset:
            self._set(file, slot, lanes, mask)

    def _set(self, file: RegisterFile, slot: int, lanes: Lanes, shadow: PerLane) -> None:
        if lanes is None:
            file[slot] = np.array(shadow, copy=True)[()]
            return
        if not np.ndim(file[slot]):
            file[slot] = np.full(self.cohort.size, file[slot])
        file[slot][lanes] = shadow

    def unset(self, read: RegisterRead, lanes: Lanes, guard: Guard, mask: PerLane) -> PerLane:
        """Report reads of an unset register; returns the mask that is left, where only some bytes may be needed."""
        if not np.any(mask):
            return SET
        wrong = mask == read.all_bytes if read.partly else mask != 0
        self._tell(read.bound, read.register.name, read.all_bytes, (lanes, guard, mask, wrong))
        return np.where(wrong, SET, mask)[()]

    def consumed(self, bound: Bound, register: str, lanes: Lanes, guard: Guard, mask: PerLane) -> None:
        """Report that an operation uses a value with unset bytes, of `register` where its name is known."""
        if np.any(mask):
            self._tell(bound, register, -1, (lanes, guard, mask, mask != 0))

    def _tell(self, bound: Bound, register: str, all_bytes: int, what: tuple[Lanes, Guard, PerLane, PerLane]) -> None:
        lanes, guard, mask, wrong = what
        count = self.cohort.size if lanes is None else len(lanes)
        if guard is not None:
            wrong = wrong & guard
        found = np.flatnonzero(np.broadcast_to(wrong, count))
        if len(found):
            first = int(np.broadcast_to(mask, count)[found[0]])
            missing = [] if first == all_bytes else [n for n in range(16) if first >> n & 1]
            self.watcher.unset(bound, self.cohort.mem.threads_of(lanes)[found], register, missing)

    # ── which lanes, and where ──────────────────────────────────────────────────────────

    def _positions(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, *, writing: bool
    ) -> tuple[PerLane, PerLane, PerLane]:
        """The lanes that perform the access: their positions among the running lanes, their numbers and addresses."""
        every = self.cohort.layout.numbers if lanes is None else lanes
        good = self.cohort.mem.fitting(access, lanes, address, writing=writing)
        chosen = np.flatnonzero(np.broadcast_to(good if guard is None else good & guard, len(every)))
        return chosen, every[chosen], spread(address, chosen)

    # ── unset bytes of memory ───────────────────────────────────────────────────────────

    def lacking(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane) -> PerLane:
        """The unset bytes of each element loaded from the stack; for other memory the watcher has reported them."""
        count = self.cohort.size if lanes is None else len(lanes)
        element, found = access.type.bytes, np.zeros((access.count, count), np.uint32)
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=False)
        chosen, offsets = self._on_stack(access, chosen, mine, addresses)
        missing = (
            self.watcher.missing(self.cohort.mem.local.allocation, offsets, access.count * element) if len(chosen) else None
        )
        if missing is None or not missing.any():
            return found
        unused = ~access.bound.used_bytes if access.bound.used_bytes is not None else 0
        for n in range(access.count):
            masks = (missing[n * element : (n + 1) * element] << BITS[:element]).sum(0, dtype=np.uint32)
            if access.space is not Space.PARAM:  # the watcher has reported elements that are wholly unset
                masks[masks == whole(access.type)] = 0
            found[n, chosen] = masks & np.uint32(whole(access.type) & ~(unused >> n * element))
        return found

    def _on_stack(self, access: Access, chosen: PerLane, lanes: Lanes, addresses: PerLane) -> tuple[PerLane, PerLane]:
        """The positions whose access is on the stack, and the offsets in local memory."""
        if not self.cohort.mem.has_local:
            return chosen[:0], chosen[:0]
        window = self.cohort.mem.local
        if access.space is Space.LOCAL:
            return chosen, window.home[lanes] + (addresses & np.uint64(0xFFFF_FFFF)).astype(np.int64)
        allocation = window.allocation
        here = np.flatnonzero((addresses >= allocation.start) & (addresses < allocation.end))
        return chosen[here], (addresses[here] - allocation.base).view(np.int64)

    def store_unset(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, register: str, masks: Sequence[PerLane]
    ) -> None:
        """A store of unset bytes: on the stack they stay unset, elsewhere it is reported as a read of them."""
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=True)
        of_lanes = [spread(mask, chosen) for mask in masks]
        if not len(chosen) or not any(mask.any() for mask in of_lanes):
            return
        for position, (allocation, threads, offsets) in self.cohort.mem.touched_by_lane(access, mine, addresses):
            parts = [mask[position] for mask in of_lanes]
            if allocation.space is Space.LOCAL:
                missing = np.concatenate(
                    [(mask >> BITS[: access.type.bytes] & np.uint32(1)).astype(np.bool_) for mask in parts]
                )
                self.watcher.lost(allocation, offsets, missing)
                continue
            for mask in parts:
                if mask.any():
                    first = int(np.argmax(mask != 0))
                    missing_bytes = [n for n in range(16) if int(mask[first]) >> n & 1]
                    self.watcher.unset(access.bound, threads[first:], register, missing_bytes)

    # ── tags in memory ──────────────────────────────────────────────────────────────────

    def loaded_tags(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane) -> PerLane:
        """The tags of the loaded elements."""
        count = self.cohort.size if lanes is None else len(lanes)
        found = np.zeros((access.count, count), np.int64)
        if not self._cells:
            return found
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=False)
        if not len(chosen):
            return found
        for position, (allocation, _, offsets) in self.cohort.mem.touched_by_lane(access, mine, addresses):
            cells = self._cells.get(allocation)
            for n in range(access.count) if cells is not None else ():
                found[n, chosen[position]] = self._read(cells, offsets + n * access.type.bytes, access.type.bytes)
        return found

    def _read(self, cells: PerLane, offsets: PerLane, size: int) -> PerLane:
        """The tag of a value: the one that all of its cells have, or LOST where they differ."""
        tags = cells[offsets // CELL]
        for more in range(CELL, size, CELL):
            tags = np.where(cells[(offsets + more) // CELL] == tags, tags, LOST)
        return np.where(tags != 0, LOST, NUMBER) if size < CELL else tags

    def store_tags(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, tags: Sequence[PerLane]) -> None:
        """Store the tags of stored elements."""
        if not self._cells and not any(np.any(tag) for tag in tags):
            return
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=True)
        of_lanes = [spread(tag, chosen) for tag in tags]
        if not len(chosen):
            return
        for position, (allocation, _, offsets) in self.cohort.mem.touched_by_lane(access, mine, addresses):
            for n, tag in enumerate(of_lanes):
                self._write(allocation, offsets + n * access.type.bytes, tag[position], access.type.bytes)

    def _write(self, allocation: Allocation, offsets: PerLane, tags: PerLane, size: int) -> None:
        cells = self._cells.get(allocation)
        if cells is None:
            if not tags.any():
                return
            room = -(-(allocation.end - allocation.origin) // CELL)
            cells = self._cells[allocation] = np.zeros(room, np.int64)
        if size < CELL:
            tags = np.where((tags != 0) | (cells[offsets // CELL] != 0), LOST, NUMBER)
        for more in range(0, size, CELL):
            cells[(offsets + more) // CELL] = tags

    def update_tags(
        self,
        access: Access,
        lanes: Lanes,
        guard: Guard,
        address: PerLane,
        how: str,
        old: PerLane,
        operands: Sequence[PerLane],
        tags: Sequence[PerLane],
    ) -> PerLane:
        """The tags that each lane's atomic reads, in the order of the lanes; the updates store theirs."""
        count = self.cohort.size if lanes is None else len(lanes)
        found = np.zeros(count, np.int64)
        if not self._cells and not any(np.any(tag) for tag in tags):
            return found
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=True)
        of_lanes = [spread(tag, chosen) for tag in tags]
        swapped = spread(old == operands[0], chosen) if how == "cas" else np.ones(len(chosen), np.bool_)
        size = access.type.bytes
        for position, (allocation, _, offsets) in (
            self.cohort.mem.touched_by_lane(access, mine, addresses) if len(chosen) else ()
        ):
            for n, offset in zip(np.arange(len(chosen))[position].tolist(), offsets.tolist(), strict=True):
                cells, at_it = self._cells.get(allocation), np.array([offset])
                before = self._read(cells, at_it, size) if cells is not None else np.array([NUMBER])
                found[chosen[n]] = before[0]
                if swapped[n]:
                    after = before
                    if of_lanes:
                        after = of_lanes[-1][n : n + 1] if how in ("cas", "exch") else joined(before, of_lanes[-1][n])
                    self._write(allocation, at_it, after if how in KEPT else lost(before, *(tag[n] for tag in of_lanes)), size)
        return found

    def released(self, allocation: Allocation) -> None:
        """Memory has been released: drop its tags."""
        self._cells.pop(allocation, None)

    # ── what lanes of a warp give each other ────────────────────────────────────────────

    def give(self, lanes: Lanes, plane: int, shadows: Sequence[PerLane]) -> None:
        """Store the shadows, in one plane, of the values that lanes give to a collective."""
        for number, shadow in enumerate(shadows):
            if (plane, number) not in self._payload:
                self._payload[plane, number] = np.full(self.cohort.size, NOTHING[plane])
            self._payload[plane, number][slice(None) if lanes is None else lanes] = shadow

    def peer(self, lanes: Lanes, plane: int, number: int, lane: PerLane) -> PerLane:
        """The shadow of the value that another lane gave."""
        shadows = self._payload.get((plane, number))
        return self.cohort.of_peer(lanes, shadows, lane) if shadows is not None and shadows.any() else NOTHING[plane]

    # ── objects ─────────────────────────────────────────────────────────────────────────

    def tag_of(self, variable: Variable, function: Function, lanes: Lanes) -> PerLane:
        """The tag of the address of a variable."""
        number, own = self.objects.variable(variable, function, self.cohort.depth)
        if not own:
            return np.int64(number)
        return np.int64(number) | at(self.calls(self.cohort.depth), lanes) << CALLS

    def hold(self, bound: Bound, lanes: Lanes, writing: bool, tags: PerLane) -> None:  # noqa: FBT001 - traced code calls it
        """Record the tags of the addresses for the access that follows."""
        kept = self.access_tags.get((bound, writing))
        if kept is None:
            kept = self.access_tags[bound, writing] = np.zeros(self.cohort.size, np.int64)
        kept[slice(None) if lanes is None else lanes] = tags

    def tags_held(self, access: Access, lanes: Lanes, *, writing: bool) -> PerLane:
        """The recorded tags of an access's addresses; None where no object is known."""
        kept = self.access_tags.get((access.bound, writing))
        if kept is None:
            return None
        tags = kept if lanes is None else kept[lanes]
        return tags if (tags > 0).any() else None

    def calls(self, depth: int) -> PerLane:
        """How often each lane has returned from a depth of calls."""
        while len(self._calls) <= depth:
            self._calls.append(np.zeros(self.cohort.size, np.int64))
        return self._calls[depth]

    def returned(self, depth: int, lanes: Lanes) -> None:
        """Functions have returned: their variables and blocks have ended."""
        mine = slice(None) if lanes is None else lanes
        self.calls(depth)[mine] += 1
        for block in self._blocks:
            if block.depth == depth:
                block.live[mine] = False
        self._forget()

    def allocated(self, lanes: Lanes, guard: Guard, begin: PerLane, size: PerLane) -> None:
        """Lanes have got blocks of `alloca`."""
        every = np.zeros(self.cohort.size, np.int64)
        live, mine = np.zeros(self.cohort.size, np.bool_), slice(None) if lanes is None else lanes
        starts, sizes = every.copy(), every
        starts[mine], sizes[mine], live[mine] = begin, size, True if guard is None else guard
        block = AllocaBlock(self.cohort, self.cohort.depth, starts, sizes, live)
        self._blocks.append(block)
        self.new_block = np.int64(self.objects.stack_block(block))
        for each in np.unique(sizes[live]).tolist():
            new = np.flatnonzero(live & (sizes == each))
            self.stale(new, starts[new], each)

    def restored(self, lanes: Lanes, end: PerLane) -> None:
        """The stack of lanes is cut at an offset: the blocks beyond it have ended."""
        for block in self._blocks:
            block.end(self.cohort.layout.every(lanes), np.asarray(end).astype(np.int64))
        self._forget()

    def _forget(self) -> None:
        self._blocks = [block for block in self._blocks if block.live.any()]

    # ── arguments and results ───────────────────────────────────────────────────────────

    def passed(self, source: ArgumentSlot | None, target: ArgumentSlot, lanes: Lanes) -> None:
        """Copy the shadows of a passed value; without a source the value is a constant."""
        numbers = self.cohort.layout.numbers if lanes is None else lanes
        unsized = source is not None and isinstance(target.symbol, Variable) and target.symbol.is_unsized
        size = size_of(source.symbol if unsized and source is not None else target.symbol)
        tags = np.zeros((-(-size // CELL), len(numbers)), np.int64)
        missing = np.zeros((size, len(numbers)), np.bool_)
        if source is not None:
            self._take(source, numbers, tags, missing)
        self._give(target, numbers, tags, missing)

    def _take(self, source: ArgumentSlot, lanes: Lanes, tags: PerLane, missing: PerLane) -> None:
        if isinstance(source.symbol, Variable):
            window = self.cohort.mem.local
            offsets = window.home[lanes] + np.asarray(source.offset).astype(np.int64)
            if (cells := self._cells.get(window.allocation)) is not None:
                tags[:] = cells[offsets[None, :] // CELL + np.arange(len(tags))[:, None]]
            found = self.watcher.missing(window.allocation, offsets, len(missing))
            if found is not None:
                missing[:] = found
            return
        for plane, slot in planes_of(source):
            shadow = np.broadcast_to(source.file[slot], self.cohort.size)[lanes]
            if plane == TAGS:
                tags[:] = shadow
            else:
                missing[:] = shadow >> BITS[: len(missing)] & np.uint32(1)

    def _give(self, target: ArgumentSlot, lanes: Lanes, tags: PerLane, missing: PerLane) -> None:
        if isinstance(target.symbol, Variable):
            window = self.cohort.mem.local
            offsets = window.home[lanes] + np.asarray(target.offset).astype(np.int64)
            for n, tag in enumerate(tags):
                self._write(window.allocation, offsets + n * CELL, tag, CELL)
            self.watcher.lost(window.allocation, offsets, missing)
            return
        for plane, slot in planes_of(target):
            if plane == TAGS:
                shadow: PerLane = np.where((tags == tags[0]).all(0), tags[0], np.where((tags != 0).any(0), LOST, NUMBER))
            else:
                shadow = (missing.astype(np.uint32) << BITS[: len(missing)]).sum(0, dtype=np.uint32)
            self._set(target.file, slot, lanes, shadow)

    def demand(self, source: ArgumentSlot, name: str, bound: Bound, lanes: Lanes) -> None:
        """A function of the device reads an argument: report unset bytes, and record the tag."""
        numbers = self.cohort.layout.numbers if lanes is None else lanes
        size = size_of(source.symbol)
        missing = np.zeros((size, len(numbers)), np.bool_)
        tags = np.zeros((-(-size // CELL), len(numbers)), np.int64)
        self._take(source, numbers, tags, missing)
        self.demanded[numbers] = tags[0]
        if missing.any():
            first = int(np.argmax(missing.any(0)))
            which = [] if missing[:, first].all() else np.flatnonzero(missing[:, first]).tolist()
            self.watcher.unset(bound, self.cohort.mem.threads[numbers[first:]], name, which)

    def heap_results(self, target: ArgumentSlot, lanes: LaneNumbers, blocks: Sequence[Allocation | None]) -> None:
        """Tag the results of `malloc` with their blocks."""
        tags = np.array([0 if block is None else self.objects.heap_block(block) for block in blocks], np.int64)
        size = size_of(target.symbol)
        missing = np.zeros((size, len(lanes)), np.bool_)
        self._give(target, lanes, np.broadcast_to(tags, (-(-size // CELL), len(lanes))), missing)

    def stale(self, lanes: Lanes, begin: PerLane, size: int) -> None:
        """Bytes of the stack are reused: they become unset."""
        if not size:
            return
        numbers = self.cohort.layout.numbers if lanes is None else lanes
        window = self.cohort.mem.local
        offsets = window.home[numbers] + np.asarray(begin).astype(np.int64)
        self.watcher.lost(window.allocation, offsets, np.ones((size, 1), np.bool_))


def size_of(symbol: Register | Variable) -> int:
    """The size of a register or variable in bytes."""
    if isinstance(symbol, Variable):
        return symbol.size or symbol.element_size
    return max(symbol.type.bits // 8, 1)


def planes_of(argument: ArgumentSlot) -> list[tuple[int, int]]:
    """The planes of a register, and their slots in its file."""
    slot, planes = argument.routine.slots.of(argument.symbol), argument.routine.planes  # type: ignore[arg-type]
    if slot < 0 or planes is None:
        return []
    return [(plane, planes.shadow_slot(slot, plane)) for plane in planes.of(slot)]

"""Shadow state of a watched cohort: undefined values and provenance of memory, arguments and exchanged values.

Traced code keeps the shadows of registers (`tracked.py`).  Here are the shadows of memory, of arguments, and of the values
that lanes of a warp exchange.  The watcher keeps which bytes of memory have a value: a byte of which a bit is undefined has
none.  In memory a tag, and the origin of undefined bytes, belongs to a cell of 4 bytes: an address that is stored byte by
byte loses its object.

Local and shared memory hand undefined values on, for code that spills, exchanges and pads.  Device memory does not: the host
and other grids see what a store leaves there, so it observes what it stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lanes import at, spread
from ptxvm.engine.interp.objects import CALLS, AllocaBlock, Objects
from ptxvm.engine.interp.origins import Origins
from ptxvm.engine.interp.planes import ORIGIN, TAGS, UNSET
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.shadow_algebra import LOST, NO_ORIGIN, NUMBER, joined, lost
from ptxvm.engine.interp.undefined_products import undefined
from ptxvm.isa.fragments import Product
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Watcher
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile

CELL = 4  # bytes
KEPT = frozenset({"exch", "cas", "add"})  # atomics that may leave an address
HANDING_ON = frozenset({Space.LOCAL, Space.SHARED})
Touched = tuple[LaneNumbers, Allocation, LaneNumbers]
"""A part of an access: the threads, the allocation, and the offsets in it."""


@dataclass(eq=False, slots=True)
class ArgumentSlot:
    """The location of an argument: a register in a file, or a `.param` variable in a frame."""

    symbol: Register | Variable
    routine: Routine
    file: RegisterFile
    offset: PerLane = None  # of a variable, in local memory


@dataclass(eq=False, slots=True)
class PassedShadows:
    """The shadows of an argument or a result of some lanes: a row of `missing` for each byte, others for each cell."""

    tags: PerLane
    missing: PerLane
    origins: PerLane

    @classmethod
    def of_number(cls, size: int, lanes: int) -> PassedShadows:
        """Those of a defined number of some bytes."""
        cells = -(-size // CELL), lanes
        return cls(np.zeros(cells, np.int64), np.zeros((size, lanes), np.bool_), np.zeros(cells, np.int32))


class CohortShadow:
    """The shadow state of a cohort."""

    def __init__(self, cohort: Cohort, watcher: Watcher, objects: Objects, origins: Origins) -> None:
        self.cohort, self.watcher, self.objects, self.origins = cohort, watcher, objects, origins
        self.access_tags: dict[tuple[Bound, bool], PerLane] = {}
        self.new_block = NUMBER  # the tag of the last block of `alloca`
        self.demanded = np.zeros(cohort.size, np.int64)  # the tags of the last arguments of functions of the device
        self._cells: dict[Allocation, PerLane] = {}
        self._stored_origins: dict[Allocation, PerLane] = {}
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

    def observed(self, bound: Bound, name: str, lanes: Lanes, guard: Guard, mask: PerLane, origin: PerLane) -> None:
        """Report a value that an instruction observes, where bits of it are undefined; `name` is that of its register."""
        if guard is None and not mask.ndim and not mask.any():
            return
        count = self.cohort.size if lanes is None else len(lanes)
        missing = bytes_of(np.broadcast_to(mask, count))
        wrong = missing.any(0)
        if guard is not None:
            wrong = wrong & guard
        if len(found := np.flatnonzero(wrong)):
            self._report(bound, name, self.cohort.mem.threads_of(lanes)[found], missing[:, found], spread(origin, found))

    def _report(self, bound: Bound, name: str, threads: LaneNumbers, missing: PerLane, origins: PerLane) -> None:
        """Report an undefined value of threads; `missing` has a row for each byte of it."""
        first = missing[:, 0]
        which = [] if first.all() else np.flatnonzero(first).tolist()
        self.watcher.unset(bound, threads, name, which, self.origins[int(origins[0])])

    # ── which lanes, and where ──────────────────────────────────────────────────────────

    def _positions(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, *, writing: bool
    ) -> tuple[PerLane, PerLane, PerLane]:
        """The lanes that perform the access: their positions among the running lanes, their numbers and addresses."""
        every = self.cohort.layout.numbers if lanes is None else lanes
        good = self.cohort.mem.fitting(access, lanes, address, writing=writing)
        chosen = np.flatnonzero(np.broadcast_to(good if guard is None else good & guard, len(every)))
        return chosen, every[chosen], spread(address, chosen)

    # ── undefined values in memory ──────────────────────────────────────────────────────

    def lacking(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane) -> list[tuple[PerLane, PerLane]]:
        """The undefined bits of each loaded element, with their origins."""
        count, element = self.cohort.size if lanes is None else len(lanes), access.type.bytes
        missing = np.zeros((access.count * element, count), np.bool_)
        origins = np.zeros((access.count, count), np.int32)
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=False)
        for position, found in self._handing_on(access, mine, addresses) if len(chosen) else ():
            whole = self._missing_in(access, *found)
            if whole is not None:
                missing[:, chosen[position]] = whole
                origins[:, chosen[position]] = self._origins_in(access, found, whole)
        if not missing.any():
            return [(np.zeros((), arrays.dtype(access.type.as_bits))[()], NO_ORIGIN)] * access.count
        parts = np.split(missing, access.count)
        return [(mask_of(part, access.type), origin) for part, origin in zip(parts, origins, strict=True)]

    def _missing_in(self, access: Access, threads: LaneNumbers, allocation: Allocation, offsets: LaneNumbers) -> PerLane | None:
        """The bytes of loads without a value, but for those that a pragma calls unused; None if all have one."""
        size, used = access.count * access.type.bytes, access.bound.used_bytes
        found = self.watcher.missing(allocation, offsets, size)
        if found is not None and used is not None:
            found = found & np.array([used >> n & 1 for n in range(size)], np.bool_)[:, None]
        return found if found is not None and found.any() else None

    def _origins_in(self, access: Access, found: Touched, missing: PerLane) -> PerLane:
        """The origins of elements: those that were stored with them, else the load, of which the watcher is told."""
        threads, allocation, offsets = found
        element, stored = access.type.bytes, self._stored_origins.get(allocation)
        origins = np.zeros((access.count, len(offsets)), np.int32)
        if stored is not None:
            for n, more in product(range(access.count), range(0, element, CELL)):
                here = n * element + more
                lost_here = missing[here : here + min(CELL, element)].any(0)
                origins[n] = np.where((origins[n] != 0) | ~lost_here, origins[n], stored[(offsets + here) // CELL])
        unwritten = missing & np.repeat(origins == 0, element, axis=0)
        if unwritten.any():
            self.watcher.handed_on(access, threads, allocation, offsets, unwritten)
        return np.where(origins != 0, origins, self.origins.loaded(access.bound))

    def _handing_on(self, access: Access, lanes: LaneNumbers, addresses: PerLane) -> Iterator[tuple[PerLane, Touched]]:
        """The parts of an access that are in memory which hands undefined values on, with the positions of their lanes."""
        if access.space is Space.LOCAL:
            window = self.cohort.mem.local
            offsets = window.home[lanes] + (addresses & np.uint64(0xFFFF_FFFF)).astype(np.int64)
            yield slice(None), (self.cohort.mem.threads_of(lanes), window.allocation, offsets)
            return
        for position, (allocation, threads, offsets) in self.cohort.mem.touched_by_lane(access, lanes, addresses):
            if allocation.space in HANDING_ON:
                yield position, (threads, allocation, offsets)

    def store_unset(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, registers: Sequence[str], masks: Sequence[PerLane],
        origins: Sequence[PerLane],
    ) -> None:  # fmt: skip
        """A store of undefined values: local and shared memory hand them on, device memory observes them."""
        chosen, mine, addresses = self._positions(access, lanes, guard, address, writing=True)
        missing = np.concatenate([bytes_of(spread(mask, chosen)) for mask in masks])
        if not missing.any():
            return
        of_lanes, element = [spread(each, chosen) for each in origins], access.type.bytes
        for position, (allocation, threads, offsets) in self.cohort.mem.touched_by_lane(access, mine, addresses):
            whole = missing[:, position]
            if allocation.space in HANDING_ON:
                self.watcher.lost(allocation, offsets, whole)
            for n, (name, origin) in enumerate(zip(registers, of_lanes, strict=True)):
                part = whole[n * element : (n + 1) * element]
                wrong = part.any(0)
                if allocation.space not in HANDING_ON:
                    if wrong.any():
                        self._report(access.bound, name, threads[wrong], part[:, wrong], origin[position][wrong])
                elif wrong.any():
                    self._keep_origins(allocation, offsets[wrong] + n * element, origin[position][wrong], element)

    def _keep_origins(self, allocation: Allocation, offsets: LaneNumbers, origins: PerLane, size: int) -> None:
        stored = self._stored_origins.get(allocation)
        if stored is None:
            stored = self._stored_origins[allocation] = np.zeros(-(-(allocation.end - allocation.origin) // CELL), np.int32)
        for more in range(0, size, CELL):
            stored[(offsets + more) // CELL] = origins

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
        """Memory has been released: drop its shadows."""
        self._cells.pop(allocation, None)
        self._stored_origins.pop(allocation, None)

    # ── what lanes of a warp give each other ────────────────────────────────────────────

    def give(self, lanes: Lanes, plane: int, shadows: Sequence[PerLane]) -> None:
        """Store the shadows, in one plane, of the values that lanes give to a collective."""
        for number, shadow in enumerate(shadows):
            known = self._payload.get((plane, number))
            if known is None or known.dtype != shadow.dtype:
                known = self._payload[plane, number] = np.zeros(self.cohort.size, shadow.dtype)
            known[slice(None) if lanes is None else lanes] = shadow

    def peer(self, lanes: Lanes, plane: int, number: int, lane: PerLane) -> PerLane:
        """The shadow of the value that another lane gave."""
        shadows = self._payload[plane, number]
        return self.cohort.of_peer(lanes, shadows, lane) if shadows.any() else shadows.dtype.type(0)

    def product(
        self, product: Product, lanes: Lanes, masks: Sequence[Sequence[PerLane]], origins: Sequence[Sequence[PerLane]]
    ) -> list[tuple[PerLane, PerLane]]:
        """The undefined bits of a product of matrices that whole warps hold, and their origins, for each register of D."""
        count = self.cohort.layout.count(lanes)
        every = [[[np.broadcast_to(each, count) for each in part] for part in parts] for parts in (masks, origins)]
        return undefined(product, *every)

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
        given = PassedShadows.of_number(size, len(numbers))
        if source is not None:
            self._take(source, numbers, given)
        self._give(target, numbers, given)

    def _take(self, source: ArgumentSlot, lanes: LaneNumbers, given: PassedShadows) -> None:
        if isinstance(source.symbol, Variable):
            window = self.cohort.mem.local
            offsets = window.home[lanes] + np.asarray(source.offset).astype(np.int64)
            if (cells := self._cells.get(window.allocation)) is not None:
                given.tags[:] = cells[offsets[None, :] // CELL + np.arange(len(given.tags))[:, None]]
            found = self.watcher.missing(window.allocation, offsets, len(given.missing))
            if found is not None:
                given.missing[:] = found
            if (stored := self._stored_origins.get(window.allocation)) is not None:
                given.origins[:] = stored[offsets[None, :] // CELL + np.arange(len(given.tags))[:, None]]
            return
        for plane, slot in planes_of(source):
            shadow = np.broadcast_to(source.file[slot], self.cohort.size)[lanes]
            if plane == TAGS:
                given.tags[:] = shadow
            elif plane == UNSET:
                given.missing[:] = bytes_of(shadow)
            else:
                given.origins[:] = shadow

    def _give(self, target: ArgumentSlot, lanes: LaneNumbers, given: PassedShadows) -> None:
        tags = given.tags
        if isinstance(target.symbol, Variable):
            window = self.cohort.mem.local
            offsets = window.home[lanes] + np.asarray(target.offset).astype(np.int64)
            for n, tag in enumerate(tags):
                self._write(window.allocation, offsets + n * CELL, tag, CELL)
            self.watcher.lost(window.allocation, offsets, given.missing)
            for n, origins in enumerate(given.origins if given.missing.any() else ()):
                self._keep_origins(window.allocation, offsets + n * CELL, origins, CELL)
            return
        for plane, slot in planes_of(target):
            if plane == TAGS:
                shadow: PerLane = np.where((tags == tags[0]).all(0), tags[0], np.where((tags != 0).any(0), LOST, NUMBER))
            elif plane == UNSET:
                shadow = mask_of(given.missing, target.symbol.type)
            else:
                shadow = given.origins.max(0)
            self._set(target.file, slot, lanes, shadow)

    def demand(self, source: ArgumentSlot, name: str, bound: Bound, lanes: Lanes) -> None:
        """A function of the device reads an argument: report undefined bytes, and record the tag."""
        numbers = self.cohort.layout.numbers if lanes is None else lanes
        given = PassedShadows.of_number(size_of(source.symbol), len(numbers))
        self._take(source, numbers, given)
        self.demanded[numbers] = given.tags[0]
        if len(wrong := np.flatnonzero(given.missing.any(0))):
            origins = given.origins.max(0)[wrong]
            self._report(bound, name, self.cohort.mem.threads[numbers[wrong]], given.missing[:, wrong], origins)

    def heap_results(self, target: ArgumentSlot, lanes: LaneNumbers, blocks: Sequence[Allocation | None]) -> None:
        """Tag the results of `malloc` with their blocks."""
        given = PassedShadows.of_number(size_of(target.symbol), len(lanes))
        given.tags[:] = np.array([0 if block is None else self.objects.heap_block(block) for block in blocks], np.int64)
        self._give(target, lanes, given)

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
    every = [plane for each in planes.of(slot) for plane in ((each, ORIGIN) if each == UNSET else (each,))]
    return [(plane, planes.shadow_slot(slot, plane)) for plane in every]


def bytes_of(mask: PerLane) -> PerLane:
    """The bytes of values that have an undefined bit, a row for each byte."""
    return np.ascontiguousarray(mask).view(np.uint8).reshape(len(mask), mask.dtype.itemsize).T != 0


def mask_of(missing: PerLane, type: Type) -> PerLane:
    """The undefined bits of values of a type, all those of the bytes that are missing."""
    every = 1 if type is pred else 0xFF
    rows = np.ascontiguousarray(missing.T * np.uint8(every))
    return rows.view(arrays.dtype(type.as_bits)).reshape(-1)

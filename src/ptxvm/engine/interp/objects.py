"""The objects of addresses, for bounds checks: variables of shared and local memory, blocks of `alloca` and of `malloc`.

An object has a number, the tag of its addresses.  A variable of a function is another one in each call: above the number,
the tag counts the calls of the lane at that depth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.analysis.symbols import Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.image import Image, Placement
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane

HEAP = 1 << 30  # the first number of a block of `malloc`
CALLS = np.int64(32)  # bits of a tag below its count of calls
NUMBERS = np.int64((1 << 32) - 1)
CAPACITY = 64  # for blocks of `malloc`, at first
HEAP_SPACES = (Space.GENERIC, Space.GLOBAL)


@dataclass(eq=False, slots=True)
class ObjectExtent:
    """An object of shared or local memory as some lanes see it: its offset in the window, its size, and whether it lives."""

    begin: PerLane
    size: PerLane
    live: PerLane


@dataclass(eq=False, slots=True)
class NamedObject:
    """An object of shared or local memory: its name, its fate in messages, and a function for its extent."""

    name: str
    space: Space
    end_of_life: str
    extent: Callable[[Cohort, LaneNumbers, PerLane], ObjectExtent | None]  # of a cohort, lanes, and counts of calls


@dataclass(eq=False, slots=True)
class AllocaBlock:
    """A block of `alloca` of some lanes of a cohort."""

    cohort: Cohort
    depth: int
    begin: PerLane
    size: PerLane
    live: PerLane

    def extent(self, cohort: Cohort, lanes: Lanes, calls: PerLane) -> ObjectExtent | None:
        """The extent for some lanes; None for another cohort, whose windows differ."""
        return ObjectExtent(self.begin[lanes], self.size[lanes], self.live[lanes]) if cohort is self.cohort else None

    def end(self, lanes: Lanes, from_here: PerLane) -> None:
        """End the blocks that reach beyond an offset of the stack."""
        self.live[lanes] &= self.begin[lanes] + self.size[lanes] <= from_here


class Objects:
    """The objects of a launch, by number."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._known: list[NamedObject | None] = [None]
        self._variables: dict[tuple[Variable, int], int] = {}
        self._start, self._end = np.zeros(CAPACITY, np.uint64), np.zeros(CAPACITY, np.uint64)
        self._blocks: list[Allocation] = []

    # ── numbers ─────────────────────────────────────────────────────────────────────────

    def variable(self, variable: Variable, function: Function, depth: int) -> tuple[int, bool]:
        """The number of a variable, and whether each call has its own instance."""
        where, begin = self.image.locate(variable, function)
        own = where is Placement.FRAME
        key = variable, depth if own else -1
        if key not in self._variables:
            self._variables[key] = len(self._known)
            extent = FrameVariable(variable, begin, depth) if own else WindowVariable(variable, begin)
            fate = f"a variable of a call of '{function.name}' that has returned"
            self._known.append(NamedObject(f"'{variable.name}'", variable.space, fate, extent))
        return self._variables[key], own

    def stack_block(self, block: AllocaBlock) -> int:
        """The number of a block of `alloca`."""
        fate = "which stackrestore, or the end of its function, has freed"
        self._known.append(NamedObject("a block of alloca", Space.LOCAL, fate, block.extent))
        return len(self._known) - 1

    def heap_block(self, block: Allocation) -> int:
        """The number of a block of `malloc`."""
        n = len(self._blocks)
        if n == len(self._start):
            self._start, self._end = (np.concatenate([each, np.zeros_like(each)]) for each in (self._start, self._end))
        self._start[n], self._end[n] = block.start, block.end
        self._blocks.append(block)
        return HEAP + n

    def replaced(self, tag: int) -> Allocation | None:
        """The freed block of `malloc` that a tag stands for; None while the block lives."""
        block = self._blocks[tag - HEAP] if tag >= HEAP else None
        return block if block is not None and not block.live else None

    # ── accesses ────────────────────────────────────────────────────────────────────────

    def strays(self, cohort: Cohort, access: Access, lanes: LaneNumbers, address: PerLane, tags: PerLane) -> PerLane:
        """Which lanes access memory outside the objects of their addresses?"""
        numbers = np.where(tags > 0, tags & NUMBERS, 0)
        wrong = np.zeros(len(lanes), np.bool_)
        size = access.dtype.itemsize * access.count
        for number in np.unique(numbers[(numbers > 0) & (numbers < HEAP)]).tolist():
            mine = np.flatnonzero(numbers == number)
            found = self._extent(number, cohort, access, lanes[mine], tags[mine])
            if found is not None:
                offset, inside = self._offsets(cohort, access, self._known[number], lanes[mine], address[mine])
                within = offset - found.begin
                wrong[mine] = inside & (~found.live | (within < 0) | (within > found.size - size))
        if access.space in HEAP_SPACES and self._blocks:
            mine = np.flatnonzero(numbers >= HEAP)
            which = numbers[mine] - HEAP
            live = np.array([self._blocks[n].live for n in which.tolist()], np.bool_)
            at = address[mine]
            wrong[mine] = ~live | (at < self._start[which]) | (at + np.uint64(size) > self._end[which])
        return wrong

    def _extent(self, number: int, cohort: Cohort, access: Access, lanes: LaneNumbers, tags: PerLane) -> ObjectExtent | None:
        known = self._known[number]
        if known is None or access.space not in (Space.GENERIC, known.space):
            return None
        return known.extent(cohort, lanes, tags >> CALLS)

    def _offsets(
        self, cohort: Cohort, access: Access, known: NamedObject | None, lanes: LaneNumbers, address: PerLane
    ) -> tuple[PerLane, PerLane]:
        """The offsets of addresses in the window, and whether they are in the window of the lane."""
        window = cohort.mem.shared if known is not None and known.space is Space.SHARED else cohort.mem.local
        if access.space is Space.GENERIC:
            offset = window.from_generic(address, lanes).view(np.int64)
            return offset, (offset >= -window.stride) & (offset < 2 * window.stride)
        return window.offsets(address, lanes).astype(np.int64), np.ones(len(lanes), np.bool_)

    def explain(self, cohort: Cohort, access: Access, lane: int, address: int, tag: int, *, writing: bool) -> AccessFault:
        """The fault of an access outside its object."""
        number, lanes = tag & int(NUMBERS), np.array([lane])
        size = access.dtype.itemsize * access.count
        verb = f"{'writing' if writing else 'reading'} {plural(size)} at byte"
        if number >= HEAP:
            block = self._blocks[number - HEAP]
            at = address - block.start
            if not block.live:
                return AccessFault("use-after-free", f"{verb} {at} of {block}, which {block.fate}", address, size)
            return AccessFault("out-of-bounds", f"{verb} {at} of {block.name}, which has {plural(block.size)}", address, size)
        known, addresses = self._known[number], np.array([address], np.uint64)
        found = self._extent(number, cohort, access, lanes, np.array([tag], np.int64))
        if known is None or found is None:
            raise ValueError(f"there is no object {number}")
        at = int((self._offsets(cohort, access, known, lanes, addresses)[0] - found.begin)[0])
        if not found.live.all():
            return AccessFault("use-after-free", f"{verb} {at} of {known.name}, {known.end_of_life}", at, size)
        return AccessFault("out-of-bounds", f"{verb} {at} of {known.name}, which has {plural(int(found.size[0]))}", at, size)


@dataclass(frozen=True, slots=True)
class WindowVariable:
    """A variable that lives as long as its window."""

    variable: Variable
    begin: int

    def __call__(self, cohort: Cohort, lanes: LaneNumbers, calls: PerLane) -> ObjectExtent:
        """The extent for some lanes."""
        like = np.zeros(len(lanes), np.int64)
        return ObjectExtent(like + self.begin, like + self.variable.size, np.ones(len(lanes), np.bool_))


@dataclass(frozen=True, slots=True)
class FrameVariable:
    """A variable of the function that runs at some depth of calls."""

    variable: Variable
    begin: int
    depth: int

    def __call__(self, cohort: Cohort, lanes: LaneNumbers, calls: PerLane) -> ObjectExtent:
        """The extent for some lanes; the variable lives as long as the call that its tag counts."""
        like = np.zeros(len(lanes), np.int64)
        frame = np.broadcast_to(cohort.frames[self.depth], cohort.size)[lanes].astype(np.int64)
        live = cohort.shadow.calls(self.depth)[lanes] == calls
        return ObjectExtent(frame + self.begin, like + self.variable.size, live)

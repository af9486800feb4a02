"""If-conversion: the blocks between a forward branch and its join become predicated instructions.

Warps that would diverge at such a branch, and reconverge a few instructions later, stay whole, so the straight version can
hold the code.  A region may have branches inside, but no loop, no call and no barrier.  Registers that are dead after a block
are computed for all lanes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import pred
from ptxvm.analysis.flow import Segment, bit_of, changes, reads_and_writes, segments, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.divergence_sources import dependent_on, lane_dependent, memory_dependent, place_dependent
from ptxvm.engine.jit.cfg.restart_points import touches
from ptxvm.isa.effects import Jump, Summary
from ptxvm.isa.summary import widens

LONGEST = 40  # instructions of a region
ORDERED = frozenset({Order.VOLATILE, Order.ACQUIRE, Order.RELEASE, Order.ACQ_REL, Order.MMIO})
"""The orders of accesses that synchronise with other threads."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions `start:end` of a region, and its successors: where its last branch goes first, if it has one.

    `written` are the registers of the function that it may write, as a mask.  `live` are those that are read behind it: live
    at its end, or, for other lanes, at the beginning of a block of the region that comes later.
    """

    start: int
    end: int
    successors: tuple[int, ...]
    written: int
    live: int

    def __len__(self) -> int:
        """The number of instructions."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Region:
    """The blocks between a branch and its join, in topological order.

    `entries` are the successors of the branch: where it goes, and the next instruction.  `reads` are the registers
    whose values before it are read.  `by_data`: lanes part by loaded data, so in nearly every warp.
    """

    entries: tuple[int, int]
    blocks: tuple[BasicBlock, ...]
    join: int
    reads: int
    by_data: bool

    def __len__(self) -> int:
        """The number of instructions."""
        return sum(map(len, self.blocks))


def regions(function: Function, cuts: Sequence[int], spinning: Collection[Bound]) -> dict[int, Region]:
    """The regions of a function, by the ends of the branches before them; `cuts` are the starts of nodes, in order.

    The `spinning` branches end spin loops: the lane scheduler counts them.
    """
    code = function.instructions
    heads = {end: start for start, end in pairwise([*cuts, len(code)]) if _divides(code[end - 1]) and end < len(code)}
    if not heads:
        return {}
    search = _Search(function, spinning)
    found = {end: region for end, start in heads.items() if (region := search.region(start, end)) is not None}
    taken: set[int] = set()
    chosen: dict[int, Region] = {}
    for end, region in sorted(found.items(), key=lambda each: -len(each[1])):  # the outermost first
        own = {end, *(block.end for block in region.blocks)}
        if not own & taken:
            taken |= own
            chosen[end] = region
    return chosen


def _divides(bound: Bound) -> bool:
    """Is it a branch of some lanes?"""
    return bound.summary.jump is Jump.GOTO and bound.node.guard is not None and not bound.i.uni and len(targets(bound)) == 1


class _Search:
    """Finds the region behind a branch: grows it by blocks whose predecessors are all in it, until one successor is left."""

    def __init__(self, function: Function, spinning: Collection[Bound]) -> None:
        self.code, self.spinning = function.instructions, spinning
        self.segments = {segment.start: segment for segment in segments(function)}
        self.before: dict[int, set[int]] = {}
        for segment in self.segments.values():
            for following in segment.successors_at:
                self.before.setdefault(following, set()).add(segment.end)
        self.function = function
        self.memory_dependent, self.lane_dependent = memory_dependent(self.code), lane_dependent(self.code)
        self.place_dependent = place_dependent(function, self.lane_dependent)
        self.loops = [(min(found), n) for n, bound in enumerate(self.code) if (found := targets(bound)) and min(found) <= n]

    @cached_property
    def parameter_dependent(self) -> int:
        """The registers that depend on parameters, as a mask."""
        return dependent_on(self.code, lambda bound: Space.PARAM in bound.summary.spaces)

    @cached_property
    def integers(self) -> int:
        """The registers that may hold integers, as a mask."""
        return sum(bit_of(each) for each in self.function.registers if each.type is not pred and not each.type.is_float)

    def region(self, start: int, end: int) -> Region | None:
        """The region behind the branch that ends a node, if lanes probably part there."""
        branch = self.code[end - 1]
        guard = branch.guard()
        by_data = guard is not None and bool(self.memory_dependent & bit_of(guard[0]))
        if guard is None or branch in self.spinning or not (by_data or self._diverges(end - 1, bit_of(guard[0]))):
            return None
        entries = targets(branch)[0], end
        dirty = any(touches(bound) for bound in self.code[start:end])
        blocks: list[Segment] = []
        standing = dict.fromkeys(entries)
        within = {end}
        while len(standing) > 1:
            ready = next((at for at in standing if at in self.segments and self.before[at] <= within), None)
            if ready is None:
                return None
            block = self.segments[ready]
            dirty_after = self._plain(block, dirty=dirty)
            blocks.append(block)
            if dirty_after is None or sum(each.end - each.start for each in blocks) > LONGEST:
                return None
            dirty = dirty_after
            within.add(block.end)
            del standing[ready]
            standing |= dict.fromkeys(block.successors_at)
        (join,) = standing
        if not blocks or join not in self.segments:
            return None
        reads = 0
        for at in entries:
            reads |= self.segments[at].live_in
        taken = 0
        for block in blocks:
            for bound in self.code[block.start : block.end]:
                taken |= reads_and_writes(bound)[0]
        reads &= taken
        later, made = 0, list[BasicBlock]()
        for block in reversed(blocks):
            made.append(self._block(block, later))
            later |= block.live_in
        region = Region(entries, tuple(reversed(made)), join, reads, by_data)
        return None if self._makes_addresses_vary(region, bit_of(guard[0])) else region

    def _makes_addresses_vary(self, region: Region, guard: int) -> bool:
        """Would lanes be given different formulas of their numbers, where most warps may give all lanes one of them?

        The addresses behind such a region would be gathered.  Where nothing but its place decides what a lane does, those
        of a warp part whenever they come there.
        """
        if region.by_data or not self.parameter_dependent & guard:
            return False
        escaping = 0
        for block in region.blocks:
            escaping |= block.written & block.live
        return bool(escaping & self.integers & self.lane_dependent & ~self.memory_dependent)

    def _diverges(self, at: int, guard: int) -> bool:
        """Do lanes part by their position in the CTA, in more than the last CTA of a grid?"""
        repeated = any(first <= at <= last for first, last in self.loops)
        return bool((self.lane_dependent if repeated else self.place_dependent) & guard)

    def _block(self, block: Segment, later: int) -> BasicBlock:
        last = self.code[block.end - 1]
        live = block.live_out | later
        if (guard := last.guard()) is not None and last.summary.jump is not None:
            live |= bit_of(guard[0])
        written = 0
        for bound in self.code[block.start : block.end]:
            written |= changes(bound)
        return BasicBlock(block.start, block.end, tuple(block.successors_at), written, live)

    def _plain(self, block: Segment, *, dirty: bool) -> bool | None:
        """Does a block only compute, load, store, update and branch?  Then: has it changed memory by its end?"""
        for bound in self.code[block.start : block.end]:
            effects, jumps = bound.i.of.effects, bound.summary.jump is not None
            if jumps and (bound.summary.jump is not Jump.GOTO or not self._forks(bound)):
                return None
            moves = effects == {"mem"} and _moves(bound.summary)
            passes = Space.PARAM in bound.summary.spaces
            if (effects and not moves and not jumps) or passes or (dirty and widens(bound.i)):
                return None
            dirty = dirty or touches(bound)
        falls = not bound.i.of.ends or bound.node.guard is not None
        return None if falls and block.end == len(self.code) else dirty

    def _forks(self, bound: Bound) -> bool:
        """Has a branch one target, within the function, and does it end no spin loop?"""
        found = targets(bound)
        return len(found) == 1 and found[0] < len(self.code) and bound not in self.spinning


def _moves(found: Summary) -> bool:
    """Does it only load, store, update or convert an address, without synchronising with other threads?"""
    if found.fences or found.polls or found.grows_stack:
        return False
    plain = not any(access.order in ORDERED or access.mbarrier for access in found.accesses)
    return plain and bool(found.accesses or found.converts_address)

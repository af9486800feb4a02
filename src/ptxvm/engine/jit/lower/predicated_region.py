"""Predicated regions: the blocks of an if-converted branch (`cfg.if_conversion`), each under the mask of its lanes.

Where lanes part by loaded data, the blocks are written once, for some lanes.  Where they part by their position in the CTA,
most warps agree: there are copies of the blocks for warps whose lanes all go one way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ptxvm.algebra.types import pred
from ptxvm.analysis.flow import address_registers, bit_of, changes
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.cfg.if_conversion import Region
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, from_lanes, text
from ptxvm.engine.jit.lower.conditionals import Conditionals
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.unset_check import UnsetCheck
from ptxvm.isa.special_registers import WARP

ALL = -1  # registers
MOST_TURNS = 4  # lanes that run a block one after the other
FEW = 8  # instructions without effects that are run for no lane rather than skipped
SCATTERED = re.compile("gather|scatter|permuted")  # notes of accesses that are written a warp at a time
Masks = dict[int, Raw | None]  # the lanes that come to some instructions; None for all that are active


class PredicatedRegion:
    """Writes a region; `instructions` writes those of the node from one position to another."""

    def __init__(self, at: Conditionals, region: Region, instructions: Callable[[int, int], None]) -> None:
        self.at, self.alg, self.code, self.region, self.instructions = at, at.alg, at.code, region, instructions
        self.positions, position = [], at.node.head
        for block in region.blocks:
            self.positions.append(position)
            position += len(block)
        self.above = control_equivalents(region)

    def run(self) -> None:
        """Write the branch and the blocks behind it."""
        at, (first, second) = self.at, self.region.entries
        at.position = at.node.head - 1
        guard = at.guard_of(at.node.code[at.position])
        if guard is None:
            raise TypeError("a region behind a branch without a guard")
        both: Masks = {first: guard, second: self._not(guard)}
        self._observed(at.node.code[at.position], None, guard)
        self._parted(at.node.code[at.position], None, guard, divides=first != second)
        if isinstance(guard, Affine):
            at.note("together")
            if guard.constant is not None:
                self._blocks({first if guard.constant & 1 else second: None})
                return
            self._either(text("i1", guard.base), partial(self._blocks, {first: None}), partial(self._blocks, {second: None}))
            return
        at.note(f"{len(self.region)} predicated")
        if guard.lanes is not None:  # lanes that part whatever happens
            self._known_lanes(both)
            return
        some = partial(self._some_lanes, both)
        if self.region.by_data or not at.full:
            some = partial(self._blocks, both)
            some() if first != self.region.join != second else self._unless_none(both, some)
            return
        self._three_ways(guard, some)

    def _three_ways(self, guard: Varying, some: Callable[[], None]) -> None:
        """Blocks for warps whose lanes all take the branch, for those that do not, and for the others."""
        first, second = (partial(self._blocks, {entry: None}) for entry in self.region.entries)
        known = self.alg.surely(guard)
        bits, word = self.code.mask_bits(guard.name), f"i{self.code.width}"
        all_, none = known or (self.code.emit(f"icmp eq {word} {bits}, {n}") for n in (-1, 0))
        self._either(all_, first, partial(self._either, none, second, some))

    def _some_lanes(self, masks: Masks) -> None:
        """Write the blocks for some lanes; with scattered accesses, once more for lanes of the first warp alone."""
        inside = self._inside(masks)
        if self.code.width == WARP or len(inside) != 1 or not self._scatters():
            self._blocks(masks)
            return
        bits, word = self.code.mask_bits(inside[0].name), f"i{self.code.width}"
        others = self.code.emit(f"icmp ult {word} {bits}, {1 << WARP}")
        self._either(others, partial(self._first_alone, masks), partial(self._blocks, masks))

    def _inside(self, masks: Masks) -> list[Varying]:
        """The lanes that come to blocks, where these are some."""
        return [mask for at, mask in masks.items() if at != self.region.join and isinstance(mask, Varying)]

    def _known_lanes(self, masks: Masks) -> None:
        """Write the blocks for lanes that are known; some of them go either way."""
        inside = self._inside(masks)
        first_alone = len(inside) == 1 and self.code.width > WARP and not any((inside[0].lanes or (1,))[WARP:])
        (self._first_alone if first_alone else self._blocks)(masks)

    def _first_alone(self, masks: Masks) -> None:
        self.code.first_alone = True
        self._blocks(masks)
        self.code.first_alone = False

    def _scatters(self) -> bool:
        """Do lanes access memory anywhere?  That has been noted as the blocks were written for all lanes."""
        notes = self.at.notes
        return any(SCATTERED.search(notes.get(n, "")) for n in range(self.at.node.head, len(self.at.node.code)))

    def _either(self, condition: str, yes: Callable[[], None], no: Callable[[], None]) -> None:
        self.at.conditional(condition, yes, no, self.at.node.live_out)

    def _unless_none(self, masks: Masks, write: Callable[[], None]) -> None:
        """Skip all blocks if no lane comes to them."""
        if not any(each.i.of.effects for each in self.at.node.code[self.at.node.head :]):
            write()
            return
        (mask,) = (mask for at, mask in masks.items() if at != self.region.join)
        self._either(self._some(mask), write, lambda: None)

    # ── blocks ──────────────────────────────────────────────────────────────────────────

    def _blocks(self, masks: Masks) -> None:
        """Write the blocks that lanes come to, and count them behind all: a node that is left within is run again."""
        masks, own = dict(masks), dict[int, Raw | None]()
        ran: list[tuple[int, str | None]] = []
        for n, block in enumerate(self.region.blocks):
            if block.start not in masks:
                continue
            lanes = masks[block.start]
            if (equal := self.above[n]) in own:
                lanes = own[equal]
            own[n] = lanes
            ran.append((n, self._bits(lanes)))
            self._block(n, lanes)
            self._leave(n, lanes, masks)
        for n, bits in ran:
            counters.predicated(self.at, self.positions[n], len(self.region.blocks[n]), bits)

    def _block(self, n: int, lanes: Raw | None) -> None:
        block = self.region.blocks[n]
        code = self.at.node.code[self.positions[n] : self.positions[n] + len(block)]
        effects = any(bound.i.of.effects - {"flow"} for bound in code)
        if lanes is None or (isinstance(lanes, Affine) and lanes.constant == 1):
            self._run(n, None)
        elif isinstance(lanes, Affine):
            self.at.conditional(text("i1", lanes.base), partial(self._run, n, None), kept=self._merged(n))
        elif lanes.lanes is None and (effects or len(block) > FEW):
            bits = self.code.mask_bits(lanes.name)
            self.at.conditional(self._some(lanes), partial(self._run_again, n, bits), kept=self._merged(n))
        else:
            self._run(n, lanes)

    def _run_again(self, n: int, bits: str) -> None:
        """Write a block for the lanes of a bit mask: LLVM would split a predicate that crosses blocks lane by lane."""
        self._run(n, Varying(self.code.all_lanes(bits)))

    def _merged(self, n: int) -> int:
        return self.at.node.escapes[n]

    def _run(self, n: int, lanes: Raw | None) -> None:
        """Write a block for some lanes."""
        at, block, first = self.at, self.region.blocks[n], self.positions[n]
        turns = self._turns(n, lanes)
        at.escapes = at.node.escapes[n] if len(turns) == 1 else ALL  # what a lane leaves is read where another has run since
        branches = len(block) - 1 if at.node.code[first + len(block) - 1].summary.jump is not None else len(block)
        for at.region_guard in turns:
            self.instructions(first, first + branches)
        at.region_guard, at.escapes, at.guard = None, None, None

    def _turns(self, n: int, lanes: Raw | None) -> list[Raw | None]:
        """The lanes that run a block together.

        Where one lane of each warp is known to, and the places that they access are no formula of the lane, each of these runs
        it by itself, in scalars.
        """
        known = lanes.lanes if isinstance(lanes, Varying) and self.at.full else None
        if known is None or sum(known) > MOST_TURNS or not self._anywhere(n):
            return [lanes]
        alone = [lane for lane, runs in enumerate(known) if runs]
        if len({lane // WARP for lane in alone}) < len(alone):
            return [lanes]
        return [from_lanes(pred, tuple([int(each == lane) for each in range(len(known))])) for lane in alone]

    def _anywhere(self, n: int) -> bool:
        """Do lanes access memory in a block at addresses that are no formulas of the lane?"""
        at, first, written = self.at, self.positions[n], 0
        for bound in at.node.code[first : first + len(self.region.blocks[n])]:
            for register in address_registers(bound) if bound.summary.accesses else ():
                value = at.current.get(at.key(register))
                if bit_of(register) & written or (value is not None and isinstance(value.raw, Varying)):
                    return True
            written |= changes(bound)
        return False

    def _leave(self, n: int, lanes: Raw | None, masks: Masks) -> None:
        """Add the lanes of a block to those that come to its successors."""
        block = self.region.blocks[n]
        last = self.at.node.code[self.positions[n] + len(block) - 1]
        guard = self.at.guard_of(last) if last.summary.jump is not None else None
        if guard is not None:
            self._observed(last, lanes, guard)
            self._parted(last, lanes, guard, divides=len({*block.successors}) > 1)
        masks_out = [lanes] if guard is None else [self._and(lanes, guard), self._and(lanes, self._not(guard))]
        for following, mask in zip(block.successors, masks_out, strict=True):
            if following in masks:
                mask = self._or(masks[following], mask)  # noqa: PLW2901
            masks[following] = mask

    def _observed(self, bound: Bound, lanes: Raw | None, guard: Raw) -> None:
        """Suspect the lanes for which the guard of a branch is undefined, in code that is instrumented for it."""
        at = self.at
        if at.kernel.unset_registers is not None:
            at.region_guard = lanes
            UnsetCheck(at, bound).guard(guard)
            at.region_guard, at.guard = None, None

    def _parted(self, bound: Bound, lanes: Raw | None, guard: Raw, *, divides: bool) -> None:
        """Count a branch of some lanes, in profiled code; it `divides` them unless it goes to the next instruction."""
        at = self.at
        if at.events is None:
            return
        number = at.kernel.instruction_number(bound)
        taken, passed = (at.lanes_of(self._and(lanes, each)) for each in (guard, self._not(guard)))
        at.events.guarded(number, taken)
        if divides and isinstance(guard, Varying):
            at.events.parted(number, [taken, passed])

    # ── masks ───────────────────────────────────────────────────────────────────────────

    def _some(self, lanes: Raw | None) -> str:
        """Is any active lane among some?"""
        return self.code.emit(f"icmp ne i{self.code.width} {self._bits(lanes)}, 0")

    def _bits(self, lanes: Raw | None) -> str | None:
        """Some of the active lanes, as bits; None for all lanes."""
        self.at.guard = None if isinstance(lanes, Affine) and lanes.constant == 1 else lanes
        active, self.at.guard = self.at.active_vector(), None
        return None if active is None else self.code.mask_bits(active)

    def _not(self, a: Raw) -> Raw:
        return self.alg.integer("xor", pred, a, Affine(1))

    def _and(self, a: Raw | None, b: Raw) -> Raw:
        return b if a is None else self.alg.integer("and", pred, a, b)

    def _or(self, a: Raw | None, b: Raw | None) -> Raw | None:
        return None if a is None or b is None else self.alg.integer("or", pred, a, b)


def control_equivalents(region: Region) -> list[int | None]:
    """For each block the first one that the same lanes come to: it dominates the block, which postdominates it."""
    blocks, number = region.blocks, {block.start: n for n, block in enumerate(region.blocks)}
    following = [[number.get(at, -1) for at in block.successors] for block in blocks]
    everything = (1 << len(blocks)) - 1
    before, after = [everything] * len(blocks), [0] * len(blocks)
    for n in range(len(blocks)):
        predecessors = [k for k in range(n) if n in following[k]]
        common = 0 if blocks[n].start in region.entries else everything
        for k in predecessors:
            common &= before[k] | 1 << k
        before[n] = common
    for n in reversed(range(len(blocks))):
        common = everything
        for s in following[n]:
            common &= after[s] | 1 << s if s >= 0 else 0
        after[n] = common
    return [next((k for k in range(n) if before[n] >> k & 1 and after[k] >> n & 1), None) for n in range(len(blocks))]

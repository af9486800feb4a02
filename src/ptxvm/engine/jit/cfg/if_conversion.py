"""If-conversion: a short forward branch on loaded data (`@p bra L; …; L:`) becomes predicated instructions.

Nearly every warp would diverge at such a branch, and reconverge a few instructions later.  Predicated, the warp stays
whole, so the straight version can hold the code.  Registers that are dead after the tail are computed for all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.memory_order import Order
from ptxvm.analysis.flow import bit_of, labels, reads_and_writes, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.jit.cfg.restart_points import touches
from ptxvm.isa.effects import Jump, Summary
from ptxvm.isa.summary import widens

LONGEST = 8  # instructions
ORDERED = {
    Order.VOLATILE,
    Order.ACQUIRE,
    Order.RELEASE,
    Order.ACQ_REL,
    Order.MMIO,
}  # accesses that synchronise with other threads
ASKING = {"mem", "warp", "cta"}  # effects of instructions whose results may differ from lane to lane


def predicated_tails(function: Function, cuts: Sequence[int]) -> dict[int, int]:
    """The starts of the tails of a function, by their ends; `cuts` are the starts of nodes, in order."""
    code = function.instructions
    found = {
        end: start
        for before, start, end in zip(cuts, cuts[1:], cuts[2:], strict=False)
        if end < len(code) and _skips(code[start - 1], end) and end - start <= LONGEST and _plain(code, before, start, end)
    }
    entered = {label.index for label in labels(function)} if found else set()
    varying = by_memory(code) if found else 0
    return {end: start for end, start in found.items() if start not in entered and _guard(code[start - 1]) & varying}


def by_memory(code: Sequence[Bound]) -> int:
    """The registers of a function that depend on what memory holds, or on other lanes, as a mask."""
    flows = []
    for bound in code:
        reads, writes = reads_and_writes(bound)
        changed = writes or reads  # a guarded instruction may leave a register as it is, so that counts as read
        flows.append((reads, changed, _asks(bound)))
    found, grown = -1, 0
    while grown != found:
        found = grown
        for reads, changed, asks in flows:
            if asks or reads & grown:
                grown |= changed
    return found


def _asks(bound: Bound) -> bool:
    return bool(bound.i.of.effects & ASKING) and "param" not in bound.summary.spaces


def _skips(bound: Bound, end: int) -> bool:
    """Is it a branch of some lanes to `end`?"""
    node = bound.node
    goes = bound.summary.jump is Jump.GOTO and node.guard is not None and not bound.i.uni
    return goes and targets(bound) == [end]


def _guard(bound: Bound) -> int:
    guard = bound.guard()
    return bit_of(guard[0]) if guard is not None else 0


def _moves(found: Summary) -> bool:
    """Does it only load, store or update, without synchronising with other threads?"""
    plain = not (found.fences or found.polls or found.grows_stack or found.converts_address)
    return plain and bool(found.accesses) and not any(access.order in ORDERED or access.mbarrier for access in found.accesses)


def _plain(code: Sequence[Bound], before: int, start: int, end: int) -> bool:
    """Can the tail join the segment before it: does it only compute, load, store and update?"""
    dirty = any(touches(bound) for bound in code[before:start])
    for bound in code[start:end]:
        effects, passes = bound.i.of.effects, "param" in bound.summary.spaces
        moves = effects == {"mem"} and _moves(bound.summary)
        if bound.node.guard is not None or (effects and not moves) or passes or (dirty and widens(bound.i)):
            return False
        dirty = dirty or touches(bound)
    return True

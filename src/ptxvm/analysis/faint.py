"""Faint values: results on which no effect of a function depends (Giegerich, Möncke and Wilhelm 1981).

A dead register is not read; a faint one is read at most to compute others that are faint.
"""

from __future__ import annotations

from ptxvm.analysis.flow import Segment, named, reads_and_writes, registers_in, segments
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register


def faint(function: Function) -> frozenset[Bound]:
    """The instructions whose results no effect depends on."""
    found = segments(function)
    for segment in found:
        segment.live_in = 0
    needed = sum(1 << each.index for each in function.signature.results if isinstance(each, Register))
    changed = True
    while changed:
        changed = False
        for segment in reversed(found):
            segment.live_out = needed
            for following in segment.successors:
                segment.live_out |= found[following].live_in
            before, _ = _through(function, segment)
            changed |= before != segment.live_in
            segment.live_in = before
    return frozenset(bound for segment in found for bound in _through(function, segment)[1])


def _through(function: Function, segment: Segment) -> tuple[int, list[Bound]]:
    """The registers that are not faint before a segment, by those behind it, and its instructions with faint results."""
    needed, without = segment.live_out, []
    for bound in reversed(function.instructions[segment.start : segment.end]):
        reads, writes = reads_and_writes(bound)
        used = bool(named(bound)[1] & needed)
        if not used and not _outlives(bound):
            without.append(bound)
        if used or bound.i.of.effects or bound.calls or _outlives(bound):
            needed = needed & ~writes | reads
    return needed, without


def _outlives(bound: Bound) -> bool:
    """Does an instruction write a register of the module, or those of a call, or none?"""
    nodes = [node for name, node in bound.operands.items() if name in bound.written]
    written = [each for node in nodes for each in registers_in(node, bound)]
    return bound.calls or not written or any(each.of_module for each in written)


__all__ = ["faint"]

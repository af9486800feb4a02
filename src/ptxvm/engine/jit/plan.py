"""The order in which the parts of a kernel run: nodes, and who may be waiting while one runs.

A node is a segment of the kernel, or the part of a barrier that comes after the wait.  Among the nodes at which lanes of
a warp stand, the one of the lowest rank runs first, so that lanes which diverged meet again: code in its order, then
the collectives, for which others may have to come, then barriers, at which the warp waits for the others of its CTA.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxvm.analysis.flow import Segment, cut_points, live, successors
from ptxvm.analysis.program import Bound, Function
from ptxvm.isa.model import Decoded


@dataclass(eq=False, slots=True)
class Node:
    """A piece of code that a group of lanes runs in one go; `waits` where they come out of a barrier."""

    number: int
    start: int
    end: int
    rank: int
    live_in: int
    live_out: int
    waits: bool = False
    barrier: bool = False
    successors: list[int] = field(default_factory=list)
    wait: int = -1  # of a barrier, the node that follows the wait
    waiting: frozenset[int] = frozenset()  # nodes at which other lanes may stand meanwhile


def is_barrier(i: Decoded) -> bool:
    """Does it wait for the CTA?"""
    return "waits" in i.of.effects and "cta" in i.of.effects


def is_collective(i: Decoded) -> bool:
    """Does it wait for lanes of the warp?"""
    return "waits" in i.of.effects and "warp" in i.of.effects


def nodes(function: Function) -> list[Node]:
    """The nodes of a kernel: the segments in the order of the code, then the ends of barriers."""
    code = function.instructions
    found = _segments(function)
    total = len(code) + 1
    made: list[Node] = []
    for n, segment in enumerate(found):
        first = code[segment.start].i
        rank = segment.start + (total if is_collective(first) else 0)
        node = Node(n, segment.start, segment.end, rank, segment.live_in, segment.live_out)
        node.successors = list(segment.successors)
        node.barrier = is_barrier(first)
        made.append(node)
    for node in [node for node in made if node.barrier]:
        bound = code[node.start]
        following = node.successors
        after = Node(len(made), node.start, node.end, 2 * total + node.start, 0, node.live_out, waits=True)
        # what the instruction itself writes is written after the wait, under its guard as well
        after.live_in = node.live_in | node.live_out
        after.successors = list(following)
        node.wait = after.number
        node.successors = [after.number, *(following if bound.node.guard is not None else [])]
        made.append(after)
    return made


def _segments(function: Function) -> list[Segment]:
    """The segments of a kernel, cut where an address is made after a store too: there the code can be left."""
    code = function.instructions
    cuts = sorted({0, len(code), *cut_points(function), *_after_stores(code)})
    found = [Segment(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    number = {s.start: n for n, s in enumerate(found)}
    for segment in found:
        following = successors(function, code[segment.end - 1], segment.end)
        segment.successors = [number[at] for at in following]
    live(function, found)
    return found


def widens(bound: Bound) -> bool:
    """Does it extend 32 bits to 64?"""
    words = bound.node.words
    if bound.node.opcode in ("mul", "mad"):
        return "wide" in words
    return bound.node.opcode == "cvt" and bool({"u64", "s64"} & set(words)) and bool({"u32", "s32"} & set(words))


def touches(bound: Bound) -> bool:
    """Does it change memory, or depend on what others did?"""
    return bool(bound.i.of.effects & {"mem", "warp", "cta"}) and bound.node.opcode not in ("ld", "ldu", "cvta", "isspacep")


def _after_stores(code: list[Bound]) -> list[int]:
    cuts, dirty = [], False
    for n, bound in enumerate(code):
        if dirty and widens(bound):
            cuts.append(n)
            dirty = False
        dirty = dirty or touches(bound)
        if bound.i.of.effects & {"flow", "waits"}:
            dirty = False
    return cuts


def waiting(found: list[Node], divergent: set[int]) -> list[frozenset[int]]:
    """For every node the nodes at which other lanes may stand while it runs."""
    others: list[set[int]] = [set() for _ in found]
    reached = {0}
    work = [0]
    while work:
        n = work.pop()
        node = found[n]
        groups = [set(node.successors)] if n in divergent else [{s} for s in node.successors] or [set()]
        for group in groups:
            standing = others[n] | group
            if not standing:
                continue
            bound = max((found[s].rank for s in group), default=1 << 60)
            for following in standing:
                rank = found[following].rank
                if rank > bound:
                    continue
                left = {q for q in standing if found[q].rank > rank}
                if following not in reached or not left <= others[following]:
                    reached.add(following)
                    others[following] |= left
                    work.append(following)
    return [frozenset(each) for each in others]


def reachable(found: list[Node], starts: set[int]) -> set[int]:
    """The nodes that control can come to."""
    seen: set[int] = set()
    work = list(starts)
    while work:
        n = work.pop()
        if n not in seen:
            seen.add(n)
            work += found[n].successors
    return seen

"""Closed regions: the code between a branch and a node where all lanes that part there have met again.

Inside, lanes may part as they like: there are loops, branches and threads' ends, but no barrier, no collective and no shared
function, so no lane waits for one that is elsewhere, and a group of warps is whole again behind it (structured predication).
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.control_dependence import post_dominators
from ptxvm.engine.jit.cfg.nodes import Node

MOST = 600  # instructions of a region
END = -1  # stands for the end of the thread, where lanes need not meet
WITHIN = {"mem", "flow", "cc"}  # effects of its instructions


@dataclass(frozen=True, slots=True)
class ClosedRegion:
    """The nodes of a region, and the node at which its lanes meet; `END` if their threads end in it."""

    nodes: frozenset[int]
    join: int


class ClosedRegions:
    """Finds the closed regions of a kernel."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._after = post_dominators(nodes)

    def largest(self, number: int) -> ClosedRegion | None:
        """The largest closed region behind the branch at the end of a node."""
        behind = [n for n in range(len(self.nodes)) if self._after[number] >> n & 1]
        behind.sort(key=lambda n: self.nodes[n].rank)
        best = None
        for join in [*behind, END]:
            region = self._region(number, join)
            if region is not None and (best is None or len(region.nodes) > len(best.nodes)):
                best = region
        return best

    def holds(self, region: ClosedRegion, node: Node) -> bool:
        """Do all lanes stay in a region, or come to its join, that part at the end of a node?"""
        behind = set(node.successors)
        return bool(behind) and behind <= region.nodes | {region.join} and self._plain_end(node, ends=region.join == END)

    def _region(self, number: int, join: int) -> ClosedRegion | None:
        """The region of the nodes that lanes run before they come to a join, if it is closed."""
        inside: set[int] = set()
        work, length = list(self.nodes[number].successors), 0
        while work:
            n = work.pop()
            if n in inside or n == join:
                continue
            inside.add(n)
            node = self.nodes[n]
            length += len(node.code)
            if length > MOST or not self._plain(node, ends=join == END) or (join != END and node.rank >= self.nodes[join].rank):
                return None
            work += node.successors
        if not inside or not self._plain_end(self.nodes[number], ends=join == END):
            return None
        return ClosedRegion(frozenset(inside), join)

    def _plain(self, node: Node, *, ends: bool) -> bool:
        """Does a node compute, access memory and branch only?"""
        inline = node.wait < 0 and not node.waits and not node.calls and node.callee is None and node.returns is None
        return inline and self._plain_end(node, ends=ends) and all(bound.i.of.effects <= WITHIN for bound in node.code)

    def _plain_end(self, node: Node, *, ends: bool) -> bool:
        """Does no thread end with a node, unless it may?"""
        falls = node.next == len(node.frame.code)
        return ends or not (falls or (bool(node.code) and node.code[-1].summary.ends_thread))

"""Structured predication: the closed regions in which lanes of the straight version diverge, to reconverge behind them.

Inside, there is code for whole groups of warps, and code under masks as wide as a group.  Registers that a region writes
and that are read behind it have one shape in both; what is not written inside keeps its shape.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import field
from functools import cached_property

from ptxvm.analysis.flow import changes
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.closed_regions import END, ClosedRegion, ClosedRegions
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.node.register_shapes import Registers, Urgency, User


class DivergenceError(Exception):
    """Lanes probably diverge often at a branch."""


@dataclass(eq=False, slots=False)
class DivergentRegions:
    """The regions of a version: its nodes, its registers, and the nodes that are `written` so far.

    `one_warp` are those of the straight version for one warp at a time.  `diverging` are the nodes at whose ends lanes diverge.
    """

    nodes: Sequence[Node]
    registers: Registers
    written: Container[User]
    possible: bool
    one_warp: DivergentRegions | None
    ordered: bool = False  # in profiled code: a region ends behind its code, as lanes meet where they run in the order of code
    regions: list[ClosedRegion] = field(default_factory=list)
    diverging: set[int] = field(default_factory=set)

    @cached_property
    def _closed(self) -> ClosedRegions:
        return ClosedRegions(self.nodes)

    @property
    def inside(self) -> set[int]:
        """The nodes of the regions."""
        return {number for region in self.regions for number in region.nodes}

    @property
    def joins(self) -> set[int]:
        """The nodes at which lanes that have parted are whole again."""
        return {region.join for region in self.regions} - {END}

    def hold(self, node: Node) -> bool:
        """Do lanes that part at the end of a node stay in a region?"""
        return any(self._closed.holds(region, node) for region in self.regions)

    def add(self, node: Node) -> bool:
        """Let lanes part at the end of a node, if they meet again; can they?

        Where the lanes of each warp agree, several warps that do not are better run one after the other.
        """
        if not self.possible or (self.one_warp is not None and node.number not in self.one_warp.diverging):
            return False
        if not self.hold(node):
            region = self._closed.largest(node.number)
            if region is None or (self.ordered and not self._ends_behind(region)):
                return False
            self.regions.append(region)
            self._keep_whole()
            self.registers.stale += [((n, True), Urgency.SHAPE) for n in region.nodes if (n, True) in self.written]
        self.diverging.add(node.number)
        return True

    def _ends_behind(self, region: ClosedRegion) -> bool:
        """Do lanes leave a region for a node that comes after all of its nodes?"""
        return region.join == END or all(self.nodes[n].rank < self.nodes[region.join].rank for n in region.nodes)

    def _keep_whole(self) -> None:
        """Let partial warps have no copy of a register that a region writes and that is read behind it: none is restored there.

        Of a register that a region only reads, whole warps still hold the value behind it.
        """
        needed = 0
        for region in self.regions:
            if region.join != END and region.join not in self.inside:
                needed |= self.nodes[region.join].live_in & written(self.nodes[n] for n in region.nodes)
        if any(needed >> key[0] & 1 for key in self.registers.split):
            raise DivergenceError
        self.registers.steady = ~needed


def written(nodes: Iterable[Node]) -> int:
    """The registers that some nodes may write, as a mask."""
    found = 0
    for node in nodes:
        for bound in node.code:
            found |= changes(bound) << node.frame.registers
    return found

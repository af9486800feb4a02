"""Control dependence: the registers that lanes write apart, between a branch on loaded data and its post-dominators."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.analysis.flow import reads_and_writes
from ptxvm.engine.jit.cfg.nodes import Node


def written_apart(nodes: Sequence[Node], branching: set[int]) -> int:
    """The registers that are written where control depends on some of the nodes, as a mask."""
    after = post_dominators(nodes)
    written = 0
    for number in branching:
        region: set[int] = set()
        work = list(nodes[number].successors)
        while work:
            n = work.pop()
            if n not in region and not after[number] >> n & 1:
                region.add(n)
                work += nodes[n].successors
        for n in region:
            written |= _written(nodes[n])
    return written


def post_dominators(nodes: Sequence[Node]) -> list[int]:
    """The post-dominators of each node, without the node itself, as masks."""
    everything = (1 << len(nodes)) - 1
    after = [everything if node.successors else 0 for node in nodes]
    changed = True
    while changed:
        changed = False
        for node in reversed(nodes):
            common = everything if node.successors else 0
            for n in node.successors:
                common &= after[n] | 1 << n
            if common != after[node.number]:
                after[node.number], changed = common, True
    return [mask & ~(1 << number) for number, mask in enumerate(after)]


def _written(node: Node) -> int:
    written = node.kill
    for bound in node.code:
        written |= reads_and_writes(bound)[1] << node.frame.registers
    return written

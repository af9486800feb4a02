"""Reachability: the nodes that control can reach, and those at which other lanes may wait while a node runs."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.engine.jit.cfg.nodes import Node


def waiting(nodes: Sequence[Node], divergent: set[int]) -> list[frozenset[int]]:
    """For each node, the nodes at which other lanes may wait while it runs."""
    leaving = {node.number for node in nodes if node.code and node.code[-1].summary.ends_thread}
    others: list[set[int]] = [set() for _ in nodes]
    reached = {0}
    work = [0]
    while work:
        n = work.pop()
        node = nodes[n]
        groups = [set(node.successors)] if n in divergent else [{s} for s in node.successors] or [set()]
        if n in leaving:
            groups.append(set())
        for group in groups:
            standing = others[n] | group
            if not standing:
                continue
            bound = max((nodes[s].rank for s in group), default=1 << 60)
            for following in standing:
                rank = nodes[following].rank
                if rank > bound:
                    continue
                left = {q for q in standing if nodes[q].rank > rank}
                if following not in reached or not left <= others[following]:
                    reached.add(following)
                    others[following] |= left
                    work.append(following)
    return [frozenset(each) for each in others]


def reachable(nodes: Sequence[Node], starts: set[int]) -> set[int]:
    """The nodes that control can reach."""
    seen: set[int] = set()
    work = list(starts)
    while work:
        n = work.pop()
        if n not in seen:
            seen.add(n)
            work += nodes[n].successors
    return seen

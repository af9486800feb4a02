"""Loops of a control flow graph: its strongly connected components."""

from __future__ import annotations

from collections.abc import Sequence


def repeated(successors: Sequence[Sequence[int]]) -> set[int]:
    """The nodes that are in loops: Tarjan's strongly connected components."""
    loops: set[int] = set()
    order: dict[int, int] = {}  # the order of discovery
    lowest: dict[int, int] = {}  # the earliest node that it reaches
    path: list[int] = []
    for start in range(len(successors)):
        if start in order:
            continue
        work = [(start, iter(successors[start]))]
        order[start] = lowest[start] = len(order)
        path.append(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    lowest.update(dict.fromkeys(component, len(successors)))  # they are complete
                    if len(component) > 1 or node in successors[node]:
                        loops.update(component)
            elif following not in order:
                order[following] = lowest[following] = len(order)
                path.append(following)
                work.append((following, iter(successors[following])))
            else:
                lowest[node] = min(lowest[node], lowest[following])
    return loops

"""Does a test always come to its end, if the scheduler is fair?

All states of `machine` are visited.  A test may hang if in some state nobody can go on though somebody has not finished
(a deadlock), or if some states form a cycle in which every thread moves or cannot move for a while (a livelock, or a
spin that nobody ends).  A scheduler that leaves out a thread which always could go on is not fair.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.model.machine import Machine, State
from ptxvm.model.program import Barrier, Branch, Test, Thread

STATES = 20_000
"""After so many, the answer is `unknown`."""

Graph = dict[State, dict[int, list[State]]]
"""For each state, what each thread that can go on makes of it."""


def termination(test: Test) -> str:
    """`terminates`, `may_hang`, or `unknown` where there are too many states."""
    if not any(isinstance(i, Barrier) or jumps_back(thread, n) for thread in test.threads for n, i in enumerate(thread.code)):
        return "terminates"
    machine = Machine(test)
    graph = reachable(machine)
    if len(graph) >= STATES:
        return "unknown"
    everybody = range(len(test.threads))
    for state, moves in graph.items():
        if not moves and not all(machine.is_finished(state, n) for n in everybody):
            return "may_hang"
    return "may_hang" if any(is_fair(component, graph) for component in components(graph)) else "terminates"


def jumps_back(thread: Thread, at: int) -> bool:
    """Is it the end of a loop?"""
    instruction = thread.code[at]
    return isinstance(instruction, Branch) and thread.labels[instruction.label] <= at


def reachable(machine: Machine) -> Graph:
    """All states, and the steps between them."""
    graph: Graph = {}
    waiting = [machine.start()]
    while waiting and len(graph) < STATES:
        state = waiting.pop()
        if state in graph:
            continue
        moves = {n: list(machine.steps(state, n)) for n in range(len(machine.threads))}
        graph[state] = {n: following for n, following in moves.items() if following}
        waiting += [after for following in graph[state].values() for after in following if after not in graph]
    return graph


def is_fair(component: set[State], graph: Graph) -> bool:
    """Can a fair scheduler stay here: does each thread move here, or is there a state in which it cannot?"""
    moved: set[int] = set()
    always = set.intersection(*(set(graph[state]) for state in component))
    for state in component:
        moved |= {n for n, following in graph[state].items() if not component.isdisjoint(following)}
    return bool(moved) and always <= moved


def components(graph: Graph) -> list[set[State]]:
    """The strongly connected components (Kosaraju): states that can all be reached from each other."""
    finished: list[State] = []
    seen: set[State] = set()
    for root in graph:
        stack = [] if root in seen else [(root, _following(graph, root))]
        seen.add(root)
        while stack:
            state, rest = stack[-1]
            after = next((s for s in rest if s not in seen), None)
            if after is None:
                finished.append(state)
                stack.pop()
            else:
                seen.add(after)
                stack.append((after, _following(graph, after)))
    before: dict[State, list[State]] = {state: [] for state in graph}
    for state in graph:
        for after in _following(graph, state):
            before[after].append(state)
    found: list[set[State]] = []
    left = set(graph)
    for root in reversed(finished):
        if root not in left:
            continue
        component, waiting = set(), [root]
        left.discard(root)
        while waiting:
            component.add(state := waiting.pop())
            more = [s for s in before[state] if s in left]
            left.difference_update(more)
            waiting += more
        found.append(component)
    return found


def _following(graph: Graph, state: State) -> Iterator[State]:
    return (after for following in graph[state].values() for after in following)

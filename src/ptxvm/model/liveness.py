"""Liveness: does a test always end, if the scheduler is fair?

All states of a machine are visited.  A test may hang if in some state no thread can run though some have not finished
(a deadlock), or if some states form a cycle in which every thread moves or cannot move for a while (a livelock, or a
spin that no thread ends).  A scheduler that leaves out a thread which always could run is not fair.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Protocol, TypeVar

from ptxvm.model.deadline import seconds_left
from ptxvm.model.ending import Ending
from ptxvm.model.litmus_program import Barrier, Branch, Thread
from ptxvm.model.litmus_states import LitmusStates
from ptxvm.model.litmus_test import Test

STATES = 20_000
"""With this many states, the answer is `unknown`."""

SOME = 3
"""The most threads that an answer names."""

S = TypeVar("S", bound=Hashable)
Graph = dict[S, dict[int, list[S]]]
"""For each state, the next states for each thread that can run."""


class TransitionSystem(Protocol[S]):
    """A machine whose threads take turns: its states, and the steps between them."""

    @property
    def threads(self) -> Sequence[Thread]:
        """The threads that take turns."""
        ...

    def start(self) -> S:
        """The first state."""
        ...

    def successors(self, state: S, known: Collection[S]) -> dict[int, list[S]]:
        """The states after the next step of each thread that can run; an empty list for a thread whose step can come later."""
        ...

    def is_finished(self, state: S, number: int) -> bool:
        """Has this thread ended?"""
        ...

    def waits_for_others(self, state: S, number: int) -> bool:
        """Does the thread read memory there, or wait for others?"""
        ...

    def where(self, state: S, number: int) -> str:
        """The instruction at which a thread stands, as part of a sentence."""
        ...


def termination(test: Test) -> Ending:
    """Does a litmus test with a table of code terminate?"""
    if not any(isinstance(i, Barrier) or jumps_back(thread, n) for thread in test.threads for n, i in enumerate(thread.code)):
        return Ending("terminates")
    return decided(LitmusStates(test))


def decided(machine: TransitionSystem[S], most: int = STATES) -> Ending:
    """Does a machine always terminate, if the scheduler is fair?"""
    graph = reachable(machine, most)
    if len(graph) >= most:
        return Ending("unknown", (f"it comes to more than {most:,} states",))
    every_thread = range(len(machine.threads))
    for state, moves in graph.items():
        if not moves and (left := [n for n in every_thread if not machine.is_finished(state, n)]):
            return Ending("may_hang", _report(machine, [state], left))
    for component in components(graph):
        if is_fair(component, graph):
            states = [state for state in graph if state in component]
            left = [n for n in every_thread if not machine.is_finished(states[0], n)]
            return Ending("may_hang", _report(machine, states, left, moving(component, graph)))
    return Ending("terminates")


def _report(
    machine: TransitionSystem[S], states: Sequence[S], numbers: Sequence[int], goes_on: Collection[int] = ()
) -> tuple[str, ...]:
    """Describe what threads do for ever; of several instructions, one that reads memory or waits for others."""
    verbs = {n: "goes round at" if n in goes_on else "waits at" for n in numbers}
    at = {n: next((state for state in states if machine.waits_for_others(state, n)), states[0]) for n in numbers}
    lines = [f"{machine.threads[n].name} {verb} {machine.where(at[n], n)}" for n, verb in verbs.items()]
    more = (f"and {len(lines) - SOME} more threads",) if len(lines) > SOME else ()
    return (*lines[:SOME], *more)


def jumps_back(thread: Thread, at: int) -> bool:
    """Is the instruction a backward branch?"""
    instruction = thread.code[at]
    return isinstance(instruction, Branch) and thread.labels[instruction.label] <= at


def reachable(machine: TransitionSystem[S], most: int) -> Graph[S]:
    """The reachable states and the steps between them, at most `most` states."""
    graph: Graph[S] = {}
    waiting = [machine.start()]
    while waiting and len(graph) < most:
        seconds_left()
        state = waiting.pop()
        if state in graph:
            continue
        graph[state] = machine.successors(state, graph)
        waiting += [after for following in graph[state].values() for after in following if after not in graph]
    return graph


def is_fair(component: set[S], graph: Graph[S]) -> bool:
    """Can a fair scheduler stay in these states: does each thread move there, or is it blocked in one of them?"""
    moved, always = moving(component, graph), set.intersection(*(set(graph[state]) for state in component))
    return bool(moved) and always <= moved


def moving(component: set[S], graph: Graph[S]) -> set[int]:
    """The threads that can move and stay in these states."""
    return {n for state in component for n, following in graph[state].items() if not component.isdisjoint(following)}


def components(graph: Graph[S]) -> list[set[S]]:
    """The strongly connected components (Kosaraju): states that can all be reached from each other."""
    finished: list[S] = []
    seen: set[S] = set()
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
    before: dict[S, list[S]] = {state: [] for state in graph}
    for state in graph:
        for after in _following(graph, state):
            before[after].append(state)
    found: list[set[S]] = []
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


def _following(graph: Graph[S], state: S) -> Iterator[S]:
    return (after for following in graph[state].values() for after in following)

"""Captures of streams: work becomes nodes of a graph, or takes the place of the work of nodes that there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from enum import IntEnum
from threading import get_ident

from ptxvm.dataclass import dataclass
from ptxvm.driver.graph import Described, Graph, Node, Task
from ptxvm.driver.graph_edges import COMPLETE, KERNEL, PROGRAMMATIC, Edge
from ptxvm.driver.results import DriverError, Result

Edges = dict[Node, Edge]


class CaptureMode(IntEnum):
    """Which other calls a capture, or a thread, allows meanwhile (CUstreamCaptureMode)."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


@dataclass(eq=False)
class Capture:
    """A capture: the stream that began it, and the streams that joined it by waiting for its events.

    `last` has the nodes before the next one of each stream, and `events` the nodes that each recorded event stands for.
    """

    origin: Hashable
    mode: CaptureMode
    number: int
    graph: Graph = field(default_factory=Graph)
    last: dict[Hashable, Edges] = field(default_factory=dict)
    events: dict[Hashable, Edges] = field(default_factory=dict)
    is_invalid: bool = False  # has the client done what a capture does not allow?
    is_ended: bool = False
    thread: int = field(default_factory=get_ident)  # that began it

    def add(self, stream: Hashable, task: Task, type: int) -> Node:
        """Add a task as the next node of a stream."""
        self.refuse_invalid()
        node = self.node(task, type, {before: edge.to(type) for before, edge in self.last.get(stream, {}).items()})
        self.last[stream] = {node: COMPLETE}
        return node

    def node(self, task: Task, type: int, after: Mapping[Node, Edge]) -> Node:
        """The node of a task."""
        return self.graph.add(task, type, after)

    def let_overlap(self, stream: Hashable) -> None:
        """The next node of a stream is a kernel that waits by itself for the kernels before it."""
        last = self.last.get(stream, {})
        self.last[stream] = {
            node: PROGRAMMATIC if node.type == KERNEL and edge == COMPLETE else edge for node, edge in last.items()
        }

    def record(self, stream: Hashable, event: Hashable, edge: Edge = COMPLETE) -> None:
        """Record an event after the last node of a stream, or, by its edge, after what the node does first."""
        self.refuse_invalid()
        last = self.last.get(stream, {})
        self.events[event] = dict(last) if edge == COMPLETE else dict.fromkeys(last, edge)

    def wait(self, stream: Hashable, event: Hashable) -> None:
        """Let the next node of a stream follow an event."""
        self.follow(stream, self.events[event])

    def follow(self, stream: Hashable, nodes: Mapping[Node, Edge], *, only: bool = False) -> None:
        """Let the next node of a stream follow some nodes, too or only."""
        last = {} if only else self.last.get(stream, {})
        self.last[stream] = last | {node: edge.joined(last.get(node)) for node, edge in nodes.items()}

    def prohibits(self, mode: CaptureMode) -> bool:
        """Must a thread, which is in a mode, make no call that a capture does not see, such as an allocation?"""
        if self.thread == get_ident():
            return CaptureMode.RELAXED not in (mode, self.mode)
        return mode == self.mode == CaptureMode.GLOBAL

    def refused(self, result: Result, message: str) -> DriverError:
        """The error of what a capture does not allow; it is invalid from now on."""
        self.is_invalid = True
        return DriverError(result, message)

    def refuse_invalid(self) -> None:
        """DriverError where the capture was invalidated."""
        if self.is_invalid:
            raise DriverError(Result.STREAM_CAPTURE_INVALIDATED, "the capture was invalidated by an earlier call")

    def end(self) -> Graph:
        """The graph; DriverError for an invalid capture, or where work of a joined stream does not lead back to the first."""
        self.refuse_invalid()
        joined = _with_predecessors(self.last.get(self.origin, {}))
        if any(node not in joined for last in self.last.values() for node in last):
            raise DriverError(Result.STREAM_CAPTURE_UNJOINED, "a stream that was captured was not joined with the first")
        return self.graph


def _with_predecessors(nodes: Iterable[Node]) -> set[Node]:
    """Nodes, and all that they follow.

    A node that no stream leads to any more, since the client set the dependencies of its stream or added it to the graph by
    itself, needs no join (cuStreamUpdateCaptureDependencies).
    """
    found, waiting = set[Node](), list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.after
    return found


Agreed = Callable[[Node, Task], bool]
"""Called with a node and its new task; returns whether the client agrees."""


@dataclass(eq=False, kw_only=True)
class Recapture(Capture):
    """A capture of the work that a graph has: the nodes come in the same order and take the new work.

    Where anything differs but the parameters of nodes, the capture fails, and the graph is not to be used any more.
    """

    agreed: Agreed
    done: int = 0  # nodes that have come

    def expected(self, type: int) -> Node:
        """The next node; DriverError where it has another type, or there is none."""
        nodes = self.graph.nodes
        if self.done >= len(nodes):
            raise self.failed(f"the graph has {len(nodes)} nodes, and another one is captured")
        if nodes[self.done].type != type:
            raise self.failed(f"node {self.done} of the graph has type {nodes[self.done].type}, not {type}")
        return nodes[self.done]

    def node(self, task: Task, type: int, after: Mapping[Node, Edge]) -> Node:
        """The next node, with a new task."""
        node = self.expected(type)
        if node.after != after:
            raise self.failed(f"node {self.done} of the graph follows other nodes")
        if isinstance(node.task, Described) and node.task != task:
            raise self.failed(f"node {self.done} of the graph allocates or frees other memory")
        if not self.agrees(node, task):
            raise self.failed(f"the client refuses the parameters of node {self.done}")
        node.task = task
        self.done += 1
        return node

    def agrees(self, node: Node, task: Task) -> bool:
        """Does the client agree?  DriverError for work that cannot be described to it."""
        try:
            return self.agreed(node, task)
        except DriverError:
            self.is_invalid = True
            raise

    def end(self) -> Graph:
        """The graph; DriverError for an invalid capture, or one that has not come to the last node."""
        if not self.is_invalid and self.done < len(self.graph.nodes):
            raise self.failed(f"the graph has {len(self.graph.nodes)} nodes, and {self.done} were captured")
        return super().end()

    def failed(self, message: str) -> DriverError:
        """The error of a recapture, which is invalid from now on."""
        return self.refused(Result.GRAPH_RECAPTURE_FAILURE, message)


__all__ = ["Agreed", "Capture", "CaptureMode", "Recapture"]

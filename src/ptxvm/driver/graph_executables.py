"""Executable graphs: copies of graphs that are launched, and that take over the work of others of the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from weakref import finalize

from ptxvm.driver.graph import Child, Conditional, Defaults, Graph, InOrder, Node, Prepared, Task, nested, with_graphs
from ptxvm.driver.launch import Launch
from ptxvm.driver.results import DriverError, Result

AUTO_FREE_ON_LAUNCH, DEVICE_LAUNCH, FLAGS = 1, 4, 0b1111  # CUgraphInstantiate_flags, and all of them


class UpdateResult(IntEnum):
    """Why an executable graph cannot be updated (CUgraphExecUpdateResult)."""

    SUCCESS = 0
    ERROR = 1
    TOPOLOGY_CHANGED = 2
    NODE_TYPE_CHANGED = 3
    PARAMETERS_CHANGED = 5
    NOT_SUPPORTED = 6
    UNSUPPORTED_FUNCTION_CHANGE = 7


class UpdateError(DriverError):
    """An update of an executable graph failed: why, at which node of the new graph, and at which of its dependencies."""

    def __init__(self, reason: UpdateResult, message: str, node: Node | None = None, before: Node | None = None) -> None:
        super().__init__(Result.GRAPH_EXEC_UPDATE_FAILURE, message)
        self.reason, self.node, self.before = reason, node, before


Refused = Callable[[Task, Task], tuple[UpdateResult, str] | None]
"""Called with two tasks of nodes of one type; returns why the second one cannot take the place of the first."""


def changed_topology(message: str, node: Node | None = None, before: Node | None = None) -> UpdateError:
    """The error of another topology."""
    return UpdateError(UpdateResult.TOPOLOGY_CHANGED, message, node, before)


def paired(graph: Graph, other: Graph) -> dict[Node, Node]:
    """The node of another graph that each one of a graph stands for, nested graphs included; UpdateError for another form.

    Nodes that no other follows are pairs in their order, and so are the dependencies of a pair (CUDA C++ Programming Guide,
    "Updating Instantiated Graphs"): the order in which other nodes were made does not matter.
    """
    if len(graph.nodes) != len(other.nodes):
        raise changed_topology(f"a graph has {len(graph.nodes)} nodes, the other {len(other.nodes)}")
    sinks, theirs = graph.sinks(), other.sinks()
    if len(sinks) != len(theirs):
        unpaired = sinks[len(theirs)] if len(sinks) > len(theirs) else None
        raise changed_topology(f"a graph has {len(sinks)} nodes that no other follows, the other {len(theirs)}", unpaired)
    pairs: dict[Node, Node] = {}
    taken: set[Node] = set()
    found: list[tuple[Node | None, Node, Node]] = [(None, *each) for each in reversed(list(zip(sinks, theirs, strict=True)))]
    while found:
        after, node, twin = found.pop()
        if node in pairs or twin in taken:
            if pairs.get(node) is not twin:
                raise changed_topology("a node depends on another one", after, node)
            continue
        pairs[node] = twin
        taken.add(twin)
        must_match(node, twin)
        found += [(node, *each) for each in reversed(list(zip(node.after, twin.after, strict=True)))]
    if len(pairs) < len(graph.nodes):
        raise changed_topology("the dependencies of the nodes of a graph have a cycle")
    for node, twin in list(pairs.items()):
        for body, theirs_too in zip(nested(node.task), nested(twin.task), strict=True):
            pairs |= paired(body, theirs_too)
    return pairs


def must_match(node: Node, twin: Node) -> None:
    """UpdateError where a node has another number of dependencies or other edges, another type, or other graphs."""
    if [*node.after.values()] != [*twin.after.values()]:
        raise changed_topology("a node has another number of dependencies, or other edges", node)
    if node.type != twin.type:
        raise UpdateError(UpdateResult.NODE_TYPE_CHANGED, f"a node has type {node.type}, not {twin.type}", node)
    task, theirs = node.task, twin.task
    if len(nested(task)) != len(nested(theirs)):
        raise UpdateError(UpdateResult.PARAMETERS_CHANGED, "a conditional node has another number of graphs", node)
    if isinstance(task, Conditional) and isinstance(theirs, Conditional) and task.branch is not theirs.branch:
        raise UpdateError(UpdateResult.PARAMETERS_CHANGED, "a conditional node chooses otherwise", node)


def is_updatable(node: Node) -> bool:
    """May kernels change the launch of a node?"""
    return isinstance(node.task, Launch) and node.task.record is not None


def is_changed_by_kernels(graph: Graph) -> bool:
    """May kernels change the launch of a node of a graph?"""
    return any(map(is_updatable, graph.all_nodes()))


class Executable:
    """A graph that can be launched: a copy, in the order of its dependencies; `flags` are the client's.

    What the graph uses is released with the last reference: that of the client, or of a launch that is under way
    (driver API, `cuGraphExecDestroy`).
    """

    def __init__(self, graph: Graph, flags: int = 0) -> None:
        if flags & ~FLAGS or flags & (AUTO_FREE_ON_LAUNCH | DEVICE_LAUNCH) == AUTO_FREE_ON_LAUNCH | DEVICE_LAUNCH:
            raise DriverError(Result.INVALID_VALUE, f"no executable graph has the flags {flags:#x}")
        self.flags, self.original = flags, graph
        order = graph.sorted()
        self.graph = graph.copy()
        finalize(self, self.graph.destroy).atexit = False
        self.copies = {origin: twin for twin, origin in self.graph.all_origins().items()}
        self.order = [self.copies[node] for node in order]

    @property
    def is_for_device(self) -> bool:
        """May kernels launch it?"""
        return bool(self.flags & DEVICE_LAUNCH)

    @property
    def frees_on_launch(self) -> bool:
        """Does a launch free the memory that the last one has left allocated?"""
        return bool(self.flags & AUTO_FREE_ON_LAUNCH)

    def node(self, original: Node) -> Node:
        """The copy of a node; DriverError for a node of another graph."""
        if original not in self.copies:
            raise DriverError(Result.INVALID_VALUE, "the node is not of the graph that was instantiated")
        return self.copies[original]

    def update(self, graph: Graph, refused: Refused) -> None:
        """cuGraphExecUpdate: take over the work of a graph of the same form; UpdateError for one of another form."""
        if is_changed_by_kernels(graph) or is_changed_by_kernels(self.graph):
            raise UpdateError(UpdateResult.NOT_SUPPORTED, "kernels change the launch of a node")
        self.take_over(graph, self.graph, refused)

    def update_child(self, original: Node, graph: Graph, refused: Refused) -> None:
        """cuGraphExecChildGraphNodeSetParams: the same for the graph of a node; DriverError for a graph of another form."""
        child = self.node(original).task
        if not isinstance(child, Child):
            raise DriverError(Result.INVALID_VALUE, "the node has no child graph")
        try:
            self.take_over(graph, child.graph, refused)
        except UpdateError as failure:
            raise DriverError(Result.INVALID_VALUE, str(failure)) from failure

    def take_over(self, graph: Graph, ours: Graph, refused: Refused) -> None:
        """Take over the tasks of a graph and what it uses, in one of ours; UpdateError, and no change, where that cannot be."""
        pairs = paired(graph, ours)
        for node, twin in pairs.items():
            if (found := refused(twin.task, node.task)) is not None:
                raise UpdateError(*found, node)
        for own, theirs in list(graphs(graph, ours, pairs)):
            theirs.take_resources(own)
        for node, twin in pairs.items():
            twin.task = with_graphs(node.task, nested(twin.task))
            self.copies[node] = twin

    def tasks(self) -> tuple[Task, ...]:
        """The tasks of one launch: default values of conditions, then those of all enabled nodes.

        DriverError where a kernel belongs to a context that has ended.
        """
        if any(isinstance(node.task, Launch) and node.task.configuration.has_ended for node in self.graph.all_nodes()):
            raise DriverError(Result.INVALID_HANDLE, "the graph has a kernel of a context that was destroyed or reset")
        tasks = (node.task for node in self.order if node.enabled or is_updatable(node))
        first = (Defaults(values),) if (values := self.graph.all_defaults()) else ()
        return (*first, *(task.prepared() if isinstance(task, Prepared) else task for task in tasks))


class ExecutableLaunch(InOrder):
    """A launch of an executable graph, which it keeps."""

    def __init__(self, executable: Executable) -> None:
        super().__init__(executable.tasks())
        self.executable = executable


def graphs(graph: Graph, other: Graph, pairs: dict[Node, Node]) -> Iterator[tuple[Graph, Graph]]:
    """A graph and another, and the nested ones of each two nodes that are a pair."""
    yield graph, other
    for node in graph.nodes:
        for body, twin in zip(nested(node.task), nested(pairs[node].task), strict=True):
            yield from graphs(body, twin, pairs)


__all__ = ["Executable", "ExecutableLaunch", "UpdateError", "UpdateResult", "is_changed_by_kernels", "is_updatable"]

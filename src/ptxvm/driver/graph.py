"""Graphs: tasks with dependencies, built node by node or captured from streams, and launched as one."""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Protocol

from ptxvm.dataclass import dataclass
from ptxvm.driver.graph_edges import Edge
from ptxvm.driver.launch_checks import Checked
from ptxvm.driver.results import DriverError, Result

NUMBERS = itertools.count(1)  # of nodes and graphs


class Task(Protocol):
    """Work of a stream or of a node: what it does, and whether it takes long."""

    @property
    def is_short(self) -> bool:
        """Does it end within about a millisecond, and never wait for the host?"""

    @property
    def may_wait(self) -> bool:
        """May it wait for something that the host does later?"""
        return not self.is_short

    @property
    def may_overlap(self) -> bool:
        """May it run beside other work of its stream?"""
        return False

    def run(self, checked: Checked | None) -> None:
        """Do the work; `checked` says how under checks, None without.  KernelError where a kernel has failed."""

    def cancel(self) -> None:
        """Do what is due in place of the work after a kernel has failed: what others wait for happens, and no more."""
        return  # which keeps a method of a protocol from being abstract


class KernelError(Exception):
    """A kernel has failed, and its context knows the error: what comes behind it is cancelled."""


class Failing(Protocol):
    """What a loop of a graph asks of a context: has a kernel failed?  (`Context` stands above this module.)"""

    @property
    def failure(self) -> Result:
        """The error of the first kernel that failed, SUCCESS if none did."""


class Prepared(Task):
    """A task that each launch of a graph prepares anew, such as the record of an event."""

    @property
    def is_short(self) -> bool:
        """No: the prepared task may wait."""
        return False

    def prepared(self) -> Task:
        """The task for one launch."""
        raise NotImplementedError

    def run(self, checked: Checked | None) -> None:
        """Prepare and run it: the launch of a graph that is a node of another."""
        self.prepared().run(checked)


class InOrder(Task):
    """Several tasks as one, in order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks

    @property
    def is_short(self) -> bool:
        """Are all of them short?"""
        return all(task.is_short for task in self.tasks)

    @property
    def may_wait(self) -> bool:
        """May one of them wait for the host?"""
        return any(task.may_wait for task in self.tasks)

    def run(self, checked: Checked | None) -> None:
        """Run them in order."""
        run_in_order(self.tasks, checked)

    def cancel(self) -> None:
        """Cancel all of them."""
        for task in self.tasks:
            task.cancel()


def run_in_order(tasks: Iterable[Task], checked: Checked | None) -> None:
    """Run tasks one after another; an error cancels those that are left."""
    left = iter(tasks)
    try:
        for task in left:
            task.run(checked)
    finally:
        for task in left:
            task.cancel()


@dataclass(frozen=True)
class Empty(Task):
    """The task of an empty node, which only orders others."""

    is_short = True

    def run(self, checked: Checked | None) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Described(Empty):
    """The task of a node that does nothing, and the structure or address by which the client described it."""

    description: bytes


@dataclass(eq=False)
class Node:
    """A node: a task, its CUgraphNodeType, the nodes that it follows by which edges, and the attributes that a client set."""

    task: Task
    type: int
    graph: Graph
    after: dict[Node, Edge] = field(default_factory=dict)
    enabled: bool = True
    attributes: dict[int, bytes] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(NUMBERS))


class StructureError(DriverError):
    """A graph cannot be launched, because of what is before a node."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(Result.INVALID_VALUE, message)
        self.node = node


NO_EDGES: Mapping[Node, Edge] = MappingProxyType({})


@dataclass(eq=False)
class UserObject:
    """A user object (CUuserObject): `end` destroys the client's object when the last user releases it."""

    end: Callable[[], None]
    users: int = 1

    def retain(self, count: int) -> None:
        """Add users."""
        self.users += count

    def release(self, count: int) -> None:
        """Remove users; DriverError for more than there are."""
        if count > self.users:
            raise DriverError(Result.INVALID_VALUE, f"a resource has {self.users} users, and {count} are released")
        self.users -= count
        if not self.users:
            self.end()


@dataclass(eq=False)
class Graph:
    """Nodes in the order in which they were added; `is_moved` where the client gave the graph to a node of another one."""

    nodes: list[Node] = field(default_factory=list)
    number: int = field(default_factory=lambda: next(NUMBERS))
    resources: Counter[UserObject] = field(default_factory=Counter)  # the uses of each by this graph
    defaults: dict[int, int] = field(default_factory=dict)  # default values of conditions, by address
    origins: dict[Node, Node] = field(default_factory=dict)  # where this is a clone: the original of each node
    is_moved: bool = False

    def add(self, task: Task, type: int, after: Mapping[Node, Edge] = NO_EDGES) -> Node:
        """Add a node after others; DriverError for nodes of another graph."""
        node = Node(task, type, self)
        self.order(node, after)
        self.nodes.append(node)
        return node

    def order(self, node: Node, after: Mapping[Node, Edge]) -> None:
        """Let a node follow others; DriverError where it does already, or where there is no such edge."""
        self.must_have([node, *after])
        for each, edge in after.items():
            if each in node.after:
                raise DriverError(Result.INVALID_VALUE, "the node follows the other already")
            edge.check(each.type, node.type)
        node.after |= after

    def must_have(self, nodes: Sequence[Node]) -> None:
        """DriverError for nodes of another graph."""
        if any(each.graph is not self for each in nodes):
            raise DriverError(Result.INVALID_VALUE, "a node is one of another graph")

    def retain(self, resource: UserObject, count: int) -> None:
        """Add uses of a resource."""
        self.resources[resource] += count

    def release(self, resource: UserObject, count: int) -> None:
        """Remove uses of a resource; DriverError for more than the graph has."""
        if count > self.resources[resource]:
            raise DriverError(Result.INVALID_VALUE, f"a graph uses a resource {self.resources[resource]} times, not {count}")
        self.resources[resource] -= count
        resource.release(count)

    def take_resources(self, graph: Graph) -> None:
        """Use what another graph uses, conditions included, instead of the own resources."""
        before, self.resources, self.defaults = self.resources, Counter(), graph.defaults
        for resource, count in graph.resources.items():
            resource.retain(count)
            self.retain(resource, count)
        for resource, count in before.items():
            resource.release(count)

    def destroy(self) -> None:
        """Release the resources of the graph, and of the graphs of its nodes."""
        for each in [body for node in self.nodes for body in nested(node.task)]:
            each.destroy()
        for resource, count in self.resources.items():
            if count:
                resource.release(count)
        self.resources.clear()

    def remove(self, node: Node) -> None:
        """Remove a node, and its graphs."""
        self.nodes.remove(node)
        for body in nested(node.task):
            body.destroy()
        for each in self.nodes:
            if node in each.after:
                del each.after[node]

    def edges(self) -> list[tuple[Node, Node, Edge]]:
        """The pairs of a node and a node that follows it, and their edges."""
        return [(before, node, edge) for node in self.nodes for before, edge in node.after.items()]

    def sinks(self) -> list[Node]:
        """The nodes that no other follows."""
        followed = {before for node in self.nodes for before in node.after}
        return [node for node in self.nodes if node not in followed]

    def roots(self) -> list[Node]:
        """The nodes that follow no other."""
        return [node for node in self.nodes if not node.after]

    def copy(self) -> Graph:
        """A copy of the graph, and of the graphs of its nodes; it knows the origin of each node."""
        made = Graph()
        copies = {node: Node(copied(node.task), node.type, made, attributes=node.attributes.copy()) for node in self.nodes}
        for node, twin in copies.items():
            twin.after = {copies[each]: edge for each, edge in node.after.items()}
        made.nodes = list(copies.values())
        made.origins = {twin: node for node, twin in copies.items()}
        made.defaults = self.defaults
        for resource, count in self.resources.items():
            resource.retain(count)
            made.retain(resource, count)
        return made

    def all_graphs(self) -> Iterator[Graph]:
        """The graph, and all nested ones."""
        yield self
        for node in self.nodes:
            for each in nested(node.task):
                yield from each.all_graphs()

    def all_nodes(self) -> list[Node]:
        """Its nodes, and those of nested graphs."""
        return [node for graph in self.all_graphs() for node in graph.nodes]

    def all_origins(self) -> dict[Node, Node]:
        """The original of each node, those of nested graphs included."""
        return {node: node.graph.origins[node] for node in self.all_nodes()}

    def all_defaults(self) -> dict[int, int]:
        """The default values of all conditions, by address, those of nested graphs included."""
        found = dict(self.defaults)
        for node in self.nodes:
            for each in nested(node.task):
                found |= each.all_defaults()
        return found

    def sorted(self) -> list[Node]:
        """The nodes in topological order; DriverError for a cycle."""
        done: dict[Node, None] = {}
        left = list(self.nodes)
        while left:
            ready = [node for node in left if all(each in done for each in node.after)]
            if not ready:
                raise StructureError("the dependencies of the nodes of a graph have a cycle", left[0])
            done |= dict.fromkeys(ready)
            left = [node for node in left if node not in done]
        return list(done)


@dataclass(frozen=True)
class Child(Task):
    """A whole graph as one node."""

    graph: Graph

    @property
    def is_short(self) -> bool:
        """Are all its nodes short?"""
        return all(node.task.is_short for node in self.graph.nodes)

    @property
    def may_wait(self) -> bool:
        """May one of its nodes wait for the host?"""
        return any(node.task.may_wait for node in self.graph.nodes)

    def run(self, checked: Checked | None) -> None:
        """Run its nodes."""
        run_in_order((node.task for node in self.graph.sorted() if node.enabled), checked)


def nested(task: Task) -> Sequence[Graph]:
    """The graphs that are part of a task."""
    match task:
        case Child():
            return (task.graph,)
        case Conditional():
            return task.bodies
    return ()


def with_graphs(task: Task, graphs: Sequence[Graph]) -> Task:
    """A task with other graphs as its parts."""
    match task:
        case Child():
            return Child(*graphs)
        case Conditional():
            return replace(task, bodies=graphs)
    return task


def copied(task: Task) -> Task:
    """A task with copies of its graphs."""
    return with_graphs(task, [each.copy() for each in nested(task)])


class ConditionalType(IntEnum):
    """How a conditional node chooses a graph (CUgraphConditionalNodeType)."""

    IF = 0
    WHILE = 1
    SWITCH = 2

    @property
    def most_bodies(self) -> int:
        """How many graphs such a node has at most."""
        return {ConditionalType.IF: 2, ConditionalType.WHILE: 1, ConditionalType.SWITCH: 1 << 16}[self]


@dataclass(frozen=True)
class Conditional(Task):
    """A conditional node: when it runs, a word of memory chooses one of its graphs, or none."""

    context: Failing
    condition: int  # the address of the word
    branch: ConditionalType
    bodies: Sequence[Graph]
    is_short = False

    @property
    def value(self) -> int:
        """The present value of the word."""
        return ctypes.c_uint32.from_address(self.condition).value

    def run(self, checked: Checked | None) -> None:
        """Run the chosen graph; a loop ends when the word is 0 or a kernel fails."""
        match self.branch:
            case ConditionalType.IF:
                self._run(0 if self.value else 1, checked)
            case ConditionalType.SWITCH:
                self._run(self.value, checked)
            case ConditionalType.WHILE:
                while self.value and not self.context.failure:
                    self._run(0, checked)

    def _run(self, number: int, checked: Checked | None) -> None:
        if number < len(self.bodies):
            Child(self.bodies[number]).run(checked)


@dataclass(frozen=True)
class Defaults(Task):
    """The first task of a launch: conditions take their default values."""

    values: Mapping[int, int]  # by the address of the word
    is_short = True

    def run(self, checked: Checked | None) -> None:
        """Write the values."""
        del checked
        for address, value in self.values.items():
            ctypes.c_uint32.from_address(address).value = value


__all__ = [
    "Child",
    "Conditional",
    "ConditionalType",
    "Defaults",
    "Empty",
    "Graph",
    "KernelError",
    "Node",
    "Prepared",
    "StructureError",
    "Task",
    "UserObject",
    "nested",
    "run_in_order",
    "with_graphs",
]

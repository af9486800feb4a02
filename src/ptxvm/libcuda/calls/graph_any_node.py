"""Nodes of any kind by one structure (CUgraphNodeParams), and conditional ones."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from ptxvm.driver.event import Event
from ptxvm.driver.graph import Child, Conditional, ConditionalType, Described, Empty, Graph, Node, Task, UserObject
from ptxvm.driver.graph_events import RECORD_EVENT, WAIT_EVENT, EventNode
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.launch import FunctionTask, Launch
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import i32, put_bytes, put_i32, put_u64, structure_at, u64
from ptxvm.libcuda.calls import graph, graph_nodes, pools, stream_memory
from ptxvm.libcuda.calls.context import of
from ptxvm.libcuda.calls.graph_changes import refused, replace, replace_in
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import ConditionalNode, Copy3D

NODE = 256  # bytes of the structure ...
PARAMETERS = 16  # ... and before the parameters of a kind
COPY = 16  # ... and before the description of a copy
CLONED, MOVED = 0, 1  # CUgraphChildGraphNodeOwnership
ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
Maker = Callable[[int], Task]
MAKERS: dict[int, Maker] = {
    graph.KERNEL: graph.kernel_task,
    graph.MEMCPY: lambda at: graph.copy_task(at + COPY),
    graph.MEMSET: graph.fill_task,
    graph.HOST: graph.host_task,
    graph.GRAPH: lambda at: child_task(at),  # noqa: PLW0108 - it stands below
    graph.EMPTY: lambda at: Empty(),  # noqa: ARG005 - it has none
    stream_memory.MEMORY_NODE: stream_memory.batch_task,
    WAIT_EVENT: lambda at: EventNode(session().handles.object(u64(at), Event), records=False),
    RECORD_EVENT: lambda at: EventNode(session().handles.object(u64(at), Event), records=True),
}
"""The task of a node of each type, from the address of its own parameters."""


def task_of(description: int, makers: dict[int, Maker] = MAKERS) -> tuple[int, Task]:
    """The type and the task that a structure describes; DriverError for an unknown type."""
    kind = i32(description)
    if kind not in makers:
        raise DriverError(Result.NOT_SUPPORTED, f"nodes of type {kind} are not supported yet")
    return kind, makers[kind](description + PARAMETERS)


def add_any(
    out: int, handle: int, after: int, count: int, description: int, makers: dict[int, Maker] = MAKERS, *, data: int = 0
) -> None:
    """A node of any kind; `data` is the address of that of its edges."""
    kind, at = i32(description), description + PARAMETERS
    if kind == pools.ALLOCATE:
        graph_nodes.add_allocation(out, handle, after, count, at, data=data)
    elif kind == pools.FREE:
        graph_nodes.add_free(out, handle, after, count, u64(at), data=data)
    elif kind == graph.CONDITIONAL:
        add_conditional(out, handle, after, count, at, data=data)
    else:
        kind, task = task_of(description, makers)
        graph.add(out, handle, after, count, task, kind, data=data)


@function("cuGraphAddNode")
def add_node(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A node of any kind."""
    add_any(out, handle, after, count, description)


@function("cuGraphAddNode_v2", "cuGraphAddNode_v3")
def add_node_v2(out: int, handle: int, after: int, data: int, count: int, description: int) -> None:
    """A node of any kind, with data of the edges to it."""
    add_any(out, handle, after, count, description, data=data)


@function("cuGraphNodeSetParams", "cuGraphNodeSetParams_v2")
def set_node(handle: int, description: int) -> None:
    """Change the task of a node."""
    change(graph_nodes.node_at(handle), description)


def change(node: Node, description: int) -> None:
    """Give a node the task of a structure; DriverError for a node of another kind."""
    kind, task = task_of(description)
    replace(node, task, kind)


@function("cuGraphExecNodeSetParams")
def set_executable_node(handle: int, which: int, description: int) -> None:
    """Change the task of a node of an executable graph."""
    if i32(description) == graph.GRAPH:
        set_executable_child(handle, which, u64(description + PARAMETERS))
    else:
        kind, task = task_of(description)
        replace_in(handle, which, task, kind)


@function("cuGraphNodeGetParams")
def describe_node(handle: int, out: int) -> None:
    """The structure that describes a node of any kind."""
    node = graph_nodes.node_at(handle)
    describe(node.type, node.task, out)


def describe(type: int, task: Task, out: int) -> None:
    """Fill the structure of a node of a type."""
    put_bytes(out, bytes(NODE))
    put_i32(out, type)
    describe_task(task, out + PARAMETERS)


def describe_task(task: Task, at: int) -> None:
    """Fill the part of the structure that a kind of node has."""
    handles = session().handles
    match task:
        case Launch():
            graph.describe_launch(task, at)
        case FunctionTask(description=description) if len(description) == ctypes.sizeof(Copy3D):
            put_bytes(at + COPY, description)
        case FunctionTask(description=description) | Described(description=description) if description:
            put_bytes(at, description)
        case Child():
            put_u64(at, handles.handle(task.graph))
            put_i32(at + 8, MOVED if task.graph.is_moved else CLONED)
        case EventNode():
            put_u64(at, handles.handle(task.event))
        case stream_memory.Batch():
            stream_memory.describe(task, at)
        case Conditional():
            d = structure_at(ConditionalNode, at, writing=True)
            d.handle, d.type, d.size, d.context = task.condition, task.branch, len(task.bodies), handles.handle(task.context)
            kept = session().keep(task, (ctypes.c_uint64 * len(task.bodies))(*map(handles.handle, task.bodies)))
            d.graphs = ctypes.addressof(kept)
        case Empty():
            pass
        case _:
            raise DriverError(Result.INVALID_VALUE, "a capture has made the node, of work that no structure describes")


@function("cuGraphExecChildGraphNodeSetParams")
def set_executable_child(handle: int, which: int, child: int) -> None:
    """Change the child graph of a node of an executable graph."""
    handles = session().handles
    handles.object(handle, Executable).update_child(handles.object(which, Node), graph.graph_of(child), refused)


def child_task(at: int) -> Child:
    """The graph of a node: a clone of the client's, or the client's own graph, which is moved into the other then."""
    ownership = i32(at + 8)
    if ownership == CLONED:
        return Child(graph.clonable(u64(at)).copy())
    if ownership != MOVED:
        raise DriverError(Result.INVALID_VALUE, f"there is no ownership {ownership} of child graphs")
    child = graph.separate(u64(at))
    if any(node.type == graph.CONDITIONAL for node in child.all_nodes()):
        raise DriverError(Result.NOT_SUPPORTED, "a child graph has no conditional nodes")
    child.is_moved = True
    return Child(child)


# ── conditional nodes ───────────────────────────────────────────────────────────────────


@function("cuGraphConditionalHandleCreate")
def create_condition(out: int, handle: int, context: int, value: int, flags: int) -> None:
    """A condition: a word of memory that kernels set, whose address is the handle.

    It lives as long as its graph.  Launches begin with its default value where the flags say so.
    """
    of(context)
    owner, blocks = graph.graph_of(handle), session().driver.blocks
    block = blocks.allocate(4)
    put_i32(block.address, value)
    resource = UserObject(partial(blocks.free, block.address))
    owner.retain(resource, 1)
    if flags & ASSIGN_DEFAULT:
        owner.defaults[block.address] = value
    put_u64(out, block.address)


def add_conditional(out: int, handle: int, after: int, count: int, description: int, *, data: int = 0) -> None:
    """A conditional node: its condition chooses one of its graphs; the client fills the graphs."""
    d = structure_at(ConditionalNode, description, writing=True)
    branch = member(ConditionalType, d.type, "type of conditional nodes")
    if not d.size or d.size > branch.most_bodies:
        raise DriverError(Result.INVALID_VALUE, f"a conditional node of type {d.type} has no {d.size} graphs")
    if session().driver.blocks.find(d.handle) is None:
        raise DriverError(Result.INVALID_VALUE, f"{d.handle:#x} is no condition")
    bodies = [Graph() for _ in range(d.size)]
    task = Conditional(of(d.context), d.handle, branch, bodies)
    kept = session().keep(task, (ctypes.c_uint64 * d.size)(*map(session().handles.handle, bodies)))
    d.graphs = ctypes.addressof(kept)
    graph.add(out, handle, after, count, task, graph.CONDITIONAL, data=data)


__all__ = ["MAKERS", "NODE", "PARAMETERS", "Maker", "add_any", "add_conditional", "describe", "task_of"]

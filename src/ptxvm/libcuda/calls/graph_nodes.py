"""Nodes of graphs: records of events and waits, memory, and the parameters that clients read and change."""

from __future__ import annotations

from ptxvm.driver.event import Event
from ptxvm.driver.graph import Child, Described, Node
from ptxvm.driver.graph_events import RECORD_EVENT, WAIT_EVENT, EventNode
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.graph_memory import AllocationTask, FreeTask
from ptxvm.driver.launch import FunctionTask, Launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_u64, structure_at
from ptxvm.libcuda.calls.graph import (
    HOST,
    KERNEL,
    MEMCPY,
    MEMSET,
    add,
    copy_task,
    fill_task,
    graph_of,
    host_task,
    separate,
)  # fmt: skip
from ptxvm.libcuda.calls.graph_changes import executable_node, replace
from ptxvm.libcuda.calls.pools import ALLOCATE, FREE, pool_at
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import AllocationNode

# ── events ──────────────────────────────────────────────────────────────────────────────


def event_at(handle: int) -> Event:
    """An event by its handle."""
    return session().handles.object(handle, Event)


def event_node(node: Node) -> EventNode:
    """The task of a node that records or waits; DriverError for another node."""
    if not isinstance(node.task, EventNode):
        raise DriverError(Result.INVALID_VALUE, "the node is not one of an event")
    return node.task


@function("cuGraphAddEventRecordNode")
def add_record(out: int, handle: int, after: int, count: int, event: int) -> None:
    """Add a node that records an event."""
    add(out, handle, after, count, EventNode(event_at(event), records=True), RECORD_EVENT)


@function("cuGraphAddEventWaitNode")
def add_wait(out: int, handle: int, after: int, count: int, event: int) -> None:
    """Add a node that waits for an event."""
    add(out, handle, after, count, EventNode(event_at(event), records=False), WAIT_EVENT)


@function("cuGraphEventRecordNodeGetEvent", "cuGraphEventWaitNodeGetEvent")
def event_of(handle: int, out: int) -> None:
    """The event of a node."""
    put_u64(out, session().handles.handle(event_node(node_at(handle)).event))


@function("cuGraphEventRecordNodeSetEvent", "cuGraphEventWaitNodeSetEvent")
def set_event(handle: int, event: int) -> None:
    """Change the event of a node."""
    node = node_at(handle)
    node.task = EventNode(event_at(event), event_node(node).records)


@function("cuGraphExecEventRecordNodeSetEvent", "cuGraphExecEventWaitNodeSetEvent")
def set_executable_event(handle: int, which: int, event: int) -> None:
    """Change the event of a node of an executable graph."""
    node = executable_node(handle, which)
    node.task = EventNode(event_at(event), event_node(node).records)


# ── memory ──────────────────────────────────────────────────────────────────────────────


@function("cuGraphAddMemAllocNode")
def add_allocation(out: int, handle: int, after: int, count: int, description: int, *, data: int = 0) -> None:
    """Add a node that allocates; its address is the same in all launches."""
    separate(handle)  # a graph that was moved has no new memory
    d = structure_at(AllocationNode, description, writing=True)
    source = pool_at(description)
    made = session().driver.graph_memory.allocate(source.device, d.size, source.kind)
    made.join(graph_of(handle))
    d.address = made.address
    add(out, handle, after, count, AllocationTask(bytes(d), made), ALLOCATE, data=data)


@function("cuGraphAddMemFreeNode")
def add_free(out: int, handle: int, after: int, count: int, address: int, *, data: int = 0) -> None:
    """Add a node that frees an allocation of a graph."""
    separate(handle)
    freed = session().driver.graph_memory.at(address)
    add(out, handle, after, count, FreeTask(address.to_bytes(8, "little"), freed), FREE, data=data)


@function("cuGraphMemAllocNodeGetParams", "cuGraphMemFreeNodeGetParams")
def memory_of(handle: int, out: int) -> None:
    """The structure of a node that allocates, or the address of one that frees."""
    task = node_at(handle).task
    if not isinstance(task, Described):
        raise DriverError(Result.INVALID_VALUE, "the node is not one of memory")
    put_bytes(out, task.description)


# ── parameters of other nodes ───────────────────────────────────────────────────────────────────────


def node_at(handle: int) -> Node:
    """A node by its handle."""
    return session().handles.object(handle, Node)


@function("cuGraphMemcpyNodeSetParams")
def set_copy(handle: int, description: int) -> None:
    """Change the copy of a node."""
    replace(node_at(handle), copy_task(description), MEMCPY)


@function("cuGraphMemsetNodeSetParams")
def set_fill(handle: int, description: int) -> None:
    """Change the fill of a node."""
    replace(node_at(handle), fill_task(description), MEMSET)


@function("cuGraphHostNodeSetParams")
def set_host(handle: int, description: int) -> None:
    """Change the call of a node."""
    replace(node_at(handle), host_task(description), HOST)


@function("cuGraphMemcpyNodeGetParams", "cuGraphMemsetNodeGetParams", "cuGraphHostNodeGetParams")
def description_of(handle: int, out: int) -> None:
    """The structure by which a client described a copy, a fill or a call."""
    task = node_at(handle).task
    if not isinstance(task, FunctionTask) or not task.description:
        raise DriverError(Result.INVALID_VALUE, "the node is no copy, fill or call, or it was captured and has no structure")
    put_bytes(out, task.description)


@function("cuGraphChildGraphNodeGetGraph")
def child(handle: int, out: int) -> None:
    """The child graph of a node."""
    task = node_at(handle).task
    if not isinstance(task, Child):
        raise DriverError(Result.INVALID_VALUE, "the node is no graph")
    put_u64(out, session().handles.handle(task.graph))


@function("cuGraphNodeSetEnabled")
def enable(handle: int, which: int, enabled: int) -> None:
    """Disable or enable a node."""
    node = one_that_is_switched(handle, which)
    node.enabled = bool(enabled)
    if isinstance(node.task, Launch) and node.task.record is not None:
        node.task.record.head.enabled = enabled


@function("cuGraphNodeGetEnabled")
def is_enabled(handle: int, which: int, out: int) -> None:
    """Is a node enabled?"""
    put_i32(out, int(one_that_is_switched(handle, which).enabled))


def one_that_is_switched(handle: int, which: int) -> Node:
    """A node of an executable graph; DriverError for one that is no kernel, copy or fill, and so always enabled."""
    node = executable_node(handle, which)
    if node.type not in (KERNEL, MEMCPY, MEMSET):
        raise DriverError(Result.INVALID_VALUE, "only kernels, copies and fills can be disabled")
    return node


@function("cuGraphExecGetFlags")
def flags(handle: int, out: int) -> None:
    """The flags of an executable graph."""
    put_u64(out, session().handles.object(handle, Executable).flags)

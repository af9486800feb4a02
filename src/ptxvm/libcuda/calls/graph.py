"""Graphs: capture of streams, and nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from ptxvm.driver.captures import CaptureMode
from ptxvm.driver.context import Stream
from ptxvm.driver.graph import Child, Empty, Graph, Node, Task
from ptxvm.driver.graph_edges import COMPLETE, Edge, refuse_loss
from ptxvm.driver.graph_executables import is_updatable
from ptxvm.driver.launch import FunctionTask, Launch
from ptxvm.driver.memory import Rectangle
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import (
    bytes_from,
    function_at,
    i32,
    not_null,
    put_bytes,
    put_i32,
    put_u64,
    put_u64_if,
    structure_at,
    u64,
    u64s,
)
from ptxvm.libcuda.calls.copies import filled_rows, rectangular, task
from ptxvm.libcuda.calls.graph_changes import replace
from ptxvm.libcuda.calls.launch import launch
from ptxvm.libcuda.calls.pools import ALLOCATE, FREE
from ptxvm.libcuda.calls.stream import HOST_FUNCTION
from ptxvm.libcuda.host_calls import host_call
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import Copy3D, HostNode, KernelNode, MemsetNode

KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY = range(6)  # CUgraphNodeType
CONDITIONAL = 13
OF_MEMORY = {ALLOCATE, FREE}
UNIQUE = {ALLOCATE, FREE, CONDITIONAL}  # the nodes of these types have something that no copy can have
NONE, ACTIVE, INVALIDATED = 0, 1, 2  # CUstreamCaptureStatus
EDGE_DATA = 8  # bytes of a CUgraphEdgeData


# ── capture ─────────────────────────────────────────────────────────────────────────────


def capturable(stream: int, mode: int) -> tuple[Stream, CaptureMode]:
    """A stream that is to be captured, and the mode; DriverError for the legacy stream, and for an unknown mode."""
    found = session().stream(stream)
    if found.is_default:
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot be captured")
    return found, member(CaptureMode, mode, "mode of captures")


@function("cuStreamBeginCapture_v2")
def begin_capture(stream: int, mode: int) -> None:
    """Turn the work of a stream into nodes of a graph."""
    found, how = capturable(stream, mode)
    found.begin_capture(how)


@function("cuStreamBeginCapture")
def begin_capture_v1(stream: int) -> None:
    """The same, in the mode that refuses most calls."""
    begin_capture(stream, 0)


@function("cuStreamBeginCaptureToGraph")
def begin_capture_to_graph(stream: int, handle: int, after: int, data: int, count: int, mode: int) -> None:
    """Turn the work of a stream into nodes of an existing graph, after some of its nodes."""
    found, how = capturable(stream, mode)
    found.begin_capture(how, graph_of(handle), edges_at(after, data, count))


@function("cuStreamUpdateCaptureDependencies")
def update_dependencies(stream: int, nodes: int, count: int, flags: int) -> None:
    """Change the nodes before the next node of a capture: add these, or replace all by these."""
    update_dependencies_v2(stream, nodes, 0, count, flags)


@function("cuStreamUpdateCaptureDependencies_v2")
def update_dependencies_v2(stream: int, nodes: int, data: int, count: int, flags: int) -> None:
    """The same, with data of the edges from those nodes."""
    only = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
    found = session().stream(stream)
    if found.capture is None:
        raise DriverError(Result.ILLEGAL_STATE, "the stream is not captured")
    added = edges_at(nodes, data, count)
    found.capture.graph.must_have([*added])
    found.capture.follow(found, added, only=bool(flags & only))


@function("cuStreamEndCapture")
def end_capture(stream: int, out: int) -> None:
    """The graph of the captured work; a client that captures into a graph of its own may ask for none."""
    put_u64_if(out, 0)
    put_u64_if(out, session().handles.handle(session().stream(stream).end_capture()))


@function("cuStreamIsCapturing")
def is_capturing(stream: int, out: int) -> None:
    """Is a stream captured?"""
    put_i32(out, status_of(session().stream(stream)))


def status_of(stream: Stream) -> int:
    """Is a stream captured, and is the capture valid?  DriverError for the legacy stream beside a captured one."""
    if stream.capture is None:
        if stream.is_default and stream.context.captured():
            raise DriverError(Result.STREAM_CAPTURE_IMPLICIT, "the legacy stream would wait for a stream that is captured")
        return NONE
    return INVALIDATED if stream.capture.is_invalid else ACTIVE


@function("cuStreamGetCaptureInfo")
def capture_info(stream: int, status: int, number: int) -> None:
    """Is a stream captured, and by which capture?"""
    capture_info_v2(stream, status, number, 0, 0, 0)


@function("cuStreamGetCaptureInfo_v2")
def capture_info_v2(stream: int, status: int, number: int, graph: int, nodes: int, count: int) -> None:
    """Is a stream captured, by which capture, into which graph, and which nodes come before the next one?"""
    capture_info_v3(stream, status, number, graph, nodes, 0, count)


@function("cuStreamGetCaptureInfo_v3")
def capture_info_v3(stream: int, status: int, number: int, graph: int, nodes: int, edges: int, count: int) -> None:
    """The same, and the data of the edges from those nodes."""
    found = session().stream(stream)
    capture = found.capture
    put_i32(status, status_of(found))
    if capture is None or capture.is_invalid:
        return
    put_u64_if(number, capture.number)
    put_u64_if(graph, session().handles.handle(capture.graph))
    last = capture.last.get(found, {})
    if edges:
        not_null(nodes)
    elif nodes:
        refuse_loss(last.values())
    put_u64_if(count, len(last))
    words = [*map(session().handles.handle, last), *(int.from_bytes(edge.packed(), "little") for edge in last.values())]
    kept = session().keep(found, (ctypes.c_uint64 * max(len(words), 1))(*words))
    put_u64_if(nodes, ctypes.addressof(kept) if last else 0)
    put_u64_if(edges, ctypes.addressof(kept) + 8 * len(last) if last else 0)


@function("cuThreadExchangeStreamCaptureMode")
def exchange_mode(mode: int) -> None:
    """Set how strictly captures of this thread refuse other calls, and give the previous mode."""
    thread, now = session().thread, member(CaptureMode, i32(mode), "mode of captures")
    before, thread.capture_mode = thread.capture_mode, now
    put_i32(mode, before)


# ── graphs ──────────────────────────────────────────────────────────────────────────────


def graph_of(handle: int) -> Graph:
    """A graph by its handle."""
    return session().handles.object(handle, Graph)


def separate(handle: int) -> Graph:
    """A graph that a client still has: DriverError for one that it has moved into another."""
    if graph_of(handle).is_moved:
        raise DriverError(Result.INVALID_VALUE, "the graph was moved into another one, of which it is a part now")
    return graph_of(handle)


def clonable(handle: int) -> Graph:
    """A graph that can be cloned: DriverError where its nodes allocate, free or choose graphs (driver API, cuGraphClone)."""
    if any(node.type in UNIQUE for node in separate(handle).all_nodes()):
        raise DriverError(Result.NOT_SUPPORTED, "a graph with memory nodes or conditional nodes cannot be cloned")
    return graph_of(handle)


def nodes_at(address: int, count: int) -> list[Node]:
    """The nodes whose handles a client lists."""
    return [session().handles.object(handle, Node) for handle in u64s(address, count)]


def edges_at(nodes: int, data: int, count: int) -> dict[Node, Edge]:
    """The nodes whose handles a client lists, and the data of their edges, if it gives them; DriverError for one twice."""
    found = nodes_at(nodes, count)
    if len(set(found)) < len(found):
        raise DriverError(Result.INVALID_VALUE, "a node stands twice among dependencies")
    return dict(zip(found, edge_data(data, count), strict=True))


def edge_data(data: int, count: int) -> list[Edge]:
    """The data of edges; without an address there is none."""
    return (
        [COMPLETE] * count if not data else [Edge.unpacked(bytes_from(data + EDGE_DATA * n, EDGE_DATA)) for n in range(count)]
    )


def list_nodes(out: int, count: int, nodes: Sequence[Node]) -> None:
    """Give a client the nodes that fit its array, or their number."""
    room = u64(count)
    put_u64(count, len(nodes) if not out else min(room, len(nodes)))
    if out:
        for n in range(room):
            put_u64(out + 8 * n, session().handles.handle(nodes[n]) if n < len(nodes) else 0)


@function("cuGraphCreate")
def create(out: int, flags: int) -> None:
    """An empty graph."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of a graph are 0")
    put_u64(out, session().handles.handle(Graph()))


@function("cuGraphDestroy", any_state=True)
def destroy(handle: int) -> None:
    """Forget a graph, its nodes and nested graphs."""
    handles, graph = session().handles, separate(handle)
    graph.destroy()
    for each in (*graph.all_nodes(), *graph.all_graphs()):
        if id(each) in handles.numbers:
            handles.drop(handles.numbers[id(each)])


@function("cuGraphClone")
def clone(out: int, handle: int) -> None:
    """A copy of a graph."""
    put_u64(out, session().handles.handle(clonable(handle).copy()))


@function("cuGraphNodeFindInClone")
def find_in_clone(out: int, node: int, handle: int) -> None:
    """The copy of a node in a copy of its graph."""
    original = session().handles.object(node, Node)
    for twin, origin in graph_of(handle).origins.items():
        if origin is original:
            put_u64(out, session().handles.handle(twin))
            return
    raise DriverError(Result.INVALID_VALUE, "the graph is no copy of the node's")


@function("cuGraphGetNodes")
def all_nodes(handle: int, out: int, count: int) -> None:
    """The nodes of a graph."""
    list_nodes(out, count, graph_of(handle).nodes)


@function("cuGraphGetRootNodes")
def roots(handle: int, out: int, count: int) -> None:
    """The nodes that follow no other."""
    list_nodes(out, count, graph_of(handle).roots())


def list_edges(lists: Mapping[int, Sequence[Node]], data: int, count: int, edges: Sequence[Edge]) -> None:
    """Give a client lists of nodes, by their addresses, and the data of their edges.

    DriverError where it asks for nodes alone, and an edge has data; where it asks for data alone; all but its number is
    optional.
    """
    room = u64(count)
    if data:
        for out in lists:
            not_null(out)
    elif any(lists):
        refuse_loss(edges[:room])
    for out, nodes in lists.items():
        put_u64(count, room)
        list_nodes(out, count, nodes)
    if data:
        put_bytes(data, b"".join(edge.packed() for edge in edges[:room]))


@function("cuGraphGetEdges")
def edges(handle: int, before: int, after: int, count: int) -> None:
    """The pairs of a node and one that follows it."""
    edges_v2(handle, before, after, 0, count)


@function("cuGraphGetEdges_v2")
def edges_v2(handle: int, before: int, after: int, data: int, count: int) -> None:
    """The same, and the data of the edges."""
    found = graph_of(handle).edges()
    lists = {before: [each[0] for each in found], after: [each[1] for each in found]}
    list_edges(lists, data, count, [each[2] for each in found])


@function("cuGraphAddDependencies")
def add_dependencies(handle: int, before: int, after: int, count: int) -> None:
    """Let nodes follow others."""
    add_dependencies_v2(handle, before, after, 0, count)


@function("cuGraphAddDependencies_v2")
def add_dependencies_v2(handle: int, before: int, after: int, data: int, count: int) -> None:
    """Let nodes follow others, with data of the edges."""
    graph = graph_of(handle)
    for first, second, edge in zip(nodes_at(before, count), nodes_at(after, count), edge_data(data, count), strict=True):
        graph.order(second, {first: edge})


@function("cuGraphNodeGetType")
def node_type(node: int, out: int) -> None:
    """The kind of a node."""
    put_i32(out, session().handles.object(node, Node).type)


@function("cuGraphNodeGetDependencies")
def dependencies(node: int, out: int, count: int) -> None:
    """The nodes that a node follows."""
    dependencies_v2(node, out, 0, count)


@function("cuGraphNodeGetDependencies_v2")
def dependencies_v2(node: int, out: int, data: int, count: int) -> None:
    """The nodes that a node follows, and the data of the edges."""
    after = session().handles.object(node, Node).after
    list_edges({out: [*after]}, data, count, [*after.values()])


@function("cuGraphNodeGetDependentNodes")
def dependents(node: int, out: int, count: int) -> None:
    """The nodes that follow a node."""
    dependents_v2(node, out, 0, count)


@function("cuGraphNodeGetDependentNodes_v2")
def dependents_v2(node: int, out: int, data: int, count: int) -> None:
    """The nodes that follow a node, and the data of the edges."""
    found = session().handles.object(node, Node)
    after = {each: each.after[found] for each in found.graph.nodes if found in each.after}
    list_edges({out: [*after]}, data, count, [*after.values()])


@function("cuGraphRemoveDependencies")
def remove_dependencies(handle: int, before: int, after: int, count: int) -> None:
    """Remove dependencies between nodes."""
    remove_dependencies_v2(handle, before, after, 0, count)


@function("cuGraphRemoveDependencies_v2")
def remove_dependencies_v2(handle: int, before: int, after: int, data: int, count: int) -> None:
    """Remove dependencies; DriverError where there is none with such data."""
    graph, removed = graph_of(handle), zip(nodes_at(before, count), nodes_at(after, count), edge_data(data, count), strict=True)
    must_be_without_memory(graph)
    for first, second, edge in removed:
        graph.must_have([first, second])
        if second.after.get(first) != edge:
            raise DriverError(Result.INVALID_VALUE, "the node does not follow the other by such an edge")
        del second.after[first]


def must_be_without_memory(graph: Graph) -> None:
    """DriverError for a graph whose nodes allocate or free: it keeps its nodes and dependencies."""
    if any(node.type in OF_MEMORY for node in graph.nodes):
        raise DriverError(Result.INVALID_VALUE, "a graph whose nodes allocate or free keeps its nodes and dependencies")


@function("cuGraphDestroyNode")
def destroy_node(handle: int) -> None:
    """Remove a node from its graph."""
    node = session().handles.object(handle, Node)
    must_be_without_memory(node.graph)
    if is_updatable(node):
        raise DriverError(Result.INVALID_VALUE, "a node that kernels change stays in its graph")
    node.graph.remove(node)
    session().handles.drop(handle)


# ── nodes ───────────────────────────────────────────────────────────────────────────────


def add(out: int, handle: int, after: int, count: int, task: Task, type: int, *, data: int = 0) -> None:
    """A new node."""
    put_u64(out, session().handles.handle(graph_of(handle).add(task, type, edges_at(after, data, count))))


def kernel_task(description: int) -> Launch:
    """The launch that a structure describes."""
    d = structure_at(KernelNode, description)
    return launch(d.function or d.kernel, tuple(d.grid), tuple(d.block), d.shared, d.parameters, d.extra)


def copy_task(description: int) -> FunctionTask:
    """The copy that a structure describes."""
    d = Copy3D.from_buffer_copy(structure_at(Copy3D, description))
    return task(rectangular(d), bytes(d))


def fill_task(description: int) -> FunctionTask:
    """The fill that a structure describes."""
    d = structure_at(MemsetNode, description)
    return task(filled_rows(Rectangle(d.target, d.pitch, d.height), d.value, d.element, d.width, d.height), bytes(d))


def host_task(description: int) -> FunctionTask:
    """The call of a function of the client that a structure describes."""
    d = structure_at(HostNode, description)
    return FunctionTask(host_call(function_at(HOST_FUNCTION, d.function), d.argument), bytes(d), is_short=False)


@function("cuGraphAddKernelNode", "cuGraphAddKernelNode_v2")
def add_kernel(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A launch as a node."""
    add(out, handle, after, count, kernel_task(description), KERNEL)


@function("cuGraphAddMemcpyNode")
def add_copy(out: int, handle: int, after: int, count: int, description: int, context: int) -> None:
    """A copy as a node."""
    add(out, handle, after, count, copy_task(description), MEMCPY)


@function("cuGraphAddMemsetNode")
def add_fill(out: int, handle: int, after: int, count: int, description: int, context: int) -> None:
    """A fill as a node."""
    add(out, handle, after, count, fill_task(description), MEMSET)


@function("cuGraphAddHostNode")
def add_host(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A call of a function of the client as a node."""
    add(out, handle, after, count, host_task(description), HOST)


@function("cuGraphAddEmptyNode")
def add_empty(out: int, handle: int, after: int, count: int) -> None:
    """A node that only joins others."""
    add(out, handle, after, count, Empty(), EMPTY)


@function("cuGraphAddChildGraphNode")
def add_child(out: int, handle: int, after: int, count: int, child: int) -> None:
    """A copy of a graph as a node."""
    add(out, handle, after, count, Child(clonable(child).copy()), GRAPH)


@function("cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2")
def set_kernel(node: int, description: int) -> None:
    """Change the launch of a node."""
    replace(session().handles.object(node, Node), kernel_task(description), KERNEL)


@function("cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams_v2")
def get_kernel(node: int, description: int) -> None:
    """The launch of a node."""
    task = session().handles.object(node, Node).task
    if not isinstance(task, Launch):
        raise DriverError(Result.INVALID_VALUE, "the node is no launch")
    describe_launch(task, description)


def describe_launch(task: Launch, description: int) -> None:
    """Fill the structure of a launch; its arguments live as long as the launch."""
    pointers, data = parameter_pointers(task)
    session().keep(task, (pointers, data))
    d = structure_at(KernelNode, description, writing=True)
    d.function, d.shared = session().handles.handle(task.kernel), task.configuration.shared
    d.grid, d.block = task.configuration.grid, task.configuration.block
    d.parameters, d.extra = ctypes.addressof(pointers), 0


def parameter_pointers(task: Launch) -> tuple[ctypes.Array[ctypes.c_uint64], list[ctypes.Array[ctypes.c_char]]]:
    """The arguments of a launch as an array of pointers, and the values behind them."""
    data = [ctypes.create_string_buffer(each, len(each)) for each in task.arguments]
    return (ctypes.c_uint64 * max(len(data), 1))(*map(ctypes.addressof, data)), data

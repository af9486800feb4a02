"""Nodes of graphs: events, memory, and what clients read and change (driver API, "Graph Management")."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.structures import (
    AllocationNode,
    BatchNode,
    Copy3D,
    HostNode,
    KernelNode,
    Location,
    MemoryOperation,
    MemsetNode,
    PoolProperties,
)

INVALID_VALUE, NOT_READY, ILLEGAL_ADDRESS = 1, 600, 700


def kernel_node(cuda, graph, name, cell, value, after=()):
    """A launch of a kernel as a node, behind others."""
    arguments = [c_uint64(ctypes.addressof(cell)), c_uint(value)]
    pointers = (c_void_p * 2)(*map(ctypes.addressof, arguments))
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, name)
    one = (c_uint * 3)(1, 1, 1)
    described = KernelNode(kernel.value, one, one, 0, ctypes.addressof(pointers), 0)
    before = (c_void_p * len(after))(*(each.value for each in after))
    return cuda.handle("cuGraphAddKernelNode_v2", graph, before, c_size_t(len(after)), byref(described))


def test_events_are_nodes(cuda):
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    first, second = (cuda.handle("cuEventCreate", c_uint(0)) for _ in range(2))
    waits = kernel_node(cuda, graph, b"await", cuda.flag, 1)
    records = cuda.handle("cuGraphAddEventRecordNode", graph, byref(waits), c_size_t(1), first)
    kernel_node(cuda, graph, b"put", cuda.cell, 4, [records])
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphLaunch(executable, stream)
    assert cuda.library.cuEventQuery(first) == NOT_READY
    cuda.flag.value = 1
    cuda.cuEventSynchronize(first)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 4
    told = c_void_p()
    cuda.cuGraphEventRecordNodeGetEvent(records, byref(told))
    assert told.value == first.value
    cuda.cuGraphExecEventRecordNodeSetEvent(executable, records, second)
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuEventSynchronize(second)


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("is_nested", [False, True])
def test_no_node_runs_behind_a_kernel_that_failed(cuda, is_nested):
    """After a fault "any further CUDA work will return the same error" (driver API, CUDA_ERROR_ILLEGAL_ADDRESS)."""
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    inner = cuda.handle("cuGraphCreate", 0) if is_nested else graph
    fails = kernel_node(cuda, inner, b"wild", cuda.cell, 0)
    last = kernel_node(cuda, inner, b"append", cuda.cell, 1, [fails])
    if is_nested:
        last = cuda.handle("cuGraphAddChildGraphNode", graph, None, c_size_t(0), inner)
    kernel_node(cuda, graph, b"append", cuda.cell, 2, [last])
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert cuda.cell.value == 0


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("where", ["in the graph", "before the graph"])
def test_a_wait_for_an_event_of_a_graph_ends_when_a_kernel_has_failed(cuda, where):
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    event = cuda.handle("cuEventCreate", c_uint(0))
    cuda.launch(stream, b"await", cuda.flag, 1)
    if where == "before the graph":
        cuda.launch(stream, b"wild")
    name = b"wild" if where == "in the graph" else b"put"
    before = kernel_node(cuda, graph, name, cuda.cell, 0)
    cuda.handle("cuGraphAddEventRecordNode", graph, byref(before), c_size_t(1), event)
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    ended = []
    waiting = threading.Thread(target=lambda: ended.append(cuda.library.cuEventSynchronize(event)), daemon=True)
    waiting.start()
    cuda.flag.value = 1
    waiting.join(60)
    assert ended == [ILLEGAL_ADDRESS]


def test_a_node_waits_for_an_event_of_another_stream(cuda):
    graph, other, stream = cuda.handle("cuGraphCreate", 0), cuda.stream(), cuda.stream()
    event = cuda.handle("cuEventCreate", c_uint(2))
    cuda.launch(other, b"await", cuda.flag, 1)
    cuda.launch(other, b"append", cuda.cell, 1)
    cuda.cuEventRecord(event, other)
    waits = cuda.handle("cuGraphAddEventWaitNode", graph, None, c_size_t(0), event)
    kernel_node(cuda, graph, b"append", cuda.cell, 2, [waits])
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 12


def test_nodes_are_read_changed_and_skipped(cuda):
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    cell = ctypes.addressof(cuda.cell)
    fill = MemsetNode(cell, 4, 7, 4, 1, 1)
    clears = cuda.handle("cuGraphAddMemsetNode", graph, None, c_size_t(0), byref(fill), None)
    appends = kernel_node(cuda, graph, b"append", cuda.cell, 5, [clears])
    told = MemsetNode()
    cuda.cuGraphMemsetNodeGetParams(clears, byref(told))
    assert (told.target, told.value, told.element, told.width) == (cell, 7, 4, 1)
    fill.value = 3
    cuda.cuGraphMemsetNodeSetParams(clears, byref(fill))
    assert cuda.library.cuGraphMemsetNodeGetParams(appends, byref(told)) == INVALID_VALUE
    executable, enabled = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), c_uint(9)
    for wanted, runs in ((35, 1), (3, 0)):
        cuda.cuGraphNodeSetEnabled(executable, appends, c_uint(runs))
        cuda.cuGraphNodeGetEnabled(executable, appends, byref(enabled))
        cuda.cuGraphLaunch(executable, stream)
        cuda.cuStreamSynchronize(stream)
        assert (cuda.cell.value, enabled.value) == (wanted, runs)
    empty = cuda.handle("cuGraphAddEmptyNode", graph, None, c_size_t(0))
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    assert cuda.library.cuGraphNodeSetEnabled(executable, empty, c_uint(1)) == INVALID_VALUE  # kernels, copies and fills are
    assert cuda.library.cuGraphNodeGetEnabled(executable, empty, byref(enabled)) == INVALID_VALUE
    count = c_size_t()
    cuda.cuGraphRemoveDependencies(graph, byref(clears), byref(appends), c_size_t(1))
    cuda.cuGraphNodeGetDependencies(appends, None, byref(count))
    assert count.value == 0
    assert cuda.library.cuGraphRemoveDependencies(graph, byref(clears), byref(appends), c_size_t(1)) == INVALID_VALUE


def test_memory_and_calls_are_nodes(cuda):
    graph, stream, called = cuda.handle("cuGraphCreate", 0), cuda.stream(), []
    described = AllocationNode(pool=PoolProperties(type=1, location=Location(1, 0)), size=64)
    allocates = cuda.handle("cuGraphAddMemAllocNode", graph, None, c_size_t(0), byref(described))
    cell = c_int.from_address(described.address)
    puts = kernel_node(cuda, graph, b"put", cell, 6, [allocates])
    append = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: called.append(cell.value))
    call = HostNode(ctypes.cast(append, c_void_p).value, 0)
    calls = cuda.handle("cuGraphAddHostNode", graph, byref(puts), c_size_t(1), byref(call))
    cuda.handle("cuGraphAddMemFreeNode", graph, byref(calls), c_size_t(1), c_uint64(described.address))
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    for _ in range(2):
        cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert called == [6, 6]
    told = HostNode()
    cuda.cuGraphHostNodeGetParams(calls, byref(told))
    assert told.function == call.function
    cuda.cuGraphExecDestroy(executable)
    cuda.cuGraphDestroy(graph)
    assert cuda.library.cuMemFree_v2(c_uint64(described.address)) == INVALID_VALUE  # it is gone with the graph


def described(cuda, node):
    """The structure of a node of any kind: its type and its part."""
    told = (ctypes.c_char * 256)(*b"\xff" * 256)
    cuda.cuGraphNodeGetParams(node, told)
    return c_int.from_buffer(told).value, told


def test_nodes_of_any_kind_are_described_and_made_again(cuda):
    """What describes a node makes another that does the same (driver API, `cuGraphNodeGetParams`)."""
    graph, event = cuda.handle("cuGraphCreate", 0), cuda.handle("cuEventCreate", c_uint(0))
    cell = ctypes.addressof(cuda.cell)
    called = []
    append = ctypes.CFUNCTYPE(None, c_void_p)(called.append)
    fill, call = MemsetNode(cell, 4, 7, 4, 1, 1), HostNode(ctypes.cast(append, c_void_p).value, 5)
    copy = Copy3D(
        source_type=2, source_device=cell, target_type=2, target_device=ctypes.addressof(cuda.flag), width=4, height=1
    )
    copy.depth = 1
    operations = (MemoryOperation * 1)(MemoryOperation(2, cell, 8))  # write 32 bits
    batch = BatchNode(cuda.handle("cuCtxGetCurrent").value, 1, ctypes.addressof(operations), 0)
    none = (graph, None, c_size_t(0))
    child = cuda.handle("cuGraphCreate", 0)
    kernel_node(cuda, child, b"append", cuda.cell, 2)
    nodes = [
        cuda.handle("cuGraphAddMemsetNode", *none, byref(fill), None),
        kernel_node(cuda, graph, b"append", cuda.cell, 3),
        cuda.handle("cuGraphAddMemcpyNode", *none, byref(copy), None),
        cuda.handle("cuGraphAddHostNode", *none, byref(call)),
        cuda.handle("cuGraphAddEventRecordNode", *none, event),
        cuda.handle("cuGraphAddEmptyNode", *none),
        cuda.handle("cuGraphAddChildGraphNode", *none, child),
        cuda.handle("cuGraphAddBatchMemOpNode", *none, byref(batch)),
    ]
    again, last, stream = cuda.handle("cuGraphCreate", 0), [], cuda.stream()
    kinds = []
    for node in nodes:
        kind, told = described(cuda, node)
        kinds.append(kind)
        after = (c_void_p * len(last))(*last)
        last = [cuda.handle("cuGraphAddNode_v2", again, after, None, c_size_t(len(last)), told).value]
    assert kinds == [2, 0, 1, 3, 7, 5, 4, 12]
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", again, c_uint64(0)), stream)
    cuda.cuStreamSynchronize(stream)
    assert (cuda.flag.value, called, cuda.cell.value) == (73, [5], 8)  # 732 before the last node
    assert cuda.library.cuEventQuery(event) == 0


def test_captured_copies_and_fills_are_described(cuda):
    stream, graph = cuda.stream(), c_void_p()
    flag, cell = (c_uint64(ctypes.addressof(each)) for each in (cuda.flag, cuda.cell))
    cuda.cuStreamBeginCapture_v2(stream, 0)
    cuda.cuMemsetD32Async(cell, c_uint(6), c_size_t(1), stream)
    cuda.cuMemcpyDtoDAsync_v2(flag, cell, c_size_t(4), stream)
    cuda.cuStreamEndCapture(stream, byref(graph))
    nodes = (c_void_p * 2)()
    cuda.cuGraphGetNodes(graph, nodes, byref(c_size_t(2)))
    fill, copy = MemsetNode(), Copy3D()
    cuda.cuGraphMemsetNodeGetParams(c_void_p(nodes[0]), byref(fill))
    cuda.cuGraphMemcpyNodeGetParams(c_void_p(nodes[1]), byref(copy))
    assert (fill.value, fill.width, fill.height, copy.width, copy.height) == (6, 1, 1, 4, 1)
    fill.value = 9
    cuda.cuGraphMemsetNodeSetParams(c_void_p(nodes[0]), byref(fill))
    cuda.cuGraphMemcpyNodeSetParams(c_void_p(nodes[1]), byref(copy))
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.flag.value == 9


def test_nodes_of_memory_are_described(cuda):
    graph, told, address = cuda.handle("cuGraphCreate", 0), AllocationNode(), c_uint64()
    asked = AllocationNode(pool=PoolProperties(type=1, location=Location(1, 0)), size=64)
    allocates = cuda.handle("cuGraphAddMemAllocNode", graph, None, c_size_t(0), byref(asked))
    frees = cuda.handle("cuGraphAddMemFreeNode", graph, byref(allocates), c_size_t(1), c_uint64(asked.address))
    cuda.cuGraphMemAllocNodeGetParams(allocates, byref(told))
    cuda.cuGraphMemFreeNodeGetParams(frees, byref(address))
    assert (told.size, told.address, address.value) == (64, asked.address, asked.address)
    assert described(cuda, allocates)[0] == 10


def test_graphs_and_nodes_have_names(cuda, tmp_path):
    graph, told = cuda.handle("cuGraphCreate", 0), c_uint64()
    first = kernel_node(cuda, graph, b"append", cuda.cell, 1)
    second = kernel_node(cuda, graph, b"put", cuda.cell, 1, [first])
    cuda.cuGraphNodeGetContainingGraph(first, byref(told))
    assert told.value == graph.value
    numbers = []
    for node in (first, second):
        cuda.cuGraphNodeGetLocalId(node, byref(told))
        numbers.append(told.value)
    assert len(set(numbers)) == 2
    cuda.cuGraphDebugDotPrint(graph, str(tmp_path / "graph.dot").encode(), 0)
    text = (tmp_path / "graph.dot").read_text()
    assert f"n{numbers[0]} -> n{numbers[1]};" in text
    assert "kernel append" in text


def test_a_node_takes_a_kernel_where_it_has_no_function(cuda):
    """Driver API, CUDA_KERNEL_NODE_PARAMS."""
    arguments = [c_uint64(ctypes.addressof(cuda.cell)), c_uint(8)]
    pointers, one = (c_void_p * 2)(*map(ctypes.addressof, arguments)), (c_uint * 3)(1, 1, 1)
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"put")
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    asked = KernelNode(0, one, one, 0, ctypes.addressof(pointers), 0, kernel.value)
    cuda.handle("cuGraphAddKernelNode_v2", graph, None, c_size_t(0), byref(asked))
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 8

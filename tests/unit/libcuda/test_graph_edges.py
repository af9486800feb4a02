"""Data of edges of graphs (driver API, `CUgraphEdgeData`).

Which edges a capture makes of attributes is as the CUDA C++ Programming Guide has it ("Programmatic Dependent Launch and
Synchronization", "Use in CUDA Graphs").
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_conditional_nodes import EMPTY, add, append, described

from ptxvm.libcuda.structures import LaunchAttribute, LaunchConfig

INVALID_VALUE, LOSSY_QUERY, UPDATE_FAILURE = 1, 402, 910
SERIALIZATION, TRIGGERING, BEGINNING = 6, 7, 12  # CUlaunchAttributeID
PLAIN, TRIGGERED, BEGUN, ORDERED = b"\0\0\0", b"\1\0\1", b"\2\0\1", b"\2\0\0"  # from_port, to_port, type


def data(*edges):
    return b"".join(each.ljust(8, b"\0") for each in edges)


def handles(*nodes):
    return (c_void_p * max(len(nodes), 1))(*(each.value for each in nodes))


def two_kernels(cuda, edge=None):
    """A graph of two kernels, and its nodes; one edge leads from the first to the second."""
    graph = cuda.handle("cuGraphCreate", 0)
    first, second = add(cuda, graph, append(cuda, 1)), add(cuda, graph, append(cuda, 2))
    cuda.cuGraphAddDependencies_v2(graph, handles(first), handles(second), edge and data(edge), c_size_t(1))
    return graph, first, second


def edges_of(cuda, graph):
    """The data of the edges of a graph."""
    count, before, after, found = c_size_t(8), (c_void_p * 8)(), (c_void_p * 8)(), ctypes.create_string_buffer(64)
    cuda.cuGraphGetEdges_v2(graph, before, after, found, byref(count))
    return [found.raw[8 * n : 8 * n + 3] for n in range(count.value)]


@pytest.mark.parametrize("edge", [PLAIN, TRIGGERED, BEGUN, ORDERED])
def test_a_graph_its_nodes_and_its_clone_tell_the_data_of_an_edge(cuda, edge):
    graph, first, second = two_kernels(cuda, edge)
    assert edges_of(cuda, graph) == edges_of(cuda, cuda.handle("cuGraphClone", graph)) == [edge]
    for name, node in (("cuGraphNodeGetDependencies_v2", second), ("cuGraphNodeGetDependentNodes_v2", first)):
        count, found = c_size_t(1), ctypes.create_string_buffer(8)
        cuda.library[name](node, (c_void_p * 1)(), found, byref(count))
        assert found.raw == data(edge)
    stream, executable = cuda.stream(), cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 12


def test_a_call_that_would_lose_data_fails_unless_it_asks_for_the_number_alone(cuda):
    graph, first, second = two_kernels(cuda, TRIGGERED)
    out, count = handles(first), c_size_t(1)
    asked = [("cuGraphGetEdges", graph, out, out), ("cuGraphGetEdges_v2", graph, out, out, None),
             ("cuGraphNodeGetDependencies", second, out), ("cuGraphNodeGetDependentNodes", first, out)]  # fmt: skip
    for name, *arguments in asked:
        assert cuda.library[name](*arguments, byref(count)) == LOSSY_QUERY, name
    cuda.cuGraphGetEdges(graph, None, None, byref(count))
    assert count.value == 1
    some = ctypes.create_string_buffer(8)
    assert cuda.library.cuGraphGetEdges_v2(graph, None, None, some, byref(count)) == INVALID_VALUE


@pytest.mark.parametrize(
    "edge",
    [b"\1\0\0", b"\0\0\1", b"\3\0\1", b"\1\1\1", b"\1\0\2", b"\1\0\1\1"],
    ids=["port without type", "type without port", "unknown port", "port of the second", "unknown type", "reserved byte"],
)
def test_edges_that_there_are_not_are_refused(cuda, edge):
    graph = cuda.handle("cuGraphCreate", 0)
    first, second = add(cuda, graph, append(cuda, 1)), add(cuda, graph, append(cuda, 2))
    call = cuda.library.cuGraphAddDependencies_v2
    assert call(graph, handles(first), handles(second), data(edge), c_size_t(1)) == INVALID_VALUE
    assert edges_of(cuda, graph) == []


def test_programmatic_edges_are_between_kernels(cuda):
    graph = cuda.handle("cuGraphCreate", 0)
    kernel, empty = add(cuda, graph, append(cuda, 1)), add(cuda, graph, described(EMPTY))
    call = cuda.library.cuGraphAddDependencies_v2
    assert call(graph, handles(kernel), handles(empty), data(TRIGGERED), c_size_t(1)) == INVALID_VALUE
    assert call(graph, handles(empty), handles(kernel), data(TRIGGERED), c_size_t(1)) == INVALID_VALUE
    assert call(graph, handles(empty), handles(kernel), data(ORDERED), c_size_t(1)) == INVALID_VALUE
    assert call(graph, handles(kernel), handles(empty), data(ORDERED), c_size_t(1)) == 0


def test_a_dependency_is_made_once_and_removed_by_its_data(cuda):
    graph, first, second = two_kernels(cuda, TRIGGERED)
    pair = graph, handles(first), handles(second)
    assert cuda.library.cuGraphAddDependencies(*pair, c_size_t(1)) == INVALID_VALUE
    assert cuda.library.cuGraphRemoveDependencies(*pair, c_size_t(1)) == INVALID_VALUE
    assert cuda.library.cuGraphRemoveDependencies_v2(*pair, data(BEGUN), c_size_t(1)) == INVALID_VALUE
    cuda.cuGraphRemoveDependencies_v2(*pair, data(TRIGGERED), c_size_t(1))
    assert edges_of(cuda, graph) == []


def test_a_new_node_has_data_of_its_edges_and_no_node_twice_before_it(cuda):
    graph, first, second = two_kernels(cuda)
    call, made, node = cuda.library.cuGraphAddNode_v2, c_void_p(), append(cuda, 3)
    edges = data(TRIGGERED, PLAIN)
    assert call(byref(made), graph, handles(first, second), edges, c_size_t(2), byref(node)) == 0
    assert edges_of(cuda, graph) == [PLAIN, TRIGGERED, PLAIN]
    assert call(byref(made), graph, handles(first, first), edges, c_size_t(2), byref(node)) == INVALID_VALUE


def test_another_edge_is_another_topology(cuda):
    executable = cuda.handle("cuGraphInstantiateWithFlags", two_kernels(cuda, TRIGGERED)[0], c_uint64(0))
    for edge, expected in ((TRIGGERED, 0), (BEGUN, UPDATE_FAILURE), (None, UPDATE_FAILURE)):
        other = two_kernels(cuda, edge)[0]
        assert cuda.library.cuGraphExecUpdate_v2(executable, other, byref((c_uint64 * 3)())) == expected


# ── captures ────────────────────────────────────────────────────────────────────────────


def launched(cuda, stream, *attributes):
    """Put a launch with attributes on a stream: pairs of a number, and words."""
    kernel, given = cuda.handle("cuModuleGetFunction", cuda.module, b"append"), (LaunchAttribute * 2)()
    for place, (number, *words) in zip(given, attributes, strict=False):
        place.id, place.value[: len(words)] = number, words
    one, values = (c_uint * 3)(1, 1, 1), [c_uint64(ctypes.addressof(cuda.cell)), c_uint(1)]
    config = LaunchConfig(one, one, 0, stream.value, ctypes.addressof(given), len(attributes))
    cuda.cuLaunchKernelEx(byref(config), kernel, (c_void_p * 2)(*map(ctypes.addressof, values)), None)


def captured(cuda, stream):
    graph = c_void_p()
    cuda.cuStreamEndCapture(stream, byref(graph))
    return graph


def test_a_capture_makes_programmatic_edges_of_serialization_between_kernels(cuda):
    stream = cuda.stream()
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    cuda.cuMemsetD8Async(cuda.memory, 0, c_size_t(4), stream)
    for allowed in (1, 1, 0):
        launched(cuda, stream, (SERIALIZATION, allowed))
    assert edges_of(cuda, captured(cuda, stream)) == [PLAIN, TRIGGERED, PLAIN]


@pytest.mark.parametrize(
    ("number", "words", "edge", "edge_of_a_fill"),
    [
        (TRIGGERING, (0, 0), TRIGGERED, PLAIN),
        (TRIGGERING, (0, 1), BEGUN, PLAIN),
        (BEGINNING, (0,), ORDERED, ORDERED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("next_is_a_kernel", [True, False])
def test_a_capture_makes_edges_of_events_of_launches(cuda, number, words, edge, edge_of_a_fill, next_is_a_kernel):
    first, second, event = cuda.stream(), cuda.stream(), cuda.handle("cuEventCreate", c_uint(2))
    cuda.cuStreamBeginCapture_v2(first, c_int(0))
    launched(cuda, first, (number, event.value & 0xFFFF_FFFF, event.value >> 32, *words))
    cuda.cuStreamWaitEvent(second, event, 0)
    if next_is_a_kernel:
        launched(cuda, second)
    else:
        cuda.cuMemsetD8Async(cuda.memory, 0, c_size_t(4), second)
    joined = cuda.handle("cuEventCreate", c_uint(2))
    cuda.cuEventRecord(joined, second)
    cuda.cuStreamWaitEvent(first, joined, 0)
    assert edges_of(cuda, captured(cuda, first)) == [edge if next_is_a_kernel else edge_of_a_fill]


def test_the_nodes_before_the_next_one_have_data(cuda):
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    first, second = add(cuda, graph, append(cuda, 1)), add(cuda, graph, append(cuda, 2))
    cuda.cuStreamBeginCaptureToGraph(stream, graph, handles(first), data(TRIGGERED), c_size_t(1), c_int(0))
    cuda.cuStreamUpdateCaptureDependencies_v2(stream, handles(second), data(BEGUN), c_size_t(1), c_uint(0))
    status, count, nodes, edges = c_int(), c_size_t(), c_void_p(), ctypes.POINTER(c_uint64)()
    ask = cuda.library.cuStreamGetCaptureInfo_v3
    assert ask(stream, byref(status), None, None, byref(nodes), None, byref(count)) == LOSSY_QUERY
    assert ask(stream, byref(status), None, None, None, byref(edges), byref(count)) == INVALID_VALUE
    assert ask(stream, byref(status), None, None, byref(nodes), byref(edges), byref(count)) == 0
    assert bytes((c_uint64 * 2)(*edges[:2])) == data(TRIGGERED, BEGUN)
    cuda.cuStreamUpdateCaptureDependencies(stream, handles(second), c_size_t(1), c_uint(0))  # two edges become the stricter one
    launched(cuda, stream)
    captured(cuda, stream)
    assert edges_of(cuda, graph) == [TRIGGERED, PLAIN]


def test_a_capture_follows_nodes_of_its_own_graph_alone(cuda):
    graph, other, stream = cuda.handle("cuGraphCreate", 0), cuda.handle("cuGraphCreate", 0), cuda.stream()
    theirs = add(cuda, other, append(cuda, 1))
    begin = cuda.library.cuStreamBeginCaptureToGraph
    assert begin(stream, graph, handles(theirs), None, c_size_t(1), c_int(0)) == INVALID_VALUE
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    update = cuda.library.cuStreamUpdateCaptureDependencies
    assert update(stream, handles(theirs), c_size_t(1), c_uint(1)) == INVALID_VALUE
    captured(cuda, stream)

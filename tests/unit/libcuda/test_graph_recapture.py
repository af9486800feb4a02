"""Captures of the work that a graph has already (driver API 13.3, `cuStreamBeginRecaptureToGraph`)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.structures import KernelNode

INVALID_VALUE, UNSUPPORTED, INVALIDATED, RECAPTURE_FAILURE = 1, 900, 901, 918
KERNEL, ELIGIBLE = 0, 0  # CUgraphNodeType, CUgraphRecaptureStatus
PARAMETERS = 16  # bytes of a CUgraphNodeParams before them
CALLBACK = ctypes.CFUNCTYPE(c_int, *[c_void_p] * 4, c_int)


def work(cuda, stream, *digits):
    for digit in digits:
        cuda.launch(stream, b"append", cuda.cell, digit)


def captured(cuda, stream):
    graph = c_void_p()
    cuda.cuStreamEndCapture(stream, byref(graph))
    return graph


@pytest.fixture
def graph(cuda):
    """A graph that appends 1 and 2 to the cell."""
    stream = cuda.stream()
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    work(cuda, stream, 1, 2)
    return captured(cuda, stream)


def begin(cuda, graph, callback=None, data=0):
    """A stream that is captured again."""
    stream = cuda.stream()
    cuda.cuStreamBeginRecaptureToGraph(stream, c_int(0), graph, callback, c_void_p(data))
    return stream


def launched(cuda, executable):
    """What a launch appends to the cell."""
    cuda.cell.value, stream = 0, cuda.stream()
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    return cuda.cell.value


def instantiated(cuda, graph):
    return cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))


def test_nodes_take_new_parameters(cuda, graph):
    executable = instantiated(cuda, graph)
    stream = begin(cuda, graph)
    work(cuda, stream, 3, 4)
    assert captured(cuda, stream).value == graph.value
    assert (launched(cuda, executable), launched(cuda, instantiated(cuda, graph))) == (12, 34)
    cuda.cuGraphExecUpdate_v2(executable, graph, byref((c_uint64 * 3)()))
    assert launched(cuda, executable) == 34


def digit_of(parameters):
    node = KernelNode.from_address(parameters + PARAMETERS)
    return c_uint.from_address(c_uint64.from_address(node.parameters + 8).value).value


def test_the_client_is_asked_for_nodes_whose_parameters_change(cuda, graph):
    told = []

    def asked(data, node, before, now, status):
        types = [c_uint.from_address(each).value for each in (before, now)]
        told.append((data, node, types, digit_of(before), digit_of(now), status))
        return 0

    callback = CALLBACK(asked)
    stream = begin(cuda, graph, callback, 77)
    work(cuda, stream, 1, 5)
    captured(cuda, stream)
    nodes, count = (c_void_p * 2)(), c_size_t(2)
    cuda.cuGraphGetNodes(graph, nodes, byref(count))
    assert told == [(77, nodes[1], [KERNEL, KERNEL], 2, 5, ELIGIBLE)]
    assert launched(cuda, instantiated(cuda, graph)) == 15


def test_copies_fills_and_events_of_the_same_parameters_are_the_same(cuda):
    told = []
    callback = CALLBACK(lambda *arguments: told.append(arguments) or 0)
    event, streams = cuda.handle("cuEventCreate", c_uint(2)), [cuda.stream()]

    def some(stream, value):
        cuda.cuMemsetD32Async(c_uint64(ctypes.addressof(cuda.cell)), c_uint(value), c_size_t(1), stream)
        cuda.cuMemcpyDtoDAsync_v2(
            c_uint64(ctypes.addressof(cuda.flag)), c_uint64(ctypes.addressof(cuda.cell)), c_size_t(4), stream
        )
        cuda.cuEventRecord(event, stream)

    cuda.cuStreamBeginCapture_v2(streams[0], c_int(0))
    some(streams[0], 6)
    made = captured(cuda, streams[0])
    for value, count in ((6, 0), (7, 1)):
        stream = begin(cuda, made, callback)
        some(stream, value)
        captured(cuda, stream)
        assert len(told) == count
    assert launched(cuda, instantiated(cuda, made)) == 7


def ended(cuda, stream):
    """The result of the end of a capture, and whether it gave a graph."""
    out = c_void_p(1)
    return cuda.library.cuStreamEndCapture(stream, byref(out)), out.value


def refused(cuda, stream, name):
    """The result of one more launch."""
    kernel, values = cuda.handle("cuModuleGetFunction", cuda.module, name), [c_uint64(ctypes.addressof(cuda.cell)), c_uint(2)]
    pointers = (c_void_p * 2)(*map(ctypes.addressof, values))
    return cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)


def test_a_refusal_by_the_client_ends_the_capture(cuda, graph):
    callback = CALLBACK(lambda *_: 999)
    stream = begin(cuda, graph, callback)
    work(cuda, stream, 1)
    assert refused(cuda, stream, b"put") == RECAPTURE_FAILURE
    assert refused(cuda, stream, b"put") == INVALIDATED
    assert ended(cuda, stream) == (INVALIDATED, None)


def test_more_nodes_fewer_nodes_and_other_nodes_fail(cuda, graph):
    stream = begin(cuda, graph)
    work(cuda, stream, 1, 2)
    assert refused(cuda, stream, b"append") == RECAPTURE_FAILURE
    assert ended(cuda, stream) == (INVALIDATED, None)
    stream = begin(cuda, graph)
    work(cuda, stream, 1)
    assert ended(cuda, stream) == (RECAPTURE_FAILURE, None)
    stream = begin(cuda, graph)
    fill = cuda.library.cuMemsetD32Async
    assert fill(c_uint64(ctypes.addressof(cuda.cell)), c_uint(1), c_size_t(1), stream) == RECAPTURE_FAILURE
    ended(cuda, stream)


def test_other_dependencies_fail(cuda, graph):
    stream = begin(cuda, graph)
    work(cuda, stream, 1)
    cuda.cuStreamUpdateCaptureDependencies(stream, None, c_size_t(0), c_uint(1))
    assert refused(cuda, stream, b"append") == RECAPTURE_FAILURE
    ended(cuda, stream)


def test_memory_stays_where_it_is(cuda):
    first, address, again = cuda.stream(), c_uint64(), c_uint64()
    cuda.cuStreamBeginCapture_v2(first, c_int(0))
    cuda.cuMemAllocAsync(byref(address), c_size_t(4096), first)
    cuda.cuMemFreeAsync(address, first)
    made = captured(cuda, first)
    stream = begin(cuda, made)
    cuda.cuMemAllocAsync(byref(again), c_size_t(4096), stream)
    assert again.value == address.value
    cuda.cuMemFreeAsync(again, stream)
    assert captured(cuda, stream).value == made.value
    stream = begin(cuda, made)
    assert cuda.library.cuMemAllocAsync(byref(again), c_size_t(8192), stream) == RECAPTURE_FAILURE
    ended(cuda, stream)


def test_what_cannot_be_captured_is_refused(cuda, graph):
    call = cuda.library.cuStreamBeginRecaptureToGraph
    assert call(None, c_int(0), graph, None, None) == UNSUPPORTED
    assert call(cuda.stream(), c_int(7), graph, None, None) == INVALID_VALUE
    assert call(cuda.stream(), c_int(0), c_void_p(123), None, None) == INVALID_VALUE


def test_work_that_no_structure_describes_cannot_be_shown_to_the_client(cuda):
    stream, inner = cuda.stream(), cuda.handle("cuGraphCreate", 0)
    executable = instantiated(cuda, inner)
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    cuda.cuGraphLaunch(executable, stream)
    made = captured(cuda, stream)
    callback = CALLBACK(lambda *_: 0)
    again = begin(cuda, made, callback)
    assert cuda.library.cuGraphLaunch(executable, again) == INVALID_VALUE
    assert ended(cuda, again) == (INVALIDATED, None)

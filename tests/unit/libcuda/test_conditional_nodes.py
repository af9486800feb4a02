"""Nodes of any kind by one structure, conditional nodes, captures into a graph, and words that streams write or wait for."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_longlong, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.structures import ConditionalNode, KernelNode, MemoryOperation, MemsetNode

IF, WHILE, SWITCH = range(3)
KERNEL, MEMSET, GRAPH, EMPTY, CONDITIONAL = 0, 2, 4, 5, 13
INVALID_VALUE, NOT_READY, NOT_SUPPORTED = 1, 600, 801
STREAM_CAPTURE_UNSUPPORTED, STREAM_CAPTURE_INVALIDATED, CAPTURED_EVENT = 900, 901, 907
INVALIDATED = 2  # CUstreamCaptureStatus
ASSIGN_DEFAULT = 1

COUNTING = b"""
.version 8.4
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count_down(.param .u64 cell, .param .u64 condition)
{
    .reg .b32 %n;
    .reg .b64 %cell, %condition;
    ld.param.u64 %cell, [cell];
    ld.param.u64 %condition, [condition];
    ld.global.u32 %n, [%cell];
    sub.u32 %n, %n, 1;
    st.global.u32 [%cell], %n;
    {
        .param .b64 handle;
        .param .b32 value;
        st.param.b64 [handle], %condition;
        st.param.b32 [value], %n;
        call.uni cudaGraphSetConditional, (handle, value);
    }
    ret;
}
"""


class NodeParameters(ctypes.Structure):
    """CUgraphNodeParams, with what a kind has as words."""

    _fields_ = (("type", ctypes.c_int32), ("reserved", ctypes.c_int32 * 3), ("words", ctypes.c_uint64 * 30))


def described(kind, own=b""):
    made = NodeParameters(kind)
    ctypes.memmove(made.words, bytes(own), len(bytes(own)))
    return made


def add(cuda, graph, parameters, after=()):
    before = (c_void_p * len(after))(*(each.value for each in after))
    return cuda.handle("cuGraphAddNode_v2", graph, before, None, c_size_t(len(after)), byref(parameters))


def kernel(cuda, name, *arguments, module=None):
    """A launch of a kernel with one thread, as the structure of a node."""
    words = [c_uint64(each) for each in arguments]
    pointers = (c_void_p * len(words))(*map(ctypes.addressof, words))
    handle = cuda.handle("cuModuleGetFunction", module or cuda.module, name)
    one = (c_uint * 3)(1, 1, 1)
    made = described(KERNEL, KernelNode(handle.value, one, one, 0, ctypes.addressof(pointers), 0))
    made.kept = words, pointers
    return made


def append(cuda, digit):
    return kernel(cuda, b"append", ctypes.addressof(cuda.cell), digit)


def condition(cuda, graph, value=0, flags=0):
    made = c_uint64()
    cuda.cuGraphConditionalHandleCreate(byref(made), graph, None, c_uint(value), c_uint(flags))
    return made.value


def conditional(cuda, graph, handle, kind, size, after=()):
    """A conditional node, and its graphs."""
    parameters = described(CONDITIONAL, ConditionalNode(handle, kind, size))
    node = add(cuda, graph, parameters, after)
    found = ConditionalNode.from_buffer_copy(bytes(parameters.words))
    return node, [c_void_p(each) for each in (c_uint64 * size).from_address(found.graphs)]


def run(cuda, graph, times=1):
    executable, stream = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), cuda.stream()
    for _ in range(times):
        cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    return executable


def test_a_loop_runs_while_a_kernel_says_so(cuda):
    module, graph = cuda.handle("cuModuleLoadData", COUNTING), cuda.handle("cuGraphCreate", 0)
    cuda.flag.value = 4
    handle = condition(cuda, graph, 1, ASSIGN_DEFAULT)
    _, (body,) = conditional(cuda, graph, handle, WHILE, 1)
    first = add(cuda, body, append(cuda, 1))
    add(cuda, body, kernel(cuda, b"count_down", ctypes.addressof(cuda.flag), handle, module=module), [first])
    executable = run(cuda, graph)
    assert (cuda.flag.value, cuda.cell.value) == (0, 1111)
    cuda.flag.value, cuda.cell.value = 2, 0
    cuda.cuGraphDestroy(graph)  # the condition lives as long as the executable graph
    stream = cuda.stream()
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert (cuda.flag.value, cuda.cell.value) == (0, 11)
    cuda.cuGraphExecDestroy(executable)


@pytest.mark.parametrize(("kind", "size", "value", "found"), [
    (IF, 1, 5, 10), (IF, 1, 0, 0), (IF, 2, 0, 20), (SWITCH, 3, 2, 30), (SWITCH, 3, 3, 0),
])  # fmt: skip
def test_a_graph_is_chosen(cuda, kind, size, value, found):
    graph = cuda.handle("cuGraphCreate", 0)
    node, bodies = conditional(cuda, graph, condition(cuda, graph, value), kind, size)
    for digit, body in enumerate(bodies, 1):
        add(cuda, body, append(cuda, digit))
    add(cuda, graph, append(cuda, 0), [node])
    run(cuda, graph)
    assert cuda.cell.value == found


def test_wrong_conditional_nodes_are_refused(cuda):
    graph = cuda.handle("cuGraphCreate", 0)
    handle, out = condition(cuda, graph), c_void_p()
    for own in (ConditionalNode(handle, WHILE, 2), ConditionalNode(handle, 7, 1), ConditionalNode(64, IF, 1)):
        parameters = described(CONDITIONAL, own)
        assert cuda.library.cuGraphAddNode_v2(byref(out), graph, None, None, 0, byref(parameters)) == INVALID_VALUE
    assert cuda.library.cuGraphAddNode(byref(out), graph, None, 0, byref(described(8))) == NOT_SUPPORTED


def test_nodes_of_every_kind_are_added_and_changed(cuda):
    graph, child = cuda.handle("cuGraphCreate", 0), cuda.handle("cuGraphCreate", 0)
    add(cuda, child, append(cuda, 3))
    filled = add(cuda, graph, described(MEMSET, MemsetNode(ctypes.addressof(cuda.cell), 0, 0, 4, 1, 1)))
    launched = add(cuda, graph, append(cuda, 1), [filled])
    inner = add(cuda, graph, described(GRAPH, c_uint64(child.value)), [launched])
    last = add(cuda, graph, described(EMPTY), [inner])
    cuda.cuGraphNodeSetParams(launched, byref(append(cuda, 2)))
    executable = run(cuda, graph, 2)
    assert cuda.cell.value == 23
    cuda.cuGraphExecNodeSetParams(executable, launched, byref(append(cuda, 4)))
    other = cuda.handle("cuGraphCreate", 0)
    add(cuda, other, append(cuda, 5))
    cuda.cuGraphExecChildGraphNodeSetParams(executable, inner, other)
    stream = cuda.stream()
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 45
    for wrong in (cuda.library.cuGraphNodeSetParams(last, byref(append(cuda, 1))),
                  cuda.library.cuGraphExecNodeSetParams(executable, last, byref(append(cuda, 1)))):  # fmt: skip
        assert wrong == INVALID_VALUE


def test_a_capture_goes_into_a_graph_behind_its_nodes(cuda):
    graph, stream, out = cuda.handle("cuGraphCreate", 0), cuda.stream(), c_void_p()
    first, alone = add(cuda, graph, append(cuda, 1)), add(cuda, graph, described(EMPTY))
    cuda.cuStreamBeginCaptureToGraph(stream, graph, byref(first), None, c_size_t(1), 0)
    cuda.cuStreamUpdateCaptureDependencies(stream, byref(alone), c_size_t(1), 0)
    cuda.launch(stream, b"append", cuda.cell, 2)
    cuda.cuStreamEndCapture(stream, byref(out))
    assert out.value == graph.value
    count = c_size_t()
    cuda.cuGraphGetEdges(graph, None, None, byref(count))
    assert count.value == 2
    run(cuda, graph)
    assert cuda.cell.value == 12


@pytest.mark.parametrize(
    "call", ["cuStreamSynchronize", "cuStreamQuery", "cuEventQuery", "cuEventSynchronize", "cuCtxSynchronize"]
)
def test_a_call_that_waits_for_a_capture_ends_it(cuda, call):
    """CUDA programming guide, "Prohibited and Unhandled Operations" of stream capture."""
    stream, event, graph, status = cuda.stream(), cuda.handle("cuEventCreate", c_uint(0)), c_void_p(1), c_uint()
    cuda.cuStreamBeginCapture_v2(stream, 2)
    cuda.launch(stream, b"append", cuda.cell, 1)
    cuda.cuEventRecord(event, stream)
    waits_for = {"cuStreamSynchronize": [stream], "cuStreamQuery": [stream], "cuCtxSynchronize": []}.get(call, [event])
    assert cuda.library[call](*waits_for) in (STREAM_CAPTURE_UNSUPPORTED, CAPTURED_EVENT)
    cuda.cuStreamIsCapturing(stream, byref(status))
    assert status.value == INVALIDATED
    assert cuda.library.cuEventRecord(event, stream) == STREAM_CAPTURE_INVALIDATED
    assert cuda.library.cuStreamEndCapture(stream, byref(graph)) == STREAM_CAPTURE_INVALIDATED
    assert not graph.value
    cuda.launch(stream, b"append", cuda.cell, 2)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 2


def test_a_capture_into_a_graph_may_end_without_telling_it(cuda):
    stream, graph = cuda.stream(), cuda.handle("cuGraphCreate", 0)
    cuda.cuStreamBeginCaptureToGraph(stream, graph, None, None, c_size_t(0), 2)
    cuda.launch(stream, b"append", cuda.cell, 4)
    cuda.cuStreamEndCapture(stream, None)
    run(cuda, graph)
    assert cuda.cell.value == 4


def test_streams_write_words_and_wait_for_them(cuda):
    first, second = cuda.stream(), cuda.stream()
    flag, cell = (c_uint64(ctypes.addressof(each)) for each in (cuda.flag, cuda.cell))
    cuda.cuStreamWaitValue32_v2(first, flag, c_uint(3), 0)  # at least
    cuda.cuStreamWriteValue32_v2(first, cell, c_uint(9), 0)
    assert cuda.library.cuStreamQuery(first) == NOT_READY
    assert cuda.cell.value == 0
    wait, write = 1, 2
    both = (MemoryOperation * 2)(MemoryOperation(write, flag.value, 7, 0), MemoryOperation(wait, cell.value, 9, 1))
    cuda.cuStreamBatchMemOp_v2(second, c_uint(2), both, c_uint(0))
    cuda.cuCtxSynchronize()
    assert (cuda.flag.value, cuda.cell.value) == (7, 9)
    cuda.cuStreamWaitValue64_v2(first, flag, c_uint64(9 << 32 | 7), c_uint(1))  # both words, equal
    cuda.cuStreamWaitValue32_v2(first, flag, c_uint(4), c_uint(2))  # a common bit
    cuda.cuStreamWaitValue32_v2(first, flag, c_uint(0xFFFFFF00), c_uint(3))  # a bit that neither has
    cuda.cuStreamSynchronize(first)
    assert cuda.library.cuStreamWriteValue32_v2(first, c_longlong(64), c_uint(1), 0) == INVALID_VALUE

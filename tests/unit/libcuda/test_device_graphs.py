"""Graphs that kernels launch (CUDA C++ Programming Guide, "Device Graph Launch"; driver API, `cuGraphInstantiate...`)."""

from __future__ import annotations

import ctypes
import time
from ctypes import byref, c_uint64, c_void_p

import pytest
from test_conditional_nodes import EMPTY, add, append, described, kernel
from test_streams import check_for

from ptxvm.driver import memory
from ptxvm.driver.launch_checks import FINDINGS
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import InstantiateParameters

TAIL, FORGOTTEN, SIBLING = (n << 56 for n in (1, 2, 3))  # the streams of cuda_device_runtime_api.h
UPLOAD, DEVICE_LAUNCH = 2, 4  # CUgraphInstantiate_flags
UNSUPPORTED_NODE = 3  # CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
INVALID_VALUE, NOT_SUPPORTED, PENDING_COUNT_EXCEEDED = 1, 801, 69

LAUNCHING = b"""
.version 8.4
.target sm_80
.address_size 64
.extern .func (.param .b32 error) cudaGraphLaunch(.param .b64 graph, .param .b64 stream);

// Launches a graph so many times, or its own graph if none is named, and leaves the last error.
.visible .entry launch(.param .u64 errors, .param .u64 graph, .param .u64 stream, .param .u64 times)
{
    .reg .pred %p;
    .reg .b32 %error;
    .reg .b64 %errors, %graph, %stream, %own, %n;
    ld.param.u64 %errors, [errors];
    ld.param.u64 %graph, [graph];
    ld.param.u64 %stream, [stream];
    ld.param.u64 %n, [times];
    mov.u64 %own, %current_graph_exec;
    setp.eq.u64 %p, %graph, 0;
    selp.u64 %graph, %own, %graph, %p;
again:
    {
        .param .b64 the_graph, the_stream;
        .param .b32 error;
        st.param.b64 [the_graph], %graph;
        st.param.b64 [the_stream], %stream;
        call.uni (error), cudaGraphLaunch, (the_graph, the_stream);
        ld.param.b32 %error, [error];
    }
    st.global.u32 [%errors], %error;
    sub.u64 %n, %n, 1;
    setp.ne.u64 %p, %n, 0;
    @%p bra again;
    ret;
}
// Counts, and launches its own graph until so many have run.
.visible .entry count(.param .u64 cell, .param .u64 most)
{
    .reg .pred %p;
    .reg .b64 %cell, %most, %graph, %n;
    .reg .b32 %x;
    ld.param.u64 %cell, [cell];
    ld.param.u64 %most, [most];
    ld.global.u32 %x, [%cell];
    add.u32 %x, %x, 1;
    st.global.u32 [%cell], %x;
    cvt.u64.u32 %n, %x;
    setp.ge.u64 %p, %n, %most;
    @%p ret;
    mov.u64 %graph, %current_graph_exec;
    {
        .param .b64 the_graph, the_stream;
        .param .b32 error;
        st.param.b64 [the_graph], %graph;
        st.param.b64 [the_stream], 0x0100000000000000;
        call.uni (error), cudaGraphLaunch, (the_graph, the_stream);
    }
    ret;
}
"""


@pytest.fixture
def device(cuda):
    """The driver with a module whose kernels launch graphs."""
    cuda.launching = cuda.handle("cuModuleLoadData", LAUNCHING)
    return cuda


def launching(cuda, graph, stream, times=1):
    """A kernel that launches a graph, or its own for None, and leaves the error in the flag."""
    handle = graph.value if graph is not None else 0
    return kernel(cuda, b"launch", ctypes.addressof(cuda.flag), handle, stream, times, module=cuda.launching)


def executable(cuda, *tasks, flags=DEVICE_LAUNCH):
    """An executable graph of tasks in order, uploaded if it can be launched from the device."""
    graph, after = cuda.handle("cuGraphCreate", 0), []
    for task in tasks:
        after = [add(cuda, graph, task, after)]
    made = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(flags))
    cuda.cuGraphUpload(made, None)
    return made


def run(cuda, graph):
    stream = cuda.stream()
    cuda.cuGraphLaunch(graph, stream)
    cuda.cuStreamSynchronize(stream)
    return cuda.cell.value


def test_a_tail_launch_runs_when_the_graph_has_ended(device):
    last = executable(device, append(device, 3))
    assert run(device, executable(device, append(device, 1), launching(device, last, TAIL), append(device, 2), flags=0)) == 123
    assert device.flag.value == 0


def test_the_tail_launches_of_a_tail_launch_run_before_older_ones(device):
    """The guide's example: a graph has the tail launches of two, of which the first has one too."""
    last, inner = executable(device, append(device, 4)), executable(device, append(device, 3))
    first = executable(device, append(device, 2), launching(device, inner, TAIL))
    graph = executable(device, append(device, 1), launching(device, first, TAIL), launching(device, last, TAIL))
    assert run(device, graph) == 1234


@pytest.mark.parametrize("stream", [FORGOTTEN, SIBLING])
def test_a_graph_that_is_forgotten_ends_before_the_tail_launches(device, stream):
    forgotten, last = executable(device, append(device, 2)), executable(device, append(device, 4))
    graph = executable(device, launching(device, forgotten, stream), launching(device, last, TAIL), append(device, 3))
    found = str(run(device, graph))
    assert (sorted(found[:2]), found[2:]) == (["2", "3"], "4")
    assert len(str(run(device, graph))) == 6  # it has ended, and may be launched again


def test_a_graph_launches_itself_again(device):
    graph = executable(device, kernel(device, b"count", ctypes.addressof(device.cell), 7, module=device.launching))
    assert run(device, graph) == 7


def test_kernels_launch_what_was_uploaded(device):
    graph = device.handle("cuGraphCreate", 0)
    node = add(device, graph, append(device, 1))
    parameters = InstantiateParameters(flags=DEVICE_LAUNCH)
    other = device.handle("cuGraphInstantiateWithParams", graph, byref(parameters))
    caller = executable(device, launching(device, other, TAIL), flags=0)
    assert (run(device, caller), device.flag.value) == (0, INVALID_VALUE)
    device.cuGraphUpload(other, None)
    assert (run(device, caller), device.flag.value) == (1, 0)
    device.cuGraphExecNodeSetParams(other, node, byref(append(device, 2)))
    assert run(device, caller) == 11
    device.cuGraphUpload(other, None)
    assert run(device, caller) == 112
    device.cuGraphExecDestroy(other)


def test_a_launch_that_is_under_way_keeps_a_graph_that_is_destroyed(device):
    """As cuGraphExecDestroy lets a client do."""
    before, stream = set(session().driver.device_graphs.by_handle), device.stream()
    graph = executable(device, append(device, 1), append(device, 2))
    (record,) = session().driver.device_graphs.by_handle.keys() - before
    device.launch(stream, b"await", device.flag, 1)
    device.cuGraphLaunch(graph, stream)
    device.cuGraphExecDestroy(graph)
    assert record in session().driver.blocks.by_address
    device.flag.value = 1
    device.cuStreamSynchronize(stream)
    assert device.cell.value == 12
    deadline = time.monotonic() + 60
    while record in session().driver.blocks.by_address:  # until the thread of the stream has forgotten its work
        assert time.monotonic() < deadline


def test_a_graph_may_be_uploaded_when_it_is_made(device):
    graph = device.handle("cuGraphCreate", 0)
    add(device, graph, append(device, 1))
    parameters = InstantiateParameters(flags=DEVICE_LAUNCH | UPLOAD)
    other = device.handle("cuGraphInstantiateWithParams", graph, byref(parameters))
    assert run(device, executable(device, launching(device, other, TAIL), flags=0)) == 1


def test_launches_that_cannot_be_are_errors(device):
    ready = executable(device, append(device, 1))
    for task, error in [
        (launching(device, ready, FORGOTTEN, 2), INVALID_VALUE),  # it runs
        (launching(device, ready, 0), INVALID_VALUE),  # no stream of graphs
        (launching(device, None, TAIL), INVALID_VALUE),  # the graph is none for launches from the device
        (launching(device, ready, TAIL, 256), PENDING_COUNT_EXCEEDED),
    ]:
        run(device, executable(device, task, flags=0))
        assert device.flag.value == error
        device.flag.value = 0
    run(device, executable(device, launching(device, None, FORGOTTEN)))  # its own graph, which runs
    assert device.flag.value == INVALID_VALUE


def test_a_kernel_that_is_no_node_launches_no_graph(device):
    ready = executable(device, append(device, 1))
    words = [c_uint64(each) for each in (ctypes.addressof(device.flag), ready.value, TAIL, 1)]
    pointers = (c_void_p * 4)(*map(ctypes.addressof, words))
    function = device.handle("cuModuleGetFunction", device.launching, b"launch")
    device.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)
    device.cuCtxSynchronize()
    assert (device.flag.value, device.cell.value) == (INVALID_VALUE, 0)


def test_graphs_for_the_device_have_kernels_copies_and_fills_alone(device):
    graph, out = device.handle("cuGraphCreate", 0), c_void_p()
    assert device.library.cuGraphInstantiateWithFlags(byref(out), graph, c_uint64(DEVICE_LAUNCH)) == INVALID_VALUE
    add(device, graph, append(device, 1))
    wrong = add(device, graph, described(EMPTY))
    parameters = InstantiateParameters(flags=DEVICE_LAUNCH)
    assert device.library.cuGraphInstantiateWithParams(byref(out), graph, byref(parameters)) == NOT_SUPPORTED
    assert (parameters.result, parameters.failed) == (UNSUPPORTED_NODE, wrong.value)
    assert device.library.cuGraphInstantiateWithFlags(byref(out), graph, c_uint64(0)) == 0


@pytest.mark.parametrize(("stream", "races"), [(FORGOTTEN, True), (TAIL, False)])
def test_nothing_orders_a_graph_that_is_forgotten_and_later_nodes(device, monkeypatch, stream, races):
    check_for(monkeypatch, "race")
    other = executable(device, append(device, 2))
    run(device, executable(device, launching(device, other, stream), append(device, 3), flags=0))
    assert bool(FINDINGS.seen) is races
    assert not device.flag.value


def test_the_record_that_launches_are_entered_in_counts_as_written(device, monkeypatch):
    check_for(monkeypatch, "init")
    monkeypatch.setattr(memory, "follows_values", lambda: True)
    last = executable(device, append(device, 2))
    assert run(device, executable(device, launching(device, last, TAIL), append(device, 1), flags=0)) == 12
    assert not FINDINGS.seen

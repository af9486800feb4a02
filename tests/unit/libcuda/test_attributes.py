"""Attributes of streams, nodes and launches (driver API, "Stream Management", "Graph Management"; CUlaunchAttributeID)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_graph_nodes import kernel_node

from ptxvm.libcuda.structures import KernelNode, LaunchAttribute, LaunchConfig

INVALID_VALUE, INVALID_CONTEXT, NOT_READY = 1, 201, 600
WINDOW, SYNC_POLICY, CLUSTER, PRIORITY, DOMAIN_MAP, COMPLETION_EVENT, CARVEOUT = 1, 3, 4, 8, 9, 12, 14


def value(*words):
    return (c_int * 16)(*words)


def test_a_stream_keeps_and_tells_its_attributes(cuda):
    stream, other, told = cuda.stream(), cuda.stream(), value()
    cuda.cuStreamGetAttribute(stream, SYNC_POLICY, told)
    assert told[0] == 1  # CU_SYNC_POLICY_AUTO
    cuda.cuStreamGetAttribute(stream, DOMAIN_MAP, told)
    assert bytes(told)[:2] == b"\0\1"
    cuda.cuStreamSetAttribute(stream, WINDOW, value(1, 2, 3))
    for wrong in (value(0, 0, 0, 0, 0x4000_0000), value(0, 0, 0, 0, 0, 2, 2)):  # a ratio of 2; misses that persist
        assert cuda.library.cuStreamSetAttribute(stream, WINDOW, wrong) == INVALID_VALUE
    cuda.cuStreamCopyAttributes(other, stream)
    cuda.cuStreamGetAttribute(other, WINDOW, told)
    assert list(told)[:4] == [1, 2, 3, 0]
    for asked, got in ((-3, -3), (-9, -5), (4, 0)):
        cuda.cuStreamSetAttribute(stream, PRIORITY, value(asked))
        cuda.cuStreamGetPriority(stream, told)
        assert told[0] == got
    assert cuda.library.cuStreamSetAttribute(stream, CLUSTER, value(1)) == INVALID_VALUE


def test_a_kernel_node_keeps_its_cluster_when_its_launch_changes(cuda):
    graph, told = cuda.handle("cuGraphCreate", 0), value()
    node, twin = (kernel_node(cuda, graph, b"append", cuda.cell, 1) for _ in range(2))
    assert cuda.library.cuGraphKernelNodeSetAttribute(node, CLUSTER, value(2, 1, 1)) == INVALID_VALUE  # the grid has one block
    cuda.cuGraphKernelNodeSetAttribute(node, CLUSTER, value(1, 1, 1))
    cuda.cuGraphKernelNodeSetAttribute(node, PRIORITY, value(-2))
    described = KernelNode()
    cuda.cuGraphKernelNodeGetParams_v2(node, byref(described))
    cuda.cuGraphKernelNodeSetParams_v2(node, byref(described))
    cuda.cuGraphKernelNodeCopyAttributes(twin, node)
    for each in (node, twin):
        cuda.cuGraphKernelNodeGetAttribute(each, CLUSTER, told)
        assert list(told)[:3] == [1, 1, 1]
        cuda.cuGraphKernelNodeGetAttribute(each, PRIORITY, told)
        assert told[0] == -2
    cuda.cuGraphKernelNodeGetAttribute(node, CARVEOUT, told)
    assert told[0] == -1
    assert cuda.library.cuGraphKernelNodeGetAttribute(node, SYNC_POLICY, told) == INVALID_VALUE


@pytest.mark.parametrize("number", [7, COMPLETION_EVENT])
def test_an_attribute_of_a_launch_records_an_event(cuda, number):
    stream, event = cuda.stream(), cuda.handle("cuEventCreate", c_uint(0))
    attribute = LaunchAttribute(number, 0)
    ctypes.memmove(attribute.value, byref(c_uint64(event.value)), 8)
    one = (c_uint * 3)(1, 1, 1)
    config = LaunchConfig(one, one, 0, stream.value, ctypes.addressof(attribute), 1)
    arguments = [c_uint64(ctypes.addressof(cuda.flag)), c_uint(1)]
    pointers = (c_void_p * 2)(*map(ctypes.addressof, arguments))
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"await")
    cuda.cuLaunchKernelEx(byref(config), kernel, pointers, None)
    assert cuda.library.cuEventQuery(event) == NOT_READY
    cuda.flag.value = 1
    cuda.cuEventSynchronize(event)
    assert cuda.library.cuEventElapsedTime(byref(ctypes.c_float()), event, event) == 0
    cuda.cuStreamSynchronize(stream)
    assert c_size_t.from_buffer(attribute.value).value == event.value


def test_parameters_of_a_kernel_are_told_in_a_context(cuda):
    """Without one NVIDIA's driver fails; cuda.core's test of `Kernel.num_arguments` holds it to that."""
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"append")
    offset, size, count, context = c_size_t(), c_size_t(), c_size_t(), c_void_p()
    cuda.cuFuncGetParamInfo(kernel, c_size_t(1), byref(offset), byref(size))
    assert (offset.value, size.value) == (8, 4)
    cuda.cuCtxPopCurrent_v2(byref(context))
    assert cuda.library.cuFuncGetParamInfo(kernel, c_size_t(1), byref(offset), byref(size)) == INVALID_CONTEXT
    assert cuda.library.cuFuncGetParamCount(kernel, byref(count)) == INVALID_CONTEXT
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuFuncGetParamCount(kernel, byref(count))
    assert count.value == 2

"""Kernel nodes that kernels change (runtime API, `cudaGraphKernelNodeUpdatesApply`; driver API, CUlaunchAttributeID 13)."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_conditional_nodes import add, append, kernel
from test_nested_graphs import instantiated, launched

UPDATABLE, CLUSTER = 13, 4  # CUlaunchAttributeID
GRID, PARAMETER, ENABLED = 1, 2, 3  # cudaGraphKernelNodeField
SUCCESS, INVALID_VALUE, GRAPH_EXEC_UPDATE_FAILURE = 0, 1, 910
VALUE_AT = 8  # the offset of the second parameter of `append` and `count`

UPDATING = b"""
.version 8.4
.target sm_80
.address_size 64
.extern .func (.param .b32 error) cudaGraphKernelNodeUpdatesApply(.param .b64 updates, .param .b64 count);

// Applies updates, and leaves the error.
.visible .entry apply(.param .u64 errors, .param .u64 updates, .param .u64 count)
{
    .reg .b32 %error;
    .reg .b64 %errors, %updates, %count;
    ld.param.u64 %errors, [errors];
    ld.param.u64 %updates, [updates];
    ld.param.u64 %count, [count];
    {
        .param .b64 the_updates, the_count;
        .param .b32 error;
        st.param.b64 [the_updates], %updates;
        st.param.b64 [the_count], %count;
        call.uni (error), cudaGraphKernelNodeUpdatesApply, (the_updates, the_count);
        ld.param.b32 %error, [error];
    }
    st.global.u32 [%errors], %error;
    ret;
}
// Adds a value for each CTA.
.visible .entry count(.param .u64 cell, .param .u32 value)
{
    .reg .b32 %r;
    .reg .b64 %cell;
    ld.param.u64 %cell, [cell];
    ld.param.u32 %r, [value];
    red.global.add.u32 [%cell], %r;
    ret;
}
"""


class Update(ctypes.Structure):
    """cudaGraphKernelNodeUpdate."""

    _fields_ = (("node", c_uint64), ("field", c_uint), ("padding", c_uint), ("data", c_uint64 * 3))


@pytest.fixture
def node(cuda):
    """A graph with a node that kernels change: a launch that adds 1 to the cell."""
    cuda.updating = cuda.handle("cuModuleLoadData", UPDATING)
    cuda.graph = cuda.handle("cuGraphCreate", 0)
    made = add(cuda, cuda.graph, kernel(cuda, b"count", ctypes.addressof(cuda.cell), 1, module=cuda.updating))
    assert set_updatable(cuda, made) == SUCCESS
    return made


def set_updatable(cuda, node, value=1):
    return cuda.library.cuGraphKernelNodeSetAttribute(node, UPDATABLE, byref((c_uint64 * 8)(value)))


def of_device(cuda, node):
    """The handle of a node for kernels."""
    found = (c_uint64 * 8)()
    cuda.cuGraphKernelNodeGetAttribute(node, UPDATABLE, byref(found))
    assert found[0] == 1
    return found[1]


def apply(cuda, *updates):
    """Let a kernel apply updates; the error that it gets."""
    memory = c_uint64()
    cuda.cuMemAllocManaged(byref(memory), c_size_t(1024), c_uint(1))
    for number, each in enumerate(updates):
        if each.field == PARAMETER:  # whose value is memory of the device, too
            c_uint.from_address(memory.value + 512 + 4 * number).value = each.data[0]
            each.data[0] = memory.value + 512 + 4 * number
        ctypes.memmove(memory.value + ctypes.sizeof(Update) * number, byref(each), ctypes.sizeof(Update))
    arguments = [c_uint64(each) for each in (ctypes.addressof(cuda.flag), memory.value, len(updates))]
    pointers = (c_void_p * 3)(*map(ctypes.addressof, arguments))
    cuda.cuLaunchKernel(cuda.handle("cuModuleGetFunction", cuda.updating, b"apply"), 1, 1, 1, 1, 1, 1, 0, None, pointers, None)
    cuda.cuCtxSynchronize()
    return cuda.flag.value


def parameter(node, value, offset=VALUE_AT):
    """An update of a parameter of four bytes; `apply` makes the value its address."""
    return Update(node, PARAMETER, 0, (c_uint64 * 3)(value, offset, 4))


def extents(node, x, y, z):
    return Update(node, GRID, 0, (c_uint64 * 3)(*struct.unpack("<3Q", struct.pack("<3I12x", x, y, z))))


def enabled(node, value):
    return Update(node, ENABLED, 0, (c_uint64 * 3)(value))


def test_kernels_change_parameters_grids_and_whether_a_node_is_enabled(cuda, node):
    mine, graph = of_device(cuda, node), instantiated(cuda, cuda.graph)
    assert launched(cuda, graph) == 1
    assert apply(cuda, parameter(mine, 5)) == SUCCESS
    assert launched(cuda, graph) == 5
    assert apply(cuda, extents(mine, 2, 3, 1), parameter(mine, 7)) == SUCCESS
    assert launched(cuda, graph) == 42
    assert apply(cuda, enabled(mine, 0)) == SUCCESS
    assert launched(cuda, graph) == 0
    assert apply(cuda, enabled(mine, 1)) == SUCCESS
    assert launched(cuda, graph) == 42


def test_the_first_update_that_is_wrong_ends_the_others(cuda, node):
    mine, graph = of_device(cuda, node), instantiated(cuda, cuda.graph)
    wrong = [
        extents(mine, 0, 1, 1),
        parameter(mine, 9, offset=9),
        parameter(mine, 9, offset=1 << 40),
        extents(0, 1, 1, 1),
        Update(mine, 4),
    ]
    for each in wrong:
        assert apply(cuda, parameter(mine, 3), each, parameter(mine, 4)) == INVALID_VALUE
        assert launched(cuda, graph) == 3


def test_what_the_host_changes_overwrites_what_kernels_have_changed(cuda, node):
    mine, graph = of_device(cuda, node), instantiated(cuda, cuda.graph)
    assert apply(cuda, parameter(mine, 5), extents(mine, 3, 1, 1)) == SUCCESS
    other = kernel(cuda, b"count", ctypes.addressof(cuda.cell), 2, module=cuda.updating)
    cuda.cuGraphExecKernelNodeSetParams_v2(graph, node, other.words)
    assert launched(cuda, graph) == 2
    cuda.cuGraphNodeSetEnabled(graph, node, c_uint(0))
    assert launched(cuda, graph) == 0
    assert apply(cuda, enabled(mine, 1), parameter(mine, 6)) == SUCCESS
    assert launched(cuda, graph) == 6
    told = c_uint(7)
    cuda.cuGraphNodeGetEnabled(graph, node, byref(told))
    assert told.value == 0  # as the host has left it


def test_what_such_nodes_and_their_graphs_do_not_allow(cuda, node):
    other = add(cuda, cuda.graph, append(cuda, 2))
    assert set_updatable(cuda, node, 0) == INVALID_VALUE
    assert set_updatable(cuda, node, 2) == INVALID_VALUE
    assert set_updatable(cuda, other, 0) == SUCCESS
    assert cuda.library.cuGraphDestroyNode(node) == INVALID_VALUE
    for to, of in ((node, other), (other, node)):
        assert cuda.library.cuGraphKernelNodeCopyAttributes(to, of) == INVALID_VALUE
    graph = instantiated(cuda, cuda.graph)
    made = c_void_p()
    assert cuda.library.cuGraphInstantiateWithFlags(byref(made), cuda.graph, c_uint64(0)) == INVALID_VALUE
    result = (c_uint64 * 3)()
    assert cuda.library.cuGraphExecUpdate_v2(graph, cuda.graph, byref(result)) == GRAPH_EXEC_UPDATE_FAILURE
    assert result[0] & 0xFFFFFFFF == 6  # CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
    cuda.cuGraphExecDestroy(graph)
    instantiated(cuda, cuda.graph)


@pytest.mark.parametrize("is_captured", [True, False])
def test_a_captured_launch_is_made_a_node_that_kernels_change(cuda, is_captured):
    cuda.updating = cuda.handle("cuModuleLoadData", UPDATING)
    stream, count = cuda.stream(), cuda.handle("cuModuleGetFunction", cuda.updating, b"count")
    attribute = (c_uint64 * 9)(UPDATABLE, 1)
    arguments = [c_uint64(ctypes.addressof(cuda.cell)), c_uint(1)]
    pointers = (c_void_p * 2)(*map(ctypes.addressof, arguments))
    config = struct.pack("<7I4xQQI4x", 1, 1, 1, 1, 1, 1, 0, stream.value, ctypes.addressof(attribute), 1)
    if not is_captured:
        assert cuda.library.cuLaunchKernelEx(config, count, pointers, None) == INVALID_VALUE
        return
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    cuda.cuLaunchKernelEx(config, count, pointers, None)
    graph = c_void_p()
    cuda.cuStreamEndCapture(stream, byref(graph))
    executable = instantiated(cuda, graph)
    assert apply(cuda, parameter(attribute[2], 8)) == SUCCESS
    assert launched(cuda, executable) == 8

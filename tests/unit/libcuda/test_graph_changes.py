"""What of nodes can change (driver API, `cuGraphExecUpdate`, `cuGraphExecMemcpyNodeSetParams` and its like)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p

import pytest
from test_conditional_nodes import append, described

from ptxvm.libcuda.structures import (
    AllocationNode,
    Array3DDescriptor,
    Copy3D,
    HostNode,
    InstantiateParameters,
    Location,
    MemsetNode,
    PoolProperties,
    UpdateInformation,
)

INVALID_VALUE, UPDATE_FAILURE = 1, 910
INVALID_STRUCTURE = 2  # CUgraphInstantiateResult
PARAMETERS_CHANGED = 5  # CUgraphExecUpdateResult
KERNEL, COPY, FILL, HOST, GRAPH = range(5)  # CUgraphNodeType
ARRAY, DEVICE, FLOAT = 3, 2, 0x20
ADD = {
    COPY: "cuGraphAddMemcpyNode",
    FILL: "cuGraphAddMemsetNode",
    HOST: "cuGraphAddHostNode",
    KERNEL: "cuGraphAddKernelNode_v2",
}
CALLED = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
WITH_CONTEXT = (COPY, FILL)


@pytest.fixture
def memory(cuda):
    """Memory of the device, 1 KiB."""
    made = c_uint64()
    cuda.cuMemAlloc_v2(byref(made), c_size_t(1024))
    yield made.value
    cuda.cuMemFree_v2(made)


def copy(memory, width=16, height=1, depth=1):
    return Copy3D(
        source_type=DEVICE, source_device=memory, source_pitch=64, source_height=2, target_type=DEVICE,
        target_device=memory + 512, target_pitch=64, target_height=2, width=width, height=height, depth=depth,
    )  # fmt: skip


def fill(memory, width=4, height=1, element=4):
    return MemsetNode(memory, 64, 7, element, width, height)


def structures(cuda, memory):
    """A structure of each type of node."""
    node = append(cuda, 1)
    launch = type("Launch", (), {"words": node.words, "kept": node})
    return {
        COPY: copy(memory), FILL: fill(memory), HOST: HostNode(ctypes.cast(CALLED, c_void_p).value, 0), KERNEL: launch.words,
    }  # fmt: skip


def added(cuda, graph, kind, structure):
    return cuda.handle(ADD[kind], graph, None, c_size_t(0), byref(structure), *([None] if kind in WITH_CONTEXT else []))


def instantiated(cuda, kind, structure):
    """A node, and the executable graph of it alone."""
    graph = cuda.handle("cuGraphCreate", 0)
    node = added(cuda, graph, kind, structure)
    return graph, node, cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))


NAMES = {COPY: "Memcpy", FILL: "Memset", HOST: "Host", KERNEL: "Kernel"}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("asked", NAMES)
def test_a_node_takes_the_parameters_of_its_own_type(cuda, memory, kind, asked):
    given, expected = structures(cuda, memory), 0 if kind == asked else INVALID_VALUE
    _, node, executable = instantiated(cuda, kind, given[kind])
    context = [None] if asked in WITH_CONTEXT else []
    assert cuda.library[f"cuGraph{NAMES[asked]}NodeSetParams"](node, byref(given[asked])) == expected
    assert cuda.library[f"cuGraphExec{NAMES[asked]}NodeSetParams"](executable, node, byref(given[asked]), *context) == expected


@pytest.mark.parametrize("extents", [{"height": 2}, {"depth": 2}])
@pytest.mark.parametrize("rows_first", [True, False])
def test_a_copy_with_rows_does_not_change_in_an_executable_graph(cuda, memory, extents, rows_first):
    first, second = copy(memory, **extents if rows_first else {}), copy(memory, **{} if rows_first else extents)
    graph, node, executable = instantiated(cuda, COPY, first)
    assert cuda.library.cuGraphExecMemcpyNodeSetParams(executable, node, byref(second), None) == INVALID_VALUE
    cuda.cuGraphMemcpyNodeSetParams(node, byref(second))
    cuda.cuGraphExecUpdate_v2(executable, graph, byref(UpdateInformation()))


FILLS = [
    ({}, {"width": 8}, True), ({}, {"element": 2}, True), ({}, {"height": 2}, False), ({"height": 2}, {}, False),
    ({"height": 2}, {"height": 2}, True), ({"height": 2}, {"height": 2, "width": 8}, False),
    ({"height": 2}, {"height": 3}, False),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "allowed"), FILLS)
def test_the_extents_of_a_fill_with_rows_do_not_change(cuda, memory, before, after, allowed):
    """A fill of one row may have another width; a number of rows never changes."""
    first, second = fill(memory, **before), fill(memory + 512, **after)
    graph, node, executable = instantiated(cuda, FILL, first)
    changed = cuda.library.cuGraphExecMemsetNodeSetParams(executable, node, byref(second), None)
    assert changed == (0 if allowed else INVALID_VALUE)
    cuda.cuGraphMemsetNodeSetParams(node, byref(second))
    found = UpdateInformation()
    updated = cuda.library.cuGraphExecUpdate_v2(executable, graph, byref(found))
    assert (updated, found.result, found.node) == (
        (0, 0, 0) if allowed else (UPDATE_FAILURE, PARAMETERS_CHANGED, node.value)
    )  # fmt: skip


@pytest.mark.parametrize(("before", "after", "allowed"), FILLS)
def test_so_do_those_in_a_child_graph(cuda, memory, before, after, allowed):
    """An update restricts the graph of a node, too (driver API, `cuGraphExecChildGraphNodeSetParams`)."""
    child, other, parent = (cuda.handle("cuGraphCreate", 0) for _ in range(3))
    added(cuda, child, FILL, fill(memory, **before))
    added(cuda, other, FILL, fill(memory + 512, **after))
    node = cuda.handle("cuGraphAddChildGraphNode", parent, None, c_size_t(0), child)
    executable = cuda.handle("cuGraphInstantiateWithFlags", parent, c_uint64(0))
    changed = cuda.library.cuGraphExecChildGraphNodeSetParams(executable, node, other)
    assert changed == (0 if allowed else INVALID_VALUE)


def test_a_copy_does_not_change_between_memory_and_an_array(cuda, memory):
    array = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(8, 0, 0, FLOAT, 1, 0)))
    other = copy(memory)
    other.target_type, other.target_array = ARRAY, array.value
    graph, node, executable = instantiated(cuda, COPY, copy(memory))
    assert cuda.library.cuGraphExecMemcpyNodeSetParams(executable, node, byref(other), None) == INVALID_VALUE
    cuda.cuGraphMemcpyNodeSetParams(node, byref(other))
    found = UpdateInformation()
    assert cuda.library.cuGraphExecUpdate_v2(executable, graph, byref(found)) == UPDATE_FAILURE
    assert (found.result, found.node) == (PARAMETERS_CHANGED, node.value)


def test_a_structure_of_any_node_is_one_of_its_type_too(cuda, memory):
    _, node, executable = instantiated(cuda, FILL, fill(memory))
    other = append(cuda, 1)
    assert cuda.library.cuGraphNodeSetParams(node, byref(other)) == INVALID_VALUE
    assert cuda.library.cuGraphExecNodeSetParams(executable, node, byref(other)) == INVALID_VALUE
    wider = described(FILL, fill(memory, height=2))
    assert cuda.library.cuGraphExecNodeSetParams(executable, node, byref(wider)) == INVALID_VALUE


# ── graphs that cannot be launched, or changed ──────────────────────────────────────────


@pytest.mark.parametrize(
    ("flags", "expected"), [(0, 0), (1, 0), (2, 0), (4, 0), (8, 0), (9, 0), (5, INVALID_VALUE), (16, INVALID_VALUE)]
)
def test_flags_of_executable_graphs(cuda, flags, expected):
    """CUgraphInstantiate_flags: none goes with a launch by a device but priorities of nodes."""
    graph = cuda.handle("cuGraphCreate", 0)
    added(cuda, graph, FILL, fill(cuda.memory.value))
    assert cuda.library.cuGraphInstantiateWithFlags(byref(c_void_p()), graph, c_uint64(flags)) == expected


def test_a_cycle_is_an_invalid_structure_and_one_of_its_nodes_is_named(cuda):
    graph = cuda.handle("cuGraphCreate", 0)
    nodes = [cuda.handle("cuGraphAddEmptyNode", graph, None, c_size_t(0)) for _ in range(3)]
    for before, after in ((1, 2), (2, 1)):
        cuda.cuGraphAddDependencies(graph, byref(nodes[before]), byref(nodes[after]), c_size_t(1))
    told = InstantiateParameters()
    assert cuda.library.cuGraphInstantiateWithParams(byref(c_void_p()), graph, byref(told)) == INVALID_VALUE
    assert (told.result, told.failed) == (INVALID_STRUCTURE, nodes[1].value)


def test_a_graph_with_memory_keeps_its_nodes_and_dependencies(cuda):
    graph = cuda.handle("cuGraphCreate", 0)
    first = cuda.handle("cuGraphAddEmptyNode", graph, None, c_size_t(0))
    second = cuda.handle("cuGraphAddEmptyNode", graph, byref(first), c_size_t(1))
    node = AllocationNode(PoolProperties(type=1, location=Location(1, 0)), size=64)
    cuda.handle("cuGraphAddMemAllocNode", graph, None, c_size_t(0), byref(node))
    assert cuda.library.cuGraphRemoveDependencies(graph, byref(first), byref(second), c_size_t(1)) == INVALID_VALUE
    assert cuda.library.cuGraphDestroyNode(second) == INVALID_VALUE


@pytest.mark.parametrize("handle", [0, 12345])
def test_a_graph_or_memory_that_there_is_not_is_a_wrong_value(cuda, handle):
    """These calls document no INVALID_HANDLE (driver API, what each returns)."""
    out, none = c_void_p(), c_void_p(handle)
    calls = [
        ("cuGraphLaunch", none, None),
        ("cuGraphInstantiateWithFlags", byref(out), none, c_uint64(0)),
        ("cuGraphGetNodes", none, None, byref(c_size_t())),
        ("cuGraphNodeGetType", none, byref(ctypes.c_int())),
        ("cuGraphExecDestroy", none),
        ("cuMemPoolTrimTo", none, c_size_t(0)),
        ("cuMemRelease", none),
        ("cuMemMap", c_uint64(0), c_size_t(1 << 21), c_size_t(0), none, c_uint64(0)),
        ("cuMemExportToShareableHandle", byref(out), none, 1, c_uint64(0)),
        ("cuTexRefSetFlags", none, 0),
        ("cuGreenCtxCreate", byref(out), none, 0, 1),
    ]
    assert [cuda.library[name](*arguments) for name, *arguments in calls] == [INVALID_VALUE] * len(calls)

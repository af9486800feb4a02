"""Memory that graphs allocate (driver API, `cuGraphAddMemAllocNode`, `cuGraphLaunch`, `cuMemAllocAsync`)."""

from __future__ import annotations

import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_graph_nodes import kernel_node

from ptxvm.libcuda.structures import AllocationNode, InstantiateParameters, Location, MemsetNode, PoolProperties

INVALID_VALUE, ILLEGAL_ADDRESS, RELAXED, AUTO_FREE = 1, 700, 2, 1
ON_DEVICE = Location(1, 0)
ALLOCATE, FREE, KERNEL = 10, 11, 0  # CUgraphNodeType
USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)  # CUgraphMem_attribute
CAPTURE_GLOBAL = 0
NON_BLOCKING = 1


def usage(cuda, number):
    told = c_uint64()
    cuda.cuDeviceGetGraphMemAttribute(0, number, byref(told))
    return told.value


@pytest.fixture
def before(cuda):
    """The bytes that other graphs have."""
    cuda.cuDeviceGraphMemTrim(0)
    for mark in (USED_HIGH, RESERVED_HIGH):
        cuda.cuDeviceSetGraphMemAttribute(0, mark, byref(c_uint64(0)))
    return usage(cuda, USED)


def captured(cuda, stream, *, frees):
    """A captured graph that allocates 64 bytes, and writes 5 and a digit there."""
    address, graph = c_uint64(), c_void_p()
    cuda.cuStreamBeginCapture_v2(stream, RELAXED)
    cuda.cuMemAllocAsync(byref(address), c_size_t(64), stream)
    cell = c_uint.from_address(address.value)
    cuda.launch(stream, b"put", cell, 5)
    cuda.launch(stream, b"append", cell, 7)
    cuda.cuMemcpyDtoDAsync_v2(cuda.memory, address, c_size_t(4), stream)
    if frees:
        cuda.cuMemFreeAsync(address, stream)
    cuda.cuStreamEndCapture(stream, byref(graph))
    return graph, address


def test_a_captured_allocation_is_a_node_and_has_memory_in_every_launch(cuda, before):
    stream = cuda.stream()
    graph, address = captured(cuda, stream, frees=True)
    nodes, count, types = (c_void_p * 5)(), c_size_t(5), []
    cuda.cuGraphGetNodes(graph, nodes, byref(count))
    for node in nodes:
        type = c_int()
        cuda.cuGraphNodeGetType(c_void_p(node), byref(type))
        types.append(type.value)
    assert (types[0], types[1], types[-1]) == (ALLOCATE, KERNEL, FREE)
    told = AllocationNode()
    cuda.cuGraphMemAllocNodeGetParams(c_void_p(nodes[0]), byref(told))
    assert (told.address, told.size, told.pool.location.type) == (address.value, 64, 1)
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphDestroy(graph)  # what was instantiated has the memory still
    for _ in range(2):
        cuda.flag.value = 0
        cuda.cuGraphLaunch(executable, stream)
        cuda.cuStreamSynchronize(stream)
        assert cuda.flag.value == 57
    assert cuda.library.cuMemFreeAsync(address, stream) == INVALID_VALUE
    assert usage(cuda, USED) == usage(cuda, RESERVED) == before + 64
    cuda.cuGraphExecDestroy(executable)
    assert usage(cuda, USED) == before + 64  # until it is trimmed
    cuda.cuDeviceGraphMemTrim(0)
    assert (usage(cuda, USED), usage(cuda, USED_HIGH)) == (before, before + 64)
    cuda.cuDeviceSetGraphMemAttribute(0, RESERVED_HIGH, byref(c_uint64(0)))
    assert usage(cuda, RESERVED_HIGH) == before


@pytest.mark.parametrize("how", ["cuMemFreeAsync", "cuMemFree_v2"])
def test_memory_that_a_launch_leaves_is_the_clients_to_free(cuda, before, how):
    stream = cuda.stream()
    graph, address = captured(cuda, stream, frees=False)
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphLaunch(executable, stream)
    assert cuda.library.cuGraphLaunch(executable, stream) == INVALID_VALUE
    cuda.cuStreamSynchronize(stream)
    cuda.cuGraphDestroy(graph)
    cuda.cuGraphExecDestroy(executable)
    cuda.cuDeviceGraphMemTrim(0)
    assert c_uint.from_address(address.value).value == 57
    assert usage(cuda, USED) == before + 64
    getattr(cuda, how)(address, *([stream] if how.endswith("Async") else []))
    cuda.cuDeviceGraphMemTrim(0)
    assert usage(cuda, USED) == before


def test_launches_free_what_the_last_one_left_where_the_flag_says_so(cuda):
    stream = cuda.stream()
    graph, address = captured(cuda, stream, frees=False)
    asked = InstantiateParameters(flags=AUTO_FREE, result=9)
    executable = cuda.handle("cuGraphInstantiateWithParams", graph, byref(asked))
    flags = c_uint64()
    cuda.cuGraphExecGetFlags(executable, byref(flags))
    assert (asked.result, flags.value) == (0, AUTO_FREE)
    for _ in range(2):
        cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert c_uint.from_address(address.value).value == 57
    cuda.cuMemFree_v2(address)


def test_one_graph_frees_what_another_allocates(cuda):
    stream, graphs = cuda.stream(), [cuda.handle("cuGraphCreate", 0) for _ in range(2)]
    described = AllocationNode(pool=PoolProperties(type=1, location=ON_DEVICE), size=64)
    node = cuda.handle("cuGraphAddMemAllocNode", graphs[0], None, c_size_t(0), byref(described))
    kernel_node(cuda, graphs[0], b"put", c_uint.from_address(described.address), 6, [node])
    cuda.handle("cuGraphAddMemFreeNode", graphs[1], None, c_size_t(0), c_uint64(described.address))
    allocates, frees = (cuda.handle("cuGraphInstantiateWithFlags", each, c_uint64(0)) for each in graphs)
    for _ in range(2):
        cuda.cuGraphLaunch(allocates, stream)
        cuda.cuGraphLaunch(frees, stream)
    cuda.cuStreamSynchronize(stream)
    assert c_uint.from_address(described.address).value == 6


def test_what_graphs_did_not_allocate_is_not_theirs_to_free(cuda):
    stream, graph = cuda.stream(), cuda.handle("cuGraphCreate", 0)
    assert cuda.library.cuGraphAddMemFreeNode(byref(c_void_p()), graph, None, c_size_t(0), cuda.memory) == INVALID_VALUE
    nowhere = AllocationNode(pool=PoolProperties(type=1, location=Location(0, 0)), size=64)
    assert cuda.library.cuGraphAddMemAllocNode(byref(c_void_p()), graph, None, c_size_t(0), byref(nowhere)) == INVALID_VALUE
    assert cuda.library.cuDeviceGetGraphMemAttribute(0, 9, byref(c_uint64())) == INVALID_VALUE
    assert cuda.library.cuDeviceSetGraphMemAttribute(0, USED, byref(c_uint64(0))) == INVALID_VALUE
    cuda.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL)
    assert cuda.library.cuMemFreeAsync(cuda.memory, stream) == INVALID_VALUE
    cuda.cuStreamEndCapture(stream, byref(c_void_p()))


@pytest.mark.parametrize(("place", "type", "kind"), [((1, 0), 1, 2), ((2, 0), 1, 1), ((0, 0), 2, 2)])
def test_nodes_allocate_memory_of_devices_of_the_host_and_managed(cuda, place, type, kind):
    """The memory type of its pointer is that of a device, of the host, and of a device (`CUmemorytype`)."""
    graph, stream = cuda.handle("cuGraphCreate", 0), cuda.stream()
    described = AllocationNode(pool=PoolProperties(type=type, location=Location(*place)), size=64)
    node = cuda.handle("cuGraphAddMemAllocNode", graph, None, c_size_t(0), byref(described))
    kernel_node(cuda, graph, b"put", c_uint.from_address(described.address), 6, [node])
    told = c_uint()
    cuda.cuPointerGetAttribute(byref(told), 2, c_uint64(described.address))
    assert told.value == kind
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    cuda.cuStreamSynchronize(stream)
    assert c_uint.from_address(described.address).value == 6
    cuda.cuMemFree_v2(c_uint64(described.address))


def test_no_bytes_are_allocated_in_a_capture(cuda):
    stream, address, graph = cuda.stream(), c_uint64(), c_void_p()
    cuda.cuStreamBeginCapture_v2(stream, RELAXED)
    cuda.cuMemAllocAsync(byref(address), c_size_t(0), stream)
    cuda.cuMemFreeAsync(address, stream)
    cuda.cuStreamEndCapture(stream, byref(graph))


def add_fill(cuda, graph, address):
    """A node that fills 64 bytes."""
    described = MemsetNode(address.value, 0, 7, 4, 16, 1)
    return cuda.handle("cuGraphAddMemsetNode", graph, None, c_size_t(0), byref(described), None)


def capture_copy(cuda, graph, address):
    """Capture a copy of 64 bytes into a graph."""
    stream = cuda.stream()
    cuda.cuStreamBeginCaptureToGraph(stream, graph, None, None, c_size_t(0), RELAXED)
    cuda.cuMemcpyDtoDAsync_v2(c_uint64(address.value + 64), address, c_size_t(64), stream)
    cuda.cuStreamEndCapture(stream, byref(c_void_p()))


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("node", [add_fill, capture_copy])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_launch_that_uses_freed_memory_fails_as_a_kernel_does(cuda, node, is_nested):
    """Addresses of memory that is no longer allocated are CUDA_ERROR_ILLEGAL_ADDRESS, and what follows does not run."""
    graph, stream, address = cuda.handle("cuGraphCreate", 0), cuda.stream(), c_uint64()
    cuda.cuMemAlloc_v2(byref(address), c_size_t(128))
    node(cuda, graph, address)
    if is_nested:
        outer = cuda.handle("cuGraphCreate", 0)
        cuda.handle("cuGraphAddChildGraphNode", outer, None, c_size_t(0), graph)
        graph = outer
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    cuda.cuMemFree_v2(address)
    cuda.cuGraphLaunch(executable, stream)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert cuda.library.cuCtxSynchronize() == ILLEGAL_ADDRESS


def fill(cuda, stream, address):
    """Fill 8 bytes."""
    cuda.cuMemsetD32Async(c_uint64(address), 7, c_size_t(2), stream)


def copy(cuda, stream, address):
    """Copy 4 bytes to memory of the device."""
    cuda.cuMemcpyDtoDAsync_v2(cuda.memory, c_uint64(address), c_size_t(4), stream)


def copy_to_host(cuda, stream, address):
    """Copy 4 bytes to pageable memory, which waits."""
    result = cuda.library.cuMemcpyDtoHAsync_v2(byref(c_uint()), c_uint64(address), c_size_t(4), stream)
    assert result in (0, ILLEGAL_ADDRESS)


def put(cuda, stream, address):
    """Write a word in a kernel."""
    cuda.launch(stream, b"put", c_uint.from_address(address), 6)


USES = [put, fill, copy, copy_to_host]


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("frees", ["graph", "cuMemFreeAsync", "cuMemFree_v2"])
def test_work_after_the_memory_of_a_graph_was_freed_fails(cuda, use, frees):
    """As that on other memory that was freed; work between launch and free, in the order of the stream, does not."""
    stream = cuda.stream()
    graph, address = captured(cuda, stream, frees=frees == "graph")
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    for _ in range(2):  # the second launch has the memory again
        cuda.cuGraphLaunch(executable, stream)
        if frees != "graph":
            use(cuda, stream, address.value + 4)
            getattr(cuda, frees)(address, *([stream] if frees.endswith("Async") else []))
        cuda.cuStreamSynchronize(stream)
    use(cuda, stream, address.value + 4)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("use", USES)
def test_work_before_a_graph_has_allocated_its_memory_fails(cuda, use):
    stream = cuda.stream()
    _, address = captured(cuda, stream, frees=True)
    use(cuda, stream, address.value)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("use", [put, fill, copy])
def test_a_node_that_follows_the_free_node_of_its_memory_fails(cuda, use):
    stream, address, graph = cuda.stream(), c_uint64(), c_void_p()
    cuda.cuStreamBeginCapture_v2(stream, RELAXED)
    cuda.cuMemAllocAsync(byref(address), c_size_t(64), stream)
    use(cuda, stream, address.value)
    cuda.cuMemFreeAsync(address, stream)
    use(cuda, stream, address.value)
    cuda.cuStreamEndCapture(stream, byref(graph))
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("use", USES)
def test_work_behind_the_free_of_its_memory_fails(cuda, use):
    """The stream frees memory of a pool when its turn comes, which is after the client's call for the work."""
    stream, address = cuda.stream(NON_BLOCKING), c_uint64()
    cuda.cuMemAllocAsync(byref(address), c_size_t(64), stream)
    cuda.cuStreamSynchronize(stream)
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.cuMemFreeAsync(address, stream)
    threading.Timer(0.1, lambda: setattr(cuda.flag, "value", 1)).start()
    use(cuda, stream, address.value)
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS


def test_a_pointer_within_memory_that_is_not_allocated_now_is_one_of_a_device(cuda):
    _, address = captured(cuda, cuda.stream(), frees=True)
    told = c_uint()
    cuda.cuPointerGetAttribute(byref(told), 2, c_uint64(address.value + 8))
    assert told.value == 2
    assert cuda.library.cuMemsetD32_v2(c_uint64(address.value + 60), 7, c_size_t(200)) == INVALID_VALUE

"""cuda.core's graphs and memory on ptxvm's driver: nodes of every kind, captured allocations, batches, green contexts."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.core import (
    Buffer,
    ContextOptions,
    GraphMemoryResource,
    LaunchConfig,
    ManagedMemoryResource,
    Program,
    ProgramOptions,
    SMResourceOptions,
    launch,
)
from cuda.core.graph import GraphCompleteOptions, GraphDefinition
from cuda.core.utils import copy_batch, discard_batch, prefetch_batch

CODE = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void increment(int *cell) { ++*cell; }
extern "C" __global__ void put(int *cell, int value) { *cell = value; }
extern "C" __global__ void count_down(cudaGraphConditionalHandle again, int *cell) {
    cudaGraphSetConditional(again, --*cell > 0);
}
"""
ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture
def kernel(device):
    code = Program(CODE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
    return code.get_kernel


@pytest.fixture
def cells():
    """Four integers of the host, and a buffer around them, which kernels take too."""
    array = np.zeros(4, np.int32)
    return array, Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array)


def test_a_graph_has_memory_of_its_own_in_each_launch(device, stream, kernel, cells):
    array, buffer = cells
    builder = device.create_graph_builder().begin_building()
    own = GraphMemoryResource(device).allocate(16, stream=builder)
    own.copy_from(buffer, stream=builder)
    for _ in range(3):
        launch(builder, ONE, kernel("increment"), own)
    buffer.copy_from(own, stream=builder)
    own.close()
    graph = builder.end_building().complete()
    for expected in (3, 6):
        graph.launch(stream)
        stream.sync()
        assert array[0] == expected


def test_memory_outlives_the_launch_that_allocates_it(device, stream, kernel, cells):
    array, buffer = cells
    resource = GraphMemoryResource(device)
    builder = device.create_graph_builder().begin_building()
    out = resource.allocate(16, stream=builder)
    out.copy_from(buffer, stream=builder)
    launch(builder, ONE, kernel("increment"), out)
    graph = builder.end_building().complete(GraphCompleteOptions(auto_free_on_launch=True))
    for given in (1, 5):
        array[0] = given
        graph.launch(stream)
        buffer.copy_from(out, stream=stream)
        stream.sync()
        assert array[0] == given + 1
    assert resource.attributes.used_mem_current > 0


def test_nodes_are_defined_one_by_one(device, stream, kernel, cells):
    array, buffer = cells
    definition, event, called = GraphDefinition(), device.create_event(), []
    allocates = definition.allocate(16)
    fills = allocates.memset(allocates.dptr, 3, 16)
    launches = fills.launch(ONE, kernel("increment"), allocates.dptr)
    copies = launches.memcpy(buffer, allocates.dptr, 8)
    copies.deallocate(allocates.dptr)
    copies.record(event)
    copies.callback(lambda: called.append(True))
    definition.instantiate().launch(stream)
    stream.sync()
    event.sync()
    assert [*array, *called] == [0x03030304, 0x03030303, 0, 0, True]
    assert len(definition.nodes()) == 7


def test_kernels_steer_a_graph(stream, kernel, cells):
    array, buffer = cells
    array[:2] = 5, 0
    definition = GraphDefinition()
    again = definition.create_condition(default_value=1)
    loop = definition.while_loop(again)
    loop.body.launch(ONE, kernel("count_down"), again, buffer)
    never = definition.create_condition(default_value=0)
    branches = definition.if_else(never)
    branches.then.launch(ONE, kernel("put"), buffer.handle + 4, 1)
    branches.else_.launch(ONE, kernel("put"), buffer.handle + 4, 2)
    definition.instantiate().launch(stream)
    stream.sync()
    assert list(array) == [0, 2, 0, 0]


def test_an_error_of_a_graph_is_the_clients(kernel):
    """Its destructors call the driver with the exception on its way."""
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
        GraphDefinition().launch(LaunchConfig(grid=1, block=4096), kernel("increment"), 0)


def test_managed_memory_is_copied_in_batches(device, stream):
    resource = ManagedMemoryResource()
    buffers = [resource.allocate(4096, stream=stream) for _ in range(4)]
    for n, each in enumerate(buffers):
        each.fill(n, stream=stream)
    prefetch_batch(stream, buffers, device)
    copy_batch(stream, buffers[:2], buffers[2:])
    stream.sync()
    assert [np.from_dlpack(each)[0] for each in buffers[2:]] == [0, 1]
    discard_batch(stream, buffers)


def test_a_green_context_has_streams(device, kernel, cells):
    array, buffer = cells
    whole = device.resources.sm
    groups, rest = whole.split(SMResourceOptions(count=8))
    context = device.create_context(ContextOptions(resources=[groups[0]]))
    assert (context.resources.sm.sm_count, rest.sm_count) == (8, whole.sm_count - 8)
    own = context.create_stream()
    launch(own, ONE, kernel("put"), buffer, 9)
    own.sync()
    assert array[0] == 9
    own.close()
    context.close()

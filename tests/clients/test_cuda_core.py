"""cuda.core on ptxvm's driver: programs compiled by NVRTC, modules, memory, streams, events, graphs and the linker."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.core import (
    Buffer,
    EventOptions,
    LaunchConfig,
    Linker,
    LinkerOptions,
    ObjectCode,
    Program,
    ProgramOptions,
    launch,
)

SAXPY = """
template<typename T> __global__ void saxpy(T a, const T* x, T* y, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def compiled(device, code, *names, kind="cubin"):
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    return Program(code, "c++", options).compile(kind, name_expressions=names)


class Memory:
    """Memory of the device with an array's bytes."""

    def __init__(self, device, stream, array):
        self.array, self.stream = array.copy(), stream
        self.buffer = device.memory_resource.allocate(array.nbytes, stream=stream)
        self.host = Buffer.from_handle(self.array.ctypes.data, array.nbytes, owner=self.array)
        self.buffer.copy_from(self.host, stream=stream)

    @property
    def values(self):
        """What the device has there now."""
        self.buffer.copy_to(self.host, stream=self.stream)
        self.stream.sync()
        return self.array


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_a_template_is_compiled_and_launched(device, stream, kind):
    """What NVRTC gives as a cubin is PTX too."""
    x, y = (np.random.default_rng(n).random(1000, np.float32) for n in (1, 2))
    on_x, on_y = Memory(device, stream, x), Memory(device, stream, y)
    kernel = compiled(device, SAXPY, "saxpy<float>", kind=kind).get_kernel("saxpy<float>")
    launch(stream, LaunchConfig(grid=4, block=256), kernel, np.float32(3), on_x.buffer, on_y.buffer, np.uint64(1000))
    np.testing.assert_allclose(on_y.values, 3 * x + y, rtol=1e-6)
    assert kernel.attributes.max_threads_per_block == 1024
    assert kernel.num_arguments == 4


def test_a_graph_is_built_and_launched_again(device, stream):
    y = Memory(device, stream, np.ones(64, np.float32))
    kernel = compiled(device, SAXPY, "saxpy<float>").get_kernel("saxpy<float>")
    builder = device.create_graph_builder().begin_building()
    for _ in range(2):  # y becomes 2 y, twice
        launch(builder, LaunchConfig(grid=1, block=64), kernel, np.float32(1), y.buffer, y.buffer, np.uint64(64))
    graph = builder.end_building().complete()
    for _ in range(3):
        graph.launch(stream)
    assert (y.values == 64).all()


def test_events_order_streams_and_measure(device, stream):
    other = device.create_stream()
    first = stream.record(options=EventOptions(timing_enabled=True))
    other.wait(first)
    second = other.record(options=EventOptions(timing_enabled=True))
    second.sync()
    assert second.is_done
    assert second - first >= 0


def test_modules_are_linked(device, stream):
    """One translation unit calls a function of the other."""
    options = ProgramOptions(relocatable_device_code=True, arch=f"sm_{device.arch}")
    parts = [
        """
        extern __device__ int twice(int x);
        extern "C" __global__ void all(int* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
        """,
        "__device__ int twice(int x) { return 2 * x; }",
    ]
    codes = [Program(each, "c++", options).compile("ptx") for each in parts]
    linked = Linker(*codes, options=LinkerOptions(arch=f"sm_{device.arch}")).link("cubin")
    x = Memory(device, stream, np.arange(32, dtype=np.int32))
    launch(stream, LaunchConfig(grid=1, block=32), linked.get_kernel("all"), x.buffer)
    assert (x.values == 2 * np.arange(32)).all()


def test_wrong_ptx_is_refused(device):
    wrong = ObjectCode.from_ptx(b".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { add.f32 %f1, 1; }\n\0")
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_PTX"):
        wrong.get_kernel("k")


SHARED = {(7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 9): 99, (9, 0): 227, (10, 0): 227, (12, 0): 99}
"""KiB of shared memory that a block may have, by compute capability (CUDA C++ Programming Guide, "Compute Capabilities")."""


def test_properties_are_of_the_card(device):
    properties = device.properties
    assert properties.warp_size == 32
    assert properties.max_shared_memory_per_block_optin == SHARED[tuple(device.compute_capability)] * 1024
    assert device.name.startswith("ptxvm")

"""The life of contexts (driver API, "Context Management", "Primary Context Management", `CUDA_ERROR_CONTEXT_IS_DESTROYED`)."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from ctypes import addressof, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from stream_driver import KERNELS

from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import Array3DDescriptor, Resource, TextureDescriptor

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND, DESTROYED = 1, 201, 400, 500, 709
MANAGED = b"""
.version 7.8
.target sm_80
.address_size 64
.global .u32 own = 5;
.global .attribute(.managed) .u32 shared = 6;
"""


def allocated(cuda):
    """The result of an allocation in the current context."""
    memory = c_uint64()
    result = cuda.library.cuMemAlloc_v2(byref(memory), c_size_t(16))
    if not result:
        cuda.cuMemFree_v2(memory)
    return result


def test_a_primary_context_that_nothing_retains_is_destroyed(cuda):
    retained = 0
    while cuda.library.cuDevicePrimaryCtxRelease_v2(0) == 0:
        retained += 1
    assert retained > 0
    assert cuda.library.cuDevicePrimaryCtxRelease_v2(0) == INVALID_CONTEXT
    assert (allocated(cuda), cuda.library.cuCtxSynchronize()) == (DESTROYED, DESTROYED)
    cuda.cuDevicePrimaryCtxReset_v2(0)
    assert allocated(cuda) == DESTROYED
    cuda.cuDeviceGetCount(byref(c_int()))  # which needs no context, as
    other = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    assert allocated(cuda) == 0
    cuda.cuCtxDestroy_v2(other)
    primary = cuda.handle("cuCtxPopCurrent_v2")
    assert allocated(cuda) == INVALID_CONTEXT
    for _ in range(retained):
        cuda.handle("cuDevicePrimaryCtxRetain", 0)
    cuda.cuCtxSetCurrent(primary)
    assert allocated(cuda) == 0


def test_a_context_that_another_thread_has_destroyed_is_so_where_it_is_current(cuda):
    context, found = cuda.handle("cuCtxCreate_v2", c_uint(0), 0), []
    current, destroyed = threading.Event(), threading.Event()

    def work():
        cuda.cuCtxSetCurrent(context)
        found.append(allocated(cuda))
        current.set()
        destroyed.wait()
        found.append(allocated(cuda))

    thread = threading.Thread(target=work)
    thread.start()
    current.wait()
    cuda.cuCtxDestroy_v2(context)
    destroyed.set()
    thread.join()
    assert found == [0, DESTROYED]
    cuda.cuCtxSetCurrent(cuda.handle("cuDevicePrimaryCtxRetain", 0))
    assert allocated(cuda) == 0


@pytest.mark.parametrize("name", ["cuCtxSetCurrent", "cuCtxPushCurrent_v2"])
def test_what_is_no_context_leaves_the_current_one(cuda, name):
    """An error is no change of state: the thread was left without a context, and every later call failed."""
    before = cuda.handle("cuCtxGetCurrent")
    assert getattr(cuda.library, name)(c_void_p(0x1234)) == INVALID_CONTEXT
    assert cuda.handle("cuCtxGetCurrent").value == before.value != 0
    assert allocated(cuda) == 0


def test_only_a_managed_variable_is_the_librarys_for_all_devices(cuda):
    library = cuda.handle("cuLibraryLoadData", MANAGED, None, None, c_uint(0), None, None, c_uint(0))
    address, size = c_uint64(), c_size_t()
    found = {
        name: cuda.library.cuLibraryGetManaged(byref(address), byref(size), library, name)
        for name in (b"own", b"shared", b"no")
    }
    assert found == {b"own": NOT_FOUND, b"shared": 0, b"no": NOT_FOUND}
    assert size.value == 4
    cuda.cuLibraryGetGlobal(byref(address), byref(size), library, b"own")


def test_arguments_come_in_one_way(cuda):
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"put")
    values = c_uint64(cuda.memory.value + 4), c_uint(1)
    pointers = (c_void_p * 2)(*map(addressof, values))
    assert cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, pointers, (c_void_p * 1)(0)) == INVALID_VALUE
    assert cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, pointers, None) == 0


# ── what contexts have ──────────────────────────────────────────────────────────────────


def put(cuda, kernel, value, stream=None):
    """The result of a launch that stores a value, and the value that is stored then."""
    arguments = [c_uint64(addressof(cuda.cell)), c_uint(value)]
    pointers = (c_void_p * 2)(*map(addressof, arguments))
    result = cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
    if not result:
        cuda.cuCtxSynchronize()
    return result, cuda.cell.value


def put_kernel(cuda):
    """A kernel of a module that the current context loads."""
    return cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", KERNELS), b"put")


def test_a_function_runs_in_the_context_that_has_loaded_its_module(cuda):
    """`cuLaunchKernel` returns INVALID_HANDLE; with a stream of the context it runs whichever is current."""
    kernel, primary = put_kernel(cuda), cuda.stream()
    assert put(cuda, kernel, 1) == (0, 1)
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    assert put(cuda, kernel, 2) == (INVALID_HANDLE, 1)
    assert put(cuda, put_kernel(cuda), 3) == (0, 3)
    assert cuda.library.cuStreamSynchronize(primary) == 0
    assert put(cuda, kernel, 4, primary)[0] == 0
    cuda.cuCtxDestroy_v2(context)
    assert put(cuda, kernel, 5) == (0, 5)


def test_the_kernels_of_a_library_run_in_all_contexts(cuda):
    library = cuda.handle("cuLibraryLoadData", KERNELS, None, None, c_uint(0), None, None, c_uint(0))
    kernel = cuda.handle("cuLibraryGetKernel", library, b"put")
    assert put(cuda, kernel, 1) == (0, 1)
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    assert put(cuda, kernel, 2) == (0, 2)
    cuda.cuCtxDestroy_v2(context)
    assert put(cuda, kernel, 3) == (0, 3)


def test_what_a_destroyed_context_had_has_no_handle(cuda):
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    kernel, stream, event = put_kernel(cuda), cuda.stream(), cuda.handle("cuEventCreate", c_uint(0))
    module = cuda.handle("cuModuleLoadData", KERNELS)
    assert put(cuda, kernel, 1, stream) == (0, 1)
    cuda.cuCtxDestroy_v2(context)
    assert put(cuda, kernel, 2) == (INVALID_HANDLE, 1)
    ours = put_kernel(cuda)
    assert put(cuda, ours, 3, stream) == (INVALID_HANDLE, 1)
    assert cuda.library.cuStreamQuery(stream) == INVALID_HANDLE
    assert cuda.library.cuEventQuery(event) == INVALID_HANDLE
    assert cuda.library.cuModuleUnload(module) == INVALID_HANDLE
    assert put(cuda, ours, 4) == (0, 4)


def memory_of_each_kind(cuda):
    """Memory that ends with the current context, of each kind, and then memory of a pool."""
    size, pitch, addresses = c_size_t(3 << 20), c_size_t(), [c_uint64() for _ in range(5)]
    device, rows, managed, host, pooled = map(byref, addresses)
    cuda.cuMemAlloc_v2(device, size)
    cuda.cuMemAllocPitch_v2(rows, byref(pitch), c_size_t(100), c_size_t(8), c_uint(4))
    cuda.cuMemAllocManaged(managed, size, c_uint(1))
    cuda.cuMemHostAlloc(host, size, c_uint(0))
    cuda.cuMemAllocAsync(pooled, size, None)
    return addresses


def known(cuda, address):
    """Does the driver know memory at an address?"""
    kind = c_uint()
    return cuda.library.cuPointerGetAttribute(byref(kind), 2, address) == 0  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE


def free_memory(cuda):
    free, total = c_size_t(), c_size_t()
    cuda.cuMemGetInfo_v2(byref(free), byref(total))
    return free.value


def test_memory_ends_with_its_context_and_that_of_pools_does_not(cuda):
    """Driver API, `cuCtxDestroy`: what `cuMemAlloc` and its like allocated ends, what `cuMemAllocAsync` allocated stays."""
    before, mine = free_memory(cuda), (ctypes.c_char * 4096)()
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    *owned, pooled = memory_of_each_kind(cuda)
    cuda.cuMemHostRegister_v2(mine, c_size_t(4096), c_uint(0))
    assert all(known(cuda, each) for each in (*owned, pooled))
    cuda.cuCtxDestroy_v2(context)
    assert [known(cuda, each) for each in owned] == [False] * 4
    assert known(cuda, pooled)
    assert cuda.library.cuMemFree_v2(owned[0]) == INVALID_VALUE
    cuda.cuMemHostRegister_v2(mine, c_size_t(4096), c_uint(0))  # it is registered no more
    cuda.cuMemHostUnregister(mine)
    cuda.cuMemFree_v2(pooled)
    assert free_memory(cuda) == before


def test_a_reset_frees_the_memory_of_its_context_alone(cuda):
    *owned, pooled = memory_of_each_kind(cuda)
    other = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    of_other = memory_of_each_kind(cuda)
    cuda.cuDevicePrimaryCtxReset_v2(0)
    assert [known(cuda, each) for each in (*owned, pooled, *of_other)] == [False] * 4 + [True] * 6
    cuda.cuCtxDestroy_v2(other)
    for each in (pooled, of_other[-1]):
        cuda.cuMemFree_v2(each)


def test_a_reset_unloads_the_modules_of_the_context(cuda):
    kernel = put_kernel(cuda)
    assert put(cuda, kernel, 1) == (0, 1)
    cuda.cuDevicePrimaryCtxReset_v2(0)
    assert put(cuda, kernel, 2) == (INVALID_HANDLE, 1)
    assert put(cuda, put_kernel(cuda), 3) == (0, 3)


ENDINGS = {
    "destroyed": lambda cuda, context: cuda.cuCtxDestroy_v2(context),
    "reset": lambda cuda, _: cuda.cuDevicePrimaryCtxReset_v2(0),
    "released": lambda cuda, _: list(iter(lambda: cuda.library.cuDevicePrimaryCtxRelease_v2(0), INVALID_CONTEXT)),
}
"""The ways in which a context ends."""


@pytest.fixture(params=ENDINGS)
def ending(request, cuda):
    """What ends the current context: one of its own, or the primary one, which another client retains again."""
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0) if request.param == "destroyed" else None

    def end():
        ENDINGS[request.param](cuda, context)
        cuda.cuCtxSetCurrent(cuda.handle("cuDevicePrimaryCtxRetain", 0))

    return end


def array(cuda, levels=0):
    """A new array of floats, or one of several levels."""
    described = Array3DDescriptor(width=64, height=64, depth=0, format=0x20, channels=1, flags=2)
    if levels:
        return cuda.handle("cuMipmappedArrayCreate", byref(described), c_uint(levels))
    return cuda.handle("cuArray3DCreate_v2", byref(described))


def image_of(cuda, of):
    """A texture and a surface of an array."""
    described, made = Resource(type=0), (c_uint64(), c_uint64())
    described.of.array = of.value
    cuda.cuTexObjectCreate(byref(made[0]), byref(described), byref(TextureDescriptor()), None)
    cuda.cuSurfObjectCreate(byref(made[1]), byref(described))
    return made


def test_arrays_textures_and_surfaces_end_with_their_context(cuda, ending):
    """Driver API, `cuCtxDestroy`; their memory is free once nothing is left of them."""
    one, pyramid = array(cuda), array(cuda, 3)
    level = cuda.handle("cuMipmappedArrayGetLevel", pyramid, c_uint(1))
    images = image_of(cuda, one)
    objects = [weakref.ref(session().handles.objects[each.value]) for each in (one, pyramid, level)]
    ending()
    gc.collect()
    assert [each() for each in objects] == [None] * 3
    described = Array3DDescriptor()
    assert cuda.library.cuArray3DGetDescriptor_v2(byref(described), one) == INVALID_HANDLE
    assert cuda.library.cuMipmappedArrayGetLevel(byref(c_void_p()), pyramid, c_uint(0)) == INVALID_HANDLE
    assert cuda.library.cuArrayDestroy(level) == INVALID_HANDLE
    assert cuda.library.cuTexObjectDestroy(images[0]) == INVALID_VALUE
    assert cuda.library.cuSurfObjectGetResourceDesc(byref(Resource()), images[1]) == INVALID_VALUE
    cuda.cuArrayDestroy(array(cuda))


def test_streams_events_links_and_references_end_with_their_context(cuda, ending):
    stream, event = cuda.stream(), cuda.handle("cuEventCreate", c_uint(0))
    link = c_void_p()
    cuda.cuLinkCreate_v2(c_uint(0), None, None, byref(link))
    of_texture = cuda.handle("cuTexRefCreate")
    cuda.cuEventRecord(event, stream)
    kept = cuda.cell.value
    ending()
    kernel = put_kernel(cuda)
    assert cuda.library.cuStreamSynchronize(stream) == INVALID_HANDLE
    assert cuda.library.cuStreamDestroy_v2(stream) == INVALID_HANDLE
    assert cuda.library.cuEventSynchronize(event) == INVALID_HANDLE
    assert cuda.library.cuStreamWaitEvent(None, event, c_uint(0)) == INVALID_HANDLE
    assert cuda.library.cuLinkComplete(link, byref(c_void_p()), byref(c_size_t())) == INVALID_HANDLE
    assert cuda.library.cuTexRefGetFlags(byref(c_uint()), of_texture) == INVALID_VALUE
    assert put(cuda, kernel, 9, stream) == (INVALID_HANDLE, kept)
    assert put(cuda, kernel, 9, cuda.stream())[0] == 0
    assert put(cuda, kernel, 8)[0] == 0


def test_the_nodes_of_a_graph_do_not_run_in_a_context_that_has_ended(cuda, ending):
    kernel, stream = put_kernel(cuda), cuda.stream()
    cuda.cuStreamBeginCapture_v2(stream, c_int(2))
    arguments = [c_uint64(addressof(cuda.cell)), c_uint(5)]
    cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, (c_void_p * 2)(*map(addressof, arguments)), None)
    captured = c_void_p()
    cuda.cuStreamEndCapture(stream, byref(captured))
    executable = cuda.handle("cuGraphInstantiateWithFlags", captured, c_uint64(0))
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 5
    cuda.cell.value = 0
    ending()
    assert cuda.library.cuGraphLaunch(executable, cuda.stream()) == INVALID_HANDLE
    cuda.library.cuCtxSynchronize()
    assert cuda.cell.value == 0
    cuda.cuGraphDestroy(captured)
    cuda.cuGraphExecDestroy(executable)

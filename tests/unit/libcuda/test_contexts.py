"""The life of contexts (driver API, "Context Management", "Primary Context Management", `CUDA_ERROR_CONTEXT_IS_DESTROYED`)."""

from __future__ import annotations

import threading
from ctypes import addressof, byref, c_size_t, c_uint, c_uint64, c_void_p

INVALID_VALUE, INVALID_CONTEXT, NOT_FOUND, DESTROYED = 1, 201, 500, 709
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
    for _ in range(retained):
        cuda.handle("cuDevicePrimaryCtxRetain", 0)
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

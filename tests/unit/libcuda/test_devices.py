"""What devices can do (driver API, "Device Management", "Peer Context Memory Access"), and the launches of CUDA 2."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

from ptxvm.libcuda.structures import Array3DDescriptor

INVALID_VALUE, INVALID_DEVICE = 1, 101
FLOAT, ADD, CAS, FLOAT_ADD, NO_OPERATION = 0x20, 0, 9, 10, 13
SIGNED_UNSIGNED_REDUCTION_32_64, SCALARS_32_64_128, REDUCTION_32_64_VECTOR = 0b11111, 0b111000, 0b1011100
ONE_AND_A_HALF = 0x3FC0_0000  # as a float
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p)


def test_attributes_come_as_one_structure(cuda):
    told = (c_int * 14)()
    cuda.cuDeviceGetProperties(told, 0)
    assert list(told[:7]) == [1024, 1024, 1024, 64, 2**31 - 1, 65535, 65535]
    assert list(told[7:10]) == [48 << 10, 64 << 10, 32]


def test_the_width_of_a_texture_of_plain_memory(cuda):
    width = c_size_t()
    cuda.cuDeviceGetTexture1DLinearMaxWidth(byref(width), FLOAT, c_uint(4), 0)
    assert width.value == 1 << 28
    assert cuda.library.cuDeviceGetTexture1DLinearMaxWidth(byref(width), FLOAT, c_uint(3), 0) == INVALID_VALUE


def free(cuda):
    """The free bytes of the device, as the driver tells them."""
    here, total = c_size_t(), c_size_t()
    cuda.cuMemGetInfo_v2(byref(here), byref(total))
    assert here.value <= total.value
    return here.value


def test_allocations_of_the_device_take_of_its_free_memory(cuda):
    """All of their bytes at once, whether or not they are written, and give it back; memory of the host takes none."""
    before, memory = free(cuda), c_uint64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(64 << 20))
    assert before - free(cuda) == 64 << 20
    managed, host = c_uint64(), c_void_p()
    cuda.cuMemAllocManaged(byref(managed), c_size_t(1 << 20), c_uint(1))
    cuda.cuMemHostAlloc(byref(host), c_size_t(1 << 20), c_uint(0))
    assert before - free(cuda) == 65 << 20
    for each in (memory, managed):
        cuda.cuMemFree_v2(each)
    cuda.cuMemFreeHost(host)
    assert free(cuda) == before


def test_what_atomic_operations_can_do(cuda):
    """As `atom` and `red` have them (PTX 9.7.13.5)."""
    asked, told = (c_int * 3)(ADD, CAS, FLOAT_ADD), (c_uint * 3)()
    cuda.cuDeviceGetHostAtomicCapabilities(told, asked, c_uint(3), 0)
    assert list(told) == [SIGNED_UNSIGNED_REDUCTION_32_64, SCALARS_32_64_128, REDUCTION_32_64_VECTOR]
    assert cuda.library.cuDeviceGetP2PAtomicCapabilities(told, asked, c_uint(3), 0, 0) == INVALID_DEVICE
    asked[1] = NO_OPERATION
    assert cuda.library.cuDeviceGetHostAtomicCapabilities(told, asked, c_uint(3), 0) == INVALID_VALUE


def test_arrays_have_their_memory_one_plane_and_no_tiles(cuda):
    array = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(4, 4, 0, FLOAT, 1, 0)))
    room = (c_uint64 * 8)()
    for call in (
        lambda: cuda.library.cuArrayGetMemoryRequirements(room, array, 0),
        lambda: cuda.library.cuArrayGetSparseProperties(room, array),
        lambda: cuda.library.cuArrayGetPlane(room, array, c_uint(0)),
    ):
        assert call() == INVALID_VALUE


def test_a_launch_by_the_state_of_a_kernel(cuda):
    kernel, cell = cuda.handle("cuModuleGetFunction", cuda.module, b"append"), c_uint64(ctypes.addressof(cuda.cell))
    cuda.cuFuncSetBlockShape(kernel, 1, 1, 1)
    cuda.cuFuncSetSharedSize(kernel, c_uint(0))
    cuda.cuParamSetv(kernel, 0, byref(cell), c_uint(8))
    cuda.cuParamSeti(kernel, 8, c_uint(4))
    cuda.cuParamSetSize(kernel, c_uint(12))
    cuda.cuLaunch(kernel)
    cuda.cuLaunchGrid(kernel, 1, 1)
    cuda.cuLaunchGridAsync(kernel, 1, 1, cuda.stream())
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 444
    cuda.cuParamSetf(kernel, 8, c_float(1.5))
    cuda.cuLaunch(kernel)
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 4440 + ONE_AND_A_HALF
    for wrong in (("cuFuncSetBlockShape", kernel, 0, 1, 1), ("cuLaunchGrid", kernel, 0, 1), ("cuParamSeti", kernel, 4096, 0)):
        assert cuda.library[wrong[0]](*wrong[1:]) == INVALID_VALUE


def test_a_call_of_the_host_in_its_second_form(cuda):
    called, stream = [], cuda.stream()
    append = CALLBACK(called.append)
    cuda.cuLaunchHostFunc_v2(stream, append, c_void_p(5), c_uint(1))
    cuda.cuStreamSynchronize(stream)
    assert called == [5]
    assert cuda.library.cuLaunchHostFunc_v2(stream, append, None, c_uint(2)) == INVALID_VALUE
    assert cuda.library.cuLaunchHostFunc(stream, None, None) == INVALID_VALUE


def test_a_context_has_users(cuda):
    context = cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    assert cuda.handle("cuCtxAttach", c_uint(0)).value == context.value
    for _ in range(2):
        cuda.cuCtxDetach(context)
    assert cuda.library.cuCtxPushCurrent_v2(context) != 0


def test_a_function_is_registered_for_notifications_and_forgotten_once(cuda):
    """Driver API, `cuDeviceRegisterAsyncNotification`."""
    callback, library = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)(lambda *_: None), cuda.library
    handle = c_void_p()
    cuda.cuDeviceRegisterAsyncNotification(0, callback, None, byref(handle))
    assert library.cuDeviceRegisterAsyncNotification(9, callback, None, byref(handle)) == INVALID_DEVICE
    assert library.cuDeviceRegisterAsyncNotification(0, None, None, byref(handle)) == INVALID_VALUE
    cuda.cuDeviceUnregisterAsyncNotification(0, handle)
    assert library.cuDeviceUnregisterAsyncNotification(0, handle) == INVALID_VALUE

"""Functions of the runtime that few programs call, by what CUDA's documentation says of them.

CUDA Runtime API: "Device Management", "Thread Management [DEPRECATED]", "Memory Management", "External Resource
Interoperability", "Graphics Interoperability", "Execution Context Management".
"""

from __future__ import annotations

import os
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.structures import DeviceResource, ExternalBuffer, ExternalMemoryHandle
from ptxvm.libcudart.structures import Channels

INVALID_VALUE, BAD_CHANNELS, BAD_FUNCTION, INVALID_HANDLE, NOT_SUPPORTED, NO_CONFIGURATION = 1, 20, 98, 400, 801, 915
NV12, FIRST_NORMALISED, BC1 = 4, 5, 17  # cudaChannelFormatKind
TO_DEVICE, TO_HOST = 1, 2
FOUR_BYTES, EIGHT_BYTES = 1, 2  # cudaSharedMemBankSize
PREFER_SHARED = 1  # cudaFuncCache
PRINTF = 1  # cudaLimit
OPAQUE_FILE, PAGE = 1, 4096
SM = 1  # cudaDevResourceTypeSm


def test_the_width_of_banks_is_fixed_and_asking_for_another_does_no_harm(program):
    """Devices with a fixed width ignore the preference (cudaDeviceSetSharedMemConfig)."""
    width = c_int()
    for asked in (0, EIGHT_BYTES, FOUR_BYTES):
        assert program.cudaDeviceSetSharedMemConfig(asked) == 0
        assert program.cudaFuncSetSharedMemConfig(program.scale, asked) == 0
        assert program.cudaDeviceGetSharedMemConfig(byref(width)) == 0
        assert width.value == FOUR_BYTES


def test_arrays_of_normalised_integers_tell_their_kind(program):
    """Each kind has its own bits (channel_descriptor.h, `cudaCreateChannelDesc`); those of planes and blocks are not there."""
    forms = [(bits, count) for bits in (8, 16) for count in (1, 2, 4)] * 2
    for kind, (bits, count) in enumerate(forms, FIRST_NORMALISED):
        array, told = c_void_p(), Channels()
        asked = Channels(*[bits] * count, *[0] * (4 - count), kind)
        assert program.cudaMallocArray(byref(array), byref(asked), c_size_t(8), c_size_t(4), 0) == 0
        assert program.cudaGetChannelDesc(byref(told), array) == 0
        assert bytes(told) == bytes(asked)
        assert program.cudaFreeArray(array) == 0
    for channels, error in (((8, 8, 0, 0, FIRST_NORMALISED), BAD_CHANNELS), ((16, 0, 0, 0, FIRST_NORMALISED), BAD_CHANNELS)):
        assert program.cudaMallocArray(byref(c_void_p()), byref(Channels(*channels)), c_size_t(8), c_size_t(4), 0) == error
    for kind in (NV12, BC1):
        wanted = Channels(8, 8, 8, 0, kind)
        assert program.cudaMallocArray(byref(c_void_p()), byref(wanted), c_size_t(8), c_size_t(4), 0) == NOT_SUPPORTED


@pytest.mark.parametrize("value", [-1, 4, 77])
def test_a_preference_that_there_is_not_is_an_invalid_value(program, value):
    assert program.cudaDeviceSetSharedMemConfig(value) == INVALID_VALUE
    assert program.cudaFuncSetSharedMemConfig(program.scale, value) == INVALID_VALUE
    assert program.cudaDeviceSetCacheConfig(value) == INVALID_VALUE
    assert program.cudaFuncSetCacheConfig(program.scale, value) == INVALID_VALUE
    assert program.cudaFuncSetSharedMemConfig(byref(c_int()), FOUR_BYTES) == BAD_FUNCTION


def test_the_names_of_cuda_1_are_those_of_devices(program):
    """Each is the same as the function that took its place (cudaThreadExit and the others); CUDA 13 has them no more."""
    if not hasattr(program.library, "cudaThreadExit"):
        assert not hasattr(program.library, "cudaThreadSynchronize")
        return
    limit, told, cache = c_size_t(), c_size_t(), c_int()
    assert program.cudaThreadSetLimit(PRINTF, c_size_t(1 << 21)) == 0
    assert program.cudaThreadGetLimit(byref(limit), PRINTF) == 0
    assert program.cudaDeviceGetLimit(byref(told), PRINTF) == 0
    assert limit.value == told.value == 1 << 21
    assert program.cudaThreadSetCacheConfig(PREFER_SHARED) == 0
    assert program.cudaThreadGetCacheConfig(byref(cache)) == 0
    assert cache.value == PREFER_SHARED
    memory = c_void_p()
    assert program.cudaMalloc(byref(memory), c_size_t(64)) == 0
    assert program.cudaThreadSynchronize() == 0
    assert program.cudaThreadExit() == 0
    assert program.cudaFree(memory) == INVALID_VALUE  # the reset has freed it


def test_rows_of_an_array_are_copied_on_streams(program):
    array, stream, channels = c_void_p(), c_void_p(), Channels(32, 0, 0, 0, 0)
    assert program.cudaStreamCreate(byref(stream)) == 0
    assert program.cudaMallocArray(byref(array), byref(channels), c_size_t(8), c_size_t(4), 0) == 0
    numbers, back = (c_int * 16)(*range(16)), (c_int * 16)()
    assert program.cudaMemcpyToArrayAsync(array, c_size_t(0), c_size_t(1), numbers, c_size_t(64), TO_DEVICE, stream) == 0
    assert program.cudaMemcpyFromArrayAsync(back, array, c_size_t(16), c_size_t(1), c_size_t(48), TO_HOST, stream) == 0
    assert program.cudaStreamSynchronize(stream) == 0
    assert list(back) == [*range(4, 16), 0, 0, 0, 0]
    past_the_end = program.cudaMemcpyToArrayAsync(array, c_size_t(0), c_size_t(3), numbers, c_size_t(64), TO_DEVICE, stream)
    assert past_the_end == INVALID_VALUE
    assert program.cudaArrayGetPlane(byref(c_void_p()), array, 0) == INVALID_VALUE  # it has one plane
    assert program.cudaFreeArray(array) == 0


def test_a_file_is_memory_of_the_device(program):
    file = os.memfd_create("external")
    os.ftruncate(file, 2 * PAGE)
    kept, memory, address = os.dup(file), c_void_p(), c_void_p()
    assert (
        program.cudaImportExternalMemory(byref(memory), byref(ExternalMemoryHandle(OPAQUE_FILE, file=file, size=2 * PAGE))) == 0
    )
    assert program.cudaExternalMemoryGetMappedBuffer(byref(address), memory, byref(ExternalBuffer(PAGE, 64))) == 0
    numbers = (c_int * 4)(3, 1, 4, 1)
    assert program.cudaMemcpy(address, numbers, c_size_t(16), TO_DEVICE) == 0
    assert os.pread(kept, 16, PAGE) == bytes(numbers)
    assert program.cudaFree(address) == 0
    assert program.cudaExternalMemoryGetMappedMipmappedArray(byref(address), memory, numbers) == NOT_SUPPORTED
    assert program.cudaDestroyExternalMemory(memory) == 0
    assert program.cudaDestroyExternalMemory(memory) == INVALID_HANDLE
    os.close(kept)


def test_what_needs_another_interface_is_not_supported(program):
    """No semaphore can be imported and no resource registered, so whatever uses one is refused, and its name is logged."""
    none, node, graph = c_void_p(), c_void_p(), c_void_p()
    assert program.cudaGraphCreate(byref(graph), 0) == 0
    parameters = (c_uint64 * 8)()
    refused = [
        program.cudaDestroyExternalSemaphore(none),
        program.cudaGraphAddExternalSemaphoresSignalNode(byref(node), graph, None, c_size_t(0), parameters),
        program.cudaGraphAddExternalSemaphoresWaitNode(byref(node), graph, None, c_size_t(0), parameters),
        program.cudaGraphicsUnregisterResource(none),
        program.cudaGraphicsResourceSetMapFlags(none, c_uint(0)),
        program.cudaGraphicsSubResourceGetMappedArray(byref(node), none, 0, 0),
        program.cudaGraphicsResourceGetMappedMipmappedArray(byref(node), none),
    ]
    for which in ("Signal", "Wait"):
        refused += [
            program[f"cudaGraphExternalSemaphores{which}NodeGetParams"](none, parameters),
            program[f"cudaGraphExternalSemaphores{which}NodeSetParams"](none, parameters),
            program[f"cudaGraphExecExternalSemaphores{which}NodeSetParams"](none, none, parameters),
        ]
        last = "_v2" if hasattr(program.library, f"cuda{which}ExternalSemaphoresAsync_v2") else ""
        refused.append(program[f"cuda{which}ExternalSemaphoresAsync{last}"](byref(none), parameters, 1, None))
    assert set(refused) == {NOT_SUPPORTED}
    assert not node.value
    assert program.cudaGraphDestroy(graph) == 0


def test_contexts_of_execution_have_numbers_and_parts_of_multiprocessors(program):
    if not hasattr(program.library, "cudaExecutionCtxGetId"):
        assert program.cudaLaunchCooperativeKernelMultiDevice(None, 1, 0) == NOT_SUPPORTED  # it is gone in CUDA 13
        return
    context, numbers = c_void_p(), [c_uint64(), c_uint64()]
    assert program.cudaDeviceGetExecutionCtx(byref(context), 0) == 0
    for each in numbers:
        assert program.cudaExecutionCtxGetId(context, byref(each)) == 0
    assert numbers[0].value == numbers[1].value
    whole, rest, parts = DeviceResource(), DeviceResource(), (DeviceResource * 2)()
    assert program.cudaDeviceGetDevResource(0, byref(whole), SM) == 0
    groups = (c_uint * 32)()  # of 16 words: the multiprocessors, those that are scheduled together, ...
    groups[0], groups[16] = 8, 16
    assert program.cudaDevSmResourceSplit(parts, 2, byref(whole), byref(rest), 0, byref(groups)) == 0
    assert [each.count for each in parts] == [8, 16]
    assert rest.count == whole.count - 24
    groups[0] = whole.count + 8
    assert program.cudaDevSmResourceSplit(parts, 2, byref(whole), byref(rest), 0, byref(groups)) == NO_CONFIGURATION

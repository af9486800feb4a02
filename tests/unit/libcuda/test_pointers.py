"""Attributes of pointers (driver API, `CUpointer_attribute`)."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import addressof, byref, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import pytest

INVALID_VALUE, INVALID_HANDLE = 1, 400
ATTACH_SINGLE = 4  # CU_MEM_ATTACH_SINGLE
MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, SYNCHRONOUS, MANAGED, ORDINAL, START, SIZE, MAPPED = 2, 3, 4, 6, 8, 9, 11, 12, 13
HANDLE_TYPES, REMOTE, ACCESS, POOL = 14, 15, 16, 17

OTHER_DEVICE = """
import sys
sys.path.insert(0, {folder!r})
from ctypes import byref, c_int, c_uint64, c_size_t, c_void_p
from stream_driver import Driver
cuda = Driver()
second = cuda.handle("cuDevicePrimaryCtxRetain", 1)
cuda.cuCtxPushCurrent_v2(second)
address, ordinal, context = c_uint64(), c_int(9), c_void_p()
cuda.cuMemAlloc_v2(byref(address), c_size_t(64))
cuda.cuCtxPopCurrent_v2(byref(c_void_p()))
cuda.cuPointerGetAttribute(byref(ordinal), 9, address)
cuda.cuPointerGetAttribute(byref(context), 1, address)
assert (ordinal.value, context.value) == (1, second.value)
"""


def told(cuda, number, address):
    value = c_uint64()
    cuda.cuPointerGetAttribute(byref(value), number, address)
    return value.value


def test_memory_that_is_managed_has_its_attributes(cuda):
    address = c_uint64(cuda.memory.value + 4)
    numbers = (MEMORY_TYPE, DEVICE_POINTER, MANAGED, ORDINAL, START, SIZE, MAPPED, HANDLE_TYPES, REMOTE, ACCESS, POOL)
    expected = [2, address.value, 1, 0, cuda.memory.value, 8, 1, 0, 0, 3, 0]
    assert [told(cuda, number, address) for number in numbers] == expected
    assert cuda.library.cuPointerGetAttribute(byref(c_uint64()), 99, address) == INVALID_VALUE


def test_memory_of_a_device_has_no_pointer_of_the_host(cuda):
    """`CU_POINTER_ATTRIBUTE_HOST_POINTER`, and "default NULL values" of cuPointerGetAttributes, which fill 64 bits."""
    device, host, managed = c_uint64(), c_uint64(), cuda.memory
    cuda.cuMemAlloc_v2(byref(device), c_size_t(64))
    cuda.cuMemHostAlloc(byref(host), c_size_t(64), 0)
    assert cuda.library.cuPointerGetAttribute(byref(c_uint64()), HOST_POINTER, device) == INVALID_VALUE
    assert [told(cuda, HOST_POINTER, each) for each in (host, managed)] == [host.value, managed.value]
    numbers = (c_uint * 4)(HOST_POINTER, DEVICE_POINTER, MEMORY_TYPE, START)
    for address, expected in ((device, [0, device.value, 2, device.value]), (c_uint64(8), [8, 8, 0, 0])):
        found = [c_uint64(1 << 63), c_uint64(1 << 63), c_uint(), c_uint64(1 << 63)]
        places = (c_void_p * 4)(*map(addressof, found))
        cuda.cuPointerGetAttributes(4, numbers, places, address)
        assert [each.value for each in found] == expected
    cuda.cuMemFree_v2(device)
    cuda.cuMemFreeHost(host)


VARIABLES = b""".version 7.8
.target sm_80
.address_size 64
.visible .global .align 4 .b8 table[24];
.visible .global .attribute(.managed) .align 4 .b8 shared_value[24];
"""


@pytest.mark.parametrize(("name", "managed"), [(b"table", 0), (b"shared_value", 1)])
def test_a_variable_of_a_module_has_attributes_and_is_not_freed(cuda, name, managed):
    """A variable is memory of the device (CUDA runtime API, `cudaPointerGetAttributes`), and `.managed` says so (PTX 5.4.8)."""
    module, start = cuda.handle("cuModuleLoadData", VARIABLES), c_uint64()
    cuda.cuModuleGetGlobal_v2(byref(start), None, module, name)
    inside = c_uint64(start.value + 4)
    assert [told(cuda, number, inside) for number in (MEMORY_TYPE, MANAGED, ORDINAL, START, SIZE)] == [
        2,
        managed,
        0,
        start.value,
        24,
    ]
    base, size = c_uint64(), c_size_t()
    cuda.cuMemGetAddressRange_v2(byref(base), byref(size), inside)
    assert (base.value, size.value) == (start.value, 24)
    assert cuda.library.cuMemFree_v2(start) == INVALID_VALUE
    assert cuda.library.cuMemAdvise(start, c_size_t(24), 1, 0) == (0 if managed else INVALID_VALUE)
    stream = cuda.handle("cuStreamCreate", 0)
    assert cuda.library.cuStreamAttachMemAsync(stream, start, c_size_t(0), ATTACH_SINGLE) == (0 if managed else INVALID_VALUE)
    cuda.cuStreamDestroy_v2(stream)
    cuda.cuModuleUnload(module)


def test_memory_is_attached_whole_and_to_a_stream_of_its_own(cuda):
    """Pageable memory too; "it is illegal to attach singly to the NULL stream" (driver API, `cuStreamAttachMemAsync`)."""
    memory, pageable, stream = c_uint64(), (c_uint * 4)(), cuda.handle("cuStreamCreate", 0)
    cuda.cuMemAllocManaged(byref(memory), c_size_t(64), c_uint(1))
    call = cuda.library.cuStreamAttachMemAsync
    assert [call(stream, memory, c_size_t(size), ATTACH_SINGLE) for size in (0, 64, 32)] == [0, 0, INVALID_VALUE]
    assert [call(stream, memory, c_size_t(0), flags) for flags in (1, 2, 3)] == [0, 0, INVALID_VALUE]
    assert call(stream, c_uint64(addressof(pageable)), c_size_t(16), 1) == 0
    assert call(stream, c_uint64(1 << 20), c_size_t(16), 1) == INVALID_VALUE
    assert [call(None, memory, c_size_t(0), flags) for flags in (1, ATTACH_SINGLE)] == [0, INVALID_HANDLE]
    cuda.cuStreamDestroy_v2(stream)
    cuda.cuMemFree_v2(memory)


def test_memory_is_freed_by_the_function_for_its_kind(cuda):
    """Driver API, `cuMemFree` and `cuMemFreeHost`: each is for what its own functions have allocated."""
    of_device, of_host, registered = c_uint64(), c_uint64(), (c_uint * 4)()
    cuda.cuMemAlloc_v2(byref(of_device), c_size_t(64))
    cuda.cuMemAllocHost_v2(byref(of_host), c_size_t(64))
    cuda.cuMemHostRegister_v2(registered, c_size_t(16), 0)
    free, free_host = cuda.library.cuMemFree_v2, cuda.library.cuMemFreeHost
    assert [free(of_host), free_host(of_device)] == [INVALID_VALUE] * 2
    assert [free(c_uint64(addressof(registered))), free_host(registered)] == [INVALID_VALUE] * 2
    cuda.cuMemHostUnregister(registered)
    assert [free(of_device), free_host(of_host)] == [0, 0]


def test_copies_of_memory_are_made_synchronous(cuda):
    for wanted in (1, 0):
        cuda.cuPointerSetAttribute(byref(c_uint(wanted)), SYNCHRONOUS, cuda.memory)
        assert told(cuda, SYNCHRONOUS, cuda.memory) == wanted
    assert cuda.library.cuPointerSetAttribute(byref(c_uint(1)), ORDINAL, cuda.memory) == INVALID_VALUE


def test_memory_of_a_pool_names_it(cuda):
    address = c_uint64()
    cuda.cuMemAllocAsync(byref(address), c_size_t(64), None)
    assert told(cuda, POOL, address) == cuda.handle("cuDeviceGetMemPool", 0).value
    cuda.cuMemFree_v2(address)


def test_memory_is_of_the_device_whose_context_allocated_it():
    program = OTHER_DEVICE.format(folder=str(Path(__file__).parent))
    environment = os.environ | {"PTXVM_DEVICES": "2"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_pageable_memory_is_reached_as_memory_of_a_device(cuda):
    """The devices say so (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS); what is not mapped, or was freed, is not reached."""
    pageable, freed = (c_uint * 2)(3, 4), c_uint64()
    cuda.cuMemcpyDtoD_v2(cuda.memory, c_uint64(addressof(pageable)), c_size_t(8))
    assert (cuda.flag.value, cuda.cell.value) == (3, 4)
    cuda.cuMemsetD32_v2(c_uint64(addressof(pageable)), c_uint(7), c_size_t(2))
    assert list(pageable) == [7, 7]
    cuda.cuMemAllocHost_v2(byref(freed), c_size_t(8))
    cuda.cuMemFreeHost(freed)
    for wrong in (c_uint64(1 << 20), freed):
        assert cuda.library.cuMemcpyDtoD_v2(cuda.memory, wrong, c_size_t(8)) == INVALID_VALUE

"""Attributes of pointers (driver API, `CUpointer_attribute`)."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import addressof, byref, c_size_t, c_uint, c_uint64
from pathlib import Path

INVALID_VALUE = 1
MEMORY_TYPE, DEVICE_POINTER, SYNCHRONOUS, MANAGED, ORDINAL, START, SIZE, MAPPED = 2, 3, 6, 8, 9, 11, 12, 13
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

"""Memory of other interfaces (driver API, "External Resource Interoperability")."""

from __future__ import annotations

import os
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.structures import AllocationProperties, ExternalBuffer, ExternalMemoryHandle

INVALID_VALUE, INVALID_HANDLE, ILLEGAL_ADDRESS, NOT_SUPPORTED = 1, 400, 700, 801
OPAQUE_FILE, D3D12_HEAP, NO_TYPE, PAGE = 1, 4, 77, 4096


@pytest.fixture
def file():
    """A file of two pages, which the driver takes, and a second number of it."""
    number = os.memfd_create("external")
    os.ftruncate(number, 2 * PAGE)
    kept = os.dup(number)
    yield number, kept
    os.close(kept)


def test_a_kernel_writes_into_a_file(cuda, file):
    number, kept = file
    memory = cuda.handle("cuImportExternalMemory", byref(ExternalMemoryHandle(OPAQUE_FILE, file=number, size=2 * PAGE)))
    address = c_uint64()
    cuda.cuExternalMemoryGetMappedBuffer(byref(address), memory, byref(ExternalBuffer(PAGE, 64)))
    cuda.launch(None, b"put", c_uint.from_address(address.value + 4), 9)
    cuda.cuCtxSynchronize()
    assert os.pread(kept, 8, PAGE) == bytes([0] * 4 + [9] + [0] * 3)
    size = c_size_t()
    cuda.cuMemGetAddressRange_v2(None, byref(size), address)
    assert size.value == 64
    cuda.cuDestroyExternalMemory(memory)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    cuda.cuMemFree_v2(address)
    assert cuda.library.cuMemFree_v2(address) == INVALID_VALUE


def test_memory_that_the_driver_exports_is_taken(cuda):
    made = cuda.handle("cuMemCreate", c_size_t(2 << 20), byref(AllocationProperties(1, 1, 1)), c_uint64(0))
    number, address = c_int(), c_uint64()
    cuda.cuMemExportToShareableHandle(byref(number), made, 1, c_uint64(0))
    memory = cuda.handle("cuImportExternalMemory", byref(ExternalMemoryHandle(OPAQUE_FILE, file=number.value, size=2 << 20)))
    cuda.cuExternalMemoryGetMappedBuffer(byref(address), memory, byref(ExternalBuffer(0, 2 << 20)))
    cuda.cuMemFree_v2(address)
    cuda.cuDestroyExternalMemory(memory)
    cuda.cuMemRelease(made)


def test_what_is_no_memory_is_refused(cuda, file):
    number, take = file[0], cuda.library.cuImportExternalMemory
    for result, wrong in (
        (INVALID_VALUE, ExternalMemoryHandle(NO_TYPE, size=1)), (NOT_SUPPORTED, ExternalMemoryHandle(D3D12_HEAP, size=1)),
        (INVALID_HANDLE, ExternalMemoryHandle(OPAQUE_FILE, file=9999, size=1)),
        (INVALID_VALUE, ExternalMemoryHandle(OPAQUE_FILE, file=number, size=3 * PAGE)),
    ):  # fmt: skip
        assert take(byref(c_void_p()), byref(wrong)) == result
    memory = cuda.handle("cuImportExternalMemory", byref(ExternalMemoryHandle(OPAQUE_FILE, file=number, size=PAGE)))
    buffer = cuda.library.cuExternalMemoryGetMappedBuffer
    assert buffer(byref(c_uint64()), memory, byref(ExternalBuffer(PAGE - 8, 16))) == INVALID_VALUE
    cuda.cuDestroyExternalMemory(memory)

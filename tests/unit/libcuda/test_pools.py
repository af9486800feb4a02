"""Pools of memory (driver API, "Stream Ordered Memory Allocator")."""

from __future__ import annotations

import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64
from pathlib import Path

import pytest

from ptxvm.libcuda.structures import AccessDescription, Location, PoolProperties

INVALID_VALUE, OUT_OF_MEMORY, NOT_PERMITTED, NOT_SUPPORTED = 1, 2, 800, 801
ON_DEVICE, ON_HOST, PINNED, MANAGED, FILE, READ_WRITE = 1, 2, 1, 2, 1, 3
THRESHOLD, RESERVED, RESERVED_HIGH, USED, HIGH, HANDLES = 4, 5, 6, 7, 8, 10  # CUmemPool_attribute
POINTER_MANAGED = 8  # CU_POINTER_ATTRIBUTE_IS_MANAGED


def pool_of(cuda, place=ON_DEVICE, handles=0, most=0, kind=PINNED):
    return cuda.handle("cuMemPoolCreate", byref(PoolProperties(kind, handles, Location(place, 0), 0, most)))


def attribute(cuda, pool, number):
    told = c_uint64()
    cuda.cuMemPoolGetAttribute(pool, number, byref(told))
    return told.value


def allocated(cuda, pool, size=64):
    address = c_uint64()
    cuda.cuMemAllocFromPoolAsync(byref(address), c_size_t(size), pool, None)
    return address


def test_a_pool_counts_what_is_in_use(cuda):
    pool = pool_of(cuda, most=256)
    first, second = allocated(cuda, pool, 100), allocated(cuda, pool, 50)
    assert (attribute(cuda, pool, USED), attribute(cuda, pool, HIGH)) == (150, 150)
    assert cuda.library.cuMemAllocFromPoolAsync(byref(c_uint64()), c_size_t(107), pool, None) == OUT_OF_MEMORY
    cuda.cuMemFreeAsync(first, None)
    cuda.cuCtxSynchronize()
    assert (attribute(cuda, pool, USED), attribute(cuda, pool, HIGH)) == (50, 150)
    cuda.cuMemPoolSetAttribute(pool, HIGH, byref(c_uint64(0)))
    assert attribute(cuda, pool, HIGH) == 50
    cuda.cuMemFree_v2(second)
    assert attribute(cuda, pool, USED) == 0
    assert cuda.library.cuMemPoolSetAttribute(pool, USED, byref(c_uint64(0))) == INVALID_VALUE
    assert cuda.library.cuMemPoolGetAttribute(pool, 99, byref(c_uint64())) == INVALID_VALUE


def test_a_pool_has_no_hardware_for_decompression(cuda):
    """CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED is an int, and can only be asked for."""
    pool, told = pool_of(cuda), (c_int * 2)(-1, -1)
    cuda.cuMemPoolGetAttribute(pool, 14, byref(told))
    assert tuple(told) == (0, -1)
    assert cuda.library.cuMemPoolSetAttribute(pool, 14, byref(c_int(1))) == INVALID_VALUE


def test_a_pool_keeps_free_memory_up_to_its_threshold(cuda):
    pool = pool_of(cuda)
    cuda.cuMemPoolSetAttribute(pool, THRESHOLD, byref(c_uint64(120)))
    cuda.cuMemFree_v2(allocated(cuda, pool, 100))
    assert [attribute(cuda, pool, each) for each in (RESERVED, USED, RESERVED_HIGH, HIGH)] == [100, 0, 100, 100]
    both = [allocated(cuda, pool, size) for size in (100, 50)]
    cuda.cuMemPoolSetAttribute(pool, HIGH, byref(c_uint64(0)))
    for address in both:
        cuda.cuMemFree_v2(address)
    assert [attribute(cuda, pool, each) for each in (RESERVED, USED, RESERVED_HIGH, HIGH)] == [120, 0, 150, 150]
    cuda.cuMemPoolTrimTo(pool, c_size_t(30))
    assert attribute(cuda, pool, RESERVED) == 30
    cuda.cuMemPoolSetAttribute(pool, RESERVED_HIGH, byref(c_uint64(0)))
    assert [attribute(cuda, pool, each) for each in (RESERVED_HIGH, HIGH)] == [30, 150]


def test_a_device_allocates_from_the_pool_that_is_chosen(cuda):
    first = cuda.handle("cuDeviceGetDefaultMemPool", 0)
    other, device = pool_of(cuda), Location(ON_DEVICE, 0)
    cuda.cuMemSetMemPool(byref(device), PINNED, other)
    assert cuda.handle("cuDeviceGetMemPool", 0).value == other.value
    assert cuda.handle("cuMemGetDefaultMemPool", byref(device), PINNED).value == first.value
    address = c_uint64()
    cuda.cuMemAllocAsync(byref(address), c_size_t(32), None)
    assert attribute(cuda, other, USED) == 32
    cuda.cuMemFreeAsync(address, None)
    assert cuda.library.cuDeviceSetMemPool(0, pool_of(cuda, ON_HOST)) == INVALID_VALUE
    cuda.cuMemPoolDestroy(other)
    assert cuda.handle("cuDeviceGetMemPool", 0).value == first.value
    assert cuda.library.cuMemPoolDestroy(first) == INVALID_VALUE


@pytest.mark.parametrize(("place", "kind", "managed", "memory_type"), [
    (ON_DEVICE, PINNED, 0, 2), (ON_HOST, PINNED, 0, 1), (ON_DEVICE, MANAGED, 1, 2),
])  # fmt: skip
def test_memory_of_a_pool_is_where_the_pool_is(cuda, place, kind, managed, memory_type):
    address, told = allocated(cuda, pool_of(cuda, place, kind=kind)), c_int()
    cuda.cuPointerGetAttribute(byref(told), POINTER_MANAGED, address)
    assert told.value == managed
    cuda.cuPointerGetAttribute(byref(told), 2, address)
    assert told.value == memory_type
    cuda.cuMemFreeAsync(address, None)


def test_a_pool_may_be_used_by_its_device(cuda):
    pool, told = pool_of(cuda), c_int()
    cuda.cuMemPoolGetAccess(byref(told), pool, byref(Location(ON_DEVICE, 0)))
    assert told.value == READ_WRITE
    assert cuda.library.cuMemPoolSetAccess(pool, byref(AccessDescription(ON_DEVICE, 0, 0)), c_size_t(1)) == 101
    assert cuda.library.cuMemPoolCreate(byref(c_uint64()), byref(PoolProperties(1, 8, Location(1, 0)))) == NOT_SUPPORTED


OTHER_PROCESS = """
import sys
from ctypes import byref, c_char, c_size_t, c_uint, c_uint64
sys.path.insert(0, {folder!r})
from stream_driver import Driver
cuda = Driver()
pool, address = c_uint64(), c_uint64()
assert cuda.library.cuMemPoolImportFromShareableHandle(byref(pool), c_uint64(int(sys.argv[1])), 1, c_uint64(0)) == 0
data = (c_char * 64)(*bytes.fromhex(sys.argv[2]))
assert cuda.library.cuMemAllocFromPoolAsync(byref(address), c_size_t(4), pool, None) == 800
for digit in (2, 3):  # opened and closed twice
    assert cuda.library.cuMemPoolImportPointer(byref(address), pool, data) == 0
    told = c_uint()
    cuda.cuPointerGetAttribute(byref(told), 2, address)
    assert told.value == int(sys.argv[3])
    cuda.launch(None, b"append", c_uint.from_address(address.value), digit)
    cuda.cuCtxSynchronize()
    cuda.cuMemFreeAsync(address, None)
    assert cuda.library.cuMemFree_v2(address) == 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is shared by files of Linux")
@pytest.mark.parametrize(("place", "memory_type"), [(ON_DEVICE, 2), (ON_HOST, 1)])
def test_processes_share_the_memory_of_a_pool(cuda, place, memory_type):
    pool, number, data = pool_of(cuda, place, handles=FILE), c_int(), (c_uint64 * 8)()
    address = allocated(cuda, pool)
    c_uint.from_address(address.value).value = 1
    assert attribute(cuda, pool, HANDLES) == FILE
    cuda.cuMemPoolExportToShareableHandle(byref(number), pool, FILE, c_uint64(0))
    cuda.cuMemPoolExportPointer(data, address)
    program = OTHER_PROCESS.format(folder=str(Path(__file__).parent))
    command = [sys.executable, "-c", program, str(number.value), bytes(data).hex(), str(memory_type)]
    done = subprocess.run(command, pass_fds=[number.value], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert c_uint.from_address(address.value).value == 123
    private = allocated(cuda, pool_of(cuda))
    assert cuda.library.cuMemPoolExportPointer(data, private) == INVALID_VALUE
    assert cuda.library.cuMemPoolExportToShareableHandle(byref(number), pool_of(cuda), FILE, c_uint64(0)) == INVALID_VALUE


@pytest.mark.skipif(sys.platform != "linux", reason="memory is shared by files of Linux")
def test_the_process_that_shares_a_pool_imports_it_too(cuda):
    """Nothing in the driver API rules that out; another pool's memory is no value for it (`cuMemPoolImportPointer`)."""
    imported, data, digit = [], (c_uint64 * 8)(), c_uint(2)
    pools = [pool_of(cuda, handles=FILE) for _ in "12"]
    for pool in pools:
        number = c_int()
        cuda.cuMemPoolExportToShareableHandle(byref(number), pool, FILE, c_uint64(0))
        imported.append(cuda.handle("cuMemPoolImportFromShareableHandle", c_uint64(number.value), FILE, c_uint64(0)))
    address = allocated(cuda, pools[0])
    cell = c_uint.from_address(address.value)
    cell.value = 1
    cuda.cuMemPoolExportPointer(data, address)
    second = cuda.handle("cuMemPoolImportPointer", imported[0], data)
    assert second.value not in (0, address.value)
    cuda.launch(None, b"append", c_uint.from_address(second.value), digit.value)
    cuda.cuCtxSynchronize()
    assert (cell.value, c_uint.from_address(second.value).value) == (12, 12)
    for wrong in (imported[1], pools[0]):
        assert cuda.library.cuMemPoolImportPointer(byref(c_uint64()), wrong, data) == INVALID_VALUE
    cuda.cuMemFreeAsync(second, None)
    cuda.cuMemFreeAsync(address, None)


def test_managed_memory_has_pools_of_its_own(cuda):
    """Of no place, or of a device; they are not the pools of its other memory (driver API, `cuMemGetMemPool`)."""
    anywhere, device = Location(0, 0), Location(ON_DEVICE, 0)
    managed = cuda.handle("cuMemGetMemPool", byref(anywhere), MANAGED)
    others = [cuda.handle("cuMemGetMemPool", byref(device), kind).value for kind in (PINNED, MANAGED)]
    assert len({managed.value, *others}) == 3
    address, told = allocated(cuda, managed), c_int()
    cuda.cuPointerGetAttribute(byref(told), POINTER_MANAGED, address)
    assert told.value == 1
    cuda.cuMemFree_v2(address)
    assert cuda.library.cuMemSetMemPool(byref(device), PINNED, managed) == INVALID_VALUE
    assert cuda.library.cuMemGetMemPool(byref(c_uint64()), byref(anywhere), PINNED) == INVALID_VALUE
    assert cuda.library.cuMemGetMemPool(byref(c_uint64()), byref(device), 9) == INVALID_VALUE

"""Advice on managed memory (driver API, "Unified Addressing")."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64

import pytest

INVALID_VALUE, INVALID_DEVICE = 1, 101
READ_MOSTLY, PREFERRED, ACCESSED_BY, LAST_PREFETCH, PREFERRED_TYPE, PREFERRED_ID = range(1, 7)  # CUmem_range_attribute
HOST, NONE = -1, -2
ON_HOST = c_uint64(2)
ON_DEVICE = c_uint64(1)  # device 0


@pytest.fixture
def memory(cuda):
    """64 bytes of managed memory."""
    made = c_uint64()
    cuda.cuMemAllocManaged(byref(made), c_size_t(64), c_uint(1))
    yield made.value
    cuda.cuMemFree_v2(made)


def told(cuda, number, start, size, words=1):
    found = (c_int * words)()
    cuda.cuMemRangeGetAttribute(found, c_size_t(4 * words), number, c_uint64(start), c_size_t(size))
    return list(found)


def test_advice_is_told_of_ranges_that_have_it_all(cuda, memory):
    def advise(start, size, advice, device=0):
        cuda.cuMemAdvise(c_uint64(memory + start), c_size_t(size), advice, device)

    assert told(cuda, PREFERRED, memory, 64) == [NONE]
    advise(0, 64, 3)
    advise(16, 16, 3, HOST)  # the middle prefers the host
    assert [told(cuda, PREFERRED, memory + start, 16) for start in (0, 16, 32)] == [[0], [HOST], [0]]
    assert told(cuda, PREFERRED, memory, 64) == [NONE]
    assert (told(cuda, PREFERRED_TYPE, memory + 16, 8), told(cuda, PREFERRED_TYPE, memory + 32, 8)) == ([2], [1])
    advise(16, 16, 4)  # no longer
    assert told(cuda, PREFERRED, memory + 16, 16) == [NONE]
    advise(0, 32, 1)
    advise(32, 32, 1)
    assert told(cuda, READ_MOSTLY, memory, 64) == [1]
    advise(8, 8, 2)
    assert (told(cuda, READ_MOSTLY, memory, 64), told(cuda, READ_MOSTLY, memory + 16, 48)) == ([0], [1])
    advise(0, 64, 5)
    assert told(cuda, ACCESSED_BY, memory, 64, 3) == [0, NONE, NONE]
    library = cuda.library
    assert library.cuMemAdvise(c_uint64(memory), c_size_t(64), 9, 0) == INVALID_VALUE
    assert library.cuMemAdvise(c_uint64(memory), c_size_t(64), 3, 7) == INVALID_DEVICE


@pytest.mark.parametrize(("name", "more"), [("cuMemAlloc_v2", []), ("cuMemHostAlloc", [0])])
def test_advice_is_for_managed_memory(cuda, name, more):
    """Memory of a device, or of the host, that is allocated otherwise takes none (driver API, `cuMemAdvise`)."""
    plain = c_uint64()
    getattr(cuda, name)(byref(plain), c_size_t(64), *more)
    assert cuda.library.cuMemAdvise(plain, c_size_t(64), 1, 0) == INVALID_VALUE
    assert cuda.library.cuMemPrefetchAsync(plain, c_size_t(64), 0, None) == INVALID_VALUE
    (cuda.cuMemFree_v2 if name == "cuMemAlloc_v2" else cuda.cuMemFreeHost)(plain)


def test_the_last_prefetch_is_told(cuda, memory):
    assert told(cuda, LAST_PREFETCH, memory, 64) == [NONE]
    cuda.cuMemPrefetchAsync_v2(c_uint64(memory), c_size_t(64), ON_DEVICE, 0, None)
    assert told(cuda, LAST_PREFETCH, memory, 64) == [0]
    starts, sizes = (c_uint64 * 2)(memory, memory + 32), (c_size_t * 2)(32, 32)
    places, first = (c_uint64 * 2)(ON_HOST.value, ON_DEVICE.value), (c_size_t * 2)(0, 1)
    count = c_size_t(2)
    cuda.cuMemPrefetchBatchAsync(starts, sizes, count, places, first, count, c_uint64(0), None)
    assert (told(cuda, LAST_PREFETCH, memory, 32), told(cuda, LAST_PREFETCH, memory + 32, 32)) == ([HOST], [0])
    assert cuda.library.cuMemPrefetchAsync_v2(c_uint64(memory), c_size_t(64), ON_DEVICE, 1, None) == INVALID_VALUE  # flags
    batch = starts, sizes, count, places, first, count
    assert cuda.library.cuMemPrefetchBatchAsync(*batch, c_uint64(1), None) == INVALID_VALUE
    plain = c_uint64()
    cuda.cuMemAlloc_v2(byref(plain), c_size_t(64))
    found = c_int()
    assert cuda.library.cuMemRangeGetAttribute(byref(found), c_size_t(4), PREFERRED, plain, c_size_t(4)) == INVALID_VALUE
    cuda.cuMemFree_v2(plain)


def test_managed_memory_may_be_discarded(cuda, memory):
    stream, starts, sizes = cuda.stream(), (c_uint64 * 1)(memory), (c_size_t * 1)(64)
    cuda.cuMemDiscardBatchAsync(starts, sizes, c_size_t(1), c_uint64(0), stream)
    places, first = (c_uint64 * 1)(ON_HOST.value), (c_size_t * 1)(0)
    cuda.cuMemDiscardAndPrefetchBatchAsync(starts, sizes, c_size_t(1), places, first, c_size_t(1), c_uint64(0), stream)
    assert told(cuda, LAST_PREFETCH, memory, 64) == [HOST]
    sizes[0] = 1 << 20
    assert cuda.library.cuMemDiscardBatchAsync(starts, sizes, c_size_t(1), c_uint64(0), stream) == INVALID_VALUE


HOST_NODE, CURRENT_HOST_NODE = 3, 4  # CUmemLocationType
PREFETCH_TYPE, PREFETCH_ID = 7, 8


@pytest.mark.parametrize("location", [c_uint64(HOST_NODE), c_uint64(CURRENT_HOST_NODE | 77 << 32)])
def test_a_node_of_the_host_is_told_with_its_number(cuda, memory, location):
    cuda.cuMemAdvise_v2(c_uint64(memory), c_size_t(64), 3, location)
    cuda.cuMemPrefetchAsync_v2(c_uint64(memory), c_size_t(64), location, 0, None)
    numbers = PREFERRED, PREFERRED_TYPE, LAST_PREFETCH, PREFETCH_TYPE
    assert [told(cuda, number, memory, 64)[0] for number in numbers] == [HOST, HOST_NODE, HOST, HOST_NODE]
    nodes = [told(cuda, number, memory, 64)[0] for number in (PREFERRED_ID, PREFETCH_ID)]
    assert nodes[0] == nodes[1] >= 0
    assert location.value != HOST_NODE or nodes[0] == 0


@pytest.mark.parametrize("location", [c_uint64(HOST_NODE | 1000 << 32), c_uint64(9)])
def test_locations_that_there_are_not_are_refused(cuda, memory, location):
    assert cuda.library.cuMemAdvise_v2(c_uint64(memory), c_size_t(64), 3, location) == INVALID_VALUE


def test_memory_is_where_it_was_prefetched_last(cuda, memory):
    def locations(address, size, region, step):
        found = (c_int * 16)(*[-7] * 16)
        cuda.cuMemGetLocationInfo(c_uint64(address), c_size_t(size), c_size_t(region), c_size_t(step), found)
        return [tuple(found[n : n + 2]) for n in range(0, 2 * -(-size // region), 2)], found[2 * -(-size // region)]

    host, device = (2, 0), (1, 0)
    cuda.cuMemPrefetchAsync_v2(c_uint64(memory + 20), c_size_t(44), ON_DEVICE, 0, None)
    assert locations(memory, 64, 24, 4) == ([host, device, device], -7)
    assert locations(memory, 64, 64, 0) == ([host], -7)  # one sample, the first byte
    plain = (c_uint64 * 8)()
    assert locations(ctypes.addressof(plain), 64, 64, 8) == ([host], -7)
    of_device = c_uint64()
    cuda.cuMemAlloc_v2(byref(of_device), c_size_t(64))
    for address, region, step in ((memory, 0, 0), (memory, 65, 0), (memory, 8, 9), (of_device.value, 8, 8)):
        refused = cuda.library.cuMemGetLocationInfo(
            c_uint64(address), c_size_t(64), c_size_t(region), c_size_t(step), (c_int * 16)()
        )
        assert refused == INVALID_VALUE
    cuda.cuMemFree_v2(of_device)

"""Copies that leave memory (driver API, `cuMemcpy` ...: CUDA_ERROR_INVALID_VALUE for parameters out of range)."""

from __future__ import annotations

from ctypes import addressof, byref, c_char, c_size_t, c_uint64

import pytest

from ptxvm.driver.context import Stream
from ptxvm.driver.graph import Task
from ptxvm.libcuda.calls import copies

INVALID_VALUE, SMALL, LARGE, HUGE = 1, 512, 4096, 64 << 20


@pytest.fixture
def device(cuda):
    address = c_uint64()
    cuda.cuMemAlloc_v2(byref(address), c_size_t(SMALL))
    yield address
    cuda.cuMemFree_v2(address)


@pytest.fixture
def host():
    """Pageable memory, and its address."""
    memory = (c_char * LARGE)()
    return memory, c_uint64(addressof(memory))


def test_a_copy_whose_addresses_tell_its_direction_stays_in_its_allocations(cuda, device, host):
    """One beyond the end of device memory ended the process."""
    for sides in ((device, host[1]), (host[1], device), (device, device)):
        assert cuda.library.cuMemcpy(*sides, c_size_t(SMALL)) == 0
        assert cuda.library.cuMemcpy(*sides, c_size_t(LARGE)) == INVALID_VALUE
        assert cuda.library.cuMemcpyAsync(*sides, c_size_t(LARGE), cuda.stream()) == INVALID_VALUE
    inside = c_uint64(device.value + SMALL - 4)
    assert cuda.library.cuMemcpy(inside, host[1], c_size_t(4)) == 0
    assert cuda.library.cuMemcpy(inside, host[1], c_size_t(5)) == INVALID_VALUE


def test_the_side_of_the_host_stays_in_its_allocation_too(cuda, device, host):
    pinned, large = c_uint64(), c_uint64()
    cuda.cuMemHostAlloc(byref(pinned), c_size_t(SMALL), 0)
    cuda.cuMemAlloc_v2(byref(large), c_size_t(LARGE))
    assert cuda.library.cuMemcpyHtoD_v2(large, pinned, c_size_t(SMALL)) == 0
    assert cuda.library.cuMemcpyHtoD_v2(large, pinned, c_size_t(LARGE)) == INVALID_VALUE
    assert cuda.library.cuMemcpyDtoH_v2(pinned, large, c_size_t(LARGE)) == INVALID_VALUE
    assert cuda.library.cuMemcpyDtoH_v2(host[1], large, c_size_t(LARGE)) == 0
    cuda.cuMemFreeHost(pinned)
    cuda.cuMemFree_v2(large)


def test_freed_memory_is_copied_in_no_direction(cuda, host):
    """So much that it goes back to the system at once."""
    address = c_uint64()
    cuda.cuMemAlloc_v2(byref(address), c_size_t(HUGE))
    cuda.cuMemFree_v2(address)
    assert cuda.library.cuMemcpy(host[1], address, c_size_t(LARGE)) == INVALID_VALUE
    assert cuda.library.cuMemcpy(address, host[1], c_size_t(LARGE)) == INVALID_VALUE


def test_a_copy_for_which_the_host_waits_is_no_task_where_nothing_is_pending(cuda, device, host, monkeypatch):
    """Neither on the default stream nor on another; with checks, which follow the order of the default stream, it is one."""
    original, tasks, (memory, address), size = Stream.put, [], host, c_size_t(SMALL)

    def put(stream: Stream, task: Task, kind: int) -> None:
        tasks.append(task)
        original(stream, task, kind)

    monkeypatch.setattr(Stream, "put", put)
    memory.raw = b"a" * LARGE
    cuda.cuMemcpyHtoD_v2(device, address, size)
    memory.raw = b"b" * LARGE
    for stream in (None, cuda.stream()):
        cuda.cuMemcpyDtoHAsync_v2(address, device, size, stream)
        cuda.cuMemcpyHtoDAsync_v2(device, address, size, stream)
    assert memory.raw[: SMALL + 1] == b"a" * SMALL + b"b"
    assert not tasks
    monkeypatch.setattr(copies, "wanted", lambda: frozenset({"race"}))
    cuda.cuMemcpyHtoD_v2(device, address, size)
    assert len(tasks) == 1

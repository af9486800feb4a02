"""Copies by addresses of the host at which nothing is mapped, or not for what a copy does with it.

CUDA driver API, `cuMemcpyHtoD` ...: CUDA_ERROR_INVALID_VALUE for a parameter out of range.  Each ended the process.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from ctypes import CDLL, byref, c_char, c_int, c_long, c_size_t, c_uint64, c_void_p, memmove, string_at
from functools import partial
from mmap import PAGESIZE

import pytest

from ptxvm.diagnostics.errors import Fault
from ptxvm.driver import host_pages
from ptxvm.libcuda.calls.copies import copied, task
from ptxvm.libcuda.structures import Copy2D
from ptxvm.machine.device import device as machine_device

SUCCESS, INVALID_VALUE, HOST, DEVICE = 0, 1, 1, 2
SIZE = 4096
READ, READ_WRITE, PRIVATE_ANONYMOUS = 1, 3, 0x22
NOWHERE = 16, 0x7000_0000_0000, 1 << 63, (1 << 64) - 16


@pytest.fixture
def device(cuda) -> Iterator[int]:
    address = c_uint64()
    cuda.cuMemAlloc_v2(byref(address), c_size_t(SIZE))
    yield address.value
    cuda.cuMemFree_v2(address)


class Pages:
    """Two pages that may be written, one that may be read, and a gap; the first byte of each."""

    def __init__(self) -> None:
        self.library = CDLL(None)
        self.library.mmap.restype = c_void_p
        self.library.mmap.argtypes = c_void_p, c_size_t, c_int, c_int, c_int, c_long
        self.library.munmap.argtypes = c_void_p, c_size_t
        self.library.mprotect.argtypes = c_void_p, c_size_t, c_int
        start: int = self.library.mmap(None, 4 * PAGESIZE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
        self.writable, self.readable, self.gap = start, start + 2 * PAGESIZE, start + 3 * PAGESIZE
        self.library.mprotect(self.readable, PAGESIZE, READ)
        self.library.munmap(self.gap, PAGESIZE)

    def end(self) -> None:
        self.library.munmap(self.writable, 3 * PAGESIZE)


@pytest.fixture
def pages() -> Iterator[Pages]:
    made = Pages()
    yield made
    made.end()


def answers(cuda, target: int, source: int, types: tuple[int, int], size: int = SIZE) -> set[int]:
    """What copies of all kinds between two addresses return."""
    library, bytes_, stream = cuda.library, c_size_t(size), cuda.stream()
    name = "HtoD" if types == (DEVICE, HOST) else "DtoH"
    sides = c_uint64(target), c_uint64(source)
    rows = Copy2D(
        target_type=types[0], target_host=target, target_device=target, target_pitch=size // 8,
        source_type=types[1], source_host=source, source_device=source, source_pitch=size // 8, width=size // 8, height=8,
    )  # fmt: skip
    return {
        getattr(library, f"cuMemcpy{name}_v2")(*sides, bytes_),
        getattr(library, f"cuMemcpy{name}Async_v2")(*sides, bytes_, stream),
        library.cuMemcpy(*sides, bytes_),
        library.cuMemcpyAsync(*sides, bytes_, stream),
        library.cuMemcpy2D_v2(byref(rows)),
        library.cuMemcpy2DAsync_v2(byref(rows), stream),
    }


@pytest.mark.parametrize("nowhere", NOWHERE)
def test_a_pointer_that_points_nowhere_is_an_error(cuda, device, nowhere):
    assert answers(cuda, device, nowhere, (DEVICE, HOST)) == {INVALID_VALUE}
    assert answers(cuda, nowhere, device, (HOST, DEVICE)) == {INVALID_VALUE}
    assert cuda.library.cuMemHostRegister_v2(c_uint64(nowhere), c_size_t(SIZE), 0) == INVALID_VALUE
    assert cuda.library.cuCtxSynchronize() == SUCCESS  # and the context works as before


def test_a_copy_ends_where_the_memory_of_the_host_does(cuda, device, pages):
    memmove(pages.writable, b"w" * 2 * PAGESIZE, 2 * PAGESIZE)
    across = pages.readable - SIZE // 2  # memory that may be written, and then some that may only be read
    assert answers(cuda, device, pages.gap - SIZE, (DEVICE, HOST)) == {SUCCESS}
    assert answers(cuda, device, across, (DEVICE, HOST)) == {SUCCESS}
    assert answers(cuda, device, pages.gap - SIZE + 8, (DEVICE, HOST)) == {INVALID_VALUE}
    assert answers(cuda, pages.readable - SIZE, device, (HOST, DEVICE)) == {SUCCESS}
    assert answers(cuda, across, device, (HOST, DEVICE)) == {INVALID_VALUE}
    assert string_at(pages.writable, PAGESIZE) == b"w" * PAGESIZE  # what was copied there came from it


def test_the_host_may_have_memory_where_a_device_had_some(cuda, device, pages, monkeypatch):
    """What the driver has given back to the host is the host's own, wherever it lies."""
    first = c_uint64()
    cuda.cuMemAlloc_v2(byref(first), c_size_t(SIZE))
    cuda.cuMemFree_v2(first)
    table = machine_device(0).memory.table
    freed = table.freed(first.value, 1)
    assert cuda.library.cuMemcpy(c_uint64(device), first, c_size_t(SIZE)) == INVALID_VALUE  # its addresses rest
    across = pages.readable - SIZE // 2
    for name, value in {"start": across, "end": across + SIZE, "rests": False}.items():  # and now the host has them
        monkeypatch.setattr(freed, name, value)
    assert answers(cuda, device, across, (DEVICE, HOST)) == {SUCCESS}


def test_memory_must_be_there_to_be_registered(cuda, pages):
    assert cuda.library.cuMemHostRegister_v2(c_uint64(pages.gap), c_size_t(PAGESIZE), 0) == INVALID_VALUE
    assert cuda.library.cuMemHostRegister_v2(c_uint64(pages.writable), c_size_t(PAGESIZE), 0) == SUCCESS
    assert cuda.library.cuMemHostUnregister(c_uint64(pages.writable)) == SUCCESS


def test_memory_that_a_graph_copies_may_be_gone_when_its_turn_comes(cuda, device, pages):
    into, back = partial(task(copied(device, pages.writable, SIZE, (device,))).run, None), (c_char * SIZE)()
    memmove(pages.writable, b"s" * SIZE, SIZE)
    into()
    cuda.cuMemcpyDtoH_v2(back, c_uint64(device), c_size_t(SIZE))
    assert back.raw == b"s" * SIZE
    pages.library.munmap(pages.writable, PAGESIZE)
    with pytest.raises(Fault, match=r"4096 bytes at 0x.* their memory was freed"):
        into()


@pytest.fixture(params=["advice", "mappings", "no mappings"])
def system(request, monkeypatch, tmp_path):
    """Systems that answer at once, that have only a list of mappings, and that have none."""
    if request.param != "advice":
        monkeypatch.setattr(host_pages, "_advice", lambda: lambda *_: errno.EINVAL)
    if request.param == "no mappings":
        monkeypatch.setattr(host_pages, "MAPS", tmp_path / "maps")
    return request.param


def test_what_is_accessible(system, pages):
    def found(address: int, size: int) -> tuple[bool, bool]:
        return tuple(host_pages.is_accessible(address, size, writing=writing) for writing in (False, True))

    assert found(pages.writable + 1, 2 * PAGESIZE - 1) == (True, True)
    assert found((1 << 64) - 8, 16) == (False, False)
    unknown = system == "no mappings"
    assert found(pages.writable + 1, 2 * PAGESIZE) == (True, unknown)
    assert found(pages.readable, PAGESIZE) == (True, unknown)
    assert found(pages.readable, PAGESIZE + 1) == (unknown, unknown)
    assert found(8, 8) == (unknown, unknown)


def test_a_c_library_without_madvise_leaves_it_to_the_mappings(monkeypatch):
    host_pages._advice.cache_clear()
    monkeypatch.setattr(host_pages.ctypes, "CDLL", lambda *_, **__: object())
    assert host_pages._advice()(0, 0, 0) == errno.EINVAL
    host_pages._advice.cache_clear()

"""Copies and fills of mapped memory (driver API, "Virtual Memory Management": what is accessible, and for what).

Every wrong copy here ended the process with a signal, or read past the mapping.
"""

from __future__ import annotations

from ctypes import Array, addressof, byref, c_char, c_int, c_size_t, c_uint64

import pytest

from ptxvm.diagnostics.errors import Fault
from ptxvm.libcuda.calls.copies import Extent, NodeWork, copied
from ptxvm.libcuda.structures import AccessDescription, AllocationProperties, Array3DDescriptor, Copy2D

SUCCESS, INVALID_VALUE, NOT_SUPPORTED, UNIFIED, FLOAT, MIB, SIZE = 0, 1, 801, 4, 0x20, 1 << 20, 4096
PIECE = 2 * MIB
READ, READ_WRITE = 1, 3
PIECES = (READ_WRITE, READ_WRITE, READ, 0)  # the access of each, 0 for none; nothing is mapped behind them
BEGINS = {n: n * PIECE + 512 for n in range(len(PIECES) + 1)}
BORDERS = {(n, n + 1): (n + 1) * PIECE - SIZE // 2 for n in range(len(PIECES))}
READABLE = {*map(BEGINS.get, (0, 1, 2)), BORDERS[0, 1], BORDERS[1, 2]}
WRITABLE = {*map(BEGINS.get, (0, 1)), BORDERS[0, 1]}


@pytest.fixture
def mapped(cuda):
    """The first of the addresses."""
    start, handles = c_uint64(), []
    extent = c_size_t(PIECE * (len(PIECES) + 1))
    cuda.cuMemAddressReserve(byref(start), extent, c_size_t(0), c_uint64(0), c_uint64(0))
    for n, access in enumerate(PIECES):
        handles.append(made := c_uint64())
        place = c_uint64(start.value + n * PIECE)
        cuda.cuMemCreate(byref(made), c_size_t(PIECE), byref(AllocationProperties(1, 0, 1, 0)), c_uint64(0))
        cuda.cuMemMap(place, c_size_t(PIECE), c_size_t(0), made, c_uint64(0))
        if access:
            cuda.cuMemSetAccess(place, c_size_t(PIECE), byref(AccessDescription(1, 0, access)), c_size_t(1))
    yield start.value
    cuda.cuMemUnmap(start, c_size_t(PIECE * len(PIECES)))
    cuda.cuMemAddressFree(start, extent)
    for each in handles:
        cuda.cuMemRelease(each)


@pytest.fixture
def host():
    return (c_char * SIZE)(*(n % 251 for n in range(SIZE)))


def at(memory: Array[c_char]) -> c_uint64:
    return c_uint64(addressof(memory))


def rows(target: c_uint64, source: c_uint64) -> Copy2D:
    """A copy of the bytes as eight rows, by unified addresses."""
    pitch = SIZE // 8
    return Copy2D(
        target_type=UNIFIED, target_device=target.value, target_pitch=pitch,
        source_type=UNIFIED, source_device=source.value, source_pitch=pitch, width=pitch, height=8,
    )  # fmt: skip


@pytest.mark.parametrize("offset", [*BEGINS.values(), *BORDERS.values()])
def test_only_what_may_be_written_is_and_only_what_may_be_read(cuda, mapped, host, offset):
    library, place, back = cuda.library, c_uint64(mapped + offset), (c_char * SIZE)()
    size, element = c_size_t(SIZE), c_size_t(SIZE // 4)
    writing = SUCCESS if offset in WRITABLE else INVALID_VALUE
    assert library.cuMemcpy(place, at(host), size) == writing
    assert library.cuMemcpyHtoD_v2(place, at(host), size) == writing
    assert library.cuMemcpy2D_v2(byref(rows(place, at(host)))) == writing
    assert library.cuMemsetD32_v2(place, 3, element) == writing
    assert library.cuMemcpyAsync(place, at(host), size, cuda.stream()) == writing
    reading = SUCCESS if offset in READABLE else INVALID_VALUE
    assert library.cuMemcpyDtoH_v2(at(back), place, size) == reading
    assert library.cuMemcpy2D_v2(byref(rows(at(back), place))) == reading
    assert library.cuMemcpy(at(back), place, size) == reading
    if offset in WRITABLE:
        assert back.raw == host.raw


def test_pending_work_reads_across_a_border_as_well(cuda, mapped, host):
    """Behind pending work a copy looks once more at what it uses, since that may be freed by then."""
    back, place = (c_char * SIZE)(), mapped + BORDERS[0, 1]
    assert cuda.library.cuMemcpyHtoD_v2(c_uint64(place), at(host), c_size_t(SIZE)) == SUCCESS
    work = copied(addressof(back), place, SIZE, (place,))
    NodeWork(work, (Extent(place, SIZE, writing=False, allocated=True),))()
    assert back.raw == host.raw
    with pytest.raises(Fault, match="their memory was freed"):
        NodeWork(work, (Extent(place + 2 * PIECE, 2 * PIECE, writing=False, allocated=True),))()


def test_memory_that_is_unmapped_is_copied_no_more(cuda, mapped, host):
    border, size = c_uint64(mapped + BORDERS[0, 1]), c_size_t(SIZE)
    cuda.cuMemcpy(border, at(host), size)
    cuda.cuMemUnmap(c_uint64(mapped + PIECE), c_size_t(PIECE))
    assert cuda.library.cuMemcpy(at(host), border, size) == INVALID_VALUE
    assert cuda.library.cuMemcpy(border, at(host), size) == INVALID_VALUE
    back = (c_char * SIZE)()
    cuda.cuMemcpy(at(back), border, c_size_t(SIZE // 2))
    assert back.raw[: SIZE // 2] == host.raw[: SIZE // 2]
    again = c_uint64()
    cuda.cuMemCreate(byref(again), c_size_t(PIECE), byref(AllocationProperties(1, 0, 1, 0)), c_uint64(0))
    cuda.cuMemMap(c_uint64(mapped + PIECE), c_size_t(PIECE), c_size_t(0), again, c_uint64(0))
    cuda.cuMemRelease(again)


def test_rows_stay_in_their_allocation_by_unified_addresses_too(cuda, host):
    device = c_uint64()
    cuda.cuMemAlloc_v2(byref(device), c_size_t(SIZE))
    assert cuda.library.cuMemcpy2D_v2(byref(rows(device, at(host)))) == SUCCESS
    device.value += 512
    assert cuda.library.cuMemcpy2D_v2(byref(rows(device, at(host)))) == INVALID_VALUE
    assert cuda.library.cuMemcpy2D_v2(byref(rows(at(host), device))) == INVALID_VALUE
    cuda.cuMemFree_v2(c_uint64(device.value - 512))


@pytest.mark.parametrize(("flag", "attribute"), [(0x40, 112), (0x80, 121)])  # CUDA_ARRAY3D_SPARSE, ..._DEFERRED_MAPPING
def test_an_array_whose_memory_is_mapped_later_is_refused(cuda, flag, attribute):
    """It was a dense array, silently, although the attribute of the device says that it supports none."""
    supported, made, described = c_int(-1), c_uint64(), byref(Array3DDescriptor(64, 64, 0, FLOAT, 1, flag))
    cuda.cuDeviceGetAttribute(byref(supported), attribute, 0)
    assert supported.value == 0
    assert cuda.library.cuArray3DCreate_v2(byref(made), described) == NOT_SUPPORTED
    assert cuda.library.cuMipmappedArrayCreate(byref(made), described, 3) == NOT_SUPPORTED

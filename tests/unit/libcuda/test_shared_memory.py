"""Memory and events of two processes, and memory that is mapped at reserved addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import byref, c_int, c_longlong, c_size_t, c_uint, c_uint8, c_uint64, c_void_p
from pathlib import Path

import pytest

from ptxvm.libcuda.signatures import Handle64
from ptxvm.libcuda.structures import AccessDescription, AllocationProperties

MIB = 1 << 20
SHARED_EVENT, FILE, READ, READ_WRITE = 6, 1, 1, 3
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, NOT_READY, ILLEGAL_ADDRESS = 1, 2, 201, 600, 700

OTHER_PROCESS = """
import sys
sys.path.insert(0, {folder!r})
from ctypes import byref, c_uint, c_uint64, c_void_p
from stream_driver import Driver
from ptxvm.libcuda.signatures import Handle64
cuda = Driver()
memory, event = (Handle64.from_buffer_copy(bytes.fromhex(word)) for word in sys.argv[1:])
address, again, mark = c_uint64(), c_uint64(), c_void_p()
cuda.cuIpcOpenMemHandle_v2(byref(address), memory, 1)
cuda.cuIpcOpenMemHandle_v2(byref(again), memory, 1)
assert address.value == again.value
cuda.cuIpcOpenEventHandle(byref(mark), event)
flag, cell = (c_uint.from_address(address.value + 4 * n) for n in range(2))
assert cuda.library.cuEventQuery(mark) == 600
stream = cuda.stream()
cuda.cuStreamWaitEvent(stream, mark, 0)
cuda.launch(stream, b"append", cell, 7)  # behind the kernel of the other process
print("waits", flush=True)
cuda.cuStreamSynchronize(stream)
cuda.cuEventSynchronize(mark)
assert cuda.library.cuEventQuery(mark) == 0
for _ in range(2):
    cuda.cuIpcCloseMemHandle(address)
assert cuda.library.cuIpcCloseMemHandle(address) == 1
"""


def test_two_processes_share_memory_and_an_event(cuda):
    memory, handle, event_handle = c_uint64(), Handle64(), Handle64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(8))
    flag, cell = (c_uint.from_address(memory.value + 4 * n) for n in range(2))
    flag.value, cell.value = 0, 4
    cuda.cuIpcGetMemHandle(byref(handle), c_uint64(memory.value + 4))  # of the whole allocation
    assert (flag.value, cell.value) == (0, 4)
    event, stream = cuda.handle("cuEventCreate", c_uint(SHARED_EVENT)), cuda.stream()
    cuda.cuIpcGetEventHandle(byref(event_handle), event)
    cuda.launch(stream, b"await", flag, 1)
    cuda.launch(stream, b"append", cell, 2)
    cuda.cuEventRecord(event, stream)
    program = OTHER_PROCESS.format(folder=str(Path(__file__).parent))
    words = [bytes(each).hex() for each in (handle, event_handle)]
    command = [sys.executable, "-c", program, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        flag.value = 1
        _, said = other.communicate(timeout=60)
    assert (other.returncode, said) == (0, "")
    assert cell.value == 427
    assert cuda.library.cuIpcOpenMemHandle_v2(byref(c_uint64()), handle, 1) == INVALID_CONTEXT
    assert cuda.library.cuIpcOpenMemHandle_v2(byref(c_uint64()), Handle64(), 1) == INVALID_VALUE
    assert cuda.library.cuIpcGetMemHandle(byref(handle), cuda.memory) == INVALID_VALUE  # managed memory
    assert cuda.library.cuIpcGetEventHandle(byref(handle), cuda.handle("cuEventCreate", c_uint(0))) == 400
    cuda.cuMemFree_v2(memory)


@pytest.fixture
def place(cuda):
    """Addresses for 8 MiB."""
    start = c_uint64()
    cuda.cuMemAddressReserve(byref(start), c_size_t(8 * MIB), c_size_t(0), c_uint64(0), c_uint64(0))
    yield start.value
    cuda.cuMemAddressFree(c_uint64(start.value), c_size_t(8 * MIB))


def created(cuda, size, handle_types=0):
    made = c_uint64()
    cuda.cuMemCreate(byref(made), c_size_t(size), byref(AllocationProperties(1, handle_types, 1, 0)), c_uint64(0))
    return made


def mapped(cuda, start, memory, size, access=READ_WRITE):
    cuda.cuMemMap(c_uint64(start), c_size_t(size), c_size_t(0), memory, c_uint64(0))
    if access:
        cuda.cuMemSetAccess(c_uint64(start), c_size_t(size), byref(AccessDescription(1, 0, access)), c_size_t(1))


def test_pieces_side_by_side_are_one_memory_to_kernels(cuda, place):
    sizes, memory = (2 * MIB, 4 * MIB), []
    granularity, word = c_size_t(), c_longlong()
    cuda.cuMemGetAllocationGranularity(byref(granularity), byref(AllocationProperties(1, 0, 1, 0)), 0)
    assert granularity.value == 2 * MIB
    for start, size in zip((place, place + 2 * MIB), sizes, strict=True):
        memory.append(created(cuda, size))
        mapped(cuda, start, memory[-1], size)
    cuda.cuMemsetD8_v2(c_uint64(place + 2 * MIB - 2), 3, c_size_t(4))  # over the border
    cell = c_uint.from_address(place + 2 * MIB - 4)
    cell.value = 5
    cuda.launch(None, b"append", cell, 6)
    cuda.cuCtxSynchronize()
    assert cell.value == 56
    cuda.cuMemGetAccess(byref(word), byref(c_longlong()), c_uint64(place))
    assert word.value == READ_WRITE
    start, size = c_uint64(), c_size_t()
    cuda.cuMemGetAddressRange_v2(byref(start), byref(size), c_uint64(place + 77))
    assert (start.value, size.value) == (place, 6 * MIB)
    library = cuda.library
    assert library.cuMemAddressFree(c_uint64(place), c_size_t(8 * MIB)) == INVALID_VALUE  # memory is mapped there
    assert library.cuMemUnmap(c_uint64(place), c_size_t(MIB)) == INVALID_VALUE  # a part of a piece
    for handle in memory:
        cuda.cuMemRelease(handle)
    cuda.cuMemUnmap(c_uint64(place), c_size_t(6 * MIB))
    assert library.cuMemsetD8_v2(c_uint64(place), 3, c_size_t(4)) == INVALID_VALUE
    assert library.cuMemCreate(byref(start), c_size_t(5), byref(AllocationProperties(1)), c_uint64(0)) == INVALID_VALUE
    assert library.cuMemAddressReserve(byref(start), c_size_t(5), c_size_t(0), c_uint64(0), c_uint64(0)) == INVALID_VALUE


def test_a_fault_says_that_memory_is_no_longer_mapped(cuda, caplog):
    place, memory = reserved(cuda, 2 * MIB), created(cuda, 2 * MIB)
    mapped(cuda, place, memory, 2 * MIB)
    cuda.cuMemUnmap(c_uint64(place), c_size_t(2 * MIB))
    cuda.launch(None, b"append", c_uint64.from_address(place), 6)
    assert cuda.library.cuCtxSynchronize() == ILLEGAL_ADDRESS
    assert "that was byte 0 of mapped memory (2097152 bytes), which is no longer mapped" in caplog.text
    cuda.cuMemRelease(memory)


def reserved(cuda, size, address=0, alignment=0):
    start = c_uint64()
    cuda.cuMemAddressReserve(byref(start), c_size_t(size), c_size_t(alignment), c_uint64(address), c_uint64(0))
    return start.value


def test_addresses_are_reserved_where_they_are_asked_for_if_they_are_free(cuda):
    first = reserved(cuda, 8 * MIB, alignment=16 * MIB)
    assert first % (16 * MIB) == 0
    elsewhere = reserved(cuda, 4 * MIB, first + 2 * MIB)
    assert elsewhere + 4 * MIB <= first or first + 8 * MIB <= elsewhere
    assert reserved(cuda, 4 * MIB, first + 1) % (2 * MIB) == 0
    cuda.cuMemAddressFree(c_uint64(first), c_size_t(8 * MIB))
    lower, upper = reserved(cuda, 2 * MIB, first), reserved(cuda, 6 * MIB, first + 2 * MIB)
    assert (lower, upper) == (first, first + 2 * MIB)
    memory = created(cuda, 2 * MIB)
    mapped(cuda, upper, memory, 2 * MIB)
    (c_uint64 * 1).from_address(upper)[0] = 5
    cuda.cuMemAddressFree(c_uint64(lower), c_size_t(2 * MIB))
    assert (c_uint64 * 1).from_address(upper)[0] == 5
    refused = cuda.library.cuMemAddressReserve(
        byref(c_uint64()), c_size_t((1 << 64) - 2 * MIB), c_size_t(4 * MIB), c_uint64(0), c_uint64(0)
    )
    assert refused == OUT_OF_MEMORY
    cuda.cuMemUnmap(c_uint64(upper), c_size_t(2 * MIB))
    cuda.cuMemAddressFree(c_uint64(upper), c_size_t(6 * MIB))
    cuda.cuMemRelease(memory)


def test_adjacent_ranges_are_made_accessible_and_unmapped_at_once(cuda):
    """As the growing vector of NVIDIA's sample vectorAddMMAP does, with cuMemUnmap(d_p, alloc_sz) over all its ranges."""
    first = reserved(cuda, 8 * MIB)
    cuda.cuMemAddressFree(c_uint64(first), c_size_t(8 * MIB))
    places = [reserved(cuda, 2 * MIB, first), reserved(cuda, 4 * MIB, first + 2 * MIB)]
    assert places == [first, first + 2 * MIB]
    memory = [created(cuda, 2 * MIB), created(cuda, 4 * MIB)]
    for place, size, handle in zip(places, (2 * MIB, 4 * MIB), memory, strict=True):
        mapped(cuda, place, handle, size, access=0)
    allowed = AccessDescription(1, 0, READ_WRITE)
    cuda.cuMemSetAccess(c_uint64(first), c_size_t(6 * MIB), byref(allowed), c_size_t(1))
    cuda.cuMemsetD8_v2(c_uint64(first + 2 * MIB - 2), 3, c_size_t(4))  # over the border
    assert bytes((c_uint8 * 6).from_address(first + 2 * MIB - 3)) == bytes([0, 3, 3, 3, 3, 0])
    assert cuda.library.cuMemUnmap(c_uint64(first), c_size_t(4 * MIB)) == INVALID_VALUE  # half of the second piece
    cuda.cuMemUnmap(c_uint64(first), c_size_t(6 * MIB))
    assert cuda.library.cuMemsetD8_v2(c_uint64(first + 2 * MIB), 3, c_size_t(4)) == INVALID_VALUE
    for place, size, handle in zip(places, (2 * MIB, 4 * MIB), memory, strict=True):
        cuda.cuMemAddressFree(c_uint64(place), c_size_t(size))
        cuda.cuMemRelease(handle)


def test_memory_without_access_or_for_reading_alone_is_kept_from_kernels(cuda, place):
    memory, library = created(cuda, 2 * MIB), cuda.library
    mapped(cuda, place, memory, 2 * MIB, access=0)
    assert library.cuMemsetD8_v2(c_uint64(place), 3, c_size_t(4)) == INVALID_VALUE
    again = cuda.library.cuMemMap(c_uint64(place), c_size_t(2 * MIB), c_size_t(0), memory, c_uint64(0))
    assert again == INVALID_VALUE
    allowed = AccessDescription(1, 0, READ)
    cuda.cuMemSetAccess(c_uint64(place), c_size_t(2 * MIB), byref(allowed), c_size_t(1))
    assert c_uint.from_address(place).value == 0
    cuda.launch(None, b"append", c_uint.from_address(place), 6)
    assert library.cuCtxSynchronize() == ILLEGAL_ADDRESS
    cuda.library.cuDevicePrimaryCtxReset_v2(0)
    cuda.cuMemUnmap(c_uint64(place), c_size_t(2 * MIB))
    cuda.cuMemRelease(memory)


def test_memory_is_shared_by_a_file(cuda, place):
    memory, taken, retained = created(cuda, 2 * MIB, FILE), c_uint64(), c_uint64()
    file, described = c_int(-1), AllocationProperties()
    cuda.cuMemExportToShareableHandle(byref(file), memory, FILE, c_uint64(0))
    cuda.cuMemImportFromShareableHandle(byref(taken), c_void_p(file.value), FILE)
    os.close(file.value)
    for n, each in enumerate((memory, taken)):
        mapped(cuda, place + n * 2 * MIB, each, 2 * MIB)
    c_uint.from_address(place + 64).value = 1234
    assert c_uint.from_address(place + 2 * MIB + 64).value == 1234
    cuda.cuMemRetainAllocationHandle(byref(retained), c_void_p(place + 100))
    assert retained.value == memory.value
    cuda.cuMemRelease(retained)
    cuda.cuMemGetAllocationPropertiesFromHandle(byref(described), memory)
    assert (described.type, described.handle_types) == (1, FILE)
    private = created(cuda, 2 * MIB)
    assert cuda.library.cuMemExportToShareableHandle(byref(file), private, FILE, c_uint64(0)) == INVALID_VALUE
    assert cuda.library.cuMemImportFromShareableHandle(byref(taken), c_void_p(54321), FILE) == INVALID_VALUE
    cuda.cuMemUnmap(c_uint64(place), c_size_t(4 * MIB))

"""Arguments that point nowhere: an error of the client, INVALID_VALUE.  Each ended the process.

CUDA driver API: CUDA_ERROR_INVALID_VALUE, "one or more of the parameters passed to the API call is not within an acceptable
range of values".
"""

from __future__ import annotations

import subprocess
import sys
from ctypes import addressof, byref, c_char, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer
from mmap import PAGESIZE
from pathlib import Path
from struct import pack

import pytest

from ptxvm.driver import client_memory
from ptxvm.driver.client_memory import ENTRIES, SEEN, bytes_at, check, text_at
from ptxvm.driver.code_images import FATBIN, WRAPPER
from ptxvm.driver.results import DriverError

SUCCESS, INVALID_VALUE, UNKNOWN = 0, 1, 999
NOWHERE = 16, 0x7000_0000_0000, 1 << 63, (1 << 64) - 16
PTX = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) { ret; }"


@pytest.fixture
def kernel(cuda) -> c_void_p:
    return cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", PTX), b"k")


def launch(cuda, kernel, parameters, extra=None) -> int:
    return cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, parameters, extra)


@pytest.mark.parametrize("nowhere", NOWHERE)
def test_images_and_names(cuda, nowhere):
    out, library = c_uint64(), cuda.library
    wild = c_uint64(nowhere)
    assert library.cuModuleLoadData(byref(out), wild) == INVALID_VALUE
    assert library.cuModuleLoadDataEx(byref(out), wild, 0, None, None) == INVALID_VALUE
    assert library.cuModuleLoadDataEx(byref(out), PTX, 1, wild, wild) == INVALID_VALUE
    assert library.cuModuleLoadFatBinary(byref(out), wild) == INVALID_VALUE
    assert library.cuLibraryLoadData(byref(out), wild, None, None, 0, None, None, 0) == INVALID_VALUE
    assert library.cuModuleLoad(byref(out), wild) == INVALID_VALUE
    assert library.cuModuleGetFunction(byref(out), cuda.module, wild) == INVALID_VALUE
    assert library.cuModuleLoadData(wild, PTX) == INVALID_VALUE
    for image in (
        pack("<IIQQ", WRAPPER, 1, nowhere, 0),  # a wrapper whose fatbin is nowhere
        pack("<IIQQ", WRAPPER, 2, 0, nowhere),  # ... or its list of fatbins
        pack("<IHHQ", FATBIN, 1, 16, 1 << 30),  # a fatbin with a wrong size
        b"\x7fELF".ljust(40, b"\0") + pack("<Q", 1 << 44).ljust(24, b"\1"),  # an ELF file with sections nowhere
    ):
        assert library.cuModuleLoadData(byref(out), create_string_buffer(image)) == INVALID_VALUE


@pytest.mark.parametrize("nowhere", NOWHERE)
def test_arguments_of_launches(cuda, kernel, nowhere):
    value, number, size = c_uint64(), c_uint(), c_size_t(12)
    block = create_string_buffer(16)
    wild = c_uint64(nowhere)
    assert launch(cuda, kernel, wild) == INVALID_VALUE
    assert launch(cuda, kernel, (c_uint64 * 2)(nowhere, addressof(number))) == INVALID_VALUE
    assert launch(cuda, kernel, (c_uint64 * 2)(addressof(value), nowhere)) == INVALID_VALUE
    assert launch(cuda, kernel, None, wild) == INVALID_VALUE
    assert launch(cuda, kernel, None, (c_uint64 * 5)(1, nowhere, 2, addressof(size), 0)) == INVALID_VALUE
    assert launch(cuda, kernel, None, (c_uint64 * 5)(1, addressof(block), 2, nowhere, 0)) == INVALID_VALUE
    assert launch(cuda, kernel, (c_uint64 * 2)(addressof(value), addressof(number))) == SUCCESS
    assert cuda.library.cuLaunchKernelEx(wild, kernel, None, None) == INVALID_VALUE


@pytest.mark.parametrize("nowhere", NOWHERE)
def test_functions_of_native_code_leave_wild_pointers_to_python(cuda, nowhere):
    library, wild = cuda.library, c_uint64(nowhere)
    assert library.cuCtxGetCurrent(wild) == INVALID_VALUE
    assert library.cuDeviceGet(wild, 0) == INVALID_VALUE
    assert library.cuDeviceGetAttribute(wild, 1, 0) == INVALID_VALUE
    assert library.cuGetErrorName(1, wild) == INVALID_VALUE
    assert library.cuStreamIsCapturing(None, wild) == INVALID_VALUE
    assert library.cuPointerGetAttribute(wild, 3, c_uint64(cuda.memory.value)) == INVALID_VALUE
    assert library.cuCtxPopCurrent_v2(wild) == INVALID_VALUE
    assert library.cuLaunchHostFunc(None, wild, None) == INVALID_VALUE  # a function


def test_what_was_seen_once_is_known(monkeypatch):
    room = create_string_buffer(3 * PAGESIZE)
    first = -(-addressof(room) // PAGESIZE) * PAGESIZE
    asked = []

    def is_accessible(address: int, size: int, *, writing: bool = False) -> bool:
        asked.append((address, size, writing))
        return True

    SEEN[first // 4096 % ENTRIES] = 0
    monkeypatch.setattr(client_memory, "is_accessible", is_accessible)
    for address, size, writing, questions in (
        (first, 8, False, 1),  # the page is seen, and may be read
        (first + 4088, 8, False, 1),
        (first + 8, 4, True, 2),  # ... and may be written too
        (first + 16, 4, True, 2),
        (first + 24, 0, False, 2),
        (first + 4092, 8, False, 3),  # a second page
        (first + 4092, 8, True, 4),
        (first, 8, True, 4),
    ):
        check(address, size, writing=writing)
        assert len(asked) == questions, (address - first, size, writing)
    monkeypatch.setattr(client_memory, "is_accessible", lambda *_, **__: False)
    with pytest.raises(DriverError, match=r"0x7000.* does not point to 8 bytes that may be written"):
        check(NOWHERE[1], 8, writing=True)
    with pytest.raises(DriverError, match="an argument cannot have -1 bytes"):
        check(first, -1)
    with pytest.raises(DriverError, match="a pointer is null"):
        check(0, 8)


def test_text_ends_with_a_zero_on_any_page():
    room = (c_char * (4 * PAGESIZE))()
    for size in (0, 1, PAGESIZE - 1, PAGESIZE, 2 * PAGESIZE + 7):
        for offset in (0, 1, 4095):
            at = addressof(room) + offset
            room[:] = b"x" * len(room)
            room[offset + size] = b"\0"
            assert text_at(at) == b"x" * size
            assert bytes_at(at, size) == b"x" * size


PROGRAM = """
import ctypes, logging, sys
sys.path.insert(0, {folder!r})
logging.disable()
from stream_driver import Driver
from ptxvm.libcuda.session import session
cuda = Driver()
kinds_of, kinds, target = {functions}
context = ctypes.c_uint64(session().handles.handle(session().context))
buffer = ctypes.create_string_buffer(4096)
tables = [(ctypes.c_uint64 * 64)(*[nowhere] * 64) for nowhere in {nowhere}]
SKIPPED = {{  # they end the context, or call what may be anything
    "cuCtxDestroy", "cuCtxDestroy_v2", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", "cudaDeviceReset",
    "cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxPotentialBlockSizeWithFlags",
}}
CALLBACKS = "HostFunc", "AddCallback", "HostNode", "UserObjectCreate", "RegisterCallback", "AsyncNotification"
for name, (result, parameters) in kinds_of.items():
    places = [n for n, kind in enumerate(parameters) if kind == "p"]
    if name in SKIPPED or any(each in name for each in CALLBACKS):
        continue
    print(name, flush=True)
    call = ctypes.CFUNCTYPE(kinds[result], *(kinds[kind] for kind in parameters))((name, target))
    for wild in places:
        for nowhere, table in zip({nowhere}, tables):
            for others in (buffer, table):
                values = {{"p": ctypes.addressof(others), "d": 0.0, "f": 0.0}}
                arguments = [values.get(kind, 1 if kind in "QIi" else kinds[kind]()) for kind in parameters]
                arguments[wild] = nowhere
                code = call(*arguments)
                assert result != "i" or code != {unknown}, name
    cuda.cuCtxSetCurrent(context)
"""
DRIVER = '{name: ("i", each) for name, each in signatures().items()}, KINDS, cuda.library'
RUNTIME = '{name: each for name, each in signatures("13").items()}, KINDS, ctypes.CDLL(str(install().folder / soname("13")))'
IMPORTS = {
    DRIVER: "from ptxvm.libcuda.signatures import KINDS, signatures\n",
    RUNTIME: "from ptxvm.libcudart.library import install, soname\nfrom ptxvm.libcudart.signatures import KINDS, signatures\n",
}


@pytest.mark.parametrize("functions", [DRIVER, RUNTIME], ids=["driver", "runtime"])
def test_no_function_ends_the_process(functions):
    """One argument of each function points nowhere; the others point to zeros, or to pointers that point nowhere."""
    program = IMPORTS[functions] + PROGRAM.format(
        folder=str(Path(__file__).parent), functions=functions, nowhere=NOWHERE, unknown=UNKNOWN
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout.split()[-1:], done.stderr[-2000:])

"""The log of errors, and settings of core dumps (driver API, "Error Log Management", "Coredump Attributes Control API")."""

from __future__ import annotations

import ctypes
import logging
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer
from functools import cache

import pytest

from ptxvm.driver.results import BuildError, DriverError, Result
from ptxvm.libcuda import library
from ptxvm.libcuda.error_log import ROOM, ErrorLog

INVALID_VALUE, NOT_FOUND, NOT_PERMITTED, NOT_SUPPORTED = 1, 500, 800, 801
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_size_t)
ON_EXCEPTION, TRIGGER_HOST, FILE, PIPE, FLAGS = 1, 2, 5, 6, 7


def fail(cuda):
    assert cuda.library.cuMemAlloc_v2(byref(c_uint64()), c_size_t(0)) == INVALID_VALUE


@pytest.fixture
def iterator(cuda):
    """The number of the next line."""
    number = c_uint()
    cuda.cuLogsCurrent(byref(number), c_uint(0))
    return number


def test_a_client_hears_of_errors_while_it_listens(cuda):
    heard, handle = [], c_void_p()
    listen = CALLBACK(lambda data, level, text, length: heard.append((data, level, text.decode()[-len(END) :], length)))
    cuda.cuLogsRegisterCallback(listen, c_void_p(7), byref(handle))
    fail(cuda)
    cuda.cuLogsUnregisterCallback(handle)
    fail(cuda)
    assert [each[:3] for each in heard] == [(7, 0, END)]
    assert heard[0][3] > len(END)
    assert cuda.library.cuLogsUnregisterCallback(handle) == INVALID_VALUE


END = "cuMemAlloc_v2: CUDA_ERROR_INVALID_VALUE: an allocation has at least one byte"


def test_the_log_is_written_from_a_number_on(cuda, iterator, tmp_path):
    start, path = c_uint(iterator.value), tmp_path / "log"
    fail(cuda)
    fail(cuda)
    room, size = create_string_buffer(4096), c_size_t(4096)
    cuda.cuLogsDumpToMemory(byref(iterator), room, byref(size), c_uint(0))
    assert [line.endswith(END) for line in room.value.decode().splitlines()] == [True, True]
    assert (size.value, iterator.value) == (len(room.value), start.value + 2)
    cuda.cuLogsDumpToMemory(byref(iterator), room, byref(size), c_uint(0))
    assert size.value == 0
    cuda.cuLogsDumpToFile(byref(c_uint(start.value)), str(path).encode(), c_uint(0))
    assert path.read_text().count(END) == 2
    size.value = len(path.read_text()) - 1  # without the 0 at the end
    cuda.cuLogsDumpToMemory(byref(c_uint(start.value)), room, byref(size), c_uint(0))
    assert [END in line for line in room.value.decode().splitlines()] == [False, True]
    size.value = 20
    assert cuda.library.cuLogsDumpToMemory(byref(c_uint(start.value)), room, byref(size), c_uint(0)) == INVALID_VALUE
    assert cuda.library.cuLogsDumpToFile(None, str(tmp_path).encode(), c_uint(0)) == INVALID_VALUE


def test_the_log_keeps_the_last_lines():
    log = ErrorLog()
    for number in range(400):
        log.add("cuName", DriverError(Result.INVALID_VALUE, f"the error {number}, with more words to fill a line"))
    log.add("cuStreamQuery", DriverError(Result.NOT_READY))  # an answer
    lines = log.since(0)
    assert sum(len(line) + 1 for line in lines[1:]) <= ROOM
    assert lines[0] == f"[CUDA][W] {401 - len(lines)} earlier lines are not kept"
    assert "error 399" in lines[-1]


def test_settings_of_core_dumps_are_kept_and_none_is_written(cuda):
    told, size = create_string_buffer(1024), c_size_t(1024)
    cuda.cuCoredumpSetAttributeGlobal(TRIGGER_HOST, byref(c_bool(False)), byref(c_size_t(1)))
    cuda.cuCoredumpSetAttribute(FILE, b"own", byref(c_size_t(4)))
    for call, number, expected in (
        ("Global", TRIGGER_HOST, b"\0"), ("", TRIGGER_HOST, b"\0"), ("", FILE, b"own\0"), ("Global", FILE, b"core.cuda."),
        ("Global", PIPE, b"corepipe.cuda."), ("", FLAGS, bytes(4)),
    ):  # fmt: skip
        getattr(cuda, f"cuCoredumpGetAttribute{call}")(number, told, byref(size))
        assert told.raw.startswith(expected)
    cuda.cuCoredumpGetAttributeGlobal(PIPE, None, byref(size))
    assert size.value == 1024
    yes = byref(c_bool(True))
    assert cuda.library.cuCoredumpSetAttributeGlobal(ON_EXCEPTION, yes, byref(c_size_t(1))) == NOT_SUPPORTED
    assert cuda.library.cuCoredumpSetAttribute(PIPE, b"p", byref(c_size_t(2))) == NOT_PERMITTED
    assert cuda.library.cuCoredumpGetAttribute(FILE, told, byref(c_size_t(2))) == INVALID_VALUE
    assert cuda.library.cuCoredumpSetAttribute(99, yes, byref(c_size_t(1))) == INVALID_VALUE


def test_that_code_has_no_ptx_is_told_once(caplog):
    """Any other error is only for the program, which may expect it."""
    log = ErrorLog()
    for result in (Result.NO_BINARY_FOR_GPU, Result.NO_BINARY_FOR_GPU, Result.INVALID_VALUE):
        kind = BuildError if result is Result.NO_BINARY_FOR_GPU else DriverError
        log.add("cuModuleLoadData", kind(result, "Ask the compiler for PTX"))
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert told == ["ptxvm: cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU: Ask the compiler for PTX"]
    assert len(log.since(0)) == 3


def test_that_a_program_has_a_runtime_library_of_nvidia_is_told(cuda, caplog, monkeypatch):
    """That library asks for tables which it has in common with NVIDIA's driver; a user sees only its errors."""
    monkeypatch.setattr(library, "error_log", cache(ErrorLog))
    for which in ("da9151d33ae6cc41a5c04f26d533e328", "6bd5fb6c5bf4e74a8987d93912fd9df9"):  # NVRTC's, which goes on without
        table = c_void_p(1)
        assert cuda.library.cuGetExportTable(byref(table), bytes.fromhex(which)) == NOT_FOUND
        assert table.value is None
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(told) == 1
    assert "nvcc -cudart shared" in told[0]

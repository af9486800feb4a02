"""The log of errors, for clients."""

from __future__ import annotations

import ctypes
from itertools import count
from pathlib import Path

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import function_at, put_bytes, put_i32, put_u64, put_u64_if, string, u32, u64
from ptxvm.libcuda.error_log import error_log
from ptxvm.libcuda.session import function

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
ERROR = 0  # CU_LOG_LEVEL_ERROR
HANDLES = count(1)
CUT = "[CUDA][W] there is no room for the earlier lines"


def check_flags(flags: int) -> None:
    """DriverError for flags."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags are 0")


@function("cuLogsRegisterCallback", stateless=True)
def register(callback: int, data: int, out: int) -> None:
    """Call a function of the client with each new line."""
    called = function_at(CALLBACK, callback)
    handle = next(HANDLES)

    def tell(text: str) -> None:
        line = text.encode()
        called(data, ERROR, line, len(line))

    error_log().listeners[handle] = tell
    put_u64_if(out, handle)


@function("cuLogsUnregisterCallback", stateless=True)
def unregister(handle: int) -> None:
    """Call a function no more."""
    if error_log().listeners.pop(handle, None) is None:
        raise DriverError(Result.INVALID_VALUE, f"{handle:#x} is no function that was registered")


@function("cuLogsCurrent", stateless=True)
def current(out: int, flags: int) -> None:
    """The number of the next line."""
    check_flags(flags)
    put_i32(out, error_log().next)


def advance(iterator: int) -> list[str]:
    """The lines from a client's number on, or all without one; the number becomes that of the next line."""
    log = error_log()
    if not iterator:
        return log.since(log.entries[0].number if log.entries else log.next)
    lines = log.since(u32(iterator))
    put_i32(iterator, log.next)
    return lines


@function("cuLogsDumpToFile", stateless=True)
def to_file(iterator: int, path: int, flags: int) -> None:
    """Write the lines into a file."""
    check_flags(flags)
    named = Path(string(path))
    try:
        named.write_text("".join(f"{line}\n" for line in advance(iterator)), encoding="utf-8")
    except OSError as wrong:
        raise DriverError(Result.INVALID_VALUE, f"{named} cannot be written: {wrong}") from wrong


@function("cuLogsDumpToMemory", stateless=True)
def to_memory(iterator: int, out: int, size: int, flags: int) -> None:
    """Write the last lines that fit into memory, and the number of their bytes; a first line says where some do not fit."""
    check_flags(flags)
    room, lines = u64(size), advance(iterator)
    put_u64(size, 0)
    text = "".join(f"{line}\n" for line in lines)
    while len(text) >= room and lines:
        lines = lines[1:]
        text = "".join(f"{line}\n" for line in [CUT, *lines])
        if not lines:
            raise DriverError(Result.INVALID_VALUE, f"there is no room for a line in {room} bytes")
    if text:
        put_bytes(out, text.encode() + b"\0")
        put_u64(size, len(text))

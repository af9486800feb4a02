"""Values of C in memory: read and written at addresses that a client gives."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, TypeVar, cast

from ptxvm.driver.results import DriverError, Result

E = TypeVar("E", bound="ctypes.Structure | ctypes.c_int32 | ctypes.c_uint32")
C = TypeVar("C", bound="ctypes.Structure | ctypes.Array[Any]")  # of any elements
LARGEST = (1 << 31) - 1  # bytes that ctypes reads at once


def not_null(address: int) -> int:
    """An address that a client gives; DriverError for a null pointer."""
    if not address:
        raise DriverError(Result.INVALID_VALUE, "a pointer is null")
    return address


def _cell(type: type, address: int) -> ctypes._SimpleCData[int]:
    if not address:
        raise DriverError(Result.INVALID_VALUE, "a pointer is null")
    return type.from_address(address)  # type: ignore[attr-defined,no-any-return]


def put_i32(address: int, value: int) -> None:
    """Write an int; all functions here raise DriverError for a null pointer."""
    _cell(ctypes.c_int32, address).value = value


def put_u64(address: int, value: int) -> None:
    """Write a size, a pointer or a handle."""
    _cell(ctypes.c_uint64, address).value = value


def put_u64_if(address: int, value: int) -> None:
    """Write a size, a pointer or a handle, unless the address is null."""
    if address:
        put_u64(address, value)


def put_f32(address: int, value: float) -> None:
    """Write a float."""
    ctypes.memmove(not_null(address), ctypes.byref(ctypes.c_float(value)), 4)


def put_bytes(address: int, value: bytes) -> None:
    """Write bytes."""
    ctypes.memmove(not_null(address), value, len(value))


def put_string(address: int, value: str, size: int) -> None:
    """Write a string and its 0 into a buffer of a size; a longer string is cut off."""
    if size <= 0:
        raise DriverError(Result.INVALID_VALUE, "a buffer has no room")
    put_bytes(address, value.encode()[: size - 1] + b"\0")


def i32(address: int) -> int:
    """Read an int."""
    return _cell(ctypes.c_int32, address).value


def u32(address: int) -> int:
    """Read an unsigned int."""
    return _cell(ctypes.c_uint32, address).value


def u64(address: int) -> int:
    """Read a size, a pointer or a handle."""
    return _cell(ctypes.c_uint64, address).value


def u64s(address: int, count: int) -> list[int]:
    """Read several sizes, pointers or handles."""
    return [*struct.unpack(f"<{count}Q", bytes_from(address, 8 * count))] if count else []


def structure_at(type: type[C], address: int) -> C:
    """A structure that a client gives, in its memory."""
    return cast("C", type.from_address(not_null(address)))


def array_at(type: type[E], address: int, count: int) -> ctypes.Array[E]:
    """An array that a client gives, in its memory; DriverError for a number of elements that no memory holds."""
    check_size(count * ctypes.sizeof(type))
    return cast("ctypes.Array[E]", (type * count).from_address(not_null(address)))


def bytes_from(address: int, size: int) -> bytes:
    """Read bytes; DriverError for a size that no argument has."""
    check_size(size)
    return ctypes.string_at(not_null(address), size)


def check_size(size: int) -> None:
    """DriverError for a size in bytes that is negative or too large: clients give counts and sizes as any number."""
    if not 0 <= size <= LARGEST:
        raise DriverError(Result.INVALID_VALUE, f"an argument cannot have {size} bytes")


def string(address: int) -> str:
    """Read a string."""
    return ctypes.string_at(not_null(address)).decode("utf-8", "replace")


__all__ = [
    "array_at", "bytes_from", "i32", "not_null", "put_bytes", "put_f32", "put_i32", "put_string", "put_u64", "put_u64_if",
    "string", "structure_at", "u32", "u64", "u64s",
]  # fmt: skip

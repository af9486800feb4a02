"""Values of C in memory: read and written at addresses that a client gives.

All functions raise DriverError for a pointer that is null, or that points to no memory for the access.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ptxvm.driver.client_memory import bytes_at, check, check_size, text_at
from ptxvm.driver.results import DriverError, Result

E = TypeVar("E", bound="ctypes.Structure | ctypes.c_int32 | ctypes.c_uint32")
T = TypeVar("T")
C = TypeVar("C", bound="ctypes.Structure | ctypes.Array[Any]")  # of any elements


def not_null(address: int) -> int:
    """An address that a client gives; DriverError for a null pointer."""
    if not address:
        raise DriverError(Result.INVALID_VALUE, "a pointer is null")
    return address


def put_i32(address: int, value: int) -> None:
    """Write an int."""
    check(address, 4, writing=True)
    ctypes.c_int32.from_address(address).value = value


def put_u64(address: int, value: int) -> None:
    """Write a size, a pointer or a handle."""
    check(address, 8, writing=True)
    ctypes.c_uint64.from_address(address).value = value


def put_u64_if(address: int, value: int) -> None:
    """Write a size, a pointer or a handle, unless the address is null."""
    if address:
        put_u64(address, value)


def put_f32(address: int, value: float) -> None:
    """Write a float."""
    put_bytes(address, bytes(ctypes.c_float(value)))


def put_bytes(address: int, value: bytes) -> None:
    """Write bytes."""
    check(address, len(value), writing=True)
    ctypes.memmove(address, value, len(value))


def put_string(address: int, value: str, size: int) -> None:
    """Write a string and its 0 into a buffer of a size; a longer string is cut off."""
    if size <= 0:
        raise DriverError(Result.INVALID_VALUE, "a buffer has no room")
    put_bytes(address, value.encode()[: size - 1] + b"\0")


def i32(address: int) -> int:
    """Read an int."""
    check(address, 4)
    return ctypes.c_int32.from_address(address).value


def u32(address: int) -> int:
    """Read an unsigned int."""
    check(address, 4)
    return ctypes.c_uint32.from_address(address).value


def u64(address: int) -> int:
    """Read a size, a pointer or a handle."""
    check(address, 8)
    return ctypes.c_uint64.from_address(address).value


def u64s(address: int, count: int) -> list[int]:
    """Read several sizes, pointers or handles."""
    return [*struct.unpack(f"<{count}Q", bytes_from(address, 8 * count))] if count else []


def structure_at(type: type[C], address: int, *, writing: bool = False) -> C:
    """A structure that a client gives, in its memory, to be read or changed."""
    check(address, ctypes.sizeof(type), writing=writing)
    return cast("C", type.from_address(address))


def array_at(type: type[E], address: int, count: int, *, writing: bool = False) -> ctypes.Array[E]:
    """An array that a client gives, in its memory, to be read or changed."""
    check_size(count)
    check(address, count * ctypes.sizeof(type), writing=writing)
    return cast("ctypes.Array[E]", (type * count).from_address(address))


def function_at(prototype: Callable[[int], T], address: int) -> T:
    """A function of the client, of a type of ctypes."""
    check(address, 1)
    return prototype(address)


def bytes_from(address: int, size: int) -> bytes:
    """Read bytes; DriverError for a size that no argument has, or a null pointer with any."""
    return bytes_at(not_null(address), size)


def string(address: int) -> str:
    """Read a string."""
    return text_at(address).decode("utf-8", "replace")


__all__ = [
    "array_at", "bytes_from", "function_at", "i32", "not_null", "put_bytes", "put_f32", "put_i32", "put_string", "put_u64",
    "put_u64_if", "string", "structure_at", "u32", "u64", "u64s",
]  # fmt: skip

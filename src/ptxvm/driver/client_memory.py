"""Memory at addresses that clients give in arguments: each is looked at before it is read or written.

A pointer that points nowhere is a wrong value of the client (CUDA_ERROR_INVALID_VALUE), and an access would end the process.
Linux tells what is mapped; a table has the pages that it told of, for Python and for native code alike, since one question
takes as long as a whole call.  A page that the client has unmapped since then is still in the table.
"""

from __future__ import annotations

import ctypes

from ptxvm.driver.host_pages import is_accessible
from ptxvm.driver.results import DriverError, Result

PAGE_BITS = 12
"""Of the offset in a page, or in a part of a larger one."""
ENTRIES = 1024  # as `native.ll` has it
TABLE = (ctypes.c_uint64 * ENTRIES)()
"""At the index of the lower bits of its number: a page, as twice the number, and one more if it may be written."""
SEEN = memoryview(TABLE).cast("B").cast("Q")
SEEN[0] = 2  # another page than that with number 0, which an empty entry would stand for
LARGEST = (1 << 31) - 1  # bytes that ctypes reads at once


def check(address: int, size: int, *, writing: bool = False) -> None:
    """DriverError where a client's pointer does not point to so many bytes that may be read, or written.

    The first comparison is of an entry and what it must be, with numbers of the source: each call makes it several times.
    """
    if SEEN[address >> 12 & 1023] | (not writing) == address >> 11 | 1 and address & 4095 <= 4096 - size <= 4096:
        return
    if not size:
        return
    if not address:
        raise DriverError(Result.INVALID_VALUE, "a pointer is null")
    check_size(size)
    if not is_accessible(address, size, writing=writing):
        access = "written" if writing else "read"
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} does not point to {size} bytes that may be {access}")
    for page in address >> PAGE_BITS, (address + size - 1) >> PAGE_BITS:
        SEEN[page % ENTRIES] = 2 * page + (writing or SEEN[page % ENTRIES] == 2 * page + 1)


def check_size(size: int) -> None:
    """DriverError for a size in bytes that is negative or too large: clients give counts and sizes as any number."""
    if not 0 <= size <= LARGEST:
        raise DriverError(Result.INVALID_VALUE, f"an argument cannot have {size} bytes")


def bytes_at(address: int, size: int) -> bytes:
    """Read bytes."""
    check(address, size)
    return ctypes.string_at(address, size)


def text_at(address: int) -> bytes:
    """Read bytes up to a zero byte, without it."""
    parts = []
    while True:
        part = bytes_at(address, (1 << PAGE_BITS) - address % (1 << PAGE_BITS))
        text, zero, _ = part.partition(b"\0")
        parts.append(text)
        if zero:
            return b"".join(parts)
        address += len(part)


def word_at(address: int) -> int:
    """Read a word of 8 bytes."""
    check(address, 8)
    return ctypes.c_uint64.from_address(address).value


__all__ = ["TABLE", "bytes_at", "check", "check_size", "text_at", "word_at"]

"""Memory that several processes share: pages backed by a file without a name, and handles for other processes.

The memory of a device is private to its process until a client asks for a handle.  Then its pages are moved to such a file
(Linux, memfd_create), at the same address.  Another process opens the file through `/proc` of the first one.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from weakref import finalize

import numpy as np

from ptxvm.driver.queue import Mark, refuse_in_queue
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.backing import Bytes, address_of
from ptxvm.machine.sole_thread import RUNNING
from ptxvm.named_tuple import NamedTuple

PAGE = mmap.PAGESIZE
FIXED, NO_REPLACE = 0x10, 0x100000  # MAP_FIXED, MAP_FIXED_NOREPLACE
NO_ACCESS, NO_RESERVE = 0, 0x4000  # PROT_NONE, MAP_NORESERVE
RESERVING = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
FAILED, LARGEST = (1 << 64) - 1, 1 << 47  # MAP_FAILED, and the addresses of a process
HANDLE = struct.Struct("<8sIIQQQQQ")
"""The fields of a handle: `MAGIC`, process, descriptor, inode, bytes of the file, offset and bytes of the part, pool."""
MAGIC = b"ptxvmipc"
POLL = 50e-6  # seconds between two checks of another process


class Pages:
    """New pages, whose bytes are `array`; they are released with it."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // PAGE) * PAGE
        self.array = fresh(self.size)
        self.file: File | None = None

    def share(self) -> File:
        """Move the pages to a file, at the same addresses; nothing may write to them meanwhile."""
        if self.file is None:
            file = File(self.size)
            os.pwrite(file.number, self.array.data, 0)
            file.map_at(address_of(self.array), self.size)
            self.file = file
        return self.file


class File:
    """A file without a name, and its descriptor `number`.  It is closed with this object; mappings of it stay."""

    def __init__(self, size: int, number: int = -1) -> None:
        self.size, self.number = size, number
        if number < 0:
            self.number = os.memfd_create("ptxvm", os.MFD_CLOEXEC)
            with refusals(size):
                os.ftruncate(self.number, size)

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self.number)

    @cached_property
    def identity(self) -> int:
        """A number that all descriptors of the file have in common, and those of no other one."""
        return os.fstat(self.number).st_ino

    def map_at(self, address: int, size: int, offset: int = 0, access: int = mmap.PROT_READ | mmap.PROT_WRITE) -> None:
        """Map a part of the file at an address, where it replaces the old pages."""
        map_fixed(address, size, access, mmap.MAP_SHARED, self.number, offset)

    def mapped(self) -> Bytes:
        """The bytes of the file, mapped at a free address until the array is released."""
        with refusals(self.size):
            return np.frombuffer(mmap.mmap(self.number, self.size), np.uint8)

    def handle(self, offset: int = 0, size: int | None = None, pool: int = 0) -> bytes:
        """A handle of 64 bytes for a part of the file, which can be opened while this process lives.

        `pool` is the number of the pool that it is of; what is of none is opened by other processes alone.
        """
        RUNNING.share()
        whole = self.size if size is None else size
        packed = HANDLE.pack(MAGIC, os.getpid(), self.number, self.identity, self.size, offset, whole, pool)
        return packed.ljust(64, b"\0")


class Part(NamedTuple):
    """A part of a file of another process."""

    file: File
    offset: int
    size: int


def opened(handle: bytes, pool: int = 0) -> Part:
    """Open a handle of a pool, or of none; DriverError for one of another, or of a process that has ended.

    This process opens what it has shared itself only where it is of a pool.
    """
    magic, process, number, inode, whole, offset, size, owner = HANDLE.unpack(handle[: HANDLE.size])
    if magic != MAGIC:
        raise DriverError(Result.INVALID_VALUE, "the bytes are no handle of this driver")
    if owner != pool:
        raise DriverError(Result.INVALID_VALUE, "the handle is of another pool")
    if process == os.getpid() and not pool:
        raise DriverError(Result.INVALID_CONTEXT, "a handle cannot be opened in the process that made it")
    RUNNING.share()
    try:
        file = File(whole, os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC))
    except OSError as wrong:
        raise DriverError(Result.MAP_FAILED, f"the memory of process {process} cannot be opened: {wrong}") from wrong
    if os.fstat(file.number).st_ino != inode:
        raise DriverError(Result.MAP_FAILED, f"process {process} has given up the memory")
    return Part(file, offset, size)


def fresh(size: int) -> Bytes:
    """New private pages, released with the array; DriverError where the system has no more."""
    with refusals(size):
        return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


@contextmanager
def refusals(size: int) -> Iterator[None]:
    """Turn the system's refusal of `size` bytes into a DriverError; a size may even be too large for its type."""
    try:
        yield
    except (OSError, OverflowError, ValueError) as wrong:
        raise DriverError(Result.OUT_OF_MEMORY, f"there are no {size} bytes: {wrong}") from wrong


def map_fixed(address: int, size: int, access: int, flags: int, file: int, offset: int) -> None:
    """Replace the pages at an address, by mmap with MAP_FIXED; DriverError where the system refuses."""
    made = libc().mmap(address, size, access, flags | FIXED, file, offset)
    if made != address:
        raise DriverError(Result.MAP_FAILED, os.strerror(ctypes.get_errno()))


class ReservedAddresses:
    """Addresses without memory, released with the object; DriverError where the system has not so many."""

    def __init__(self, size: int, alignment: int, preferred: int = 0) -> None:
        self.start = preferred if preferred and preferred % alignment == 0 and self._take(preferred, size) else 0
        if not self.start:
            self.start = self._find(size, alignment)
        finalize(self, libc().munmap, self.start, size).atexit = False

    @staticmethod
    def _take(start: int, size: int) -> bool:
        """Reserve these addresses; False where some are in use."""
        made = int(libc().mmap(start, size, NO_ACCESS, RESERVING | NO_REPLACE, -1, 0))
        if made not in (start, FAILED):  # an old kernel takes the address for a wish
            libc().munmap(made, size)
        return made == start

    @staticmethod
    def _find(size: int, alignment: int) -> int:
        """Reserve addresses somewhere, and release those before and behind that only alignment took."""
        most = size + alignment
        around = int(libc().mmap(0, most, NO_ACCESS, RESERVING, -1, 0)) if most < LARGEST else FAILED
        if around == FAILED:
            raise DriverError(Result.OUT_OF_MEMORY, f"there are no {size} addresses: {os.strerror(ctypes.get_errno())}")
        start = -(-around // alignment) * alignment
        for first, last in ((around, start), (start + size, around + most)):
            if first < last:
                libc().munmap(first, last - first)
        return start


@cache
def libc() -> ctypes.CDLL:
    """The C library."""
    found = ctypes.CDLL(None, use_errno=True)
    found.mmap.restype = ctypes.c_size_t
    found.mmap.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong)
    found.munmap.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    return found


# ── events of several processes ───────────────────────────────────────────────────────────────────


class SharedPoints:
    """The records of an event that several processes share: how many there are, and the last one that was reached."""

    def __init__(self, file: File | None = None) -> None:
        self.file = file if file is not None else File(PAGE)
        self._counts = self.file.mapped().data.cast("Q")

    @property
    def reached(self) -> int:
        """The number of the last record that a stream has reached."""
        return self._counts[1]

    def begin(self) -> int:
        """Begin a record; returns its number."""
        self._counts[0] += 1
        return self._counts[0]

    def reach(self, number: int) -> None:
        """Note that a stream has reached a record."""
        self._counts[1] = max(self._counts[1], number)

    def last(self) -> Mark:
        """The point of the last record, by any process."""
        return RemoteMark(self, self._counts[0])


class RemoteMark(Mark):
    """The point of a record, which a stream of any process reaches."""

    def __init__(self, points: SharedPoints, number: int) -> None:
        super().__init__()
        self.points, self.number = points, number

    @property
    def is_reached(self) -> bool:
        """Has the stream reached it?"""
        return self.points.reached >= self.number

    def hold(self) -> None:
        """Wait for the stream, on the thread of a queue."""
        while not self.is_reached:
            time.sleep(POLL)

    def wait(self) -> None:
        """Wait for the stream, on a thread of the client; DriverError in a callback of a stream, which must not wait."""
        if not self.is_reached:
            refuse_in_queue()
            self.hold()


__all__ = ["File", "Pages", "Part", "SharedPoints", "fresh", "map_fixed", "opened"]

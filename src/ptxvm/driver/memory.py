"""Memory that a driver allocates for clients, and copies between its blocks.

A device address is a host address, so a copy is one of bytes.  Every allocation is one of the machine's: kernels' wrong
accesses of it are found and named.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics.errors import Fault
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.host_pages import is_accessible
from ptxvm.driver.launch_checks import exact_bounds, follows_values
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import Pages, opened
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import address_of, bytes_at
from ptxvm.machine.device import allocation_at, device as machine_device, was_freed
from ptxvm.machine.memory import Memory, room_for
from ptxvm.machine.per_lane import Array
from ptxvm.machine.unwritten import UNWRITTEN, written
from ptxvm.named_tuple import NamedTuple

ALIGNMENT = 512  # of allocations, and their granularity, as on hardware
LARGE_PAGE = 2 << 20  # ... where an allocation of at least this size begins a page of this size: clients lay out tables in it


class AllocationKind(Enum):
    """The kind of an allocation, as a client asked for it."""

    DEVICE = auto()
    HOST = auto()  # page-locked memory of the host
    MANAGED = auto()


class MemoryBlock(NamedTuple):
    """A block: an allocation of the machine, for a client."""

    allocation: Allocation
    kind: AllocationKind
    number: int
    size: int  # as asked for
    flags: int = 0
    device: int = 0  # the number of the device whose memory it is, or from whose context it was allocated
    registered: bool = False  # is it the client's own memory?
    life: object | None = None  # of the context with which it ends, None for memory that outlives contexts

    @property
    def address(self) -> int:
        """The first address."""
        return self.allocation.start


NUMBERS = count(1)
"""Numbers of blocks and of variables: no two have the same."""


class ModuleVariable(NamedTuple):
    """A `.global` or `.const` variable of a loaded module, as the driver tells of it."""

    kind: AllocationKind
    number: int
    device: int


VARIABLES: WeakKeyDictionary[Allocation, ModuleVariable] = WeakKeyDictionary()
"""The variables of loaded modules, by the memory that each one has."""


def enter_variable(allocation: Allocation, device: int, *, managed: bool) -> None:
    """Let the memory of a variable be told from other memory of the host as long as it lives."""
    kind = AllocationKind.MANAGED if managed else AllocationKind.DEVICE
    VARIABLES.setdefault(allocation, ModuleVariable(kind, next(NUMBERS), device))


class MemoryBlocks:
    """The blocks of a process's driver."""

    def __init__(self) -> None:
        self.by_address: dict[int, MemoryBlock] = {}
        self.pages: dict[int, Pages] = {}  # of memory that can be shared, by address
        self.opened: Counter[int] = Counter()  # the number of times that memory of other processes was opened, by address
        self.parts: dict[tuple[bytes, int], int] = {}  # the address, by handle and pool
        self.aside: set[MemoryBlock] = set()  # blocks that keep their memory, although no work may use it now
        self.reserved: dict[int, int] = {}  # ranges of addresses for mapped memory: where each ends, by its start

    @staticmethod
    def memory(device: int = 0) -> Memory:
        """The memory of a device."""
        return machine_device(device).memory

    def allocate(
        self, size: int, kind: AllocationKind = AllocationKind.DEVICE, flags: int = 0, device: int = 0, *, shared: bool = False,
        life: object | None = None,
    ) -> MemoryBlock:  # fmt: skip
        """New memory, not cleared; DriverError for a size of 0 or more than there is.

        Memory of a device can be shared with other processes, other memory if it is `shared`.
        """
        if not size:
            raise DriverError(Result.INVALID_VALUE, "an allocation has at least one byte")
        room = size if exact_bounds() else -(-size // ALIGNMENT) * ALIGNMENT
        alignment = LARGE_PAGE if room >= LARGE_PAGE else ALIGNMENT
        pages = Pages(room_for(room, alignment)) if shared or kind is AllocationKind.DEVICE else None
        owner, name = (pages.array if pages is not None else None), f"an allocation of {size} bytes"
        try:
            allocation = self.memory(device).allocate(room, alignment, name=name, zero=False, owner=owner)
        except Fault as none_left:
            raise DriverError(Result.OUT_OF_MEMORY, str(none_left)) from none_left
        if pages is not None:
            self.pages[allocation.start] = pages
        if kind is not AllocationKind.DEVICE:
            self.memory(device).share(allocation)
        elif follows_values():
            UNWRITTEN.add(allocation)
        return self.enter(MemoryBlock(allocation, kind, next(NUMBERS), size, flags, device, life=life))

    def share(self, address: int, pool: int = 0) -> bytes:
        """A handle of memory for other processes, of a pool or of none; DriverError for memory that cannot be shared."""
        found = self.find(address)
        if found is None or found[0] not in self.pages:
            raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory that was allocated here and can be shared")
        start, block = found
        UNWRITTEN.discard(block.allocation)  # another process may write it
        pages = self.pages[start]
        return pages.share().handle(start - address_of(pages.array), block.size, pool)

    def open(self, handle: bytes, kind: AllocationKind = AllocationKind.DEVICE, pool: int = 0) -> int:
        """The address of memory that a process has shared, of a kind and a pool; DriverError where there is none."""
        if (handle, pool) not in self.parts:
            part = opened(handle, pool)
            data = part.file.mapped()[part.offset : part.offset + part.size]
            allocation = self.adopt(data, "memory of another process", "is no longer open")
            self.parts[handle, pool] = self.enter(MemoryBlock(allocation, kind, next(NUMBERS), part.size)).address
        self.opened[self.parts[handle, pool]] += 1
        return self.parts[handle, pool]

    def close(self, address: int) -> None:
        """Close memory of another process, once for each time that it was opened; DriverError where it is not open."""
        if not self.opened[address]:
            raise DriverError(Result.INVALID_VALUE, f"no memory of another process is open at {address:#x}")
        self.opened[address] -= 1
        if not self.opened[address]:
            self.parts = {key: at for key, at in self.parts.items() if at != address}
            self.free(address)

    def register(self, address: int, size: int, flags: int, device: int, life: object) -> MemoryBlock:
        """Register memory of the host: kernels may use it; DriverError for bytes that there are not, or some of a block."""
        if not (address and size):
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes at {address:#x} are no memory")
        if not is_accessible(address, size):
            raise no_memory(address, size)
        if any(start < address + size and address < start + each.size for start, each in self.by_address.items()):
            raise DriverError(Result.HOST_MEMORY_ALREADY_REGISTERED)
        adopted = self.adopt(bytes_at(address, size), "registered memory", "is no longer registered")
        made = MemoryBlock(adopted, AllocationKind.HOST, next(NUMBERS), size, flags, device, registered=True, life=life)
        return self.enter(made, address)

    def adopt(self, data: Array, name: str, fate: str) -> Allocation:
        """Let all devices use memory that the driver did not allocate; `fate` says in messages how it ends."""
        return self.memory().share(self.memory().adopt(data, name, fate=fate).allocation)

    def enter(self, block: MemoryBlock, address: int | None = None) -> MemoryBlock:
        """Add a block."""
        self.by_address[block.address if address is None else address] = block
        return block

    def free(self, address: int) -> None:
        """Free a block; DriverError where none begins at the address."""
        block = self.by_address.pop(address, None)
        if block is None:
            raise DriverError(Result.INVALID_VALUE, f"no allocation begins at {address:#x}")
        self.pages.pop(address, None)
        self.memory(block.device).release(block.allocation)

    def set_aside(self, block: MemoryBlock) -> None:
        """Let work use a block no more until it is brought back; its addresses stay its own."""
        self.aside.add(block)
        self.memory(block.device).table.set_aside(block.allocation)

    def bring_back(self, block: MemoryBlock) -> None:
        """Let work use a block that may be set aside."""
        if block in self.aside:
            self.memory(block.device).table.bring_back(block.allocation)
            self.aside.discard(block)

    def end(self, life: object) -> None:
        """Free the blocks of a context that has ended."""
        for address in [at for at, each in list(self.by_address.items()) if each.life is life]:
            self.free(address)

    def in_use(self, device: int) -> int:
        """The bytes of the blocks that have memory of a device."""
        blocks = list(self.by_address.values())
        return sum(each.allocation.size for each in blocks if each.device == device and each.kind is not AllocationKind.HOST)

    def find(self, address: int) -> tuple[int, MemoryBlock] | None:
        """The block around an address, and its beginning; the variable of a module is one, which nothing frees."""
        if (block := self.by_address.get(address)) is not None:
            return address, block
        if (allocation := allocation_at(address)) is None:
            return next(((each.address, each) for each in [*self.aside] if 0 <= address - each.address < each.size), None)
        if (variable := VARIABLES.get(allocation)) is not None:
            found = MemoryBlock(allocation, variable.kind, variable.number, allocation.size, device=variable.device)
            return allocation.start, found
        for start, block in self.by_address.items():
            if start <= address < start + block.size:
                return start, block
        return None

    def check(self, address: int, size: int, *, writing: bool = False) -> None:
        """DriverError for bytes that are neither in one block nor pageable memory of the host, which devices reach too.

        Memory that is mapped without a gap counts as one block; none may be written that is mapped to be read.
        """
        if (allocation := allocation_at(address)) is None and (aside := self.find(address)) is not None:
            allocation = aside[1].allocation  # work may use it when its turn comes
        if allocation is not None:
            self._check_within(allocation, address, size, writing=writing)
        elif not host_memory().reaches(address, size, writing=writing):
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {address:#x} are not in one allocation")

    def holds(self, address: int, size: int) -> bool:
        """Are some bytes in one allocation, or in memory that is mapped without a gap?"""
        allocation = allocation_at(address)
        return allocation is not None and any(address + size <= each.end for each in self._from(allocation))

    def _check_within(self, allocation: Allocation, address: int, size: int, *, writing: bool) -> None:
        """DriverError for bytes that begin in an allocation, and leave it or must not be written."""
        for each in self._from(allocation):
            if writing and not is_writable(each):
                raise DriverError(Result.INVALID_VALUE, f"{each.name} at {each.start:#x} must not be written")
            if address + size <= each.end:
                return
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {address:#x} are not in one allocation")

    def _from(self, allocation: Allocation) -> Iterator[Allocation]:
        """An allocation, and the mapped memory that follows it without a gap if it is mapped itself."""
        yield allocation
        while self.is_reserved(allocation.start) and (following := self.by_address.get(allocation.end)) is not None:
            if not self.is_reserved(following.address):
                return
            yield (allocation := following.allocation)

    def is_reserved(self, address: int) -> bool:
        """Is an address in a range for mapped memory?"""
        return any(start <= address < end for start, end in self.reserved.items())

    def check_any(self, address: int, size: int, *, of_host: bool = False, writing: bool = False) -> None:
        """DriverError for bytes that begin in a block and leave it, in one that was freed, or where the process has none.

        Other memory is the host's own, as is what is said to be `of_host` and is in no block.
        """
        found = self.find(address)
        if found is not None and not found[1].registered:
            self._check_within(found[1].allocation, address, size, writing=writing)
        elif found is None and (self.is_reserved(address) or (not of_host and was_freed(address))):
            self.check(address, size)
        elif not is_accessible(address, size, writing=writing):
            raise no_memory(address, size, writing=writing)


def is_writable(allocation: Allocation) -> bool:
    """May the driver write to an allocation?  Kernels only read constants, which the driver writes."""
    return allocation.writable or allocation.space is Space.CONST


def no_memory(address: int, size: int, *, writing: bool = False) -> DriverError:
    """The error of a call with some bytes that the process cannot read, or write."""
    what = "written" if writing else "read"
    return DriverError(Result.INVALID_VALUE, f"{size} bytes at {address:#x} cannot be {what}: no such memory is mapped")


def copy(target: int, source: int, size: int) -> None:
    """Copy bytes, which may overlap."""
    written(target)
    ctypes.memmove(target, source, size)


def fill(target: int, value: int, width: int, count: int) -> None:
    """Fill memory with copies of a value of 1, 2 or 4 bytes."""
    written(target)
    dtype = np.dtype(f"u{width}")
    bytes_at(target, width * count).view(dtype)[:] = value & (1 << 8 * width) - 1


class Rectangle(NamedTuple):
    """Rows of bytes: of two or three dimensions of memory, or of arrays."""

    start: int
    pitch: int  # bytes from row to row
    height: int  # rows from slice to slice

    def row(self, y: int, z: int) -> int:
        """The address of a row."""
        return self.start + (z * self.height + y) * self.pitch


def copy_rectangle(target: Rectangle, source: Rectangle, width: int, height: int, depth: int = 1) -> None:
    """Copy `depth` slices of `height` rows of `width` bytes."""
    written(target.row(0, 0))
    for z in range(depth):
        for y in range(height):
            ctypes.memmove(target.row(y, z), source.row(y, z), width)


def fill_rectangle(target: Rectangle, value: int, element: int, width: int, height: int) -> None:
    """Write a value to `height` rows of `width` elements."""
    for y in range(height):
        fill(target.row(y, 0), value, element, width)


__all__ = [
    "NUMBERS",
    "AllocationKind",
    "MemoryBlock",
    "MemoryBlocks",
    "Rectangle",
    "copy",
    "copy_rectangle",
    "enter_variable",
    "fill",
    "fill_rectangle",
    "no_memory",
]

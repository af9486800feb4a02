"""Pools of memory, and memory in the order of a stream (driver API, "Stream Ordered Memory Allocator").

Memory of a pool comes from the process as all memory does, and goes back when it is freed: a pool has nothing unused.  What it
counts is what was allocated from it.  A pool of another process opens memory that this one exports, piece by piece.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import field
from enum import IntEnum
from typing import cast

from ptxvm.dataclass import dataclass
from ptxvm.driver.captures import Recapture
from ptxvm.driver.context import Stream
from ptxvm.driver.graph_memory import AllocationTask, FreeTask, GraphAllocation
from ptxvm.driver.launch import FunctionTask
from ptxvm.driver.memory import AllocationKind
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.driver.shared_memory import File
from ptxvm.libcuda.c_values import array_at, bytes_from, i32, put_bytes, put_i32, put_u64, structure_at, u64
from ptxvm.libcuda.calls.locations import LocationType, location_of
from ptxvm.libcuda.session import NO_HANDLE, function, session, then_failure
from ptxvm.libcuda.structures import AccessDescription, AllocationNode, Location, PoolProperties

ALLOCATE, FREE = 10, 11  # CUgraphNodeType
FILE = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
PINNED, MANAGED = 1, 2  # CUmemAllocationType
ON_DEVICE = LocationType.DEVICE
NO_ACCESS, READ_WRITE = 0, 3  # CUmemAccess_flags
SOURCE = struct.Struct("<3iQ")  # of a pool, in the file that stands for it: its location, the type of its memory, its number


class PoolAttribute(IntEnum):
    """What can be asked of a pool (CUmemPool_attribute)."""

    REUSE_FOLLOW_EVENT_DEPENDENCIES = 1
    REUSE_ALLOW_OPPORTUNISTIC = 2
    REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3
    RELEASE_THRESHOLD = 4
    RESERVED_MEM_CURRENT = 5
    RESERVED_MEM_HIGH = 6
    USED_MEM_CURRENT = 7
    USED_MEM_HIGH = 8
    ALLOCATION_TYPE = 9
    EXPORT_HANDLE_TYPES = 10
    LOCATION_ID = 11
    LOCATION_TYPE = 12
    MAX_POOL_SIZE = 13
    HW_DECOMPRESS_ENABLED = 14


A = PoolAttribute
SWITCHES = frozenset({
    A.REUSE_FOLLOW_EVENT_DEPENDENCIES, A.REUSE_ALLOW_OPPORTUNISTIC, A.REUSE_ALLOW_INTERNAL_DEPENDENCIES,
})  # fmt: skip
HIGH_MARKS = {A.RESERVED_MEM_HIGH: A.RESERVED_MEM_CURRENT, A.USED_MEM_HIGH: A.USED_MEM_CURRENT}
OF_32_BITS = SWITCHES | {A.ALLOCATION_TYPE, A.EXPORT_HANDLE_TYPES, A.LOCATION_ID, A.LOCATION_TYPE, A.HW_DECOMPRESS_ENABLED}


@dataclass(eq=False)
class Pool:
    """A pool: where its memory is, the attributes that a client has set, and the bytes that are in use."""

    location: tuple[int, int] = (ON_DEVICE, 0)  # a CUmemLocationType, and the number of a device
    type: int = PINNED
    handle_types: int = 0
    most: int = 0  # bytes; 0 where nothing limits them
    chosen: dict[PoolAttribute, int] = field(default_factory=dict)
    used: int = 0
    reserved: int = 0
    high: dict[PoolAttribute, int] = field(default_factory=lambda: dict.fromkeys(HIGH_MARKS, 0))
    is_imported: bool = False
    number: int = 0  # of a pool that processes share, the same in all of them
    readers: set[int] = field(default_factory=set)  # the devices that may use its memory, beside its own

    @property
    def source(self) -> tuple[tuple[int, int], int]:
        """Its location, and the type of its memory."""
        return self.location, self.type

    @property
    def device(self) -> int:
        """The device that counts its memory: the first one for memory that is of none."""
        return self.location[1] if self.location[0] == ON_DEVICE else 0

    @property
    def kind(self) -> AllocationKind:
        """What its memory is said to be."""
        if self.type == MANAGED:
            return AllocationKind.MANAGED
        return AllocationKind.DEVICE if self.location[0] == ON_DEVICE else AllocationKind.HOST

    def grow(self, size: int) -> None:
        """So many bytes more are in use; DriverError where the pool has not so many."""
        if self.most and self.used + size > self.most:
            raise DriverError(Result.OUT_OF_MEMORY, f"the pool has {self.most} bytes, of which {self.used} are in use")
        self.used += size
        self.reserved = max(self.reserved, self.used)
        self.high = {
            A.RESERVED_MEM_HIGH: max(self.high[A.RESERVED_MEM_HIGH], self.reserved),
            A.USED_MEM_HIGH: max(self.high[A.USED_MEM_HIGH], self.used),
        }

    def shrink(self, size: int) -> None:
        """So many bytes fewer are in use; of what is then free, the pool keeps what its threshold allows."""
        self.used -= size
        self.keep(self.chosen.get(A.RELEASE_THRESHOLD, 0))

    def keep(self, most: int) -> None:
        """Release what is free above a number of bytes.

        What is kept is counted and not held: the machine gives memory back at once, as a driver may at the next wait.
        """
        self.reserved = max(self.used, min(self.reserved, most))

    def attribute(self, which: PoolAttribute) -> int:
        """One of its attributes."""
        own = self.high | {
            A.USED_MEM_CURRENT: self.used, A.RESERVED_MEM_CURRENT: self.reserved,
            A.ALLOCATION_TYPE: self.type, A.EXPORT_HANDLE_TYPES: self.handle_types, A.LOCATION_TYPE: self.location[0],
            A.LOCATION_ID: self.location[1], A.MAX_POOL_SIZE: self.most,
            A.HW_DECOMPRESS_ENABLED: 0,  # no model of a device has an engine for it
        }  # fmt: skip
        return own.get(which, self.chosen.get(which, int(which in SWITCHES)))


NO_HANDLE[Pool] = Result.INVALID_VALUE


Source = tuple[tuple[int, int], int]  # a location, and the type of its memory
DEFAULT: dict[Source, Pool] = {}
"""The pools that locations have from the start, for each type of memory."""
CHOSEN: dict[Source, Pool] = {}
"""Those that locations allocate from, where a client has chosen others."""
OWNERS: dict[int, tuple[Pool, int]] = {}
"""The pool and the bytes of what was allocated from pools, by address."""


def pool(handle: int) -> Pool:
    """A pool by its handle."""
    return session().handles.object(handle, Pool)


def default_of(location: tuple[int, int], type: int = PINNED) -> Pool:
    """The pool that a location has from the start."""
    if location[0] == ON_DEVICE:
        session().driver.device(location[1])
    return DEFAULT.setdefault((location, type), Pool(location, type))


def chosen_of(location: tuple[int, int], type: int = PINNED) -> Pool:
    """The pool that a location allocates from."""
    return CHOSEN.get((location, type)) or default_of(location, type)


def pool_at(properties: int) -> Pool:
    """A pool with the properties of a structure; DriverError for other ways to share it than files, and for unknown types."""
    d = structure_at(PoolProperties, properties)
    if d.handle_types & ~FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory is shared by files alone")
    return Pool(location_at(properties + PoolProperties.location.offset, d.type), d.type, d.handle_types, d.most)


def location_at(address: int, type: int) -> tuple[int, int]:
    """The location that a structure names: a device, the host, one of its nodes, or for managed memory none."""
    if type not in (PINNED, MANAGED):
        raise DriverError(Result.INVALID_VALUE, f"there is no type {type} of allocations")
    d = structure_at(Location, address)
    if d.type == LocationType.CURRENT_HOST_NODE or (d.type == LocationType.NONE and type != MANAGED):
        raise DriverError(Result.INVALID_VALUE, f"a pool has no location of type {d.type}")
    return location_of(d.type, d.number)


# ── memory ──────────────────────────────────────────────────────────────────────────────


def allocate_from(out: int, size: int, source: Pool) -> None:
    """New memory of a pool."""
    if source.is_imported:
        raise DriverError(Result.NOT_PERMITTED, "a pool of another process opens its memory, and allocates none")
    source.grow(size)
    try:
        here = session().context.device.ordinal
        device, shared = (source.device if source.location[0] == ON_DEVICE else here), bool(source.handle_types)
        put_u64(out, 0)
        put_u64(out, session().driver.blocks.allocate(size, source.kind, 0, device, shared=shared).address)
    except DriverError:
        source.shrink(size)
        raise
    OWNERS[u64(out)] = source, size
    blocks = session().driver.blocks
    for device in source.readers:
        blocks.memory(device).table.grant(blocks.by_address[u64(out)].allocation)


@function("cuMemAllocAsync")
def allocate_async(out: int, size: int, stream: int) -> None:
    """Memory of the device's pool, in the order of a stream."""
    found = session().stream(stream)
    allocate_on(found, out, size, chosen_of((ON_DEVICE, found.context.device.ordinal)))


@function("cuMemAllocFromPoolAsync")
def allocate_from_pool(out: int, size: int, handle: int, stream: int) -> None:
    """Memory of a pool, in the order of a stream."""
    allocate_on(session().stream(stream), out, size, pool(handle))


def allocate_on(stream: Stream, out: int, size: int, source: Pool) -> None:
    """Memory of a pool in the order of a stream; while that is captured, memory of the graph, and a node that allocates it.

    No bytes are at null.
    """
    if not size:
        put_u64(out, 0)
        return
    if stream.capture is None:
        allocate_from(out, size, source)
        return
    d = AllocationNode(size=size)
    d.pool.type, d.pool.handle_types, d.pool.location = source.type, source.handle_types, Location(*source.location)
    if isinstance(stream.capture, Recapture):
        made = allocated_before(stream.capture)
    else:
        made = session().driver.graph_memory.allocate(source.device, size, source.kind)
        made.join(stream.capture.graph)
    d.address = made.address
    stream.put(AllocationTask(bytes(d), made), ALLOCATE)
    put_u64(out, made.address)


def allocated_before(capture: Recapture) -> GraphAllocation:
    """The memory of the next node of a graph that is captured again."""
    return cast("AllocationTask", capture.expected(ALLOCATE).task).allocation


@function("cuMemFreeAsync", any_state=True)
@then_failure
def free_async(address: int, stream: int) -> None:
    """Free memory, in the order of a stream; null has no effect."""
    found, driver = session().stream(stream), session().driver
    if not address:
        return
    if address not in driver.blocks.by_address:
        raise DriverError(Result.INVALID_VALUE, f"no allocation begins at {address:#x}")
    if found.capture is not None:
        found.put(FreeTask(address.to_bytes(8, "little"), driver.graph_memory.at(address)), FREE)
    elif found.queue.is_idle:
        give_back(address)
    elif (of_graph := driver.graph_memory.allocations.get(address)) is not None:
        of_graph.free()
        found.put(FreeTask(address.to_bytes(8, "little"), of_graph), FREE)
    else:
        found.put(FunctionTask(lambda: give_back(address)), FREE)


def give_back(address: int) -> None:
    """Free memory, which its pool counts no more; what is open of another process is closed."""
    blocks, of_graphs = session().driver.blocks, session().driver.graph_memory.allocations
    if address in of_graphs:
        of_graphs[address].free()
        of_graphs[address].end()
    elif blocks.opened[address]:
        blocks.close(address)
    else:
        blocks.free(address)
    if (owner := OWNERS.pop(address, None)) is not None:
        owner[0].shrink(owner[1])


@function("cuMemFree_v2", any_state=True)
@then_failure
def free(address: int) -> None:
    """Free memory of a device or of a pool, or managed memory; null has no effect."""
    if address:
        check_kind(address, on_host=False)
        free_finished(address)


@function("cuMemFreeHost", any_state=True)
@then_failure
def free_host(address: int) -> None:
    """Free page-locked memory of the host; null has no effect."""
    if address:
        check_kind(address, on_host=True)
        free_finished(address)


def check_kind(address: int, *, on_host: bool) -> None:
    """DriverError for memory that another function frees.

    The host's memory of a pool, or of a node of a graph, is freed as that of a device is.
    """
    block = session().driver.blocks.by_address.get(address)
    if block is None or address in OWNERS or address in session().driver.graph_memory.allocations:
        return
    if block.registered or (block.kind is AllocationKind.HOST) is not on_host:
        what = "memory that was registered" if block.registered else f"{'no ' * on_host}page-locked memory of the host"
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is {what}")


def free_finished(address: int) -> None:
    """Free memory when all work is done."""
    session().refuse_unsafe()
    session().driver.finish()
    give_back(address)


# ── pools ───────────────────────────────────────────────────────────────────────────────


@function("cuDeviceGetDefaultMemPool")
def default_pool(out: int, ordinal: int) -> None:
    """The pool that a device has from the start."""
    put_u64(out, session().handles.handle(default_of((ON_DEVICE, ordinal))))


@function("cuDeviceGetMemPool")
def device_pool(out: int, ordinal: int) -> None:
    """The pool that a device allocates from."""
    put_u64(out, session().handles.handle(chosen_of((ON_DEVICE, ordinal))))


@function("cuDeviceSetMemPool")
def set_device_pool(ordinal: int, handle: int) -> None:
    """Let a device allocate from another pool, which is one of its own."""
    choose(((ON_DEVICE, session().driver.device(ordinal).ordinal), PINNED), pool(handle))


def choose(source: Source, found: Pool) -> None:
    """Let a location allocate from a pool; DriverError for a pool of another location, or other memory."""
    if found.source != source or found.is_imported:
        raise DriverError(Result.INVALID_VALUE, "the pool is one of another location, or of other memory")
    CHOSEN[source] = found


@function("cuMemGetDefaultMemPool")
def default_pool_of(out: int, location: int, kind: int) -> None:
    """The pool that a location has from the start."""
    put_u64(out, session().handles.handle(default_of(location_at(location, kind), kind)))


@function("cuMemGetMemPool")
def pool_of(out: int, location: int, kind: int) -> None:
    """The pool that a location allocates from."""
    put_u64(out, session().handles.handle(chosen_of(location_at(location, kind), kind)))


@function("cuMemSetMemPool")
def set_pool_of(location: int, kind: int, handle: int) -> None:
    """Let a location allocate from another pool."""
    choose((location_at(location, kind), kind), pool(handle))


@function("cuMemPoolCreate")
def create_pool(out: int, properties: int) -> None:
    """A new pool."""
    put_u64(out, session().handles.handle(pool_at(properties)))


@function("cuMemPoolDestroy")
def destroy_pool(handle: int) -> None:
    """Forget a pool; what was allocated from it stays, and its location has the default one again."""
    found = pool(handle)
    if found in DEFAULT.values():
        raise DriverError(Result.INVALID_VALUE, "the default pool of a location stays")
    if CHOSEN.get(found.source) is found:
        del CHOSEN[found.source]
    session().handles.drop(handle)


@function("cuMemPoolTrimTo")
def trim(handle: int, size: int) -> None:
    """Release unused memory of a pool above a number of bytes."""
    pool(handle).keep(size)


def attribute_of(number: int) -> PoolAttribute:
    """An attribute by its number; DriverError where there is none."""
    return member(PoolAttribute, number, "attribute of pools")


@function("cuMemPoolGetAttribute")
def pool_attribute(handle: int, number: int, out: int) -> None:
    """An attribute of a pool."""
    which = attribute_of(number)
    (put_i32 if which in OF_32_BITS else put_u64)(out, pool(handle).attribute(which))


@function("cuMemPoolSetAttribute")
def set_pool_attribute(handle: int, number: int, value: int) -> None:
    """Set an attribute of a pool; the high marks begin anew."""
    found, which = pool(handle), attribute_of(number)
    if which in SWITCHES:
        found.chosen[which] = i32(value)
    elif which is A.RELEASE_THRESHOLD:
        found.chosen[which] = u64(value)
    elif which in HIGH_MARKS and not u64(value):
        found.high[which] = found.attribute(HIGH_MARKS[which])
    else:
        raise DriverError(Result.INVALID_VALUE, f"attribute {number} of a pool cannot be set to this")


@function("cuMemPoolSetAccess")
def set_pool_access(handle: int, accesses: int, count: int) -> None:
    """Let devices use the memory of a pool, or end that; its own device always may."""
    found, blocks = pool(handle), session().driver.blocks
    held = [blocks.by_address[address].allocation for address, (owner, _) in OWNERS.items() if owner is found]
    for d in array_at(AccessDescription, accesses, count) if count else ():
        if (d.location_type, d.location) == found.location and d.flags == NO_ACCESS:
            raise DriverError(Result.INVALID_DEVICE, "the device of a pool may use it")
        if d.location_type != ON_DEVICE or (d.location_type, d.location) == found.location:
            continue
        table = blocks.memory(session().driver.device(d.location).ordinal).table
        (found.readers.discard if d.flags == NO_ACCESS else found.readers.add)(d.location)
        for allocation in held:
            (table.revoke if d.flags == NO_ACCESS else table.grant)(allocation)


@function("cuMemPoolGetAccess")
def pool_access(out: int, handle: int, location: int) -> None:
    """What a location may do with the memory of a pool."""
    found, named = pool(handle), location_at(location, pool(handle).type)
    apart = named[0] == found.location[0] == ON_DEVICE and named != found.location and named[1] not in found.readers
    put_i32(out, NO_ACCESS if apart else READ_WRITE)


# ── other processes ─────────────────────────────────────────────────────────────────────


@function("cuMemPoolExportToShareableHandle")
def export_pool(out: int, handle: int, kind: int, flags: int) -> None:
    """The number of a file that stands for a pool, for this process to give to others."""
    found = pool(handle)
    if kind != FILE or not found.handle_types & FILE:
        raise DriverError(Result.INVALID_VALUE, "the pool was not created to be shared by a file")
    file = File(mmap.PAGESIZE)
    os.pwrite(file.number, SOURCE.pack(*found.location, found.type, number_of(found)), 0)
    put_i32(out, os.dup(file.number))


@function("cuMemPoolImportFromShareableHandle")
def import_pool(out: int, file: int, kind: int, flags: int) -> None:
    """A pool of another process, by the number of its file."""
    if kind != FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory is shared by files alone")
    try:
        *location, type, number = SOURCE.unpack(os.pread(file, SOURCE.size, 0))
    except (OSError, OverflowError, struct.error) as wrong:
        raise DriverError(Result.INVALID_VALUE, f"{file} is the number of no file of a pool: {wrong}") from wrong
    put_u64(out, session().handles.handle(Pool((location[0], location[1]), type, FILE, is_imported=True, number=number)))


def number_of(shared: Pool) -> int:
    """The number of a pool that processes share, which no other pool has."""
    if not shared.number:
        shared.number = int.from_bytes(os.urandom(8)) | 1
    return shared.number


@function("cuMemPoolExportPointer")
def export_pointer(out: int, address: int) -> None:
    """64 bytes that name memory of a pool for other processes."""
    owner = OWNERS.get(address)
    if owner is None or not owner[0].handle_types & FILE:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of a pool that is shared")
    put_bytes(out, session().driver.blocks.share(address, number_of(owner[0])))


@function("cuMemPoolImportPointer")
def import_pointer(out: int, handle: int, exported: int) -> None:
    """The address of memory of a pool that was imported: of another process, or a second one of memory of this process."""
    found = pool(handle)
    if not found.is_imported:
        raise DriverError(Result.INVALID_VALUE, "the pool was not imported")
    put_u64(out, session().driver.blocks.open(bytes_from(exported, 64), found.kind, found.number))

"""Virtual memory management: ranges of addresses, memory, and its mapping."""

from __future__ import annotations

import os

from ptxvm.driver.multicast import Multicast
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import File
from ptxvm.driver.virtual_memory import GRANULARITY, NONE, Mappable, Physical
from ptxvm.libcuda.c_values import array_at, put_bytes, put_i32, put_u64, structure_at
from ptxvm.libcuda.session import NO_HANDLE, function, session
from ptxvm.libcuda.structures import AccessDescription, AllocationProperties, Location

FILE = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
ON_DEVICE = 1  # CUmemLocationType

NO_HANDLE.update(dict.fromkeys((Mappable, Physical), Result.INVALID_VALUE))


def physical(handle: int) -> Physical:
    """Memory by its handle."""
    return session().handles.object(handle, Physical)


def mappable(handle: int) -> Mappable:
    """Memory, or a multicast object, by its handle."""
    return session().handles.object(handle, Mappable)


@function("cuMemGetAllocationGranularity")
def granularity(out: int, properties: int, option: int) -> None:
    """The granularity of sizes and addresses."""
    put_u64(out, GRANULARITY)


@function("cuMemAddressReserve")
def reserve(out: int, size: int, alignment: int, address: int, flags: int) -> None:
    """Addresses without memory, from the preferred one on if those are free."""
    put_u64(out, session().driver.virtual.reserve(size, alignment, address))


@function("cuMemAddressFree", any_state=True)
def give_back(address: int, size: int) -> None:
    """Release addresses."""
    session().driver.virtual.give_back(address, size)


@function("cuMemCreate")
def create(out: int, size: int, properties: int, flags: int) -> None:
    """Memory without an address."""
    described = structure_at(AllocationProperties, properties)
    if not size or size % GRANULARITY:
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes are no multiple of {GRANULARITY}")
    if described.handle_types & ~FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory is shared by files alone")
    if size > session().driver.devices[0].memory:  # which is that of the host for all of them
        raise DriverError(Result.OUT_OF_MEMORY, f"the device has no {size} bytes")  # a file without bytes may have any size
    device = session().driver.device(described.location).ordinal if described.location_type == ON_DEVICE else 0
    put_u64(out, session().handles.handle(Physical(file=File(size), properties=bytes(described), device=device)))


@function("cuMemRelease", any_state=True)
def release(handle: int) -> None:
    """Release memory, or a multicast object; what is mapped stays until it is unmapped."""
    memory = mappable(handle)
    memory.users -= 1
    if not memory.users:
        session().handles.drop(handle)


@function("cuMemRetainAllocationHandle")
def retain(out: int, address: int) -> None:
    """The handle of the memory that is mapped at an address, with one more user."""
    memory = session().driver.virtual.piece_at(address).memory
    handles = session().handles
    memory.users = memory.users + 1 if id(memory) in handles.numbers else 1
    put_u64(out, handles.handle(memory))


@function("cuMemGetAllocationPropertiesFromHandle")
def properties_of(out: int, handle: int) -> None:
    """The properties of memory, as a client gave them."""
    put_bytes(out, physical(handle).properties)


@function("cuMemMap")
def map_memory(address: int, size: int, offset: int, handle: int, flags: int) -> None:
    """Map memory at reserved addresses, without access."""
    if offset or flags:
        raise DriverError(Result.INVALID_VALUE, "the offset and the flags are 0")
    mapped = mappable(handle)
    if isinstance(mapped, Multicast):
        mapped.must_be_complete()
    session().driver.virtual.map(address, size, mapped)


@function("cuMemUnmap", any_state=True)
def unmap(address: int, size: int) -> None:
    """Unmap memory, after the work that uses it."""
    session().driver.finish()
    session().driver.virtual.unmap(address, size)


@function("cuMemSetAccess")
def set_access(address: int, size: int, descriptions: int, count: int) -> None:
    """Set the access of devices to mapped memory; that of the host counts as the first device's."""
    found = array_at(AccessDescription, descriptions, count)
    driver = session().driver
    driver.finish()
    places = [driver.device(each.location).ordinal if each.location_type == ON_DEVICE else 0 for each in found]
    driver.virtual.set_access(address, size, dict(zip(places, (each.flags for each in found), strict=True)))


@function("cuMemGetAccess")
def access(out: int, location: int, address: int) -> None:
    """The access of a device to mapped memory."""
    found, place = session().driver.virtual.piece_at(address), structure_at(Location, location)
    put_u64(out, found.access.get(place.number if place.type == ON_DEVICE else 0, NONE))


@function("cuMemExportToShareableHandle")
def export(out: int, handle: int, kind: int, flags: int) -> None:
    """A file descriptor of the memory, for this process and others."""
    if kind != FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory is shared by files alone")
    memory = physical(handle)
    if not AllocationProperties.from_buffer_copy(memory.properties).handle_types & FILE:
        raise DriverError(Result.INVALID_VALUE, "the memory was not created to be shared")
    put_i32(out, os.dup(memory.file.number))


@function("cuMemImportFromShareableHandle")
def take(out: int, file: int, kind: int) -> None:
    """Memory by a file descriptor, which stays the client's."""
    if kind != FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory is shared by files alone")
    try:
        number = os.dup(file)
        size = os.fstat(number).st_size
    except (OSError, OverflowError) as wrong:
        raise DriverError(Result.INVALID_VALUE, f"{file} is the number of no file: {wrong}") from wrong
    described = AllocationProperties(type=1, handle_types=FILE, location_type=1)
    put_u64(out, session().handles.handle(Physical(file=File(size, number), properties=bytes(described))))

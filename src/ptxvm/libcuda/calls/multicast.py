"""Multicast objects (driver API, "Multicast Object Management")."""

from __future__ import annotations

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.multicast import Multicast
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.virtual_memory import GRANULARITY, Physical
from ptxvm.libcuda.c_values import not_null, put_u64, structure_at
from ptxvm.libcuda.calls.virtual_memory import physical
from ptxvm.libcuda.session import NO_HANDLE, function, session
from ptxvm.libcuda.structures import MulticastProperties

OPTIONS = range(2)  # CUmulticastGranularity_flags: the least granularity, and the recommended one

NO_HANDLE[Multicast] = Result.INVALID_VALUE


def multicast(handle: int) -> Multicast:
    """A multicast object by its handle."""
    return session().handles.object(handle, Multicast)


@function("cuMulticastGetGranularity")
def granularity(out: int, properties: int, option: int) -> None:
    """The granularity of sizes, offsets and addresses; nothing is better with a larger one."""
    not_null(properties)
    if option not in OPTIONS:
        raise DriverError(Result.INVALID_VALUE, f"there is no granularity {option}")
    put_u64(out, GRANULARITY)


@function("cuMulticastCreate")
def create(out: int, properties: int) -> None:
    """A multicast object for some devices; there is none for other processes."""
    if not any(each.attribute(Attribute.MULTICAST_SUPPORTED) for each in session().driver.devices):
        raise DriverError(Result.NOT_SUPPORTED, "no device has multicast: those of sm_90 and later do")
    d = structure_at(MulticastProperties, properties)
    if not d.devices or d.flags:
        raise DriverError(Result.INVALID_VALUE, "a multicast object has a device and no flags")
    if d.devices > (count := len(session().driver.devices)):
        raise DriverError(Result.NOT_SUPPORTED, f"a multicast object of {d.devices} devices, and there are {count}")
    if d.handle_types:
        raise DriverError(Result.NOT_SUPPORTED, "multicast objects are not shared with other processes")
    put_u64(out, session().handles.handle(Multicast(bytes=d.size, team=d.devices)))


@function("cuMulticastAddDevice")
def add_device(handle: int, device: int) -> None:
    """Add a device to the team."""
    found = session().driver.device(device)
    if not found.attribute(Attribute.MULTICAST_SUPPORTED):
        raise DriverError(Result.NOT_SUPPORTED, f"{found.name} has no multicast")
    multicast(handle).add(found.ordinal)


@function("cuMulticastBindMem")
def bind(handle: int, offset: int, memory: int, start: int, size: int, flags: int) -> None:
    """Bind memory to the object, for the device that has it."""
    bind_memory(handle, offset, physical(memory), start, size, flags)


@function("cuMulticastBindMem_v2")
def bind_for(handle: int, device: int, offset: int, memory: int, start: int, size: int, flags: int) -> None:
    """The same, for a device that is named."""
    must_be_of(physical(memory), device)
    bind(handle, offset, memory, start, size, flags)


@function("cuMulticastBindAddr")
def bind_address(handle: int, offset: int, address: int, size: int, flags: int) -> None:
    """Bind memory that is mapped at an address."""
    memory, start = memory_at(address)
    bind_memory(handle, offset, memory, start, size, flags)


@function("cuMulticastBindAddr_v2")
def bind_address_for(handle: int, device: int, offset: int, address: int, size: int, flags: int) -> None:
    """The same, for a device that is named."""
    must_be_of(memory_at(address)[0], device)
    bind_address(handle, offset, address, size, flags)


@function("cuMulticastUnbind", any_state=True)
def unbind(handle: int, device: int, offset: int, size: int) -> None:
    """Unbind memory, after the work that uses it."""
    found, driver = multicast(handle), session().driver
    driver.finish()
    found.unbind(driver.device(device).ordinal, offset, size)
    driver.virtual.changed(found)


def bind_memory(handle: int, offset: int, memory: Physical, start: int, size: int, flags: int) -> None:
    """Bind memory, from a start on."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags are 0")
    found = multicast(handle)
    found.bind(offset, memory, start, size)
    session().driver.virtual.changed(found)


def must_be_of(memory: Physical, device: int) -> None:
    """DriverError for memory of another device."""
    if session().driver.device(device).ordinal != memory.device:
        raise DriverError(Result.INVALID_DEVICE, f"the memory is one of device {memory.device}")


def memory_at(address: int) -> tuple[Physical, int]:
    """The memory that is mapped at an address, and the offset of the address in it; DriverError for any other memory."""
    driver = session().driver
    if not driver.virtual.is_reserved(address):
        if driver.blocks.find(address) is not None:
            raise DriverError(Result.NOT_SUPPORTED, "only memory of cuMemCreate is bound by its address")
        raise DriverError(Result.INVALID_VALUE, f"there is no memory at {address:#x}")
    piece = driver.virtual.piece_at(address)
    if not isinstance(piece.memory, Physical):
        raise DriverError(Result.INVALID_VALUE, "a multicast object is not bound to another one")
    return piece.memory, address - piece.start

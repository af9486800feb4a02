"""Devices: count, names and attributes."""

from __future__ import annotations

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_string, put_u64, string
from ptxvm.libcuda.session import function, session


@function("cuDeviceGetCount")
def count(out: int) -> None:
    """How many devices there are."""
    put_i32(out, len(session().driver.devices))


@function("cuDeviceGet")
def device(out: int, ordinal: int) -> None:
    """A device by number."""
    put_i32(out, session().driver.device(ordinal).ordinal)


@function("cuDeviceGetName")
def name(out: int, size: int, ordinal: int) -> None:
    """The name of a device."""
    put_string(out, session().driver.device(ordinal).name, size)


@function("cuDeviceTotalMem", "cuDeviceTotalMem_v2")
def total_memory(out: int, ordinal: int) -> None:
    """The bytes of memory of a device."""
    put_u64(out, session().driver.device(ordinal).memory)


@function("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
def uuid(out: int, ordinal: int) -> None:
    """The 16 bytes that name a device."""
    put_bytes(out, session().driver.device(ordinal).uuid)


@function("cuDeviceGetPCIBusId")
def bus(out: int, size: int, ordinal: int) -> None:
    """The address of a device on the bus."""
    put_string(out, session().driver.device(ordinal).bus, size)


@function("cuDeviceGetByPCIBusId")
def by_bus(out: int, text: int) -> None:
    """A device by its address on the bus."""
    wanted = string(text).lower()
    for each in session().driver.devices:
        if each.bus in (wanted, f"0000:{wanted}", f"{wanted}.0"):
            put_i32(out, each.ordinal)
            return
    raise DriverError(Result.INVALID_DEVICE, f"no device is at {wanted}")


@function("cuDeviceComputeCapability")
def capability(major: int, minor: int, ordinal: int) -> None:
    """The compute capability of a device."""
    first, second = session().driver.device(ordinal).model.capability
    put_i32(major, first)
    put_i32(minor, second)


@function("cuDeviceGetAttribute")
def attribute(out: int, number: int, ordinal: int) -> None:
    """An attribute of a device."""
    put_i32(out, session().driver.device(ordinal).attribute(number))


@function("cuDeviceCanAccessPeer")
def can_access_peer(out: int, ordinal: int, peer: int) -> None:
    """Can kernels of one device use the memory of another?  All memory is the host's, so they can."""
    first, second = session().driver.device(ordinal), session().driver.device(peer)
    put_i32(out, int(first is not second))


@function("cuDeviceGetP2PAttribute")
def peer_attribute(out: int, number: int, source: int, target: int) -> None:
    """An attribute of the link between two devices."""
    rank, access, atomics, arrays, partial = 1, 2, 3, 4, 5
    first, second = session().driver.device(source), session().driver.device(target)
    if first is second:
        raise DriverError(Result.INVALID_DEVICE, "a device is no peer of itself")
    values = {rank: 0, access: 1, atomics: 1, arrays: 0, partial: 0}
    if number not in values:
        raise DriverError(Result.INVALID_VALUE, f"there is no attribute {number}")
    put_i32(out, values[number])

"""Devices: count, names and attributes."""

from __future__ import annotations

import ctypes
import struct

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.cuda_arrays import Elements, format_of
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import array_at, put_bytes, put_i32, put_string, put_u64, string
from ptxvm.libcuda.session import function, session

A = Attribute
PROPERTIES = (
    A.MAX_THREADS_PER_BLOCK, A.MAX_BLOCK_DIM_X, A.MAX_BLOCK_DIM_Y, A.MAX_BLOCK_DIM_Z, A.MAX_GRID_DIM_X, A.MAX_GRID_DIM_Y,
    A.MAX_GRID_DIM_Z, A.MAX_SHARED_MEMORY_PER_BLOCK, A.TOTAL_CONSTANT_MEMORY, A.WARP_SIZE, A.MAX_PITCH,
    A.MAX_REGISTERS_PER_BLOCK, A.CLOCK_RATE, A.TEXTURE_ALIGNMENT,
)  # fmt: skip
SIGNED, UNSIGNED, REDUCTION, OF_32_BITS, OF_64_BITS, OF_128_BITS, OF_FOUR = (1 << n for n in range(7))
"""What an atomic operation can do (CUatomicOperationCapability); `OF_FOUR` is a vector of four 32-bit numbers."""
NUMBERS = SIGNED | UNSIGNED | REDUCTION | OF_32_BITS | OF_64_BITS
BITS = REDUCTION | OF_32_BITS | OF_64_BITS
ATOMICS = {
    **dict.fromkeys((0, 1, 2), NUMBERS),  # sum, smallest, greatest
    **dict.fromkeys((3, 4), UNSIGNED | REDUCTION | OF_32_BITS),  # inc, dec
    **dict.fromkeys((5, 6, 7), BITS),  # and, or, xor
    **dict.fromkeys((8, 9), OF_32_BITS | OF_64_BITS | OF_128_BITS),  # exch, cas
    10: REDUCTION | OF_32_BITS | OF_64_BITS | OF_FOUR,  # sum of floats
    **dict.fromkeys((11, 12), REDUCTION),  # smallest and greatest float: of 16 bits alone (PTX 9.7.13.5)
}
"""The capabilities of each operation (CUatomicOperation), as `atom` and `red` have them."""


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


@function("cuDeviceGetProperties")
def properties(out: int, ordinal: int) -> None:
    """Attributes of a device as one structure (CUdevprop)."""
    device = session().driver.device(ordinal)
    put_bytes(out, struct.pack(f"<{len(PROPERTIES)}i", *(device.attribute(each) for each in PROPERTIES)))


@function("cuDeviceGetTexture1DLinearMaxWidth")
def linear_width(out: int, format: int, channels: int, ordinal: int) -> None:
    """The most elements of a texture of plain memory, which do not depend on the size of an element."""
    Elements(format_of(format), channels)
    put_u64(out, session().driver.device(ordinal).attribute(A.MAXIMUM_TEXTURE1D_LINEAR_WIDTH))


@function("cuDeviceGetHostAtomicCapabilities")
def atomics_with_host(out: int, operations: int, count: int, ordinal: int) -> None:
    """What atomic operations on memory of the host can do, for each of some operations: what they can in any memory."""
    session().driver.device(ordinal)
    if not (out and operations and count):
        raise DriverError(Result.INVALID_VALUE, "the operations are missing")
    words = array_at(ctypes.c_int32, operations, count)
    if any(each not in ATOMICS for each in words):
        raise DriverError(Result.INVALID_VALUE, f"{list(words)} are not all atomic operations")
    put_bytes(out, struct.pack(f"<{count}I", *(ATOMICS[each] for each in words)))


@function("cuDeviceGetP2PAtomicCapabilities")
def atomics_with_peer(out: int, operations: int, count: int, source: int, target: int) -> None:
    """What atomic operations on memory of another device can do."""
    if session().driver.device(source) is session().driver.device(target):
        raise DriverError(Result.INVALID_DEVICE, "a device is no peer of itself")
    atomics_with_host(out, operations, count, source)


@function("cuDeviceCanAccessPeer")
def can_access_peer(out: int, ordinal: int, peer: int) -> None:
    """Can kernels of one device use the memory of another, once that is enabled?  All memory is the host's, so they can."""
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

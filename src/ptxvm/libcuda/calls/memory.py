"""Memory: of devices, of the host and managed; attributes of pointers."""

from __future__ import annotations

from ptxvm.driver.memory import Kind
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import i32, put_i32, put_u64, put_u64_if, u64
from ptxvm.libcuda.session import function, session

HOST_TYPE, DEVICE_TYPE = 1, 2  # CUmemorytype
PITCH = 512


# ── allocations ─────────────────────────────────────────────────────────────────────────


def allocate(out: int, size: int, kind: Kind = Kind.DEVICE, flags: int = 0) -> None:
    """New memory of the current context."""
    session().context  # noqa: B018 - raises where there is none
    put_u64(out, 0)
    put_u64(out, session().driver.blocks.allocate(size, kind, flags).address)


@function("cuMemAlloc_v2")
def allocate_device(out: int, size: int) -> None:
    """Memory of the device."""
    allocate(out, size)


@function("cuMemAllocPitch_v2")
def allocate_pitch(out: int, pitch: int, width: int, height: int, element: int) -> None:
    """Rows of bytes, each at a multiple of 512."""
    if element not in (4, 8, 16):
        raise DriverError(Result.INVALID_VALUE, "elements have 4, 8 or 16 bytes")
    stride = -(-width // PITCH) * PITCH
    allocate(out, stride * height)
    put_u64(pitch, stride)


@function("cuMemAllocManaged")
def allocate_managed(out: int, size: int, flags: int) -> None:
    """Memory that the host and all devices share."""
    if flags not in (1, 2):
        raise DriverError(Result.INVALID_VALUE, "managed memory is attached to the host or globally")
    allocate(out, size, Kind.MANAGED, flags)


@function("cuMemAllocHost_v2")
def allocate_host(out: int, size: int) -> None:
    """Memory of the host that the device reaches."""
    allocate(out, size, Kind.HOST)


@function("cuMemHostAlloc")
def allocate_host_flags(out: int, size: int, flags: int) -> None:
    """Memory of the host that the device reaches, with flags."""
    allocate(out, size, Kind.HOST, flags)


@function("cuMemHostRegister_v2")
def register(address: int, size: int, flags: int) -> None:
    """Let kernels use memory of the host."""
    session().driver.blocks.register(address, size, flags)


@function("cuMemHostUnregister")
def unregister(address: int) -> None:
    """End the registration."""
    if address not in session().driver.blocks.by_address:
        raise DriverError(Result.HOST_MEMORY_NOT_REGISTERED)
    session().driver.finish()
    session().driver.blocks.free(address)


@function("cuMemHostGetDevicePointer_v2")
def device_pointer(out: int, address: int, flags: int) -> None:
    """The address of host memory for a kernel: the same."""
    if flags or session().driver.blocks.find(address) is None:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of the host that kernels reach")
    put_u64(out, address)


@function("cuMemHostGetFlags")
def host_flags(out: int, address: int) -> None:
    """The flags with which host memory was allocated."""
    found = session().driver.blocks.find(address)
    if found is None or found[1].kind is not Kind.HOST:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of the host that kernels reach")
    put_i32(out, found[1].flags)


@function("cuMemGetInfo_v2")
def info(free_out: int, total: int) -> None:
    """The free and the total bytes of the current device."""
    device = session().context.device
    put_u64_if(free_out, device.free_memory)
    put_u64_if(total, device.memory)


@function("cuMemGetAddressRange_v2")
def address_range(start: int, size: int, address: int) -> None:
    """The allocation of an address."""
    found = session().driver.blocks.find(address)
    if found is None:
        raise DriverError(Result.NOT_FOUND, f"{address:#x} is in no allocation")
    put_u64_if(start, found[0])
    put_u64_if(size, found[1].size)


# ── pointers ────────────────────────────────────────────────────────────────────────────


@function("cuPointerGetAttribute")
def pointer_attribute(out: int, number: int, address: int) -> None:
    """An attribute of a pointer.

    Memory of the host that no call allocated is a pointer of the device too: the machine and the host share all memory.
    """
    found = session().driver.blocks.find(address)
    start, block = found if found is not None else (address, None)
    kind = Kind.HOST if block is None else block.kind
    context = session().handles.handle(session().context)
    words = {2: HOST_TYPE if kind is Kind.HOST else DEVICE_TYPE, 6: 0, 8: int(kind is Kind.MANAGED), 9: 0, 10: 0, 13: 1, 14: 0}
    sizes = {
        1: context, 3: address, 4: address, 7: 0 if block is None else block.number, 11: start,
        12: 0 if block is None else block.size, 17: 0,
    }  # fmt: skip
    if block is None and number not in (3, 4):
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of this driver")
    if number in words:
        put_i32(out, words[number])
    elif number in sizes:
        put_u64(out, sizes[number])
    else:
        raise DriverError(Result.INVALID_VALUE, f"there is no attribute {number} of pointers")


@function("cuPointerGetAttributes")
def pointer_attributes(count: int, numbers: int, outs: int, address: int) -> None:
    """Several attributes; those that do not apply are null or 0."""
    for n in range(count):
        try:
            pointer_attribute(u64(outs + 8 * n), i32(numbers + 4 * n), address)
        except DriverError:
            put_i32(u64(outs + 8 * n), 0)


@function("cuPointerSetAttribute")
def set_pointer_attribute(value: int, number: int, address: int) -> None:
    """Make copies of this memory synchronous; all copies are."""
    synchronous = 6
    if number != synchronous or session().driver.blocks.find(address) is None:
        raise DriverError(Result.INVALID_VALUE, f"attribute {number} of {address:#x} cannot be set")

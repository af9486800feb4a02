"""Memory: of devices, of the host and managed."""

from __future__ import annotations

from ptxvm.driver.memory import AllocationKind
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_i32, put_u64, put_u64_if
from ptxvm.libcuda.session import function, session

PITCH = 512
HOST_FLAGS = 7  # CU_MEMHOSTALLOC_PORTABLE, DEVICEMAP and WRITECOMBINED


# ── allocations ─────────────────────────────────────────────────────────────────────────


def allocate(
    out: int, size: int, kind: AllocationKind = AllocationKind.DEVICE, flags: int = 0, device: int | None = None
) -> None:
    """New memory of a device, by its number: of that of the current context where none is named."""
    session().refuse_unsafe()
    here, blocks = session().context, session().driver.blocks
    put_u64(out, 0)
    number = here.device.ordinal if device is None else device
    put_u64(out, blocks.allocate(size, kind, flags, number, life=here.life).address)


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
    allocate(out, size, AllocationKind.MANAGED, flags)


@function("cuMemAllocHost_v2")
def allocate_host(out: int, size: int) -> None:
    """Memory of the host that the device reaches."""
    allocate(out, size, AllocationKind.HOST)


@function("cuMemHostAlloc")
def allocate_host_flags(out: int, size: int, flags: int) -> None:
    """Memory of the host that the device reaches, with flags."""
    if flags & ~HOST_FLAGS:
        raise DriverError(Result.INVALID_VALUE, f"{flags:#x} has flags that memory of the host does not have")
    allocate(out, size, AllocationKind.HOST, flags)


@function("cuMemHostRegister", "cuMemHostRegister_v2")
def register(address: int, size: int, flags: int) -> None:
    """Let kernels use memory of the host."""
    here = session().context
    session().driver.blocks.register(address, size, flags, here.device.ordinal, here.life)


@function("cuMemHostUnregister")
def unregister(address: int) -> None:
    """End the registration; DriverError for memory that is not registered, or an address behind its first byte."""
    found = session().driver.blocks.find(address)
    if found is None or not found[1].registered:
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
    if found is None or found[1].kind is not AllocationKind.HOST:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of the host that kernels reach")
    put_i32(out, found[1].flags)


@function("cuMemGetInfo_v2")
def info(free_out: int, total: int) -> None:
    """The free and the total bytes of the current device."""
    device = session().context.device
    put_u64_if(free_out, session().driver.free_memory(device))
    put_u64_if(total, device.memory)


@function("cuMemGetAddressRange_v2")
def address_range(start: int, size: int, address: int) -> None:
    """The allocation of an address."""
    found = session().driver.blocks.find(address)
    if found is None:
        raise DriverError(Result.NOT_FOUND, f"{address:#x} is in no allocation")
    put_u64_if(start, found[0])
    put_u64_if(size, found[1].size)

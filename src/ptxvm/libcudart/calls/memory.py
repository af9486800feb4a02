"""Memory: of devices, of the host and managed; attributes of pointers."""

from __future__ import annotations

import ctypes

from ptxvm.driver.memory import AllocationKind
from ptxvm.libcuda.c_values import put_bytes, put_u64, structure_at
from ptxvm.libcuda.calls import managed, memory as driver, pools
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import function
from ptxvm.libcudart.structures import Channels, Extent, Location, PitchedPointer, PointerAttributes

UNREGISTERED, HOST, DEVICE, MANAGED = range(4)  # cudaMemoryType
GLOBALLY = 1  # cudaMemAttachGlobal
TYPES = {AllocationKind.DEVICE: DEVICE, AllocationKind.HOST: HOST, AllocationKind.MANAGED: MANAGED}


@function("cudaMalloc")
def allocate(out: int, size: int) -> None:
    """Memory of the device; null for a size of 0."""
    put_u64(out, 0)
    if size:
        driver.allocate(out, size)


@function("cudaMallocAsync")
def allocate_async(out: int, size: int, stream: int) -> None:
    """Memory of the device, in the order of a stream."""
    put_u64(out, 0)
    if size:
        pools.allocate_async(out, size, stream)


@function("cudaMallocManaged")
def allocate_managed(out: int, size: int, flags: int = GLOBALLY) -> None:
    """Memory that the host and all devices share."""
    driver.allocate_managed(out, size, flags)


@function("cudaMallocPitch")
def allocate_pitch(out: int, pitch: int, width: int, height: int) -> None:
    """Rows of bytes, each at a multiple of 512."""
    driver.allocate_pitch(out, pitch, width, height, 4)


@function("cudaMalloc3D")
def allocate_3d(out: int, extent: Extent) -> None:
    """Slices of rows, each row at a multiple of 512."""
    made = structure_at(PitchedPointer, out, writing=True)
    pointer, pitch = ctypes.c_uint64(), ctypes.c_uint64()
    rows = extent.height * extent.depth
    driver.allocate_pitch(ctypes.addressof(pointer), ctypes.addressof(pitch), extent.width, rows, 4)
    made.pointer, made.pitch, made.width, made.height = pointer.value, pitch.value, extent.width, extent.height


@function("cudaFree", any_state=True)
def free(address: int) -> None:
    """Free memory, when all work is done; null has no effect."""
    pools.free(address)


@function("cudaFreeHost", any_state=True)
def free_host(address: int) -> None:
    """Free page-locked memory of the host, when all work is done; null has no effect."""
    pools.free_host(address)


@function("cudaPointerGetAttributes")
def attributes(out: int, address: int) -> None:
    """The attributes of a pointer; memory without an allocation is the host's own, which kernels reach too."""
    made = PointerAttributes(type=UNREGISTERED, device=-2, on_host=address)
    if (found := session().driver.blocks.find(address)) is not None:
        kind = found[1].kind
        made = PointerAttributes(type=TYPES[kind], device=found[1].device, on_device=address)
        made.on_host = 0 if kind is AllocationKind.DEVICE else address
    put_bytes(out, bytes(made)[:24])  # fields of both versions


def packed(location: Location) -> int:
    """A place as the driver's functions take it: the bytes of the structure."""
    return int.from_bytes(bytes(location), "little")


@function("cudaMemAdvise", "cudaMemAdvise_v2")
def advise(address: int, size: int, advice: int, location: Location) -> None:
    """Advice on a range of managed memory."""
    managed.advise_v2(address, size, advice, packed(location))


@function("cudaMemPrefetchAsync", "cudaMemPrefetchAsync_v2")
def prefetch(address: int, size: int, location: Location, flags: int, stream: int) -> None:
    """Move a range of managed memory to a place, which is kept as its last one."""
    managed.prefetch_v2(address, size, packed(location), flags, stream)


@function("cudaCreateChannelDesc", stateless=True)
def channels(out: int, x: int, y: int, z: int, w: int, kind: int) -> int:
    """The description of elements: bits of each channel, and the kind of number; returns its address."""
    put_bytes(out, bytes(Channels(x, y, z, w, kind)))
    return out


@function("cudaMemPoolExportToShareableHandle")
def export_pool(out: int, handle: int, kind: int, flags: int) -> None:
    """The number of a file that stands for a pool."""
    pools.export_pool(out, handle, kind, flags)


@function("cudaMemPoolImportFromShareableHandle")
def import_pool(out: int, file: int, kind: int, flags: int) -> None:
    """A pool of another process, by the number of its file."""
    pools.import_pool(out, file, kind, flags)

"""Memory of another interface, by a file descriptor (driver API, "External Resource Interoperability").

Any file that can be mapped is memory: one that `cuMemExportToShareableHandle` gives, or that a program makes.
"""

from __future__ import annotations

import os

from ptxvm.dataclass import dataclass
from ptxvm.driver.memory import NUMBERS, AllocationKind, MemoryBlock
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import File
from ptxvm.libcuda.c_values import put_u64, structure_at
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import ExternalBuffer, ExternalMemoryHandle

OPAQUE_FILE = 1  # CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
KINDS = range(1, 10)  # CUexternalMemoryHandleType


@dataclass(eq=False)
class ExternalMemory:
    """Memory of another interface: the first bytes of a file."""

    file: File
    size: int


@function("cuImportExternalMemory")
def take(out: int, description: int) -> None:
    """Memory of another interface; the file descriptor is the driver's from then on."""
    d = structure_at(ExternalMemoryHandle, description)
    if d.type not in KINDS:
        raise DriverError(Result.INVALID_VALUE, f"there is no type {d.type} of external memory")
    if d.type != OPAQUE_FILE:
        raise DriverError(Result.NOT_SUPPORTED, "memory of other interfaces comes as a file descriptor alone")
    try:
        room = os.fstat(d.file).st_size
    except OSError as wrong:
        raise DriverError(Result.INVALID_HANDLE, f"{d.file} is no file descriptor: {wrong}") from wrong
    if not 0 < d.size <= room:
        raise DriverError(Result.INVALID_VALUE, f"the file has {room} bytes, not {d.size}")
    put_u64(out, session().own(ExternalMemory(File(room, d.file), d.size)))


@function("cuExternalMemoryGetMappedBuffer")
def mapped_buffer(out: int, handle: int, description: int) -> None:
    """The address of some bytes of the memory; they are freed as an allocation is."""
    memory, d = session().handles.object(handle, ExternalMemory), structure_at(ExternalBuffer, description)
    if d.flags or not d.size or d.offset + d.size > memory.size:
        raise DriverError(Result.INVALID_VALUE, f"{d.size} bytes at {d.offset} are not in {memory.size}, or there are flags")
    data, blocks = memory.file.mapped()[d.offset : d.offset + d.size], session().driver.blocks
    adopted = blocks.adopt(data, "external memory", "was destroyed")
    device = session().context.device.ordinal
    put_u64(out, blocks.enter(MemoryBlock(adopted, AllocationKind.DEVICE, next(NUMBERS), d.size, device=device)).address)


@function("cuDestroyExternalMemory", any_state=True)
def destroy(handle: int) -> None:
    """Forget the memory; what is mapped stays until it is freed."""
    session().handles.object(handle, ExternalMemory)
    session().handles.drop(handle)

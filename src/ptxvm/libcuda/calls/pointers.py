"""Attributes of pointers."""

from __future__ import annotations

from ptxvm.driver.memory import AllocationKind, MemoryBlock
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import i32, put_i32, put_u64, u32, u64
from ptxvm.libcuda.calls.pools import OWNERS, READ_WRITE
from ptxvm.libcuda.session import function, session

HOST_TYPE, DEVICE_TYPE = 1, 2  # CUmemorytype
DEVICE_POINTER, HOST_POINTER = 3, 4  # CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER
WIDE = frozenset({1, DEVICE_POINTER, HOST_POINTER, 7, 11, 12, 17, 18, 19, 20})
"""The attributes of 64 bits."""
SYNCHRONOUS = 6  # CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
SYNCHRONOUS_BLOCKS: set[int] = set()
"""The numbers of blocks whose copies a client has made synchronous."""


def words_of(block: MemoryBlock, handle_types: int) -> dict[int, int]:
    """The attributes of 32 bits, by their numbers (CUpointer_attribute)."""
    return {
        2: HOST_TYPE if block.kind is AllocationKind.HOST else DEVICE_TYPE,
        SYNCHRONOUS: int(block.number in SYNCHRONOUS_BLOCKS),
        8: int(block.kind is AllocationKind.MANAGED), 9: block.device, 10: int(block.kind is AllocationKind.DEVICE),
        13: 1, 14: handle_types, 15: 0,
        16: READ_WRITE, 21: 0,
    }  # fmt: skip


def sizes_of(start: int, block: MemoryBlock, pool: int) -> dict[int, int]:
    """The attributes of 64 bits, by their numbers."""
    here = session().context
    context = here if here.device.ordinal == block.device else session().driver.primary_context(block.device)
    return {
        1: session().handles.handle(context), 7: block.number, 11: start, 12: block.size, 17: pool, 18: block.size, 19: start,
        20: block.number,
    }  # fmt: skip


@function("cuPointerGetAttribute")
def attribute(out: int, number: int, address: int) -> None:
    """An attribute of a pointer.

    Memory of the host that no call allocated is a pointer of the device too, as where devices have the host's page tables.
    Memory of a device alone has no pointer of the host, as on all cards that there are models of.
    """
    found = session().driver.blocks.find(address)
    of_device = found is not None and found[1].kind is AllocationKind.DEVICE
    if number == DEVICE_POINTER or (number == HOST_POINTER and not of_device):
        session().context  # noqa: B018 - raises where there is none
        put_u64(out, address)
        return
    if found is None:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory of this driver")
    pool = OWNERS[found[0]][0] if found[0] in OWNERS else None
    words, sizes = (
        words_of(found[1], pool.handle_types if pool is not None else 0),
        sizes_of(*found, session().handles.handle(pool) if pool is not None else 0),
    )
    if number in words:
        put_i32(out, words[number])
    elif number in sizes:
        put_u64(out, sizes[number])
    else:
        raise DriverError(Result.INVALID_VALUE, f"there is no attribute {number} of pointers")


@function("cuPointerGetAttributes")
def attributes(count: int, numbers: int, outs: int, address: int) -> None:
    """Several attributes; those that do not apply are null or 0."""
    for n in range(count):
        try:
            attribute(u64(outs + 8 * n), i32(numbers + 4 * n), address)
        except DriverError:
            put_null = put_u64 if i32(numbers + 4 * n) in WIDE else put_i32
            put_null(u64(outs + 8 * n), 0)


@function("cuPointerSetAttribute")
def set_attribute(value: int, number: int, address: int) -> None:
    """Make copies of this memory synchronous, or not; those that wait for nothing are in any case."""
    found = session().driver.blocks.find(address)
    if number != SYNCHRONOUS or found is None:
        raise DriverError(Result.INVALID_VALUE, f"attribute {number} of {address:#x} cannot be set")
    change = SYNCHRONOUS_BLOCKS.add if u32(value) else SYNCHRONOUS_BLOCKS.discard
    change(found[1].number)

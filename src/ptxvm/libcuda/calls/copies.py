"""Copies and fills of memory, of one to three dimensions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import cast

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.driver.context import Context
from ptxvm.driver.cuda_arrays import CudaArray, Mipmapped
from ptxvm.driver.host_pages import is_accessible
from ptxvm.driver.launch import FunctionTask
from ptxvm.driver.launch_checks import wanted
from ptxvm.driver.memory import Rectangle, copy, copy_rectangle, fill, fill_rectangle
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import structure_at
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import Copy2D, Copy3D, MemsetNode
from ptxvm.machine.device import allocation_at
from ptxvm.named_tuple import NamedTuple

MEMCPY, MEMSET = 1, 2  # CUgraphNodeType
HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4  # CUmemorytype


@dataclass(frozen=True, slots=True)
class CopyOrFill:
    """A copy or a fill, and the structure of a node that does the same, for a client that asks what a capture has made."""

    work: Callable[[], None]
    described: Callable[[], ctypes.Structure]

    def __call__(self) -> None:
        """Do it."""
        self.work()


@dataclass(frozen=True, slots=True)
class AddressedCopy(CopyOrFill):
    """A copy, and the addresses of its two sides."""

    target: int
    source: int

    @property
    def is_pageable(self) -> bool:
        """Is one side memory of the host that no call has allocated or registered?"""
        find = session().driver.blocks.find
        return find(self.target) is None or find(self.source) is None


def put(handle: int, work: CopyOrFill, type: int = MEMCPY) -> None:
    """Put a copy or a fill on a stream; copies on the default stream have ended when this returns.

    So have copies of pageable memory on any stream: the client may change that memory at once (CUDA driver API, "API
    synchronization behavior").  Pending work may free what a copy uses: then it looks once more when its turn comes.
    """
    stream = session().stream(handle)
    may_go = stream.capture is not None or stream.context.busy() or session().driver.blocks.aside
    waits = stream.capture is None and type == MEMCPY
    if waits and not stream.is_default:
        waits = isinstance(work, AddressedCopy) and work.is_pageable
    followed = stream.is_default and wanted() is not None  # a check follows its order with other streams
    if waits and not may_go and not followed and stream.run_for_host(work):
        return
    stream.put(task(work) if may_go else FunctionTask(work), type)
    if waits:
        stream.sync()


class Extent(NamedTuple):
    """Some bytes of a copy or a fill, in memory that is or was allocated, or in the host's own."""

    address: int
    size: int
    writing: bool
    allocated: bool  # ... when the copy was made

    def is_there(self) -> bool:
        """Is it still?"""
        if self.allocated:
            return session().driver.blocks.holds(self.address, self.size)
        return is_accessible(self.address, self.size, writing=self.writing)


@dataclass(frozen=True, slots=True)
class NodeWork:
    """A copy or a fill that runs when its memory may have been freed: as a node, or behind pending work."""

    work: CopyOrFill
    extents: tuple[Extent, ...]

    def __call__(self) -> None:
        """Do it; a Fault where memory is gone, as kernels have one there."""
        for each in self.extents:
            if not each.is_there():
                said = f"a copy or fill has {each.size} bytes at {each.address:#x}, and their memory was freed"
                raise Fault("use-after-free", said, address=each.address, size=each.size)
        self.work()


def task(work: CopyOrFill, description: bytes = b"") -> FunctionTask:
    """A copy or a fill as a node of a graph, which a client may have described."""
    described = work.described()
    return FunctionTask(NodeWork(work, tuple(extents_of(described))), description or bytes(described))


def is_allocated(address: int) -> bool:
    """Is an address in an allocation, or in one that a graph has?"""
    return allocation_at(address) is not None or session().driver.blocks.find(address) is not None


def extents_of(described: ctypes.Structure) -> list[Extent]:
    """The bytes of each side of a copy, its target first, or of a fill, of at least one byte."""
    if isinstance(described, MemsetNode):
        rows = [Rectangle(described.target, described.pitch, described.height)]
        width, height, depth = described.width * described.element, described.height, 1
    else:
        c = cast("Copy3D", described)
        rows = [corner(c, side, c.width) for side in ("target", "source")]
        width, height, depth = c.width, c.height, c.depth
    return [
        Extent(each.start, extent(each, width, height, depth), writing=each is rows[0], allocated=is_allocated(each.start))
        for each in (rows if width and height and depth else ())
    ]


def extent(rows: Rectangle, width: int, height: int, depth: int) -> int:
    """The bytes from the first to the last of some rows."""
    return rows.row(height - 1, depth - 1) + width - rows.start


def copied(target: int, source: int, size: int, device: tuple[int, ...]) -> AddressedCopy:
    """The copy of some bytes; DriverError where one of the `device` addresses, or a side in an allocation, is out of bounds."""
    described = partial(as_row, target, source, size)
    if not size:
        return AddressedCopy(partial(copy, 0, 0, 0), described, target, source)
    blocks = session().driver.blocks
    for address in device:
        blocks.check(address, size, writing=address == target)
    if not (target and source):
        raise DriverError(Result.INVALID_VALUE, "an address is null")
    for address in {target, source}.difference(device):
        blocks.check_any(address, size, of_host=bool(device), writing=address == target)
    return AddressedCopy(partial(copy, target, source, size), described, target, source)


def as_row(target: int, source: int, size: int) -> Copy3D:
    """The structure of a copy of some bytes."""
    return as_rows(Rectangle(target, size, 1), Rectangle(source, size, 1), size)


def as_rows(target: Rectangle, source: Rectangle, width: int, height: int = 1) -> Copy3D:
    """The structure of a copy of rows of bytes."""
    return Copy3D(
        source_type=UNIFIED, source_device=source.start, source_pitch=source.pitch, source_height=source.height,
        target_type=UNIFIED, target_device=target.start, target_pitch=target.pitch, target_height=target.height,
        width=width, height=height, depth=1,
    )  # fmt: skip


def as_slices(c: Copy2D | Copy3D) -> Copy3D:
    """The structure of a copy of three dimensions."""
    if isinstance(c, Copy3D):
        return c
    fields = {name: getattr(c, name) for name, _ in Copy2D._fields_}
    return Copy3D(**fields, source_height=c.height, target_height=c.height, depth=1)


@function("cuMemcpyHtoD_v2")
def to_device(target: int, source: int, size: int) -> None:
    """From the host to the device."""
    put(0, copied(target, source, size, (target,)))


@function("cuMemcpyDtoH_v2")
def to_host(target: int, source: int, size: int) -> None:
    """From the device to the host."""
    put(0, copied(target, source, size, (source,)))


@function("cuMemcpyDtoD_v2")
def on_device(target: int, source: int, size: int) -> None:
    """From the device to the device."""
    put(0, copied(target, source, size, (target, source)))


@function("cuMemcpy")
def anywhere(target: int, source: int, size: int) -> None:
    """From anywhere to anywhere: the addresses tell."""
    put(0, copied(target, source, size, ()))


@function("cuMemcpyHtoDAsync_v2")
def to_device_async(target: int, source: int, size: int, stream: int) -> None:
    """From the host to the device, in the order of a stream."""
    put(stream, copied(target, source, size, (target,)))


@function("cuMemcpyDtoHAsync_v2")
def to_host_async(target: int, source: int, size: int, stream: int) -> None:
    """From the device to the host, in the order of a stream."""
    put(stream, copied(target, source, size, (source,)))


@function("cuMemcpyDtoDAsync_v2")
def on_device_async(target: int, source: int, size: int, stream: int) -> None:
    """From the device to the device, in the order of a stream."""
    put(stream, copied(target, source, size, (target, source)))


@function("cuMemcpyAsync")
def anywhere_async(target: int, source: int, size: int, stream: int) -> None:
    """From anywhere to anywhere, in the order of a stream."""
    put(stream, copied(target, source, size, ()))


@function("cuMemcpyPeer")
def to_peer(target: int, to: int, source: int, at: int, size: int) -> None:
    """From one device to another."""
    to_peer_async(target, to, source, at, size, 0)


@function("cuMemcpyPeerAsync")
def to_peer_async(target: int, to: int, source: int, at: int, size: int, stream: int) -> None:
    """From one device to another, in the order of a stream."""
    check_contexts(to, at)
    put(stream, copied(target, source, size, (target, source)))


def check_contexts(*handles: int) -> None:
    """DriverError where a copy names a context that is none; the contexts share all memory."""
    for each in handles:
        session().handles.object(each, Context)


# ── rectangles ──────────────────────────────────────────────────────────────────────────


def corner(c: Copy2D | Copy3D, side: str, width: int) -> Rectangle:
    """The rows of one side of a copy, from its first byte."""
    get = partial(_field, c, side)
    type = get("type")
    if type == ARRAY:
        held = array_of(c, side).rows
        return Rectangle(held.row(get("y"), get("z") if isinstance(c, Copy3D) else 0) + get("x"), held.pitch, held.height)
    if type not in (HOST, DEVICE, UNIFIED):
        raise DriverError(Result.INVALID_VALUE, f"there is no type {type} of memory")
    start = get("host") if type == HOST else get("device")
    pitch = get("pitch") or width
    rows = get("height") if isinstance(c, Copy3D) else 0
    z = get("z") if isinstance(c, Copy3D) else 0
    return Rectangle(start + (z * rows + get("y")) * pitch + get("x"), pitch, rows)


def array_of(c: Copy2D | Copy3D, side: str) -> CudaArray:
    """The array of one side of a copy, or a level of a mipmapped one; DriverError where there is none."""
    found = session().handles.objects.get(_field(c, side, "array"))
    if isinstance(found, Mipmapped):
        found = found.level(_field(c, side, "level") if isinstance(c, Copy3D) else 0)
    if not isinstance(found, CudaArray):
        raise DriverError(Result.INVALID_HANDLE, f"{_field(c, side, 'array'):#x} is no handle of an array")
    return found


def check_in_array(c: Copy2D | Copy3D, side: str, depth: int) -> None:
    """DriverError for a copy that leaves its array."""
    get, array = partial(_field, c, side), array_of(c, side)
    z = get("z") if isinstance(c, Copy3D) else 0
    ends = (get("x") + c.width, get("y") + c.height, z + depth)
    sizes = (array.rows.pitch, max(array.height, 1), max(array.depth, 1))
    if any(end > size for end, size in zip(ends, sizes, strict=True)):
        raise DriverError(Result.INVALID_VALUE, f"a copy to {ends} leaves an array of {sizes} bytes, rows and slices")


def _field(c: Copy2D | Copy3D, side: str, name: str) -> int:
    value: int = getattr(c, f"{side}_{name}")
    return value


def rectangular(c: Copy2D | Copy3D) -> AddressedCopy:
    """The copy that a structure describes."""
    depth = c.depth if isinstance(c, Copy3D) else 1
    target, source = corner(c, "target", c.width), corner(c, "source", c.width)
    if min(target.pitch, source.pitch) < c.width:
        raise DriverError(Result.INVALID_VALUE, "a row is longer than the pitch")
    for side, rows in (("target", target), ("source", source)):
        if _field(c, side, "type") == ARRAY:
            check_in_array(c, side, depth)
        else:
            check_rows(_field(c, side, "type"), rows, c.width, c.height, depth, writing=side == "target")
    work = partial(copy_rectangle, target, source, c.width, c.height, depth)
    return AddressedCopy(work, partial(as_slices, c), target.start, source.start)


def check_rows(type: int, rows: Rectangle, width: int, height: int, depth: int = 1, *, writing: bool = False) -> None:
    """DriverError where the rows are out of bounds of a type of memory, or must not be written."""
    if not (width and height and depth):
        return
    blocks, size = session().driver.blocks, extent(rows, width, height, depth)
    if type == DEVICE:
        blocks.check(rows.start, size, writing=writing)
    else:
        blocks.check_any(rows.start, size, of_host=type == HOST, writing=writing)


@function("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2")
def copy_2d(description: int) -> None:
    """Copy rows of bytes."""
    put(0, rectangular(structure_at(Copy2D, description)))


@function("cuMemcpy2DAsync_v2")
def copy_2d_async(description: int, stream: int) -> None:
    """Copy rows of bytes, in the order of a stream."""
    put(stream, rectangular(structure_at(Copy2D, description)))


@function("cuMemcpy3D_v2")
def copy_3d(description: int) -> None:
    """Copy slices of rows."""
    put(0, rectangular(structure_at(Copy3D, description)))


@function("cuMemcpy3DAsync_v2")
def copy_3d_async(description: int, stream: int) -> None:
    """Copy slices of rows, in the order of a stream."""
    put(stream, rectangular(structure_at(Copy3D, description)))


@function("cuMemcpy3DPeer")
def copy_3d_peer(description: int) -> None:
    """Copy slices of rows, from one device to another."""
    copy_3d_peer_async(description, 0)


@function("cuMemcpy3DPeerAsync")
def copy_3d_peer_async(description: int, stream: int) -> None:
    """Copy slices of rows, from one device to another, in the order of a stream."""
    d = structure_at(Copy3D, description)
    check_contexts(d.source_context, d.target_context)
    put(stream, rectangular(d))


# ── one row of an array ─────────────────────────────────────────────────────────────────


def within(handle: int, offset: int, size: int) -> int:
    """The address of some bytes of an array; DriverError where they are out of bounds."""
    array = session().handles.object(handle, CudaArray)
    if offset + size > array.data.nbytes:
        raise DriverError(Result.INVALID_VALUE, f"the array has {array.data.nbytes} bytes")
    return array.rows.start + offset


@function("cuMemcpyHtoA_v2")
def host_to_array(target: int, offset: int, source: int, size: int) -> None:
    """From the host to an array."""
    put(0, copied(within(target, offset, size), source, size, ()))


@function("cuMemcpyHtoAAsync_v2")
def host_to_array_async(target: int, offset: int, source: int, size: int, stream: int) -> None:
    """From the host to an array, in the order of a stream."""
    put(stream, copied(within(target, offset, size), source, size, ()))


@function("cuMemcpyDtoA_v2")
def device_to_array(target: int, offset: int, source: int, size: int) -> None:
    """From the device to an array."""
    put(0, copied(within(target, offset, size), source, size, (source,)))


@function("cuMemcpyAtoH_v2")
def array_to_host(target: int, source: int, offset: int, size: int) -> None:
    """From an array to the host."""
    put(0, copied(target, within(source, offset, size), size, ()))


@function("cuMemcpyAtoHAsync_v2")
def array_to_host_async(target: int, source: int, offset: int, size: int, stream: int) -> None:
    """From an array to the host, in the order of a stream."""
    put(stream, copied(target, within(source, offset, size), size, ()))


@function("cuMemcpyAtoD_v2")
def array_to_device(target: int, source: int, offset: int, size: int) -> None:
    """From an array to the device."""
    put(0, copied(target, within(source, offset, size), size, (target,)))


@function("cuMemcpyAtoA_v2")
def array_to_array(target: int, to: int, source: int, offset: int, size: int) -> None:
    """From an array to an array."""
    put(0, copied(within(target, to, size), within(source, offset, size), size, ()))


# ── fills ───────────────────────────────────────────────────────────────────────────────


def filled(target: int, value: int, width: int, count: int) -> CopyOrFill:
    """The fill of some elements; DriverError where they are out of bounds or misaligned."""
    if count:
        session().driver.blocks.check(target, width * count, writing=True)
    if target % width:
        raise DriverError(Result.INVALID_VALUE, f"{target:#x} is no multiple of {width}")
    return CopyOrFill(partial(fill, target, value, width, count), partial(MemsetNode, target, 0, value, width, count, 1))


def filled_rows(rows: Rectangle, value: int, width: int, columns: int, height: int) -> CopyOrFill:
    """The fill of rows of elements; DriverError where they are out of bounds, or longer than the pitch."""
    if height > 1 and rows.pitch < columns * width:
        raise DriverError(Result.INVALID_VALUE, f"rows of {columns * width} bytes have a pitch of {rows.pitch}")
    check_rows(DEVICE, rows, columns * width, height, writing=True)
    described = partial(MemsetNode, rows.start, rows.pitch, value, width, columns, height)
    return CopyOrFill(partial(fill_rectangle, rows, value, width, columns, height), described)


def enter_fill(width: int) -> None:
    """Enter the fills with elements of a width."""

    def now(target: int, value: int, count: int) -> None:
        put(0, filled(target, value, width, count), MEMSET)

    def later(target: int, value: int, count: int, stream: int) -> None:
        put(stream, filled(target, value, width, count), MEMSET)

    def rows(target: int, pitch: int, value: int, columns: int, height: int, stream: int = 0) -> None:
        put(stream, filled_rows(Rectangle(target, pitch, height), value, width, columns, height), MEMSET)

    bits = 8 * width
    function(f"cuMemsetD{bits}_v2")(now)
    function(f"cuMemsetD{bits}Async")(later)
    function(f"cuMemsetD2D{bits}_v2", f"cuMemsetD2D{bits}Async")(rows)


for each in (1, 2, 4):
    enter_fill(each)

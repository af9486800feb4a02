"""Copies of slices of rows, and of arrays: positions and extents count elements where an array takes part."""

from __future__ import annotations

from ptxvm.driver.cuda_arrays import CudaArray
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda import structures as driver
from ptxvm.libcuda.c_values import structure_at
from ptxvm.libcuda.calls.copies import ARRAY, MEMCPY, UNIFIED, copied, put, rectangular
from ptxvm.libcuda.session import session
from ptxvm.libcudart.calls.copies import DEFAULT, check_devices, check_kind, check_pitch
from ptxvm.libcudart.runtime_state import function
from ptxvm.libcudart.structures import Copy3D, CopyPeer3D, Extent, PitchedPointer


def volume(d: Copy3D | CopyPeer3D) -> driver.Copy3D:
    """The driver's structure for a copy, which counts bytes."""
    handles, made = session().handles, driver.Copy3D()
    arrays = [handles.object(each, CudaArray) for each in (d.source_array, d.target_array) if each]
    sizes = {array.elements.size for array in arrays}
    if len(sizes) > 1:
        raise DriverError(Result.INVALID_VALUE, "the elements of two arrays have not the same size")
    element = sizes.pop() if sizes else 1
    made.width, made.height, made.depth = d.extent.width * element, d.extent.height, d.extent.depth
    for side, array, position, memory in (
        ("source", d.source_array, d.source_position, d.source), ("target", d.target_array, d.target_position, d.target)
    ):  # fmt: skip
        values = {"x": position.width * (element if array else 1), "y": position.height, "z": position.depth}
        values |= {"type": ARRAY if array else UNIFIED, "array": array, "device": memory.pointer}
        values |= {"pitch": memory.pitch, "height": memory.height}
        for name, value in values.items():
            setattr(made, f"{side}_{name}", value)
    return made


def parameters_of(made: driver.Copy3D) -> Copy3D:
    """The runtime's structure for a copy that the driver's describes: from bytes back to elements."""
    handles, d = session().handles, Copy3D(kind=DEFAULT)
    element = 1
    for side in ("source", "target"):
        type, array, *at = (getattr(made, f"{side}_{name}") for name in ("type", "array", "x", "y", "z"))
        memory = (getattr(made, f"{side}_{name}") for name in ("device", "pitch", "height"))
        if type == ARRAY:
            element = handles.object(array, CudaArray).elements.size
            at[0] //= element
            setattr(d, f"{side}_array", array)
        else:
            pointer, pitch, height = memory
            setattr(d, side, PitchedPointer(pointer, pitch, pitch, height))
        setattr(d, f"{side}_position", Extent(*at))
    d.extent = Extent(made.width // element, made.height, made.depth)
    return d


@function("cudaMemcpy3D")
def copy_3d(description: int) -> None:
    """Copy slices of rows."""
    copy_3d_async(description, 0)


@function("cudaMemcpy3DAsync")
def copy_3d_async(description: int, stream: int) -> None:
    """Copy slices of rows, in the order of a stream."""
    d = structure_at(Copy3D, description)
    check_kind(d.kind)
    put(stream, rectangular(volume(d)), MEMCPY)


@function("cudaMemcpy3DPeer")
def copy_3d_peer(description: int) -> None:
    """Copy slices of rows, from one device to another."""
    copy_3d_peer_async(description, 0)


@function("cudaMemcpy3DPeerAsync")
def copy_3d_peer_async(description: int, stream: int) -> None:
    """Copy slices of rows, from one device to another, in the order of a stream."""
    d = structure_at(CopyPeer3D, description)
    check_devices(d.source_device, d.target_device)
    put(stream, rectangular(volume(d)), MEMCPY)


# ── rows of arrays, whose positions count bytes ─────────────────────────────────────────


@function("cudaMemcpy2DToArray")
def to_array(target: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int) -> None:
    """Copy rows into an array."""
    to_array_async(target, x, y, source, pitch, width, height, kind, 0)


@function("cudaMemcpy2DToArrayAsync")
def to_array_async(
    target: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int, stream: int
) -> None:
    """Copy rows into an array, in the order of a stream."""
    check_kind(kind)
    check_pitch(width, height, pitch)
    made = driver.Copy2D(source_type=UNIFIED, source_device=source, source_pitch=pitch, width=width, height=height)
    made.target_type, made.target_array, made.target_x, made.target_y = ARRAY, target, x, y
    put(stream, rectangular(made), MEMCPY)


@function("cudaMemcpy2DFromArray")
def from_array(target: int, pitch: int, source: int, x: int, y: int, width: int, height: int, kind: int) -> None:
    """Copy rows out of an array."""
    from_array_async(target, pitch, source, x, y, width, height, kind, 0)


@function("cudaMemcpy2DFromArrayAsync")
def from_array_async(
    target: int, pitch: int, source: int, x: int, y: int, width: int, height: int, kind: int, stream: int
) -> None:
    """Copy rows out of an array, in the order of a stream."""
    check_kind(kind)
    check_pitch(width, height, pitch)
    made = driver.Copy2D(target_type=UNIFIED, target_device=target, target_pitch=pitch, width=width, height=height)
    made.source_type, made.source_array, made.source_x, made.source_y = ARRAY, source, x, y
    put(stream, rectangular(made), MEMCPY)


@function("cudaMemcpy2DArrayToArray")
def array_to_array(target: int, to_x: int, to_y: int, source: int, x: int, y: int, width: int, height: int, kind: int) -> None:
    """Copy rows from one array to another."""
    check_kind(kind)
    made = driver.Copy2D(source_type=ARRAY, source_array=source, source_x=x, source_y=y, width=width, height=height)
    made.target_type, made.target_array, made.target_x, made.target_y = ARRAY, target, to_x, to_y
    put(0, rectangular(made), MEMCPY)


@function("cudaMemcpyArrayToArray")
def bytes_between_arrays(target: int, to_x: int, to_y: int, source: int, x: int, y: int, count: int, kind: int) -> None:
    """Copy bytes from one array to another."""
    check_kind(kind)
    put(0, copied(rows_of(target, to_x, to_y, count), rows_of(source, x, y, count), count, ()))


def rows_of(handle: int, x: int, y: int, count: int) -> int:
    """The address of `count` bytes of an array that may go on in its next rows."""
    array = session().handles.object(handle, CudaArray)
    at = y * array.rows.pitch + x
    if at + count > array.data.nbytes:
        raise DriverError(Result.INVALID_VALUE, f"the array has {array.data.nbytes} bytes")
    return array.rows.start + at


@function("cudaMemcpyToArray")
def bytes_to_array(target: int, x: int, y: int, source: int, count: int, kind: int) -> None:
    """Copy bytes into an array."""
    bytes_to_array_async(target, x, y, source, count, kind, 0)


@function("cudaMemcpyToArrayAsync")
def bytes_to_array_async(target: int, x: int, y: int, source: int, count: int, kind: int, stream: int) -> None:
    """Copy bytes into an array, in the order of a stream."""
    check_kind(kind)
    to = rows_of(target, x, y, count)
    put(stream, copied(to, source, count, ()))


@function("cudaMemcpyFromArray")
def bytes_from_array(target: int, source: int, x: int, y: int, count: int, kind: int) -> None:
    """Copy bytes out of an array."""
    bytes_from_array_async(target, source, x, y, count, kind, 0)


@function("cudaMemcpyFromArrayAsync")
def bytes_from_array_async(target: int, source: int, x: int, y: int, count: int, kind: int, stream: int) -> None:
    """Copy bytes out of an array, in the order of a stream."""
    check_kind(kind)
    start = rows_of(source, x, y, count)
    put(stream, copied(target, start, count, ()))

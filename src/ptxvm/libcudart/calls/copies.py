"""Copies and fills of memory, of one to three dimensions, and of variables."""

from __future__ import annotations

from functools import partial

from ptxvm.driver.memory import Rectangle, copy_rectangle
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.calls import copies as driver
from ptxvm.libcuda.session import session
from ptxvm.libcudart.calls.module import symbol
from ptxvm.libcudart.runtime_state import RuntimeApiError, RuntimeResult, function
from ptxvm.libcudart.structures import Extent, PitchedPointer

HOST_TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE, DEFAULT = range(5)  # cudaMemcpyKind
TYPES = (
    (driver.HOST, driver.HOST),
    (driver.DEVICE, driver.HOST),
    (driver.HOST, driver.DEVICE),
    (driver.DEVICE, driver.DEVICE),
    (driver.UNIFIED, driver.UNIFIED),
)
"""The types of memory of the two sides of a copy, target and source, by its direction."""


def check_kind(kind: int) -> None:
    """RuntimeApiError for an unknown direction of copies."""
    if kind not in range(5):
        raise RuntimeApiError(RuntimeResult.INVALID_MEMCPY_DIRECTION, f"there is no direction {kind} of copies")


def check_pitch(width: int, height: int, *pitches: int) -> None:
    """RuntimeApiError for rows that are longer than the distance from one to the next."""
    if height > 1 and width > min(pitches):
        said = f"a row has {width} bytes, and the next one begins after {min(pitches)}"
        raise RuntimeApiError(RuntimeResult.INVALID_PITCH_VALUE, said)


def copied(target: int, source: int, size: int, kind: int) -> driver.AddressedCopy:
    """The copy of some bytes; DriverError where the memory does not fit the direction."""
    check_kind(kind)
    on_device = [target] * (kind in (TO_DEVICE, ON_DEVICE)) + [source] * (kind in (TO_HOST, ON_DEVICE))
    return driver.copied(target, source, size, tuple(on_device))


@function("cudaMemcpy")
def copy_bytes(target: int, source: int, size: int, kind: int) -> None:
    """From anywhere to anywhere, in a direction."""
    driver.put(0, copied(target, source, size, kind))


@function("cudaMemcpyAsync")
def copy_async(target: int, source: int, size: int, kind: int, stream: int) -> None:
    """From anywhere to anywhere, in the order of a stream."""
    driver.put(stream, copied(target, source, size, kind))


@function("cudaMemcpyPeer")
def copy_peer(target: int, to: int, source: int, at: int, size: int) -> None:
    """From one device to another."""
    copy_peer_async(target, to, source, at, size, 0)


@function("cudaMemcpyPeerAsync")
def copy_peer_async(target: int, to: int, source: int, at: int, size: int, stream: int) -> None:
    """From one device to another, in the order of a stream."""
    check_devices(to, at)
    driver.put(stream, driver.copied(target, source, size, (target, source)))


def check_devices(*ordinals: int) -> None:
    """DriverError where a copy names a device that there is not; the devices share all memory."""
    for each in ordinals:
        session().driver.device(each)


# ── variables ───────────────────────────────────────────────────────────────────────────


def within(variable: int, size: int, offset: int) -> int:
    """The address of some bytes of a variable; DriverError where they are out of bounds."""
    start, length = symbol(variable)
    if offset + size > length:
        raise DriverError(Result.INVALID_VALUE, f"the variable has {length} bytes, not {offset + size}")
    return start + offset


@function("cudaMemcpyToSymbol")
def to_symbol(variable: int, source: int, size: int, offset: int, kind: int) -> None:
    """Copy into a variable."""
    to_symbol_async(variable, source, size, offset, kind, 0)


@function("cudaMemcpyToSymbolAsync")
def to_symbol_async(variable: int, source: int, size: int, offset: int, kind: int, stream: int) -> None:
    """Copy into a variable, in the order of a stream."""
    if kind not in (TO_DEVICE, ON_DEVICE, DEFAULT):
        raise RuntimeApiError(RuntimeResult.INVALID_MEMCPY_DIRECTION, "a variable is of the device")
    driver.put(stream, driver.copied(within(variable, size, offset), source, size, ()))


@function("cudaMemcpyFromSymbol")
def from_symbol(target: int, variable: int, size: int, offset: int, kind: int) -> None:
    """Copy out of a variable."""
    from_symbol_async(target, variable, size, offset, kind, 0)


@function("cudaMemcpyFromSymbolAsync")
def from_symbol_async(target: int, variable: int, size: int, offset: int, kind: int, stream: int) -> None:
    """Copy out of a variable, in the order of a stream."""
    if kind not in (TO_HOST, ON_DEVICE, DEFAULT):
        raise RuntimeApiError(RuntimeResult.INVALID_MEMCPY_DIRECTION, "a variable is of the device")
    driver.put(stream, driver.copied(target, within(variable, size, offset), size, ()))


# ── rows ────────────────────────────────────────────────────────────────────────────────


@function("cudaMemcpy2D")
def copy_2d(target: int, to_pitch: int, source: int, pitch: int, width: int, height: int, kind: int) -> None:
    """Copy rows of bytes."""
    copy_2d_async(target, to_pitch, source, pitch, width, height, kind, 0)


@function("cudaMemcpy2DAsync")
def copy_2d_async(target: int, to_pitch: int, source: int, pitch: int, width: int, height: int, kind: int, stream: int) -> None:
    """Copy rows of bytes, in the order of a stream."""
    check_kind(kind)
    check_pitch(width, height, pitch, to_pitch)
    to, of = Rectangle(target, to_pitch, height), Rectangle(source, pitch, height)
    to_type, of_type = TYPES[kind]
    driver.check_rows(to_type, to, width, height, writing=True)
    driver.check_rows(of_type, of, width, height)
    work, described = partial(copy_rectangle, to, of, width, height), partial(driver.as_rows, to, of, width, height)
    driver.put(stream, driver.AddressedCopy(work, described, target, source))


@function("cudaMemset")
def fill(target: int, value: int, size: int) -> None:
    """Set bytes."""
    fill_async(target, value, size, 0)


@function("cudaMemsetAsync")
def fill_async(target: int, value: int, size: int, stream: int) -> None:
    """Set bytes, in the order of a stream."""
    driver.put(stream, driver.filled(target, value, 1, size), driver.MEMSET)


@function("cudaMemset2D")
def fill_2d(target: int, pitch: int, value: int, width: int, height: int) -> None:
    """Set the bytes of rows."""
    fill_2d_async(target, pitch, value, width, height, 0)


@function("cudaMemset2DAsync")
def fill_2d_async(target: int, pitch: int, value: int, width: int, height: int, stream: int) -> None:
    """Set the bytes of rows, in the order of a stream."""
    driver.put(stream, driver.filled_rows(Rectangle(target, pitch, height), value, 1, width, height), driver.MEMSET)


@function("cudaMemset3D")
def fill_3d(target: PitchedPointer, value: int, extent: Extent) -> None:
    """Set the bytes of slices of rows."""
    fill_3d_async(target, value, extent, 0)


@function("cudaMemset3DAsync")
def fill_3d_async(target: PitchedPointer, value: int, extent: Extent, stream: int) -> None:
    """Set the bytes of slices of rows, in the order of a stream."""
    width, height, depth = extent.width, extent.height, extent.depth
    rows = Rectangle(target.pointer, target.pitch, target.height)
    driver.check_rows(driver.DEVICE, rows, width, height, depth, writing=True)
    for z in range(depth):
        one = Rectangle(rows.row(0, z), rows.pitch, rows.height)
        driver.put(stream, driver.filled_rows(one, value, 1, width, height), driver.MEMSET)

"""Green contexts: contexts with a part of the multiprocessors (driver API, "Green Contexts").

The parts follow the rules of the architectures.  A launch runs on as large a part of the host's threads, and occupancy counts
the multiprocessors of the part.  A green context is a context of its own, with streams and an error of its own.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from ptxvm.driver.context import NON_BLOCKING, Context, Event, Stream
from ptxvm.driver.device import Device
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_u64, put_u64_if, structure_at, u32
from ptxvm.libcuda.calls.context import of
from ptxvm.libcuda.calls.stream import clamped
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import DeviceResource, GroupParameters

INVALID, MULTIPROCESSORS = 0, 1  # CUdevResourceType
DEFAULT_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM
IGNORE_COSCHEDULING = 1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
BACKFILL = 1  # CU_DEV_SM_RESOURCE_GROUP_BACKFILL
FINEST = (2, 2)  # the smallest partition and its alignment, without coscheduling


@dataclass(eq=False)
class Description:
    """Multiprocessors of a device, for a context."""

    device: Device
    count: int


@dataclass(eq=False)
class GreenContext:
    """A context with a part of the multiprocessors."""

    device: Device
    count: int
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        self.context = Context(self.device, part=self.count)


def green(handle: int) -> GreenContext:
    """A green context by its handle."""
    return session().handles.object(handle, GreenContext)


def green_of(context: Context) -> GreenContext | None:
    """The green context that a context is, None for another."""
    found = (each for each in session().handles.objects.values() if isinstance(each, GreenContext))
    return next((each for each in found if each.context is context), None)


def finest(device: Device) -> tuple[int, int]:
    """The multiprocessors of the smallest partition, and what partitions are multiples of (by compute capability)."""
    major, _ = device.model.capability
    return (8, 8) if major >= 9 else (4, 2) if major == 8 else (2, 2)


# ── resources ───────────────────────────────────────────────────────────────────────────


def put(out: int, device: Device, count: int, alignment: int | None = None) -> None:
    """Write a structure of multiprocessors; none at all are a resource of no type."""
    d = DeviceResource(type=MULTIPROCESSORS if count else INVALID, device=device.ordinal)
    if count:
        least, usual = finest(device)
        d.count, d.least, d.alignment = count, min(least, count), usual if alignment is None else alignment
    put_bytes(out, bytes(d))


def put_of(out: int, kind: int, device: Device, count: int) -> None:
    """The same, for a client that asks for a type; DriverError where that is not multiprocessors."""
    if kind != MULTIPROCESSORS:
        raise DriverError(Result.INVALID_RESOURCE_TYPE, f"resources of type {kind} are not supported: work queues are none")
    put(out, device, count)


def resource_at(address: int) -> DeviceResource:
    """The multiprocessors that a client gives; DriverError for another type."""
    d = structure_at(DeviceResource, address)
    if d.type != MULTIPROCESSORS:
        raise DriverError(Result.INVALID_RESOURCE_TYPE, "the resource is not one of multiprocessors")
    return d


@function("cuDeviceGetDevResource")
def of_device(ordinal: int, out: int, kind: int) -> None:
    """The multiprocessors of a device."""
    device = session().driver.device(ordinal)
    put_of(out, kind, device, device.model.multiprocessors)


@function("cuCtxGetDevResource")
def of_context(handle: int, out: int, kind: int) -> None:
    """The multiprocessors of a context."""
    context = of(handle)
    put_of(out, kind, context.device, context.multiprocessors)


@function("cuGreenCtxGetDevResource")
def of_green(handle: int, out: int, kind: int) -> None:
    """The multiprocessors of a green context."""
    put_of(out, kind, green(handle).device, green(handle).count)


@function("cuStreamGetDevResource")
def of_stream(handle: int, out: int, kind: int) -> None:
    """The multiprocessors of the context of a stream."""
    of_context(session().handles.handle(session().stream(handle).context), out, kind)


@function("cuDevSmResourceSplitByCount")
def split_by_count(out: int, groups: int, source: int, rest: int, flags: int, least: int) -> None:
    """Split multiprocessors into groups of one size, at least so many each; without room for groups, count them."""
    d = resource_at(source)
    device = session().driver.device(d.device)
    smallest, alignment = FINEST if flags & IGNORE_COSCHEDULING else finest(device)
    if least > d.count:
        raise DriverError(Result.INVALID_VALUE, f"there are {d.count} multiprocessors, not {least}")
    size = max(smallest, -(-least // alignment) * alignment)
    made = min(d.count // size, u32(groups)) if out else d.count // size
    for n in range(made if out else 0):
        put(out + n * ctypes.sizeof(d), device, size, alignment)
    if out and rest:
        put(rest, device, d.count - made * size, alignment)
    put_i32(groups, made)


@function("cuDevSmResourceSplit")
def split(out: int, groups: int, source: int, rest: int, flags: int, parameters: int) -> None:
    """Split multiprocessors into groups that a client describes; one of no size gets as many as there are left."""
    d, left = resource_at(source), resource_at(source).count
    device = session().driver.device(d.device)
    for n in range(groups):
        each = structure_at(GroupParameters, parameters + n * ctypes.sizeof(GroupParameters))
        alignment = each.coscheduled or finest(device)[1]
        size = each.count or left // alignment * alignment
        if size > left or (size % alignment and not each.flags & BACKFILL):
            said = f"a group of {size} multiprocessors, in multiples of {alignment}, is not there among {left}"
            raise DriverError(Result.INVALID_RESOURCE_CONFIGURATION, said)
        left -= size
        each.count = size
        if out:
            put(out + n * ctypes.sizeof(d), device, size, alignment)
    if rest:
        put(rest, device, left)


@function("cuDevResourceGenerateDesc")
def describe(out: int, resources: int, count: int) -> None:
    """Multiprocessors as one description, for a context."""
    found = [resource_at(resources + n * ctypes.sizeof(DeviceResource)) for n in range(count)]
    devices = {each.device for each in found}
    if len(devices) != 1:
        raise DriverError(Result.INVALID_RESOURCE_CONFIGURATION, "the resources are of one device")
    made = Description(session().driver.device(devices.pop()), sum(each.count for each in found))
    put_u64(out, session().handles.handle(made))


# ── contexts ────────────────────────────────────────────────────────────────────────────


@function("cuGreenCtxCreate")
def create(out: int, description: int, ordinal: int, flags: int) -> None:
    """A green context of a description, which it takes."""
    found = session().handles.object(description, Description)
    if flags != DEFAULT_STREAM or found.device.ordinal != ordinal:
        raise DriverError(Result.INVALID_VALUE, "a green context has a default stream, and is of the device of its resources")
    put_u64(out, session().handles.handle(GreenContext(found.device, found.count)))


@function("cuGreenCtxDestroy", any_state=True)
def destroy(handle: int) -> None:
    """End a green context, when its work is done."""
    found, handles = green(handle), session().handles
    found.context.finish()
    if id(found.context) in handles.numbers:
        handles.drop(handles.numbers[id(found.context)])
    handles.drop(handle)


@function("cuCtxFromGreenCtx")
def context_of(out: int, handle: int) -> None:
    """The context that a green context is."""
    put_u64(out, session().handles.handle(green(handle).context))


@function("cuGreenCtxGetId")
def number(handle: int, out: int) -> None:
    """A number that names a green context in the process."""
    green(handle)
    put_u64(out, handle)


@function("cuGreenCtxStreamCreate")
def create_stream(out: int, handle: int, flags: int, priority: int) -> None:
    """A new stream of a green context, which does not wait for the default stream of another."""
    if flags != NON_BLOCKING:
        raise DriverError(Result.INVALID_VALUE, "a stream of a green context is non-blocking")
    put_u64(out, session().handles.handle(Stream(green(handle).context, flags, clamped(priority))))


@function("cuStreamGetGreenCtx")
def green_of_stream(handle: int, out: int) -> None:
    """The green context of a stream, null for a stream of another context."""
    found = green_of(session().stream(handle).context)
    put_u64(out, session().handles.handle(found) if found is not None else 0)


@function("cuStreamGetCtx_v2")
def contexts_of_stream(handle: int, out: int, green_out: int) -> None:
    """The context of a stream; or its green context, and the primary one of the device."""
    context = session().stream(handle).context
    found, handles = green_of(context), session().handles
    shown = context if found is None else session().driver.primary_context(found.device.ordinal)
    put_u64(out, handles.handle(shown))
    put_u64_if(green_out, 0 if found is None else handles.handle(found))


# ── events of whole contexts ────────────────────────────────────────────────────────────


@function("cuCtxRecordEvent")
def record(handle: int, event: int) -> None:
    """Let an event happen when all that a context has to do now is done."""
    context = of(handle)
    behind_all = Stream(context, NON_BLOCKING)
    for each in list(context.streams):
        if each is not behind_all:
            behind_all.follow(each.mark())
    behind_all.record(session().handles.object(event, Event))


@function("cuCtxWaitEvent")
def wait(handle: int, event: int) -> None:
    """Let all streams of a context wait for an event."""
    found = session().handles.object(event, Event)
    for each in list(of(handle).streams):
        each.wait(found)


@function("cuGreenCtxRecordEvent")
def record_green(handle: int, event: int) -> None:
    """Let an event happen when all that a green context has to do now is done."""
    record(session().handles.handle(green(handle).context), event)


@function("cuGreenCtxWaitEvent")
def wait_green(handle: int, event: int) -> None:
    """Let all streams of a green context wait for an event."""
    wait(session().handles.handle(green(handle).context), event)

"""Green contexts: contexts with a part of the multiprocessors (driver API, "Green Contexts").

A launch runs on as large a part of the host's threads, and occupancy counts
the multiprocessors of the part.  A green context is a context of its own, with streams and an error of its own.
"""

from __future__ import annotations

from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.driver.context import NON_BLOCKING, Context, Stream
from ptxvm.driver.device import Device
from ptxvm.driver.event import Event
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.work_queues import WorkQueues
from ptxvm.libcuda.c_values import put_u64, put_u64_if
from ptxvm.libcuda.calls.context import of
from ptxvm.libcuda.calls.device_resources import Description, put_of
from ptxvm.libcuda.calls.stream import clamped
from ptxvm.libcuda.session import NO_HANDLE, function, session

DEFAULT_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM


@dataclass(eq=False)
class GreenContext:
    """A context with a part of the multiprocessors."""

    device: Device
    count: int
    queues: WorkQueues
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        primary = session().driver.primary_context(self.device.ordinal)
        self.context = Context(self.device, part=self.count, life=primary.life)  # it has the modules of the primary one


NO_HANDLE[Description] = Result.INVALID_VALUE
NO_HANDLE[GreenContext] = Result.INVALID_CONTEXT


def green(handle: int) -> GreenContext:
    """A green context by its handle."""
    return session().handles.object(handle, GreenContext)


def green_of(context: Context) -> GreenContext | None:
    """The green context that a context is, None for another."""
    found = (each for each in session().handles.objects.values() if isinstance(each, GreenContext))
    return next((each for each in found if each.context is context), None)


# ── what they have ──────────────────────────────────────────────────────────────────────


@function("cuCtxGetDevResource")
def of_context(handle: int, out: int, kind: int) -> None:
    """A resource of a context."""
    context = of(handle)
    found = green_of(context)
    put_of(out, kind, context.device, context.multiprocessors, context.device.work_queues if found is None else found.queues)


@function("cuGreenCtxGetDevResource")
def of_green(handle: int, out: int, kind: int) -> None:
    """A resource of a green context."""
    put_of(out, kind, green(handle).device, green(handle).count, green(handle).queues)


@function("cuStreamGetDevResource")
def of_stream(handle: int, out: int, kind: int) -> None:
    """The multiprocessors of the context of a stream, which tells no work queues."""
    context = session().stream(handle).context
    put_of(out, kind, context.device, context.multiprocessors, None)


# ── contexts ────────────────────────────────────────────────────────────────────────────


@function("cuGreenCtxCreate")
def create(out: int, description: int, ordinal: int, flags: int) -> None:
    """A green context of a description, which it takes."""
    found = session().handles.object(description, Description)
    if flags != DEFAULT_STREAM or found.device.ordinal != ordinal:
        raise DriverError(Result.INVALID_VALUE, "a green context has a default stream, and is of the device of its resources")
    put_u64(out, session().handles.handle(GreenContext(found.device, found.count, found.queues)))


@function("cuGreenCtxDestroy", any_state=True)
def destroy(handle: int) -> None:
    """End a green context, when its work is done; its streams can only be destroyed."""
    found, handles = green(handle), session().handles
    found.context.detach()
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

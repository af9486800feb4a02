"""Streams and events."""

from __future__ import annotations

import ctypes

from ptxvm.driver.context import Stream
from ptxvm.driver.event import Event, elapsed
from ptxvm.driver.graph_events import RECORD_EVENT, WAIT_EVENT, EventNode
from ptxvm.driver.launch import FunctionTask
from ptxvm.driver.memory import AllocationKind
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import function_at, put_f32, put_i32, put_u64
from ptxvm.libcuda.host_calls import host_call
from ptxvm.libcuda.session import function, session, then_failure

NON_BLOCKING = 1
ATTACH_GLOBAL, ATTACH_HOST, ATTACH_SINGLE = 1, 2, 4  # CUmemAttach_flags
BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS = 1, 2, 4  # CUevent_flags
EXTERNAL = 1  # CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL
HOST_NODE = 3  # CUgraphNodeType
BLOCKING, SPINNING = 0, 1  # CUhostTaskSyncMode
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


# ── streams ─────────────────────────────────────────────────────────────────────────────


@function("cuStreamCreate")
def create(out: int, flags: int) -> None:
    """A new stream of the current context."""
    create_with_priority(out, flags, 0)


@function("cuStreamCreateWithPriority")
def create_with_priority(out: int, flags: int, priority: int) -> None:
    """A new stream with a priority."""
    if flags not in (0, NON_BLOCKING):
        raise DriverError(Result.INVALID_VALUE, f"there are no flags {flags} of streams")
    stream = Stream(session().context, flags, clamped(priority))
    put_u64(out, session().own(stream))


def clamped(priority: int) -> int:
    """A priority, clamped to the range that streams have (driver API, `cuStreamCreateWithPriority`)."""
    return max(-5, min(0, priority))


@function("cuStreamDestroy", "cuStreamDestroy_v2", any_state=True)
@then_failure
def destroy(handle: int) -> None:
    """Forget a stream when its work is done, and the capture that it began."""
    stream = session().handles.object(handle, Stream)
    if stream.capture is not None and stream.capture.origin is stream:
        stream.capture.is_invalid = True
        stream.capture = None
    session().handles.drop(handle)


@function("cuStreamSynchronize")
def synchronize(handle: int) -> None:
    """Wait for a stream."""
    session().stream(handle).sync()


@function("cuStreamQuery")
def query(handle: int) -> None:
    """Is a stream done?"""
    session().stream(handle).query()


@function("cuStreamWaitEvent")
def wait(handle: int, event: int, flags: int) -> None:
    """Let a stream wait for an event."""
    stream, found = session().stream(handle), session().handles.object(event, Event)
    if is_external(stream, flags):
        stream.put(EventNode(found, records=False), WAIT_EVENT)
    else:
        stream.wait(found)


def is_external(stream: Stream, flags: int) -> bool:
    """Do flags ask for a node in a capture, for an event that has a meaning outside?  DriverError without a capture."""
    if flags not in (0, EXTERNAL) or (flags and stream.capture is None):
        raise DriverError(Result.INVALID_VALUE, f"the flags {flags} of events are not allowed here")
    return bool(flags)


@function("cuStreamGetFlags")
def flags(handle: int, out: int) -> None:
    """The flags of a stream."""
    put_i32(out, session().stream(handle).flags)


@function("cuStreamGetPriority")
def priority(handle: int, out: int) -> None:
    """The priority of a stream."""
    put_i32(out, session().stream(handle).priority)


@function("cuStreamGetId")
def number(handle: int, out: int) -> None:
    """A number that names a stream in the process."""
    put_u64(out, session().handles.handle(session().stream(handle)))


@function("cuStreamGetDevice")
def device(handle: int, out: int) -> None:
    """The device of a stream."""
    put_i32(out, session().stream(handle).context.device.ordinal)


@function("cuStreamGetCtx")
def context(handle: int, out: int) -> None:
    """The context of a stream."""
    put_u64(out, session().handles.handle(session().stream(handle).context))


@function("cuStreamAttachMemAsync")
def attach(handle: int, address: int, size: int, flags: int) -> None:
    """Attach managed memory, or pageable memory of the host, to a stream; it has no effect."""
    stream = session().stream(handle)
    if flags not in (ATTACH_GLOBAL, ATTACH_HOST, ATTACH_SINGLE):
        raise DriverError(Result.INVALID_VALUE, f"there is no way {flags} of attaching memory")
    if flags == ATTACH_SINGLE and stream is stream.context.default_stream:
        raise DriverError(Result.INVALID_HANDLE, "memory is attached to one stream, and the default one stands for all")
    found = session().driver.blocks.find(address)
    if found is None:
        session().driver.blocks.check(address, size)
    elif found[1].kind is not AllocationKind.MANAGED or size not in (0, found[1].size):
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {address:#x} are no allocation of managed memory")


@function("cuStreamAddCallback")
def add_callback(handle: int, callback: int, data: int, flags: int) -> None:
    """Call a function of the client, with the state of the stream, when the stream reaches this point."""
    stream = session().stream(handle)
    called = function_at(CALLBACK, callback)
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of a callback are 0")
    if stream.capture is not None:
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a callback cannot be captured")
    stream.put(Callback(host_call(lambda: called(handle, int(stream.context.failure), data)), is_short=False), HOST_NODE)


class Callback(FunctionTask):
    """A call of a client's function that is told of errors, and so is called after them, too."""

    def cancel(self) -> None:
        """Call it."""
        self.function()


@function("cuLaunchHostFunc")
def launch_host(handle: int, callback: int, data: int) -> None:
    """Call a function of the client when the stream reaches this point."""
    called = function_at(HOST_FUNCTION, callback)
    session().stream(handle).put(FunctionTask(host_call(called, data), is_short=False), HOST_NODE)


@function("cuLaunchHostFunc_v2")
def launch_host_v2(handle: int, callback: int, data: int, waiting: int) -> None:
    """The same; how the thread of the calls waits for them, asleep or spinning, is a hint for hardware."""
    if waiting not in (BLOCKING, SPINNING):
        raise DriverError(Result.INVALID_VALUE, f"there is no way {waiting} to wait for calls")
    launch_host(handle, callback, data)


# ── events ──────────────────────────────────────────────────────────────────────────────


@function("cuEventCreate")
def create_event(out: int, flags: int) -> None:
    """A new event of the current context."""
    if flags & ~(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS):
        raise DriverError(Result.INVALID_VALUE, f"{flags:#x} has flags that events do not have")
    if flags & INTERPROCESS and not flags & DISABLE_TIMING:
        raise DriverError(Result.INVALID_VALUE, "an event between processes has no timing")
    event = Event(session().context, timed=not flags & DISABLE_TIMING, is_shared=bool(flags & INTERPROCESS))
    put_u64(out, session().own(event))


@function("cuEventDestroy", "cuEventDestroy_v2", any_state=True)
@then_failure
def destroy_event(handle: int) -> None:
    """Forget an event."""
    session().handles.object(handle, Event)
    session().handles.drop(handle)


@function("cuEventRecord")
def record(event: int, stream: int) -> None:
    """Record an event in a stream."""
    session().stream(stream).record(session().handles.object(event, Event))


@function("cuEventRecordWithFlags")
def record_with_flags(event: int, stream: int, flags: int) -> None:
    """Record an event in a stream, for work outside of a capture too if the flags say so."""
    found, recorded = session().stream(stream), session().handles.object(event, Event)
    if is_external(found, flags):
        found.put(EventNode(recorded, records=True), RECORD_EVENT)
    else:
        found.record(recorded)


@function("cuEventSynchronize")
def synchronize_event(handle: int) -> None:
    """Wait for an event; an event without a record counts as reached."""
    session().handles.object(handle, Event).sync()


@function("cuEventQuery")
def query_event(handle: int) -> None:
    """Has an event been reached?"""
    session().handles.object(handle, Event).query()


@function("cuEventElapsedTime", "cuEventElapsedTime_v2")
def elapsed_time(out: int, start: int, end: int) -> None:
    """The milliseconds between two events."""
    handles = session().handles
    put_f32(out, elapsed(handles.object(start, Event), handles.object(end, Event)))

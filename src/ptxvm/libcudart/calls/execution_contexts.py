"""Execution contexts: the context of a device, and green contexts (CUDA Runtime API, "Execution Context Management")."""

from __future__ import annotations

from ptxvm.driver.context import NON_BLOCKING, Context, Stream
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_i32, put_u64
from ptxvm.libcuda.calls import green_contexts as driver
from ptxvm.libcuda.calls.stream import clamped
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import function


def context_of(handle: int) -> Context:
    """The context that an execution context is; DriverError for another handle."""
    found = session().handles.objects.get(handle)
    if isinstance(found, driver.GreenContext):
        return found.context
    return session().handles.object(handle, Context)


def handle_of(handle: int) -> int:
    """The handle by which the driver knows the context."""
    return session().handles.handle(context_of(handle))


@function("cudaDeviceGetExecutionCtx")
def of_device(out: int, ordinal: int) -> None:
    """The execution context of a device, with all its multiprocessors."""
    put_u64(out, session().handles.handle(session().driver.primary_context(ordinal)))


@function("cudaGreenCtxCreate")
def create(out: int, description: int, ordinal: int, flags: int) -> None:
    """An execution context with some of the multiprocessors."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of a green context are 0")
    driver.create(out, description, ordinal, driver.DEFAULT_STREAM)


@function("cudaExecutionCtxDestroy", any_state=True)
def destroy(handle: int) -> None:
    """End an execution context; DriverError for that of a device, which stays."""
    driver.destroy(handle)


@function("cudaExecutionCtxGetDevice")
def device(out: int, handle: int) -> None:
    """The device of an execution context."""
    put_i32(out, context_of(handle).device.ordinal)


@function("cudaExecutionCtxGetId")
def number(handle: int, out: int) -> None:
    """A number that names an execution context in the process."""
    context_of(handle)
    put_u64(out, handle)


@function("cudaExecutionCtxGetDevResource")
def resource(handle: int, out: int, kind: int) -> None:
    """A resource of an execution context: multiprocessors or work queues."""
    driver.of_context(handle_of(handle), out, kind)


@function("cudaExecutionCtxStreamCreate")
def create_stream(out: int, handle: int, flags: int, priority: int) -> None:
    """A new stream of an execution context."""
    if flags not in (0, NON_BLOCKING):
        raise DriverError(Result.INVALID_VALUE, f"there are no flags {flags} of streams")
    put_u64(out, session().handles.handle(Stream(context_of(handle), NON_BLOCKING, clamped(priority))))


@function("cudaExecutionCtxSynchronize")
def synchronize(handle: int) -> None:
    """Wait for all work of an execution context."""
    context_of(handle).sync()


@function("cudaExecutionCtxRecordEvent")
def record(handle: int, event: int) -> None:
    """Let an event happen when all that an execution context has to do now is done."""
    driver.record(handle_of(handle), event)


@function("cudaExecutionCtxWaitEvent")
def wait(handle: int, event: int) -> None:
    """Let all streams of an execution context wait for an event."""
    driver.wait(handle_of(handle), event)

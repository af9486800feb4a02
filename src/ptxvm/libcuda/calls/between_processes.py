"""Memory and events of other processes, by handles of 64 bytes."""

from __future__ import annotations

from ptxvm.driver.event import Event
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import SharedPoints, opened
from ptxvm.libcuda.c_values import put_bytes, put_u64
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.signatures import Handle64


@function("cuIpcGetMemHandle")
def handle_of_memory(out: int, address: int) -> None:
    """A handle of memory of a device for other processes, after waiting for work that may write there."""
    session().driver.finish()
    put_bytes(out, session().driver.blocks.share(address))


@function("cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle")
def open_memory(out: int, handle: Handle64, flags: int) -> None:
    """Memory of another process, from the first byte of its allocation on."""
    put_u64(out, session().driver.blocks.open(bytes(handle.data)))


@function("cuIpcCloseMemHandle", any_state=True)
def close_memory(address: int) -> None:
    """Close memory of another process."""
    session().driver.finish()
    session().driver.blocks.close(address)


@function("cuIpcGetEventHandle")
def handle_of_event(out: int, number: int) -> None:
    """A handle of an event for other processes."""
    event = session().handles.object(number, Event)
    if not event.is_shared:
        raise DriverError(Result.INVALID_HANDLE, "the event was not created for several processes")
    if event.points is None:
        event.points = SharedPoints()
        event.settle()
    put_bytes(out, event.points.file.handle())


@function("cuIpcOpenEventHandle")
def open_event(out: int, handle: Handle64) -> None:
    """An event of another process."""
    points = SharedPoints(opened(bytes(handle.data)).file)
    event = Event(session().context, timed=False, is_shared=True, points=points)
    event.settle()
    put_u64(out, session().own(event))

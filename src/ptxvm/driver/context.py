"""Contexts with their streams and events: work in order, points of it with their times, and the error of a kernel.

Work runs when it is put on a stream, so a stream has nothing left to do when the host asks.  While a stream is captured, its
work becomes nodes of a graph instead.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from ptxvm.diagnostics.errors import PTXVMError
from ptxvm.driver.device import Device
from ptxvm.driver.graph import Capture, Graph, Task
from ptxvm.driver.results import DriverError, Result, result_of

MIB = 1 << 20
LIMITS = {0: 1024, 1: MIB, 2: 8 * MIB, 3: 2, 4: 2048, 5: 128, 6: 0}
"""The limits of a context by CUlimit: stack, printf buffer, heap, device runtime's depth and launches, L2 granularity."""
CAPTURES = count(1)
LOG = logging.getLogger("ptxvm.driver")


@dataclass(eq=False)
class Context:
    """The state of a device for a client; `failure` is the error of a kernel, which every later call returns."""

    device: Device
    flags: int = 0
    failure: Result = Result.SUCCESS
    users: int = 0
    limits: dict[int, int] = field(default_factory=LIMITS.copy)
    cache: int = 0
    peers: list[Context] = field(default_factory=list)

    @cached_property
    def default_stream(self) -> Stream:
        """The stream of work for which a client names none."""
        return Stream(self)

    def fail(self, error: Exception) -> None:
        """Keep the error of a kernel, as hardware does: only a reset of the device ends it.  The log has all of it."""
        known = isinstance(error, PTXVMError)
        LOG.error("ptxvm: a kernel failed: %s", error, exc_info=None if known else error)
        if self.failure is Result.SUCCESS:
            self.failure = result_of(error)

    def reset(self) -> None:
        """Begin anew."""
        self.failure = Result.SUCCESS
        self.limits = LIMITS.copy()


@dataclass(eq=False)
class Event:
    """A point in a stream; `reached` is when the stream was there, None while the event was not recorded."""

    context: Context
    timed: bool = True
    reached: float | None = None
    capture: Capture | None = None  # the capture that has it


@dataclass(eq=False)
class Stream:
    """A queue of work of a context."""

    context: Context
    flags: int = 0
    priority: int = 0
    capture: Capture | None = None

    def put(self, task: Task, type: int) -> None:
        """Run a task behind all that the stream was given before, or capture it as a node of a type."""
        if self.capture is not None:
            self.capture.add(self, task, type)
        else:
            task.run()

    def record(self, event: Event) -> None:
        """Let an event happen when the stream reaches this point."""
        event.capture = self.capture
        if self.capture is not None:
            self.capture.record(self, event)
        else:
            event.reached = time.perf_counter()

    def wait(self, event: Event) -> None:
        """Let later work of the stream wait for an event; one of a capture captures the stream too."""
        if event.capture is not None:
            self.capture = event.capture
            self.capture.wait(self, event)

    def sync(self) -> None:
        """Wait until the stream has nothing left to do; DriverError while it is captured."""
        if self.capture is not None:
            raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a stream that is captured cannot be waited for")

    def begin_capture(self, mode: int) -> None:
        """Turn work into nodes of a graph from now on."""
        if self.capture is not None:
            raise DriverError(Result.ILLEGAL_STATE, "the stream is captured already")
        self.capture = Capture(self, mode, next(CAPTURES))

    def end_capture(self) -> Graph:
        """The graph of all that was captured since; DriverError where another stream began the capture."""
        capture = self.capture
        if capture is None:
            raise DriverError(Result.ILLEGAL_STATE, "the stream is not captured")
        if capture.origin is not self:
            raise DriverError(Result.STREAM_CAPTURE_UNMATCHED, "another stream began the capture")
        for each in (self, *capture.last):
            if isinstance(each, Stream):
                each.capture = None
        return capture.end()


def elapsed(start: Event, end: Event) -> float:
    """The milliseconds from one event to another."""
    if not (start.timed and end.timed):
        raise DriverError(Result.INVALID_HANDLE, "an event was created without timing")
    if start.reached is None or end.reached is None:
        raise DriverError(Result.INVALID_HANDLE, "an event was not recorded")
    return (end.reached - start.reached) * 1000


__all__ = ["Context", "Event", "Stream", "elapsed"]

"""Events: points in the work of streams, which the host and other streams wait for, and whose times it compares."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from ptxvm.dataclass import dataclass
from ptxvm.driver.captures import Capture
from ptxvm.driver.cells import AN_EVENT, PENDING, Cells, cells
from ptxvm.driver.device import Device
from ptxvm.driver.queue import Mark
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import SharedPoints


class EventContext(Protocol):
    """The context of an event: its device, and whether a kernel has failed in it."""

    @property
    def device(self) -> Device:
        """The device."""

    def raise_failure(self) -> None:
        """DriverError where a kernel has failed, or the context is destroyed."""


@dataclass(eq=False)
class Event:
    """An event; `mark` is the point of its last record, None if it was never recorded."""

    context: EventContext
    timed: bool = True
    is_shared: bool = False  # do other processes share it?
    mark: Mark | None = None
    capture: Capture | None = None  # the capture in which it was recorded last
    cells: Cells = field(default_factory=lambda: cells(AN_EVENT))
    points: SharedPoints | None = None  # the records of all processes that share the event

    @property
    def is_pending(self) -> bool:
        """Must a query ask Python: has the last record not been reached, or is the event shared, or in a capture?"""
        here = self.mark is not None and not self.mark.is_reached
        return here or self.capture is not None or self.points is not None

    def last(self) -> Mark | None:
        """The point of the last record, by any process."""
        if self.points is not None:
            self.mark = self.points.last()
        return self.mark

    def settle(self) -> None:
        """Update the cell that native code reads; again if another thread records the event meanwhile."""
        self.cells[PENDING] = pending = self.is_pending
        while pending != (pending := self.is_pending):
            self.cells[PENDING] = pending

    def sync(self) -> None:
        """Wait for the event; one that was never recorded counts as reached."""
        self.refuse_capture()
        if (mark := self.last()) is not None:
            mark.wait()
            mark.order.sync()
        self.settle()
        self.context.raise_failure()

    def query(self) -> None:
        """DriverError (NOT_READY) while the event is pending."""
        self.refuse_capture()
        if (mark := self.last()) is not None and not mark.is_reached:
            raise DriverError(Result.NOT_READY, "the stream has not reached the event")
        self.settle()

    def refuse_capture(self) -> None:
        """DriverError where the event was last recorded in a capture, which is invalid then."""
        if self.capture is not None:
            self.capture.is_invalid = True
            raise DriverError(Result.CAPTURED_EVENT, "the event was recorded in a capture")


def elapsed(start: Event, end: Event) -> float:
    """The milliseconds from one event to another."""
    if not (start.timed and end.timed):
        raise DriverError(Result.INVALID_HANDLE, "an event was created without timing")
    if start.context.device is not end.context.device:
        raise DriverError(Result.INVALID_HANDLE, "the events are those of different devices")
    if start.mark is None or end.mark is None:
        raise DriverError(Result.INVALID_HANDLE, "an event was not recorded")
    start.query()
    end.query()
    return (end.mark.time - start.mark.time) * 1000


__all__ = ["Event", "elapsed"]

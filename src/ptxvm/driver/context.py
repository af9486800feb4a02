"""Contexts with their streams and events: ordered work, points in it with their times, and the error of a kernel.

Streams run at once, each in its order (CUDA C++ Programming Guide, "Streams", "Default Stream"): work of the legacy default
stream follows all earlier work of blocking streams, and comes before all later work of theirs.  Short work of the default
stream that cannot wait for the host runs on the thread that launches it, while no other work is pending: that is the
quickest, and the program cannot tell the difference.  While checks are asked for, work runs when it is put on a stream, but
for what may wait for the host and what stands behind that; what nothing orders is then found by the check `race`.  While a
stream is captured, its work becomes nodes of a graph instead.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from weakref import WeakSet

from ptxvm.diagnostics.errors import PTXVMError
from ptxvm.driver.cells import A_CONTEXT, AN_EVENT, CAPTURED, FAILURE, ORDINAL, PENDING, Cells, cells
from ptxvm.driver.device import Device
from ptxvm.driver.graph import Capture, Graph, Node, Task
from ptxvm.driver.launch_checks import Checked, Host, wanted
from ptxvm.driver.queue import Mark, Queue, Work
from ptxvm.driver.results import DriverError, Result, result_of
from ptxvm.driver.shared_memory import SharedPoints
from ptxvm.machine import streams as machine
from ptxvm.machine.options import Check

MIB = 1 << 20
LIMITS = {0: 1024, 1: MIB, 2: 8 * MIB, 3: 2, 4: 2048, 5: 128, 6: 0}
"""The limits of a context by CUlimit: stack, printf buffer, heap, device runtime's depth and launches, L2 granularity."""
NON_BLOCKING = 1  # CUstream_flags
CAPTURES = count(1)
STREAMS: WeakSet[Stream] = WeakSet()
"""The streams of all contexts."""
LOG = logging.getLogger("ptxvm.driver")


@dataclass(eq=False)
class Context:
    """The state of a device for a client; every call after the error of a kernel returns that error."""

    device: Device
    flags: int = 0
    users: int = 0
    limits: dict[int, int] = field(default_factory=LIMITS.copy)
    cache: int = 0
    peers: list[Context] = field(default_factory=list)
    streams: WeakSet[Stream] = field(default_factory=WeakSet)
    cells: Cells = field(default_factory=lambda: cells(A_CONTEXT))

    def __post_init__(self) -> None:
        self.cells[ORDINAL] = self.device.ordinal

    @property
    def failure(self) -> Result:
        """The error of a kernel."""
        return Result(failure) if (failure := self.cells[FAILURE]) else Result.SUCCESS

    @cached_property
    def default_stream(self) -> Stream:
        """The stream of work without a named stream."""
        return Stream(self, is_default=True)

    def fail(self, error: Exception) -> None:
        """Keep the error of a kernel, as hardware does, until the device is reset; its text goes to the log."""
        known = isinstance(error, PTXVMError)
        LOG.error("ptxvm: a kernel failed: %s", error, exc_info=None if known else error)
        if self.failure is Result.SUCCESS:
            self.cells[FAILURE] = result_of(error)

    def busy(self) -> list[Stream]:
        """The streams with pending work."""
        return [each for each in list(self.streams) if not each.queue.is_idle]

    def finish(self) -> None:
        """Wait until no stream has pending work."""
        streams = list(self.streams)
        for each in streams:
            each.queue.wait()
        for each in streams:
            each.order.sync()

    def sync(self) -> None:
        """Wait for all streams, for the host; DriverError where a kernel has failed, or a stream is captured."""
        if any(each.capture is not None for each in list(self.streams)):
            raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a stream is captured, so the context cannot be waited for")
        self.finish()
        self.raise_failure()

    def raise_failure(self) -> None:
        """DriverError where a kernel has failed."""
        if self.failure is not Result.SUCCESS:
            raise DriverError(self.failure, "a kernel of this context has failed")

    def reset(self) -> None:
        """Reset the state."""
        self.finish()
        self.cells[FAILURE] = Result.SUCCESS
        self.limits = LIMITS.copy()


@dataclass(eq=False)
class Event:
    """A point in a stream; `mark` is the last one that was recorded, None while there was none."""

    context: Context
    timed: bool = True
    is_shared: bool = False  # do other processes share it?
    mark: Mark | None = None
    capture: Capture | None = None  # the capture that has it
    cells: Cells = field(default_factory=lambda: cells(AN_EVENT))
    points: SharedPoints | None = None  # of an event of several processes

    @property
    def is_pending(self) -> bool:
        """Is it pending, shared with other processes, or of a capture?"""
        here = self.mark is not None and not self.mark.is_reached
        return here or self.capture is not None or self.points is not None

    def last(self) -> Mark | None:
        """The last record, of any process."""
        if self.points is not None:
            self.mark = self.points.last()
        return self.mark

    def settle(self) -> None:
        """Update the cells where it is no longer pending; another thread may record it meanwhile."""
        self.cells[PENDING] = pending = self.is_pending
        while pending != (pending := self.is_pending):
            self.cells[PENDING] = pending

    def sync(self) -> None:
        """Wait for the event; an event without a record counts as reached."""
        self.refuse_capture()
        if (mark := self.last()) is not None:
            mark.wait()
            mark.order.sync()
        self.settle()
        self.context.raise_failure()

    def query(self) -> None:
        """DriverError where the event is pending."""
        self.refuse_capture()
        if (mark := self.last()) is not None and not mark.is_reached:
            raise DriverError(Result.NOT_READY, "the stream has not reached the event")
        self.settle()

    def refuse_capture(self) -> None:
        """DriverError for an event of a capture."""
        if self.capture is not None:
            raise DriverError(Result.CAPTURED_EVENT, "the event was recorded in a capture")


@dataclass(eq=False)
class Stream:
    """A queue of work of a context."""

    context: Context
    flags: int = 0
    priority: int = 0
    is_default: bool = False
    queue: Queue = field(default_factory=Queue)
    order: machine.Stream = field(default_factory=machine.Stream)

    def __post_init__(self) -> None:
        self.attributes: dict[int, bytes] = {}  # that a client has set, by their numbers
        self._capture: Capture | None = None
        self.context.streams.add(self)
        STREAMS.add(self)

    @property
    def capture(self) -> Capture | None:
        """The capture that turns the work of the stream into nodes of a graph."""
        return self._capture

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self._capture = capture
        self.queue.cells[CAPTURED] = capture is not None

    @property
    def blocking(self) -> bool:
        """Do the stream and the legacy default stream wait for each other?"""
        return not self.flags & NON_BLOCKING

    def put(self, task: Task, type: int) -> None:
        """Run a task after all earlier work of the stream, or capture it as a node of a type.

        DriverError for what the task asks in vain, where it runs at once.
        """
        if self.capture is not None:
            self.capture.add(self, task, type)
        elif (checks := wanted()) is not None:
            self.put_checked(task, checks)
        elif not (self.is_default and task.is_short and self.run_here(task)):
            for mark in self.before():
                self.follow(mark)
            self.queue.put(partial(self.perform, task))

    def put_checked(self, task: Task, checks: frozenset[Check]) -> None:
        """Run a task for checks: on this thread, but for what may wait for the host, and what stands behind that.

        The host waits for it too where the context has no other stream: compiled code may then run a kernel in place of the
        checkers, which puts memory back if it suspects something.  Where anything else may write, nothing is put back.
        """
        for mark in self.before():
            self.follow(mark)
        order, host = self.order if len(self.context.streams) > 1 else None, Host()
        if order is not None or any(not each.queue.is_idle for each in list(STREAMS)):
            host.go_on()
        if not task.may_wait and self.queue.run(lambda: task.run(Checked(checks, order, None if host.waits else host))):
            return
        self.queue.put(partial(self.perform, task, Checked(checks, order, host)))
        host.wait()

    def run_here(self, task: Task) -> bool:
        """Run a task on this thread if no stream before it has pending work."""
        if len(self.context.streams) > 1 and any(each.blocking for each in self.context.busy()):
            return False
        return self.queue.run(lambda: task.run(None))

    def perform(self, task: Task, checked: Checked | None = None) -> None:
        """Run a task of the queue; after a failure no task runs."""
        try:
            if self.context.failure is Result.SUCCESS:
                task.run(checked)
        except Exception as wrong:  # noqa: BLE001 - nothing else hears of it
            self.context.fail(wrong)
        finally:
            if checked is not None and checked.host is not None:
                checked.host.go_on()

    def before(self) -> list[Mark]:
        """Points of other streams that the next task follows, by the rules of the legacy default stream.

        Streams with nothing to do have one for the check of races alone.
        """
        if not self.blocking:
            return []
        others = list(self.context.streams) if self.is_default else [self.context.default_stream]
        if wanted() is None:
            others = [each for each in others if not each.queue.is_idle]
        return [each.mark() for each in others if each is not self and each.blocking]

    def follow(self, mark: Mark) -> None:
        """Let later work come after a point of another stream."""
        if mark.is_reached and (self.queue.is_idle or wanted() is None):
            self.order.wait(mark.order)
        else:
            self.queue.put(partial(self.hold, mark))

    def hold(self, mark: Mark) -> None:
        """Wait for a point of another stream, in the queue."""
        mark.hold()
        self.order.wait(mark.order)

    def mark(self) -> Mark:
        """A mark after all present work of the stream."""
        mark = Mark()

        def reach() -> None:
            self.order.record(mark.order)
            mark.reach(time.perf_counter())

        self.then(reach)
        return mark

    def then(self, work: Work) -> None:
        """Call a quick function when the present work of the stream is done, which may be now."""
        if not self.queue.is_idle:
            self.queue.put(work)
        else:
            work()

    def record(self, event: Event) -> None:
        """Record an event: it is reached when the stream reaches this point."""
        event.capture = self.capture
        if self.capture is not None:
            self.capture.record(self, event)
            event.settle()
            return
        if self.is_default:
            for mark in self.before():
                self.follow(mark)
        if event.points is not None:
            self.then(partial(event.points.reach, event.points.begin()))
        event.mark = self.mark()
        event.settle()

    def wait(self, event: Event) -> None:
        """Let later work of the stream wait for an event; one of a capture captures the stream too."""
        if event.capture is not None:
            self.capture = event.capture
            event.capture.wait(self, event)
            return
        if (mark := event.last()) is not None:
            self.follow(mark)

    def sync(self) -> None:
        """Wait until the stream has no pending work; DriverError while it is captured, or where a kernel has failed."""
        self.refuse_capture()
        if self.is_default:
            for each in self.context.busy():
                if each.blocking:
                    each.queue.wait()
        self.queue.wait()
        self.order.sync()
        self.context.raise_failure()

    def query(self) -> None:
        """DriverError while the stream has pending work."""
        self.refuse_capture()
        if not self.queue.is_idle:
            raise DriverError(Result.NOT_READY, "the stream has pending work")
        self.context.raise_failure()

    def refuse_capture(self) -> None:
        """DriverError while the stream is captured."""
        if self.capture is not None:
            raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a stream that is captured cannot be waited for")

    def begin_capture(self, mode: int, graph: Graph | None = None, after: Sequence[Node] = ()) -> None:
        """Turn later work into nodes of a graph: a new graph, or an existing one after some of its nodes."""
        if self.capture is not None:
            raise DriverError(Result.ILLEGAL_STATE, "the stream is captured already")
        into = Graph() if graph is None else graph
        capture = Capture(self, mode, next(CAPTURES), into, before=frozenset(into.nodes))
        capture.last[self] = list(after)
        self.capture = capture

    def end_capture(self) -> Graph:
        """The graph of the captured work; DriverError where another stream began the capture."""
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
    if start.mark is None or end.mark is None:
        raise DriverError(Result.INVALID_HANDLE, "an event was not recorded")
    start.query()
    end.query()
    return (end.mark.time - start.mark.time) * 1000


__all__ = ["STREAMS", "Context", "Event", "Stream", "elapsed"]

"""Contexts with their streams.

Streams run side by side; each runs its work in order (CUDA C++ Programming Guide, "Streams", "Default Stream").  Work of the
legacy default stream follows all earlier work of blocking streams, and all their later work follows it.

- Without checks, each stream has a thread.  Short work of the default stream that cannot wait for the host runs on the
  launching thread while no other work is pending: this is the quickest, and a program cannot tell the difference.
- With checks, the launching thread runs the work at once, except tasks that may wait for the host and the tasks behind them
  in the stream.  The check `race` reports accesses that no stream, event or wait orders.
- While a stream is captured, its work becomes nodes of a graph instead.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, partial
from itertools import count
from threading import get_ident
from typing import Protocol
from weakref import WeakSet

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault, PTXVMError
from ptxvm.driver.captures import Agreed, Capture, CaptureMode, Recapture
from ptxvm.driver.cells import A_CONTEXT, CAPTURED, FAILURE, KIND, NO_KIND, ORDINAL, Cells, cells
from ptxvm.driver.device import LIMITS, Device
from ptxvm.driver.event import Event
from ptxvm.driver.graph import NO_EDGES, Graph, KernelError, Node, Task
from ptxvm.driver.graph_edges import COMPLETE, Edge
from ptxvm.driver.launch_checks import Checked, HostThread, wanted
from ptxvm.driver.queue import Mark, Queue, Work
from ptxvm.driver.results import DriverError, Result, result_of
from ptxvm.machine import streams as machine
from ptxvm.machine.options import Check

NON_BLOCKING = 1  # CUstream_flags
CAPTURES = count(1)
STREAMS: WeakSet[Stream] = WeakSet()
"""The streams of all contexts."""
PEERS: Counter[tuple[Device, Device]] = Counter()
"""How many contexts of a device have access to the memory of another."""
LOG = logging.getLogger("ptxvm.driver")


class Owner(Protocol):
    """The memory, or the handles, of contexts."""

    def end(self, life: object) -> None:
        """Free or forget those of a context that has ended, by its life."""


@dataclass(eq=False)
class Context:
    """The state of a device for a client.  After a kernel has failed, every call returns its error."""

    device: Device
    flags: int = 0
    users: int = 0
    limits: dict[int, int] = field(default_factory=lambda: dict(LIMITS))
    cache: int = 0
    peers: list[Context] = field(default_factory=list)
    part: int | None = None  # its multiprocessors, of a context that does not have all
    streams: WeakSet[Stream] = field(default_factory=WeakSet)
    cells: Cells = field(default_factory=lambda: cells(A_CONTEXT))
    is_detached: bool = False
    life: object = field(default_factory=object)
    """What its modules, launches, memory and handles belong to: another object after a reset."""
    unseen: Exception | None = None
    """The error of the first kernel that failed, as long as no call has returned it."""
    owners: tuple[Owner, ...] = ()  # of what ends with it; none for a context that shares the life of another

    def __post_init__(self) -> None:
        self.cells[ORDINAL] = self.device.ordinal

    @property
    def multiprocessors(self) -> int:
        """The multiprocessors that its launches may use."""
        return self.device.model.multiprocessors if self.part is None else self.part

    @cached_property
    def threads(self) -> int | None:
        """The threads of the host that may run a launch: as large a part of all as of the multiprocessors; None for all."""
        if self.part is None:
            return None
        from ptxvm.engine.jit.run.cta_distribution import usual_threads  # noqa: PLC0415 - NumPy comes with the first launch

        return -(-usual_threads() * self.part // self.device.model.multiprocessors)

    @property
    def failure(self) -> Result:
        """The error of the first kernel that failed, SUCCESS if none did."""
        return Result(failure) if (failure := self.cells[FAILURE]) else Result.SUCCESS

    @cached_property
    def default_stream(self) -> Stream:
        """The legacy default stream: of work that names no stream."""
        return Stream(self, is_default=True)

    def fail(self, error: Exception, *, told: bool = False) -> None:
        """Log the error of a kernel, unless it is told, and keep its code until the context is reset, as hardware does.

        An error that kernels do not have is one of ptxvm: its log shows where.
        """
        known = isinstance(error, PTXVMError | MemoryError)
        if not told:
            LOG.error("ptxvm: a kernel failed: %s", error, exc_info=None if known else error)
        if self.failure is Result.SUCCESS:
            self.unseen = error
            self.cells[FAILURE] = result_of(error)

    def captured(self) -> list[Stream]:
        """The streams that are captured, and that the legacy default stream would wait for."""
        return [each for each in list(self.streams) if each.capture is not None and each.blocking]

    def busy(self) -> list[Stream]:
        """The streams with pending work."""
        return [each for each in list(self.streams) if not each.queue.is_idle]

    def finish(self) -> None:
        """Wait until no stream has pending work; raises nothing."""
        streams = list(self.streams)
        for each in streams:
            each.queue.wait()
        for each in streams:
            each.order.sync()

    def detach(self) -> None:
        """Wait until no stream has pending work; later calls for the streams fail, and their captures are invalid."""
        self.finish()
        self.is_detached = True
        for each in list(self.streams):
            each.queue.cells[KIND] = NO_KIND  # so that native code leaves the stream to Python
            if each.capture is not None:
                each.capture.is_invalid = True

    def sync(self) -> None:
        """cuCtxSynchronize: wait for all streams; DriverError where a kernel has failed, or a stream is captured.

        Captures are invalid then.
        """
        captures = [each.capture for each in list(self.streams) if each.capture is not None]
        for capture in captures:
            capture.is_invalid = True
        if captures:
            raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a stream is captured, so the context cannot be waited for")
        self.finish()
        self.raise_failure()

    def raise_failure(self) -> None:
        """DriverError where a kernel has failed, or the context is destroyed."""
        if self.failure is Result.CONTEXT_IS_DESTROYED:
            raise DriverError(self.failure, "the context was destroyed, or is a primary context that no client has retained")
        if self.failure is not Result.SUCCESS:
            self.unseen = None
            raise DriverError(self.failure, "a kernel of this context has failed")

    def recover(self) -> Exception | None:
        """Drop pending work and forget the error; returns it if no call has returned it.  Memory and modules stay."""
        self.finish()
        unseen, self.unseen, self.cells[FAILURE] = self.unseen, None, Result.SUCCESS
        return unseen

    def enable_peer_access(self, peer: Context) -> None:
        """Let kernels use the memory of another device; DriverError where they may already."""
        if peer is self:
            raise DriverError(Result.INVALID_CONTEXT, "a context is no peer of itself")
        if peer.device is self.device:
            raise DriverError(Result.PEER_ACCESS_UNSUPPORTED, "a device is no peer of itself")
        if peer in self.peers:
            raise DriverError(Result.PEER_ACCESS_ALREADY_ENABLED)
        self.peers.append(peer)
        PEERS[self.device, peer.device] += 1
        if peer.device.machine not in self.device.machine.peers:
            self.device.machine.enable_peer_access(peer.device.machine)

    def disable_peer_access(self, peer: Context) -> None:
        """End that access, when no other context of the device has it; DriverError where there is none."""
        if peer not in self.peers:
            raise DriverError(Result.PEER_ACCESS_NOT_ENABLED)
        self.peers.remove(peer)
        PEERS[self.device, peer.device] -= 1
        if not PEERS[self.device, peer.device]:
            self.device.machine.disable_peer_access(peer.device.machine)

    def reset(self) -> None:
        """Wait for all streams, end what ends with the context, forget the error and the peers, and restore the limits."""
        self.finish()
        for owner in self.owners:
            owner.end(self.life)
        self.life = object()
        for stream in list(self.streams):
            stream.capture = None
        for peer in list(self.peers):
            self.disable_peer_access(peer)
        self.cells[FAILURE] = Result.SUCCESS
        self.limits.update(LIMITS)  # which its modules know

    def retain(self) -> None:
        """Count one more user; a primary context that had none works again."""
        if not self.users:
            self.cells[FAILURE] = Result.SUCCESS
        self.users += 1

    def release(self) -> None:
        """Count one user less; the last one ends the context."""
        self.users -= 1
        if not self.users:
            self.end()

    def end(self) -> None:
        """Reset the context; later calls in it fail, also of threads where it is current."""
        self.reset()
        self.cells[FAILURE] = Result.CONTEXT_IS_DESTROYED


@dataclass(eq=False)
class Stream:
    """A stream: a queue of tasks."""

    context: Context
    flags: int = 0
    priority: int = 0
    is_default: bool = False
    queue: Queue = field(default_factory=Queue)
    order: machine.Stream = field(default_factory=machine.Stream)

    def __post_init__(self) -> None:
        self.attributes: dict[int, bytes] = {}  # set by the client, by CUstreamAttrID
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
        if self.blocking and not self.is_default:
            self.context.default_stream.queue.cells[CAPTURED] = bool(self.context.captured())

    @property
    def blocking(self) -> bool:
        """Do the stream and the legacy default stream wait for each other?"""
        return not self.flags & NON_BLOCKING

    def put(self, task: Task, type: int) -> None:
        """Run a task after all earlier work of the stream, or capture it as a node; `type` is a CUgraphNodeType.

        A task that runs at once may raise a DriverError.
        """
        self.refuse_implicit()
        if self.capture is not None:
            self.capture.add(self, task, type)
        elif (checks := wanted()) is not None:
            self.put_checked(task, checks)
        elif not (self.is_default and task.is_short and self.run_here(task)):
            for mark in self.before():
                self.follow(mark)
            self.queue.put(partial(self.perform, task))

    def put_checked(self, task: Task, checks: frozenset[Check]) -> None:
        """Run a task under checks: on this thread, or in the queue if it may wait for the host or the queue is busy.

        Compiled code may look at a kernel first: if it suspects something, memory is restored and the checkers run the
        kernel again.  Nothing else may write meanwhile, so this needs a context with one stream and idle queues, and the
        host waits for the task.
        """
        for mark in self.before():
            self.follow(mark)
        followed = len(self.context.streams) > 1 or task.may_overlap or self.order.lets_dependents_begin
        order, host = self.order if followed else None, HostThread()
        if order is not None or any(not each.queue.is_idle for each in list(STREAMS)):
            host.go_on()
        now = partial(self.run_now, task, Checked(checks, order, None if host.waits else host))
        if not task.may_wait and self.queue.run(now):
            return
        self.queue.put(partial(self.begin, machine.DEVICE.submit(), partial(self.perform, task, Checked(checks, order, host))))
        host.wait()

    def begin(self, submission: machine.Submission, work: Work) -> None:
        """Begin with work that the host has submitted for the queue."""
        with machine.DEVICE.begun(submission, self.order):
            work()

    def run_here(self, task: Task) -> bool:
        """Run a task on this thread, unless this stream or one before it has pending work; returns whether it ran."""
        if len(self.context.streams) > 1 and any(each.blocking for each in self.context.busy()):
            return False
        return self.queue.run(partial(self.run_now, task, None))

    def run_for_host(self, work: Work) -> bool:
        """Run work for which the host waits on this thread, where no stream has pending work; returns whether it ran.

        It does not run in a capture.  DriverError where a kernel has failed, or a capture prohibits it.
        """
        self.refuse_implicit()
        self.order.sync()
        self.context.raise_failure()
        return self.queue.run(work)

    def run_now(self, task: Task, checked: Checked | None) -> None:
        """Run a task; where a kernel, or a copy of a graph, fails, the context has the error."""
        try:
            task.run(checked)
        except KernelError:
            pass
        except Fault as fault:
            self.context.fail(fault)

    def perform(self, task: Task, checked: Checked | None = None) -> None:
        """Run a task on the thread of the queue; after a kernel has failed, cancel it."""
        try:
            if self.context.failure is Result.SUCCESS:
                self.run_now(task, checked)
            else:
                task.cancel()
        except Exception as wrong:  # noqa: BLE001 - it becomes the error of the context
            self.context.fail(wrong)
        finally:
            if checked is not None and checked.host is not None:
                checked.host.go_on()

    def before(self) -> list[Mark]:
        """The points of other streams that the next task follows, by the rules of the legacy default stream.

        Idle streams are left out, except under checks: the check `race` wants their order too.
        """
        if not self.blocking:
            return []
        others = list(self.context.streams) if self.is_default else [self.context.default_stream]
        if wanted() is None:
            others = [each for each in others if not each.queue.is_idle]
        return [each.mark() for each in others if each is not self and each.blocking]

    def follow(self, mark: Mark) -> None:
        """Make later work of this stream wait for a point of another."""
        if mark.is_reached and (self.queue.is_idle or wanted() is None):
            self.order.wait(mark.order)
        else:
            self.queue.put(partial(self.hold, mark))

    def hold(self, mark: Mark) -> None:
        """Wait on the thread of the queue for a point of another stream."""
        mark.hold()
        self.order.wait(mark.order)

    def mark(self) -> Mark:
        """A new point behind all present work of the stream."""
        mark = Mark()

        def reach() -> None:
            self.order.record(mark.order)
            mark.reach(time.perf_counter())

        self.then(reach)
        return mark

    def then(self, work: Work) -> None:
        """Call a short function after the present work of the stream: now, if there is none."""
        if not self.queue.is_idle:
            self.queue.put(work)
        else:
            work()

    def record(self, event: Event, edge: Edge = COMPLETE) -> None:
        """cuEventRecord: the event is reached when all present work of the stream is done.

        In a capture, an `edge` says what of the last kernel comes before the event.  DriverError for one of another device.
        """
        if event.context.device is not self.context.device:
            raise DriverError(Result.INVALID_HANDLE, "the event and the stream are those of different devices")
        self.refuse_implicit()
        event.capture = self.capture
        if self.capture is not None:
            self.capture.record(self, event, edge)
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
        """cuStreamWaitEvent: later work waits for the event; an event of a capture makes this stream join the capture.

        DriverError where two captures would be one, and where a capture would wait for what is not captured.
        """
        self.refuse_implicit()
        if event.capture is not None:
            self.join(event.capture)
            event.capture.wait(self, event)
        elif (mark := event.last()) is None:
            return
        elif self.capture is not None:
            said = "work that is captured cannot wait for an event that was recorded outside of the capture"
            raise self.capture.refused(Result.STREAM_CAPTURE_ISOLATION, said)
        else:
            self.follow(mark)

    def join(self, capture: Capture) -> None:
        """Take part in a capture from now on."""
        if capture.is_ended:
            raise DriverError(Result.CAPTURED_EVENT, "the event was recorded in a capture that has ended")
        if self.capture is not None and self.capture is not capture:
            self.capture.is_invalid = True
            raise capture.refused(Result.STREAM_CAPTURE_MERGE, "the stream is captured by another capture than the event")
        self.capture = capture

    def refuse_implicit(self) -> None:
        """DriverError for the legacy stream while a stream is captured that it would wait for; its capture is invalid then."""
        if self.is_default and self.capture is None and self.queue.cells[CAPTURED]:
            for each in self.context.captured():
                if each.capture is not None:
                    each.capture.is_invalid = True
            raise DriverError(Result.STREAM_CAPTURE_IMPLICIT, "the legacy stream would wait for a stream that is captured")

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
        """DriverError while the stream is captured; the capture is invalid then."""
        if self.capture is not None:
            self.capture.is_invalid = True
            raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a stream that is captured cannot be waited for")

    def begin_capture(self, mode: CaptureMode, graph: Graph | None = None, after: Mapping[Node, Edge] = NO_EDGES) -> None:
        """Capture later work as nodes of a new graph, or of an existing one, where it follows some nodes."""
        into = Graph() if graph is None else graph
        into.must_have([*after])
        self._begin(Capture(self, mode, next(CAPTURES), into, last={self: dict(after)}))

    def begin_recapture(self, mode: CaptureMode, graph: Graph, agreed: Agreed) -> None:
        """Let later work take the place of that of the nodes of a graph."""
        self._begin(Recapture(self, mode, next(CAPTURES), graph, agreed=agreed))

    def _begin(self, capture: Capture) -> None:
        if self.capture is not None:
            raise DriverError(Result.ILLEGAL_STATE, "the stream is captured already")
        self.capture = capture

    def end_capture(self) -> Graph:
        """The graph of the captured work; DriverError where another stream began the capture."""
        capture = self.capture
        if capture is None:
            raise DriverError(Result.ILLEGAL_STATE, "the stream is not captured")
        if capture.origin is not self:
            raise DriverError(Result.STREAM_CAPTURE_UNMATCHED, "another stream began the capture")
        if capture.mode is not CaptureMode.RELAXED and capture.thread != get_ident():
            raise DriverError(Result.STREAM_CAPTURE_WRONG_THREAD, "another thread began the capture, which is not relaxed")
        capture.is_ended = True
        for each in (self, *capture.last):
            if isinstance(each, Stream):
                each.capture = None
        return capture.end()


def refuse_unsafe(mode: CaptureMode) -> None:
    """DriverError for a call of this thread, which is in a mode, that captures do not see; the capture is invalid then."""
    for stream in list(STREAMS):
        if stream.capture is not None and stream.capture.prohibits(mode):
            said = "a stream is captured, and the call is none that a capture sees; cuThreadExchangeStreamCaptureMode allows it"
            raise stream.capture.refused(Result.STREAM_CAPTURE_UNSUPPORTED, said)


__all__ = ["STREAMS", "Context", "Stream", "refuse_unsafe"]

"""Queues, whose tasks a thread runs in order, and marks: points of a queue that others can wait for."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from ptxvm.driver.cells import A_STREAM, BUSY, Cells, bound, cells
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine import streams

Work = Callable[[], None]
IDLE: list[Worker] = []
LOG = logging.getLogger("ptxvm.driver")


class Worker(threading.Thread):
    """A daemon thread that runs the tasks of one queue after another.

    Idle workers are kept, since starting a thread takes longer than a small kernel.
    """

    def __init__(self) -> None:
        super().__init__(name="ptxvm stream", daemon=True)
        self.inbox: SimpleQueue[Queue] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Run the tasks of each queue that comes into the inbox."""
        while True:
            queue = self.inbox.get()
            queue.drain()
            IDLE.append(self)
            del queue


class Mark:
    """A point of a queue: whether and when it was reached.  `order` is the same point for the check `race`."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self.time = 0.0
        self.order = streams.Event()

    @property
    def is_reached(self) -> bool:
        """Has the queue reached the mark?"""
        return self._reached.is_set()

    def reach(self, time: float) -> None:
        """Note that the queue has reached the mark, at a `time` in seconds."""
        self.time = time
        self._reached.set()

    def hold(self) -> None:
        """Wait for the mark, on the thread of another queue."""
        self._reached.wait()

    def wait(self) -> None:
        """Wait for the mark, on a thread of the client; DriverError in a callback of a stream, which must not wait."""
        if not self.is_reached:
            refuse_in_queue()
            self._reached.wait()


class Queue:
    """Tasks that run one after another, on the calling thread or on a worker.  A task does not raise."""

    def __init__(self) -> None:
        self._tasks: deque[Work] = deque()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for the queue to be idle
        self.cells = cells(A_STREAM)

    @property
    def is_idle(self) -> bool:
        """Is no task waiting or running?"""
        return not self.cells[BUSY]

    def bind(self, shared: Cells) -> None:
        """Keep the state in cells that native code shares."""
        with self._lock:
            self.cells = bound(self.cells, shared)

    def put(self, work: Work) -> None:
        """Let a worker run a task after all others."""
        with self._lock:
            self._tasks.append(work)
            begins, self.cells[BUSY] = not self.cells[BUSY], True
        if begins:
            self._hand_over()

    def run(self, work: Work) -> bool:
        """Run a task on the calling thread if the queue is idle; returns whether it ran."""
        with self._lock:
            if self.cells[BUSY]:
                return False
            self.cells[BUSY] = True
        try:
            work()
        finally:
            with self._lock:
                self.cells[BUSY] = more = bool(self._tasks)
                if self._waiting:
                    self._idle.notify_all()
            if more:
                self._hand_over()
        return True

    def wait(self) -> None:
        """Wait until the queue is idle; DriverError in a callback of a stream, which must not wait."""
        if self.is_idle:
            return
        refuse_in_queue()
        with self._lock:
            self._waiting += 1
            try:
                while self.cells[BUSY]:
                    self._idle.wait()
            finally:
                self._waiting -= 1

    def drain(self) -> None:
        """Run tasks until there are none, on the thread of a worker."""
        while True:
            with self._lock:
                if not self._tasks:
                    self.cells[BUSY] = False
                    if self._waiting:
                        self._idle.notify_all()
                    return
                work = self._tasks.popleft()
            try:
                work()
            except Exception:
                LOG.exception("ptxvm: work of a stream failed")

    def _hand_over(self) -> None:
        try:
            worker = IDLE.pop()
        except IndexError:
            worker = Worker()
        worker.inbox.put(self)


def refuse_in_queue() -> None:
    """DriverError on the thread of a worker, which would wait for itself."""
    if isinstance(threading.current_thread(), Worker):
        raise DriverError(Result.NOT_PERMITTED, "a callback of a stream must not wait for work")


__all__ = ["Mark", "Queue", "Work"]

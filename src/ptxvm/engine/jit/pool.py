"""Threads of the host that wait for work: starting one takes longer than many a grid."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

WAITING: list[Worker] = []


class Worker(threading.Thread):
    """A thread that does one thing after another, and ends with the process."""

    def __init__(self) -> None:
        super().__init__(name="ptxvm", daemon=True)
        self.inbox: SimpleQueue[tuple[Callable[[], None], threading.Lock]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Wait, work, and say so."""
        while True:
            work, busy = self.inbox.get()
            try:
                work()
            finally:
                WAITING.append(self)
                busy.release()
                del work


class Task:
    """Work that another thread does; it must raise nothing."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._busy = threading.Lock()
        self._busy.acquire()
        try:
            worker = WAITING.pop()
        except IndexError:
            worker = Worker()
        worker.inbox.put((work, self._busy))

    def wait(self) -> None:
        """Until it is done."""
        self._busy.acquire()
        self._busy.release()


def processors() -> int:
    """How many threads can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def usual_threads() -> int:
    """As many as `PTXVM_THREADS` says, else one for each processor that this process may use."""
    text = os.environ.get("PTXVM_THREADS", "")
    if not text:
        return processors()
    if not text.isdigit() or not int(text):
        raise ValueError(f"PTXVM_THREADS is a number of threads, not {text!r}")
    return int(text)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WAITING.clear)  # a child has none of the threads

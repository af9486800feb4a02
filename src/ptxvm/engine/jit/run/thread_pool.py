"""A pool of host threads: starting a thread takes longer than a small grid."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from ptxvm.algebra.float_environment import DefaultEnvironment

WAITING: list[Worker] = []


class Worker(threading.Thread):
    """A daemon thread that runs tasks one after another."""

    def __init__(self) -> None:
        super().__init__(name="ptxvm", daemon=True)
        self.inbox: SimpleQueue[tuple[Callable[[], None], threading.Lock]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Run tasks from the inbox."""
        while True:
            work, busy = self.inbox.get()
            try:
                with DefaultEnvironment():
                    work()
            finally:
                WAITING.append(self)
                busy.release()
                del work


class Task:
    """Work on another thread; it must not raise."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._busy = threading.Lock()
        self._busy.acquire()
        try:
            worker = WAITING.pop()
        except IndexError:
            worker = Worker()
        worker.inbox.put((work, self._busy))

    def wait(self) -> None:
        """Wait until the work is done."""
        self._busy.acquire()
        self._busy.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WAITING.clear)  # a child has none of the threads

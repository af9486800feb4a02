"""The log of errors that a client reads: a line for each call that fails (driver API, "Error Log Management Functions")."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

from ptxvm.driver.results import BuildError, DriverError, Result
from ptxvm.named_tuple import NamedTuple

ROOM = 25_600  # bytes that the log keeps
EXPECTED = frozenset({Result.NOT_READY})  # answers, and no errors
LOG = logging.getLogger("ptxvm.libcuda")
Listener = Callable[[str], None]


class LogLine(NamedTuple):
    """A line, and its number in the process."""

    number: int
    text: str


class ErrorLog:
    """The last lines, as many as there is room for, and the functions that are called with each new one."""

    def __init__(self) -> None:
        self.entries: deque[LogLine] = deque()
        self.next = 0
        self.listeners: dict[int, Listener] = {}
        self._bytes = 0
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def add(self, name: str, wrong: Exception) -> None:
        """Enter the error of a function, of the driver or the runtime.

        How a program is to be built is told to the user, too, once: many programs do not look at the error.
        """
        told = isinstance(wrong, BuildError) and str(wrong) not in self._told
        if told:
            self._told.add(str(wrong))
        LOG.log(logging.WARNING if told else logging.INFO, "ptxvm: %s: %s", name, wrong)
        if isinstance(wrong, DriverError) and wrong.result in EXPECTED:
            return
        text = f"[{datetime.now(UTC):%H:%M:%S.%f}][{threading.get_native_id()}][CUDA][E] {name}: {wrong}"
        with self._lock:
            self.entries.append(LogLine(self.next, text))
            self.next += 1
            self._bytes += len(text) + 1
            while self._bytes > ROOM:
                self._bytes -= len(self.entries.popleft().text) + 1
        for listener in list(self.listeners.values()):
            listener(text)

    def since(self, number: int) -> list[str]:
        """The lines from a number on, and first a line that says how many there is no room for."""
        kept = [each for each in list(self.entries) if each.number >= number]
        gone = (kept[0].number if kept else self.next) - number
        return [f"[CUDA][W] {gone} earlier lines are not kept"] * (gone > 0) + [each.text for each in kept]


@cache
def error_log() -> ErrorLog:
    """The log of the process."""
    return ErrorLog()


__all__ = ["ErrorLog", "Listener", "error_log"]

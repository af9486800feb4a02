"""A worker process as a copy of this process: it has imported what takes most of the time that a new one needs.

A copy has one thread, the one that made it.  So this process must have no other, and no LLVM, which has threads of its own;
else a new process is started.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

import numpy as np

STDIN, STDOUT, STDERR = range(3)
OPEN = "/proc/self/fd"
COMPILER = "llvmlite"


def may_fork() -> bool:
    """May this process be copied?  Systems other than Linux have libraries that do not survive it."""
    return sys.platform == "linux" and COMPILER not in sys.modules and threading.active_count() == 1


class ForkedProcess:
    """A copy of this process, with what a `subprocess.Popen` has that a worker needs."""

    def __init__(self, work: Callable[[], None], keep: int, errors: int, environment: Mapping[str, str]) -> None:
        """It does some work, with one descriptor and its environment, writes to `errors`, and ends."""
        self.returncode: int | None = None
        with warnings.catch_warnings():  # Python counts the threads of NumPy's libraries, which are made for this
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            run_and_end(work, keep, errors, environment)

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it; None where it has not ended."""
        return self._status(os.WNOHANG)

    def wait(self) -> int:
        """Wait for its end; its exit status, or the negative number of the signal that ended it."""
        code = self._status(0)
        assert code is not None  # noqa: S101 - for mypy
        return code

    def _status(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def run_and_end(work: Callable[[], None], keep: int, errors: int, environment: Mapping[str, str]) -> NoReturn:
    """In the copy: give back what belongs to the original, do the work, and end with no clean-up of the original's."""
    code = 1
    try:
        gc.freeze()  # what the original has is not collected here: it may close descriptors, whose numbers others have now
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, standard in ((nothing, STDIN), (nothing, STDOUT), (errors, STDERR)):
            os.dup2(descriptor, standard)
        for descriptor in {int(each) for each in os.listdir(OPEN)} - {STDIN, STDOUT, STDERR, keep}:  # noqa: PTH208
            with suppress(OSError):  # the one that listed them
                os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(STDIN), open(STDOUT, "w"), open(STDERR, "w", buffering=1)  # noqa: PTH123, SIM115
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        random.seed()
        np.random.seed()  # noqa: NPY002 - copies would draw the same numbers
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the original reads it
        traceback.print_exc(file=sys.__stderr__ if sys.stderr is None else sys.stderr)
    finally:
        os._exit(code)


__all__ = ["ForkedProcess", "may_fork"]

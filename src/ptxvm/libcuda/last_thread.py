"""The end of a program whose main thread has called pthread_exit: it comes with the last thread of the program.

POSIX: the process exits as if exit(0) was called when its last thread ends.  The threads of streams, which end with the
process only, are none of the program's.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

from ptxvm.driver.context import STREAMS

TASKS = Path("/proc/self/task")
INTERVAL = 0.02  # seconds between looks at the threads
LOOKS = 5  # that must find all of them quiet: one takes them at different times
FUTEX = ("202", "98")  # the number of that call, of x86-64 and aarch64
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def watch_main_thread() -> None:
    """Watch for the end of the main thread, if that is the calling one: exit() does not call the destructors of its keys."""
    if threading.get_native_id() == os.getpid():
        library, key = ctypes.CDLL(None), ctypes.c_uint()
        library.pthread_key_create(ctypes.byref(key), MAIN_THREAD_ENDS)
        library.pthread_setspecific(key, ctypes.c_void_p(1))


def exit_with_the_last_thread() -> None:
    """Wait until the program has no thread left, and exit."""
    quiet = 0
    while quiet < LOOKS:
        time.sleep(INTERVAL)
        quiet = 0 if is_at_work() else quiet + 1
    ctypes.CDLL(None).exit(0)


def is_at_work() -> bool:
    """Has a stream work, or does a thread run that Python has not started?

    A thread that waits for another without a limit of time, while all do, is one of a pool of some library: NumPy has one.
    """
    if any(not each.queue.is_idle for each in list(STREAMS)):
        return True
    first, foreign = threading.main_thread(), threading._DummyThread  # noqa: SLF001 - Python has seen them, and not started
    ours = {each.native_id for each in threading.enumerate() if each is not first and not isinstance(each, foreign)}
    others = [each for each in TASKS.iterdir() if int(each.name) not in ours and int(each.name) != os.getpid()]
    return not all(map(waits_without_limit, others))


def waits_without_limit(task: Path) -> bool:
    """Is a thread in the system's call for locks, without a limit of time (futex(2))?  So is one that has just ended."""
    try:
        number, *arguments = (task / "syscall").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return True
    except OSError:  # the system does not tell
        return False
    return number in FUTEX and int(arguments[3], 16) == 0


def main_thread_ends(_: int) -> None:
    """The main thread calls the destructors of its keys."""
    threading.Thread(target=exit_with_the_last_thread, name="last thread", daemon=True).start()


MAIN_THREAD_ENDS = DESTRUCTOR(main_thread_ends)

__all__ = ["watch_main_thread"]

"""State of each thread of a client, also of threads that Python did not start.

In such a thread each callback gets a new thread state of Python, which is deleted at its end with all thread-local data.
So the first callback retains the state (Python/C API, "PyGILState_Ensure"), and the end of the thread deletes it.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import sys
import threading
from functools import cache

PACKAGES = ("ptxvm.libcuda.", "ptxvm.libcudart.")  # whose functions C calls
SOON = 0.01  # seconds, in which a callback returns to C
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
STATE_OF_THREAD = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", ctypes.pythonapi))


class PerThread(threading.local):
    """Data of each thread, which stays from one callback to the next."""

    def __init__(self) -> None:
        if called_by_c():
            ctypes.pythonapi.PyGILState_Ensure()
            ctypes.CDLL(None).pthread_setspecific(key(), ctypes.c_void_p(STATE_OF_THREAD()))


def raise_later(wrong: type[BaseException]) -> None:
    """Raise an exception of a signal handler (Ctrl-C) again in this thread, when the call of C has returned."""
    thread = threading.get_ident()
    if wrong is KeyboardInterrupt:  # a signal interrupts a blocking call; an exception set for another thread does not
        threading.Timer(SOON, signal.pthread_kill, (thread, signal.SIGINT)).start()
        return
    wanted = ctypes.py_object(wrong)
    threading.Timer(SOON, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), wanted)).start()


def called_by_c() -> bool:
    """Did C call the outermost function of this thread, so that Python does not know the thread?"""
    frame = sys._getframe()  # noqa: SLF001 - only the frames tell
    while frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).startswith(PACKAGES)


@cache
def key() -> ctypes.c_uint:
    """The key with the destructor for the end of a thread, as long as Python runs."""
    made = ctypes.c_uint()
    libc = ctypes.CDLL(None)
    libc.pthread_key_create(ctypes.byref(made), ENDED)
    atexit.register(libc.pthread_key_delete, made)
    return made


def ended(state: int) -> None:
    """A thread of the client ends; this callback has a new state: the C library has already cleared the thread's."""
    ctypes.pythonapi.PyThreadState_Clear(ctypes.c_void_p(state))
    ctypes.pythonapi.PyThreadState_Delete(ctypes.c_void_p(state))


ENDED = DESTRUCTOR(ended)

__all__ = ["PerThread", "raise_later"]

"""State of each thread of a client, of threads that Python did not start too.

A callback in such a thread gets a state of Python's that ends with the callback, and with it all that the thread keeps.  So the
first callback retains that state (Python/C API, "PyGILState_Ensure"), and the end of the thread deletes it.
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
    """What each thread has of its own; it stays from one callback to the next."""

    def __init__(self) -> None:
        if called_by_c():
            ctypes.pythonapi.PyGILState_Ensure()
            ctypes.CDLL(None).pthread_setspecific(key(), ctypes.c_void_p(STATE_OF_THREAD()))


def raise_later(wrong: type[BaseException]) -> None:
    """Raise what the handler of a signal raised (Ctrl-C) in this thread again, when the call of C has returned."""
    thread = threading.get_ident()
    if wrong is KeyboardInterrupt:  # a signal ends what blocks; an exception for another thread does not
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
    """The key of what is called when a thread ends, as long as Python runs."""
    made = ctypes.c_uint()
    libc = ctypes.CDLL(None)
    libc.pthread_key_create(ctypes.byref(made), ENDED)
    atexit.register(libc.pthread_key_delete, made)
    return made


def ended(state: int) -> None:
    """A thread of the client ends; this callback has a state of its own: the C library has forgotten that of the thread."""
    ctypes.pythonapi.PyThreadState_Clear(ctypes.c_void_p(state))
    ctypes.pythonapi.PyThreadState_Delete(ctypes.c_void_p(state))


ENDED = DESTRUCTOR(ended)

__all__ = ["PerThread", "raise_later"]

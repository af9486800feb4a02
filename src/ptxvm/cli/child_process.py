"""A program that runs as a child: signals are forwarded to it, and it does not outlive its parent.

Signals of the terminal (Ctrl-C) come from the kernel, to all processes of the group: the child has them already.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
WATCHED = FORWARDED | {signal.SIGCHLD}
FROM_KERNEL = 0x80  # SI_KERNEL, the origin of a signal
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
MOMENT = 1.0  # seconds; the end of a child has no signal where SIGCHLD is ignored
LIBRARY = ctypes.CDLL(None)


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; its status, below 0 for a signal.  OSError where it does not start."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    try:
        child = subprocess.Popen(  # noqa: S603 - the program that the user names
            list(command),
            env=environment,
            preexec_fn=partial(begin, before, os.getpid()),  # noqa: PLW1509 - there is one thread
        )
        while (status := child.poll()) is None:
            came = signal.sigtimedwait(WATCHED, MOMENT)
            if came is not None and came.si_signo in FORWARDED and came.si_code != FROM_KERNEL:
                child.send_signal(came.si_signo)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that came at the end was for the program
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return status


def begin(mask: set[int | signal.Signals], parent: int) -> None:
    """In the child, before its program: unblock signals, and end when the parent ends, even by SIGKILL."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    LIBRARY.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


__all__ = ["run"]

"""Functions that the campaigns of the tests call, in other processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np


def passes(n: int) -> None:
    """Does nothing."""


def odd_fails(n: int) -> None:
    """Fails for odd numbers."""
    assert n % 2 == 0, f"{n} is odd"


def fails_for_4(n: int, **others: object) -> None:
    """Fails for 4, whatever the others are."""
    assert n != 4, f"{n} is 4"


def noted(n: int, folder: str) -> None:
    """Writes that it ran: a byte in a file of its own for each time."""
    with Path(folder, str(n)).open("ab") as file:
        file.write(b".")
    time.sleep(0.01)


def dies_once(n: int, folder: str) -> None:
    """Ends its process the first time that it is called with 3."""
    noted(n, folder)
    if n == 3 and Path(folder, "3").stat().st_size == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def always_dies(n: int) -> None:
    """Ends its process for 2."""
    if n == 2:
        os.kill(os.getpid(), signal.SIGSEGV)


def sleeps(n: int) -> None:
    """Takes very long for 1."""
    if n == 1:
        time.sleep(100)


def allocates(n: int) -> None:
    """Takes n MiB."""
    np.ones(n << 20, np.uint8)


def fails_from(n: int, m: int) -> None:
    """Fails where n is 7 or more, whatever m is."""
    if n >= 7:
        raise KeyError(n)


def fails_in_two_ways(n: int, m: int) -> None:
    """Fails in one way where n is 1, and in another where m is 1 elsewhere."""
    if n == 1:
        raise KeyError(n)
    if m == 1:
        raise IndexError(m)


def saxpy(n: int, a: float, x: np.ndarray, y: np.ndarray) -> None:
    """What the example saxpy computes."""
    y += np.float32(a) * x


def wrong_saxpy(n: int, a: float, x: np.ndarray, y: np.ndarray) -> None:
    """Not what it computes, from the hundredth element on."""
    saxpy(n, a, x, y)
    y[100:] += 1


def sleeps_long(n: float) -> None:
    """Takes `n` seconds."""
    time.sleep(n)


def exits(n: int) -> None:
    """Calls `sys.exit` with 2 for 2."""
    if n == 2:
        sys.exit(n)


def works(n: float) -> None:
    """Takes `n` seconds of a processor."""
    end = time.process_time() + n
    while time.process_time() < end:
        pass


def leaves_a_process(n: int, started: str) -> None:
    """For 1 starts a process that lives on, and notes it in a file; for 2 starts one that raises; for 3 ends its own."""
    if n == 3:
        os._exit(1)
    if n in (1, 2) and (child := os.fork()) == 0:
        if n == 2:
            raise KeyError(n)
        time.sleep(100)
        os._exit(0)
    if n == 1:
        Path(started).write_text(str(child), encoding="ascii")
    if n == 2:
        os.waitpid(child, 0)

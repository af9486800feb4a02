"""The limits of a launch: instructions of its threads, and seconds."""

from __future__ import annotations

import time

import numpy as np

from ptxvm.diagnostics.errors import Fault, Place

UNLIMITED = 1 << 62  # instructions


class Limits:
    """The limits of one launch, which its child grids share.

    `steps` counts the instructions that all threads execute together, as the result's `thread_instructions` does; `left`
    is how many they still may, in memory that compiled code shares.  Seconds are those of the clock on the wall.
    """

    def __init__(self, steps: int | None, timeout: float | None) -> None:
        self.steps, self.timeout = steps, timeout
        self.left = np.array([UNLIMITED], np.int64)
        self.ends = None if timeout is None else time.monotonic() + timeout
        self.renew()

    @property
    def counts(self) -> bool:
        """Are instructions limited?"""
        return self.steps is not None

    def renew(self) -> None:
        """Reset the instructions, for another run of the grid; the clock goes on."""
        self.left[0] = UNLIMITED if self.steps is None else self.steps

    def spend(self, count: int) -> int:
        """Count executed instructions; returns how many are left, below 0 beyond the limit."""
        self.left[0] -= count
        return int(self.left[0])

    @property
    def late(self) -> bool:
        """Is the time up?"""
        return self.ends is not None and time.monotonic() > self.ends

    def overrun(self, place: Place) -> Fault:
        """The error for too many executed instructions."""
        return Fault(
            "step-budget", f"the grid did not end within {self.steps} steps, the instructions of its threads", place=place
        )

    def timed_out(self, place: Place) -> Fault:
        """The error for a launch that takes too long."""
        return Fault("timeout", f"the grid did not end within {self.timeout:g} seconds", place=place)

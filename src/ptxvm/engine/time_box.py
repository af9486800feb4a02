"""Time boxes: a run that takes long is given up, or the host goes on beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ptxvm.engine.limits import Limits

SECONDS = 0.3
"""The time of the interpreter for a launch that compiled code could judge too: about as long as a compilation takes."""
HOST_WAITS = 5.0
"""Seconds after which a kernel that may wait for the host is taken to do so: the host no longer waits for the kernel."""


class GivenUp(Exception):  # noqa: N818 - no error: another engine runs the grid
    """The time was up before the grid ended."""


class TimeBox(Limits):
    """The limits of a launch, and an action that runs once after some seconds; it may raise `GivenUp`.

    The seconds begin with the first instruction, not with the compilation.
    """

    def __init__(self, limits: Limits | None, seconds: float, act: Callable[[], None]) -> None:
        super().__init__(None, None)
        if limits is not None:
            self.steps, self.timeout, self.left = limits.steps, limits.timeout, limits.left
        self._limits, self._seconds, self._act = limits, seconds, act
        self._until: float | None = None  # set when the run first asks `late`

    @property
    def late(self) -> bool:
        """Is the time limit of the launch over?  Runs the action when the time box is."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        if now >= self._until:
            self._until = math.inf
            self._act()
        return self._limits is not None and self._limits.late

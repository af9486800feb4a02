"""Runs that do something once when they take long: they are given up, or the host goes on beside them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ptxvm.engine.limits import Limits

SECONDS = 0.3
"""How long the interpreter runs what compiled code may judge sooner: about what it takes to compile a kernel."""
PATIENCE = 5.0
"""How many seconds a kernel runs for which the host waits, and that may wait for the host."""


class GivenUp(Exception):  # noqa: N818 - nothing is wrong: the grid runs another way
    """The run ended before the grid did."""


class TimeBox(Limits):
    """The limits of a launch, and what to do once after so many seconds of its run; that may raise `GivenUp`."""

    def __init__(self, limits: Limits | None, seconds: float, act: Callable[[], None]) -> None:
        super().__init__(None, None)
        if limits is not None:
            self.steps, self.timeout, self.left = limits.steps, limits.timeout, limits.left
        self._limits, self._seconds, self._act = limits, seconds, act
        self._until: float | None = None  # the time counts from the first question on: compiling is no run

    @property
    def late(self) -> bool:
        """Is the time of the launch up?"""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        if now >= self._until:
            self._until = math.inf
            self._act()
        return self._limits is not None and self._limits.late

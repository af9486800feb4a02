"""A run on the interpreter that is given up where compiled code may answer sooner: its work is known only when it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ptxvm.engine.limits import Limits

SECONDS = 0.3
"""How long a run goes on unasked: about what it takes to compile a kernel."""


class GivenUp(Exception):  # noqa: N818 - nothing is wrong: the grid runs another way
    """The run ended before the grid did."""


class TimeBox(Limits):
    """The limits of a launch for a run that asks, once and after a while, whether to give up."""

    def __init__(self, limits: Limits | None, gives_up: Callable[[], bool]) -> None:
        super().__init__(None, None)
        if limits is not None:
            self.steps, self.timeout, self.left, self.ends = limits.steps, limits.timeout, limits.left, limits.ends
        self._gives_up = gives_up
        self._until = time.monotonic() + SECONDS

    @property
    def late(self) -> bool:
        """Is the time up?"""
        if time.monotonic() > self._until:
            self._until = math.inf
            if self._gives_up():
                raise GivenUp(SECONDS)
        return super().late

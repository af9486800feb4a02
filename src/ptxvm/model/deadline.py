"""The deadline of a search, which checks from time to time whether time is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[tuple[float, float] | None] = ContextVar("deadline", default=None)
"""When the time is over, and how much it was."""


class OutOfTime(Exception):  # noqa: N818 - nothing is wrong
    """There is no answer yet, and no more time."""


@contextmanager
def patience(seconds: float | None) -> Iterator[None]:
    """Within so many seconds all has to be done; None is no limit."""
    before = _deadline.set(None if seconds is None else (time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left() -> float | None:
    """How much time there is still; raises OutOfTime where there is none."""
    limit = _deadline.get()
    if limit is None:
        return None
    left = limit[0] - time.monotonic()
    if left < 0:
        raise OutOfTime(f"no answer within {limit[1]:g} seconds")
    return left

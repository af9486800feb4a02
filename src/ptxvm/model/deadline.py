"""The deadline of a search; the search checks it from time to time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[tuple[float, float] | None] = ContextVar("deadline", default=None)
"""The time of the deadline, and the length of the limit in seconds."""


class OutOfTime(Exception):  # noqa: N818 - running out of time is no error
    """The time is over before there is an answer."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Set a limit in seconds for the work inside the context; None is no limit."""
    before = _deadline.set(None if seconds is None else (time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left() -> float | None:
    """The seconds until the deadline, or None without one; raises OutOfTime after it."""
    limit = _deadline.get()
    if limit is None:
        return None
    left = limit[0] - time.monotonic()
    if left < 0:
        raise OutOfTime(f"no answer within {limit[1]:g} seconds")
    return left

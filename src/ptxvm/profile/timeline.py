"""The timeline of a launch: which CTAs each host thread ran, and when."""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident

from ptxvm.named_tuple import NamedTuple


class Piece(NamedTuple):
    """CTAs `first` to `last` - 1, which a host thread ran one after the other, or in step.

    `thread` counts the threads in the order in which they began; the times are seconds since the first piece began.
    """

    thread: int
    first: int
    last: int
    began: float
    ended: float


class Timeline:
    """Records the pieces of a grid that compiled code runs; the seconds are those of the host, not of a GPU."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._found: list[tuple[int, int, int, float, float]] = []

    def ran(self, first: int, last: int, began: float) -> None:
        """This thread has run some CTAs, from a time of `time.perf_counter` until now."""
        with self._lock:
            self._found.append((get_ident(), first, last, began, time.perf_counter()))

    @property
    def pieces(self) -> list[Piece]:
        """The pieces, in the order in which they began."""
        ordered = sorted(self._found, key=lambda each: each[3])
        threads = {thread: number for number, thread in enumerate(dict.fromkeys(each[0] for each in ordered))}
        start = ordered[0][3] if ordered else 0.0
        return [
            Piece(threads[thread], first, last, began - start, ended - start) for thread, first, last, began, ended in ordered
        ]


__all__ = ["Piece", "Timeline"]

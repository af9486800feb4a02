"""Several threads of Python that do the same work at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def at_once(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Do the work for each number in a thread of its own; what one of them raises is raised here."""
    start = threading.Barrier(len(numbers))  # no thread has ended when the last one begins

    def started(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(len(numbers)) as pool:
        for done in [pool.submit(started, number) for number in numbers]:
            done.result()

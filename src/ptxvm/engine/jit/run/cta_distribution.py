"""Distribution of CTAs over host threads."""

from __future__ import annotations

import functools
import os
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from functools import partial

from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine import settings

FIRST, FEW = 16, 32  # CTAs of the first piece, while the time of a CTA is unknown, and the least part of the grid that it is
PIECE = 0.03  # seconds of a piece of the grid; between pieces Python runs, and cools the caches
WORTH = 300e-6  # seconds of work for which it pays to wake another thread
SHARE = 4  # a thread takes this part of what would be its own


class Progress:
    """The progress of a launch: the next CTA, the `rate` in seconds per CTA of the latest, and the `seconds` of all so far."""

    def __init__(self, ctas: range, rate: float | None) -> None:
        self.first, self.next, self.ctas, self.rate, self.seconds = ctas.start, ctas.start, ctas.stop, rate, 0.0

    @property
    def count(self) -> int:
        """The number of CTAs."""
        return self.ctas - self.first

    @property
    def share(self) -> float:
        """The part of the CTAs that have begun."""
        return (self.next - self.first) / self.count

    @property
    def mean(self) -> float | None:
        """The seconds of a CTA, of all that have run, which may differ much from the latest."""
        return self.seconds / (self.next - self.first) if self.seconds else self.rate

    @property
    def remaining(self) -> float:
        """The estimated seconds of work left."""
        return (self.ctas - self.next) * (self.rate or 0.0)


def run(another: Callable[[], Runner], progress: Progress, threads: int) -> None:
    """Run all CTAs of a launch, on several host threads where that pays, else in order on one.

    `another` makes a runner that has entered the launch.
    """
    first = another()
    if first.compiled.facts.cancels:
        run_waves(first)
        return
    if first.compiled.facts.side_by_side:
        first.run(progress.next, progress.ctas)
        return
    least = first.resident if first.in_step else max(1, min(FIRST, progress.count // FEW))
    size = least if progress.rate is None else max(least, int(PIECE / max(progress.rate, 1e-9)))
    while progress.next < min(progress.ctas, first.launch.limit):
        if threads > 1 and progress.ctas - progress.next > 1 and progress.remaining > WORTH:
            spread(first, another, progress, threads)
            return
        start, last = progress.next, min(progress.next + size, progress.ctas)
        began = time.perf_counter()
        if not first.run(start, last):
            return
        took = time.perf_counter() - began
        progress.next, progress.rate, progress.seconds = last, took / (last - start), progress.seconds + took
        if took < PIECE:
            size *= 4


def run_waves(runner: Runner) -> None:
    """Run a grid whose threads may cancel clusters, some clusters after the other."""
    clusters = runner.launch.clusters
    while ctas := clusters.begin(clusters.wave):
        if not runner.run(ctas.start, ctas.stop):
            return


def spread(first: Runner, another: Callable[[], Runner], progress: Progress, threads: int) -> None:
    """Run the remaining CTAs on several threads, each of which takes piece after piece."""
    left = progress.ctas - progress.next
    rate = max(progress.rate or 0.0, 1e-9)
    least, most = max(1, min(int(WORTH / rate), left // (threads * FEW))), max(1, int(PIECE / rate))
    if first.in_step:
        least = most = max(least, min(first.resident, -(-left // threads)))
    launch, busy, lock = first.launch, [0.0], allocate_lock()

    def pieces() -> Iterator[tuple[int, int]]:
        """Large pieces first, and ever smaller ones, so that all threads end at about the same time."""
        while True:
            with lock:
                start = progress.next
                size = min(max(least, min(most, (progress.ctas - start) // (threads * SHARE))), progress.ctas - start)
                progress.next += size
            if not size or start >= launch.limit:
                return
            yield start, start + size

    def work(runner: Runner) -> None:
        began = time.perf_counter()
        for start, end in pieces():
            if not runner.run(start, end):
                break
        busy.append(time.perf_counter() - began)

    from ptxvm.engine.jit.run.thread_pool import Task  # noqa: PLC0415 - short launches need no other thread

    others = [another() for _ in range(min(threads, -(-left // least)) - 1)]
    tasks = [Task(partial(work, runner)) for runner in others]
    work(first)
    for task in tasks:
        task.wait()
    progress.rate, progress.seconds = sum(busy) / left, progress.seconds + sum(busy)


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def usual_threads() -> int:
    """The default number of host threads: `PTXVM_THREADS`, else one for each processor."""
    return settings.threads() or processors()

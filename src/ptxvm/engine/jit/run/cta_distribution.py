"""Distribution of CTAs over host threads."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import count

from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine import settings

FIRST = 16  # CTAs of the first piece, while the time of a CTA is unknown
PIECE = 0.03  # seconds of a piece of the grid; between pieces Python runs, and cools the caches
WORTH = 300e-6  # seconds of work for which it pays to wake another thread
SHARE = 16  # pieces for each thread


class Progress:
    """The progress of a launch: the next CTA, and the `rate` in seconds per CTA."""

    def __init__(self, ctas: int, rate: float | None) -> None:
        self.ctas, self.rate = ctas, rate
        self.next = 0

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
        first.run(0, progress.ctas)
        return
    least = first.resident if first.in_step else FIRST
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
        progress.next, progress.rate = last, took / (last - start)
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
    size = max(1, min(left // (threads * SHARE), int(PIECE / max(progress.rate or 0.0, 1e-9))))
    if first.in_step:
        size = max(size, min(first.resident, -(-left // threads)))
    pieces = count(progress.next, size)
    launch, busy = first.launch, [0.0]

    def work(runner: Runner) -> None:
        began = time.perf_counter()
        for start in pieces:
            if start >= launch.limit or not runner.run(start, min(start + size, progress.ctas)):
                break
        busy.append(time.perf_counter() - began)

    from ptxvm.engine.jit.run.thread_pool import Task  # noqa: PLC0415 - short launches need no other thread

    others = [another() for _ in range(min(threads, -(-left // size)) - 1)]
    tasks = [Task(partial(work, runner)) for runner in others]
    work(first)
    for task in tasks:
        task.wait()
    progress.rate = sum(busy) / left
    progress.next = progress.ctas


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def usual_threads() -> int:
    """The default number of host threads: `PTXVM_THREADS`, else one for each processor."""
    return settings.threads() or processors()

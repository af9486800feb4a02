"""What a campaign costs: cases a second on one process and on several, and what a case costs besides its launch.

The launches are small, so that the campaign itself shows: saxpy on a thousand elements takes some microseconds.
"""

from __future__ import annotations

import heapq
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from ptxvm.api import load
from ptxvm.campaign import pool, spread as spreading
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Done, Job, Outcome
from ptxvm.campaign.parameter_space import ParameterSpace
from ptxvm.campaign.pool import AHEAD, MOST_AHEAD, NAP, Pool
from ptxvm.campaign.results import Results
from ptxvm.campaign.session import campaign
from ptxvm.campaign.spread import PATIENCE, spread
from ptxvm.campaign.work_sharing import WorkSharing

SAXPY = Path(__file__).resolve().parents[1] / "examples" / "saxpy.ptx"
MANDELBROT = Path(__file__).resolve().parent / "mandelbrot.ptx"
CASES = 20_000
WIDTH = 4096
SIMULATED_CASES = 100_000
KNOWN = 1_000_000  # cases of which the memory is measured


class Nothing:
    """Cases that do nothing: what is left is the campaign's own."""

    def run(self, job: Job) -> Outcome:
        """Pass."""
        del job
        return Outcome()


def launches(workers: int, cases: int = CASES) -> float:
    """The seconds of a campaign of small launches, results and page included."""
    tables = {
        "campaign": {"kernel": str(SAXPY)},
        "parameters": {"n": [1000], "seed": range(cases)},
        "launch": {"grid": 8, "block": 128, "args": ["{n}", "2.0", "f32[{n}]=ones", "f32[{n}]=ones"], "seed": 0},
    }
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found = campaign(tables, folder=folder, workers=workers)
        seconds = time.perf_counter() - began
    if found.cases != cases or found.failed:
        raise ValueError(f"the campaign failed: {found}")
    return seconds


def grid(workers: int, width: int = WIDTH, most: int = 20_000) -> float:
    """The seconds of the Mandelbrot set on `width` squared threads: in ranges on some processes, on a thread of this one for 0.

    Of processes it is the whole time: they start, compile the kernel, and send what they wrote.
    """
    kernel, out = load(MANDELBROT).kernel(), np.zeros(width * width, np.uint32)
    args = [out, width, np.float32(3 / width), most]
    if not workers:
        kernel.launch(out.size // 256, 256, args, threads=1)  # compiles it
        return kernel.launch(out.size // 256, 256, args, threads=1).seconds
    began = time.perf_counter()
    found = spread(kernel, out.size // 256, 256, args, workers=workers)
    seconds = time.perf_counter() - began
    if found.reason or not out.any():
        raise ValueError(f"the grid was not cut: {found.reason}")
    return seconds


# ── more workers than this machine has processors: simulated, with costs that are measured ─────────────────────────


class CaseCosts(NamedTuple):
    """The seconds of processor time of a case, in the process of the campaign and in its worker, and of a worker's start.

    `read` is what the campaign takes each time that it reads outcomes, of however many cases.
    """

    campaign: float
    worker: float
    start: float
    read: float


def case_costs(cases: int = CASES) -> CaseCosts:
    """The costs of a small launch: two campaigns of as many cases that read outcomes often and seldom tell two costs apart."""
    (own, workers, often), (seldom_own, _, seldom) = processor_time(cases, NAP), processor_time(cases, 10 * NAP)
    own_alone, start, _ = processor_time(1, NAP)
    read = max((own - seldom_own) / max(often - seldom, 1), 0.0)
    return CaseCosts((own - own_alone - read * often) / cases, (workers - start) / cases, start, read)


def processor_time(cases: int, nap: float) -> tuple[float, float, int]:
    """The processor time of a campaign on one worker, of this process and of the worker; and how often outcomes were read."""
    kinds, reads = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN), list[int]()
    add = Results.add

    def counting(self: Results, done: Iterable[tuple[Done, str]]) -> None:
        reads.append(1)
        add(self, done)

    with (
        mock.patch.object(pool, "NAP", nap),
        mock.patch.object(pool, "AHEAD", 5 * nap),
        mock.patch.object(pool, "MOST_AHEAD", 10 * MOST_AHEAD),
        mock.patch.object(Results, "add", counting),
    ):
        before = [resource.getrusage(kind) for kind in kinds]
        launches(1, cases)
        after = [resource.getrusage(kind) for kind in kinds]
    own, workers = (b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(before, after, strict=True))
    return own, workers, len(reads)


def simulated_launches(workers: int, costs: CaseCosts, cases: int = SIMULATED_CASES) -> float:
    """The seconds of a campaign on so many workers, each with a processor, as the pool gives them cases."""
    ahead = max(1, min(int(AHEAD / costs.worker), MOST_AHEAD))
    held, since = [0] * workers, [costs.start] * workers  # cases that a worker has, and when it began with the first of them
    now, waiting, ended = costs.start, cases, 0
    while ended < cases:
        done = 0
        for n in range(workers):
            count = min(held[n], int((now - since[n]) / costs.worker + 1e-9))
            held[n], since[n], done = held[n] - count, since[n] + count * costs.worker, done + count
        ended += done
        now += done * costs.campaign + costs.read
        for n in range(workers):
            if held[n] <= ahead // 2 and waiting:
                given = min(ahead - held[n], waiting)
                since[n] = since[n] if held[n] else max(now, costs.start)
                held[n], waiting = held[n] + given, waiting - given
        busy = [since[n] + costs.worker for n in range(workers) if held[n]]
        if busy and ended < cases:
            now = max(now, min(busy)) + (NAP if costs.worker < NAP else 0)
    return now


def range_seconds(workers: int, width: int, most: int = 20_000) -> tuple[list[float], float]:
    """The seconds of each range of the Mandelbrot set, cut for so many workers, on one thread; and those of all the rest."""
    seconds = list[float]()

    class Timed(WorkSharing):
        """Notes how long the jobs take."""

        def outcomes(self, jobs: Iterable[Job]) -> Iterator[list[Done]]:
            """Run them."""
            for done in super().outcomes(jobs):
                seconds.extend(each.outcome.seconds for each in done)
                yield done

    kernel, out = load(MANDELBROT).kernel(), np.zeros(width * width, np.uint32)
    args = [out, width, np.float32(3 / width), most]
    with (
        mock.patch.object(spreading, "runner", lambda work, _, __, ___: Timed(work, 1, PATIENCE)),
        mock.patch.dict(os.environ, {"PTXVM_THREADS": "1"}),
    ):
        for _ in range(2):  # the first one compiles
            seconds.clear()
            began = time.perf_counter()
            spread(kernel, out.size // 256, 256, args, workers=workers)
            whole = time.perf_counter() - began
    return seconds, whole - sum(seconds)


def simulated_grid(ranges: Sequence[float], rest: float, workers: int) -> float:
    """The seconds of a grid on so many workers that have started: each takes the next range when it has ended one."""
    free = [0.0] * workers
    for each in ranges:
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free) + rest


def overhead(cases: int = CASES) -> float:
    """The seconds of a case that does nothing, on one process; its start is not counted."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Results(Path(folder, "r.sqlite"), "x") as results,
        Pool(Nothing(), 1, CaseLimits()) as worker,
    ):
        for _ in worker.outcomes([Job(0)]):
            pass
        began = time.perf_counter()
        for done in worker.outcomes(Job(number) for number in range(1, cases + 1)):
            results.add((each, f'{{"n": {each.number}}}') for each in done)
        return (time.perf_counter() - began) / cases


def memory(cases: int = KNOWN) -> int:
    """The bytes that a process needs, at most, to write and find again the results of so many cases."""
    code = f"import campaigns; campaigns.fill({cases})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
    done = subprocess.run(  # noqa: S603 - our own statements
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    return int(done.stdout)


def fill(cases: int) -> None:
    """Write the results of so many cases, find those that are left, and print the most memory that was needed."""
    space = ParameterSpace({"n": range(cases)})
    with tempfile.TemporaryDirectory() as folder, Results(Path(folder, "r.sqlite"), "x") as results:
        for start in range(0, cases, 100):
            numbers = range(start, min(start + 100, cases))
            results.add((Done(Job(n), Outcome(), 1), space.json(space.position(n))) for n in numbers)
        if list(results.waiting(cases)):
            raise ValueError("not all cases have ended")
    print(most_memory())


def most_memory() -> int:
    """The most bytes that this process has had in memory, where `ru_maxrss` counts those of its parent before it as well."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

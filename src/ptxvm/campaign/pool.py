"""A pool of worker processes on this machine, with a time limit for each case and retries after a process has died.

A worker runs its cases in their order and sends each outcome, so that the case that it runs is known at all times: the first
that has none.  When the worker dies, that case is run again, and the others that it had are given to other workers.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from socket import socket
from types import TracebackType

from ptxvm.campaign import worker_process
from ptxvm.campaign.case import Workload
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.frames import Setting, outcome_in, packed
from ptxvm.campaign.outcome import Done, Job, Outcome, Verdict
from ptxvm.campaign.worker_process import WorkerProcess
from ptxvm.diagnostics.errors import Crash

AHEAD = 0.05  # seconds of work that a worker has in advance
MOST_AHEAD = 512  # cases
NAP = 0.01  # seconds
LONGEST_WAIT = 0.1  # seconds
STANDSTILL = 0.5  # seconds by which a wait ends late where this process, or the whole machine, stood still meanwhile


class Pool(AbstractContextManager["Pool"]):
    """Some worker processes; with `keep` they stay for a while after their last case, for another pool that keeps its own.

    When something is received from `stop`, `outcomes` gives up the cases that run.
    """

    def __init__(
        self, workload: Workload, workers: int, limits: CaseLimits, *, keep: bool = False, stop: socket | None = None
    ) -> None:
        self.limits, self.count, self.keep, self.stop = limits, workers, keep, stop
        self.setting = packed(Setting(workload, limits.memory))
        self.environment = worker_process.environment(max(1, (os.cpu_count() or 1) // max(1, workers)))
        self.workers: dict[socket, WorkerProcess] = {}
        self.again: deque[Job] = deque()
        self.attempts: Counter[int] = Counter()
        self.ended = self.seconds = 0.0
        self.failures_to_start = 0

    def outcomes(self, jobs: Iterable[Job], until: float | None = None) -> Iterator[list[Done]]:
        """Run cases; gives those that have ended, as soon as they have.

        At the time `until` (of `time.monotonic`) those that run are given up, and have no outcome.
        """
        waiting = iter(jobs)
        while until is None or time.monotonic() < until:
            self._give(waiting)
            busy = [worker for worker in self.workers.values() if worker.jobs]
            if not busy:
                return
            stop = [] if self.stop is None else [self.stop]
            patience, began = self._patience(busy, until), time.monotonic()
            ready = wait([*(worker.connection for worker in busy), *stop], patience)
            late_by = time.monotonic() - began - patience
            for worker in busy if late_by > STANDSTILL else ():
                worker.since += late_by
            if self.stop in ready:
                break
            if ready and self._mean < NAP:
                time.sleep(NAP)  # more outcomes come meanwhile, and are read and written together
            done = [each for connection in ready for each in self._received(self.workers[connection])]  # type: ignore[index]
            done += self._overdue()
            if done:
                yield done
        self.close()

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, but those that are kept, and forget their cases."""
        for worker in self.workers.values():
            if self.keep and not worker.jobs:
                worker_process.keep(worker)
            else:
                worker.close()
        self.workers.clear()
        self.again.clear()
        self.attempts.clear()

    def _give(self, waiting: Iterator[Job]) -> None:
        """Give each worker as many cases as it may have in advance."""
        ahead = self._ahead()
        while len(self.workers) < self.count:
            job = self._next(waiting)
            if job is None:
                break
            worker = self._worker()
            worker.engage(self.setting)
            self.workers[worker.connection] = worker
            worker.give([job])
        for worker in self.workers.values():
            if len(worker.jobs) <= ahead // 2:
                wanted = (self._next(waiting) for _ in range(max(ahead, 1) - len(worker.jobs)))
                if jobs := [job for job in wanted if job is not None]:
                    worker.give(jobs)

    def _worker(self) -> WorkerProcess:
        """A worker that was kept, or a new one."""
        kept = worker_process.kept(self.environment) if self.keep else None
        return WorkerProcess(self.environment) if kept is None else kept

    def _next(self, waiting: Iterator[Job]) -> Job | None:
        return self.again.popleft() if self.again else next(waiting, None)

    def _ahead(self) -> int:
        """How many cases a worker has in advance: none of long ones, of which another worker would wait for work."""
        return min(int(AHEAD / max(self._mean, 1e-6)), MOST_AHEAD)

    @property
    def _mean(self) -> float:
        """The seconds of a case."""
        return self.seconds / self.ended if self.ended else AHEAD

    def _patience(self, busy: list[WorkerProcess], until: float | None) -> float:
        """The seconds until the first case is late, or it is time to end, but not many at once."""
        now = time.monotonic()
        late = min((worker.since for worker in busy if worker.is_ready), default=now) + self.limits.seconds
        return min(max((late if until is None else min(late, until)) - now, 0.001), LONGEST_WAIT)

    def _received(self, worker: WorkerProcess) -> Iterator[Done]:
        """What a worker has sent, or its death."""
        try:
            contents = worker.reader.frames()
            worker.begin()
            for content in contents:
                found = outcome_in(content)
                if found is None:
                    worker.is_ready, self.failures_to_start = True, 0
                else:
                    yield self._done(worker.jobs.popleft(), found)
        except (EOFError, OSError):
            yield from self._died(worker)

    def _done(self, job: Job, outcome: Outcome) -> Done:
        self.ended += 1
        self.seconds += outcome.seconds
        return Done(job, outcome, self.attempts.pop(job.number, 0) + 1)

    def _died(self, worker: WorkerProcess) -> Iterator[Done]:
        """The case that it ran is run again, if it may be."""
        how = self._remove(worker, kill=False)
        if not worker.is_ready:
            self.again.extendleft(reversed(worker.jobs))
            self.failures_to_start += not worker.was_kept  # which may have ended at this moment
            if self.failures_to_start >= self.limits.attempts:
                raise Crash(f"a worker does not start: {how}")
            return
        job = worker.jobs.popleft()
        self.attempts[job.number] += 1
        self.again.extendleft(reversed(worker.jobs))
        if self.attempts[job.number] < self.limits.attempts:
            self.again.appendleft(job)
            return
        attempts = self.attempts.pop(job.number)
        said = f"it ended its process {attempts} times, with {how}"
        yield Done(job, Outcome(Verdict.DIED, how.partition(":")[0], "", said), attempts)

    def _overdue(self) -> Iterator[Done]:
        """End the workers whose case takes too long, though they had a processor."""
        late = time.monotonic() - self.limits.seconds
        for worker in [each for each in self.workers.values() if each.is_ready and each.jobs and each.since < late]:
            worker.excuse()
            if worker.since >= late or wait([worker.connection], 0):  # what it has sent is read first
                continue
            self._remove(worker, kill=True)
            job = worker.jobs.popleft()
            self.again.extendleft(reversed(worker.jobs))
            said = f"it took longer than {self.limits.seconds:g} seconds"
            late_outcome = Outcome(Verdict.TIMEOUT, "", "", said, self.limits.seconds)
            yield Done(job, late_outcome, self.attempts.pop(job.number, 0) + 1)

    def _remove(self, worker: WorkerProcess, *, kill: bool) -> str:
        del self.workers[worker.connection]
        return worker.close(kill=kill)


__all__ = ["Pool"]

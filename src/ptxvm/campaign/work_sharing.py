"""Work sharing: this process runs jobs too, beside worker processes, which need a second to start.

Its jobs run in the thread that asks for the outcomes: Ctrl-C ends a launch there as it ends any other.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from threading import Lock, Thread
from types import TracebackType

from ptxvm.campaign.case import Workload
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Done, Job
from ptxvm.campaign.pool import Pool

MOMENT = 0.1  # seconds after which a wait looks for what the handlers of signals have to do


class WorkSharing(AbstractContextManager["WorkSharing"]):
    """Some processes, this one among them; the others are kept for a while after their last job.

    This one may run the jobs by a workload of its `own`.
    """

    def __init__(self, workload: Workload, processes: int, limits: CaseLimits, own: Workload | None = None) -> None:
        self.workload = workload if own is None else own
        self.stop, stopped = socket.socketpair()
        self.pool = Pool(workload, processes - 1, limits, keep=True, stop=stopped)
        self.thread: Thread | None = None

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[list[Done]]:
        """Run jobs; those of other processes are given between those of this one, as they end."""
        waiting = OneByOne(jobs)
        found: list[list[Done]] = []
        errors: list[BaseException] = []

        def others() -> None:
            try:
                found.extend(self.pool.outcomes(waiting))
            except BaseException as wrong:  # noqa: BLE001 - it is raised in the thread that asks for the outcomes
                errors.append(wrong)

        if self.pool.count:
            self.thread = Thread(target=others, name="ptxvm workers")
            self.thread.start()
        for job in waiting:
            yield [Done(job, self.workload.run(job), 1)]
            while found:
                yield found.pop(0)
        while self.thread is not None and self.thread.is_alive():
            self.thread.join(MOMENT)
        for each in errors:
            raise each
        yield from found

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None) -> None:
        self.stop.send(b"\0")
        if self.thread is not None:
            self.thread.join()
        self.pool.close()
        self.stop.close()
        if self.pool.stop is not None:
            self.pool.stop.close()


class OneByOne(Iterator[Job]):
    """Jobs that several threads take, each of them once."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs, self._lock = iter(jobs), Lock()

    def __next__(self) -> Job:
        with self._lock:
            return next(self._jobs)


__all__ = ["WorkSharing"]

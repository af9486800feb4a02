"""Cases on a Dask cluster: tasks of some cases each, which a Dask worker runs in a process of its own.

That process has the limits of a case, and its death is a failure of the case alone.  Where a Dask worker itself dies, Dask
gives its task to another, which runs all of its cases again; none is counted twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import islice
from types import TracebackType
from typing import Any
from uuid import uuid4

from ptxvm.campaign.case import Workload
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Done, Job, Outcome, Verdict
from ptxvm.campaign.pool import Pool
from ptxvm.machine.cluster_of_machines import Client

SECONDS = 0.5  # of work in a task
MOST = 1000  # cases of a task
AHEAD = 2  # tasks for each thread of the cluster


class Cluster(AbstractContextManager["Cluster"]):
    """The workers of a Dask scheduler, of its address or a client; with `keep` their processes stay for the next workload."""

    def __init__(self, workload: Workload, scheduler: str | Client, limits: CaseLimits, *, keep: bool = False) -> None:
        self.opened = ExitStack()
        self.client = self.opened.enter_context(client(scheduler))
        self.address, self.keep = address_of(scheduler), keep
        self.campaign, self.workload, self.limits = uuid4().hex, workload, limits
        self.ended = self.seconds = 0.0

    def outcomes(self, jobs: Iterable[Job], until: float | None = None) -> Iterator[list[Done]]:
        """Run cases; gives those that have ended, as soon as their task has.

        At the time `until` (of `time.monotonic`) the tasks that run are cancelled, and their cases have no outcome.
        """
        from distributed import as_completed  # noqa: PLC0415

        waiting, workload = iter(jobs), self.client.scatter(self.workload, broadcast=True, hash=False)
        tasks: dict[Any, list[Job]] = {}
        seconds = None if until is None else max(until - time.monotonic(), 0.0)
        completed: Any = as_completed(loop=self.client.loop, timeout=seconds)  # type: ignore[no-untyped-call]
        while True:
            while len(tasks) < AHEAD * max(1, sum(self.client.nthreads().values())) and (some := self._some(waiting)):
                task = self.client.submit(run_task, self.campaign, workload, self.limits, some, keep=self.keep, pure=False)
                tasks[task] = some
                completed.add(task)
            if not tasks:
                return
            try:
                task = next(completed)
            except TimeoutError:
                self.client.cancel(list(tasks))
                return
            done = self._done(task, tasks.pop(task))
            self.ended += len(done)
            self.seconds += sum(each.outcome.seconds for each in done)
            yield done

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None) -> None:
        self.opened.close()

    def _some(self, waiting: Iterator[Job]) -> list[Job]:
        """The cases of a task: as many as take some time together."""
        mean = self.seconds / self.ended if self.ended else SECONDS
        return list(islice(waiting, max(1, min(MOST, int(SECONDS / max(mean, 1e-6))))))

    def _done(self, task: Any, jobs: list[Job]) -> list[Done]:  # noqa: ANN401 - Dask has no types
        from distributed import KilledWorker  # noqa: PLC0415
        from distributed.client import FutureCancelledError  # noqa: PLC0415

        try:
            return task.result()  # type: ignore[no-any-return]
        except KilledWorker as wrong:
            return [Done(job, Outcome(Verdict.DIED, "Dask worker", "", str(wrong)), 1) for job in jobs]
        except FutureCancelledError:
            raise ValueError(f"the scheduler at '{self.address}' has ended, and the cases that ran with it") from None


def address_of(scheduler: str | Client) -> str:
    """The address of a scheduler, of which that or a client is given."""
    return scheduler if isinstance(scheduler, str) else str(scheduler.scheduler.address)


def client(scheduler: str | Client) -> AbstractContextManager[Any]:
    """A client of the Dask scheduler, of its address, for the time of `with`; one that is given stays."""
    if not isinstance(scheduler, str):
        return nullcontext(scheduler)
    opened: AbstractContextManager[Any] = connected(scheduler)
    return opened


def connected(address: str) -> Any:  # noqa: ANN401 - Dask has no types
    """A new client of the Dask scheduler at an address."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError:
        raise ImportError("a Dask cluster needs the extra `dask`: pip install 'ptxvm[dask]'") from None
    try:
        return Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
    except ValueError as wrong:
        raise ValueError(f"'{address}' is no address of a scheduler, such as tcp://10.0.0.1:8786: {wrong}") from None
    except OSError as wrong:
        raise ValueError(f"no scheduler answers at '{address}': {wrong}") from None


def workers_that_fail(scheduler: str | Client, test: Callable[[], bool]) -> list[str]:
    """The workers of a scheduler in which a test does not hold."""
    with client(scheduler) as asked:
        return [worker for worker, holds in asked.run(test).items() if not holds]


class Own(threading.local):
    """Of a thread of a Dask worker: its process for the cases of a campaign."""

    campaign = ""
    pool: Pool | None = None


OWN = Own()


def run_task(campaign: str, workload: Workload, limits: CaseLimits, jobs: list[Job], *, keep: bool) -> list[Done]:
    """On a Dask worker: run some cases in the process of its thread."""
    if OWN.pool is None or OWN.campaign != campaign:
        if OWN.pool is not None:
            OWN.pool.close()
        OWN.campaign, OWN.pool = campaign, Pool(workload, 1, limits, keep=keep)
    return [each for done in OWN.pool.outcomes(jobs) for each in done]


__all__ = ["Cluster", "address_of", "workers_that_fail"]

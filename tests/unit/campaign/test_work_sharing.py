"""This process runs jobs beside workers; whatever ends its own ends theirs."""

import os
import signal
import time
from collections.abc import Callable
from subprocess import Popen

import pytest

from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.work_sharing import WorkSharing
from ptxvm.diagnostics.errors import Crash


class Meanwhile:
    """A workload of this process alone: it does something when another process has a job."""

    def __init__(self, sharing: WorkSharing, what: Callable[[], None]) -> None:
        self.sharing, self.what = sharing, what

    def run(self, job: Job) -> Outcome:
        del job
        pool = self.sharing.pool
        while not pool.ended and not any(worker.is_ready and worker.jobs for worker in list(pool.workers.values())):
            time.sleep(0.01)
        self.what()
        return Outcome(value=os.getpid())


def test_ctrl_c_in_the_own_job_ends_those_of_workers(sleepers: DeclaredWorkload) -> None:
    """The worker sleeps for 100 seconds, and its process is ended and not kept."""
    processes: list[Popen[bytes]] = []

    def interrupt() -> None:
        processes.extend(worker.process for worker in sharing.pool.workers.values())
        raise KeyboardInterrupt

    with WorkSharing(sleepers, 2, CaseLimits(1e6)) as sharing:
        sharing.workload = Meanwhile(sharing, interrupt)
        with pytest.raises(KeyboardInterrupt):
            list(sharing.outcomes([Job(1), Job(1)]))
    ends = [process.returncode for process in processes]
    assert ends in ([-signal.SIGKILL], [1])  # it is killed, or sooner sees that nobody is at the other end


def test_each_job_runs_once_here_or_there(sleepers: DeclaredWorkload) -> None:
    """This process has one of two jobs, and does not end it before the worker has the other."""
    with WorkSharing(sleepers, 2, CaseLimits(1e6)) as sharing:
        sharing.workload = Meanwhile(sharing, lambda: None)
        done = [each for some in sharing.outcomes([Job(0), Job(2)]) for each in some]
    assert sorted(each.number for each in done) == [0, 2]
    assert [each.outcome.value for each in done] == [os.getpid(), None]


def test_what_is_wrong_with_workers_is_raised_here(sleepers: DeclaredWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise Crash("a worker does not start")

    with WorkSharing(sleepers, 2, CaseLimits(1e6)) as sharing:
        monkeypatch.setattr(sharing.pool, "outcomes", wrong)
        with pytest.raises(Crash, match="does not start"):
            list(sharing.outcomes([Job(0)]))

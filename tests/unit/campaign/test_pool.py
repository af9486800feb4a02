"""Workers that die, hang and allocate: their cases are failures by name, and no other case is lost or run twice."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from ptxvm.campaign import pool, worker_process
from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Job, Verdict
from ptxvm.campaign.pool import Pool
from ptxvm.campaign.results import read_cases
from ptxvm.campaign.run_delay import delay_since, run_delays
from ptxvm.campaign.session import Campaign
from ptxvm.campaign.worker_process import WorkerProcess

Run = Callable[..., Campaign]
Instead = Callable[[Callable[[WorkerProcess], object]], list[WorkerProcess]]


def rows(found: Campaign) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(found.results)) as connection:
        return [(each.parameters["n"], each.outcome.verdict, each.attempts) for each in read_cases(connection)]


def test_a_worker_that_dies_costs_its_running_case_only(run: Run, tmp_path: Path) -> None:
    """The files count the runs: the case during which it died ran twice, all others once."""
    folder = tmp_path / "runs"
    folder.mkdir()
    found = run("dies_once", {"n": {"range": [12]}, "folder": [str(folder)]}, workers=2)
    assert {file.name: file.stat().st_size for file in folder.iterdir()} == {str(n): 1 + (n == 3) for n in range(12)}
    assert rows(found) == [(n, Verdict.PASSED, 1 + (n == 3)) for n in range(12)]


def test_a_case_that_ends_its_process_three_times_is_a_failure_by_name(run: Run) -> None:
    found = run("always_dies", {"n": [1, 2, 3]})
    assert rows(found) == [(1, Verdict.PASSED, 1), (2, Verdict.DIED, 3), (3, Verdict.PASSED, 1)]
    (reason,) = found.reasons
    assert (reason.first.outcome.reason, "3 times" in reason.first.outcome.message) == ("died signal SIGSEGV", True)


def test_processes_that_cases_start_do_not_speak_for_their_worker(run: Run, tmp_path: Path) -> None:
    """One lives on when the worker has died, and would keep its socket open; another leaves by the end of the case."""
    started = tmp_path / "started"
    try:
        found = run("leaves_a_process", {"n": [1, 2, 3, 4], "started": [str(started)]}, limits={"seconds": 3, "attempts": 1})
        assert rows(found) == [(n, Verdict.DIED if n == 3 else Verdict.PASSED, 1) for n in (1, 2, 3, 4)]
    finally:
        os.kill(int(started.read_text(encoding="ascii")), signal.SIGKILL)


def test_a_case_that_calls_exit_fails_and_its_worker_goes_on(run: Run) -> None:
    found = run("exits", {"n": [1, 2, 3]})
    assert rows(found) == [(1, Verdict.PASSED, 1), (2, Verdict.ERROR, 1), (3, Verdict.PASSED, 1)]
    assert found.reasons[0].first.outcome.message == "SystemExit: 2"


def test_a_case_that_takes_too_long_is_ended(run: Run) -> None:
    found = run("sleeps", {"n": [0, 1, 2]}, limits={"seconds": 0.3})
    assert rows(found) == [(0, Verdict.PASSED, 1), (1, Verdict.TIMEOUT, 1), (2, Verdict.PASSED, 1)]
    assert "longer than 0.3 seconds" in found.reasons[0].first.outcome.message


def test_a_case_that_allocates_too_much_fails_and_the_next_has_all_of_its_limit(run: Run) -> None:
    found = run("allocates", {"n": [1, 500, 40]}, limits={"memory": 64})
    assert rows(found) == [(1, Verdict.PASSED, 1), (500, Verdict.MEMORY, 1), (40, Verdict.PASSED, 1)]


def test_cases_that_run_at_the_end_of_the_time_are_given_up(sleepers: DeclaredWorkload) -> None:
    """Case 1 sleeps; without a time it would have an outcome.  Others run afterwards."""
    with Pool(sleepers, 1, CaseLimits()) as runner:
        assert list(runner.outcomes([Job(1)], time.monotonic() + 0.5)) == []
        ((done,),) = runner.outcomes([Job(2)])
        assert (done.number, done.outcome.verdict) == (2, Verdict.PASSED)


def test_a_case_is_not_late_by_the_time_for_which_it_had_no_processor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time each worker waits for a processor, as far as the system tells: a case of .4 seconds has taken .2."""
    monkeypatch.setattr(worker_process, "run_delays", lambda _: {"1": time.monotonic_ns() // 2})
    found = run("sleeps_long", {"n": [0.4, 3]}, limits={"seconds": 0.3})
    assert rows(found) == [(0.4, Verdict.PASSED, 1), (3, Verdict.TIMEOUT, 1)]


@pytest.fixture
def instead_of_the_first_wait(monkeypatch: pytest.MonkeyPatch) -> Instead:
    """Has a function called in place of the first wait for a case; gives the workers for which it was."""

    def instead(function: Callable[[WorkerProcess], object]) -> list[WorkerProcess]:
        started, called = list[WorkerProcess](), list[WorkerProcess]()

        class Started(WorkerProcess):
            def __init__(self, environment: Mapping[str, str]) -> None:
                super().__init__(environment)
                started.append(self)

        def waited(connections: list[socket.socket], patience: float) -> list[object]:
            if called or not (some := [each for each in started if each.is_ready and each.jobs]):
                return wait(connections, patience)  # type: ignore[return-value,arg-type]
            called.append(some[0])
            function(some[0])
            return []

        monkeypatch.setattr(pool, "WorkerProcess", Started)
        monkeypatch.setattr(pool, "wait", waited)
        return called

    return instead


def test_a_case_is_not_late_by_the_time_for_which_the_machine_stood_still(run: Run, instead_of_the_first_wait: Instead) -> None:
    """A case of .3 seconds, which may take .6, is stopped for a second, during which this process does nothing either."""

    def stand_still(worker: WorkerProcess) -> None:
        for action, seconds in ((signal.SIGSTOP, 1.0), (signal.SIGCONT, 0.0)):
            worker.process.send_signal(action)
            time.sleep(seconds)

    called = instead_of_the_first_wait(stand_still)
    assert rows(run("works", {"n": [0.3]}, limits={"seconds": 0.6})) == [(0.3, Verdict.PASSED, 1)]
    assert called


def test_an_outcome_that_waits_to_be_read_is_not_late(run: Run, instead_of_the_first_wait: Instead) -> None:
    """A case has sent that it passed, but this process has no time to read that until the case would be late.

    It is the second one: the first may have passed before anybody knows that its worker is ready.
    """
    called = instead_of_the_first_wait(lambda _: time.sleep(0.45))
    found = run("passes", {"n": [1, 2]}, limits={"seconds": 0.2})
    assert rows(found) == [(1, Verdict.PASSED, 1), (2, Verdict.PASSED, 1)]
    assert called


def test_the_delay_is_that_of_the_thread_which_waited_most() -> None:
    assert delay_since({"1": 5_000_000_000, "2": 0}, {"1": 6_000_000_000, "2": 500_000_000, "3": 1_500_000_000}) == 1.5
    assert delay_since({"1": 5}, {}) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_threads_that_share_a_processor_are_delayed() -> None:
    """Linux, Documentation/scheduler/sched-stats: three processes on one processor each wait, two thirds of the time."""
    some = next(iter(os.sched_getaffinity(0)))
    program = (
        f"import os, time; os.sched_setaffinity(0, [{some}]); end = time.monotonic() + .5\nwhile time.monotonic() < end: pass\n"
    )
    program += "print(*open('/proc/self/schedstat').read().split()[1:2], flush=True); input()"
    started = [subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1) for _ in range(3)]
    try:
        for each in started:
            assert each.stdout is not None
            each.stdout.readline()
        found = [delay_since({}, run_delays(each.pid)) for each in started]
        assert min(found) > 0.05
    finally:
        for each in started:
            each.communicate(b"\n")
    assert run_delays(started[0].pid) == {}

"""A campaign on a Dask cluster gives what it gives on this machine."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.cluster import Cluster
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Job, Verdict
from ptxvm.campaign.session import Campaign

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")


pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a cluster whose workers are threads of this process; cases have processes of their own."""
    with distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        yield cluster.scheduler_address


def test_cases_end_as_on_this_machine(run: Callable[..., Campaign], address: str) -> None:
    found = run("always_dies", {"n": {"range": [6]}}, scheduler=address)
    assert found.counts == {Verdict.PASSED: 5, Verdict.DIED: 1}


def test_a_scheduler_that_does_not_answer_is_named(run: Callable[..., Campaign]) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(ValueError, match=r"no scheduler answers at 'tcp://127\.0\.0\.1:1'"),
    ):
        run("passes", {"n": [1]}, scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["cluster", "http://cluster:8786", ""])
def test_what_is_no_address_is_named(run: Callable[..., Campaign], address: str) -> None:
    with pytest.raises(ValueError, match=rf"'{address}' is no address of a scheduler, such as tcp://"):
        run("passes", {"n": [1]}, scheduler=address)


def test_a_scheduler_that_ends_is_named(sleepers: DeclaredWorkload) -> None:
    cluster = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp")
    with Cluster(sleepers, cluster.scheduler_address, CaseLimits(seconds=30)) as runner:
        ending = threading.Timer(1.0, cluster.close)
        ending.start()
        with pytest.raises(ValueError, match=r"the scheduler at 'tcp://.*' has ended"):
            list(runner.outcomes([Job(1)]))
        ending.join()


def test_cases_that_run_at_the_end_of_the_time_are_given_up(sleepers: DeclaredWorkload, address: str) -> None:
    """Case 1 sleeps; without a time it would have an outcome.  Others run afterwards."""
    with Cluster(sleepers, address, CaseLimits(seconds=3)) as runner:
        assert list(runner.outcomes([Job(1)], time.monotonic() + 0.5)) == []
        ((done,),) = runner.outcomes([Job(2)])
        assert (done.number, done.outcome.verdict) == (2, Verdict.PASSED)

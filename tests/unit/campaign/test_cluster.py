"""A campaign on a Dask cluster gives what it gives on this machine."""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ptxvm
from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.cluster import Cluster
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Job, Verdict
from ptxvm.campaign.session import Campaign
from ptxvm.campaign.worker_process import WorkerProcess

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


SHIFT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{
    .reg .u64 %p<4>; .reg .u32 %r<6>; .reg .pred %q;
    ld.param.u64 %p0, [a]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %p1, %r0, 4, %p0;
    LINE
    ret;
}
"""
THREE_TIMES = "ld.global.u32 %r1, [%p1]; mul.lo.u32 %r1, %r1, 3; st.global.u32 [%p1], %r1;"


def test_a_launch_on_the_cluster_of_a_client(address: str, caplog: pytest.LogCaptureFixture) -> None:
    """The client stays open.  Where a grid runs whole, a warning says why."""

    def told() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "ptxvm.campaign"]

    with distributed.Client(address, set_as_default=False) as client:
        kernel, array = ptxvm.load(SHIFT.replace("LINE", THREE_TIMES)).kernel(), np.arange(64, dtype=np.uint32)
        for n in range(1, 4):
            assert kernel.launch(64, 1, [array], cluster=client).grid == (64, 1, 1)
            assert array.tolist() == [3**n * each for each in range(64)]
        assert client.status == "running"
        racing = ptxvm.load(SHIFT.replace("LINE", "st.global.u32 [%p0], %r0;")).kernel()
        with pytest.raises(ptxvm.Fault, match="race: CTAs 0 to 15 and CTAs 16 to 31 write different values to byte 0"):
            racing.launch(64, 1, [array], cluster=client)
        assert not told()
        whole = ptxvm.load(SHIFT.replace("LINE", "red.global.inc.u32 [%p0], 100;")).kernel()
        whole.launch(64, 1, [array], cluster=client)
        assert array[0] == 64
        (said,) = told()
        assert said.startswith("kernel k runs whole, in this process: 'red.global.inc.u32' at line 8")
        with pytest.raises(TypeError, match="no options but grid, block, args, shared and cluster"):
            kernel.launch(64, 1, [array], cluster=client, check="race")


def test_the_process_of_a_worker_stays_for_the_next_workload(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    begun = WorkerProcess._begun
    monkeypatch.setattr(WorkerProcess, "_begun", lambda self, end: started.append(1) or begun(self, end))
    kernel, array = ptxvm.load(SHIFT.replace("LINE", THREE_TIMES)).kernel(), np.arange(64, dtype=np.uint32)
    for _ in range(3):
        ptxvm.spread(kernel, 64, 1, [array], scheduler=address)
    assert 1 <= len(started) <= 2

"""A grid on a cluster has the pages sent that it touches, and no others; what it leaves is what NumPy says."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator

import numpy as np
import pytest

import ptxvm
from ptxvm.campaign import spread
from ptxvm.campaign.grid_range import RangeAccesses, RangeWorkload, remote_arrays
from ptxvm.campaign.page_server import PageAddress, PageServer, RemotePages, address_towards, reaches
from ptxvm.engine.jit.run.paged_array import PAGE

HERE = "127.0.0.1"
GATHER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 a, .param .u64 t, .param .u64 b)
{
    .reg .u64 %d<6>; .reg .u32 %r<6>;
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [t]; ld.param.u64 %d2, [b];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d3, %r0, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
    ld.global.u32 %r3, [%d1]; mad.wide.u32 %d4, %r3, 4, %d0; ld.global.u32 %r4, [%d4];
    ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, %r4; st.global.u32 [%d2], %r5;
    ret;
}
"""


@pytest.fixture(autouse=True)
def _no_connections() -> Iterator[None]:
    """Ends the connections that ranges in this process keep."""
    yield
    remote_arrays.cache_clear()


def test_bytes_of_arrays_are_served(rng: np.random.Generator) -> None:
    array, other = rng.random((1000, 50)), np.arange(7)
    with PageServer({0: array, 3: other[::2]}, HERE) as server:
        pages, room = RemotePages(server.address), np.zeros(100_000, np.uint8)
        pages.fill(0, 150_000, 250_000, room)
        assert room.tobytes() == array.tobytes()[150_000:250_000]
        pages.fill(3, 8, 16, room[:8])
        assert room[:8].view(np.int64).tolist() == [2]
        assert server.sent == 100_008
        del pages


def test_the_key_is_asked_for(rng: np.random.Generator) -> None:
    with PageServer({0: rng.random(10)}, HERE) as server:
        pages = RemotePages(server.address._replace(key=bytes(32)))
        with pytest.raises((EOFError, ConnectionError)):
            pages.fill(0, 0, 8, np.zeros(8, np.uint8))
        assert server.sent == 0


def test_connections_end_with_the_server() -> None:
    with PageServer({0: np.zeros(8, np.uint8)}, HERE) as server:
        pages = RemotePages(server.address)
        pages.fill(0, 0, 8, np.zeros(8, np.uint8))
        assert reaches(server.address)
    with pytest.raises((EOFError, ConnectionError)):
        pages.fill(0, 0, 8, np.zeros(8, np.uint8))
    assert not reaches(server.address)


def test_the_address_is_the_one_that_a_scheduler_sees() -> None:
    with socket.create_server((HERE, 0)) as scheduler:
        assert address_towards(f"tcp://{HERE}:{scheduler.getsockname()[1]}") == HERE
    assert not reaches(PageAddress(HERE, unused_port(), b""))


def unused_port() -> int:
    """A port at which nothing listens."""
    with socket.create_server((HERE, 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_cluster_is_sent_the_pages_that_are_touched(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Threads read 256 KiB of an array of 16 MiB, add to as much of another, and read words in three pages of 64 MiB."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    servers, works = list[PageServer](), list[bytes]()

    class Counted(PageServer):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            servers.append(self)

    def ranges(workload: RangeWorkload, workers: int, scheduler: str | None, own: RangeWorkload) -> list[RangeAccesses]:
        works.append(pickle.dumps(workload))
        return run(workload, workers, scheduler, own)

    run = spread.ranges
    monkeypatch.setattr(spread, "PageServer", Counted)
    monkeypatch.setattr(spread, "ranges", ranges)
    threads, touched = 1 << 16, [3 * PAGE, 500 * PAGE, 900 * PAGE]
    words = np.concatenate([np.arange(each // 4, (each + PAGE) // 4) for each in touched]).astype(np.uint32)
    a = rng.integers(0, 1 << 30, 1 << 24, np.uint32)
    t, b = (rng.integers(0, 1 << 30, 1 << 22, np.uint32) for _ in range(2))
    t[:threads] = rng.choice(words, threads)
    expected = b.copy()
    expected[:threads] += a[t[:threads]]
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        found = ptxvm.spread(
            ptxvm.load(GATHER).kernel(), threads // 256, 256, [a, t, b], workers=1, scheduler=cluster.scheduler_address
        )
    assert (found.reason, found.result.findings) == ("", [])
    assert np.array_equal(b, expected)
    (server,), (work,) = servers, works
    least = 3 * PAGE + 2 * 4 * threads
    assert least <= server.sent <= 2 * least
    assert len(work) < 10_000


@pytest.fixture
def as_a_cluster(monkeypatch: pytest.MonkeyPatch, in_this_process: None) -> None:
    """Ranges run in this process, and are sent what those of a cluster would be."""
    del in_this_process
    monkeypatch.setattr(spread, "address_towards", lambda _: HERE)
    monkeypatch.setattr(spread, "workers_that_fail", lambda *_: [])


@pytest.mark.usefixtures("as_a_cluster")
def test_an_array_that_is_written_against_expectation(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """All ranges run again, and have their own copies of its pages."""
    monkeypatch.setattr(spread, "outputs", lambda _: {})
    monkeypatch.setattr(spread, "written_parameters", lambda _: set())
    threads = 1 << 16
    a, b = (rng.integers(0, 1 << 30, 1 << 20, np.uint32) for _ in range(2))
    t = np.arange(threads, dtype=np.uint32)[::-1].copy()
    expected = b.copy()
    expected[:threads] += a[:threads][::-1]
    found = ptxvm.spread(ptxvm.load(GATHER).kernel(), threads // 256, 256, [a, t, b], workers=2, scheduler="tcp://any")
    assert (found.reason, found.result.findings) == ("", [])
    assert np.array_equal(b, expected)


@pytest.mark.usefixtures("as_a_cluster")
def test_arrays_are_sent_whole_where_a_worker_does_not_reach_this_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(spread, "workers_that_fail", lambda *_: ["tcp://10.0.0.7:1"])
    a, b = np.arange(1 << 20, dtype=np.uint32), np.zeros(1 << 20, np.uint32)
    ptxvm.spread(ptxvm.load(GATHER).kernel(), 4, 256, [a, a.copy(), b], workers=2, scheduler="tcp://any")
    assert b[:1024].tolist() == list(range(1024))
    assert f"arrays are sent whole: tcp://10.0.0.7:1 reach no port of {HERE}" in caplog.text

"""Workers that are kept run what comes next; those that have ended, or have another environment, are not taken."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ptxvm.campaign import worker, worker_process
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.frames import Descriptor
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.pool import Pool
from ptxvm.campaign.worker_process import KEPT, WorkerProcess, close_kept


@dataclass(frozen=True)
class Reads:
    """Reads a file by its descriptor, and tells the process and how many files it has open."""

    file: Descriptor

    def run(self, job: Job) -> Outcome:
        content = os.pread(self.file, 100, job.number)
        is_open = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
        return replace(Outcome(), value=(content, os.getpid(), is_open))


@pytest.fixture(autouse=True)
def none_are_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers find this module, and none is kept before and after."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    close_kept()
    yield
    close_kept()


def read(path: Path) -> tuple[bytes, int, int]:
    """What a worker that may be kept reads in a file behind its first byte, its process, and its open files."""
    with path.open("rb") as file, Pool(Reads(Descriptor(file.fileno())), 1, CaseLimits(), keep=True) as pool:
        ((done,),) = pool.outcomes([Job(1)])
    found = done.outcome.value
    assert isinstance(found, tuple), done.outcome.message
    return found


def kept() -> list[WorkerProcess]:
    return KEPT.get(os.getpid(), [])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / str(n) for n in range(4)]
    for path in paths:
        path.write_text(f" {path.name}")
    return paths


def test_a_kept_worker_is_sent_the_files_of_each_setting(files: list[Path]) -> None:
    found = [read(path) for path in files]
    assert [content for content, _, _ in found] == [b"0", b"1", b"2", b"3"]
    assert len({process for _, process, _ in found}) == 1
    assert len({is_open for _, _, is_open in found}) == 1  # those of earlier settings are closed
    assert len(kept()) == 1


def test_a_worker_that_has_ended_is_not_taken(files: list[Path]) -> None:
    _, first, _ = read(files[0])
    (worker,) = kept()
    worker.process.kill()
    worker.process.wait()
    content, second, _ = read(files[1])
    assert (content, first != second) == (b"1", True)


def test_workers_that_end_as_they_are_taken_are_replaced(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Four end between their poll and their setting: more than a campaign starts in vain."""
    for _ in range(4):
        worker = WorkerProcess(worker_process.environment(os.cpu_count() or 1))
        worker_process.keep(worker)
        worker.process.kill()
        worker.process.wait()
        monkeypatch.setattr(worker.process, "poll", lambda: None)
    assert read(files[2])[0] == b"2"


def test_a_worker_of_another_environment_is_not_taken(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _, first, _ = read(files[0])
    monkeypatch.setenv("PTXVM_TIER", "quick")
    _, second, _ = read(files[1])
    assert first != second
    assert len(kept()) == 2


def test_a_process_does_not_take_the_workers_of_another(monkeypatch: pytest.MonkeyPatch, files: list[Path]) -> None:
    """A forked process has the list of its parent."""
    _, first, _ = read(files[0])
    mine = os.getpid()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: mine + 1)
        _, second, _ = read(files[1])
        close_kept()
    assert first != second
    assert read(files[0])[1] == first


def test_a_worker_that_waits_for_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE", 0.01)
    ours, theirs = socket.socketpair()
    worker.serve(theirs)
    assert ours.recv(1) == b""
    ours.close()

"""Workers that are copies of the process of a campaign: each test has a process of its own, with one thread and no LLVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxvm.campaign import forked_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems start new processes")

CASES = """
import os, random, signal, sys
from pathlib import Path
import numpy as np

def case(n):
    print("a case prints")
    if n == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if n == 4:
        raise ValueError("four")
    if n == 5:
        while True:
            pass
    if n == 6:
        bytearray(1 << 30)
    if n == 7:
        os._exit(9)
    drawn = random.random(), np.random.random()
    threads, opened = os.environ["PTXVM_THREADS"], len(os.listdir("/proc/self/fd"))
    with Path("told").open("a") as told:
        told.write(f"{os.getpid()} {drawn[0]} {drawn[1]} {threads} {opened}\\n")
"""
START = """
import random, sys
import numpy as np
sys.path.insert(0, ".")
from ptxvm.campaign.forked_process import may_fork
from ptxvm.campaign.session import campaign
import cases
"""


def script(folder: Path, text: str) -> subprocess.Popen[str]:
    """A process that runs a text in a folder, in which the cases are a module."""
    (folder / "cases.py").write_text(CASES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    return subprocess.Popen(
        [sys.executable, "-c", START + text],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_copies_end_as_other_workers_do(tmp_path: Path) -> None:
    """They die, hang and fail by name; they print nothing, draw their own numbers, and have no files of the original."""
    held = "random.seed(1); np.random.seed(1); files = [open('cases.py') for _ in range(20)]; assert may_fork()\n"
    limits = "{'seconds': 1, 'memory': 300, 'attempts': 1}"
    run = f"found = campaign(cases.case, {{'n': range(24)}}, limits={limits}, workers=2, shrink=False)\n"
    told = "import json; print(json.dumps({f.parameters['n']: f.outcome.reason for f in found.failures()}))"
    out, err = script(tmp_path, held + run + told).communicate(timeout=500)
    assert err == ""
    assert json.loads(out) == {
        "3": "died signal SIGSEGV",
        "4": "error ValueError at cases.py:11",
        "5": "timeout",
        "6": "memory",
        "7": "died exit status 9",
    }
    rows = [line.split() for line in (tmp_path / "told").read_text().splitlines()]
    assert len(rows) == 19
    processes, of_python, of_numpy, threads, opened = zip(*rows, strict=True)
    assert len(set(processes)) > 2  # those that had died had others in their place
    assert len(set(of_python)) == len(set(of_numpy)) == 19
    assert set(threads) == {str(max(1, (os.cpu_count() or 1) // 2))}
    assert {int(each) for each in opened} <= set(range(7))


@pytest.mark.parametrize("copied", [True, False])
def test_workers_end_with_the_campaign(tmp_path: Path, *, copied: bool) -> None:
    """When it is killed, one that waits and one whose case never ends have nothing to report to."""
    start = f"from ptxvm.campaign import worker_process; worker_process.may_fork = lambda: {copied}\n"
    run = "campaign(cases.case, {'n': [5, 5.5]}, limits={'seconds': 600}, workers=2)"
    process = script(tmp_path, start + run)
    children: list[str] = []
    try:
        while not (tmp_path / "told").exists():  # by the other case
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 60
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    running = [each for each in children if is_running(each)]
    for each in running:
        os.kill(int(each), signal.SIGKILL)
    assert not running


def is_running(process: str) -> bool:
    """Is there a process of that number, which has not ended?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("other", ["a thread", "the compiler"])
def test_a_process_with_threads_is_not_copied(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_process.threading, "active_count", lambda: 2 if other == "a thread" else 1)
    monkeypatch.delitem(sys.modules, forked_process.COMPILER, raising=False)
    if other == "the compiler":
        assert forked_process.may_fork()
        monkeypatch.setitem(sys.modules, forked_process.COMPILER, forked_process)
    assert not forked_process.may_fork()

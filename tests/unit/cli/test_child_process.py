"""Programs of `ptxvm exec` and the signals that end it (prctl(2), "PR_SET_PDEATHSIG"; signal(7))."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxvm.cli import child_process

EXEC = [sys.executable, "-m", "ptxvm", "exec", "--"]
PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(43))
for number in (signal.SIGINT, signal.SIGHUP):  # which the shell ignores in the background
    signal.signal(number, signal.SIG_DFL)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def is_running(process: int) -> bool:
    """Does a process run?  One that has ended may wait for its new parent."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (signal.SIGTERM, 43),
        (signal.SIGINT, 128 + signal.SIGINT),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_signal_that_is_for_exec_alone_ends_the_program(sent: signal.Signals, status: int) -> None:
    """The program handles SIGTERM itself."""
    with subprocess.Popen([*EXEC, sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        program = int(started.stdout.readline())
        assert is_running(program)
        started.send_signal(sent)
        assert started.wait(30) == status
    for _ in range(100):
        if not is_running(program):
            break
        time.sleep(0.05)
    assert not is_running(program)


def test_the_status_is_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert child_process.run(["sh", "-c", "exit 3"], os.environ) == 3
    assert child_process.run(["sh", "-c", "kill -TERM $$"], os.environ) == -signal.SIGTERM


@pytest.mark.parametrize(("origin", "forwarded"), [(0, [signal.SIGTERM]), (child_process.FROM_KERNEL, [])])
def test_what_the_terminal_sends_comes_to_the_program_without_exec(
    monkeypatch: pytest.MonkeyPatch, origin: int, forwarded: list[int]
) -> None:
    came, sent = [signal.struct_siginfo((signal.SIGTERM, origin, 0, 0, 0, 0, 0)), None], []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: came.pop(0) if came else time.sleep(0.01))
    monkeypatch.setattr(subprocess.Popen, "send_signal", lambda _, number: sent.append(number))
    assert child_process.run(["sleep", "0.2"], os.environ) == 0
    assert sent == forwarded


def test_the_program_ends_where_exec_has_ended_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, set_up = [], []
    monkeypatch.setattr(child_process, "LIBRARY", type("Library", (), {"prctl": lambda _, *words: set_up.append(words)})())
    monkeypatch.setattr(os, "kill", lambda *words: killed.append(words))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    child_process.begin(mask, os.getppid())
    assert (set_up, killed) == ([(child_process.PARENT_DEATH_SIGNAL, signal.SIGKILL)], [])
    child_process.begin(mask, -1)
    assert killed == [(os.getpid(), signal.SIGKILL)]

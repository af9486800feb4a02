"""The processes of workers, as the process that started them sees them; some are kept until they are needed again."""

from __future__ import annotations

import atexit
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from tempfile import TemporaryFile
from threading import Lock

from ptxvm.campaign import worker
from ptxvm.campaign.forked_process import ForkedProcess, may_fork
from ptxvm.campaign.frames import FrameReader, PackedSetting, frame_of_jobs, frame_of_release, written
from ptxvm.campaign.outcome import Job
from ptxvm.campaign.run_delay import delay_since, run_delays

READING = 0.1  # seconds, the least between two readings of delays, which are files of the system
LONGEST = 2000  # characters of what a process wrote before it died


class WorkerProcess:
    """A process that runs cases, and those that it has been given and not ended."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.connection, theirs = socket.socketpair()
        self.errors = TemporaryFile()  # noqa: SIM115 - closed with the worker
        self.environment = environment
        self.process = self._begun(theirs)
        theirs.close()
        self.jobs: deque[Job] = deque()
        self.is_ready, self.was_kept, self.since = False, False, 0.0
        self.delays: Mapping[str, int] = {}  # of its threads, when they were read: as its case began, or a moment before
        self.read = -math.inf
        self.reader = FrameReader(self.connection.fileno())

    def _begun(self, end: socket.socket) -> ForkedProcess | subprocess.Popen[bytes]:
        """The process with the other end of the connection: a copy of this one, which starts sooner, or a new one."""
        if may_fork():
            return ForkedProcess(partial(worker.main, end), end.fileno(), self.errors.fileno(), self.environment)
        return subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-P", "-m", "ptxvm.campaign.worker", str(end.fileno())],
            pass_fds=[end.fileno()], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors,
        )  # fmt: skip

    def engage(self, setting: PackedSetting) -> None:
        """Tell it what it shall run."""
        self.is_ready, sent = False, 0
        try:
            if setting.descriptors:
                sent = socket.send_fds(self.connection, [setting.frame], setting.descriptors)
            written(self.connection.fileno(), setting.frame[sent:])
        except OSError:
            return  # it has died, which the next wait tells

    def give(self, jobs: list[Job]) -> None:
        """Give it cases."""
        if not self.jobs:
            self.begin()
        self.jobs.extend(jobs)
        try:
            written(self.connection.fileno(), frame_of_jobs(jobs))
        except OSError:
            return  # it has died, which the next wait tells

    def begin(self) -> None:
        """It begins with a case now."""
        self.since = time.monotonic()
        if self.since - self.read > READING:
            self.read, self.delays = self.since, run_delays(self.process.pid)

    def excuse(self) -> None:
        """Let its case begin later, by the time for which there was no processor for it."""
        before, self.read, self.delays = self.delays, time.monotonic(), run_delays(self.process.pid)
        self.since += delay_since(before, self.delays)

    def close(self, *, kill: bool = True) -> str:
        """End the process; gives how it ended, with what it wrote last."""
        self.connection.close()
        if kill:
            self.process.kill()
        code = self.process.wait()
        self.errors.seek(0)
        wrote = self.errors.read().decode(errors="replace")[-LONGEST:].strip()
        self.errors.close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"{how}: {wrote}" if wrote else how


# ── those that are kept ─────────────────────────────────────────────────────────────────

KEPT: dict[int, list[WorkerProcess]] = {}
"""The workers without a setting, by the process that has started them: one that was forked must not use them."""
LOCK = Lock()


def environment(threads: int) -> dict[str, str]:
    """The environment variables of a worker, whose launches use some threads."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return {"PTXVM_THREADS": str(threads), **os.environ, "PYTHONPATH": paths}


def keep(worker: WorkerProcess) -> None:
    """Release a worker without cases, and keep it; it ends by itself when it has waited for long (`worker.IDLE`)."""
    try:
        written(worker.connection.fileno(), frame_of_release())
    except OSError:
        worker.close()
        return
    worker.was_kept = True
    KEPT.setdefault(os.getpid(), []).append(worker)


def kept(environment: Mapping[str, str]) -> WorkerProcess | None:
    """Take a worker of an environment that was kept, if there is one that has not ended."""
    with LOCK:
        here = KEPT.get(os.getpid(), [])
        for each in [each for each in here if each.process.poll() is not None]:
            here.remove(each)
            each.close()
        found = next((each for each in here if each.environment == environment), None)
        if found is not None:
            here.remove(found)
        return found


@atexit.register
def close_kept() -> None:
    """End the workers that are kept."""
    for each in KEPT.pop(os.getpid(), []):
        each.close()


__all__ = ["WorkerProcess", "close_kept", "environment", "keep", "kept"]

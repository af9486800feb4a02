"""Run a command until it ends, uses more processor time than it may, or uses none: a busy machine changes nothing.

Everything that the command starts counts, as long as it stays in the command's session (setsid(2)).
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")  # in a second, of the times in proc_pid_stat(5)
PROC = Path("/proc")


class Ended(NamedTuple):
    """The exit status of a command, its errors' text, its processor time, and the limit that ended it ("" if none did)."""

    status: int
    errors: str
    seconds: float
    limit: str


def run(
    command: Sequence[str], *, seconds: float, idle: float, cwd: str, env: Mapping[str, str] | None = None, poll: float = 2
) -> Ended:
    """Run a command with at most `seconds` of processor time; end it, too, if it uses none for `idle` seconds."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors)
        limit, used, advanced = "", 0.0, time.monotonic()
        while not limit and process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(poll)
            now = processor_time(process.pid)
            if now > used:
                used, advanced = now, time.monotonic()
            if used > seconds:
                limit = f"ended after {seconds} s of processor time"
            elif time.monotonic() - advanced > idle:
                limit = f"ended after {idle} s without processor time"
        if limit:
            os.killpg(process.pid, signal.SIGKILL)  # the programs, too, that the command has started
        status = process.wait()
        errors.seek(0)
        return Ended(status, errors.read(), used, limit)


def processor_time(session: int) -> float:
    """Seconds of processor time of the processes of a session, and of their children that have ended."""
    ticks = 0
    for path in PROC.glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended since
            continue
        fields = text.rpartition(")")[2].split()  # behind the command's name, which may hold blanks: field 3 is the first
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / TICKS

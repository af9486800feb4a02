"""The process of a worker: it runs cases in the order in which they come, and sends each outcome.

    python -m ptxvm.campaign.worker DESCRIPTOR

The descriptor is one end of a socket.  The worker ends when the other end is closed.
"""

from __future__ import annotations

import pickle
import resource
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from ptxvm.campaign.case import Workload
from ptxvm.campaign.outcome import Job, Outcome

MIB = 1 << 20


def main(descriptor: int) -> None:
    """Run what comes."""
    connection = Connection(descriptor)
    try:
        workload, memory = pickle.loads(connection.recv_bytes())  # noqa: S301 - from the process that started this one
        connection.send(None)
        while True:
            jobs: Sequence[Job] = connection.recv()
            for job in jobs:
                connection.send(limited(workload, job, memory))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def limited(workload: Workload, job: Job, memory: int) -> Outcome:
    """Run a case with so many MiB besides what the process has; 0 is no limit."""
    if not memory:
        return workload.run(job)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_size() + memory * MIB, hard))
    try:
        return workload.run(job)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def data_size() -> int:
    """The bytes of private memory that the process may write to."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmData:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The process of a worker: it runs cases in the order in which they come, and sends each outcome.

    python -m ptxvm.campaign.worker DESCRIPTOR

The descriptor is one end of a socket.  The worker ends when the other end is closed.
"""

from __future__ import annotations

import pickle
import resource
import sys
from pathlib import Path

from ptxvm.campaign.case import Workload
from ptxvm.campaign.frames import FrameReader, frame_of, jobs_in, written
from ptxvm.campaign.outcome import Job, Outcome

MIB = 1 << 20


def main(descriptor: int) -> None:
    """Run what comes."""
    contents = FrameReader(descriptor).next()
    try:
        workload, memory = pickle.loads(next(contents))  # noqa: S301 - from the process that started this one
        written(descriptor, frame_of(None))
        for content in contents:
            for job in jobs_in(content):
                written(descriptor, frame_of(limited(workload, job, memory)))
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

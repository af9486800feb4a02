"""The process of a worker: it runs cases in the order in which they come, and sends each outcome.

    python -m ptxvm.campaign.worker DESCRIPTOR

The descriptor is one end of a socket.  The worker ends when the other end is closed, whatever it runs, and when it has had
nothing to run for a while.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from ptxvm.campaign.frames import Setting, SocketReader, frame_of, message_in, written
from ptxvm.campaign.outcome import Job

MIB = 1 << 20
IDLE = 60.0  # seconds for which a worker without a setting waits for one
COLLECTED = (10_000, 10, 50)
"""The thresholds of the garbage collector: a case makes thousands of objects, few of which live on."""


def main(end: socket.socket) -> None:
    """Run what comes, as a process that ends with the other one."""
    gc.set_threshold(*COLLECTED)
    os.register_at_fork(after_in_child=end.close)
    Thread(target=end_with, args=[end], name="ptxvm end", daemon=True).start()
    serve(end)


def serve(end: socket.socket) -> None:
    """Run what comes."""
    end.set_inheritable(False)  # the processes that cases start must not keep the socket open when this one has died
    with end:
        reader, setting, descriptors, is_new = SocketReader(end), None, list[int](), True
        try:
            while setting is not None or select.select([end], [], [], IDLE)[0]:
                for content in reader.frames():
                    message = message_in(content, reader.descriptors)
                    if isinstance(message, list):
                        run(end, setting, message)
                        if is_new:
                            gc.freeze()  # the declarations, which the first cases have made, stay
                            is_new = False
                        continue
                    for each in descriptors:
                        os.close(each)
                    setting, descriptors = message, [] if message is None else reader.taken()  # which may have come early
                    if setting is not None:
                        written(end.fileno(), frame_of(None))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def end_with(end: socket.socket) -> None:
    """End the process when the other end is closed: a case that runs for ever would go on when the campaign was killed."""
    if hasattr(select, "poll"):
        watched = select.poll()
        watched.register(end, 0)  # for no event but the one that is always told
        watched.poll()
        os._exit(1)


def run(end: socket.socket, setting: Setting | None, jobs: list[Job]) -> None:
    """Run cases of a setting."""
    if setting is None:
        raise ValueError("there is nothing that jobs are of")
    with limited(setting.memory):
        for job in jobs:
            written(end.fileno(), frame_of(setting.workload.run(job)))


@contextmanager
def limited(memory: int) -> Iterator[None]:
    """Within `with` the process may have so many MiB besides what it has; 0 is no limit.

    Cases that came together are short: one has its limit, less what those before it have left.
    """
    if not memory:
        yield
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_size() + memory * MIB, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def data_size() -> int:
    """The bytes of private memory that the process may write to."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmData:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))

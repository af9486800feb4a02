"""Run-queue delay: the time for which threads could run and had no processor, which no case is to blame for.

Linux has it for each thread, in nanoseconds: the second number of `/proc/PID/task/TID/schedstat`.  Other systems tell nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NANOSECONDS = 1e-9


def run_delays(process: int) -> dict[str, int]:
    """The delay of each thread of a process since the thread began; empty where the system does not tell, or it has ended."""
    found = {}
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            _, waited, *_ = (task / "schedstat").read_text(encoding="ascii").split()
            found[task.name] = int(waited)
    except (OSError, ValueError):
        return found
    return found


def delay_since(before: Mapping[str, int], now: Mapping[str, int]) -> float:
    """The seconds of the thread that was delayed most between two readings: the others may have waited for it."""
    return max((waited - before.get(thread, 0) for thread, waited in now.items()), default=0) * NANOSECONDS


__all__ = ["delay_since", "run_delays"]

"""The profile of a process: how often each kernel was launched, and how long that took.

It is made where `PTXVM_PROFILE` names a file: when the process ends, it appends a line of JSON for each kernel, for
`ptxvm exec --summary` to add up.
"""

from __future__ import annotations

import atexit
import json
import os
from dataclasses import field
from functools import cache
from pathlib import Path
from threading import Lock

from ptxvm.dataclass import dataclass


@dataclass
class LaunchTimes:
    """Launches and seconds by the name of the kernel; appended to a file by `write`."""

    path: Path
    kernels: dict[str, tuple[int, float]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, kernel: str, seconds: float) -> None:
        """Count a launch; streams do so from threads of their own."""
        with self.lock:
            launches, before = self.kernels.get(kernel, (0, 0.0))
            self.kernels[kernel] = (launches + 1, before + seconds)

    def write(self) -> None:
        """Append what was counted to the file, in one piece: other processes append to it too."""
        lines = [
            json.dumps({"kernel": kernel, "launches": launches, "seconds": seconds}) + "\n"
            for kernel, (launches, seconds) in self.kernels.items()
        ]
        if lines:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))
        self.kernels.clear()


@cache
def profile() -> LaunchTimes | None:
    """The profile of this process; None where none is asked for."""
    path = os.environ.get("PTXVM_PROFILE")
    if not path:
        return None
    made = LaunchTimes(Path(path))
    atexit.register(made.write)
    os.register_at_fork(after_in_child=made.kernels.clear)  # the parent writes its own
    return made


__all__ = ["LaunchTimes", "profile"]

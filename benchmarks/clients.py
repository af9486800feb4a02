"""What clients of the driver cost: a launch by Numba, of which a part is Numba's own, and a Triton kernel found on disk.

Each is measured in a process of its own under `ptxvm exec`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
HAS_NUMBA, HAS_TRITON = (importlib.util.find_spec(name) is not None for name in ("numba_cuda", "triton"))


class Second(NamedTuple):
    """A Triton kernel in a second process: seconds from import to result; was LLVM loaded for ptxvm; is the result right?"""

    seconds: float
    loads_llvm: bool
    correct: bool


def numba_launch() -> tuple[float, float]:
    """The seconds of a launch of 64 threads by Numba, and those that are Numba's own."""
    with_driver, without = printed("numba_launch.py")
    return with_driver, without


def triton_again() -> Second:
    """A Triton kernel in a second process, which finds what the first has kept."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TRITON_CACHE_DIR": f"{folder}/triton", "PTXVM_CACHE": f"{folder}/ptxvm"}
        printed("triton_kernel.py", caches)
        return Second(*printed("triton_kernel.py", caches))


def printed(program: str, environment: dict[str, str] | None = None) -> list[Any]:
    """The numbers that a program prints."""
    command = [sys.executable, "-m", "ptxvm", "exec", "--", sys.executable, str(HERE / program)]
    everything = os.environ | (environment or {})
    done = subprocess.run(command, env=everything, capture_output=True, text=True, check=True)  # noqa: S603 - our own programs
    return list(json.loads(done.stdout))


__all__ = ["HAS_NUMBA", "HAS_TRITON", "numba_launch", "triton_again"]

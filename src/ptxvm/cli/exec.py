"""`ptxvm exec`: run a program whose CUDA calls come to ptxvm."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxvm.cli.failures import WRONG_CALL, say
from ptxvm.driver.models import MODELS
from ptxvm.libcuda.process import prepare


def execute(command: Sequence[str], device: str | None, devices: int | None) -> int:
    """Run a program to its end; its exit status."""
    if device is not None and device not in MODELS:
        return say(f"ptxvm exec: there is no device '{device}'; there are {', '.join(MODELS)}", WRONG_CALL)
    with tempfile.TemporaryDirectory(prefix="ptxvm-exec-") as folder:
        chosen = {"PTXVM_DEVICE": device, "PTXVM_DEVICES": devices}
        environment = (
            os.environ | prepare(Path(folder)) | {name: str(value) for name, value in chosen.items() if value is not None}
        )
        try:
            child = subprocess.Popen(list(command), env=environment)  # noqa: S603 - the program that the user names
        except OSError as wrong:
            return say(f"ptxvm exec: {command[0]}: {wrong.strerror}", WRONG_CALL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program gets it too, and decides
        status = child.wait()
    return status if status >= 0 else 128 - status

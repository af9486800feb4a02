"""`ptxvm exec`: run a program whose CUDA calls come to ptxvm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ptxvm.cli.failures import FINDINGS, WRONG_CALL, say
from ptxvm.driver.models import MODELS
from ptxvm.libcuda.process import prepare
from ptxvm.machine import options
from ptxvm.machine.faults import plural


def execute(command: Sequence[str], device: str | None, devices: int | None, checks: str) -> int:
    """Run a program to its end; its exit status, or 1 where a check found an error in a kernel and the program none."""
    try:
        options.checks([each.strip() for each in checks.split(",")] if checks else None)
    except ValueError as wrong:
        return say(f"ptxvm exec: {wrong}", WRONG_CALL)
    if device is not None and device not in MODELS:
        return say(f"ptxvm exec: there is no device '{device}'; there are {', '.join(MODELS)}", WRONG_CALL)
    with tempfile.TemporaryDirectory(prefix="ptxvm-exec-") as folder:
        findings = Path(folder, "findings.jsonl")
        chosen: dict[str, object] = {"PTXVM_DEVICE": device, "PTXVM_DEVICES": devices}
        chosen |= {"PTXVM_CHECK": checks, "PTXVM_FINDINGS": findings} if checks else {}
        environment = (
            os.environ | prepare(Path(folder)) | {name: str(value) for name, value in chosen.items() if value is not None}
        )
        try:
            child = subprocess.Popen(list(command), env=environment)  # noqa: S603 - the program that the user names
        except OSError as wrong:
            return say(f"ptxvm exec: {command[0]}: {wrong.strerror}", WRONG_CALL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program gets it too, and decides
        status = child.wait()
        errors = summarise(findings) if checks else 0
    if status < 0:
        return 128 - status
    return status or (FINDINGS if errors else 0)


def summarise(path: Path) -> int:
    """Print what the checks found, by kernel and kind; the number of errors."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    for (kernel, code), count in sorted(Counter((each["kernel"], each["code"]) for each in found).items()):
        print(f"ptxvm: {count} {code} in kernel {kernel}", file=sys.stderr)
    errors = sum(1 for each in found if each["severity"] == "error")
    print(f"ptxvm: {plural(errors, 'error')} and {plural(len(found) - errors, 'warning')} in kernels", file=sys.stderr)
    return errors

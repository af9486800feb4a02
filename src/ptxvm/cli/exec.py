"""`ptxvm exec`: run a program whose CUDA calls come to ptxvm."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ptxvm.cli.check import read_suppressions, tell_unused
from ptxvm.cli.child_process import run
from ptxvm.cli.failures import FINDINGS, WRONG_CALL, say
from ptxvm.cli.terminal import console, tabulated
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.driver.environment import WrongVariable, read
from ptxvm.driver.models import MODELS
from ptxvm.libcudart.process import prepare
from ptxvm.machine import options
from ptxvm.machine.faults import plural

Lines = Sequence[Mapping[str, Any]]  # the key tells the type of a value
"""Objects of JSON, with the keys that `driver.profile` and `driver.launch_checks` write."""


def execute(
    command: Sequence[str], device: str | None = None, devices: int | None = None, checks: str = "", allow: str = "",
    suppress: str | None = None, asynchronous: str | None = None, seed: int | None = None, *, summary: bool = False,
) -> int:  # fmt: skip
    """Run a program to its end; its exit status, or 1 where a check found an error in a kernel and the program none."""
    try:
        options.checks_in(checks)
        options.allowed_in(allow)
        options.completion(asynchronous)
    except ValueError as wrong:
        return say(f"ptxvm exec: {wrong}", WRONG_CALL)
    if device is not None and device not in MODELS:
        return say(f"ptxvm exec: there is no device '{device}'; there are {', '.join(MODELS)}", WRONG_CALL)
    suppressions = read_suppressions(suppress)
    with tempfile.TemporaryDirectory(prefix="ptxvm-exec-") as folder:
        findings, launches = Path(folder, "findings.jsonl"), Path(folder, "launches.jsonl")
        chosen: dict[str, object] = {"PTXVM_DEVICE": device, "PTXVM_DEVICES": devices}
        chosen |= {"PTXVM_ASYNC": asynchronous, "PTXVM_SEED": seed}
        chosen |= {"PTXVM_CHECK": checks, "PTXVM_FINDINGS": findings} if checks else {}
        chosen |= {"PTXVM_ALLOW": allow} if allow else {}
        chosen |= {"PTXVM_SUPPRESS": Path(suppress).resolve()} if suppress is not None else {}
        chosen |= {"PTXVM_PROFILE": launches} if summary else {}
        environment = (
            os.environ | prepare(Path(folder)) | {name: str(value) for name, value in chosen.items() if value is not None}
        )
        try:
            read(environment)
        except WrongVariable as wrong:
            return say(f"ptxvm exec: {wrong}", WRONG_CALL)
        try:
            status = run(command, environment)
        except OSError as wrong:
            return say(f"ptxvm exec: {command[0]}: {wrong.strerror}", WRONG_CALL)
        written = lines(findings)
        found = [each for each in written if not suppressions.names(each["kernel"], each["code"], each["line"])]
        if summary:
            print_launches(lines(launches), found, checked=bool(checks))
        errors = print_findings(found, len(written) - len(found)) if checks else 0
        tell_unused(suppressions, suppress)
    if status < 0:
        return 128 - status
    return status or (FINDINGS if errors else 0)


def lines(path: Path) -> Lines:
    """The contents of a file to which the processes of the program write: an object of JSON in each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def print_launches(launches: Lines, found: Lines, *, checked: bool) -> None:
    """A table of the kernels: launches, the time that they took together, and findings; longest first."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for each in launches:
        counts[each["kernel"]] += each["launches"]
        seconds[each["kernel"]] += each["seconds"]
    findings = Counter(each["kernel"] for each in found)
    if rows := [
        (str(counts[kernel]), in_seconds(time), str(findings[kernel]) if checked else "-", displayed(kernel))
        for kernel, time in seconds.most_common()
    ]:
        console(sys.stderr).print(tabulated(("launches", "time", "findings", "kernel"), rows, {0, 1, 2}), soft_wrap=True)
    all_of_them = f"{counts.total()} launch{'es' * (counts.total() != 1)} of {plural(len(counts), 'kernel')}"
    print(f"ptxvm: {all_of_them}, {in_seconds(sum(seconds.values()))}", file=sys.stderr)


def in_seconds(time: float) -> str:
    """`1.24 s`, `3.05 ms`, `17.2 us`: three digits."""
    scale, unit = next(((scale, unit) for scale, unit in ((1, "s"), (1e-3, "ms")) if time >= scale), (1e-6, "us"))
    return f"{time / scale:.3g} {unit}"


def print_findings(found: Lines, suppressed: int) -> int:
    """Print what the checks found, by kernel and kind, and how much of it is meant; the number of errors."""
    for (kernel, code), count in sorted(Counter((each["kernel"], each["code"]) for each in found).items()):
        print(f"ptxvm: {count} {code} in kernel {displayed(kernel)}", file=sys.stderr)
    errors = sum(1 for each in found if each["severity"] == "error")
    meant = f", {suppressed} suppressed" if suppressed else ""
    print(f"ptxvm: {plural(errors, 'error')} and {plural(len(found) - errors, 'warning')} in kernels{meant}", file=sys.stderr)
    return errors

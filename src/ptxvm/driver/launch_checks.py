"""The checks of all kernels of a process, how work runs under them, and their findings.

The environment names the checks.  Each finding is logged once, but for those that it suppresses, and appended as a line of
JSON to the file that `PTXVM_FINDINGS` names, where `ptxvm exec` counts them.  Findings of codes that the environment allows
are not reported.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ptxvm.diagnostics.errors import Fault
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.driver.environment import environment
from ptxvm.machine import options
from ptxvm.machine.events import Finding
from ptxvm.machine.streams import Stream
from ptxvm.named_tuple import NamedTuple

LOG = logging.getLogger("ptxvm.driver")
MOMENT = 0.1  # seconds after which a function of the client is taken to wait for the host


def wanted() -> frozenset[options.Check] | None:
    """The checks of the kernels of this process, None for none."""
    return environment().checks


def exact_bounds() -> bool:
    """Is the first byte behind an allocation out of bounds?  Without the check `memory` sizes are rounded up.

    Allocations to 512 bytes, the shared memory of a CTA to the unit of the device: programs that run on one read there, and use
    nothing of it.
    """
    return "memory" in (wanted() or ())


def follows_values() -> bool:
    """Does a check follow which memory has a value?"""
    return "init" in (wanted() or ())


class HostThread:
    """The host thread that has put work on a stream under checks: it waits until the work is done or lets it go on."""

    def __init__(self) -> None:
        self._goes_on = threading.Event()

    @property
    def waits(self) -> bool:
        """Does the host still wait?"""
        return not self._goes_on.is_set()

    def go_on(self) -> None:
        """Let the host go on."""
        self._goes_on.set()

    def wait(self) -> None:
        """Wait until the work calls `go_on`; called by the host."""
        self._goes_on.wait()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Let the host go on if the body of the `with` takes longer than `MOMENT`."""
        timer = threading.Timer(MOMENT, self.go_on)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class Checked(NamedTuple):
    """How work runs under checks.

    `order` is its stream for the check `race`, None where the context has only one.  `host` is None where the host itself
    runs the work and nothing runs beside it.
    """

    checks: frozenset[options.Check]
    order: Stream | None
    host: HostThread | None


class Findings:
    """The findings of the process: one of each code for an instruction of a kernel."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str, int]] = set()

    def add(self, finding: Finding) -> None:
        """Report a finding, unless one like it was reported before."""
        key = (finding.kernel, finding.code, finding.line)
        if key in self.seen or finding.code in environment().allowed:
            return
        self.seen.update((finding.kernel, finding.code, line) for line in (finding.line, *finding.also))
        if not self.is_meant(finding):
            LOG.warning("ptxvm: in kernel %s: %s", displayed(finding.kernel), finding)
        if path := os.environ.get("PTXVM_FINDINGS"):
            with Path(path).open("a", encoding="utf-8") as file:
                entry = {
                    "severity": finding.severity,
                    "code": finding.code,
                    "text": str(finding),
                    "line": finding.line,
                    **finding.details,
                }
                file.write(json.dumps(entry) + "\n")

    @staticmethod
    def is_meant(finding: Finding) -> bool:
        """Does the environment allow it, or suppress it?"""
        chosen = environment()
        return finding.code in chosen.allowed or chosen.suppressions.names(finding.kernel, finding.code, finding.line)

    def fault(self, found: Sequence[Finding]) -> Fault | None:
        """What makes a launch with these findings fail, None for nothing: a wrong access, as by memcheck, or a trap."""
        return next((each.fault for each in found if each.fault is not None and not self.is_meant(each)), None)


FINDINGS = Findings()

__all__ = ["FINDINGS", "Checked", "HostThread", "exact_bounds", "follows_values", "wanted"]

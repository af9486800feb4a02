"""The checks that a process asks for, of every kernel that it launches; how its work then runs, and what they find.

`PTXVM_CHECK` names them (`memory,race`); each finding is logged once, and entered as a line of JSON in the file that
`PTXVM_FINDINGS` names, for `ptxvm exec` to count.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ptxvm.machine import options
from ptxvm.machine.events import Finding
from ptxvm.machine.streams import Stream

LOG = logging.getLogger("ptxvm.driver")
MOMENT = 0.1  # seconds that a function of the client takes where it waits for nothing


@cache
def wanted() -> frozenset[options.Check] | None:
    """The checks, None where there are none; ValueError for an unknown name."""
    text = os.environ.get("PTXVM_CHECK", "")
    return options.checks([each.strip() for each in text.split(",")]) if text else None


def exact_bounds() -> bool:
    """Is every byte behind an allocation out of bounds?  Without the check `memory`, its size is rounded up to 512 bytes."""
    return "memory" in (wanted() or ())


class Host:
    """The thread of the host that has put work on a stream: it waits for the work until it is told to go on."""

    def __init__(self) -> None:
        self._goes_on = threading.Event()

    @property
    def waits(self) -> bool:
        """Does it wait?"""
        return not self._goes_on.is_set()

    def go_on(self) -> None:
        """Let it wait no longer."""
        self._goes_on.set()

    def wait(self) -> None:
        """Wait until then."""
        self._goes_on.wait()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Let it go on if what is done meanwhile takes more than a moment."""
        timer = threading.Timer(MOMENT, self.go_on)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class Checked(NamedTuple):
    """How work runs for checks.

    `order` is its stream for the check of races, None where there is no other.  The `host` is None where it runs the work
    itself and nothing else runs.
    """

    checks: frozenset[options.Check]
    order: Stream | None
    host: Host | None


class Findings:
    """The findings so far; each kind once for an instruction of a kernel."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str, int]] = set()

    def add(self, finding: Finding) -> None:
        """Report a finding, unless it is known."""
        key = (finding.kernel, finding.code, finding.line)
        if key in self.seen:
            return
        self.seen.add(key)
        LOG.warning("ptxvm: in kernel %s: %s", finding.kernel, finding)
        if path := os.environ.get("PTXVM_FINDINGS"):
            with Path(path).open("a", encoding="utf-8") as file:
                entry = {"severity": finding.severity, "code": finding.code, "text": str(finding), **finding.details}
                file.write(json.dumps(entry) + "\n")


FINDINGS = Findings()

__all__ = ["FINDINGS", "Checked", "Host", "exact_bounds", "wanted"]

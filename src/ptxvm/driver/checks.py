"""The checks that a process asks for, of every kernel that it launches, and what they find.

`PTXVM_CHECK` names them (`memory,race`); each finding is logged once, and entered as a line of JSON in the file that
`PTXVM_FINDINGS` names, for `ptxvm exec` to count.
"""

from __future__ import annotations

import json
import logging
import os
from functools import cache
from pathlib import Path
from typing import cast

from ptxvm.machine import options
from ptxvm.machine.events import Finding

LOG = logging.getLogger("ptxvm.driver")


@cache
def wanted() -> frozenset[options.Check] | None:
    """The names of the checks, None where there are none; ValueError for what is no check."""
    text = os.environ.get("PTXVM_CHECK", "")
    found = options.checks([each.strip() for each in text.split(",")]) if text else None
    return cast("frozenset[options.Check] | None", found)


def exact_bounds() -> bool:
    """Is every byte behind an allocation wrong?  Else it has the granularity of hardware: 512 bytes."""
    return "memory" in (wanted() or ())


class Findings:
    """What was found so far, each kind once for an instruction of a kernel."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str, int]] = set()

    def add(self, finding: Finding) -> None:
        """Report a finding that is new."""
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

__all__ = ["FINDINGS", "exact_bounds", "wanted"]

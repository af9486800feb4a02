"""Why a run has stopped."""

from __future__ import annotations

import enum

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault


class Reason(enum.StrEnum):
    """Why a run has stopped."""

    ENTRY = "entry"
    BREAKPOINT = "breakpoint"
    WATCHPOINT = "watchpoint"
    CATCHPOINT = "catchpoint"
    STEP = "step"
    BEGIN = "begin"
    """It went back, and is at the beginning of the grid."""
    INTERRUPT = "interrupt"
    FAULT = "fault"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Change:
    """An access to bytes that a watchpoint is for: their values before and after it, as text."""

    number: int
    subject: str
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop: its reason, the numbers of the breakpoints, and what else there is to say; `finding` is the code of one."""

    reason: Reason
    numbers: tuple[int, ...] = ()
    message: str = ""
    changes: tuple[Change, ...] = ()
    fault: Fault | None = None
    finding: str = ""


__all__ = ["Change", "Reason", "Stop"]

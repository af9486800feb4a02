"""What a launch gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxvm.machine.events import Finding


@dataclass(slots=True)
class LaunchResult:
    """The counters and the findings of a launch that has ended well.

    `instructions` counts those that a group of lanes executed together, `thread_instructions` those of every thread,
    `steps` the segments that were scheduled; `output` is what the kernel printed.  `findings` is what the checks found, in
    `schedules` runs of the grid; the counters, the output and what is in memory are those of the first.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    instructions: int = 0
    thread_instructions: int = 0
    steps: int = 0
    seconds: float = 0.0
    output: str = ""
    schedules: int = 1
    findings: list[Finding] = field(default_factory=list)

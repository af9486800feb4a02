"""The result of a launch."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.notebook import card

if TYPE_CHECKING:
    from ptxvm.machine.events import Finding
    from ptxvm.profile.profile import Profile


@dataclass(slots=True, repr=False)
class LaunchResult:
    """The counters and the findings of a launch that has ended without a fault.

    `instructions` counts those that a group of lanes executed together, `thread_instructions` those of every thread,
    `steps` the segments that were scheduled; `output` is what the kernel printed.  `findings` is what the checks found, in
    `schedules` runs of the grid; the counters, the output and what is in memory are those of the first.  `cluster` is None
    where CTAs are not in clusters, `profile` where none was asked for, or where the run for it came to a fault.
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
    cluster: tuple[int, int, int] | None = None
    profile: Profile | None = None

    def __repr__(self) -> str:
        said = [f"{self.thread_instructions:,} thread-instructions"]
        said += [f"{self.seconds:.3g} s"] + ([f"{self.schedules} schedules"] if self.schedules > 1 else [])
        said += [f"{len(self.output)} characters printed"] if self.output else []
        said += [f"findings: {', '.join(each.kind for each in self.findings)}"] if self.findings else []
        shape = f"grid {self.grid}, block {self.block}" + (f", cluster {self.cluster}" if self.cluster else "")
        return f"<LaunchResult {shape}: {', '.join(said)}>"

    def _repr_html_(self) -> str:
        """The result for a notebook: counters, what was printed, and the findings, each in a row."""
        rows = [
            ("grid", str(self.grid)), ("block", str(self.block)), ("cluster", str(self.cluster or "")),
            ("thread-instructions", f"{self.thread_instructions:,}"), ("time", f"{self.seconds:.3g} s"),
            ("profile", "" if self.profile is None else repr(self.profile).strip("<>")),
            ("schedules", str(self.schedules) if self.schedules > 1 else ""), ("printed", self.output),
            *(("finding", str(each)) for each in self.findings),
        ]  # fmt: skip
        return card("LaunchResult", rows)

"""The outcome of a case: whether it passed, and what failed where."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ptxvm.dataclass import dataclass
from ptxvm.named_tuple import NamedTuple


class Verdict(enum.StrEnum):
    """How a case ended."""

    PASSED = "passed"
    DIFFERS = "differs"
    FINDING = "finding"
    FAULT = "fault"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DIED = "died"


MEANINGS = {
    Verdict.PASSED: "what was expected held",
    Verdict.DIFFERS: "the results are not those of the reference, or do not agree",
    Verdict.FINDING: "a check found something",
    Verdict.FAULT: "the kernel did what stops a grid",
    Verdict.ERROR: "an exception, such as of an assertion, or of PTX that is not valid or not supported",
    Verdict.TIMEOUT: "it took longer than it may",
    Verdict.MEMORY: "it allocated more than it may",
    Verdict.DIED: "it ended its process, each time that it was run",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended: of failures the kind (`out-of-bounds`), the place (`saxpy.ptx:45`) and the whole message."""

    verdict: Verdict = Verdict.PASSED
    kind: str = ""
    place: str = ""
    message: str = ""
    seconds: float = 0.0
    text: str = ""  # of a fuzzed case: what was run, if it failed or showed something new
    features: tuple[str, ...] = ()  # of a fuzzed case: what it showed that its worker had not seen
    value: object = None  # of a range of a grid: what it did

    @property
    def failed(self) -> bool:
        """Is it a failure?"""
        return self.verdict is not Verdict.PASSED

    @property
    def reason(self) -> str:
        """What failed and where, in a line: failures with one reason are told once."""
        kind = f"{self.verdict} {self.kind}".rstrip()
        return f"{kind} at {self.place}" if self.place else kind

    def is_as(self, other: Outcome) -> bool:
        """Is it the same failure, perhaps at another line?"""
        return (self.verdict, self.kind) == (other.verdict, other.kind)


TRIAL = -1
"""The number of a job that is no case: a failure is run again, or made smaller."""


class Job(NamedTuple):
    """A case to run: its number, or other parameters in place of those of the number, or another text of the kernel."""

    number: int
    parameters: Mapping[str, object] | None = None
    text: str | None = None


class Done(NamedTuple):
    """A case that has ended: its outcome, and how often it was run."""

    job: Job
    outcome: Outcome
    attempts: int

    @property
    def number(self) -> int:
        """The number of the case."""
        return self.job.number


__all__ = ["MEANINGS", "TRIAL", "Done", "Job", "Outcome", "Verdict"]

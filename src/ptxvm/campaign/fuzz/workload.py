"""What the workers of a fuzzing campaign run: a case is made from its number and from texts of the corpus.

What a kind needs is imported when its first case runs: a worker runs one kind, and the campaign itself none.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from random import Random

from ptxvm.campaign.case import outcome
from ptxvm.campaign.fuzz.coverage import EVERY, Coverage, Tracer
from ptxvm.campaign.outcome import TRIAL, Job, Outcome
from ptxvm.dataclass import dataclass


class Kind(enum.StrEnum):
    """What is fuzzed."""

    TEXT = "text"
    STATEMENTS = "statements"
    KERNELS = "kernels"
    ENGINES = "engines"
    LITMUS = "litmus"


MEANINGS = {
    Kind.TEXT: "mutated modules: the reader never raises or hangs",
    Kind.STATEMENTS: "mutated statements, 64 in a module: as of text, in a fifth of the time",
    Kind.KERNELS: "mutated kernels: what is valid never ends the process",
    Kind.ENGINES: "random kernels of the declarations: both engines leave the same bits",
    Kind.LITMUS: "random litmus tests: the machine shows nothing that the memory model forbids",
}
HAS_CORPUS = (Kind.TEXT, Kind.KERNELS)
COMPILES = (Kind.KERNELS, Kind.ENGINES, Kind.LITMUS)
OTHER = "other"
"""The parameter of a job that is mutated: another text of the corpus.  Without it the text is run as it stands."""
ECHOES = 8
"""One module of statements of so many has some that resemble others."""
CASES = {Kind.STATEMENTS: 64}
"""The cases of a job, where they are more than one."""


@dataclass(frozen=True)
class FuzzWorkload:
    """The cases of a kind; `seed` makes them others."""

    kind: Kind
    seed: int = 0

    def run(self, job: Job) -> Outcome:
        """Run a case; gives what it ran where it failed, or showed something new."""
        made, names = self.made(job)
        shown: set[str] = set()
        with no_disk_cache() if self.kind in COMPILES else nullcontext():
            found = outcome(lambda: shown.update(self.perform(made, names, job.number)))
        features = coverage().new(shown) if self.kind in HAS_CORPUS and not found.failed else ()
        return replace(found, text=made if found.failed or features else "", features=features)

    def made(self, job: Job) -> tuple[str, list[str]]:
        """The text of a case, and the kernels in it that changed."""
        random = Random(f"{self.seed} {job.number}")  # noqa: S311 - no secret
        other = (job.parameters or {}).get(OTHER)
        match self.kind:
            case Kind.ENGINES:
                return job.text or str(self.seed + job.number), []
            case Kind.LITMUS:
                from ptxvm.campaign.fuzz.litmus import random_test  # noqa: PLC0415

                return job.text or random_test(self.seed + job.number), []
            case Kind.STATEMENTS:
                from ptxvm.campaign.fuzz import echoes, statements  # noqa: PLC0415

                return job.text or (echoes if self.resembles(job.number) else statements).module(job.number, self.seed), []
            case _ if other is None:
                return job.text or "", []
            case Kind.TEXT:
                from ptxvm.campaign.fuzz import text  # noqa: PLC0415

                return text.mutated(job.text or "", str(other), random), []
            case Kind.KERNELS:
                from ptxvm.campaign.fuzz import kernels  # noqa: PLC0415

                return kernels.mutated(job.text or "", random)

    def perform(self, made: str, names: list[str], number: int) -> Iterable[str]:
        """Run what was made, and raise what is wrong; gives the features that it showed."""
        match self.kind:
            case Kind.TEXT | Kind.STATEMENTS:
                return self.checked(made, number)
            case Kind.KERNELS:
                from ptxvm.campaign.fuzz.kernels import run_all  # noqa: PLC0415

                return run_all(made, names) or ()
            case Kind.ENGINES:
                from ptxvm.campaign.fuzz.engines import compare  # noqa: PLC0415
                from ptxvm.campaign.random_kernels.kernels import kernel_of  # noqa: PLC0415

                compare(kernel_of(made))
            case Kind.LITMUS:
                from ptxvm.campaign.fuzz.litmus import confirm  # noqa: PLC0415

                confirm(made, abs(number))
        return ()

    def resembles(self, number: int) -> bool:
        """Does the module of a number have statements that resemble others in it?"""
        return self.kind is Kind.STATEMENTS and number % ECHOES == 0

    def checked(self, made: str, number: int) -> set[str]:
        """Check a text: the codes of its diagnostics, and of some texts the lines that ran."""
        from ptxvm.campaign.fuzz import text  # noqa: PLC0415

        ways = None if number == TRIAL else text.LEARNING if self.resembles(number) else text.ways_of(number)
        codes: set[str] = set()

        def work() -> None:
            codes.update(each.code for each in text.survive(made, ways))

        if number % EVERY:
            work()
            return codes
        return tracer().traced(work) | codes


@contextmanager
def no_disk_cache() -> Iterator[None]:
    """Within `with` compiled kernels are not kept: random ones never come again, and the user's would make way for them."""
    before = os.environ.get("PTXVM_CACHE")
    os.environ["PTXVM_CACHE"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PTXVM_CACHE"]
        else:
            os.environ["PTXVM_CACHE"] = before


@cache
def coverage() -> Coverage:
    """The features that the cases of this process have shown."""
    return Coverage()


@cache
def tracer() -> Tracer:
    """What knows the lines that the cases of this process have run."""
    return Tracer()


def repeat(kind: str, made: str) -> None:
    """Run a case again, and raise what is wrong: a text, or what a random kernel is made of."""
    workload = FuzzWorkload(Kind(kind))
    workload.perform(made, [], TRIAL)


__all__ = ["HAS_CORPUS", "MEANINGS", "OTHER", "FuzzWorkload", "Kind", "repeat"]

"""What the workers of a fuzzing campaign run: a case is made from its number and from texts of the corpus."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from random import Random

from ptxvm.api import load
from ptxvm.campaign.case import outcome
from ptxvm.campaign.fuzz import engines, kernels, litmus, text
from ptxvm.campaign.fuzz.coverage import EVERY, Coverage, Tracer
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.random_kernels.kernels import kernel_of
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import InvalidPTX


class Kind(enum.StrEnum):
    """What is fuzzed."""

    TEXT = "text"
    KERNELS = "kernels"
    ENGINES = "engines"
    LITMUS = "litmus"


MEANINGS = {
    Kind.TEXT: "mutated modules: the reader never raises or hangs",
    Kind.KERNELS: "mutated kernels: what is valid never ends the process",
    Kind.ENGINES: "random kernels of the declarations: both engines leave the same bits",
    Kind.LITMUS: "random litmus tests: the machine shows nothing that the memory model forbids",
}
HAS_CORPUS = (Kind.TEXT, Kind.KERNELS)
OTHER = "other"
"""The parameter of a job that is mutated: another text of the corpus.  Without it the text is run as it stands."""


@dataclass(frozen=True)
class FuzzWorkload:
    """The cases of a kind; `seed` makes them others."""

    kind: Kind
    seed: int = 0

    def run(self, job: Job) -> Outcome:
        """Run a case; gives what it ran where it failed, or showed something new."""
        made, names = self.made(job)
        shown: set[str] = set()
        found = outcome(lambda: shown.update(self.perform(made, names, job.number)))
        features = coverage().new(shown) if self.kind in HAS_CORPUS and not found.failed else ()
        return replace(found, text=made if found.failed or features else "", features=features)

    def made(self, job: Job) -> tuple[str, list[str]]:
        """The text of a case, and the kernels in it that changed."""
        random = Random(f"{self.seed} {job.number}")  # noqa: S311 - no secret
        if self.kind is Kind.ENGINES:
            return job.text or str(self.seed + job.number), []
        if self.kind is Kind.LITMUS:
            return job.text or litmus.random_test(self.seed + job.number), []
        other = (job.parameters or {}).get(OTHER)
        if other is None:
            return job.text or "", []
        if self.kind is Kind.TEXT:
            return text.mutated(job.text or "", str(other), random), []
        return kernels.mutated(job.text or "", random)

    def perform(self, made: str, names: list[str], number: int) -> Iterable[str]:
        """Run what was made, and raise what is wrong; gives the features that it showed."""
        match self.kind:
            case Kind.TEXT:
                return self.checked(made, number)
            case Kind.KERNELS:
                return features_of(made) if kernels.run_all(made, names) else ()
            case Kind.ENGINES:
                engines.compare(kernel_of(made))
            case Kind.LITMUS:
                litmus.confirm(made, number)
        return ()

    @staticmethod
    def checked(made: str, number: int) -> set[str]:
        """Check a text: the codes of its diagnostics, and of some texts the lines that ran."""
        codes: set[str] = set()
        work: Callable[[], None] = lambda: codes.update(each.code for each in text.survive(made))  # noqa: E731 - for the tracer
        if number % EVERY:
            work()
            return codes
        return tracer().traced(work) | codes


def features_of(made: str) -> set[str]:
    """The mnemonics of a valid module."""
    try:
        functions = [each for program in load(made.encode()).programs for each in program.functions.values()]
    except InvalidPTX:
        return set()
    return {bound.i.mnemonic for function in functions for bound in function.instructions}


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
    workload.perform(made, [], 1)


__all__ = ["HAS_CORPUS", "MEANINGS", "OTHER", "FuzzWorkload", "Kind", "repeat"]

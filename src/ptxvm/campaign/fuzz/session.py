"""A fuzzing campaign: cases until a number or a time, a corpus that grows, and findings that are told once.

Cases that pass leave no row: a campaign of 10^7 would have a file of gigabytes.  It goes on behind the lowest case that has
not ended; those behind it that had are run again, and counted once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random

from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.fuzz.reproduction import write_cases
from ptxvm.campaign.fuzz.workload import CASES, HAS_CORPUS, OTHER, FuzzWorkload, Kind
from ptxvm.campaign.outcome import Done, Job, Verdict
from ptxvm.campaign.page import page
from ptxvm.campaign.parameter_space import JSON, ParameterSpace
from ptxvm.campaign.results import Results
from ptxvm.campaign.session import PAGE, RESULTS, Campaign, runner
from ptxvm.machine import options

SEEDS = 32  # texts that a corpus starts with
LIMITS = {
    Kind.TEXT: CaseLimits(20.0, 2048),
    Kind.STATEMENTS: CaseLimits(20.0, 2048),
    Kind.KERNELS: CaseLimits(120.0, 4096),
    Kind.ENGINES: CaseLimits(600.0),
    Kind.LITMUS: CaseLimits(300.0),
}
"""A JIT compiles, and a solver may take long."""
ENDED = "ended"


def fuzz(
    kind: str,
    *,
    cases: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    corpus: Iterable[str | os.PathLike[str]] = (),
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int, int], object] | None = None,
) -> Campaign:
    """Run random cases of a kind until so many have ended, or some seconds.

    The kinds are `text`, `statements`, `kernels`, `engines` and `litmus`.  Cases that run when the time is over are given up,
    and run again where the campaign goes on.
    `corpus` are files of PTX to start from, besides those made from the declarations.  The results are in `folder`, by
    default `fuzz-KIND.campaign`, and a campaign goes on there: `cases` counts those before, too.  The others are as for
    `ptxvm.campaign`.  Raises ValueError and TypeError.
    """
    chosen = Kind(options.one_of("kind", kind, tuple(Kind)))
    if cases is None and seconds is None:
        raise ValueError("fuzzing ends after a number of cases or a time; say which")
    workers = os.cpu_count() or 1 if workers is None else options.count("workers", workers)
    where, name = Path(folder) if folder is not None else Path(f"fuzz-{chosen}.campaign"), f"fuzz-{chosen}"
    with ExitStack() as open_until_the_end:
        results = open_until_the_end.enter_context(Results(where / RESULTS, f"fuzz {chosen} {seed}"))
        pool = runner(FuzzWorkload(chosen, seed), workers, scheduler, LIMITS[chosen])
        open_until_the_end.enter_context(pool)
        fuzzing = Fuzzing(results, chosen, seed, corpus)
        if progress is not None:
            progress(fuzzing.ended, fuzzing.failed, cases or 0)
        until = None if seconds is None else time.monotonic() + seconds
        for done in pool.outcomes(fuzzing.jobs(cases, until), until):
            fuzzing.add(done)
            if progress is not None:
                progress(fuzzing.ended, fuzzing.failed, cases or 0)
        reasons = results.reasons()
        tests = write_cases(where, chosen, seed, reasons, pool)
        (where / PAGE).write_text(page(name, ParameterSpace({}), results, tests, fuzzing.ended), encoding="utf-8")
        counts = results.counts()
        return Campaign(name, where, {Verdict.PASSED: fuzzing.ended - sum(counts.values()), **counts}, reasons, tests)


class Fuzzing:
    """The state of a fuzzing campaign: the jobs that have ended, of one case or several, and its corpus."""

    def __init__(self, results: Results, kind: Kind, seed: int, corpus: Iterable[str | os.PathLike[str]]) -> None:
        self.results, self.kind, self.seed = results, kind, seed
        self.cases_of_job = CASES.get(kind, 1)
        self.lowest = results.number(ENDED)
        self.failed = results.failed()
        self.beyond: set[int] = set()  # those that have ended behind one that has not
        self.known: set[str] = set()
        self.texts: list[str] = []
        if kind in HAS_CORPUS:
            from ptxvm.campaign.fuzz.seeds import seeds  # noqa: PLC0415 - it imports all declarations

            made = seeds(SEEDS, seed, short=kind is Kind.TEXT)
            self.texts = [*(Path(path).read_text(errors="replace") for path in corpus), *made]
            for text, features in results.corpus():
                self.texts.append(text)
                self.known.update(features)

    @property
    def ended(self) -> int:
        """How many cases have ended."""
        return (self.lowest + len(self.beyond)) * self.cases_of_job

    def jobs(self, cases: int | None, until: float | None) -> Iterator[Job]:
        """The jobs to run, until there are enough cases or it is late."""
        for number in count(self.lowest):
            if (cases is not None and number * self.cases_of_job >= cases) or (until is not None and time.monotonic() > until):
                return
            random = Random(f"corpus {self.seed} {number}")  # noqa: S311 - no secret
            if self.texts:
                # Half of the time one of the latest, which nothing was made of yet.
                recent = self.texts[-SEEDS:] if random.random() < 0.5 else self.texts
                yield Job(number, {OTHER: shorter(self.texts, random)}, shorter(recent, random))
            else:
                yield Job(number)

    def add(self, done: list[Done]) -> None:
        """Count cases that have ended; write those that failed, and texts that showed something new."""
        wrong = [each for each in done if each.outcome.failed]
        self.results.add((each, JSON.encode({"kind": self.kind, "text": self.text_of(each)})) for each in wrong)
        self.failed += len(wrong)
        for each in done:
            new = set(each.outcome.features) - self.known
            if new:
                self.known |= new
                self.texts.append(each.outcome.text)
                self.results.grow(each.outcome.text, sorted(new))
        self.beyond.update(each.number for each in done)
        while self.lowest in self.beyond:
            self.beyond.remove(self.lowest)
            self.lowest += 1
        self.results.keep(ENDED, self.lowest)

    def text_of(self, done: Done) -> str:
        """What a case ran, also where its worker could not say it any more."""
        return done.outcome.text or FuzzWorkload(self.kind, self.seed).made(done.job)[0]


def shorter(texts: Sequence[str], random: Random) -> str:
    """The shorter one of two texts: what is short runs fast, and a change of it is more likely one of what matters."""
    return min(random.choice(texts), random.choice(texts), key=len)


__all__ = ["fuzz"]

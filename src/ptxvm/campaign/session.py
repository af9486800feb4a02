"""A campaign from its declaration to its results: the cases that are left are run, and failures are made small."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from ptxvm.campaign.case import DeclaredWorkload, Workload
from ptxvm.campaign.declaration import CaseLimits, Declaration, declared, read_declaration
from ptxvm.campaign.outcome import Job, Verdict
from ptxvm.campaign.page import page
from ptxvm.campaign.parquet import libraries, write_parquet
from ptxvm.campaign.pool import Pool
from ptxvm.campaign.python_function import Function, named
from ptxvm.campaign.reproduction import write_tests
from ptxvm.campaign.results import Case, Reason, Results, read_cases
from ptxvm.campaign.shrink import smaller
from ptxvm.dataclass import dataclass
from ptxvm.machine import options

if TYPE_CHECKING:
    from ptxvm.campaign.cluster import Cluster

RESULTS, PAGE = "results.sqlite", "index.html"
MOST_SHRUNK = 20  # reasons whose first case is made small


@dataclass(frozen=True)
class Campaign:
    """The results of a campaign, in a folder: `results.sqlite`, `index.html`, and a test for each failure.

    `counts` has the number of cases by how they ended, `reasons` the failures by what failed where, with the first case of
    each; `tests` are the files that repeat those, made small.
    """

    name: str
    folder: Path
    counts: Mapping[Verdict, int]
    reasons: list[Reason]
    tests: list[Path] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """The cases that have ended."""
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        """Those that failed."""
        return self.cases - self.counts.get(Verdict.PASSED, 0)

    @property
    def results(self) -> Path:
        """The SQLite file."""
        return self.folder / RESULTS

    @property
    def page(self) -> Path:
        """The page that shows the parameters, and what failed where."""
        return self.folder / PAGE

    def failures(self) -> Iterator[Case]:
        """All cases that failed."""
        with closing(sqlite3.connect(f"file:{self.results}?mode=ro", uri=True)) as connection:
            yield from read_cases(connection, "WHERE verdict <> 'passed'")

    def __repr__(self) -> str:
        counted = ", ".join(f"{count:,} {verdict}" for verdict, count in self.counts.items())
        return f"<Campaign {self.name}: {counted or 'no cases'}>"


def campaign(
    what: str | os.PathLike[str] | Mapping[str, Mapping[str, object]] | Function,
    parameters: Mapping[str, object] | None = None,
    *,
    limits: Mapping[str, object] | None = None,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    shrink: bool = True,
    parquet: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, int], object] | None = None,
) -> Campaign:
    """Run a kernel or a function over parameters, on the cores of this machine or on a Dask cluster, and return what failed.

    `what` is a TOML file, its tables as a mapping, or a function at the top of a file, which is called with `parameters`: a
    mapping of names to lists of values.  `limits` is what a case of a function may take, as in the table of a file: `seconds`,
    `memory` (MiB) and `attempts`.  The results are in `folder`, by default `NAME.campaign`; a campaign that was
    interrupted goes on there.  `workers` is the number of processes, by default one for each core, `scheduler` the address
    of a Dask cluster (`tcp://host:8786`).  With `shrink` the first case of each failure is made small, and written as a
    test.  With `parquet` the results are written to that file at the end, too.  `progress` is called at first, and as cases
    end, with how many have ended, failed, and are to be run.  Raises ValueError where the declaration is wrong, TypeError,
    and ImportError where an extra is not installed.
    """
    declaration = declaration_of(what, parameters, limits)
    if parquet is not None:
        libraries()  # the extra is asked for before cases run
    workers = os.cpu_count() or 1 if workers is None else options.count("workers", workers)
    where = Path(folder) if folder is not None else Path(f"{declaration.subject.name}.campaign")
    workload, space = DeclaredWorkload(declaration), declaration.space
    with ExitStack() as open_until_the_end:
        results = open_until_the_end.enter_context(Results(where / RESULTS, declaration.fingerprint))
        results.describe(declaration.subject.name, space)
        ended, failed = sum(results.counts().values()), results.failed()
        pool = runner(workload, workers, scheduler, declaration.limits)
        open_until_the_end.enter_context(pool)
        if progress is not None:
            progress(ended, failed, space.cases)
        for done in pool.outcomes(Job(number) for number in results.waiting(space.cases)):
            results.add((each, space.json(space.position(each.number))) for each in done)
            ended, failed = ended + len(done), failed + sum(each.outcome.failed for each in done)
            if progress is not None:
                progress(ended, failed, space.cases)
        reasons, tests = results.reasons(), []
        if shrink:
            found = [smaller(declaration, reason.first, pool) for reason in reasons[:MOST_SHRUNK]]
            tests = write_tests(where, declaration, found)
        if parquet is not None:
            write_parquet(Path(parquet), space, results)
        (where / PAGE).write_text(page(declaration.subject.name, space, results, tests), encoding="utf-8")
        return Campaign(declaration.subject.name, where, results.counts(), reasons, tests)


def runner(workload: Workload, workers: int, scheduler: str | None, limits: CaseLimits) -> Pool | Cluster:
    """What runs the cases."""
    if scheduler is None:
        return Pool(workload, workers, limits)
    from ptxvm.campaign.cluster import Cluster  # noqa: PLC0415 - Dask is an extra

    return Cluster(workload, scheduler, limits)


def declaration_of(
    what: object, parameters: Mapping[str, object] | None, limits: Mapping[str, object] | None = None
) -> Declaration:
    """The declaration that a caller means."""
    if callable(what):
        subject = {"name": getattr(what, "__name__", "campaign"), "function": named(what)}
        tables = {"campaign": subject, "parameters": dict(parameters or {})}
        return declared(tables if limits is None else {**tables, "limits": limits})
    if parameters is not None or limits is not None:
        raise TypeError("parameters and limits are those of a function; a file or a mapping has them in its tables")
    if isinstance(what, str | os.PathLike):
        return read_declaration(Path(what))
    if isinstance(what, Mapping):
        return declared(what)
    raise TypeError(f"a campaign is a TOML file, its tables or a function, not {options.shown(what)}")

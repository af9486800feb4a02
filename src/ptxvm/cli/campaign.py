"""`ptxvm campaign`: runs a campaign, shows how far it is, and lists what failed where."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from ptxvm.campaign.fuzz.session import fuzz
from ptxvm.campaign.fuzz.workload import MEANINGS
from ptxvm.campaign.outcome import Verdict
from ptxvm.campaign.session import Campaign, campaign
from ptxvm.cli.failures import FINDINGS, WrongCall, one_line
from ptxvm.cli.terminal import console, tabulated
from ptxvm.dataclass import dataclass

MOST_REASONS = 20
UNITS = {"s": 1, "m": 60, "h": 3600}
Told = Callable[[int, int, int], None]
"""Called with how many cases have ended, failed, and are to be run."""


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    """What the command line asks fuzz for, as it stands there."""

    kind: str | None
    cases: int | None
    budget: str | None
    seed: int
    corpus: Sequence[str]
    folder: str | None
    workers: int | None
    scheduler: str | None


def run_campaign(
    file: str, folder: str | None, workers: int | None, scheduler: str | None, parquet: str | None = None, *, shrink: bool
) -> int:
    """Run the campaign of a file; 1 where a case failed."""
    with progressing(Path(file).stem) as told, wrong_calls():
        done = campaign(
            file, folder=folder, workers=workers, scheduler=scheduler, shrink=shrink, parquet=parquet, progress=told
        )
    print_campaign(done)
    return FINDINGS if done.failed else 0


def run_fuzz(request: FuzzRequest) -> int:
    """Fuzz until the cases or the time are over; 1 where something was found."""
    if request.kind is None:
        raise WrongCall(f"fuzz needs --kind: {', '.join(f'{kind} ({meaning})' for kind, meaning in MEANINGS.items())}")
    if request.cases is None and request.budget is None:
        raise WrongCall("fuzz needs an end: --cases N, or --budget with a time such as 30s, 10m or 8h")
    with progressing(f"fuzz {request.kind}") as told, wrong_calls():
        done = fuzz(
            request.kind, cases=request.cases, seconds=duration(request.budget), seed=request.seed, corpus=request.corpus,
            folder=request.folder, workers=request.workers, scheduler=request.scheduler, progress=told,
        )  # fmt: skip
    print_campaign(done)
    return FINDINGS if done.failed else 0


def duration(text: str | None) -> float | None:
    """The seconds of `30s`, `10m` or `8h`."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None or not float(found[1]):
        raise WrongCall(f"--budget takes a time such as 30s, 10m or 8h, not '{text}'")
    return float(found[1]) * UNITS[found[2]]


@contextmanager
def wrong_calls() -> Iterator[None]:
    """Around a campaign: what is wrong with its declaration or files is one line."""
    try:
        yield
    except FileNotFoundError as wrong:
        raise WrongCall(f"no such file: '{wrong.filename}'") from None
    except OSError as wrong:
        raise WrongCall(f"cannot use '{wrong.filename}': {wrong.strerror}") from None
    except (ValueError, ImportError) as wrong:
        raise WrongCall(one_line(str(wrong))) from None


@contextmanager
def progressing(name: str) -> Iterator[Told | None]:
    """On a terminal a line that shows how far a campaign is, how fast, and how long it will take; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task(name, total=None, said="")  # a total of 0 is one that is not known

        def told(ended: int, failed: int, cases: int) -> None:
            speed = progress.tasks[0].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            progress.update(task, completed=ended, total=cases or None, said=f"{rate} {failed:,} failed" if failed else rate)

        yield told


def print_campaign(done: Campaign) -> None:
    """How many cases ended how, a line for each reason, and where all of it is."""
    counted = ", ".join(f"{done.counts[verdict]:,} {verdict}" for verdict in Verdict if done.counts.get(verdict))
    out = console()
    out.print(Text(f"{done.name}: {counted or 'no cases'}"))
    if done.reasons:
        rows = [
            (f"{reason.count:,}", str(reason.first.number), reason.first.outcome.reason)
            for reason in done.reasons[:MOST_REASONS]
        ]
        out.print(tabulated(("cases", "first", "reason"), rows, {0, 1}), soft_wrap=True)
        more = len(done.reasons) - MOST_REASONS
        if more > 0:
            out.print(Text(f"and {more} more reasons"))
    for test in done.tests:
        out.print(Text(f"repeat: pytest {test}"), soft_wrap=True)
    out.print(Text(f"page: {done.page}"), soft_wrap=True)

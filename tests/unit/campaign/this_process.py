"""A runner of cases and ranges without processes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from ptxvm.campaign.outcome import Done, Job


class InThisProcess:
    """Runs jobs one after the other, where it is called."""

    def __init__(self, workload: Any, *_: object, **__: object) -> None:
        self.workload = workload

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def outcomes(self, jobs: Iterator[Job], *_: object, **__: object) -> Iterator[list[Done]]:
        for job in jobs:
            yield [Done(job, self.workload.run(job), 1)]

"""When asynchronous work ends: at its start, at the wait for it, or at random between the two.

Copies, transfers, products, and loads and stores of tensor memory go on beside the threads; the machine chooses when each
ends, and a kernel without races gives the same results whatever it chooses (PTX 9.7.9.25, 9.7.15.7, 9.7.16.6).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.engine.interp.schedule import Schedule

MOST_STEPS = 4096  # without a wait; then late work ends, since a thread may poll memory for it


def early(schedule: Schedule) -> None:
    """All work ends at once; what changes registers ends after its instruction."""
    schedule.end_copies()


class Late:
    """Work ends where a thread waits for it; the oldest piece ends where no thread can go on without it."""

    def __init__(self) -> None:
        self._since = 0

    def __call__(self, schedule: Schedule) -> None:
        """End the oldest piece of work if all lanes wait, or poll mbarriers in vain."""
        polling = schedule.cohort.polling
        if schedule.all_wait(polling) or schedule.steps - self._since > MOST_STEPS:
            self._since = schedule.steps
            polling[:] = False
            schedule.end_copies(most=1)


class Random:
    """Now and then the work of random lanes ends, or of all."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def __call__(self, schedule: Schedule) -> None:
        """End some work, or none."""
        kind = self.random.random()
        if kind < 0.3:
            schedule.end_copies(None if kind < 0.1 else self.random.random(schedule.cohort.size) < 0.5)


def choose(schedule: Schedule, when: str, seed: Sequence[int]) -> None:
    """Let the work of a schedule end `early`, `late` or at `random`, by a seed."""
    if when == "early":
        schedule.completion, schedule.cohort.copies.early = early, True
    elif when == "late":
        schedule.completion, schedule.cohort.polling = Late(), np.zeros(schedule.cohort.size, np.bool_)
    elif when == "random":
        schedule.completion = Random(np.random.default_rng(seed))


__all__ = ["Late", "Random", "choose", "early"]

"""A two-armed bandit: two compiled versions of a kernel take turns on the CTAs of its launches, and the faster one gets most.

Which is faster depends on the data: vectors lose where few of their lanes are active, and code for one thread at a time where
most are.  So time is measured: the version that seems slower runs a few CTAs now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.run.launch_state import Launch
    from ptxvm.engine.jit.run.runner import CompiledKernel
    from ptxvm.machine.allocation import Allocation

SAMPLE = 0.5e-3  # seconds of a sample of the slower version ...
SPACINGS = (
    1,
    32,
)  # ... after the faster one has run for so many times as long: at first, and when it has stayed the faster one
WEIGHT = 0.5  # of the latest run in the rate of a version
COLD = 0.7  # of a rate: a run that is quicker by so much found warm caches, and counts alone


class Contest:
    """The rates of two versions, in seconds of processor time for a CTA."""

    def __init__(self) -> None:
        self.rates: list[float | None] = [None, None]
        self._since = 0.0  # seconds that the faster one has run since the last sample of the other
        self._spacing, self._most = SPACINGS

    @property
    def faster(self) -> int:
        """The version that seems faster; the first one until both have run."""
        first, second = self.rates
        return int(first is not None and second is not None and second < first)

    def next(self, ctas: int) -> tuple[int, int]:
        """The version that runs next, and how many of the CTAs that are left."""
        faster, other = self.faster, 1 - self.faster
        own, others = self.rates[faster], self.rates[other]
        if own is None or others is None:
            return (faster if own is None else other), max(1, ctas // self._most)
        sample = max(1, int(SAMPLE / max(others, 1e-9)))
        left = self._spacing * sample * others - self._since
        if left <= 0:
            return other, min(ctas, sample)
        return faster, min(ctas, max(1, int(left / max(own, 1e-9))))

    def ran(self, version: int, ctas: int, seconds: float) -> None:
        """A version has run some CTAs."""
        faster, before, rate = self.faster, self.rates[version], seconds / ctas
        self.rates[version] = rate if before is None or rate < COLD * before else WEIGHT * rate + (1 - WEIGHT) * before
        if version == faster:
            self._since += seconds
            return
        self._since = 0.0
        self._spacing = min(2 * self._spacing, self._most) if self.faster == faster else SPACINGS[0]


class PairedRunner(Runner):
    """Runs CTAs of one kernel by the faster of two versions, each of which has a launch record of its own."""

    paired = True

    def __init__(self, compiled: CompiledKernel, rival: Runner, contest: Contest, shape: LaunchShape) -> None:
        self.rival, self._contest = rival, contest
        super().__init__(compiled, shape)
        self.host_thread.share(rival.host_thread)

    def know(self, allocations: Sequence[Allocation]) -> None:
        """Set the allocations that both versions know."""
        super().know(allocations)
        self.rival.know(allocations)

    def begin(self, launch: Launch, parameters: int) -> None:
        """Prepare for a launch; its record is the one that the table of running threads knows."""
        self.rival.prepare(launch, parameters)
        super().begin(launch, parameters)

    def run_ctas(self, first: int, last: int) -> bool:
        """Run some CTAs, in pieces."""
        if self.in_step:
            return super().run_ctas(first, last)
        while first < last:
            version, ctas = self._contest.next(last - first)
            began = time.thread_time()
            run: Callable[[int, int], bool] = self.rival.run_ctas if version else super().run_ctas
            if not run(first, first + ctas):
                return False
            self._contest.ran(version, ctas, time.thread_time() - began)
            first += ctas
        return True

    def counted(self) -> tuple[int, int]:
        """Instructions and thread-instructions that both have executed."""
        own, others = super().counted(), self.rival.counted()
        return own[0] + others[0], own[1] + others[1]

    def show(self) -> None:
        """Enter the windows of both in the table of allocations."""
        super().show()
        self.rival.show()

    def hide(self) -> None:
        """Remove the windows of both from the table of allocations."""
        super().hide()
        self.rival.hide()

"""A two-armed bandit: two compiled versions of a kernel take turns on the CTAs of its launches, and the faster one gets most.

Which is faster depends on the data: vectors lose where few of their lanes are active, and code for one thread at a time where
most are.  So time is measured: the version that seems slower runs a few CTAs now and then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.run.launch_state import Launch
    from ptxvm.engine.jit.run.runner import CompiledKernel
    from ptxvm.machine.allocation import Allocation

SAMPLE = 0.4e-3  # seconds of each run of a sample ...
SPACINGS = (1, 32)  # ... after the faster one has run for so many times as long: at first, and where that stays the faster one
RUNS = 3  # of a sample: by the first version, the second, and the first again
EVEN = 1.5  # how many times as long as the other one a run of the first version may take, for a sample to count
FIRST = 64  # the runs of the first sample have this part of the CTAs
WEIGHT = 0.5  # of the latest comparison
MOST = 2.0  # that one counts, as the logarithm of how many times as long one version takes as the other


class Contest:
    """What is known of two versions: the logarithm of how many times as long the first one takes as the second."""

    def __init__(self) -> None:
        self.ratio: float | None = None
        self.spacing, self._most = SPACINGS

    @property
    def faster(self) -> int:
        """The version that seems faster; the first one until both have been compared."""
        return int(self.ratio is not None and self.ratio > 0)

    def compared(self, first: float, second: float) -> None:
        """The versions take so many seconds for a CTA, side by side."""
        found, before = min(max(math.log(first / second), -MOST), MOST), self.faster
        self.ratio = found if self.ratio is None else WEIGHT * found + (1 - WEIGHT) * self.ratio
        self.spacing = min(2 * self.spacing, self._most) if self.faster == before else SPACINGS[0]


class Turns:
    """Which version runs next, on one host thread: mostly the faster one, and now and then both, on neighbouring CTAs.

    CTAs of a grid may take very different times.  So in a sample the first version runs before the second one and behind it,
    and where those two runs take very different times, nothing is learnt from it.  Neither is from the first sample of a
    thread: its caches are cold.
    """

    def __init__(self, contest: Contest) -> None:
        self._contest = contest
        self._rates = [0.0, 0.0]  # seconds of a CTA, where each version ran last
        self._sample: list[float] | None = None  # those of the runs of a sample under way
        self._ctas = 0  # of each of its runs
        self._cost = self._since = 0.0  # seconds of the last sample, and those since then
        self._cold = True

    def next(self, ctas: int) -> tuple[int, int]:
        """The version that runs next, and how many of the CTAs that are left."""
        if self._sample:
            return len(self._sample) % 2, min(ctas, self._ctas)
        faster, slowest = self._contest.faster, max(self._rates)
        left = self._contest.spacing * self._cost - self._since
        if left > 0:
            return faster, min(ctas, max(1, int(left / max(self._rates[faster], 1e-9))))
        self._sample, self._cost = [], 0.0
        self._ctas = min(ctas, max(1, int(SAMPLE / slowest) if slowest else ctas // FIRST))
        return 0, self._ctas

    def ran(self, version: int, ctas: int, seconds: float) -> None:
        """A version has run some CTAs."""
        self._rates[version] = seconds / ctas
        if self._sample is None:
            self._since += seconds
            return
        self._cost += seconds
        self._sample.append(max(seconds / ctas, 1e-9))
        if len(self._sample) == RUNS:
            before, second, behind = self._sample
            if not self._cold and max(before, behind) < EVEN * min(before, behind):
                self._contest.compared((before + behind) / 2, second)
            self._cost = 0.0 if self._cold else self._cost
            self._sample, self._since, self._cold = None, 0.0, False


class PairedRunner(Runner):
    """Runs CTAs of one kernel by the faster of two versions, each of which has a launch record of its own."""

    paired = True

    def __init__(self, compiled: CompiledKernel, rival: Runner, contest: Contest, shape: LaunchShape) -> None:
        self.rival, self._turns = rival, Turns(contest)
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
            version, ctas = self._turns.next(last - first)
            began = time.thread_time()
            run: Callable[[int, int], bool] = self.rival.run_ctas if version else super().run_ctas
            if not run(first, first + ctas):
                return False
            self._turns.ran(version, ctas, time.thread_time() - began)
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

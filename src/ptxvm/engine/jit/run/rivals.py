"""A two-armed bandit: two compiled versions of a kernel take turns on the CTAs of its launches, and the faster one gets most.

Which is faster depends on the data: vectors lose where few of their lanes are active, and code for one thread at a time where
most are.  So time is measured: the version that seems slower runs a few CTAs now and then.  What is compared is the time of
an executed thread-instruction, as CTAs may have very different amounts of work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.run.launch_state import Launch
    from ptxvm.engine.jit.run.runner import CompiledKernel
    from ptxvm.machine.allocation import Allocation

SAMPLE = 0.4e-3  # seconds of each run of a sample ...
SPACINGS = (1, 32)  # ... after the faster one has run for so many times as long: at first, and where that stays the faster one
RUNS = 3  # of a sample: by the first version, the second, and the first again
FIRST = 64  # the runs of the first sample have this part of the CTAs
# Seconds of a run, if its CTAs take the mean time of all: they may take longer, by the version that is slower there.
LONGEST = 2e-3
WEIGHT = 0.5  # of the latest comparison, if it took as long as they do on average


class Contest:
    """The measurements of two versions: the seconds and the work of their samples, of which later ones count for more.

    Work is a number of thread-instructions.  A sample weighs what it took: what is learnt where CTAs have little to do is soon
    overruled where most of the time goes.
    """

    def __init__(self) -> None:
        self._seconds, self._work = [0.0, 0.0], [0.0, 0.0]
        self._samples, self._total = 0, 0.0  # seconds of all samples
        self.spacing, self._most = SPACINGS

    @property
    def faster(self) -> int:
        """The version that seems faster; the first one until both have been compared."""
        (first, second), (own, others) = self._seconds, self._work
        return int(first * others > second * own)

    def compared(self, first: tuple[float, int], second: tuple[float, int]) -> None:
        """The versions have done an amount of work each, in so many seconds, side by side."""
        before, took = self.faster, first[0] + second[0]
        self._samples, self._total = self._samples + 1, self._total + took
        kept = (1 - WEIGHT) ** min(1.0, took * self._samples / self._total)
        for version, (seconds, work) in enumerate((first, second)):
            self._seconds[version] = kept * self._seconds[version] + seconds
            self._work[version] = kept * self._work[version] + work
        self.spacing = min(2 * self.spacing, self._most) if self.faster == before else SPACINGS[0]


class Turns:
    """Which version runs next, on one host thread: mostly the faster one, and now and then both, on neighbouring CTAs.

    In a sample the first version runs before the second one and behind it.  Nothing is learnt from the first sample of a
    thread: its caches are cold.  `ctas` is how many CTAs ran before, in so many `seconds`.
    """

    def __init__(self, contest: Contest, ctas: float = 0.0, seconds: float = 0.0) -> None:
        self._contest = contest
        self._rates = [0.0, 0.0]  # seconds of a CTA, where each version ran last
        self._all, self._seconds = ctas, seconds  # those that have run
        self._sample: list[tuple[float, int]] | None = None  # seconds and work of the runs of a sample under way
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
            return faster, self._most(ctas, left, self._rates[faster])
        self._sample, self._cost = [], 0.0
        self._ctas = self._most(ctas, SAMPLE, slowest) if slowest else max(1, ctas // FIRST)
        return 0, self._ctas

    def _most(self, ctas: int, seconds: float, rate: float) -> int:
        """As many CTAs as take some time at a rate, and not too long should they take the mean time of all CTAs."""
        mean = self._seconds / max(self._all, 1)
        return min(ctas, max(1, int(min(seconds / max(rate, 1e-9), LONGEST / max(mean, 1e-9)))))

    def ran(self, version: int, ctas: int, seconds: float, work: int) -> None:
        """A version has run some CTAs, which executed so many thread-instructions."""
        self._rates[version] = seconds / ctas
        self._all, self._seconds = self._all + ctas, self._seconds + seconds
        if self._sample is None:
            self._since += seconds
            return
        self._cost += seconds
        self._sample.append((max(seconds, 1e-9), work))
        if len(self._sample) == RUNS:
            before, second, behind = self._sample
            if not self._cold:
                self._contest.compared((before[0] + behind[0], before[1] + behind[1]), second)
            self._cost = 0.0 if self._cold else self._cost
            self._sample, self._since, self._cold = None, 0.0, False


class PairedRunner(Runner):
    """Runs CTAs of one kernel by the faster of two versions, each of which has a launch record of its own."""

    paired = True

    def __init__(
        self, compiled: CompiledKernel, rival: Runner, turns: Turns, shape: LaunchShape, kind: type[Callbacks] = Callbacks
    ) -> None:
        self.rival, self._turns = rival, turns
        super().__init__(compiled, shape, kind)
        self.host_thread.share(rival.host_thread)

    def know(self, allocations: Sequence[Allocation], asked: Collection[Allocation] = ()) -> None:
        """Set the allocations that both versions know."""
        super().know(allocations, asked)
        self.rival.know(allocations, asked)

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
            run: Callable[[int, int], bool] = self.rival.run_ctas if version else super().run_ctas
            _, before = self.counted()
            began = time.thread_time()
            if not run(first, first + ctas):
                return False
            took = time.thread_time() - began
            self._turns.ran(version, ctas, took, self.counted()[1] - before)
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

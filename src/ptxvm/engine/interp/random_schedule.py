"""Random schedules: any group of lanes runs next, by a seeded random generator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.engine.interp import completion
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.machine.per_lane import LaneNumbers, Lanes

INDEPENDENT = 70  # from this target on, the lanes of a warp are scheduled independently


class RandomSchedule(Schedule):
    """Lets any group run, and often only some of its warps, or of the lanes of a warp (PTX 3.1)."""

    def __init__(self, cohort: Cohort, code: Executable, kernel: Routine, seed: Sequence[int]) -> None:
        super().__init__(cohort, code, kernel)
        self.random = np.random.default_rng(seed)
        program = kernel.function.program
        self.independent = program is None or program.target.number >= INDEPENDENT
        self.completion = completion.Random(self.random)

    def choose(self) -> Key:
        """A random group."""
        ready = list(self.ready)
        return ready[int(self.random.integers(len(ready)))]

    def take(self, key: Key) -> Lanes:
        """All lanes of a group, or a random part of them; the others stay ready."""
        lanes = super().take(key)
        every = self.cohort.layout.numbers if lanes is None else lanes
        kind = self.random.random()
        if kind < 0.3 or len(every) == 1:
            return lanes
        run = self.random.random(self.cohort.layout.warps) < 0.5
        chosen = run[self.cohort.layout.warp[every]]
        if kind > 0.6 and self.independent:
            chosen = (chosen | (kind > 0.8)) & (self.random.random(len(every)) < 0.5)
        if not chosen.any() or chosen.all():
            return lanes
        self.ready[key] = [every[~chosen]]
        taken: LaneNumbers = every[chosen]
        return taken

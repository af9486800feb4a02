"""A schedule that tells a cohort that records where lanes go on after a branch."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.converging_schedule import ConvergingSchedule
from ptxvm.engine.interp.recording_cohort import RecordingCohort
from ptxvm.machine.per_lane import Lanes, PerLane


class RecordingSchedule(ConvergingSchedule):
    """Runs a cohort that records."""

    cohort: RecordingCohort

    def run(self, steps: int) -> bool:
        """Run so many steps; tell the trace when the recorded lanes have ended."""
        finished = super().run(steps)
        if finished and self.cohort.follows:
            self.cohort.trace.ended()
        return finished

    def branched(self, key: Key, lanes: Lanes, places: PerLane) -> None:
        """Record the lines at which lanes go on; 0 is the end of the code."""
        routine = self.code.routines[key[1]]
        code = routine.function.instructions
        lines = {n: code[routine.segments[n].start].line if n < routine.end else 0 for n in np.unique(places).tolist()}
        self.cohort.went(lanes, np.array([lines[n] for n in places.tolist()]))


__all__ = ["RecordingSchedule"]

"""The interpreter for a profile: it counts what the grids of a launch do."""

from __future__ import annotations

from functools import cached_property, partial

from ptxvm.engine.interp import completion
from ptxvm.engine.interp.counting_cohort import CountingCohort, Places
from ptxvm.engine.interp.counting_schedule import CountingSchedule
from ptxvm.engine.interp.engine import Begin, Interpreter
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.profile.counter import Counter


class CountingInterpreter(Interpreter):
    """Runs the kernels of an image, and tells a counter what they do."""

    def __init__(self, image: Image, counter: Counter) -> None:
        super().__init__(image)
        self.counter, self.places = counter, Places()

    @cached_property
    def executable(self) -> Executable:
        """The routines of the image, which tell of guards."""
        return Executable(self.image, counting=True)

    def beginning(self, options: LaunchOptions) -> Begin:
        """How a cohort begins."""
        return partial(begin, self, options)


def begin(
    engine: CountingInterpreter, options: LaunchOptions, inputs: CohortInputs, code: Executable, routine: Routine
) -> Schedule:  # fmt: skip
    """The schedule of a cohort that counts."""
    schedule = CountingSchedule(CountingCohort(inputs, engine.counter, engine.places), code, routine)
    completion.choose(schedule, options.asynchronous, [options.seed, int(schedule.cohort.layout.ctas[0])])
    return schedule


__all__ = ["CountingInterpreter"]

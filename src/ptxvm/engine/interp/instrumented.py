"""Instrumentation: an interpreter whose code, cohorts and schedules tell something else what a launch does."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Protocol

from ptxvm.engine.interp import completion
from ptxvm.engine.interp.counting_cohort import CountingCohort, Places
from ptxvm.engine.interp.counting_schedule import CountingSchedule
from ptxvm.engine.interp.counting_tracer import CountingTracer
from ptxvm.engine.interp.engine import LANES, Begin, Interpreter
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.logging_cohort import LoggingCohort
from ptxvm.engine.interp.recording_cohort import RecordingCohort
from ptxvm.engine.interp.recording_schedule import RecordingSchedule
from ptxvm.engine.interp.recording_tracer import RecordingTracer
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.segment import Tracer
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.profile.counter import Counter
from ptxvm.profile.stores import StoreLog
from ptxvm.profile.trace import Trace


class Instrument(Protocol):
    """What follows a launch: the tracer that writes its code, and the schedule of each cohort."""

    tracer: type[Tracer]

    def schedule(self, inputs: CohortInputs, code: Executable, routine: Routine) -> Schedule:
        """The schedule of a cohort."""
        ...


class Counting:
    """Counts what all threads do."""

    tracer: type[Tracer] = CountingTracer

    def __init__(self, counter: Counter) -> None:
        self.counter, self.places = counter, Places()

    def schedule(self, inputs: CohortInputs, code: Executable, routine: Routine) -> Schedule:
        """The schedule of a cohort that counts."""
        return CountingSchedule(CountingCohort(inputs, self.counter, self.places), code, routine)


class OfGrid:
    """Follows the launched grid, and none that its threads launch."""

    def __init__(self, record: Trace | StoreLog) -> None:
        self.record = record
        self.grid: object = None  # the clusters of the launched grid, whose cohorts begin first

    def follows(self, inputs: CohortInputs) -> bool:
        """Is a cohort of the launched grid?"""
        if self.grid is None:
            self.grid = inputs.clusters
            self.record.begin(inputs.shape.grid, inputs.shape.block)
        return inputs.clusters is self.grid


class Recording:
    """Records what the chosen threads of the launched grid do, instruction by instruction."""

    tracer: type[Tracer] = RecordingTracer

    def __init__(self, trace: Trace) -> None:
        self.trace, self.launched = trace, OfGrid(trace)

    def schedule(self, inputs: CohortInputs, code: Executable, routine: Routine) -> Schedule:
        """The schedule of a cohort that records."""
        cohort = RecordingCohort(inputs, self.trace, follows=self.launched.follows(inputs))
        return RecordingSchedule(cohort, code, routine)


class Logging:
    """Logs the stores of all threads of the launched grid."""

    tracer: type[Tracer] = Tracer

    def __init__(self, log: StoreLog) -> None:
        self.log, self.launched = log, OfGrid(log)

    def schedule(self, inputs: CohortInputs, code: Executable, routine: Routine) -> Schedule:
        """The schedule of a cohort that logs."""
        return Schedule(LoggingCohort(inputs, self.log if self.launched.follows(inputs) else None), code, routine)


class InstrumentedInterpreter(Interpreter):
    """Runs the kernels of an image, followed by an instrument."""

    def __init__(self, image: Image, instrument: Instrument, lanes: int = LANES) -> None:
        super().__init__(image, lanes)
        self.instrument = instrument

    @cached_property
    def executable(self) -> Executable:
        """The routines of the image, as the tracer of the instrument writes them."""
        return Executable(self.image, tracer=self.instrument.tracer)

    def beginning(self, options: LaunchOptions) -> Begin:
        """How a cohort begins."""
        return partial(begin, self.instrument, options)


def begin(
    instrument: Instrument, options: LaunchOptions, inputs: CohortInputs, code: Executable, routine: Routine
) -> Schedule:  # fmt: skip
    """The schedule of a cohort, whose asynchronous work ends when the options say."""
    schedule = instrument.schedule(inputs, code, routine)
    completion.choose(schedule, options.asynchronous, [options.seed, int(schedule.cohort.layout.ctas[0])])
    return schedule


__all__ = ["Counting", "InstrumentedInterpreter", "Logging", "Recording"]

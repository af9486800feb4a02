"""A grid that is run instruction by instruction, and whose state can be kept and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial

import numpy as np

from ptxvm.analysis.program import Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import completion
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.engine import Interpreter, OpenGrid
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.grid_tree import GridTree
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.objects import Objects
from ptxvm.engine.interp.observed_memory import ObservedMemory
from ptxvm.engine.interp.register_fences import is_product
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.stepping_cohort import Observer, SteppingCohort, WatchedSteppingCohort
from ptxvm.engine.interp.stepping_schedule import Issue, SteppingSchedule
from ptxvm.engine.interp.texture_memory import Images
from ptxvm.engine.interp.watched_cohort import WatchState
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Scene, Watcher
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane
from ptxvm.machine.warp_schedule import Choice

SLICE = 2000  # instructions of a cohort before the next one runs
RESIDENT = 64  # cohorts that run at once


class InstructionCounter:
    """Counts the instructions of a grid that nothing else follows."""

    observes = False

    def __init__(self) -> None:
        self.time = 0

    def accessed(self, memory: ObservedMemory, access: Access, verb: Verb, lanes: Lanes, address: PerLane) -> None:
        """Nothing is followed."""


class SteppingInterpreter(Interpreter):
    """Runs the kernels of an image instruction by instruction, and those that they launch."""

    @cached_property
    def executable(self) -> Executable:
        """The routines of the image, one segment for each instruction."""
        return Executable(self.image, single=True)

    def grid(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, observer: Observer,
        watcher: Watcher | None = None,
    ) -> SteppedGrid:  # fmt: skip
        """A grid none of whose instructions has been issued; a watcher follows it, and the grids that it launches."""
        code = self.code_for(watcher, shape)
        scene = Scene(kernel.name, shape, self.image.shared_variables(kernel))
        code.children.open(None, GridTree(watcher, scene, self.image.shared_variables) if watcher is not None else None)
        return SteppedGrid(self, code, kernel, shape, parameters, options, observer, watcher, scene)

    def code_for(self, watcher: Watcher | None, shape: LaunchShape) -> Executable:
        """The routines for a grid of a shape, which tell a watcher what it wants to follow."""
        registers, variables = (watcher.follows_registers, watcher.follows_variables) if watcher is not None else (False, False)
        return self.following(registers=registers, variables=variables, clustered=shape.cluster_size > 1)


class ReplayingInterpreter(SteppingInterpreter):
    """Runs a kernel in the order that a schedule has saved; `choices` are its warps by the number of instructions before."""

    def __init__(self, image: Image, choices: Mapping[int, Choice]) -> None:
        super().__init__(image)
        self.choices = choices

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Run a grid to its end; ValueError where a chosen warp cannot run, for the kernel or its data are others."""
        clock = InstructionCounter()
        grid = self.grid(kernel, shape, parameters, options, clock)
        try:
            with np.errstate(all="ignore"):
                while (issue := grid.decide(self.choices.get(clock.time))) is not None:
                    grid.issue(issue, chosen=clock.time in self.choices)
                    clock.time += 1
            if clock.time in self.choices:
                said = f"after {clock.time} instructions, where it lets {self.choices[clock.time]} run, which cannot"
                raise ValueError(f"the schedule does not fit the run {said}")
            grid.finish()
        finally:
            grid.close()
        return grid.counters


def begin(
    observer: Observer, options: LaunchOptions, inputs: CohortInputs, code: Executable, routine: Routine
) -> SteppingSchedule:
    """The schedule of a cohort."""
    schedule = SteppingSchedule(SteppingCohort(inputs, observer), code, routine)
    completion.choose(schedule, options.asynchronous or "early", [options.seed, int(schedule.cohort.layout.ctas[0])])
    return schedule


@dataclass(eq=False, slots=True)
class SteppedLaunch:
    """A kernel that runs: the one of the grid, whose number is 0, or one that was launched, with its parameters.

    `running` are the cohorts that have begun, of which the first one runs for the instructions that are `left`.
    """

    number: int
    kernel: Function
    shape: LaunchShape
    opened: OpenGrid
    bank: Allocation | None = None
    running: list[SteppingSchedule] = field(default_factory=list)
    left: int = 0


class SteppedGrid:
    """A grid, and each of the grids that it launches, between two instructions; `launch` is the one that runs.

    Those in `suspended` wait for it, the last one directly.  Cohorts take turns, as in a usual run.
    """

    def __init__(
        self, interpreter: SteppingInterpreter, code: Executable, kernel: Function, shape: LaunchShape, parameters: int,
        options: LaunchOptions, observer: Observer, watcher: Watcher | None, scene: Scene,
    ) -> None:  # fmt: skip
        self.image: Image = interpreter.image
        self.interpreter, self.code, self.observer, self.scene = interpreter, code, observer, scene
        self.watching: WatchState | None = None
        if watcher is not None:
            products = any(is_product(bound) for routine in code.routines for bound in routine.function.instructions)
            provenance = interpreter.executable.provenance if watcher.follows_variables else {}
            self.watching = WatchState(watcher, Images(self.image.memory), Objects(self.image), provenance, products=products)
            watcher.begin(scene, 0, None)
        self.options = options
        opened = interpreter.opened(code, kernel, shape, parameters, options.shared, partial(self.begin, scene))
        self.launch = self.first = SteppedLaunch(0, kernel, shape, opened)
        _ = opened.environment.workspace  # from the beginning on, so that each state has it
        self.suspended: list[SteppedLaunch] = []
        self.begun = 0  # grids that were launched and have begun
        self.counters = Counters()

    def begin(self, scene: Scene, inputs: CohortInputs, code: Executable, routine: Routine) -> SteppingSchedule:
        """The schedule of a cohort of the grid of a scene."""
        if self.watching is None:
            return begin(self.observer, self.options, inputs, code, routine)
        cohort = WatchedSteppingCohort(inputs, self.observer)
        schedule = SteppingSchedule(cohort, code, routine)
        cohort.watch(self.watching, schedule, scene)
        completion.choose(schedule, self.options.asynchronous or "early", [self.options.seed, int(cohort.layout.ctas[0])])
        return schedule

    # ── grids ───────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> LaunchShape:
        """The shape of the grid that runs."""
        return self.launch.shape

    @property
    def opened(self) -> OpenGrid:
        """The cohorts of the grid that runs."""
        return self.launch.opened

    @property
    def running(self) -> list[SteppingSchedule]:
        """The cohorts of the grid that runs which have begun and not ended."""
        return self.launch.running

    @property
    def awaits(self) -> bool:
        """Do threads wait for grids, which begin before the next instruction?"""
        return bool(self.code.children.awaited)

    def is_suspended(self, number: int) -> bool:
        """Does the grid of a number wait for others?"""
        return any(each.number == number for each in self.suspended) or (self.launch.number == number and self.awaits)

    def suspend(self) -> None:
        """Let the grid that runs wait for those that its threads wait for, the first of which begins."""
        self.lend(1)
        self.suspended.append(self.launch)
        self.code.children.suspend()
        self.begin_child()

    def lend(self, count: int) -> None:
        """Those that it waits for may not access the shared and local memory of the grid (+1), or have ended (-1)."""
        for schedule in self.running:
            for window in schedule.cohort.windows.values():
                window.allocation.foreign += count

    def go_on(self) -> bool:
        """All cohorts have ended: a grid that was launched begins, or that goes on which waits; False where there is none."""
        if self.begin_child():
            return True
        if not self.suspended:
            return False
        self.put_away()
        self.launch = self.suspended.pop()
        self.lend(-1)
        self.code.children.resume()
        return True

    def put_away(self) -> None:
        """Hide the memory of the grid that has ended: a state of before may need it again."""
        if self.launch.bank is not None:
            self.image.memory.hide(self.launch.bank)
            self.image.memory.hide(self.launch.opened.environment.workspace)

    def begin_child(self) -> bool:
        """Let a grid begin that was launched, if there is one."""
        children = self.code.children
        child = children.next_child()
        if child is None:
            return False
        if not (self.suspended and self.suspended[-1] is self.launch):
            self.put_away()
        bank = children.begin(child)
        scene = children.listener.scene if isinstance(children.listener, GridTree) else self.scene
        code = self.interpreter.code_for(self.watching.watcher if self.watching is not None else None, child.shape)
        opened = self.interpreter.opened(code, child.kernel, child.shape, bank.start, child.shared, partial(self.begin, scene))
        _ = opened.environment.workspace
        self.begun += 1
        self.launch = SteppedLaunch(self.begun, child.kernel, child.shape, opened, bank)
        return True

    # ── instructions ────────────────────────────────────────────────────────────────────

    def decide(self, choice: Choice | None = None) -> Issue | None:
        """The next instruction, or that of a chosen warp; None where there is none.  Raises the fault of a deadlock."""
        if self.awaits:
            self.suspend()
        if choice is None:
            return self.upcoming()
        issue = self.chosen(choice)
        if issue is None and (self.suspended or self.code.children.is_launching):
            self.upcoming()  # where all has ended, another grid runs, which may have the warp
            issue = self.chosen(choice)
        return issue

    def chosen(self, choice: Choice) -> Issue | None:
        """The next instruction of a warp; None where it cannot run."""
        self.current()
        schedule = self.schedule_of(choice.cta)
        if schedule is None or choice.warp >= schedule.cohort.layout.warps_of_cta:
            return None
        return schedule.decide(lanes_of(schedule, choice))

    def upcoming(self) -> Issue | None:
        """The next instruction of any warp, of this grid or of the next one; None where there is none."""
        while True:
            while (current := self.current()) is not None:
                issue = current.decide()
                if issue is not None:
                    return issue
                current.run(0)  # ends asynchronous work; a Fault where lanes wait for each other
                self.end(current)
            if not self.go_on():
                return None

    def issue(self, issue: Issue, *, chosen: bool = False) -> None:
        """Execute an instruction, which was decided last; one that was `chosen` does not count for the slice."""
        self.counters.instructions += 1
        self.counters.thread_instructions += issue.schedule.cohort.layout.count(issue.lanes)
        self.launch.left -= not chosen
        issue.schedule.issue()

    def current(self) -> SteppingSchedule | None:
        """The cohort that runs: it changes where a slice is over; None where all have ended."""
        if self.running and self.launch.left > 0:
            return self.running[0]
        fresh = self.opened.begin_next() if len(self.running) < RESIDENT else None
        if isinstance(fresh, SteppingSchedule):
            self.running.insert(0, fresh)
        elif self.running:
            self.running.append(self.running.pop(0))
        self.launch.left = SLICE
        return self.running[0] if self.running else None

    def end(self, schedule: Schedule) -> None:
        """A cohort has ended: its memory is hidden, for a state of before may need it again."""
        self.launch.left = 0
        self.launch.running = [each for each in self.running if each is not schedule]
        for window in schedule.cohort.windows.values():
            self.image.memory.hide(window.allocation)

    def schedule_of(self, cta: int) -> SteppingSchedule | None:
        """The schedule of a CTA that runs, by its number."""
        return next((each for each in self.running if cta in each.cohort.layout.ctas), None)

    def finish(self) -> None:
        """All grids have ended."""
        with np.errstate(all="ignore"):
            self.code.children.finish()

    def close(self) -> None:
        """Give all memory back."""
        for launch in (*self.suspended, self.launch):
            for schedule in launch.running:
                schedule.cohort.release()
            launch.running = []
            if launch.bank is not None:
                self.image.memory.release(launch.bank)
                launch.opened.environment.release()
        self.suspended = []
        self.code.children.close()
        self.first.opened.environment.release()


def lanes_of(schedule: SteppingSchedule, choice: Choice) -> LaneNumbers:
    """The lanes of a warp, or of the group that one of its lanes is in; in order."""
    layout = schedule.cohort.layout
    index = int(np.flatnonzero(layout.ctas == choice.cta)[0])
    first = index * layout.threads + choice.warp * WARP
    warp = np.arange(first, min(first + WARP, (index + 1) * layout.threads))
    if choice.lane is None:
        return warp
    for key in list(schedule.ready):
        lanes = layout.every(schedule.merged(key))
        if first + choice.lane in lanes:
            return np.intersect1d(warp, lanes, assume_unique=True)
    return warp[:0]


def warps_of(issue: Issue) -> Sequence[tuple[int, int]]:
    """The warps that execute an instruction: CTA and warp, by their numbers, in order."""
    layout = issue.schedule.cohort.layout
    warps = np.unique(layout.warp[issue.numbers])
    ctas = layout.ctas[warps // layout.warps_of_cta]
    return list(zip(ctas.tolist(), (warps % layout.warps_of_cta).tolist(), strict=True))


__all__ = ["ReplayingInterpreter", "SteppedGrid", "SteppingInterpreter", "lanes_of", "warps_of"]

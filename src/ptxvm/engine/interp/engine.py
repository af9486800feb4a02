"""The reference interpreter: runs a grid, cohort by cohort."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np

from ptxvm.analysis.call_graph import callees_first
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import completion
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.grid_tree import GridTree
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.objects import Objects
from ptxvm.engine.interp.random_schedule import RandomSchedule
from ptxvm.engine.interp.register_fences import is_product
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.texture_memory import Images
from ptxvm.engine.interp.watched_cohort import WatchedCohort, WatchState
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.cluster_queue import ClusterQueue
from ptxvm.machine.environment import Environment
from ptxvm.machine.events import Scene, Watcher
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.layout import open_argument_size
from ptxvm.machine.sole_thread import RUNNING

LANES = 4096  # of a cohort: enough to outweigh NumPy's overhead, few enough for the caches
SLICE_STEPS = 20_000  # of a cohort before the next one runs
RESIDENT = 64  # cohorts that run at once
UNBOUNDED_STACK = 1 << 16  # bytes for each thread where the depth of calls has no bound


class Interpreter:
    """Runs the kernels of an image, in cohorts of about so many `lanes`."""

    def __init__(self, image: Image, lanes: int = LANES) -> None:
        self.image, self.lanes = image, lanes
        self._following: dict[tuple[bool, bool, bool], Executable] = {}

    @cached_property
    def executable(self) -> Executable:
        """The routines of the image."""
        return Executable(self.image)

    def following(self, *, registers: bool, variables: bool, clustered: bool = False) -> Executable:
        """The routines of the image that follow unset registers, and addresses whose object only a run determines.

        `clustered` ones run launches in clusters of several CTAs.
        """
        addresses = variables and any(each.several for each in self.executable.provenance.values())
        wanted = registers, addresses, clustered
        if not any(wanted):
            return self.executable
        found = self._following.get(wanted)
        if found is None:
            found = self.executable.another(registers=registers, addresses=addresses, clustered=clustered)
            self._following[wanted] = found
        return found

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.executable.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Run a grid and its child grids to their end.

        `parameters` is the address of the parameter bank.
        """
        code = self.following(registers=False, variables=False, clustered=shape.cluster_size > 1)

        starts = self.beginning(options)

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            return self._run(code, kernel, shape, parameters, shared, limits, starts)

        return self.executable.children.grid(run, kernel, shape, parameters, options.shared)

    def beginning(self, options: LaunchOptions) -> Begin:
        """How an unwatched cohort begins."""
        return partial(begin, options)

    def watched(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None,
        watcher: Watcher, seed: int | None,
    ) -> Counters:  # fmt: skip
        """Run a grid and its child grids, and report to a watcher; `seed` shuffles the schedule."""
        tree = GridTree(watcher, Scene(kernel.name, shape), self.image.shared_variables)
        images = Images(self.image.memory)
        variables = watcher.follows_variables
        clustered = shape.cluster_size > 1
        code = self.following(registers=watcher.follows_registers, variables=variables, clustered=clustered)
        products = any(is_product(bound) for routine in code.routines for bound in routine.function.instructions)
        provenance = self.executable.provenance if variables else {}
        following = WatchState(watcher, images, Objects(self.image), provenance, products=products)

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            begin = partial(begin_watched, following, tree.scene, seed, options)
            return self._run(code, kernel, shape, parameters, shared, limits, begin)

        return code.children.grid(run, kernel, shape, parameters, options.shared, tree)

    def _run(
        self, code: Executable, kernel: Function, shape: LaunchShape, parameters: int, shared: int,
        limits: Limits | None, begin: Begin,
    ) -> Counters:  # fmt: skip
        opened = self.opened(code, kernel, shape, parameters, shared, begin)
        try:
            with np.errstate(all="ignore"):
                return run_all(iter(opened.begin_next, None), limits)
        finally:
            opened.environment.release()

    def opened(
        self, code: Executable, kernel: Function, shape: LaunchShape, parameters: int, shared: int, begin: Begin
    ) -> OpenGrid:
        """A grid none of whose cohorts has begun."""
        routine = code.routine(kernel)
        if routine is None:
            raise ValueError(f"the kernel '{kernel.name}' has no body")
        stack, size = self.stack_size(routine), self.image.shared_size(kernel, shared)
        program, memory, clusters = kernel.program, self.image.memory, ClusterQueue(shape)
        architecture, reserved = program.target.number if program is not None else 0, self.image.shared.reserved
        environment = Environment(memory, shared, size, architecture, reserved, cooperative=shape.cooperative)

        def begin_with(ctas: range) -> Schedule:
            inputs = CohortInputs(shape, ctas, memory, parameters, size, stack, environment, clusters)
            return begin(inputs, code, routine)

        return OpenGrid(clusters, environment, self._together(clusters, stack), begin_with)

    def _together(self, clusters: ClusterQueue, stack: int) -> int:
        """How many CTAs are a cohort: those of some clusters."""
        shape, lanes = clusters.shape, self.lanes if stack < UNBOUNDED_STACK else min(self.lanes, 1024)
        most = max(1, lanes // (shape.threads * shape.cluster_size)) * shape.cluster_size
        return min(most, clusters.wave) if self._cancels else most

    @cached_property
    def _cancels(self) -> bool:
        """May threads cancel clusters that have not begun?"""
        return any(bound.summary.cancels for routine in self.executable.routines for bound in routine.function.instructions)

    def stack_size(self, kernel: Routine) -> int:
        """Bytes of local memory for each thread: the deepest chain of calls, or a fixed size where the depth has no bound."""
        deepest = self._deepest(kernel)
        return self.image.module_local.size + (UNBOUNDED_STACK if deepest is None else deepest)

    def _deepest(self, kernel: Routine) -> int | None:
        """The most that a function and what it calls need; None where there is no known bound: recursion, pointers, alloca."""
        order = callees_first([kernel], lambda routine: [callee for _, callee in self._calls(routine)])
        if order is None or any(_grows(bound) for routine in order for bound in routine.function.instructions):
            return None
        needs: dict[Routine, int] = {}
        for routine in order:
            below = (needs[callee] + open_argument_size(callee.function, bound) for bound, callee in self._calls(routine))
            needs[routine] = -(-self.image.frame_size(routine.function) // 16) * 16 + 32 + max(below, default=0)
        return needs[kernel]

    def _calls(self, routine: Routine) -> list[tuple[Bound, Routine]]:
        """The calls of functions that the code names, with the functions."""
        named = ((bound, bound.callee()) for bound in routine.function.instructions if bound.calls)
        found = ((bound, self.executable.routine(callee)) for bound, callee in named if callee is not None)
        return [(bound, callee) for bound, callee in found if callee is not None]


def _grows(bound: Bound) -> bool:
    """Does the instruction take memory of the stack as it goes, or call a function that it does not name?"""
    return bound.summary.grows_stack or bound.summary.indirect


@dataclass(frozen=True, slots=True)
class OpenGrid:
    """A grid whose cohorts begin one after the other: each has up to so many CTAs `together`."""

    clusters: ClusterQueue
    environment: Environment
    together: int
    begin_with: Callable[[range], Schedule]

    def begin_next(self) -> Schedule | None:
        """The schedule of the next cohort; None where all have begun."""
        ctas = self.clusters.begin(self.together)
        return self.begin_with(ctas) if ctas else None


Begin = Callable[[CohortInputs, Executable, Routine], Schedule]


def begin(options: LaunchOptions, inputs: CohortInputs, code: Executable, routine: Routine) -> Schedule:
    """The schedule of an unwatched cohort."""
    schedule = Schedule(Cohort(inputs), code, routine)
    completion.choose(schedule, options.asynchronous, [options.seed, int(schedule.cohort.layout.ctas[0])])
    return schedule


def begin_watched(
    watching: WatchState,
    scene: Scene,
    seed: int | None,
    options: LaunchOptions,
    inputs: CohortInputs,
    code: Executable,
    routine: Routine,
) -> Schedule:
    """The schedule of a watched cohort; `seed` shuffles it."""
    cohort = WatchedCohort(inputs)
    number = int(cohort.layout.ctas[0])
    if seed is None:
        schedule = Schedule(cohort, code, routine)
    else:
        schedule = RandomSchedule(cohort, code, routine, [seed, number, *([scene.grid] if scene.grid else [])])
    cohort.watch(watching, schedule, scene)
    completion.choose(schedule, options.asynchronous, [options.seed if seed is None else seed, number])
    return schedule


def run_all(waiting: Iterator[Schedule], limits: Limits | None) -> Counters:
    """Run cohorts in turn until all have ended: one that is not done lets a new one, or the one that waited longest, run."""
    with RUNNING.interpreting():
        return run_in_turn(waiting, limits)


def run_in_turn(waiting: Iterator[Schedule], limits: Limits | None) -> Counters:
    """Run cohorts; atomics of compiled code that runs beside them are one step for them."""
    counters = Counters()
    running: deque[Schedule] = deque()
    try:
        while True:
            fresh = next(waiting, None) if len(running) < RESIDENT else None
            if fresh is not None:
                fresh.limits = limits
                running.appendleft(fresh)
            if not running:
                return counters
            schedule = running[0]
            before = schedule.steps
            finished = schedule.run(SLICE_STEPS)
            counters.steps += schedule.steps - before
            if finished:
                running.popleft()
                counters.instructions += schedule.instructions
                counters.thread_instructions += schedule.thread_instructions
                schedule.cohort.release()
            else:
                running.rotate(-1)
    finally:
        for schedule in running:
            schedule.cohort.release()

"""The reference interpreter: runs a grid, cohort by cohort."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from ptxvm.analysis.program import Function
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.family import Family
from ptxvm.engine.interp.images import Images
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.watched import RandomSchedule, WatchedCohort
from ptxvm.engine.launch import Budget, Counters
from ptxvm.engine.watching import shared_variables
from ptxvm.machine.builtins import Library
from ptxvm.machine.environment import Environment
from ptxvm.machine.events import Scene, Watcher
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.layout import open_argument_size

LANES = 4096  # of a cohort: what NumPy needs to earn its overhead, and the caches hold
TURNS = 20_000  # of a cohort before the next one runs
RESIDENT = 64  # cohorts that are under way at once
UNBOUNDED_STACK = 1 << 16  # bytes for each thread where the depth of calls has no bound


class Interpreter:
    """Runs the kernels of an image."""

    def __init__(self, image: Image) -> None:
        self.image = image

    @cached_property
    def executable(self) -> Executable:
        """The routines of the image."""
        return Executable(self.image)

    @cached_property
    def following(self) -> Executable:
        """The same, which tell which registers they read that nobody has written."""
        return Executable(self.image, self.executable)

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.executable.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int = 0, budget: int | None = None
    ) -> Counters:
        """Run a grid, and those that it launches, to their end.

        `parameters` is the address of the parameter bank, `budget` bounds the turns.
        """

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            limit = None if budget is None else Budget(budget, self.executable.children.counters.turns)
            return self._run(self.executable, kernel, shape, parameters, (shared, limit), begin)

        return self.executable.children.grid(run, kernel, shape, parameters, shared)

    def watched(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int, budget: int | None, watcher: Watcher,
        seed: int | None,
    ) -> Counters:  # fmt: skip
        """The same, telling a watcher what the grid does; `seed` shuffles the schedule."""
        family = Family(watcher, Scene(kernel.name, shape), partial(shared_variables, self.image))
        images = Images(self.image.memory)
        code = self.following if watcher.follows_registers else self.executable

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            limit = None if budget is None else Budget(budget, code.children.counters.turns)
            begin = partial(begin_watched, (watcher, images), family.scene, seed)
            return self._run(code, kernel, shape, parameters, (shared, limit), begin)

        return code.children.grid(run, kernel, shape, parameters, shared, family)

    def _run(
        self, code: Executable, kernel: Function, shape: LaunchShape, parameters: int, how: tuple[int, Budget | None],
        begin: Begin,
    ) -> Counters:  # fmt: skip
        shared, budget = how
        routine = code.routine(kernel)
        if routine is None:
            raise ValueError(f"the kernel '{kernel.name}' has no body")
        stack = self.stack_size(routine)
        size = self.image.shared_size(kernel, shared)
        program = kernel.program
        environment = Environment(self.image.memory, shared, size, program.target.number if program is not None else 0)

        memory = self.image.memory
        schedules = (
            begin((shape, ctas, memory, parameters, size, stack, environment), code, routine) for ctas in cohorts(shape, stack)
        )
        try:
            with np.errstate(all="ignore"):
                return run_all(schedules, kernel.name, budget)
        finally:
            environment.release()

    def stack_size(self, kernel: Routine) -> int:
        """Bytes of local memory for each thread: the deepest chain of calls, where it has an end."""
        deepest = self._deepest(kernel, ())
        return self.image.module_local.size + (UNBOUNDED_STACK if deepest is None else deepest)

    def _deepest(self, routine: Routine, above: tuple[Routine, ...]) -> int | None:
        """The most that a function and what it calls need; None where nobody knows: recursion, pointers, alloca."""
        if routine in above:
            return None
        below = 0
        for bound in routine.function.instructions:
            if bound.node.opcode == "alloca":
                return None
            if bound.node.opcode != "call":
                continue
            callee = bound.callee()
            if callee is None:
                return None
            called = self.executable.routine(callee)
            if called is not None:
                need = self._deepest(called, (*above, routine))
                if need is None:
                    return None
                below = max(below, need + open_argument_size(called.function, bound))
        return -(-self.image.frame_size(routine.function) // 16) * 16 + 32 + below


Begin = Callable[[tuple[Any, ...], Executable, Routine], Schedule]  # from what a cohort is made of


def begin(cohort_of: tuple[Any, ...], code: Executable, routine: Routine) -> Schedule:
    """The schedule of a cohort that nobody watches."""
    return Schedule(Cohort(*cohort_of), code, routine)


def begin_watched(
    watched: tuple[Watcher, Images],
    scene: Scene,
    seed: int | None,
    cohort_of: tuple[Any, ...],
    code: Executable,
    routine: Routine,
) -> Schedule:
    """The schedule of a cohort of a grid that a watcher watches; `seed` shuffles it."""
    cohort = WatchedCohort(*cohort_of)
    if seed is None:
        schedule = Schedule(cohort, code, routine)
    else:
        number = int(cohort.layout.ctas[0])
        schedule = RandomSchedule(cohort, code, routine, [seed, number, *([scene.grid] if scene.grid else [])])
    watcher, images = watched
    cohort.watch(watcher, schedule, scene, images)
    return schedule


def cohorts(shape: LaunchShape, stack: int) -> Iterator[range]:
    """The CTAs of the grid, some at a time."""
    lanes = LANES if stack < UNBOUNDED_STACK else 1024
    together = max(1, lanes // shape.threads)
    for first in range(0, shape.ctas, together):
        yield range(first, min(first + together, shape.ctas))


def run_all(waiting: Iterator[Schedule], kernel: str, budget: Budget | None) -> Counters:
    """Run cohorts in turn until all have ended: one that is not done lets a new one, or the one that waited longest, run."""
    counters = Counters()
    running: deque[Schedule] = deque()
    try:
        while True:
            fresh = next(waiting, None) if len(running) < RESIDENT else None
            if fresh is not None:
                running.appendleft(fresh)
            if not running:
                return counters
            schedule = running[0]
            before = schedule.turn
            finished = schedule.run(TURNS if budget is None else min(TURNS, budget.left(counters.turns)))
            counters.turns += schedule.turn - before
            if finished:
                running.popleft()
                counters.instructions += schedule.instructions
                counters.thread_instructions += schedule.thread_instructions
                schedule.cohort.release()
            elif budget is not None and budget.left(counters.turns) <= 0:
                raise budget.overrun(kernel)
            else:
                running.rotate(-1)
    finally:
        for schedule in running:
            schedule.cohort.release()

"""A run: one kernel with its arguments, run as often as one likes, forwards and backwards.

It has no input or output and no threads: what a front end shows comes from `inspection`, and what the kernel prints goes to
`printed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from weakref import WeakMethod, finalize

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Function
from ptxvm.checkers.checker import Checker
from ptxvm.debug import steps
from ptxvm.debug.breakpoints import Breakpoints
from ptxvm.debug.execution import Execution
from ptxvm.debug.focus import Focus, NotThere
from ptxvm.debug.steps import Step
from ptxvm.debug.stops import Reason, Stop
from ptxvm.debug.timeline import Interrupt, Interrupted
from ptxvm.debug.values import Pointees
from ptxvm.debug.watched_accesses import WatchedAccesses
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.stepping import SteppedGrid, SteppingInterpreter
from ptxvm.engine.launch import checked_shape, lend_bank, mark_written
from ptxvm.engine.watching import fresh
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult
from ptxvm.machine.warp_schedule import Choice, WarpSchedule

POINTEES = {
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}, **{f"int{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)}, "bfloat16": "bf16",
}  # fmt: skip


class NotRunning(NotThere):
    """The kernel has not been started."""


class Run:
    """A kernel that runs under the debugger; `printed` receives what it prints."""

    def __init__(
        self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object] = (), *,
        printed: Callable[[str], None] = lambda text: None,  # noqa: ARG005
        breakpoints: Breakpoints | None = None, owner: object = None,
    ) -> None:  # fmt: skip
        """`breakpoints` are those of a launch before, which go on where the code has their places.

        `owner` is what gives the memory of the image back when it is dropped, as a module does: the run keeps it.
        """
        self.owner = owner
        self.image, self.kernel, self.options, self.args = image, kernel, options, args
        self.launch_shape = checked_shape(image, kernel, options)
        self.interpreter = SteppingInterpreter(image)
        self.code = self.interpreter.following(registers=False, variables=False, clustered=self.launch_shape.cluster_size > 1)
        self.breakpoints = breakpoints if breakpoints is not None else Breakpoints()
        self.breakpoints.follow(self.code, self.kernel_routine)
        self.printed = printed
        self.logged: Callable[[str], None] | None = None  # receives what logpoints say; else that is printed
        self.frame = 0  # the function that commands are about, counted from the innermost
        self.stop: Stop | None = None
        self.interrupted = Interrupt()
        self._checked: frozenset[str] = frozenset()
        self._execution: Execution | None = None
        self._close: list[Callable[[], None]] = []
        finalize(self, close_all, self._close)  # a run that is dropped gives its memory back

    # ── the run ─────────────────────────────────────────────────────────────────────────

    @property
    def execution(self) -> Execution:
        """The run; NotRunning where there is none."""
        if self._execution is None:
            raise NotRunning("the kernel is not being run: start it first")
        return self._execution

    @property
    def is_running(self) -> bool:
        """Has the kernel been started?"""
        return self._execution is not None

    @property
    def launch(self) -> tuple[int, Function, LaunchShape]:
        """The grid that runs: its number, which is 0 of the one that was started, its kernel and its shape."""
        return self.launches[-1]

    @property
    def launches(self) -> list[tuple[int, Function, LaunchShape]]:
        """The grids that wait, each for the next one, and the grid that runs: numbers, kernels and shapes."""
        if self._execution is None:
            return [(0, self.kernel, self.launch_shape)]
        grid = self._execution.grid
        return [(each.number, each.kernel, each.shape) for each in (*grid.suspended, grid.launch)]

    @property
    def shape(self) -> LaunchShape:
        """The shape of the grid that runs, or is to run."""
        return self.launch[2]

    @property
    def time(self) -> int:
        """The instructions that were issued up to now."""
        return self.execution.timeline.now

    def start(self) -> Stop:
        """Be before the first instruction of the grid; where it runs already, its arguments are what they were then."""
        for each in self.breakpoints.all.values():
            each.hits = 0
        if self._execution is not None and self.checks != self._checked:
            self._execution.timeline.restart()  # the arguments are what they were
            self.close()
        if self._execution is None:
            self._execution = self._launch()
        else:
            self._execution.timeline.restart()
        execution = self._execution
        execution.focus, execution.passed = Focus(), None
        execution.timeline.next()
        return self._stopped(Stop(Reason.ENTRY))

    def _launch(self) -> Execution:
        memory, library = self.image.memory, self.code.library
        packed = self.image.bank(self.kernel).pack(self.args, memory)
        self._close.append(packed.release)
        bank = lend_bank(memory, packed)
        self._close.append(lambda: memory.take_back(bank))
        library.output.clear()
        sinks = library.sink, library.error_sink
        library.send_to(weakly(self._print), weakly(self._print))
        self._close.append(lambda: library.send_to(*sinks))
        accesses = WatchedAccesses(self.breakpoints)
        watcher = self._watcher()
        if watcher is not None:
            watcher.launched(fresh(memory.table.items, self.args))
        grid: SteppedGrid = self.interpreter.grid(self.kernel, self.launch_shape, bank.start, self.options, accesses, watcher)
        self._close.append(grid.close)
        known = pointees(self.kernel, self.args)
        return Execution(grid, self.breakpoints, accesses, known, self.interrupted, weakly(self._log))

    def _print(self, text: str) -> None:
        self.printed(text)

    def _log(self, text: str) -> None:
        if self.logged is None:
            self.printed(f"{text}\n")
        else:
            self.logged(text)

    @property
    def checks(self) -> frozenset[str]:
        """The checks that catchpoints are for."""
        return frozenset(each.caught.value for each in self.breakpoints.catchpoints if each.caught.is_check)

    def _watcher(self) -> Checker | None:
        """What runs the checks, from the beginning of the grid on."""
        self._checked = self.checks
        return Checker(self._checked) if self._checked else None

    def close(self) -> None:
        """End the run; the arguments stay as they are."""
        self._execution = self.stop = None
        close_all(self._close)
        mark_written(self.args)

    def resume(self) -> Stop:
        """Run to the next breakpoint, or to the end."""
        return self._stopped(self.execution.run(lambda _: False))

    def finished(self) -> LaunchResult:
        """Run to the end without stops; the result, or the fault of the kernel, which is raised."""
        stop = self.stop if self.is_running else self.start()
        while stop is not None and stop.reason not in (Reason.ENDED, Reason.FAULT):
            stop = self._stopped(self.execution.run(lambda _: False, stops=False))
        if stop is not None and stop.fault is not None:
            raise stop.fault
        return self.result

    def step(self, kind: Step, count: int = 1) -> Stop:
        """Go some steps."""
        return self._repeated(lambda: steps.step(self.execution, kind), count, stops=True)

    def reverse_resume(self) -> Stop:
        """Go back to the last breakpoint, or to the beginning; counts of breakpoints are not heard."""
        return self._repeated(lambda: self.execution.back(lambda _: False, stops=True), 1, stops=False)

    def reverse_step(self, kind: Step, count: int = 1) -> Stop:
        """Go some steps back."""
        return self._repeated(lambda: steps.back(self.execution, kind), count, stops=False)

    def issue(self, choice: Choice, count: int = 1) -> Stop:
        """Let a warp, or the group of one of its lanes, execute some instructions; its first one has the focus."""
        focus = Focus(choice.cta, choice.warp, choice.lane or 0)

        def once() -> Stop:
            if self.execution.timeline.next(choice, chosen=True) is None:
                raise NotThere(f"warp {choice.warp} of that block cannot run: it waits, has ended, or has not begun")
            self.execution.focus = focus
            return self.execution.run(lambda _: True, choice=choice)

        return self._repeated(once, count, stops=True)

    def go_to(self, time: int) -> Stop:
        """Be at a time that has been."""
        if not 0 <= time <= self.execution.timeline.end:
            raise NotThere(f"there is no time {time}: the run is known from 0 to {self.execution.timeline.end}")

        def there() -> Stop:
            self.execution.timeline.go_to(time)
            return Stop(Reason.STEP)

        return self._repeated(there, 1, stops=False)

    @property
    def schedule(self) -> WarpSchedule:
        """The launch and all choices up to now, to be saved and replayed."""
        name, timeline, shape, how = self.kernel.name, self.execution.timeline, self.launch_shape, self.options
        choices = {time: choice for time, choice in timeline.choices.items() if time < timeline.now}
        return WarpSchedule(
            name, shape.grid, shape.block, how.shared, shape.cluster, how.asynchronous, how.seed, choices
        )  # fmt: skip

    def follow(self, schedule: WarpSchedule) -> Stop:
        """Start again, and go by a saved schedule from there on; NotThere where it is that of another launch."""
        mine = self.kernel.name, self.launch_shape.grid, self.launch_shape.block
        if (schedule.kernel, schedule.grid, schedule.block) != mine:
            raise NotThere(f"that is a schedule of {schedule.kernel}, grid {schedule.grid}, block {schedule.block}")
        stop = self.start()
        self.execution.timeline.choices = dict(schedule.choices)
        return stop

    @property
    def result(self) -> LaunchResult:
        """The result of the launch up to now."""
        shape, counters = self.launch_shape, self.execution.grid.counters
        return LaunchResult(
            shape.grid, shape.block, counters.instructions, counters.thread_instructions, counters.steps,
            output="".join(self.code.library.output), findings=list(self.execution.findings), cluster=shape.cluster,
        )  # fmt: skip

    def interrupt(self) -> None:
        """Stop the run soon; another thread, or a signal, may call it."""
        self.interrupted.is_set = True

    def _repeated(self, once: Callable[[], Stop], count: int, *, stops: bool) -> Stop:
        """Do it so often; a breakpoint may end it, also where a step ends, if it `stops`."""
        for _ in range(max(count, 1)):
            try:
                stop = once()
            except Interrupted:
                stop = Stop(Reason.INTERRUPT)
            if stop.reason is Reason.STEP and self._has_living_focus():
                stop = self.execution.arrive(stop, stops=stops)
            if stop.reason is not Reason.STEP:
                break
        return self._stopped(stop)

    def _stopped(self, stop: Stop) -> Stop:
        """Note a stop; the focus goes to a thread of its warp that is alive, and a grid has its last findings at its end."""
        self.frame, self.stop = 0, stop
        execution = self.execution
        living = stop.reason in (Reason.ENDED, Reason.FAULT) or self._has_living_focus()
        if stop.reason is Reason.STEP and not living:
            self.stop = stop = Stop(Reason.ENDED)  # by that step
        if stop.reason is Reason.ENDED:
            try:
                execution.grid.finish()
            except Fault as fault:
                self.stop = stop = Stop(Reason.FAULT, fault=fault, message=str(fault))
            else:
                self.stop = stop = replace(stop, message=self._last_findings())
        return stop

    def _last_findings(self) -> str:
        """All that the checks have found when the grid has ended; what is lost then is among it."""
        watching = self.execution.grid.watching
        if watching is not None:
            watching.watcher.finished(self.image.memory.table.items)
        return "\n".join(f"{each.kind}: {each.message}" for each in self.execution.findings)

    def _has_living_focus(self) -> bool:
        """Where the thread in focus has ended or not begun, that of the next instruction has it; False where there is none."""
        if steps.spot(self.execution) is None:
            with suppress(Exception):  # the fault of a deadlock comes with the next step
                issue = self.execution.timeline.next()
                if issue is None:
                    return False
                self.execution.keep_focus(issue)
        return True

    @property
    def kernel_routine(self) -> Routine:
        """The code of the kernel."""
        routine = self.code.routine(self.kernel)
        if routine is None:
            raise ValueError(f"the kernel '{self.kernel.name}' has no body")
        return routine


def close_all(steps: list[Callable[[], None]]) -> None:
    """Do what ends a run, the last step first."""
    while steps:
        steps.pop()()


def weakly(method: Callable[[str], None]) -> Callable[[str], None]:
    """A call of a method that does not keep its object alive."""
    held = WeakMethod(method)

    def call(text: str) -> None:
        found = held()
        if found is not None:
            found(text)

    return call


def pointees(kernel: Function, args: Sequence[object]) -> Pointees:
    """The types of the elements of the arrays that are arguments."""
    parameters = kernel.signature.parameters
    held = {parameter.name: getattr(value, "dtype", None) for parameter, value in zip(parameters, args, strict=False)}
    return {
        name: Type.named[POINTEES[str(dtype)]]
        for (name, dtype), value in zip(held.items(), args, strict=False)
        if not isinstance(value, np.generic) and str(dtype) in POINTEES
    }


__all__ = ["NotRunning", "Run"]

"""A debugging session: one kernel with its arguments, run as often as one likes, forwards and backwards.

    session = Session(module.image, kernel.function, LaunchOptions(grid=4, block=256), args)
    session.break_at("42", "%tid.x == 3")
    session.start()
    stop = session.resume()

It has no input or output and no threads: what a front end shows comes from `inspection`, and what the kernel prints goes to
`printed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from weakref import WeakMethod, finalize

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Function
from ptxvm.checkers.checker import Checker
from ptxvm.debug import steps
from ptxvm.debug.breakpoints import Breakpoint, Breakpoints, Bytes, Catchpoint, CodeBreakpoint, Watchpoint, condition_of
from ptxvm.debug.execution import Execution
from ptxvm.debug.expressions import address_of, assigned, parse
from ptxvm.debug.focus import Focus, NotThere
from ptxvm.debug.source_types import Number, Pointer, Structure
from ptxvm.debug.steps import Step, ended
from ptxvm.debug.stops import Reason, Stop
from ptxvm.debug.timeline import Interrupt, Interrupted
from ptxvm.debug.values import MemoryPlace, NoValue, Pointees, RegisterPlace, Values, View
from ptxvm.debug.watched_accesses import WatchedAccesses, start_of
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.stepping import SteppedGrid, SteppingInterpreter
from ptxvm.engine.launch import checked_shape, lend_bank, mark_written
from ptxvm.engine.watching import fresh
from ptxvm.isa.effects import Verb
from ptxvm.machine.faults import plural
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult
from ptxvm.machine.warp_schedule import Choice, WarpSchedule

POINTEES = {
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}, **{f"int{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)}, "bfloat16": "bf16",
}  # fmt: skip
ACCESSES = {"write": (Verb.WRITE, Verb.UPDATE), "read": (Verb.READ, Verb.UPDATE), "access": tuple(Verb)}


class NotRunning(NotThere):
    """The kernel has not been started."""


class Session:
    """A kernel under the debugger; `printed` receives what it prints."""

    def __init__(
        self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object] = (), *,
        printed: Callable[[str], None] = lambda text: None,  # noqa: ARG005
        breakpoints: Breakpoints | None = None, owner: object = None,
    ) -> None:  # fmt: skip
        """`breakpoints` are those of a launch before, which go on where the code has their places.

        `owner` is what gives the memory of the image back when it is dropped, as a module does: the session keeps it.
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
        finalize(self, close_all, self._close)  # a session that is dropped gives its memory back

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
        if self._execution is None:
            return 0, self.kernel, self.launch_shape
        running = self._execution.grid.launch
        return running.number, running.kernel, running.shape

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

    @property
    def unstopped(self) -> str:
        """What is said of the grids for which threads waited, which run at once and without stops; empty without any."""
        count = self.execution.grid.code.children.begun
        return f"{plural(count, 'grid')} that its threads waited for ran without stops" if count else ""

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

    # ── breakpoints ─────────────────────────────────────────────────────────────────────

    @property
    def here(self) -> Routine:
        """The function that lines and labels are of: that of the thread in focus, else the kernel."""
        with suppress(NotThere, NoValue):
            return self.view().routine
        return self.kernel_routine

    @property
    def kernel_routine(self) -> Routine:
        """The code of the kernel."""
        routine = self.code.routine(self.kernel)
        if routine is None:
            raise ValueError(f"the kernel '{self.kernel.name}' has no body")
        return routine

    def break_at(self, text: str, condition: str = "", *, temporary: bool = False) -> CodeBreakpoint:
        """Stop before some instructions; see `Breakpoints.sites`."""
        return self.breakpoints.break_at(text, self.here, condition, temporary=temporary)

    def log_at(self, text: str, message: str, condition: str = "") -> CodeBreakpoint:
        """Say a message before some instructions, with the values of expressions in braces, and go on."""
        return self.breakpoints.break_at(text, self.here, condition, message=message)

    def watch(self, text: str, accesses: str = "write", condition: str = "") -> Watchpoint:
        """Stop after a `write` that changes what an expression names, a `read` or any `access`, for the thread in focus."""
        view = self.view()
        place = parse(text).place(view)
        if not isinstance(place, MemoryPlace):
            raise NoValue("only memory can be watched: a variable, an element, or `.global.f32[address]`")
        size = place.type.bytes * (place.count if place.dimensions else 1)
        return self.watch_bytes(self.bytes_at(view, place, size), place.type, text, accesses, condition)

    def watch_bytes(self, wanted: Bytes, type: Type, text: str, accesses: str = "write", condition: str = "") -> Watchpoint:
        """Stop after a `write` that changes some bytes, a `read` or any `access`; their values are shown as a type."""
        expression, execution = condition_of(condition), self.execution
        made = Watchpoint(
            self.breakpoints.next_number(), text, expression, bytes=wanted, type=type, verbs=frozenset(ACCESSES[accesses])
        )
        made.value = execution.bytes_now(made)
        self.breakpoints.add(made)
        return made

    def bytes_at(self, view: View, place: MemoryPlace, size: int) -> Bytes:
        """The bytes of a place: by their address, or in the memory of the CTA or thread that has them."""
        memory, focus = view.schedule.cohort.mem, self.execution.focus
        window, lane = memory.window(place.space), int(view.lanes[0])
        if window is not None:
            at = int(np.ravel(window.offsets(place.address, view.lanes))[0])
            return Bytes(place.space.window, at, size, focus.cta, focus.thread)
        address = int(place.address[0])
        held = memory.machine.table.find(address)
        if held is None:
            raise NoValue(f"nothing is allocated at {address:#x}")
        if held.home is not None:
            return Bytes(held.space.window, address - held.start - int(held.home[lane]), size, focus.cta, focus.thread)
        return Bytes(held.space.window, address, size)

    def catch(self, name: str, condition: str = "") -> Catchpoint:
        """Stop where something is found: a `nan`, or by a check that follows the run from its beginning, such as `race`."""
        return self.breakpoints.catch(name, condition)

    def delete(self, number: int | None = None) -> list[Breakpoint]:
        """Delete a breakpoint, or all."""
        gone = [self.breakpoints.get(number)] if number is not None else list(self.breakpoints.all.values())
        for each in gone:
            self.breakpoints.delete(each.number)
        return gone

    # ── values ──────────────────────────────────────────────────────────────────────────

    def view(self) -> View:
        """The values of the thread in focus, in the frame that was chosen; NoValue where it has ended or not begun."""
        execution = self.execution
        places, schedule = execution.places(), execution.schedule
        stack = places.stack(execution.lane(schedule)) if places is not None and schedule is not None else []
        if schedule is None or not stack:
            raise NoValue(f"the thread in focus {ended(execution)}")
        frame = stack[min(self.frame, len(stack) - 1)]
        lanes = np.array([execution.lane(schedule)])
        return View(schedule, frame.routine, frame.depth, frame.index, lanes, execution.pointees)

    def value(self, text: str) -> Values | MemoryPlace:
        """The value of an expression for the thread in focus; an array in memory as its place."""
        view = self.view()
        found = parse(text).place(view)
        if isinstance(found, MemoryPlace) and (found.count > 1 or 0 in found.dimensions or isinstance(found.source, Structure)):
            return found
        return view.read(found)

    def place(self, text: str) -> MemoryPlace:
        """What an expression names in memory."""
        found = parse(text).place(self.view())
        if not isinstance(found, MemoryPlace):
            raise NoValue(f"'{text.strip()}' is not in memory: name a variable, an element, or `.global.f32[address]`")
        return found

    def place_at(self, text: str) -> MemoryPlace:
        """The memory at an address: of what an expression names there, or at the address that is its value.

        That is a generic one, but for what `&` gives of a variable in another space, and what lies behind that.
        """
        view = self.view()
        found = parse(text).target.place(view)
        if isinstance(found, MemoryPlace) and not points(found, view):
            return found
        space = found.source.space if isinstance(found.source, Pointer) else Space.GENERIC
        return MemoryPlace(space, address_of(view, found), Type.named["b8"])

    def focus_on(self, focus: Focus) -> None:
        """Let another thread have the focus; NotThere where its block does not run."""
        execution = self.execution
        before, execution.focus = execution.focus, focus
        if execution.schedule is None:
            said = ended(execution)
            execution.focus = before
            raise NotThere(f"the thread {said}")
        self.frame = 0

    def elements(self, place: MemoryPlace, count: int) -> list[Values]:
        """Elements in memory, from a place on; fewer where memory ends, NoValue where there is not even one."""
        view, found = self.view(), list[Values]()
        source = place.source if isinstance(place.source, Number) else None
        start = MemoryPlace(place.space, place.address, place.type, (count,), source=source)
        for n in range(count):
            try:
                found.append(view.read(start.element(np.array([n]))))
            except NoValue:
                if not n:
                    raise
                break
        return found

    def assign(self, target: str, text: str) -> Values:
        """Give a register, a variable or an element another value, for the thread in focus; the new value."""
        view = self.view()
        place = parse(target).place(view)
        if isinstance(place, Values):
            raise NoValue(f"'{target}' cannot be changed: name a register, a variable or an element in memory")
        values = assigned(place, parse(text).values(view))
        view.write(place, values)  # where it cannot be, before anything is recorded
        self.change(place, values, view)
        return view.read(place)

    def change(self, place: RegisterPlace | MemoryPlace, values: Values, view: View) -> None:
        """Write values, as a part of the run: it is done again where the run is."""
        focus, routine, depth, index = self.execution.focus, view.routine, view.depth, view.index

        def edit(grid: SteppedGrid) -> None:
            schedule = grid.schedule_of(focus.cta)
            if schedule is not None:
                View(schedule, routine, depth, index, view.lanes, view.pointees).write(place, values)

        self.execution.timeline.change(edit)

    # ── memory as bytes ─────────────────────────────────────────────────────────────────

    def read_bytes(self, wanted: Bytes) -> bytes:
        """Some bytes of memory; fewer where it ends, none where there is none."""
        found = self._held(wanted)
        return found[: wanted.size].tobytes() if found is not None else b""

    def write_bytes(self, wanted: Bytes, data: bytes) -> int:
        """Change bytes, as a part of the run; returns how many there were to change."""
        found = self._held(wanted)
        count = min(len(data), len(found)) if found is not None else 0

        def edit(grid: SteppedGrid) -> None:  # noqa: ARG001 - an Edit
            held = self._held(wanted)
            if held is not None:
                held[:count] = np.frombuffer(data[:count], np.uint8)

        self.execution.timeline.change(edit)
        return count

    def _held(self, wanted: Bytes) -> Array | None:
        """The memory from the first of some bytes on, to the end of what they are in."""
        if wanted.space in (Space.SHARED, Space.LOCAL):
            schedule = self.execution.grid.schedule_of(wanted.cta)
            window = schedule.cohort.mem.window(wanted.space) if schedule is not None else None
            start = start_of(schedule.cohort.mem, wanted) if schedule is not None else None
            if window is None or start is None or not 0 <= wanted.start < window.size:
                return None
            return window.allocation.bytes[start : start + window.size - wanted.start]
        held = self.image.memory.table.find(wanted.start)
        return None if held is None else held.bytes[wanted.start - held.start :]

    def pointed_at(self, parameter: str) -> int:
        """How many elements the array has that is the argument for a parameter."""
        names = [each.name for each in self.kernel.signature.parameters]
        return int(np.size(self.args[names.index(parameter)]))  # type: ignore[arg-type]


def points(place: MemoryPlace, view: View) -> bool:
    """Does a place hold a pointer: to an array that is an argument, or one of the source?"""
    to_argument = place.variable is not None and place.variable.name in view.pointees
    return to_argument or isinstance(place.source, Pointer)


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


__all__ = ["NotRunning", "Session"]

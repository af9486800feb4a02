"""A debugging session: a run, its breakpoints, and the values and memory of the thread in focus.

    session = Session(module.image, kernel.function, LaunchOptions(grid=4, block=256), args)
    session.break_at("42", "%tid.x == 3")
    session.start()
    stop = session.resume()

A session is a run whose breakpoints, values and memory are named as a user names them.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.debug.breakpoints import Breakpoint, Bytes, Catchpoint, CodeBreakpoint, Watchpoint, condition_of
from ptxvm.debug.expressions import address_of, assigned, parse
from ptxvm.debug.focus import Focus, NotThere
from ptxvm.debug.run import Run
from ptxvm.debug.source_types import Number, Pointer, Structure
from ptxvm.debug.steps import ended
from ptxvm.debug.values import MemoryPlace, NoValue, RegisterPlace, Values, View
from ptxvm.debug.watched_accesses import start_of
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.stepping import SteppedGrid
from ptxvm.isa.effects import Verb
from ptxvm.machine.per_lane import Array

ACCESSES = {"write": (Verb.WRITE, Verb.UPDATE), "read": (Verb.READ, Verb.UPDATE), "access": tuple(Verb)}


class Session(Run):
    """A kernel under the debugger, as front ends ask about it."""

    # ── breakpoints ─────────────────────────────────────────────────────────────────────

    @property
    def here(self) -> Routine:
        """The function that lines and labels are of: that of the thread in focus, else the kernel."""
        with suppress(NotThere, NoValue):
            return self.view().routine
        return self.kernel_routine

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


__all__ = ["Session"]

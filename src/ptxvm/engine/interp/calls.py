"""Calls: frames on the stack of each lane, arguments and results, functions of the device's library (PTX 7, 9.7.12.5).

The registers of a function belong to the depth of the call, so recursion needs no saving.  `.param` variables lie in the frame
of the function that declares them; a call copies the caller's arguments into the callee's parameters, a return the results.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Signature, Variable
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine import argument_words, call_targets
from ptxvm.engine.argument_words import Argument, Formal
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lanes import at
from ptxvm.engine.interp.ports import Action
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import put
from ptxvm.engine.interp.shadow import ArgumentSlot
from ptxvm.machine.faults import AccessFault, PlacedFault
from ptxvm.machine.per_lane import Lanes, PerLane, RegisterFile
from ptxvm.machine.window import Window

FRAME_ALIGNMENT = 16
SITE = 1 << 24  # a return site is routine * SITE + segment


class Schedule(Protocol):
    """The part of a cohort's schedule that calls use."""

    cohort: Cohort
    code: Executable
    kernel: Routine

    def push(self, key: Key, lanes: Lanes) -> None:
        """Lanes continue at a segment."""

    def file(self, routine: Routine, depth: int) -> list[PerLane]:
        """The registers of a routine at a depth of calls."""

    def where(self, lanes: Lanes, values: PerLane, value: PerLane) -> PerLane:
        """The lanes for which `values` equals a value."""

    def refuse(self, kind: str, message: str, bound: Bound, lanes: Lanes) -> Fault:
        """A fault of the first of some lanes."""

    def fault(self, fault: PlacedFault) -> Fault:
        """The fault of a refused access, with its place."""

    def abandon(self, kind: str, message: str, bound: Bound, lanes: Lanes) -> None:
        """Lanes cannot go on."""


class Calls:
    """The calls of a cohort."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.cohort, self.code = schedule, schedule.cohort, schedule.code
        self.sites: list[PerLane] = [np.int64(-1)]
        self.refusals: dict[tuple[int, Bound], str | None] = {}  # of calls to addresses
        image, begin = self.code.image, self.code.image.module_local.size
        self.cohort.frames[0] = np.uint64(begin)
        self.cohort.ends[0] = np.uint64(begin + image.frame_size(schedule.kernel.function))

    def call(self, action: Action, key: Key, lanes: Lanes, address: PerLane, bound: Bound) -> None:
        """Lanes call a function by name, or each lane the function at its address."""
        if action.symbol is not None:
            self.enter(action.symbol, action, key, lanes, bound)
            return
        for each in np.unique(address):
            some = self.schedule.where(lanes, address, each)
            function = self.target(int(each), bound, some)
            if function is not None:
                self.enter(function, action, key, some, bound)

    def target(self, address: int, bound: Bound, lanes: Lanes) -> Function | None:
        """The function at an address; None where the lanes may not call it."""
        image = self.code.image
        if (address, bound) not in self.refusals:
            self.refusals[address, bound] = call_targets.refusal(image, bound, address)
        said = self.refusals[address, bound]
        if said is not None:
            self.schedule.abandon("invalid-call", said, bound, lanes)
            return None
        return image.function_at(address)

    def enter(self, function: Function, action: Action, key: Key, lanes: Lanes, bound: Bound) -> None:
        """Some lanes enter one function."""
        arguments, results, _ = action.extra
        routine = self.code.routine(function)
        if routine is None:
            self.library(function, arguments or [], results or [], key, lanes, bound)
            return
        depth = -key[0]
        frame = self.grow(routine, depth, lanes, bound)
        if frame is None:
            return
        if len(self.sites) <= depth + 1:
            self.sites.append(np.int64(-1))
        self.sites[depth + 1] = assign(self.sites[depth + 1], lanes, np.int64(key[1] * SITE + key[2]), self.cohort.size)
        caller = self.schedule.file(self.code.routines[key[1]], depth)
        callee = self.schedule.file(routine, depth + 1)
        formals = function_signature(routine).parameters
        for formal, actual in zip(formals, arguments or [], strict=False):
            self.pass_on(
                self.actual(actual, bound, formal, depth, self.code.routines[key[1]], caller, lanes),
                formal, routine, callee, frame, lanes,
            )  # fmt: skip
        if self.cohort.shadow is not None:
            self.shadow_arguments(key, lanes, list(zip(formals, arguments or [], strict=False)), routine, frame)
        self.schedule.push((-(depth + 1), routine.number, 0), lanes)

    def shadow_arguments(
        self, key: Key, lanes: Lanes, pairs: list[tuple[Formal, Argument]], routine: Routine, frame: PerLane
    ) -> None:
        """At the entry of a function its frame and registers are unset, except for the arguments."""
        depth, cohort = -key[0], self.cohort
        file = self.schedule.file(routine, depth + 1)
        cohort.shadow.start(routine, file, lanes)
        cohort.shadow.stale(lanes, frame, self.code.image.frame_size(routine.function))
        above, upper = self.code.routines[key[1]], at(cohort.frames[depth], lanes)
        for formal, actual in pairs:
            source = self.locate(actual, above, self.schedule.file(above, depth), upper)
            cohort.shadow.passed(source, self.locate(formal, routine, file, frame), lanes)
        for _, actual in pairs:
            if isinstance(actual, Variable):  # its value is gone after this call (PTX 7.1)
                cohort.shadow.stale(lanes, upper + np.uint64(self.offset(actual, above)), actual.size)

    def locate(self, symbol: Argument, routine: Routine, file: RegisterFile, frame: PerLane) -> ArgumentSlot | None:
        """The location of an argument or a result; None for a constant."""
        if isinstance(symbol, Variable):
            return ArgumentSlot(symbol, routine, file, frame + np.uint64(self.offset(symbol, routine)))
        return ArgumentSlot(symbol, routine, file) if isinstance(symbol, Register) else None

    def grow(self, routine: Routine, depth: int, lanes: Lanes, bound: Bound) -> PerLane:
        """Allocate a frame for the callee; returns its offset, or None where the stack overflows."""
        cohort = self.cohort
        step = np.uint64(FRAME_ALIGNMENT)
        frame = (at(cohort.ends[depth], lanes) + (step - np.uint64(1))) // step * step
        end = frame + np.uint64(max(self.code.image.frame_size(routine.function, bound), FRAME_ALIGNMENT))
        if int(np.max(end)) > cohort.stack_size:
            said = f"the call of '{routine.function.name}' needs {int(np.max(end))} bytes of a stack of {cohort.stack_size}"
            self.schedule.abandon("stack-overflow", said, bound, lanes)
            return None
        if len(cohort.frames) <= depth + 1:
            cohort.frames.append(np.uint64(0))
            cohort.ends.append(np.uint64(0))
        cohort.frames[depth + 1] = assign(cohort.frames[depth + 1], lanes, frame, cohort.size)
        cohort.ends[depth + 1] = assign(cohort.ends[depth + 1], lanes, end, cohort.size)
        return frame

    # ── arguments and results ───────────────────────────────────────────────────────────

    def actual(
        self, node: Argument, bound: Bound, formal: Formal, depth: int, routine: Routine, file: RegisterFile, lanes: Lanes
    ) -> PerLane:
        """The value of an argument: of a register or a constant, or the words of a `.param` variable."""
        if isinstance(node, Variable):
            frame = at(self.cohort.frames[depth], lanes)
            return pieces(
                self.cohort.mem.local, frame + np.uint64(self.offset(node, routine)), node, alignment_of(formal), lanes
            )
        if isinstance(node, Register):
            return self.parts(node, routine, file, lanes)
        if (known := argument_words.constant(node, formal, bound)) is not None:
            return arrays.const(*known)
        raise self.schedule.refuse("invalid-call", "an argument of the call is of no known kind", bound, lanes)

    def parts(self, register: Register, routine: Routine, file: RegisterFile, lanes: Lanes) -> PerLane:
        """The value of a register; a list of its elements for a vector register."""
        held = [at(self.register(file, routine.slots.of(register, part)), lanes) for part in range(register.count)]
        return held if register.count > 1 else held[0]

    def register(self, file: RegisterFile, slot: int) -> PerLane:
        """The value in a slot: of a function's register, or of a module's."""
        return file[slot] if slot >= 0 else self.cohort.own[~slot]

    def pass_on(
        self, value: PerLane, formal: Formal, routine: Routine, file: RegisterFile, frame: PerLane, lanes: Lanes
    ) -> None:
        """Write a value to a parameter of the callee, or to a result of the caller."""
        if isinstance(formal, Register):
            slots = [routine.slots.of(formal, part) for part in range(formal.count)]
            if formal.count > 1 or isinstance(value, list):
                value = regrouped(value if isinstance(value, list) else [value], [formal.type.bytes] * formal.count)
            for slot, word in zip(slots, value if isinstance(value, list) else [value], strict=True):
                set_register(file if slot >= 0 else self.cohort.own, max(slot, ~slot), lanes, word, self.cohort.size)
        else:
            address = frame + np.uint64(self.offset(formal, routine))
            store_pieces(self.cohort.mem.local, address, value, lanes)

    def offset(self, variable: Variable, routine: Routine) -> int:
        """The offset of a variable in the frame of its function."""
        return int(self.code.image.locate(variable, routine.function)[1])

    def leave(self, key: Key, lanes: Lanes) -> list[tuple[Key, Lanes]]:
        """Lanes return from a function; gives the segments at which they continue."""
        found = []
        depth, routine = -key[0], self.code.routines[key[1]]
        sites = at(self.sites[depth], lanes)
        for site in np.unique(sites):
            some = self.schedule.where(lanes, sites, site)
            number, segment = divmod(int(site), SITE)
            self.return_results(routine, self.code.routines[number], segment, depth, some)
            if self.cohort.shadow is not None:
                self.cohort.shadow.returned(depth, some)
            found.append(((-(depth - 1), number, segment + 1), some))
        return found

    def return_results(self, routine: Routine, caller: Routine, segment: int, depth: int, lanes: Lanes) -> None:
        """Copy the results to the destinations of the call."""
        bound = caller.function.instructions[caller.segments[segment].end - 1]
        wanted = bound.results()
        if not wanted:
            return
        cohort = self.cohort
        file, above = self.schedule.file(routine, depth), self.schedule.file(caller, depth - 1)
        frame, upper = at(cohort.frames[depth], lanes), at(cohort.frames[depth - 1], lanes)
        for formal, target in zip(function_signature(routine).results, wanted, strict=False):
            if target is None:  # `_`
                continue
            if isinstance(formal, Register):
                value = self.parts(formal, routine, file, lanes)
            else:
                address = frame + np.uint64(self.offset(formal, routine))
                value = pieces(cohort.mem.local, address, formal, alignment_of(target), lanes)
            self.pass_on(value, target, caller, above, upper, lanes)
            if cohort.shadow is not None:
                source = self.locate(formal, routine, file, frame)
                cohort.shadow.passed(source, self.locate(target, caller, above, upper), lanes)

    # ── the library ─────────────────────────────────────────────────────────────────────

    def library(
        self, function: Function, arguments: list[PerLane], results: list[PerLane], key: Key, lanes: Lanes, bound: Bound
    ) -> None:
        """Call a function that the device provides."""
        handler = self.code.device_function(function.name)
        if handler is None:
            self.schedule.abandon("invalid-call", f"the function '{function.name}' has no body", bound, lanes)
            return
        depth, routine = -key[0], self.code.routines[key[1]]
        cohort, file = self.cohort, self.schedule.file(self.code.routines[key[1]], -key[0])
        count = cohort.size if lanes is None else len(lanes)
        formals = function.signature.parameters
        passed = []
        for formal, node in zip(formals, arguments, strict=False):
            value = self.actual(node, bound, formal, depth, routine, file, lanes)
            words = value if isinstance(value, list) else [value]
            passed += [np.broadcast_to(np.asarray(word), count).astype(np.uint64) for word in words]
        numbers = cohort.layout.numbers if lanes is None else lanes
        self.demand(function, arguments, key, lanes, bound)
        cohort.calling = bound
        try:
            answer = cohort.ask(function.name, handler, numbers, passed)
        except AccessFault as fault:
            raise self.schedule.fault(fault.placed(bound, int(numbers[fault.lane_index]))) from None
        if function.name == "malloc":
            cohort.allocated(bound, numbers, answer)
        frame = at(cohort.frames[depth], lanes)
        if answer is not None and results:
            held = arrays.dtype(function.signature.results[0].type.as_bits)
            value = np.asarray(answer).astype(np.int64).astype(held)
            if isinstance(results[0], Variable):
                value = [value]
            self.pass_on(value, results[0], routine, file, frame, lanes)
            if cohort.shadow is not None and (target := self.locate(results[0], routine, file, frame)) is not None:
                cohort.answered(function.name, target, numbers, answer)
        self.schedule.push((key[0], key[1], key[2] + 1), lanes)

    def demand(self, function: Function, arguments: list[PerLane], key: Key, lanes: Lanes, bound: Bound) -> None:
        """Report that a function of the device reads its arguments."""
        shadow, routine = self.cohort.shadow, self.code.routines[key[1]]
        if shadow is None:
            return
        file, frame = self.schedule.file(routine, -key[0]), at(self.cohort.frames[-key[0]], lanes)
        for formal, node in zip(function.signature.parameters, arguments, strict=False):
            if (source := self.locate(node, routine, file, frame)) is not None:
                shadow.demand(source, f"'{formal.name}' of '{function.name}'", bound, lanes)


def function_signature(routine: Routine) -> Signature:
    """The signature of a routine's function."""
    return routine.function.signature


def assign(held: PerLane, lanes: Lanes, value: PerLane, size: int) -> PerLane:
    """A per-lane value, updated for some lanes; it stays uniform where it is assigned for all lanes."""
    if lanes is None:
        return value
    whole = held if np.ndim(held) else np.full(size, held)
    whole[lanes] = value
    return whole


def set_register(file: RegisterFile, slot: int, lanes: Lanes, value: PerLane, size: int) -> None:
    """Write a register of another function's file, as the type of that register."""
    held = file[slot].dtype
    fitting = value.view(held) if value.dtype.itemsize == held.itemsize else value.astype(held)
    if lanes is None:
        file[slot] = fitting.copy()
    else:
        put(file, slot, lanes, fitting, size)


def regrouped(words: list[PerLane], sizes: list[int]) -> list[PerLane]:
    """The same bytes, in their order, as words of other sizes."""
    if [word.dtype.itemsize for word in words] == sizes:
        return words
    pieces = np.broadcast_arrays(*(np.asarray(word) for word in words))
    octets = [np.ascontiguousarray(piece)[..., None].view(np.uint8) for piece in pieces]
    made = []
    for parts in argument_words.partition([octet.shape[-1] for octet in octets], sizes):
        joined = np.concatenate([octets[number][..., first : first + count] for number, first, count in parts], axis=-1)
        made.append(np.ascontiguousarray(joined).view(np.dtype(f"u{joined.shape[-1]}"))[..., 0])
    return made


def words(variable: Variable, alignment: int) -> list[tuple[int, np.dtype[np.generic]]]:
    """The aligned words that make up a variable, as (offset, dtype)."""
    size = variable.size or variable.element_size
    step = min(8, variable.alignment, alignment, size & -size)
    held = np.dtype(f"u{step}")
    return [(offset, held) for offset in range(0, size, step)]


def pieces(window: Window, address: PerLane, variable: Variable, alignment: int, lanes: Lanes) -> list[PerLane]:
    """The words of a `.param` variable, as they are copied to a variable of some alignment."""
    return [window.load(held, address + np.uint64(offset), 1, lanes) for offset, held in words(variable, alignment)]


def store_pieces(window: Window, address: PerLane, value: PerLane, lanes: Lanes) -> None:
    """Write a value, or the words of one, to a `.param` variable."""
    for n, word in enumerate(value if isinstance(value, list) else [value]):
        held = np.dtype(f"u{word.dtype.itemsize}")
        window.store(held, address + np.uint64(n * held.itemsize), word.view(held), 1, lanes)


def alignment_of(symbol: Argument) -> int:
    """The alignment of a `.param` variable; a register allows any."""
    return symbol.alignment if isinstance(symbol, Variable) else FRAME_ALIGNMENT

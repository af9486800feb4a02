"""Calls: frames on the stack of each lane, arguments and results, the functions of the device's library (PTX 7, 9.7.12.5).

The registers of a function belong to the depth of the call, so recursion needs no saving.  `.param` variables lie in the frame
of the function that declares them; a call copies the caller's arguments into the callee's parameters, a return the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.lanes import at
from ptxvm.engine.interp.ports import Action
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import put
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.window import Window
from ptxvm.syntax import tree

if TYPE_CHECKING:
    from ptxvm.engine.interp.barriers import Key
    from ptxvm.engine.interp.schedule import Schedule

FRAME_ALIGNMENT = 16
SITE = 1 << 24  # a return site is routine * SITE + segment


class Calls:
    """The calls of a cohort."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.cohort, self.code = schedule, schedule.cohort, schedule.code
        self.sites: list[Any] = [np.int64(-1)]
        image, begin = self.code.image, self.code.image.module_local.size
        self.cohort.frames[0] = np.uint64(begin)
        self.cohort.ends[0] = np.uint64(begin + image.frame_size(schedule.kernel.function))

    def call(self, action: Action, key: Key, lanes: Any, address: Any, bound: Bound) -> None:
        """Lanes call a function: one, or each the one that its address names."""
        if action.symbol is not None:
            self.enter(action.symbol, action, key, lanes, bound)
            return
        for each in np.unique(address):
            some = self.schedule.where(lanes, address, each)
            function = self.code.image.function_at(int(each))
            if function is None:
                said = f"the call goes to {int(each):#x}, where no function is"
                self.schedule.abandon("invalid-call", said, bound, some)
                continue
            self.enter(function, action, key, some, bound)

    def enter(self, function: Function, action: Action, key: Key, lanes: Any, bound: Bound) -> None:
        """One function for some lanes."""
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
        self.schedule.push((-(depth + 1), routine.number, 0), lanes)

    def grow(self, routine: Routine, depth: int, lanes: Any, bound: Bound) -> Any:
        """A frame for the callee; returns where it begins, None where there is no room."""
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

    def actual(self, node: Any, bound: Bound, formal: Any, depth: int, routine: Routine, file: list[Any], lanes: Any) -> Any:
        """The value of an argument: of a register or constant, or the pieces of a `.param` variable."""
        if isinstance(node, Variable):
            frame = at(self.cohort.frames[depth], lanes)
            return pieces(self.cohort.local, frame + np.uint64(self.offset(node, routine)), node, alignment_of(formal), lanes)
        if isinstance(node, Register):
            return at(self.register(file, routine.slots.of(node)), lanes)
        if isinstance(node, tree.Integer):
            return arrays.const(formal.type.as_bits, node.value)
        if isinstance(node, tree.Float):
            return arrays.const(Type.named[f"b{node.width}"], node.bits)
        raise self.schedule.refuse("invalid-call", "an argument of the call is of no known kind", bound, lanes)

    def register(self, file: list[Any], slot: int) -> Any:
        """What a register holds, of a function or of the module."""
        return file[slot] if slot >= 0 else self.cohort.own[~slot]

    def pass_on(self, value: Any, formal: Any, routine: Routine, file: list[Any], frame: Any, lanes: Any) -> None:
        """Give a parameter of the callee its value."""
        if isinstance(formal, Register):
            slot = routine.slots.of(formal)
            set_register(file if slot >= 0 else self.cohort.own, max(slot, ~slot), lanes, value, self.cohort.size)
        else:
            place = frame + np.uint64(self.offset(formal, routine))
            store_pieces(self.cohort.local, place, value, lanes)

    def offset(self, variable: Variable, routine: Routine) -> int:
        """Where a variable lies in the frame of its function."""
        return int(self.code.image.place(variable, routine.function)[1])

    def leave(self, key: Key, lanes: Any) -> None:
        """Lanes return, each to where it was called."""
        depth, routine = -key[0], self.code.routines[key[1]]
        sites = at(self.sites[depth], lanes)
        for site in np.unique(sites):
            some = self.schedule.where(lanes, sites, site)
            number, segment = divmod(int(site), SITE)
            self.hand_back(routine, self.code.routines[number], segment, depth, some)
            self.schedule.push((-(depth - 1), number, segment + 1), some)

    def hand_back(self, routine: Routine, caller: Routine, segment: int, depth: int, lanes: Any) -> None:
        """Copy the results to where the call wants them."""
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
                value = at(self.register(file, routine.slots.of(formal)), lanes)
            else:
                place = frame + np.uint64(self.offset(formal, routine))
                value = pieces(cohort.local, place, formal, alignment_of(target), lanes)
            self.pass_on(value, target, caller, above, upper, lanes)

    # ── the library ─────────────────────────────────────────────────────────────────────

    def library(self, function: Function, arguments: list[Any], results: list[Any], key: Key, lanes: Any, bound: Bound) -> None:
        """A function that the device provides."""
        handler = self.code.device_function(function.name)
        if handler is None:
            self.schedule.abandon("invalid-call", f"the function '{function.name}' has no body", bound, lanes)
            return
        depth, routine = -key[0], self.code.routines[key[1]]
        cohort, file = self.cohort, self.schedule.file(self.code.routines[key[1]], -key[0])
        count = cohort.size if lanes is None else len(lanes)
        formals = function.signature.parameters
        given = []
        for formal, node in zip(formals, arguments, strict=False):
            value = self.actual(node, bound, formal, depth, routine, file, lanes)
            words = value if isinstance(value, list) else [value]
            given += [np.broadcast_to(np.asarray(word), count).astype(np.uint64) for word in words]
        numbers = cohort.layout.numbers if lanes is None else lanes
        cohort.calling = bound
        try:
            answer = cohort.ask(function.name, handler, numbers, given)
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
        self.schedule.push((key[0], key[1], key[2] + 1), lanes)


def function_signature(routine: Routine) -> Any:
    """The signature of the function that runs."""
    return routine.function.signature


def assign(held: Any, lanes: Any, value: Any, size: int) -> Any:
    """A per-lane quantity with a new value for some lanes; uniform ones stay so where all lanes agree."""
    if lanes is None:
        return value
    whole = held if np.ndim(held) else np.full(size, held)
    whole[lanes] = value
    return whole


def set_register(file: list[Any], slot: int, lanes: Any, value: Any, size: int) -> None:
    """Write a register of a file that is not the running function's, as its own type."""
    value = value[0] if isinstance(value, list) else value
    held = file[slot].dtype
    fitting = value.view(held) if value.dtype.itemsize == held.itemsize else value.astype(held)
    if lanes is None:
        file[slot] = fitting.copy()
    else:
        put(file, slot, lanes, fitting, size)


def words(variable: Variable, alignment: int) -> list[tuple[int, Any]]:
    """The offsets and sizes of the words, aligned in both, that make up a variable."""
    size = variable.size or variable.element_size
    step = min(8, variable.alignment, alignment, size & -size)
    held = np.dtype(f"u{step}")
    return [(offset, held) for offset in range(0, size, step)]


def pieces(window: Window, place: Any, variable: Variable, alignment: int, lanes: Any) -> list[Any]:
    """The words of a `.param` variable that another of some alignment is copied to."""
    return [window.load(held, place + np.uint64(offset), 1, lanes) for offset, held in words(variable, alignment)]


def store_pieces(window: Window, place: Any, value: Any, lanes: Any) -> None:
    """Write a value, or the words of one, to a `.param` variable."""
    for n, word in enumerate(value if isinstance(value, list) else [value]):
        held = np.dtype(f"u{word.dtype.itemsize}")
        window.store(held, place + np.uint64(n * held.itemsize), word.view(held), 1, lanes)


def alignment_of(symbol: Any) -> int:
    """That of a `.param` variable; a register asks for none."""
    return symbol.alignment if isinstance(symbol, Variable) else FRAME_ALIGNMENT

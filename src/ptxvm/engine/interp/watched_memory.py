"""Memory of watched lanes: every access is reported to the watcher, and a refused lane goes on without its access.

Where the provenance of an address is known, its access must stay in that variable or block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access, Update
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lane_memory import LaneMemory, located
from ptxvm.engine.interp.lanes import at, spread
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.isa.mbarrier import TRANSACTION_BITS, TRANSACTIONS
from ptxvm.machine.events import StoredValues, Watcher
from ptxvm.machine.faults import AccessFault, PlacedFault, plural
from ptxvm.machine.image import Placement
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane
from ptxvm.machine.streams import DEVICE

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(slots=True)
class Polling:
    """The lanes that poll an mbarrier whose phase is not over, and the number of failed polls since the last other event."""

    lanes: PerLane
    fruitless: int = 0


def transactions(words: PerLane) -> PerLane:
    """The bytes that mbarriers wait for, modulo a power of two."""
    return (words.view(np.int64) >> TRANSACTIONS) & TRANSACTION_BITS


def bit_patterns(values: PerLane) -> PerLane:
    """The bits of values; equal NaNs have equal bits."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def in_one_step(access: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """An access and its report: the watchers of launches that run beside each other see accesses in their order in memory."""

    @wraps(access)
    def reported(*args: Parameters.args, **named: Parameters.kwargs) -> Result:
        with DEVICE.lock:
            return access(*args, **named)

    return reported


class WatchedMemory(LaneMemory):
    """Memory that reports accesses; `variables` are those that accesses of instructions must not leave."""

    cohort: Cohort
    watcher: Watcher
    schedule: Schedule
    variables: dict[Bound, Variable]
    polling: Polling

    def watch(self, cohort: Cohort, watcher: Watcher, schedule: Schedule, variables: dict[Bound, Variable]) -> None:
        """Report to a watcher from now on."""
        self.cohort, self.watcher, self.schedule, self.variables = cohort, watcher, schedule, variables
        self.polling = Polling(np.zeros(self.layout.size, np.bool_))
        self.initialised: dict[int, Bound] = {}  # the initialising instruction of each mbarrier, by its offset in shared memory
        self.announced: dict[int, Bound] = {}  # and the last that told it of bytes to come
        self.brought: dict[int, Bound] = {}  # and the last whose bytes came

    def release(self) -> None:
        """Report that the windows have ended."""
        first = None if self.cohort.alive.any() else int(self.threads[0])
        for window in self.windows.values():
            self.watcher.ended(window.allocation, first)
            if self.cohort.shadow is not None:
                self.cohort.shadow.released(window.allocation)
        super().release()

    # ── accesses ────────────────────────────────────────────────────────────────────────

    @in_one_step
    def gather(self, access: Access, lanes: Lanes, address: PerLane) -> PerLane:
        """Load, and report it; a refused lane gets 0."""
        try:
            if "asynchronous" not in access.attributes:  # an asynchronous copy was checked when it began
                self.keep_to_object(access, lanes, address)
            value = super().gather(access, lanes, address)
        except PlacedFault as fault:
            good, count = self.without(fault, access, lanes, address), self.layout.count(lanes)
            value = np.zeros((access.count, count) if access.count > 1 else count, access.dtype)
            if len(good) and np.ndim(address):
                value[..., good] = self.gather(access, self.layout.every(lanes)[good], address[good])
            return value
        if self.polling.fruitless and "mbarrier" not in access.attributes:
            self.polling.lanes[slice(None) if lanes is None else lanes] = False
        for allocation, threads, offsets in self.touched(access, lanes, address):
            self.watcher.read(access, threads, allocation, offsets)
        return value

    @in_one_step
    def scatter(self, access: Access, lanes: Lanes, address: PerLane, values: Sequence[PerLane]) -> None:
        """Store, and report it; a refused lane stores nothing."""
        try:
            if "asynchronous" not in access.attributes:
                self.keep_to_object(access, lanes, address, writing=True)
            super().scatter(access, lanes, address, values)
        except PlacedFault as fault:
            good = self.without(fault, access, lanes, address, writing=True)
            if len(good) and np.ndim(address):
                self.scatter(access, self.layout.every(lanes)[good], address[good], [at(v, good) for v in values])
            return
        self.polling.fruitless = 0
        if access.attributes.get("mbarrier") == "init":
            pieces = self.touched(access, lanes, address)
            self.initialised.update((at, access.bound) for _, _, offsets in pieces for at in offsets.tolist())
        left = self.left(access, lanes, address, values) if self.watcher.follows_values else None
        for position, (allocation, threads, offsets) in self.touched_by_lane(access, lanes, address):
            self.watcher.wrote(access, threads, allocation, offsets, left and left.of(position))

    def left(self, access: Access, lanes: Lanes, address: PerLane, values: Sequence[PerLane]) -> StoredValues:
        """The values in memory after a store: of several lanes at one address, the last one's."""
        shape = access.count, self.layout.count(lanes)
        held = np.reshape(super().gather(access, lanes, address), (access.count, -1))
        bits = bit_patterns(np.broadcast_to(held, shape))
        stored = [np.broadcast_to(np.asarray(value).astype(access.dtype, copy=False), shape[1:]) for value in values]
        return StoredValues(np.ascontiguousarray(bits.T), (bits == bit_patterns(np.stack(stored))).all(axis=0))

    @in_one_step
    def update(self, access: Access, lanes: Lanes, address: PerLane, update: Update, operands: Sequence[PerLane]) -> PerLane:
        """Update, and report it; a refused lane gets 0."""
        try:
            if "asynchronous" not in access.attributes:  # the mbarrier of a copy is another object than its target
                self.keep_to_object(access, lanes, address, writing=True)
            old = super().update(access, lanes, address, update, operands)
        except PlacedFault as fault:
            good = self.without(fault, access, lanes, address, writing=True)
            old = np.zeros((access.count, len(address)) if access.count > 1 else len(address), access.dtype)
            if len(good):
                every = self.layout.every(lanes)
                old[..., good] = self.update(access, every[good], address[good], update, [each[good] for each in operands])
            return old
        self.polling.fruitless = 0
        if "mbarrier" in access.attributes:
            words = old, update(old, *operands)
            for position, (allocation, threads, offsets) in self.touched_by_lane(access, lanes, address):
                self._note_transactions(access, offsets, (words[0][position], words[1][position]))
                self.watcher.signalled(access, threads, allocation, offsets, (words[0][position], words[1][position]))
        else:
            for where in access.elements(address):
                self.report_update(access.element, lanes, where, old == operands[0] if update.operation == "cas" else None)
        return old

    def _note_transactions(self, access: Access, offsets: PerLane, words: tuple[PerLane, PerLane]) -> None:
        """Remember which instructions changed the bytes that mbarriers wait for."""
        change = (transactions(words[1]) - transactions(words[0])) & TRANSACTION_BITS
        come = change > TRANSACTION_BITS // 2
        for held, changed in ((self.announced, ~come & (change != 0)), (self.brought, come)):
            held.update(dict.fromkeys(offsets[changed].tolist(), access.bound))

    def report_update(self, access: Access, lanes: Lanes, address: PerLane, swapped: PerLane) -> None:
        """Report an atomic; the lanes of a compare-and-swap that failed only read."""
        if swapped is not None and not np.all(swapped):
            every, failed = self.layout.every(lanes), np.flatnonzero(~swapped)
            for allocation, threads, offsets in self.touched(access, every[failed], spread(address, failed)):
                self.watcher.read(access, threads, allocation, offsets)
            good = np.flatnonzero(swapped)
            lanes, address = every[good], spread(address, good)
            if not len(good):
                return
        for allocation, threads, offsets in self.touched(access, lanes, address):
            self.watcher.updated(access, threads, allocation, offsets)

    # ── refusals ────────────────────────────────────────────────────────────────────────

    def reachable(self, access: Access, lanes: LaneNumbers, address: PerLane, *, writing: bool) -> PerLane:
        """The positions of the lanes whose access is in bounds; the others are reported."""
        try:
            self.keep_to_object(access, lanes, address, writing=writing)
            return super().reachable(access, lanes, address, writing=writing)
        except PlacedFault as fault:
            return self.without(fault, access, lanes, address, writing=writing)

    def without(self, fault: PlacedFault, access: Access, lanes: Lanes, address: PerLane, *, writing: bool = False) -> PerLane:
        """Report a refused access; the positions of the lanes that are in bounds."""
        self.refuse(fault, access)
        good = self.fitting(access, lanes, address, writing=writing).copy()
        good[fault.lane == self.layout.every(lanes)] = False
        return np.flatnonzero(good)

    def refuse(self, fault: PlacedFault, access: Access) -> None:
        """Report a refused access; raise it where the watcher does not accept it."""
        if not self.watcher.refused(self.schedule.fault(fault), access.bound, int(self.threads[fault.lane])):
            raise fault

    def fitting(self, access: Access, lanes: Lanes, address: PerLane, *, writing: bool) -> PerLane:
        """Which lanes are in bounds, of memory and of their objects?"""
        good = super().fitting(access, lanes, address, writing=writing)
        if (variable := self.variable_of(access)) is not None:
            good = good & ~self.outside_variable(variable, access, lanes, address)[0]
        wrong = self.outside_object(access, lanes, address, writing=writing)
        return good if wrong is None else good & ~wrong

    # ── the objects of addresses ────────────────────────────────────────────────────────

    def variable_of(self, access: Access) -> Variable | None:
        """The variable that an access must not leave; None where it is unknown."""
        variable = self.variables.get(access.bound)
        return variable if variable is not None and access.space in (Space.GENERIC, variable.space) else None

    def keep_to_object(self, access: Access, lanes: Lanes, address: PerLane, *, writing: bool = False) -> None:
        """Refuse an access outside the variable or block that its address comes from."""
        wrong = self.outside_object(access, lanes, address, writing=writing)
        if wrong is not None and wrong.any():
            first = int(np.argmax(wrong))
            lane = first if lanes is None else int(lanes[first])
            faulty = int(address if not np.ndim(address) else address[first])
            tag = int(self.cohort.shadow.access_tags[access.bound, writing][lane])
            fault = self.cohort.shadow.objects.explain(self.cohort, access, lane, faulty, tag, writing=writing)
            raise located(fault.at_lane(first), access, lanes)
        if (variable := self.variable_of(access)) is not None:
            self.keep_to_variable(variable, access, lanes, address, writing=writing)

    def outside_object(self, access: Access, lanes: Lanes, address: PerLane, *, writing: bool) -> PerLane:
        """Which lanes are outside the objects of their addresses?  None where no object is known."""
        if self.cohort.shadow is None:
            return None
        tags = self.cohort.shadow.tags_held(access, lanes, writing=writing)
        if tags is None:
            return None
        every = self.layout.every(lanes)
        addresses = np.broadcast_to(address, len(every)).astype(np.uint64)
        return self.cohort.shadow.objects.strays(self.cohort, access, every, addresses, tags)

    def keep_to_variable(self, variable: Variable, access: Access, lanes: Lanes, address: PerLane, *, writing: bool) -> None:
        """Refuse an access outside the variable that its address comes from."""
        wrong, within = self.outside_variable(variable, access, lanes, address)
        if wrong.any():
            lane = int(np.argmax(wrong))
            size, byte = access.dtype.itemsize * access.count, int(within[lane])
            said = f"{'writing' if writing else 'reading'} {plural(size)} at byte {byte} of '{variable.name}'"
            fault = AccessFault("out-of-bounds", f"{said}, which has {plural(variable.size)}", byte, size, lane)
            raise located(fault, access, lanes)

    def outside_variable(self, variable: Variable, access: Access, lanes: Lanes, address: PerLane) -> tuple[PerLane, PerLane]:
        """Which lanes are outside the variable, and the offset of each in it."""
        count = self.layout.count(lanes)
        window = self.shared if variable.space is Space.SHARED else self.local
        function = access.bound.function
        assert function is not None  # noqa: S101 - for mypy; only instructions of functions access memory
        where, start = self.schedule.code.image.locate(variable, function)
        if access.space is Space.GENERIC:
            at_window = window.from_generic(np.broadcast_to(address, count), lanes)
        else:
            at_window = np.broadcast_to(window.offsets(address, lanes), count).astype(np.uint64)
        begin = np.uint64(start) + (self.cohort.frame(lanes) if where is Placement.FRAME else np.uint64(0))
        within = (at_window - begin).view(np.int64)
        size = access.dtype.itemsize * access.count
        return (within < 0) | (within > variable.size - size), within

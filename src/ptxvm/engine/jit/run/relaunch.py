"""Relaunches: a quick path for short launches of a kernel that has run before.

Most of them access memory by compiled code alone, so their arguments enter the table of allocations only when that table
is searched.  Each check of a usual launch is made here too; an unusual launch takes the usual way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.algebra.state_space import Space
from ptxvm.engine.interception import INTERCEPTOR
from ptxvm.engine.jit.run import tiering
from ptxvm.engine.jit.run.cta_distribution import PIECE
from ptxvm.engine.jit.run.launch_state import Launch
from ptxvm.engine.jit.run.signals import Signals
from ptxvm.engine.launch import mark_written
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.arguments import Arguments, Bank, ParameterSlot
from ptxvm.machine.device_array import DeviceArray, is_usable
from ptxvm.machine.handles import HANDLES
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import ADOPTED
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult

if TYPE_CHECKING:
    from ptxvm.engine.jit.run.compiled import Compiled
    from ptxvm.engine.jit.run.event_counts import EventCounts

SHORT = 400e-6  # seconds, up to which a launch is short if there are several host threads: what it costs to share one
WIDEST = 16  # bytes of an access, for which the alignment of an allocation does not matter
NUMBERS = (int, float, bool, np.generic)
BYTE = np.dtype(np.uint8)
NOTHING = object()
R = TypeVar("R")


def limit(threads: int) -> float:
    """The seconds up to which a launch is short: too short to share, or one piece for a single thread."""
    return SHORT if threads > 1 else PIECE


def may_repeat(compiled: Compiled, shape: LaunchShape, short: float) -> bool:
    """Is a launch short, and its code without host calls and a table of windows?"""
    facts = compiled.facts
    if compiled.rate is None or compiled.rate * shape.ctas > short:
        return False
    if compiled.image.memory.address_bits != 64:
        return False
    return not (facts.host_calls or facts.in_order or facts.asks_spaces) and all(site.size <= WIDEST for site in facts.sites)


class Relaunch:
    """Relaunches of a kernel with one shape, one at a time.

    A kernel that `waits` has spin loops.
    """

    def __init__(
        self, compiled: Compiled, shape: LaunchShape, bank: Bank, short: float, *, waits: bool
    ) -> None:  # fmt: skip
        self.short, self.waits = short, waits
        self.is_retired = False  # do others keep it though it shall not run any more?
        self.compiled, self.facts, self.shape, self.ctas = compiled, compiled.facts, shape, shape.ctas
        self.memory, self.output = compiled.image.memory, compiled.library.output
        self.slots = bank.slots
        self.runner = compiled.new_runner(shape)
        self.launch = Launch(compiled.image, self.facts, shape, None)
        self._signals = Signals(self.launch)
        self._bank = self.memory.allocate(max(bank.size, 1), 256, Space.PARAM, "the parameters", writable=False)
        self.memory.hide(self._bank)
        self._bytes = self._bank.view(BYTE, 1).data
        self._unused = Arguments(self.memory, bytearray())
        self._last: list[Allocation | None] = [None] * len(self.slots)  # the allocation that each parameter pointed to
        self._packed: list[object] = [NOTHING] * len(self.slots)  # the number, or the allocation, that the bank holds
        self._arrays: list[tuple[ParameterSlot, Array | DeviceArray]] = []  # the arrays among the arguments
        self._known: list[Allocation] = []  # the allocations that the runner knows from the launch before
        self._adopted: list[Allocation] = []
        self._before: tuple[Sequence[object], int] | None = None  # the bytes in the bank, and what had been freed then
        self._steps = 0  # of the last launch
        self._come = self._appear
        self._busy = threading.Lock()

    @property
    def valid(self) -> bool:
        """Is the kernel still short, and its code the same; has it no rival since?"""
        compiled = self.compiled
        if self.is_retired or compiled.facts is not self.facts or compiled.better is not None:
            return False
        if self.runner.paired is (compiled.rival is None):
            return False
        return (compiled.rate or 0.0) * self.ctas <= self.short

    def run(self, args: Sequence[object], events: EventCounts | None = None) -> LaunchResult | None:
        """Launch the kernel, whose code counts `events` if it is profiled; None where the launch must take the usual way."""
        raws = type(args) is tuple and {*map(type, args)} == {bytes}
        return self._attempt(args, raws, events, self._result)

    def repeat(self, args: tuple[bytes, ...]) -> bool:
        """Launch the kernel with arguments given by their bytes; False where the launch must take the usual way."""
        return self._attempt(args, True, None, _nothing) is not None  # noqa: FBT003 - they are bytes

    def _attempt(
        self, args: Sequence[object], raws: bool, events: EventCounts | None, result: Callable[[float], R]  # noqa: FBT001 - private
    ) -> R | None:  # fmt: skip
        """Launch the kernel: the `result` of the seconds that it took, None where the launch must take the usual way."""
        if len(args) != len(self.slots) or INTERCEPTOR.runs is not None or not self._busy.acquire(blocking=False):
            return None
        try:
            with usual_arithmetic():
                allocations = self._pack(args, raws)
                done = result(self._run(allocations, events)) if allocations is not None else None
        finally:
            self._arrays.clear()
            self._busy.release()
        if tiering.pays(self.compiled):
            tiering.improve(self.compiled)
        return done

    def _result(self, seconds: float) -> LaunchResult:
        instructions, thread_instructions = self.runner.counted()
        shape = self.shape
        return LaunchResult(shape.grid, shape.block, instructions, thread_instructions, self._steps, seconds)

    # ── arguments ───────────────────────────────────────────────────────────────────────

    def _pack(self, args: Sequence[object], raws: bool) -> list[Allocation] | None:  # noqa: FBT001 - private
        """Fill the parameter bank; returns the memory that the arguments point to, None for an unusual argument.

        `raws` are a tuple of bytes.
        """
        if raws and self._before == (args, self.memory.table.removed):
            return self._known
        self._before = None
        allocations: list[Allocation] = []
        for slot, value in zip(self.slots, args, strict=True):
            if value is self._packed[slot.number]:
                continue
            raw = self._raw(slot, value, allocations)
            if raw is None:
                return None
            self._bytes[slot.offset : slot.offset + len(raw)] = raw
        self._before = (args, self.memory.table.removed) if raws else None
        return allocations

    def _raw(self, slot: ParameterSlot, value: object, allocations: list[Allocation]) -> bytes | None:
        """The bytes of an argument, none where the bank has them already; None for an unusual one.  Adds what it points to."""
        if type(value) is np.ndarray or type(value) is DeviceArray:
            return self._pointer(slot, value, allocations)
        self._packed[slot.number] = NOTHING
        if type(value) is bytes:
            if len(value) != slot.size:
                return None
            if (allocation := self._pointed_to(value)) is not None:
                allocations.append(allocation)
            return value
        if not isinstance(value, NUMBERS):
            return None
        raw = slot.encode(value, self._unused)
        if not isinstance(value, np.void):  # which can be changed
            self._packed[slot.number] = value
        return raw

    def _pointer(self, slot: ParameterSlot, array: Array | DeviceArray, allocations: list[Allocation]) -> bytes | None:
        allocation = self._device(slot, array) if isinstance(array, DeviceArray) else self._host(slot, array)
        if allocation is None:
            return None
        allocations.append(allocation)
        if allocation is self._packed[slot.number]:
            return b""
        if not self._may_point(slot, allocation):
            return None
        self._packed[slot.number] = allocation
        return allocation.start.to_bytes(8, "little")

    def _pointed_to(self, value: bytes) -> Allocation | None:
        """The memory that 8 bytes point to, None where they do not; a driver gives all arguments as bytes."""
        if len(value) != 8:
            return None
        found = self.memory.table.find(int.from_bytes(value, "little"))
        return found if found is not None and found.space is Space.GLOBAL and not found.yields else None

    def _host(self, slot: ParameterSlot, array: Array) -> Allocation | None:
        """The memory of a host array; None for an unusual one."""
        known = self._last[slot.number]
        if known is not None and known.writable and _is_at(array, known):
            self._arrays.append((slot, array))
            return known
        if not array.flags.c_contiguous or not is_usable(array.dtype):
            return None
        start, read_only = array.__array_interface__["data"]
        size, last = array.nbytes, self._last[slot.number]
        if last is None or last.start != start or last.size != size or last.writable is read_only:
            if self.memory.table.elsewhere(start) is not None:
                return None
            last = Allocation(start, size, slot.space, slot.name, not read_only, slot.detail, fate=ADOPTED, live=False)
            self._last[slot.number] = last
        self._arrays.append((slot, array))
        return last if size else None

    def _device(self, slot: ParameterSlot, array: DeviceArray) -> Allocation | None:
        self._arrays.append((slot, array))
        return array.allocation if array.memory is self.memory and array.live else None

    def _may_point(self, slot: ParameterSlot, allocation: Allocation) -> bool:
        """May the parameter, as it is declared, point to an allocation?"""
        return (
            slot.pointer_bits == 64
            and slot.space is Space.GLOBAL
            and (slot.alignment is None or not allocation.start % slot.alignment)
        )

    # ── running ─────────────────────────────────────────────────────────────────────────

    def _run(self, allocations: list[Allocation], events: EventCounts | None) -> float:
        """Run the grid; returns the seconds that it took."""
        launch, table, runner = self.launch, self.memory.table, self.runner
        self.output.clear()
        began = time.perf_counter()
        if events is not None:
            runner.placed = self._placed(allocations)
        table.expect(self._come)
        try:
            if allocations != self._known or not runner.calls.known_rows:
                runner.know(allocations)
                self._known = allocations
            runner.begin(launch, self._bank.start)
            running = time.perf_counter()
            try:
                with self._signals:
                    runner.run(0, self.ctas)
            finally:
                ran = time.perf_counter() - running
                runner.end()
        finally:
            if not table.dismiss(self._come, [each for each in allocations if not each.live]):
                self._disappear()
            if self._arrays or HANDLES:
                mark_written([array for _, array in self._arrays])
        seconds = time.perf_counter() - began
        if launch.raised is not None:
            self.launch = Launch(launch.image, self.facts, self.shape, None)
            self._signals = Signals(self.launch)
            raise launch.raised
        if events is not None:
            runner.tell(events)
        self.compiled.record_time(ran / self.ctas, self.ctas)
        self._steps, launch.steps = launch.steps, 0
        return seconds

    def _placed(self, allocations: Sequence[Allocation]) -> list[Allocation] | None:
        """All allocations in the order of their addresses, with those of this launch; None where some overlap."""
        windows = [window.allocation for window in self.runner.windows.values()]
        found = {(each.start, each.end): each for each in (*self.memory.table.items, self._bank, *windows, *allocations)}
        extents = sorted(found)
        apart = all(before[1] <= behind[0] for before, behind in pairwise(extents))
        return [found[extent] for extent in extents] if apart else None

    def _appear(self) -> None:
        """Enter the memory of this launch in the table of allocations, which is about to be searched."""
        self.memory.show(self._bank)
        self.runner.show()
        for slot, array in self._arrays:
            if isinstance(array, DeviceArray):
                continue
            self._adopted.append(self.memory.adopt(array, slot.name, space=slot.space, detail=slot.detail).allocation)

    def _disappear(self) -> None:
        self.memory.hide(self._bank)
        self.runner.hide()
        while self._adopted:
            self.memory.release(self._adopted.pop())


def _nothing(seconds: float) -> bool:  # noqa: ARG001 - as every result of a launch
    """No result but that there was a launch."""
    return True


def _is_at(array: Array, known: Allocation) -> bool:
    """Is an array still, or again, a known allocation that may be written?  `__array_interface__` takes five times as long."""
    try:
        start = addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # NumPy's types know no buffers before Python 3.12
        return start == known.start and array.nbytes == known.size and is_usable(array.dtype)
    except (TypeError, ValueError, BufferError):  # it is empty, not contiguous or read-only, or not a buffer at all
        return False

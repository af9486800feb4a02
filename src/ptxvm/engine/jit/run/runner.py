"""Runners: the launch record, windows and callbacks with which one host thread runs CTAs; launches reuse them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.launch_record import AT, FIELDS, REACHED, WRITABLE, counted
from ptxvm.engine.jit.abi.metadata import Facts
from ptxvm.engine.jit.abi.specialisation import VersionKind
from ptxvm.engine.jit.objects.version import Version
from ptxvm.engine.jit.run import space_windows
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.launch_state import Launch
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.per_lane import Array
from ptxvm.machine.sole_thread import RUNNING, HostThread
from ptxvm.machine.window import ClusterWindow, Window

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    import numpy.typing as npt

    from ptxvm.engine.jit.abi.host import HostCall
    from ptxvm.engine.jit.abi.launch_record import Record
    from ptxvm.engine.jit.run.event_counts import EventCounts, EventMemory

CLOCK_GETTIME = ctypes.CDLL(None).clock_gettime  # of the C library
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 5)
OTHERS = (VersionKind.MASKED, VersionKind.SHAPELESS)  # each is the name of the field of the record that enters it
FAULT = -2  # the result of a warp that faulted
LINE = 64  # bytes, of a cache
FAR = 8 << 20  # bytes of memory that a launch knows, from which on the order of CTAs in grid-stride loops matters ...
EACH = 64  # ... if a thread has so many of them
ITERATIONS = 8  # iterations of such a loop, after which the next warps run: rows that the processor prefetches side by side
LARGE = 32 << 20  # bytes of an allocation, from which on non-temporal stores pay, even if it is read soon
EVERY = (1 << 64) - 1


class CompiledKernel(Protocol):
    """The part of a compiled kernel that a runner needs (`compiled`)."""

    facts: Facts
    image: Image
    library: Library
    versions: dict[VersionKind, Version]

    @property
    def addresses(self) -> npt.NDArray[np.uint64]:
        """The addresses of the functions and variables of the module."""

    def version(self, kind: VersionKind) -> Version:
        """The version of a kind."""

    def host_call(self, number: int) -> HostCall | None:
        """A host call that the disk cache could not hold."""


class Runner:
    """Runs CTAs of one kernel, for one launch at a time."""

    paired = False  # has it two versions of the kernel?

    def __init__(self, compiled: CompiledKernel, shape: LaunchShape, kind: type[Callbacks] = Callbacks) -> None:
        self.compiled, facts, image = compiled, compiled.facts, compiled.image
        self.memory = image.memory
        self.record = np.zeros(len(FIELDS), np.uint64)
        self._words = self.record.data  # the same memory, with quicker access to single words
        self.host_thread = HostThread(self._words, AT["sole"], AT["updating"])
        self.resident = facts.suspended.resident(shape.ctas)
        lanes = facts.suspended.threads
        threads = np.arange(lanes * self.resident)
        cluster = shape.cluster_size
        shared = Window(self.memory, Space.SHARED, facts.shared_size, threads // lanes, cluster)
        self.windows = {Space.SHARED: shared}
        if facts.stack:
            self.windows[Space.LOCAL] = Window(self.memory, Space.LOCAL, facts.stack, threads)
        reached = {**self.windows, Space.SHARED_CLUSTER: ClusterWindow(shared, cluster) if cluster > 1 else shared}
        self.calls = kind(facts, image, compiled.library, reached, self.record)
        self.calls.again = compiled.host_call
        self.calls.resident = self.resident
        self._entries = {str(kind): ENTRY(partial(self._enter_other, kind)) for kind in OTHERS}
        self._room = np.empty(facts.suspended.cta_size * self.resident + LINE, np.uint8)
        self._saved = np.empty(facts.suspended.saved * self.resident, np.uint8)
        self._stack_used = np.zeros(1, np.uint64)  # bytes of each thread's stack that may not be zero any more
        self._states = np.zeros(facts.warps, np.int32)
        self._arguments = (self.record.ctypes.data, self.calls.sites.ctypes.data, aligned(self._room), self._states.ctypes.data)
        self._blank = self._fresh_record().data
        self._shared_row = self._row_of_shared()
        self._large: list[Allocation] = []  # the large ones among the known allocations
        self._reached = 0  # bytes of the known allocations
        self.events: EventMemory | None = None  # in which profiled code counts
        self.placed: Sequence[Allocation] | None = None  # of which it knows the places; None: those in the table
        self.in_step = False  # do the CTAs of this launch run in step?
        self.hide()

    def _fresh_record(self) -> Record:
        calls, local = self.calls, self.windows.get(Space.LOCAL)
        fields = {
            "shared": self.windows[Space.SHARED].allocation.start,
            "local": local.allocation.start if local is not None else 0,
            "check": address(calls.check),
            "trap": address(calls.trap),
            "tick": address(calls.tick),
            "host_call": address(calls.host_call),
            "deadlock": address(calls.deadlock),
            "settle": address(calls.settle_slot),
            "clock_gettime": address(CLOCK_GETTIME),
            "resident": self.resident,
            "saved": self._saved.ctypes.data,
            "stack_used": self._stack_used.ctypes.data,
            **{field: address(entry) for field, entry in self._entries.items()},
            "rows": calls.rows.ctypes.data,
            "addresses": self.compiled.addresses.ctypes.data,
            "cached_outputs": EVERY,
        }
        return np.array([fields.get(name, 0) for name in FIELDS], np.uint64)

    def _row_of_shared(self) -> tuple[int, int, int, int]:
        """The row of shared memory, for generic addresses; empty if several CTAs are resident."""
        if self.compiled.facts.side_by_side:
            return 0, 0, 0, 0
        allocation = self.windows[Space.SHARED].allocation
        return allocation.start, allocation.start + self.compiled.facts.shared_size, allocation.origin, GENERIC

    # ── launches ────────────────────────────────────────────────────────────────────────

    def enter(
        self, launch: Launch, parameters: int, allocations: Sequence[Allocation], asked: Collection[Allocation] = ()
    ) -> None:
        """Prepare for a launch; `allocations` are those that it will probably use, the host is `asked` before it uses some."""
        self.show()
        self.know(allocations, asked)
        self.begin(launch, parameters)

    def know(self, allocations: Sequence[Allocation], asked: Collection[Allocation] = ()) -> None:
        """Set the allocations that this launch and later ones will probably use; compiled code knows all but those `asked`."""
        self.calls.know(self._shared_row, [each for each in allocations if each not in asked] if asked else allocations)
        self._large = [each for each in allocations if each.size >= LARGE]
        self._reached = sum(each.size for each in allocations)

    def begin(self, launch: Launch, parameters: int) -> None:
        """Begin a launch that uses the known allocations."""
        self.prepare(launch, parameters)
        RUNNING.enter(self.host_thread)

    def prepare(self, launch: Launch, parameters: int) -> None:
        """Fill the launch record."""
        compiled, record, calls = self.compiled, self._words, self.calls
        calls.launch = self.launch = launch
        self._version = compiled.versions[VersionKind.FIRST]  # tiering may replace it while this launch runs
        self._grid = self._version.grid
        record[:] = self._blank
        record[ROW_COUNT] = calls.known_rows
        record[PARAMETERS] = parameters
        if launch.limits is not None:
            record[LEFT] = launch.limits.left.ctypes.data
        self.in_step = self.walks_far(launch.shape)
        if self.in_step:
            record[IN_STEP] = ITERATIONS
        record[NCTAID_X], record[NCTAID_Y], record[NCTAID_Z] = launch.shape.grid
        calls.facts = compiled.facts
        if compiled.facts.weights:
            self._count_events(record)
        if launch.recording is not None:
            launch.recording.enter(record)
        if compiled.facts.asks_spaces:
            self._windows = space_windows.table(self.memory)
            record[WINDOWS] = self._windows.ctypes.data
        if self._large and compiled.facts.streamed:
            record[CACHED_OUTPUTS] = self._cached_outputs(parameters)
        calls.forget()
        if len(compiled.versions) > 1:
            for kind in OTHERS:
                if (version := compiled.versions.get(kind)) is not None:
                    record[AT[kind]] = version.address

    def _count_events(self, record: memoryview) -> None:
        """Give profiled code the memory that it counts in."""
        if self.events is None:
            from ptxvm.engine.jit.run.event_counts import EventMemory  # noqa: PLC0415 - few launches are profiled

            self.events = EventMemory()
        placed = self.memory.table.items if self.placed is None else self.placed
        self.events.enter(record, placed, self.compiled.facts.counter_words)

    def tell(self, events: EventCounts) -> None:
        """Add what profiled code has counted in this launch."""
        facts, image = self.compiled.facts, self.compiled.image
        if self.events is not None:
            events.add(image, image.function_numbered(facts.function), facts, self.events.words)

    def walks_far(self, shape: LaunchShape) -> bool:
        """Shall CTAs run in step: has the kernel grid-stride loops, and does each thread read much memory?"""
        if self.resident <= 1 or self._reached < FAR or self.compiled.facts.side_by_side:
            return False
        return self._reached >= EACH * shape.ctas * shape.threads

    def _cached_outputs(self, parameters: int) -> int:
        """A bit for each parameter with streamable stores: 0 if they shall be non-temporal."""
        facts, cached = self.compiled.facts, EVERY
        pointed_to = pointers_at(parameters, facts.pointers)
        for each in self._large:
            inside = [at for at, address in pointed_to.items() if each.start <= address < each.end]
            if len(inside) == 1 and inside[0] in facts.streamed:
                cached &= ~(1 << facts.streamed.index(inside[0]))
        return cached

    def run(self, first: int, last: int) -> bool:
        """Run some CTAs; false if the launch must stop."""
        if self.launch.timeline is None:
            return self.run_ctas(first, last)
        began = time.perf_counter()
        goes_on = self.run_ctas(first, last)
        self.launch.timeline.ran(first, last, began)
        return goes_on

    def run_ctas(self, first: int, last: int) -> bool:
        """Run some CTAs, whatever time it takes; false if the launch must stop."""
        if self.in_step or self.compiled.facts.cancels:
            self._words[RESIDENT] = self.resident  # which code counts
        if not self._grid(*self._arguments, first, last):
            self.calls.settle_all()
            if self.calls.tensor_memories:
                self.calls.hold_to_tensor_memory()
            return self.launch.raised is None
        self.calls.settle_all()
        self.calls.tensor_memories = {}
        if self.launch.raised is None:
            said = f"the compiled kernel '{self.compiled.facts.name}' stopped without a fault; please report this"
            self.launch.failed(self.calls.cta, Crash(said))
        return False

    def leave(self) -> None:
        """The launch has ended."""
        self.end()
        self.launch.counted(*self.counted())
        self.hide()

    def end(self) -> None:
        """No CTA of the launch runs any more."""
        RUNNING.leave(self.host_thread)

    def counted(self) -> tuple[int, int]:
        """Instructions and thread-instructions executed so far."""
        return counted(self._words)

    def show(self) -> None:
        """Enter the windows in the table of allocations."""
        for window in self.windows.values():
            self.memory.show(window.allocation)

    def hide(self) -> None:
        """Remove the windows from the table of allocations: no launch uses them."""
        for window in self.windows.values():
            self.memory.hide(window.allocation)

    # ── other versions ──────────────────────────────────────────────────────────────────

    def _enter_other(self, kind: VersionKind, *arguments: int) -> int:
        """Compile another version for the first warp that needs it, and enter it."""
        try:
            version = self.compiled.version(kind)
            self.calls.facts = self.compiled.facts
            self.record[AT[kind]] = version.address
            return int(ENTRY(version.address)(*arguments))
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self.launch.failed(self.calls.cta, error)
            return FAULT


GENERIC = REACHED[Space.GENERIC] | WRITABLE
PARAMETERS, ROW_COUNT, CACHED_OUTPUTS, LEFT = AT["params"], AT["row_count"], AT["cached_outputs"], AT["left"]
WINDOWS = AT["windows"]
IN_STEP, RESIDENT = AT["in_step"], AT["resident"]
NCTAID_X, NCTAID_Y, NCTAID_Z = (AT[f"nctaid.{axis}"] for axis in "xyz")


def aligned(room: Array) -> int:
    """The first address in an array that is aligned to a cache line."""
    return -(-room.ctypes.data // LINE) * LINE


def address(function: CFuncPtr) -> int:
    """The address of a callback."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def pointers_at(parameters: int, offsets: Sequence[int]) -> dict[int, int]:
    """The addresses at some offsets of a parameter bank."""
    return {at: ctypes.c_uint64.from_address(parameters + at).value for at in offsets}

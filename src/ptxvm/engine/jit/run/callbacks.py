"""Callbacks of compiled code: slow checks of accesses, host calls, traps, deadlocks, ticks."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.diagnostics.errors import Crash, Fault, Place
from ptxvm.engine.jit.abi import launch_record as records
from ptxvm.engine.jit.abi.launch_record import AT, OF_THREAD, REACHED, ROWS, TICKS, WRITABLE
from ptxvm.engine.jit.abi.metadata import MOST_WALKS, Facts
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.run.launch_state import Launch
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.allocation import REACHES, Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.image import Image
from ptxvm.machine.window import Window

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.analysis.program import Bound
    from ptxvm.engine.jit.abi.host import Deferral, HostCall
    from ptxvm.engine.jit.abi.launch_record import Record
    from ptxvm.engine.jit.abi.tile_product import TileFunction, TileProduct
    from ptxvm.engine.jit.run.column_waits import ColumnWaits
    from ptxvm.engine.jit.run.plan_tables import PlanTables
    from ptxvm.machine.environment import Environment
    from ptxvm.machine.per_lane import Array
    from ptxvm.machine.tensor_memory import TensorMemory
    from ptxvm.machine.texture_unit import Operands, Work

CHECK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
TRAP = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_int, ctypes.c_int)
HOST_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
DEADLOCK = ctypes.CFUNCTYPE(None)
TICK = ctypes.CFUNCTYPE(ctypes.c_int)
SETTLE = ctypes.CFUNCTYPE(None, ctypes.c_longlong)
BYTE = np.dtype(np.uint8)
SITE = ROW = struct.Struct("=4Q")
NO_ALLOCATION = SITE.pack(2**64 - 1, 0, 0, 0)  # of an access site that has not seen an allocation yet


class Callbacks:
    """The callbacks of a kernel for one host thread; the launch raises their exceptions."""

    launch: Launch
    again: Callable[[int], HostCall | None]  # finds a host call that the disk cache could not keep
    resident = 1  # CTAs
    _tables: PlanTables | None = None
    _columns: ColumnWaits | None = None
    known_rows = 0  # rows of the table that a launch begins with; 0 once others have replaced them

    def __init__(self, facts: Facts, image: Image, library: Library, windows: dict[Space, Window], record: Record) -> None:
        self.facts, self.image, self.memory, self.library = facts, image, image.memory, library
        self.windows, self.record = windows, record
        self.sites = np.zeros((facts.most_sites + MOST_WALKS, 4), np.uint64)
        self._site_bytes, self._nothing = self.sites.data.cast("B"), NO_ALLOCATION * facts.most_sites
        self.rows = np.zeros((ROWS, 4), np.uint64)
        self._row_bytes = self.rows.data.cast("B")
        self.check = CHECK(self._check)
        self.trap = TRAP(self._trap)
        self.tick = TICK(self._tick)
        self.host_call = HOST_CALL(self._host_call)
        self.deadlock = DEADLOCK(self._deadlock)
        self.settle_slot = SETTLE(self.settle)
        self.tensor_memories: dict[int, tuple[TensorMemory, Bound, int]] = {}  # of CTAs, with a use
        self._forget(facts.most_sites)

    def threads(self, mask: int, warp: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The lanes of a mask, and the numbers of their threads among those of the resident CTAs."""
        lanes = lanes_of(mask)
        return lanes, lanes + warp * WARP + int(self.record[AT["slot"]]) * self.facts.suspended.threads

    @property
    def cta(self) -> int:
        """The number of the CTA that runs."""
        return records.cta(self.record)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.launch.failed(self.cta, error)
        else:
            self.launch.interrupted(error)

    # ── known allocations ───────────────────────────────────────────────────────────────

    def forget(self) -> None:
        """Forget the allocations of all access sites."""
        self._forget(len(self.facts.sites))

    def _forget(self, count: int) -> None:
        size = count * SITE.size
        self._site_bytes[:size] = self._nothing[:size]
        if self._tables is not None:
            self._tables.forget()

    def know(self, shared: tuple[int, int, int, int], allocations: Sequence[Allocation]) -> None:
        """Enter shared memory, and the memory that a launch was given, in the table that compiled code searches."""
        ROW.pack_into(self._row_bytes, 0, *shared)
        allocations = allocations[: ROWS - 1]
        for number, allocation in enumerate(allocations, 1):
            ROW.pack_into(self._row_bytes, number * ROW.size, *row(allocation))
        self.known_rows = 1 + len(allocations)

    def learn(self, allocation: Allocation) -> None:
        """Enter an allocation in the table that compiled code searches; windows stay out, as threads own pieces of them."""
        if allocation.home is None:
            self.enter(allocation, flags(allocation.space, allocation.writable))

    def enter(self, allocation: Allocation, has: int) -> int:
        """Enter an allocation with some flags in that table; returns the number of its row."""
        count = int(self.record[AT["row_count"]])
        if count == ROWS:
            self.known_rows = 0
        number = count if count < ROWS else allocation.start // 16 % ROWS
        self.rows[number] = allocation.start, allocation.end, allocation.origin, has
        self.record[AT["row_count"]] = min(count + 1, ROWS)
        return number

    # ── checks ──────────────────────────────────────────────────────────────────────────

    def _check(self, site: int, addresses: int, mask: int, warp: int) -> int:
        """The slow check of an access; 0 if it is allowed."""
        try:
            with self.memory.lock:
                self._check_access(site, np.ctypeslib.as_array((ctypes.c_uint64 * WARP).from_address(addresses)), mask, warp)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
            return 1
        return 0

    def _check_access(self, number: int, addresses: npt.NDArray[np.uint64], mask: int, warp: int) -> None:
        site = self.facts.sites[number]
        lanes, threads = self.threads(mask, warp)
        wanted = addresses[lanes]
        if not len(lanes):
            return
        try:
            if site.space in self.windows:
                offsets = wanted & np.uint64(0xFFFF_FFFF)
                self.windows[site.space].resolve(BYTE, offsets, site.size, threads, writing=site.writing)
                return
            self.memory.table.check(wanted, site.size, site.space, threads, writing=site.writing)
        except AccessFault as wrong:
            place = self.place(site.instruction, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        found = self.memory.table.find(int(wanted[0]))
        if found is not None:
            self.learn(found)

    # ── host calls ──────────────────────────────────────────────────────────────────────

    def _host_call(self, number: int, room: int, mask: int, warp: int) -> int:
        """Run a host call; 0 if it succeeds."""
        table, runs = self.memory.table, getattr(self.facts.host_calls[number].host_call, "runs", False)
        try:
            with nullcontext() if runs else self.memory.lock:  # a child grid needs the lock on other threads
                removed = table.removed
                self._work(number, room, mask, warp)
                if table.removed != removed:  # the kernel has freed memory
                    self.record[AT["row_count"]] = 0
                    self.forget()
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
            return 1
        return 0

    def _work(self, number: int, room: int, mask: int, warp: int) -> None:
        work = self.facts.host_calls[number]
        lanes, threads = self.threads(mask, warp)
        if not len(lanes):
            return

        count = max(len(work.inputs), len(work.outputs), 1)
        held: Array = np.ctypeslib.as_array((ctypes.c_ubyte * (STEP * count)).from_address(room))

        def column(n: int, type: Type) -> Array:
            found: Array = held[STEP * n :][: WARP * type.bytes].view(held_as(type))
            return found

        try:
            inputs = [column(n, type)[lanes] for n, type in enumerate(work.inputs)]
            host_call = work.host_call or self.again(number)
            if host_call is None:
                raise Crash(f"host call {number} of '{self.facts.name}' is in none of its versions; please report this")
            found = host_call(self, self.facts.bound(self.image, work.instruction), threads, inputs)
        except AccessFault as wrong:
            place = self.place(work.instruction, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        for n, type in enumerate(work.outputs):
            target = column(n, type)
            values = None if found is None else found[n]
            target[lanes] = 0 if values is None else np.asarray(values).astype(target.dtype)

    @property
    def deferral(self) -> Deferral:
        """The queue of deferred work; only deferred code asks for it (`deferring_callbacks`)."""
        raise Crash(f"'{self.facts.name}' defers work in a launch that does not; please report this")

    def settle(self, slot: int) -> None:
        """CTAs are about to begin at a slot; only deferred code says so."""

    def settle_all(self) -> None:
        """No CTA runs any more."""

    def look_up(self, work: Work, operands: Operands) -> None:
        """Called before the texture unit is asked; only an observed launch checks anything here."""

    @property
    def environment(self) -> Environment:
        """The special registers of the launch."""
        return self.launch.environment

    def tensor_memory(self, bound: Bound, thread: int) -> TensorMemory:
        """The tensor memory of a thread's CTA, which an instruction uses; CTAs of a cluster are resident side by side."""
        from ptxvm.machine.tensor_memory import TensorMemory  # noqa: PLC0415 - few kernels have any

        cta = self.cta_of(thread)
        if cta not in self.tensor_memories:
            self.tensor_memories[cta] = TensorMemory(), bound, thread
        return self.tensor_memories[cta][0]

    @property
    def columns(self) -> ColumnWaits:
        """The warps that wait for columns of tensor memory."""
        if self._columns is None:
            from ptxvm.engine.jit.run.column_waits import ColumnWaits  # noqa: PLC0415 - few kernels have tensor memory

            self._columns = ColumnWaits(self, self.facts.warps)
        return self._columns

    @property
    def barrier_record(self) -> int:
        """The address of the barrier record of the CTA that runs (`abi.cta_barriers`)."""
        return int(self.record[AT["cta_barriers"]])

    def cta_of(self, thread: int) -> int:
        """The number of the CTA of a thread of the cluster that runs."""
        return self.cta + thread // self.threads_per_cta - int(self.record[AT["slot"]])

    def tile_function(self, tile: TileProduct) -> TileFunction | None:
        """The function that multiplies tiles of matrices; None where there is none."""
        from ptxvm.engine.jit.objects.tile_functions import tile_function  # noqa: PLC0415 - few kernels multiply matrices

        return tile_function(tile)

    @property
    def plan_tables(self) -> PlanTables:
        """The tables that compiled code has of tensor copies, tensor memory, textures and surfaces."""
        if self._tables is None:
            from ptxvm.engine.jit.run.plan_tables import PlanTables  # noqa: PLC0415 - few kernels have tensors or images

            self._tables = PlanTables(self.record, self.resident)
        return self._tables

    def remember_cells(self, bound: Bound, thread: int) -> None:
        """Tell compiled code of the tensor memory of a thread's CTA."""
        memory = self.tensor_memory(bound, thread)
        self.plan_tables.cells(thread // self.threads_per_cta, self.cta_of(thread), memory)

    @property
    def cluster_size(self) -> int:
        """The number of CTAs of a cluster."""
        return self.launch.shape.cluster_size

    def hold_to_tensor_memory(self) -> None:
        """At the end of the CTAs: fail the launch where one has not given its tensor memory back."""
        memories, self.tensor_memories = self.tensor_memories, {}
        self.plan_tables.forget_cells()
        for cta, (memory, bound, thread) in memories.items():
            if said := memory.leaked():
                from ptxvm.engine import faults  # noqa: PLC0415

                where = self.launch.shape.ctaid(cta), self.tid(thread)
                self.launch.failed(cta, Fault("tensor-memory", said, place=faults.place(self.facts.name, bound, *where)))

    @property
    def threads_per_cta(self) -> int:
        """The number of threads of a CTA."""
        return self.facts.suspended.threads

    def coordinates(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The CTA and the thread of a lane."""
        return self.launch.shape.ctaid(self.cta), self.tid(lane)

    def tid(self, lane: int) -> tuple[int, int, int]:
        """The place of a thread in its CTA."""
        from ptxvm.engine import faults  # noqa: PLC0415 - most launches have none

        return faults.unfold(lane % self.threads_per_cta, self.facts.rows)

    def _tick(self) -> int:
        """Check the clock; 1 if the CTA must stop, after an interrupt, a timeout, or the failure of an earlier CTA."""
        try:
            self.launch.passed(TICKS, self._position)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
        return int(self.cta >= self.launch.limit)

    def _position(self) -> Place:
        """The source place of the warp that checked the clock, or of the first that waits; else the start of the kernel."""
        word, self.record[AT["position"]] = int(self.record[AT["position"]]), 0
        number, warp = word & 0xFFFF_FFFF, word >> 32
        if number:
            return self.place((number & ~OF_THREAD) - 1, warp if number & OF_THREAD else warp * WARP)
        from ptxvm.engine import faults  # noqa: PLC0415
        from ptxvm.engine.jit.run import deadlock_report  # noqa: PLC0415

        found = next(deadlock_report.waiting(self.facts, self.image, self.record), None)
        if found is None:
            return self.place(0, 0)
        cta, thread = self.launch.shape.ctaid(found.cta), self.tid(min(found.threads))
        return faults.place(self.facts.name, found.bound, cta, thread)

    def _trap(self, bits: int, index: int, warp: int) -> None:
        """Report that some lanes have executed `trap`."""
        try:
            lane = max((bits & 0xFFFF_FFFF & -bits).bit_length() - 1, 0)
            self._failed(Fault("trap", "the kernel executed trap", place=self.place(index, warp * WARP + lane)))
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)

    def _deadlock(self) -> None:
        """Report a deadlock: all live threads wait."""
        from ptxvm.engine import faults  # noqa: PLC0415 - few kernels get stuck
        from ptxvm.engine.jit.run import deadlock_report  # noqa: PLC0415

        try:
            said, first = faults.deadlock(deadlock_report.waiting(self.facts, self.image, self.record))
            cta, thread = self.launch.shape.ctaid(first.cta), self.tid(min(first.threads))
            self._failed(Fault("deadlock", said, place=faults.place(self.facts.name, first.bound, cta, thread)))
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)

    def place(self, number: int, thread: int) -> Place:
        """The source place of an instruction, with the thread that ran it."""
        from ptxvm.engine import faults  # noqa: PLC0415

        return faults.place(self.facts.name, self.facts.bound(self.image, number), *self.coordinates(thread))


def row(allocation: Allocation) -> tuple[int, int, int, int]:
    """An allocation as a row of the table that compiled code searches."""
    return allocation.start, allocation.end, allocation.origin, flags(allocation.space, allocation.writable)


@cache
def flags(space: Space, writable: bool) -> int:  # noqa: FBT001
    """The flags of an allocation: the spaces that reach it, and whether it is writable."""
    return sum(bit for by, bit in REACHED.items() if space in REACHES[by]) | (WRITABLE if writable else 0)


@lru_cache(maxsize=256)
def lanes_of(mask: int) -> npt.NDArray[np.intp]:
    """The lanes of a mask."""
    found: npt.NDArray[np.intp] = np.flatnonzero(mask >> np.arange(WARP) & 1)
    found.flags.writeable = False
    return found


@cache
def held_as(type: Type) -> np.dtype[np.generic]:
    """The NumPy type of values of a type: f32 and f64 as such, the bits of anything else."""
    if type.is_float and not type.is_packed and type.bits >= 32:
        return np.dtype(f"f{type.bytes}")
    return np.dtype(f"{'i' if type.is_signed else 'u'}{type.bytes}")

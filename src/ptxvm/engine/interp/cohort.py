"""A cohort: some CTAs of a grid as one array of lanes, and the services that traced code calls.

Lanes are numbered CTA by CTA, thread by thread, so a warp is a run of lanes.  In every method `lanes` are the numbers of
the lanes that ask, or None for all of them; `guard` is a predicate of those lanes, or None.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import FenceKind, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b32
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.accesses import Access, CopyInstruction
from ptxvm.engine.interp.async_copies import Copies
from ptxvm.engine.interp.lane_memory import CohortInputs, LaneMemory, located
from ptxvm.engine.interp.lanes import LaneLayout, at, spread
from ptxvm.engine.interp.ports import Multiplication, TextureAccess
from ptxvm.engine.interp.registers_in_use import awaits
from ptxvm.engine.interp.segment import Slots
from ptxvm.engine.interp.tensor_tasks import TensorUnit
from ptxvm.engine.interp.transfers import UnderWay
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import builtins, texture_unit, warp_matrix
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import as_index
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane, RegisterFile
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.machine.window import Window


class Cohort:
    """The state that the traced code of all lanes shares.

    `shadow` is the shadow state where a check follows values.  A cohort that `follows_registers` sees every segment before
    it runs.
    """

    shadow: Any = None  # a `shadow.Shadow`, whose module stands above this
    follows_registers = False

    def __init__(self, inputs: CohortInputs, memory_type: type[LaneMemory] = LaneMemory) -> None:
        self.layout = LaneLayout(inputs.shape, inputs.ctas)
        self.size = self.layout.size
        self.memory, self.environment, self.clusters = inputs.memory, inputs.environment, inputs.clusters
        self.mem = memory_type(inputs, self.layout)
        self.parameter_bank = np.uint64(inputs.parameters)
        self.stack_size = inputs.stack_size
        self.frames = [np.uint64(0)]  # by depth of calls, where the frame begins: one offset for all lanes, or an array
        self.ends: list[PerLane] = [np.uint64(0)]  # by depth of calls, where the frame ends, blocks of alloca included
        self.depth = 0
        self.own: list[PerLane] = []  # the registers of the module
        self.alive = np.ones(self.size, np.bool_)
        self.payload: dict[tuple[int, np.dtype[np.generic]], PerLane] = {}
        self.members = np.zeros(self.size, np.uint32)
        self.votes_for = np.zeros(self.size, np.uint32)
        self.voters = np.zeros(self.size, np.uint32)
        self.yields = False
        self.arrivals: list[tuple[Bound, LaneNumbers, PerLane, PerLane]] = []
        self.cluster_arrivals: list[LaneNumbers] = []
        self.calling: Bound | None = None  # the last call of a function of the device
        self.copies = Copies(self)
        self.tensor = TensorUnit(self, self.copies)
        self.polling: PerLane = None  # the lanes whose last test found an mbarrier's phase incomplete; None if nothing asks

    @property
    def windows(self) -> dict[Space, Window]:
        """The windows of its memory, by their spaces."""
        return self.mem.windows

    def coordinates(self, lane: int) -> tuple[builtins.Extent, builtins.Extent]:
        """The CTA and the thread of a lane."""
        return self.layout.coordinates(lane)

    def release(self) -> None:
        """Release the windows."""
        self.mem.release()

    def texture(
        self, access: TextureAccess, lanes: Lanes, guard: Guard, operands: dict[str, Sequence[PerLane]]
    ) -> list[PerLane]:
        """Access a texture or surface; lanes whose guard is false get zeros."""
        count = self.layout.count(lanes)
        chosen, those = self.layout.chosen(lanes, guard) if guard is not None else (None, lanes)
        every = np.arange(count) if chosen is None else chosen
        if not len(every):
            return texture_unit.no_results(access.dtypes, count)
        chosen_operands = {name: [spread(each, every) for each in values] for name, values in operands.items()}
        try:
            found = access.work(self.memory, chosen_operands)
        except AccessFault as fault:
            raise located(fault, Access(access.bound, Space.GENERIC, b32), those) from None
        if chosen is None:
            return found
        results = texture_unit.no_results(access.dtypes, count)
        for result, value in zip(results, found, strict=True):
            result[chosen] = value
        return results

    # ── the stack ───────────────────────────────────────────────────────────────────────

    def parameters(self, lanes: Lanes) -> PerLane:
        """The address of the kernel's parameters."""
        return self.parameter_bank

    def frame(self, lanes: Lanes) -> PerLane:
        """The offset of the function's frame in local memory."""
        return at(self.frames[self.depth], lanes)

    def generic_frame(self, lanes: Lanes) -> PerLane:
        """The generic address of the function's frame."""
        return self.mem.local.to_generic(self.frame(lanes), lanes)

    def stack_pointer(self, lanes: Lanes) -> PerLane:
        """The end of the frame."""
        return at(self.ends[self.depth], lanes)

    def allocate_stack(self, bound: Bound, lanes: Lanes, guard: Guard, size: PerLane, alignment: PerLane) -> PerLane:
        """`alloca`: the frame grows upward."""
        step = np.uint64(max(int(alignment), 8))
        start = (self.stack_pointer(lanes) + (step - np.uint64(1))) // step * step
        wanted = np.asarray(size).astype(np.uint64)
        end = start + np.where(guard, wanted, np.uint64(0)) if guard is not None else start + wanted
        if int(np.max(end)) > self.stack_size:
            fault = AccessFault("stack-overflow", f"alloca needs {int(np.max(end))} bytes of a stack of {self.stack_size}")
            raise located(fault, Access(bound, Space.LOCAL, None), lanes)  # type: ignore[arg-type]
        self._set_end(lanes, end)
        return start

    def restore_stack(self, lanes: Lanes, guard: Guard, end: PerLane) -> PerLane:
        """`stackrestore`."""
        old = self.stack_pointer(lanes)
        self._set_end(lanes, end if guard is None else np.where(guard, end, old))
        return old

    def _set_end(self, lanes: Lanes, end: PerLane) -> None:
        if lanes is None:
            self.ends[self.depth] = end
        else:
            whole = np.broadcast_to(self.ends[self.depth], self.size).copy()
            whole[lanes] = end
            self.ends[self.depth] = whole

    # ── warps ───────────────────────────────────────────────────────────────────────────

    def keep_payload(self, number: int, dtype: np.dtype[np.generic], lanes: Lanes, value: PerLane) -> None:
        """Store the values that lanes give to a collective, for the other lanes to read."""
        key = (number, dtype)
        if lanes is None:
            self.payload[key] = value.copy()
            return
        payload = self.payload.get(key)
        if payload is None or not payload.ndim:
            whole = np.zeros(self.size, dtype)
            whole[...] = 0 if payload is None else payload
            self.payload[key] = payload = whole
        payload[lanes] = value

    def peer(self, lanes: Lanes, number: int, dtype: np.dtype[np.generic], lane: PerLane) -> PerLane:
        """The value that another lane of the warp gave; the lane's own value where that lane takes no part."""
        payload = self.payload[number, dtype]
        if not payload.ndim:
            return payload
        return self.of_peer(lanes, payload, lane)

    def of_peer(self, lanes: Lanes, payload: PerLane, lane: PerLane) -> PerLane:
        """The element of an array for another lane of the warp; the lane's own element where that lane takes no part."""
        own = self.layout.every(lanes)
        takes_part = (at(self.members, lanes) >> (lane & np.uint32(31)) & np.uint32(1)).astype(np.bool_)
        return payload.take(as_index(np.where(takes_part, at(self.layout.warp_start, lanes) + lane, own)))

    def ballot(self, lanes: Lanes, number: int, dtype: np.dtype[np.generic]) -> PerLane:
        """The members whose predicate is true, one bit each."""
        truth = np.broadcast_to(self.payload[number, dtype], self.size)
        return self.layout.warp_bits(truth, lanes) & at(self.members, lanes)

    def multiply(self, work: Multiplication, lanes: Lanes, *fragments: Sequence[PerLane]) -> list[PerLane]:
        """D = A * B + C of the matrices that whole warps hold."""
        if (broken := self._broken_warp(lanes)) is not None:
            fault = AccessFault("incomplete-warp", "a matrix product needs all 32 lanes of the warp", lane_index=broken)
            raise located(fault, Access(work.bound, Space.GENERIC, b32), lanes)
        count = self.layout.count(lanes)
        spread_fragments = [[np.broadcast_to(raw, count) for raw in registers] for registers in fragments]
        return warp_matrix.multiply(work.product, work.architecture, *spread_fragments, fma=_fma)

    def _broken_warp(self, lanes: Lanes) -> int | None:
        """The first lane whose warp is not whole."""
        layout = self.layout
        numbers = layout.every(lanes)
        whole = np.bincount(layout.warp[numbers], minlength=layout.warps)[layout.warp[numbers]] == WARP
        return None if whole.all() else int(np.argmin(whole))

    def lanes_meant(self, bound: Bound, lanes: Lanes, guard: Guard, lane: PerLane) -> None:
        """Lanes of a collective read values that other lanes gave."""

    def members_of(self, lanes: Lanes) -> PerLane:
        """The lanes that take part in the collective."""
        return at(self.members, lanes)

    def active(self, lanes: Lanes, guard: Guard) -> PerLane:
        """A mask of the lanes that execute the instruction."""
        here = np.zeros(self.size, np.bool_)
        here[slice(None) if lanes is None else lanes] = True if guard is None else guard
        return self.layout.warp_bits(here, lanes)

    def gather_active(self, lanes: Lanes, guard: Guard, values: Sequence[PerLane]) -> None:
        """A collective of the lanes that execute the instruction together."""
        members = self.active(lanes, guard)
        if lanes is None:
            self.members = members
        else:
            self.members[lanes] = members
        for n, value in enumerate(values):
            self.keep_payload(n, value.dtype, lanes, value)

    def votes(self, lanes: Lanes) -> tuple[PerLane, PerLane, PerLane]:
        """The outcome of a vote at a barrier: the number of ayes, are all of them, is any."""
        ayes, voters = at(self.votes_for, lanes).copy(), at(self.voters, lanes)  # a copy: later barriers overwrite it
        return ayes, ayes == voters, ayes != 0

    def arrive(self, bound: Bound, lanes: Lanes, guard: Guard, number: PerLane, threads: PerLane) -> None:
        """`bar.arrive`: recorded, and counted by the schedule at the end of the segment."""
        chosen, those = self.layout.chosen(lanes, guard) if guard is not None else (None, lanes)
        those = self.layout.every(those)
        pick = slice(None) if chosen is None else chosen
        every = np.zeros(self.layout.count(lanes), np.uint32)
        self.arrivals.append((bound, those, (every + number)[pick], (every + threads)[pick]))

    def arrive_at_cluster(self, bound: Bound, lanes: Lanes, guard: Guard, releases: bool) -> None:  # noqa: FBT001 - traced code calls it
        """`barrier.cluster.arrive`: recorded, and counted by the schedule at the end of the segment."""
        _, those = self.layout.chosen(lanes, guard) if guard is not None else (None, lanes)
        those = self.layout.every(those)
        if len(those):
            self.cluster_arrivals.append(those)

    # ── functions of the device, and lanes with a fault ─────────────────────────────────

    def ask(self, name: str, function: builtins.Function, lanes: LaneNumbers, arguments: Sequence[PerLane]) -> PerLane:
        """Call a function of the device; returns its results."""
        return function(self, lanes, arguments)

    def abandoned(self, fault: Fault, bound: Bound, lanes: Lanes) -> bool:
        """May the launch go on without some lanes that have a fault?"""
        return False

    # ── events that watched cohorts report ──────────────────────────────────────────────

    def phase_over(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, over: PerLane) -> None:
        """Lanes have tested whether a phase of an mbarrier is over; `over` says where it is."""
        if self.polling is not None:
            every = self.layout.every(lanes)
            asked = np.broadcast_to(True if guard is None else guard, len(every))
            self.polling[every[asked]] = ~np.broadcast_to(over, len(every))[asked]

    def state_asked(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, state: PerLane) -> None:
        """Lanes test the phase of an mbarrier by the state that an arrival returned."""

    def copy_started(
        self, copying: CopyInstruction, lanes: LaneNumbers, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Lanes have started copies."""

    def stepping(self, code: Sequence[Bound], slots: Slots, lanes: Lanes, file: RegisterFile) -> None:
        """Lanes are about to run a segment: end asynchronous loads of registers that the segment uses."""
        if self.copies.under_way:
            self.copies.end_loads(lambda load: awaits(load, code, lanes, file))

    def product_started(self, access: Access, lanes: LaneNumbers, addresses: PerLane, starter: int | None = None) -> None:
        """Lanes have started products that read shared memory; `starter` did so for lanes of its pair of CTAs."""

    def tensor_started(
        self, bound: Bound, kind: AsyncKind | None, cta: int, lanes: LaneNumbers, blocks: Sequence[CellBlock]
    ) -> None:
        """A warp, or one lane, starts work on blocks of the tensor memory of a CTA of the cohort."""

    def products_started(self, product: Bound, lanes: LaneNumbers, file: RegisterFile) -> None:
        """Warps have started products of registers."""

    def work_fenced(self, lanes: Lanes, guard: Guard, kind: AsyncKind) -> None:
        """Lanes have ordered their accesses before their next work of a kind."""

    def transfer_started(self, begun: UnderWay) -> None:
        """A lane has started a transfer."""

    def copies_grouped(self, lanes: LaneNumbers, kind: AsyncKind) -> None:
        """Lanes have committed groups of copies."""

    def copies_awaited(self, lanes: LaneNumbers, groups: int, kind: AsyncKind, *, reading: bool) -> None:
        """Lanes have waited until at most so many groups of copies are under way, or still have to read their sources."""

    def arrival_posted(self, access: Access, lanes: LaneNumbers, address: PerLane) -> None:
        """An mbarrier will receive an arrival when work that lanes have started has ended."""

    def fence(
        self, bound: Bound, lanes: Lanes, guard: Guard, order: FenceKind, scope: Scope, address: PerLane | None = None
    ) -> None:
        """A fence; the accesses of one lane are in order without it."""

    def ctas_synchronized(self) -> None:
        """All lanes have met at the barriers of their CTAs."""

    def allocated(self, bound: Bound, lanes: LaneNumbers, addresses: PerLane) -> None:
        """Lanes have got blocks of the heap, or null."""

    def answered(self, name: str, target: PerLane, lanes: Lanes, answer: PerLane) -> None:
        """A function of the device has written its result to `target`."""

    def barrier_joined(self, cta: int, number: int, lanes: LaneNumbers, count: int | None, bound: Bound) -> None:
        """Lanes of a CTA arrive at a barrier that expects so many threads, or all."""

    def cluster_barrier_opened(self, cluster: int) -> None:
        """All live threads of a cluster of the cohort have arrived at its barrier."""

    def cluster_barrier_passed(self, key: tuple[int, int, int], lanes: LaneNumbers) -> None:
        """Lanes that wait in a segment go on after the barrier of their cluster."""

    def collective(self, bound: Bound, lanes: Lanes, masks: PerLane) -> None:
        """Lanes arrive at a collective of their warps with masks."""

    def lanes_missed(self, mnemonic: str, lanes: LaneNumbers) -> None:
        """Lanes leave a collective although lanes of their masks have ended."""

    def barrier_opened(self, cta: int, number: int, waiting: Sequence[PerLane]) -> None:
        """A barrier releases the threads that wait at it."""

    def warps_synchronized(self, mnemonic: str, lanes: Lanes) -> None:
        """Lanes have met at a collective with the lanes that `members` names; None for all lanes."""

    # ── special registers ───────────────────────────────────────────────────────────────

    def special(self, name: str, lanes: Lanes) -> PerLane:
        """The value of a special register; the caller casts it to its type."""
        if name in CLOCKS:
            return np.uint64(CLOCKS[name]())
        value = self.layout.special(name)
        if value is None:
            known = self.environment.get(name)
            if known is None:
                raise Unsupported(f"the special register %{name}")
            return np.uint64(known)
        return at(value, lanes)

    def yield_slice(self) -> None:
        """Let other groups and cohorts run."""
        self.yields = True


def _cycles() -> int:
    return time.perf_counter_ns() & 0xFFFF_FFFF_FFFF_FFFF


CLOCKS: dict[str, Callable[[], int]] = {
    "clock": _cycles, "clock64": _cycles, "clock_hi": lambda: _cycles() >> 32, "globaltimer": time.time_ns,
    "globaltimer_lo": time.time_ns, "globaltimer_hi": lambda: time.time_ns() >> 32,
}  # fmt: skip


def _fma(rounding: str, a: PerLane, b: PerLane, c: PerLane) -> PerLane:
    """A fused multiply-add of f64, for the tensor cores."""
    return arrays.floating("fma", rounding, arrays.F64, a, b, c)

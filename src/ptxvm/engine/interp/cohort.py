"""A cohort: some CTAs of a grid whose threads are one array of lanes, and the services that traced code asks of it.

Lanes are numbered CTA by CTA, thread by thread, so a warp is a run of lanes.  In every method `lanes` are the numbers of
the lanes that ask, or None for all of them; `guard` is a predicate of those lanes, or None.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxvm.algebra.types import b32
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.copies import Copies
from ptxvm.engine.interp.lanes import Layout, at, spread
from ptxvm.engine.interp.ports import Access, Copying, Multiplication, TextureAccess, Update
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import builtins, texture_unit, warp_matrix
from ptxvm.machine.environment import Environment
from ptxvm.machine.faults import AccessFault, PlacedFault
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import Memory
from ptxvm.machine.window import Window

MAX_WINDOW = 1 << 32


class Cohort:
    """The state that the traced code of all lanes shares; `shadow` is what is known of values where they are followed."""

    shadow: Any = None

    def __init__(
        self,
        shape: LaunchShape,
        ctas: Sequence[int],
        memory: Memory,
        parameters: int,
        shared_size: int,
        stack_size: int,
        environment: Environment,
    ) -> None:
        self.layout = Layout(shape, ctas)
        self.size = self.layout.size
        self.memory, self.environment = memory, environment
        self.parameter_bank = np.uint64(parameters)
        self.stack_size = stack_size
        self.shared = Window(memory, "shared", shared_size, self.layout.cta)
        self._local: Window | None = None
        self.frames = [np.uint64(0)]  # of each depth, where the frame begins: one for all lanes, or an array
        self.ends: list[Any] = [np.uint64(0)]  # and where it ends, after what alloca added
        self.depth = 0
        self.own: list[Any] = []  # the registers of the module
        self.alive = np.ones(self.size, np.bool_)
        self.payload: dict[tuple[int, Any], Any] = {}
        self.members = np.zeros(self.size, np.uint32)
        self.votes_for = np.zeros(self.size, np.uint32)
        self.voters = np.zeros(self.size, np.uint32)
        self.gives_way = False
        self.arrivals: list[tuple[Bound, Any, Any, Any]] = []
        self.calling: Bound | None = None  # the last call of a function of the device
        self.copies = Copies(self)

    @property
    def local(self) -> Window:
        """The local memory, made when it is first touched."""
        if self._local is None:
            self._local = Window(self.memory, "local", self.stack_size, np.arange(self.size))
        return self._local

    @property
    def has_local(self) -> bool:
        """Has local memory been touched?"""
        return self._local is not None

    @property
    def windows(self) -> dict[str, Window]:
        """Its windows, by their spaces."""
        return {"shared": self.shared} | ({"local": self._local} if self._local is not None else {})

    def release(self) -> None:
        """Give the windows back."""
        for window in self.windows.values():
            window.release()

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def load(self, access: Access, lanes: Any, guard: Any, address: Any) -> Any:
        """Gather; lanes whose guard is false get zeros."""
        if guard is not None:
            chosen, lanes_chosen = self._chosen(lanes, guard)
            if chosen is not None:
                shape = (access.count, self._count(lanes)) if access.count > 1 else self._count(lanes)
                result = np.zeros(shape, access.held)
                if len(chosen):
                    result[..., chosen] = self._load(access, lanes_chosen, spread(address, chosen), chosen)
                return result
        return self._load(access, lanes, address, None)

    def _load(self, access: Access, lanes: Any, address: Any, chosen: Any) -> Any:
        try:
            if (window := self._window(access.space)) is not None:
                return window.load(access.held, _offset(address), access.count, lanes)
            if self.memory.address_bits == 32:
                address = address & np.uint64(0xFFFF_FFFF)
            return self.memory.load(access.held, address, access.count, space=access.space, lanes=lanes)
        except AccessFault as fault:
            raise self._placed(fault, access, lanes) from None

    def store(self, access: Access, lanes: Any, guard: Any, address: Any, values: Sequence[Any]) -> None:
        """Scatter; where lanes meet, the last one stays."""
        if guard is not None:
            chosen, lanes_chosen = self._chosen(lanes, guard)
            if chosen is not None:
                if not len(chosen):
                    return
                lanes, address = lanes_chosen, spread(address, chosen)
                values = [spread(v, chosen) for v in values]
        self._store(access, lanes, address, values)

    def _store(self, access: Access, lanes: Any, address: Any, values: Sequence[Any]) -> None:
        given: Any = values if access.count > 1 else values[0]
        try:
            if (window := self._window(access.space)) is not None:
                window.store(access.held, _offset(address), given, access.count, lanes)
            else:
                if self.memory.address_bits == 32:
                    address = address & np.uint64(0xFFFF_FFFF)
                self.memory.store(access.held, address, given, access.count, space=access.space, lanes=lanes)
        except AccessFault as fault:
            raise self._placed(fault, access, lanes) from None

    def atomic(self, access: Access, lanes: Any, guard: Any, address: Any, update: Update, operands: Sequence[Any]) -> Any:
        """Update lane after lane; what was there before each."""
        chosen, lanes_chosen = self._chosen(lanes, guard) if guard is not None else (None, lanes)
        every = np.arange(self._count(lanes)) if chosen is None else chosen
        if not len(every):
            return np.zeros(self._count(lanes), access.held)
        address, operands = spread(address, every), [spread(o, every) for o in operands]
        try:
            if (window := self._window(access.space)) is not None:
                old = window.atomic(access.held, _offset(address), update.operation, operands, update, lanes_chosen)
            else:
                old = self.memory.atomic(
                    access.held, address, update.operation, operands, update, space=access.space, lanes=lanes_chosen
                )
        except AccessFault as fault:
            raise self._placed(fault, access, lanes_chosen) from None
        if chosen is None:
            return old
        result = np.zeros(self._count(lanes), access.held)
        result[chosen] = old
        return result

    def reachable(self, access: Access, lanes: Any, address: Any, *, writing: bool) -> Any:
        """The positions of the lanes whose access would be in bounds: all of them, or it is refused."""
        try:
            if (window := self._window(access.space)) is not None:
                window.resolve(access.held, _offset(address), access.count, lanes, writing=writing)
            else:
                self.memory.resolve(access.held, address, access.count, access.space, lanes, writing=writing)
        except AccessFault as fault:
            raise self._placed(fault, access, lanes) from None
        return np.arange(len(lanes))

    def fitting(self, access: Access, lanes: Any, address: Any, *, writing: bool) -> Any:
        """Which lanes would be in bounds?"""
        size, count = access.held.itemsize * access.count, self._count(lanes)
        if (window := self._window(access.space)) is not None:
            return np.broadcast_to(window.fitting(np.atleast_1d(_offset(address)), size), count)
        address = np.broadcast_to(address, count)
        if self.memory.address_bits == 32:
            address = address & np.uint64(0xFFFF_FFFF)
        return self.memory.table.fitting(address, size, access.space, lanes, writing=writing)

    def arrive_late(self, access: Access, lanes: Any, address: Any, update: Update, *operands: Any) -> None:
        """The copies of lanes have ended: tell their mbarriers."""
        self.atomic(access, lanes, None, address, update, operands)

    def _window(self, space: str) -> Window | None:
        if space.startswith("shared"):
            return self.shared
        return self.local if space == "local" else None

    def _chosen(self, lanes: Any, guard: Any) -> tuple[Any, Any]:
        """The positions and the lanes whose guard holds; (None, lanes) where all do."""
        count = self._count(lanes)
        if not np.ndim(guard):
            return (None, lanes) if guard else (np.empty(0, np.int64), np.empty(0, np.int64))
        chosen = np.flatnonzero(guard)
        if len(chosen) == count:
            return None, lanes
        return chosen, chosen if lanes is None else lanes[chosen]

    def _count(self, lanes: Any) -> int:
        return self.size if lanes is None else len(lanes)

    def _placed(self, fault: AccessFault, access: Access, lanes: Any) -> PlacedFault:
        """Remember which instruction and lane it was."""
        lane = fault.lane_index if lanes is None else int(lanes[min(fault.lane_index, len(lanes) - 1)])
        return fault.placed(access.bound, lane)

    def to_generic(self, space: str, lanes: Any, address: Any) -> Any:
        """`cvta`."""
        window = self._window(space)
        return address if window is None else window.to_generic(_offset(address), lanes)

    def from_generic(self, space: str, lanes: Any, address: Any) -> Any:
        """`cvta.to`."""
        window = self._window(space)
        return address if window is None else window.from_generic(address, lanes)

    def within(self, space: str, lanes: Any, address: Any) -> Any:
        """`isspacep`."""
        return self.memory.within(space.partition("::")[0], address)

    def texture(self, access: TextureAccess, lanes: Any, guard: Any, operands: dict[str, Sequence[Any]]) -> list[Any]:
        """Ask the texture unit; lanes whose guard is false get zeros."""
        count = self._count(lanes)
        chosen, those = self._chosen(lanes, guard) if guard is not None else (None, lanes)
        every = np.arange(count) if chosen is None else chosen
        if not len(every):
            return texture_unit.no_results(access.held, count)
        given = {name: [spread(each, every) for each in values] for name, values in operands.items()}
        try:
            found = access.work(self.memory, given)
        except AccessFault as fault:
            raise self._placed(fault, Access(access.bound, "", b32), those) from None
        if chosen is None:
            return found
        results = texture_unit.no_results(access.held, count)
        for result, value in zip(results, found, strict=True):
            result[chosen] = value
        return results

    # ── the stack ───────────────────────────────────────────────────────────────────────

    def parameters(self, lanes: Any) -> Any:
        """Where the kernel's parameters lie."""
        return self.parameter_bank

    def frame(self, lanes: Any) -> Any:
        """Where the function's variables lie in local memory."""
        return at(self.frames[self.depth], lanes)

    def generic_frame(self, lanes: Any) -> Any:
        """The same as a generic address."""
        return self.local.to_generic(self.frame(lanes), lanes)

    def stack_pointer(self, lanes: Any) -> Any:
        """The end of the frame."""
        return at(self.ends[self.depth], lanes)

    def allocate_stack(self, bound: Any, lanes: Any, guard: Any, size: Any, alignment: Any) -> Any:
        """`alloca`: the frame grows upward."""
        step = np.uint64(max(int(alignment), 8))
        start = (self.stack_pointer(lanes) + (step - np.uint64(1))) // step * step
        wanted = np.asarray(size).astype(np.uint64)
        end = start + np.where(guard, wanted, np.uint64(0)) if guard is not None else start + wanted
        if int(np.max(end)) > self.stack_size:
            fault = AccessFault("stack-overflow", f"alloca needs {int(np.max(end))} bytes of a stack of {self.stack_size}")
            raise self._placed(fault, Access(bound, "local", None), lanes)  # type: ignore[arg-type]
        self._set_end(lanes, end)
        return start

    def restore_stack(self, lanes: Any, guard: Any, end: Any) -> Any:
        """`stackrestore`."""
        old = self.stack_pointer(lanes)
        self._set_end(lanes, end if guard is None else np.where(guard, end, old))
        return old

    def _set_end(self, lanes: Any, end: Any) -> None:
        if lanes is None:
            self.ends[self.depth] = end
        else:
            whole = np.broadcast_to(self.ends[self.depth], self.size).copy()
            whole[lanes] = end
            self.ends[self.depth] = whole

    # ── warps ───────────────────────────────────────────────────────────────────────────

    def keep_payload(self, number: int, held: Any, lanes: Any, value: Any) -> None:
        """Keep what lanes give to a collective until the others read it."""
        key = (number, held)
        if lanes is None:
            self.payload[key] = value.copy()
            return
        kept = self.payload.get(key)
        if kept is None or not kept.ndim:
            whole = np.zeros(self.size, held)
            whole[...] = 0 if kept is None else kept
            self.payload[key] = kept = whole
        kept[lanes] = value

    def peer(self, lanes: Any, number: int, held: Any, lane: Any) -> Any:
        """What the lane of that number in the same warp gave; the own value where it takes no part."""
        kept = self.payload[number, held]
        if not kept.ndim:
            return kept
        return self.of_peer(lanes, kept, lane)

    def of_peer(self, lanes: Any, kept: Any, lane: Any) -> Any:
        """What an array of all lanes has for a lane of the same warp; the own value where it takes no part."""
        own = self.layout.numbers if lanes is None else lanes
        takes_part = (at(self.members, lanes) >> (lane & np.uint32(31)) & np.uint32(1)).astype(np.bool_)
        return kept.take(np.where(takes_part, at(self.layout.warp_start, lanes) + lane, own))

    def ballot(self, lanes: Any, number: int, held: Any) -> Any:
        """The members whose predicate is true, one bit each."""
        truth = np.broadcast_to(self.payload[number, held], self.size)
        return self.layout.warp_bits(truth, lanes) & at(self.members, lanes)

    def multiply(self, work: Multiplication, lanes: Any, *fragments: Sequence[Any]) -> list[Any]:
        """D = A * B + C of the matrices that whole warps hold."""
        if (broken := self._broken_warp(lanes)) is not None:
            fault = AccessFault("incomplete-warp", "a matrix product needs all 32 lanes of the warp", lane_index=broken)
            raise self._placed(fault, Access(work.bound, "", b32), lanes)
        count = self._count(lanes)
        held = [[np.broadcast_to(raw, count) for raw in registers] for registers in fragments]
        return warp_matrix.multiply(work.product, work.architecture, *held, fma=_fma)

    def _broken_warp(self, lanes: Any) -> int | None:
        """The first lane whose warp is not whole."""
        layout = self.layout
        numbers = layout.numbers if lanes is None else lanes
        whole = np.bincount(layout.warp[numbers], minlength=layout.warps)[layout.warp[numbers]] == WARP
        return None if whole.all() else int(np.argmin(whole))

    def lanes_meant(self, bound: Bound, lanes: Any, guard: Any, lane: Any) -> None:
        """Lanes of a collective read what others gave."""

    def members_of(self, lanes: Any) -> Any:
        """The lanes that take part."""
        return at(self.members, lanes)

    def active(self, lanes: Any, guard: Any) -> Any:
        """The lanes that run this now."""
        here = np.zeros(self.size, np.bool_)
        here[slice(None) if lanes is None else lanes] = True if guard is None else guard
        return self.layout.warp_bits(here, lanes)

    def gather_active(self, lanes: Any, guard: Any, values: Sequence[Any]) -> None:
        """A collective of the lanes that are here."""
        members = self.active(lanes, guard)
        if lanes is None:
            self.members = members
        else:
            self.members[lanes] = members
        for n, value in enumerate(values):
            self.keep_payload(n, value.dtype, lanes, value)

    def votes(self, lanes: Any) -> tuple[Any, Any, Any]:
        """How many voted for, whether all did, whether any did."""
        ayes, voters = at(self.votes_for, lanes).copy(), at(self.voters, lanes)  # of which other barriers make other ones
        return ayes, ayes == voters, ayes != 0

    def arrive(self, bound: Any, lanes: Any, guard: Any, number: Any, threads: Any) -> None:
        """`bar.arrive`: noted, for the schedule to count."""
        chosen, those = self._chosen(lanes, guard) if guard is not None else (None, lanes)
        those = self.layout.numbers if those is None else those
        pick = slice(None) if chosen is None else chosen
        every = np.zeros(self._count(lanes), np.uint32)
        self.arrivals.append((bound, those, (every + number)[pick], (every + threads)[pick]))

    # ── functions of the device, and what cannot go on ──────────────────────────────────

    def ask(self, name: str, function: builtins.Function, lanes: Any, arguments: Sequence[Any]) -> Any:
        """What a function of the device answers."""
        return function(self, lanes, arguments)

    def abandoned(self, fault: Fault, bound: Bound, lanes: Any) -> bool:
        """Lanes cannot go on: is it enough that they end?"""
        return False

    # ── what only watched cohorts report ──────────────────────────────────────────

    def phase_over(self, access: Access, lanes: Any, guard: Any, address: Any, over: Any) -> None:
        """Lanes have found that a phase of an mbarrier is over, where that is so."""

    def state_asked(self, access: Access, lanes: Any, guard: Any, address: Any, state: Any) -> None:
        """Lanes ask whether the phase of an mbarrier is over in which an arrival gave a state."""

    def copy_started(self, copying: Copying, lanes: Any, target: Any, source: Any, given: Any) -> None:
        """Lanes have started to copy."""

    def copies_grouped(self, lanes: Any, kind: str) -> None:
        """Lanes have made groups of their copies."""

    def copies_awaited(self, lanes: Any, groups: int, kind: str, *, reading: bool) -> None:
        """Lanes have waited until so many groups of copies are left, or have not read their sources."""

    def arrival_posted(self, lanes: Any) -> None:
        """The end of the copies of lanes will be told to an mbarrier."""

    def fence(self, bound: Bound, lanes: Any, guard: Any, order: str, scope: str) -> None:
        """A fence: one lane's accesses are in order as it is."""

    def all_met(self) -> None:
        """All lanes have met at the barriers of their CTAs."""

    def allocated(self, bound: Bound, lanes: Any, addresses: Any) -> None:
        """Lanes have got blocks of the heap, or null."""

    def answered(self, name: str, target: Any, lanes: Any, answer: Any) -> None:
        """A function of the device has given a result, which is at some place."""

    def barrier_joined(self, cta: int, number: int, lanes: Any, count: int | None, bound: Bound) -> None:
        """Lanes of a CTA come to a barrier where so many threads are expected, or all."""

    def collective(self, bound: Bound, lanes: Any, masks: Any) -> None:
        """Lanes come to a collective of their warps, and name their partners."""

    def lanes_missed(self, mnemonic: str, lanes: Any) -> None:
        """Lanes go on from a collective without some that their masks name, which are gone."""

    def barrier_opened(self, cta: int, number: int, waiting: Sequence[Any]) -> None:
        """The threads that wait at a barrier go on."""

    def warps_met(self, mnemonic: str, lanes: Any) -> None:
        """Lanes have met those of their warps that `members` names; None for all lanes."""

    # ── special registers ───────────────────────────────────────────────────────────────

    def special(self, name: str, lanes: Any) -> Any:
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

    def give_way(self) -> None:
        """Let other groups and cohorts run."""
        self.gives_way = True


def _cycles() -> int:
    return time.perf_counter_ns() & 0xFFFF_FFFF_FFFF_FFFF


CLOCKS: dict[str, Callable[[], int]] = {
    "clock": _cycles, "clock64": _cycles, "clock_hi": lambda: _cycles() >> 32, "globaltimer": time.time_ns,
    "globaltimer_lo": time.time_ns, "globaltimer_hi": lambda: time.time_ns() >> 32,
}  # fmt: skip


def _fma(rounding: str, a: Any, b: Any, c: Any) -> Any:
    """A fused multiply-add of f64, for the tensor cores."""
    return arrays.floating("fma", rounding, arrays.F64, a, b, c)


def _offset(address: Any) -> Any:
    """An address of a window: 32 bits count."""
    return address & np.uint64(0xFFFF_FFFF)

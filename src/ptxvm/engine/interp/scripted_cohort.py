"""A scripted cohort: one lane runs; a script supplies the values of its reads and receives its accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.types import Type, bf16x2, f16x2
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.interp.accesses import Access, Update
from ptxvm.engine.interp.async_copies import Copies, Copy
from ptxvm.engine.interp.cohort import CLOCKS, Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs, LaneMemory, located
from ptxvm.engine.interp.lanes import at, first
from ptxvm.engine.interp.ports import Multiplication, TextureAccess
from ptxvm.engine.interp.transfers import UnderWay
from ptxvm.isa.mbarrier import VALID
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Guard, Lanes, PerLane
from ptxvm.machine.single_thread import Meeting, Rendezvous, Script, ThreadAccess

PACKED: dict[Type, int] = {f16x2: 2, bf16x2: 2}


def bits(value: PerLane) -> int:
    """The bits of a scalar, or of an array of one."""
    return int.from_bytes(np.asarray(value).tobytes(), "little")


def raw(access: Access, value: int) -> PerLane:
    """A scalar with these bits, in the representation of a lane's value."""
    return np.frombuffer(value.to_bytes(access.type.bytes, "little"), access.dtype).copy()


def modification(access: Access, update: Update, operands: Sequence[PerLane]) -> Callable[[int], int]:
    """The function from the old to the new bits of an atomic operation."""
    return cache(lambda old: bits(update(raw(access, old), *operands)))


def members_of(mask: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [n for n in range(WARP) if mask >> n & 1]


class ScriptedMemory(LaneMemory):
    """The memory of a single lane; a script supplies the values of its reads."""

    script: Script

    def contents(self, access: Access, lanes: Lanes, address: PerLane) -> PerLane:
        """The value in memory itself, without a question to the script."""
        return super().gather(access, lanes, address)

    def gather(self, access: Access, lanes: Lanes, address: PerLane) -> PerLane:
        """Ask the script for the values that a load reads."""
        dtype = super().gather(access, lanes, address)
        found = self.script.reads(self.touch(access, lanes, address))
        if found is None:
            return dtype
        self.keep_to_mbarriers(access, lanes, found[0])
        values = np.frombuffer(b"".join(each.to_bytes(access.type.bytes, "little") for each in found), access.dtype)
        return values.reshape(-1, 1) if access.count > 1 else values.copy()

    def scatter(self, access: Access, lanes: Lanes, address: PerLane, values: Sequence[PerLane]) -> None:
        """Store, and report the values."""
        super().scatter(access, lanes, address, values)
        self.script.writes(self.touch(access, lanes, address), [bits(value) for value in values])

    def update_element(
        self, access: Access, lanes: Lanes, address: PerLane, update: Update, operands: Sequence[PerLane]
    ) -> PerLane:  # fmt: skip
        """Ask the script for the old value of an atomic."""
        self.reachable(access.element, self.layout.every(lanes), address, writing=True)
        compared = bits(operands[0]) if update.operation == "cas" else None
        old = self.script.updates(self.touch(access.element, lanes, address), modification(access, update, operands), compared)
        self.keep_to_mbarriers(access, lanes, old)
        return raw(access, old)

    def touch(self, access: Access, lanes: Lanes, address: PerLane) -> ThreadAccess:
        """The bytes of an access, which is in bounds."""
        if access.type.bits > 64:
            raise Unsupported(f"'{access.bound.i.mnemonic}' in a litmus kernel: a scalar has up to 64 bits (PTX 8.2.4)")
        ((allocation, _, offsets),) = self.touched(access, lanes, address)
        order = access.attributes.get("order") or Order.WEAK
        scope = None if order is Order.WEAK else access.attributes.get("scope") or Scope.SYS
        size, parts = access.type.bytes, PACKED.get(access.type, 1)
        proxy = access.attributes.get("proxy") or Proxy.GENERIC
        return ThreadAccess(access.bound, allocation, int(np.ravel(offsets)[0]), size, access.count, parts, order, scope, proxy)

    def keep_to_mbarriers(self, access: Access, lanes: Lanes, word: int) -> None:
        """Refuse an operation on a word that is no mbarrier, which is undefined (PTX 9.7.13.15.9)."""
        if "mbarrier" in access.attributes and not word & VALID:
            fault = AccessFault("no-mbarrier", f"'{access.bound.i.mnemonic}' where no mbarrier has been made yet")
            raise located(fault, access, lanes)

    def stack_of(self, lane: int, end: int) -> bytes:
        """The local memory of a lane, up to an offset."""
        if self._local is None:
            return b""
        start = int(self._local.home[lane])
        return bytes(self._local.allocation.bytes[start : start + end])


class ScriptedCohort(Cohort):
    """A cohort in which one lane runs and reports its actions to a script."""

    mem: ScriptedMemory

    def __init__(self, inputs: CohortInputs, script: Script) -> None:
        super().__init__(inputs, ScriptedMemory)
        self.script = self.mem.script = script
        self.copies = ScriptedCopies(self)

    def stack_of(self, lane: int, depth: int) -> bytes:
        """The local memory of a lane, up to the end of the frame at a depth of calls."""
        return self.mem.stack_of(lane, int(np.ravel(at(self.ends[depth], np.array([lane])))[0]))

    def fence(
        self, bound: Bound, lanes: Lanes, guard: Guard, order: FenceKind, scope: Scope, _address: PerLane | None = None
    ) -> None:
        """Report a fence."""
        if not self._stays(guard):
            self.script.fences(bound, order, scope)

    def phase_over(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, over: PerLane) -> None:
        """Report the end of an mbarrier phase, where the lane has found it."""
        if not self._stays(guard) and np.all(over):
            order, scope = access.attributes.get("order"), access.attributes.get("scope")
            self.script.observes_phase(order or Order.ACQUIRE, scope or Scope.CTA)

    def arrive(self, bound: Bound, lanes: Lanes, guard: Guard, number: PerLane, threads: PerLane) -> None:
        """Report an arrival at a barrier."""
        if not self._stays(guard):
            self.script.arrives(Rendezvous(bound, Meeting.CTA, int(np.ravel(number)[0]), int(np.ravel(threads)[0])))

    # ── the values of others ────────────────────────────────────────────────────────────

    def receive(self, lane: int, payload: Sequence[tuple[np.dtype[np.generic], int]]) -> None:
        """Store the values that another lane gives to a collective, each as its dtype and bits."""
        for n, (dtype, value) in enumerate(payload):
            self.keep_payload(n, dtype, np.array([lane]), np.frombuffer(value.to_bytes(dtype.itemsize, "little"), dtype))

    def peer(self, lanes: Lanes, number: int, dtype: np.dtype[np.generic], lane: PerLane) -> PerLane:
        """Report the lane whose value is used."""
        other = int(np.ravel(lane)[0]) & 31
        if int(self.members[first(lanes)]) >> other & 1:
            self.script.learns(int(self.layout.warp_start[first(lanes)]) + other)
        return super().peer(lanes, number, dtype, lane)

    def ballot(self, lanes: Lanes, number: int, dtype: np.dtype[np.generic]) -> PerLane:
        """Report that the values of all lanes are used."""
        for other in members_of(int(self.members[first(lanes)])):
            self.script.learns(int(self.layout.warp_start[first(lanes)]) + other)
        return super().ballot(lanes, number, dtype)

    def special(self, name: str, lanes: Lanes) -> PerLane:
        """Refuse clocks: a thread must do the same in every run."""
        if name in CLOCKS:
            raise Unsupported(f"the special register %{name} in a litmus kernel")
        return super().special(name, lanes)

    def texture(
        self, access: TextureAccess, lanes: Lanes, guard: Guard, operands: dict[str, Sequence[PerLane]]
    ) -> list[PerLane]:
        """Refuse textures: their reads are not reported to the script."""
        raise Unsupported(f"'{access.bound.i.mnemonic}' in a litmus kernel")

    def active(self, lanes: Lanes, guard: Guard) -> PerLane:
        """Refuse the mask of active lanes: the lane runs alone."""
        raise Unsupported("a collective of the lanes that happen to be active, in a litmus kernel")

    def multiply(self, work: Multiplication, lanes: Lanes, *fragments: Sequence[PerLane]) -> list[PerLane]:
        """Refuse matrix products: the lane has only its part of the matrices."""
        raise Unsupported(f"'{work.bound.i.mnemonic}' in a litmus kernel")

    @staticmethod
    def _stays(guard: Guard) -> bool:
        """Does the guard keep the lane from executing the instruction?"""
        return guard is not None and not np.all(guard)


class ScriptedCopies(Copies):
    """The asynchronous copies of the lane, reported to the script."""

    cohort: ScriptedCohort

    def _begin(self, begun: Copy) -> None:
        """Check the addresses, and report the copy."""
        super()._begin(begun)
        self.under_way.clear()
        copying, cohort = begun.copying, self.cohort
        for n in range(len(begun.lanes)):
            lanes, at = begun.lanes[n : n + 1], begun.source[n : n + 1]
            sources = []
            for access, offset in copying.reads(int(begun.source_size[n])) if begun.source_size[n] else ():
                dtype = cohort.mem.contents(access, lanes, at + np.uint64(offset))
                sources.append((cohort.mem.touch(access, lanes, at + np.uint64(offset)), np.asarray(dtype).tobytes()))
            target = cohort.mem.touch(copying.target, lanes, begun.target[n : n + 1])
            cohort.script.copies(copying.bound, copying.kind, sources, target)

    def _begin_transfer(self, begun: UnderWay) -> None:
        """Report a bulk copy: its pieces, and the mbarrier that is told."""
        copying, pieces, cohort = begun.copying, begun.pieces, self.cohort
        kind, bound, lanes = copying.transfer, copying.bound, begun.lanes
        read, _ = pieces.read()
        packs = read is not None and len(read) != len(pieces.target)
        if read is None or packs or pieces.present is not None or kind.operation or kind.multicast:
            raise Unsupported(f"'{bound.i.mnemonic}' in a litmus kernel")
        reads, writes = (copying.access(space, pieces.unit) for space in (kind.origin, kind.to))
        for n in range(len(read)):
            held = np.asarray(cohort.mem.contents(reads, lanes, read[n : n + 1])).tobytes()
            source = cohort.mem.touch(reads, lanes, read[n : n + 1]), held
            cohort.script.copies(bound, copying.kind, [source], cohort.mem.touch(writes, lanes, pieces.target[n : n + 1]))
        for barrier in pieces.barriers:
            touch = cohort.mem.touch(copying.barrier, lanes, np.array([barrier], np.uint64))
            touch = replace(touch, order=Order.RELEASE, scope=Scope.CLUSTER)  # PTX 9.7.9.25.4.1
            amount = np.array([pieces.amount], np.uint64)
            cohort.script.signals(touch, copying.kind, modification(copying.barrier, copying.update, [amount]), last=True)

    def commit(self, lanes: Lanes, guard: Guard, kind: AsyncKind) -> None:
        """Report a new group of copies."""
        if len(self._named(lanes, guard)[0]):
            self.cohort.script.groups(kind)

    def wait(self, lanes: Lanes, guard: Guard, left: int, kind: AsyncKind, reading: bool) -> None:  # noqa: FBT001 - traced code calls it
        """Report a wait for groups of copies."""
        if len(self._named(lanes, guard)[0]):
            self.cohort.script.awaits(kind, left, reading=reading)

    def arrive(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, update: Update, mask: PerLane = None
    ) -> None:
        """Report an arrival that follows the copies."""
        if len(self._named(lanes, guard)[0]):
            touch = self.cohort.mem.touch(access, lanes, np.ravel(address)[:1])
            self.cohort.script.signals(touch, AsyncKind.COPY, modification(access, update, []), last=False)

"""The port `mem`: checked loads, stores and atomics, by the shape of the address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Unpack

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.memory_order import FenceKind, Order, PartialFence, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value, select
from ptxvm.analysis.flow import variables_in
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.memory import (
    addressing,
    atomics,
    cta_clocks,
    in_windows,
    joined_loads,
    mbarrier_checks,
    prefetches,
    row_windows,
    streaming_stores,
    told_order,
)
from ptxvm.engine.jit.memory.bounds import WINDOWS, Bounds
from ptxvm.engine.jit.memory.cluster_addresses import ClusterAddresses
from ptxvm.engine.jit.memory.interleaved_local import InterleavedLocal
from ptxvm.engine.jit.node import stack
from ptxvm.engine.jit.node.host_queries import IsInSpace, PhaseGoesOn, ReplicaDistance
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.effects import Access, Verb
from ptxvm.isa.mbarrier import must_not_complete
from ptxvm.machine import settings
from ptxvm.machine.image import Placement
from ptxvm.machine.window import NOWHERE, RANK

BEYOND = 0xFFFF_FFF0  # an offset that is in no memory of a thread, and a multiple of all sizes
ORDERS: dict[FenceKind, str] = {
    Order.SC: "seq_cst",
    Order.ACQ_REL: "acq_rel",
    Order.ACQUIRE: "acquire",
    Order.RELEASE: "release",
    PartialFence.MBARRIER_INIT: "release",
}
"""The fences that host threads need; CTAs that share tensor memory run on one."""


class Memory(Port):
    """The port `mem`."""

    def __init__(self, at: NodeBuilder, bound: Bound) -> None:
        super().__init__(at, bound)
        self.addressing = addressing.Addressing(at, bound)
        self.bounds = Bounds(at, bound, self.addressing)
        self.cluster = ClusterAddresses(at)
        self.access = Access(Verb.READ, Space.GENERIC)

    def _count(self, address: Raw) -> None:
        """Count the access, in profiled code."""
        if self.at.events is not None:
            from ptxvm.engine.jit.memory.access_counters import count_access  # noqa: PLC0415 - little code is profiled

            count_access(self.at, self.bound, self.access, address)

    def load(
        self, space: Space, type: Type, address: Value, count: int = 1, **attributes: Unpack[AccessAttributes]
    ) -> list[Value]:
        """A scalar load with a broadcast, a contiguous load, chunks of these, or a gather."""
        self.access = Access.of(Verb.READ, space, type, count, **attributes)
        loaded = self._load(space, type, address, count)
        self._count(address.raw)
        if attributes.get("order") is Order.ACQUIRE:
            self._between_threads(Order.ACQUIRE, attributes.get("scope") or Scope.GPU)
        return loaded

    def _load(self, space: Space, type: Type, address: Value, count: int) -> list[Value]:
        if (ready := self.at.preloaded.pop(self.at.position, None)) is not None:
            return ready
        size = type.bytes * count
        space, raw = self._where(space, address, size)
        if isinstance(raw, Varying):
            self.at.stores.settle()  # a shared function checks the lanes, and may fault
        apart = self.at.kernel.scalar or self.addressing.scattered(space, raw, type.bytes, count)
        if not apart:
            return self._load_alone(space, type, raw, count)
        if (run := joined_loads.run(self.at, self.bound, space, size)) is None:

            def alone() -> list[str]:
                return [self.alg.vector(type, value.raw) for value in self._load_alone(space, type, raw, count)]

            found = self._by_row_window(space, type, size, count, raw, alone)
            if found is None:
                return self._load_alone(space, type, raw, count)
            self.at.note(f"row window, or {self.at.notes[self.at.position]}")
            return [Value(self.alg, type, Varying(name)) for name in found]
        loader = joined_loads.Loader(
            good=lambda first, extent: self.bounds.good_run(space, first, size, extent),
            together=lambda first, elements: self._together(space, type, size, first, elements),
            alone=lambda bound, own: Memory(self.at, bound)._load_alone(space, type, own, count),  # noqa: SLF001 - its own kind
        )
        first = joined_loads.begin(self.at, run, raw)
        said = f"chunks, with {len(run.positions) - 1} more"
        whole = partial(joined_loads.load, self.at, run, type, count, first, loader)
        found = self._by_row_window(space, type, size, len(run.positions) * count, first, whole)
        said = said if found is None else f"row window, or {said}"
        joined_loads.keep(self.at, run, type, count, whole() if found is None else found, said)
        return self.at.preloaded.pop(self.at.position)

    def _by_row_window(
        self, space: Space, type: Type, size: int, count: int, first: Raw, otherwise: Callable[[], list[str]]
    ) -> list[str] | None:  # fmt: skip
        """Load so many elements of each lane from a window, or as `otherwise` writes; None where they walk along no row.

        An instruction of the program loads `size` bytes.
        """
        if space in WINDOWS or not row_windows.suits(scalar_type(type), type.bytes, count):
            return None
        number = self.at.kernel.row_window(self.at.node.frame, self.bound, row_windows.word(type.bytes))
        if number is None:
            return None
        addresses = self.alg.vector(u64, self.flat(space, first))
        window = row_windows.RowWindow(self.at, number, addresses, type.bytes, count)
        site = self.at.site(self.bound, space, size, self.bounds.span(space, first, size), writing=False)
        within = row_windows.Allocation(self.at.site_field(site, 0), self.at.site_field(site, 2), str(size))
        return window.load(scalar_type(type), within, otherwise)

    def _together(self, space: Space, type: Type, each: int, first: Raw, elements: int) -> list[str]:
        """Load neighbouring elements that have been checked, for instructions that load so many bytes each."""
        llvm, pointer = scalar_type(type), ""
        if self.bounds.records(space):
            self.bounds.record_run(self.access, space, each, first, type.bytes * elements)
        if isinstance(first, Affine) and not first.terms:
            pointer = self.addressing.pointer(space, first)
        if not pointer:
            return self.addressing.load(space, llvm, type.bytes, first, elements)
        return [self._load_one(llvm, pointer, n * type.bytes, type.bytes) for n in range(elements)]

    def _load_alone(self, space: Space, type: Type, raw: Raw, count: int) -> list[Value]:
        size = type.bytes * count
        llvm = scalar_type(type)
        one = space is not Space.LOCAL or self.at.kernel.scalar
        if one and isinstance(raw, Affine) and not raw.terms and not isinstance(self.at.guard, Varying):
            pointer = self.bounds.checked(self.access, space, raw, size)
            self.at.note("broadcast" if raw.bank is None else "")
            names = [self._load_one(llvm, pointer, n * type.bytes, size) for n in range(count)]
            return [Value(self.alg, type, Affine(name)) for name in names]
        self.bounds.checked(self.access, space, raw, size)
        if space is Space.LOCAL and self.at.kernel.local_grain:
            self.at.note(InterleavedLocal.kind(raw, writing=False))
            rows = InterleavedLocal(self.at, self.addressing).load(llvm, type.bytes, raw, count)
            return [Value(self.alg, type, Varying(name)) for name in rows]
        self.at.note(self.addressing.kind(space, raw, type.bytes, count, writing=False))
        return [Value(self.alg, type, Varying(name)) for name in self.addressing.load(space, llvm, type.bytes, raw, count)]

    def store(
        self, space: Space, type: Type, address: Value, values: Sequence[Value], **attributes: Unpack[AccessAttributes]
    ) -> None:
        """A scalar store, a contiguous one, or a scatter."""
        weak = attributes.get("order") in (None, Order.WEAK)
        if not weak:
            self.at.stores.settle()
        if attributes.get("order") is Order.RELEASE:
            self._between_threads(Order.RELEASE, attributes.get("scope") or Scope.GPU)
        count = len(values)
        size = type.bytes * count
        space, raw = self._where(space, address, size)
        values = [Value(self.alg, type, self.alg.tight(type, v.raw)) for v in values]
        self.access = Access.of(Verb.WRITE, space, type, count, **attributes)
        bound = self.bound if weak and space is Space.GLOBAL else None
        waits = self.at.stores.waits(space, type.bytes, raw, count, bound) if weak else None
        pointer = self.bounds.checked(self.access, space, raw, size)
        self._count(address.raw)
        if self._follows_mbarriers(space):
            offsets = self._offsets(raw)
            mbarrier_checks.made(self.at, self.access, offsets, self.alg.vector(type, values[0].raw))
            cta_clocks.mbarrier_made(self.at, self.access, offsets)
        self.at.dirty = True
        llvm = scalar_type(type)
        uniform = all(isinstance(v.raw, Affine) and not v.raw.terms for v in values)
        if uniform and pointer and not isinstance(self.at.guard, Varying):
            self.at.note("single store")
            for n, v in enumerate(values):
                part = self.code.offset(pointer, n * type.bytes)
                self.code.run(f"store {llvm} {text(llvm, v.raw.base)}, ptr {part}, align {min(type.bytes, 16)}")
            return
        if self.at.repeats and space not in WINDOWS and self.addressing.scattered(space, raw, type.bytes, count):
            stride = self.addressing.stride()
            self.at.kernel.writes_along_rows |= stride is not None and stride.is_below(prefetches.LINE)
        vectors = [self.alg.vector(type, v.raw) for v in values]
        if waits is not None:
            waits(llvm, vectors)
            return
        if space is Space.LOCAL and self.at.kernel.local_grain:
            self.at.note(InterleavedLocal.kind(raw, writing=True))
            InterleavedLocal(self.at, self.addressing).store(llvm, type.bytes, raw, vectors)
            return
        self.at.note(self.addressing.kind(space, raw, type.bytes, count, writing=True))
        self.addressing.store(space, llvm, type.bytes, raw, vectors, bound)

    def _where(self, space: Space, address: Value, size: int) -> tuple[Space, Raw]:
        """The space of an access of a size, without its sub-space, and the significant bits of the address."""
        word, raw = space.window, address.raw
        if space is Space.PARAM and self._names_hidden_parameter():
            self.at.needs_local()
            return Space.LOCAL, self.alg.integer("sub", u64, raw, self.addressing.base(Space.LOCAL))
        if word is Space.SHARED and self.at.kernel.cluster_size > 1:
            if space is Space.SHARED_CLUSTER:
                self.cluster.check(self.bound, address, size)
                self.bounds.in_cluster = True
                return Space.GENERIC, self.cluster.to_generic(address).raw
            return word, self.cluster.own_offset(raw)
        if word is Space.LOCAL:
            self.at.needs_local()
            if self.bound in self.at.kernel.analysis.became_local:
                raw = self.alg.integer("min", u64, raw, Affine(BEYOND))
        known = isinstance(raw, Affine) and raw.bank is not None
        if self.at.kernel.image.memory.address_bits == 32 and word not in WINDOWS and not known:
            raw = self.alg.integer("and", u64, raw, Affine(0xFFFF_FFFF))
        return word, raw

    def _names_hidden_parameter(self) -> bool:
        """Does it name a parameter of a call whose generic address does not show that it is in the thread's own memory?

        So it is in frames that begin where a register of the thread says, and for code that looks for the tags of addresses.
        """
        kernel, frame = self.at.kernel, self.at.node.frame
        if not (kernel.tagged or frame.root.shared):
            return False
        named = (symbol for operand in self.bound.node.operands for symbol in variables_in(operand, self.bound))
        return any(kernel.image.locate(each, frame.function)[0] is Placement.GENERIC_FRAME for each in named)

    def _load_one(self, llvm: str, pointer: str, offset: int, size: int) -> str:
        align = min(size, 16) if not offset else 1
        return self.code.emit(f"load {llvm}, ptr {self.code.offset(pointer, offset)}, align {align}", pure=False)

    def flat(self, space: Space, raw: Raw) -> Raw:
        """An address of a window as a generic one."""
        return self.addressing.flat(space, raw)

    # ── atomics ─────────────────────────────────────────────────────────────────────────

    def atomic(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:  # fmt: skip
        """Update for one lane after the other, in order."""
        raw = self._before_update(space, type, address, 1, attributes)
        old = atomics.updated(self.at, self.bound.i.mnemonic, type, self.access, raw, update, operands)
        if self._follows_mbarriers(self.access.space):
            offsets, before = self._offsets(raw), self.alg.vector(type, old.raw)
            after = self.alg.vector(type, update(old, *operands).raw)
            completes = not must_not_complete(self.bound.i)
            mbarrier_checks.updated(self.at, self.access, offsets, (before, after), completes=completes)
            cta_clocks.mbarrier_signalled(self.at, self.access, offsets, before)
        return old

    def atomic_vector(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> list[Value]:  # fmt: skip
        """Update the first elements of all lanes, then the second ones, and so on."""
        raw, mnemonic = self._before_update(space, type, address, len(operands), attributes), self.bound.i.mnemonic
        elements = [self.alg.integer("add", u64, raw, Affine(n * type.bytes)) for n in range(len(operands))]
        pairs = zip(elements, operands, strict=True)
        return [atomics.updated(self.at, mnemonic, type, self.access, where, update, [each]) for where, each in pairs]

    def _before_update(self, space: Space, type: Type, address: Value, count: int, attributes: AccessAttributes) -> Raw:
        """Check and count an update of some elements; returns the significant bits of the address."""
        space, raw = self._where(space, address, count * type.bytes)
        self.access = Access.of(Verb.UPDATE, space, type, count, **attributes)
        self.at.note("lane by lane")
        self.bounds.checked(self.access, space, raw, count * type.bytes)
        self._count(address.raw)
        self.at.dirty = True
        return raw

    def _follows_mbarriers(self, space: Space) -> bool:
        """Is the access one of an mbarrier, whose phases order others, under the checks for races and of synchronisation?

        Where no thread tests a phase, no phase orders anything, and the clocks have no rows for mbarriers.
        """
        kernel = self.at.kernel
        if self.access.mbarrier is None or kernel.shadow is None or not (kernel.clocked and kernel.polls):
            return False
        if space is not Space.SHARED:
            kernel.shadow.doubts.add("an mbarrier has a generic address")
        return space is Space.SHARED

    def _offsets(self, raw: Raw) -> str:
        """The offsets in shared memory of all lanes."""
        return self.alg.vector(u32, self.alg.cast("resize", u64, u32, raw, "rn"))

    # ── others ──────────────────────────────────────────────────────────────────────────

    def fence(self, order: FenceKind, scope: Scope, _address: Value | None = None) -> None:
        """A fence, which instrumented code may note."""
        if isinstance(order, Order):
            told_order.fence(self.at, order, scope)
        self._between_threads(order, scope)

    def _between_threads(self, order: FenceKind, scope: Scope) -> None:
        """A fence between host threads that run CTAs of the grid."""
        if scope is not Scope.CTA and order in ORDERS:
            self.code.lines += streaming_stores.fence(self.at.kernel) if order is not Order.ACQUIRE else []
            self.code.run(f"fence {ORDERS[order]}")

    def prefetch(self, space: Space, address: Value, **attributes: Unpack[AccessAttributes]) -> None:
        """Do nothing: it is a hint."""

    def to_generic(self, space: Space, address: Value) -> Value:
        """Add the base of the window."""
        return self._moved("add", space, address)

    def from_generic(self, space: Space, address: Value) -> Value:
        """Take the base of the window away."""
        return self._moved("sub", space, address)

    def _moved(self, op: str, space: Space, address: Value) -> Value:
        space = space.window
        if space is Space.SHARED and self.at.kernel.cluster_size > 1:  # `.shared::cta` has the addresses of its cluster too
            return self.cluster.to_generic(address) if op == "add" else self.cluster.from_generic(address)
        if space is Space.PARAM and op == "add":
            return self._whole_parameter(address)
        if space not in WINDOWS:
            return address
        if space is Space.LOCAL:
            self.at.needs_local()
        raw = address.raw
        if op == "add":
            raw = (
                self.alg.integer("and", u64, raw, Affine(0xFFFF_FFFF))
                if not isinstance(raw, Affine) or raw.constant is None
                else raw
            )
        return Value(self.alg, u64, self.alg.integer(op, u64, raw, self.addressing.base(space)))

    def _whole_parameter(self, address: Value) -> Value:
        """The address of a parameter, of which a register may have kept the low 32 bits only."""
        if isinstance(address.raw, Affine) and address.raw.bank is not None:
            return address
        bank = Value(self.alg, u64, Affine("%params.address"))
        near = ((address - bank) & 0xFFFF_FFFF) + bank
        return select(address <= 0xFFFF_FFFF, near, address)

    def replicas(self, address: Value) -> Iterator[tuple[Value, Value]]:
        """The accesses to each have the lanes that have such a memory as their guard."""
        for number in range(settings.devices() - 1):
            (distance,) = self.at.host_call(self.bound, ReplicaDistance(number), [(u64, address.raw)], [u64])
            there = distance.compare("ne", distance.lift(0))
            with self.at.among(there.raw):
                yield there, address + distance

    def mapped(self, space: Space, address: Value, rank: Value) -> Value:
        """The corresponding address in another CTA of the cluster; without clusters ranks but 0 are in no memory."""
        if self.at.kernel.cluster_size == 1:
            return address + (rank << (NOWHERE if space is Space.GENERIC else RANK))
        if space is not Space.GENERIC:
            return self.cluster.of_rank(address, rank)
        return self.cluster.to_generic(self.cluster.of_rank(self.cluster.from_generic(address), rank))

    def rank(self, space: Space, address: Value) -> Value:
        """The rank of the CTA in which an address lies."""
        if self.at.kernel.cluster_size == 1:
            return Value(self.alg, u64, Affine(0))
        return self.cluster.rank(self.cluster.from_generic(address) if space is Space.GENERIC else address)

    def within(self, space: Space, address: Value) -> Value:
        """Is a generic address in a space?"""
        if self.at.kernel.cluster_size > 1:
            return self.at.host_call(self.bound, IsInSpace(space), [(u64, address.raw)], [pred])[0]
        return in_windows.within(self.at, space.window, address)

    def phase_over(
        self, space: Space, address: Value, over: Value, *, state: Value | None = None, **attributes: Unpack[AccessAttributes]
    ) -> None:
        """Instrumented code follows the arrivals if the result has an effect; deferred code tells of phases that go on."""
        if self.at.kernel.fair:
            self._let_others_run(over)
        if self.at.kernel.deferred:
            self._poll(over)
        self.access = Access.of(Verb.READ, space, u64, mbarrier=MbarrierStep.TEST)
        space, raw = self._where(space, address, u64.bytes)
        if not self._follows_mbarriers(space):
            return
        offsets, found = self._offsets(raw), self.at.bits_of(over.raw)
        mbarrier_checks.tested(self.at, offsets, found, self.alg.vector(u64, state.raw) if state is not None else None)
        kernel, function = self.at.kernel, self.bound.function
        if kernel.judges_phases or (function is not None and self.bound not in kernel.faint(function)):
            cta_clocks.phase_over(self.at, offsets, found, acquires=attributes.get("order") is Order.ACQUIRE)

    def _let_others_run(self, over: Value) -> None:
        """End the time slice at the end of a spin loop if a lane finds that a phase goes on: other warps must end it."""
        code, counter = self.code, self.at.kernel.slice_counter
        goes_on = (~over).raw if self.at.guard is None else self.alg.integer("and", pred, self.at.guard, (~over).raw)
        waiting = code.emit(f"icmp ne i{code.width} {self.at.lanes_of(goes_on)}, 0")
        left = code.emit(f"load i32, ptr {counter}, align 4", pure=False)
        code.run(f"store i32 {code.emit(f'select i1 {waiting}, i32 1, i32 {left}')}, ptr {counter}, align 4")

    def _poll(self, over: Value) -> None:
        """Let the host end work where a lane finds that a phase goes on, and other warps run."""
        with self.at.among((~over).raw):
            self.at.host_call(self.bound, PhaseGoesOn(), [], [])

    def allocate_stack(self, size: Value, alignment: Value | int) -> Value:
        """Grow the frame."""
        self.at.needs_local()
        return stack.allocate(self.at, self.bound, size, alignment)

    def stack_pointer(self, restore: Value | None = None) -> Value:
        """Read or set the end of the frame."""
        end = stack.end(self.at, self.at.node.frame)
        if restore is not None:
            stack.set_end(self.at, self.at.node.frame, restore)
        return end

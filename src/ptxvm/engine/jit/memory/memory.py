"""The port `mem`: checked loads, stores and atomics, by the shape of the address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.memory_order import FenceKind, Order, PartialFence, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value, select
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.memory import (
    addressing,
    allocation_search,
    atomics,
    cta_clocks,
    gather_checks,
    in_windows,
    index_checks,
    joined_loads,
    lane_ends,
    prefetches,
    row_windows,
    slow_path,
    streaming_stores,
    variable_bounds,
)
from ptxvm.engine.jit.memory.cluster_addresses import ClusterAddresses
from ptxvm.engine.jit.memory.interleaved_local import InterleavedLocal
from ptxvm.engine.jit.memory.lane_offsets import LaneOffsets, constant_offsets
from ptxvm.engine.jit.memory.shadow_tags import ShadowCheck
from ptxvm.engine.jit.memory.touched_bytes import TouchedBytes
from ptxvm.engine.jit.node import stack
from ptxvm.engine.jit.node.host_queries import IsInSpace, PhaseGoesOn, ReplicaDistance
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.effects import Access, Verb
from ptxvm.machine import settings
from ptxvm.machine.window import NOWHERE, RANK

WINDOWS = (Space.SHARED, Space.LOCAL)
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
        self.cluster, self.in_cluster = ClusterAddresses(at), False
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
            self.fence(Order.ACQUIRE, attributes.get("scope") or Scope.GPU)
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
            good=lambda first, extent: self._good_run(space, first, size, extent),
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
        site = self.at.site(self.bound, space, size, 0, writing=False)
        within = row_windows.Allocation(self.at.site_field(site, 0), self.at.site_field(site, 2), str(size))
        return window.load(scalar_type(type), within, otherwise)

    def _together(self, space: Space, type: Type, each: int, first: Raw, elements: int) -> list[str]:
        """Load neighbouring elements that have been checked, for instructions that load so many bytes each."""
        llvm, pointer = scalar_type(type), ""
        if self._records(space):
            self._record_run(space, each, first, type.bytes * elements)
        if isinstance(first, Affine) and not first.terms:
            pointer = self.addressing.pointer(space, first)
        if not pointer:
            return self.addressing.load(space, llvm, type.bytes, first, elements)
        return [self._load_one(llvm, pointer, n * type.bytes, type.bytes) for n in range(elements)]

    def _good_run(self, space: Space, first: Raw, size: int, extent: int) -> str:
        """Are accesses of a size, side by side over an extent, in the window, or in the last allocation of the first one?"""
        log = size.bit_length() - 1
        more = extent - size >> log
        if space in WINDOWS:
            low = self.alg.cast("resize", u64, u32, first, "rn")
            return self._all_lanes(u32, low, log, "0", str(max(self._window_bound(space, size) - more, 0)))
        site = self.at.site(self.bound, space, size, 0, writing=False)
        if self.at.kernel.scalar and isinstance(first, Affine):
            return self._last_of_run(site, first, size, more)
        room = ("i64", self.at.site_field(site, 2))
        begin, bound = self.at.site_field(site, 0), self.code.intrinsic("i64", "llvm.usub.sat.i64", room, ("i64", str(more)))
        if isinstance(first, Affine):
            if (good := self._good_ends(first, 64, log, begin, lambda: bound)) is not None:
                return good
            if self.at.active_vector() is None:
                return lane_ends.in_box(self.alg, first, size, begin, bound)
        return self._all_lanes(u64, first, log, begin, bound)

    def _last_of_run(self, site: int, first: Affine, size: int, more: int) -> str:
        """Is the last of some elements in the last allocation, and as far from its beginning as the first one needs?"""
        last = text("i64", self.alg.scalar("add", 64, first.base, more * size))
        distance = self.code.emit(f"sub i64 {last}, {self.at.site_field(site, 0)}")
        steps = self._turned("i64", distance, size.bit_length() - 1)
        inside = self.code.emit(f"icmp ult i64 {steps}, {self.at.site_field(site, 2)}")
        return self.code.emit(f"and i1 {inside}, {self.code.emit(f'icmp uge i64 {steps}, {more}')}")

    def _load_alone(self, space: Space, type: Type, raw: Raw, count: int) -> list[Value]:
        size = type.bytes * count
        llvm = scalar_type(type)
        one = space is not Space.LOCAL or self.at.kernel.scalar
        if one and isinstance(raw, Affine) and not raw.terms and not isinstance(self.at.guard, Varying):
            pointer = self._checked(space, raw, size, writing=False)
            self.at.note("broadcast" if raw.bank is None else "")
            names = [self._load_one(llvm, pointer, n * type.bytes, size) for n in range(count)]
            return [Value(self.alg, type, Affine(name)) for name in names]
        self._checked(space, raw, size, writing=False)
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
            self.fence(Order.RELEASE, attributes.get("scope") or Scope.GPU)
        count = len(values)
        size = type.bytes * count
        space, raw = self._where(space, address, size)
        values = [Value(self.alg, type, self.alg.tight(type, v.raw)) for v in values]
        self.access = Access.of(Verb.WRITE, space, type, count, **attributes)
        bound = self.bound if weak and space is Space.GLOBAL else None
        waits = self.at.stores.waits(space, type.bytes, raw, count, bound) if weak else None
        pointer = self._checked(space, raw, size, writing=True)
        self._count(address.raw)
        if self._follows_mbarriers(space):
            cta_clocks.mbarrier_made(self.at, self.access, self._offsets(raw))
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
        if word is Space.SHARED and self.at.kernel.cluster_size > 1:
            if space is Space.SHARED_CLUSTER:
                self.cluster.check(self.bound, address, size)
                self.in_cluster = True
                return Space.GENERIC, self.cluster.to_generic(address).raw
            return word, self.cluster.own_offset(raw)
        if word is Space.LOCAL:
            self.at.needs_local()
        known = isinstance(raw, Affine) and raw.bank is not None
        if self.at.kernel.image.memory.address_bits == 32 and word not in WINDOWS and not known:
            raw = self.alg.integer("and", u64, raw, Affine(0xFFFF_FFFF))
        return word, raw

    def _load_one(self, llvm: str, pointer: str, offset: int, size: int) -> str:
        align = min(size, 16) if not offset else 1
        return self.code.emit(f"load {llvm}, ptr {self.code.offset(pointer, offset)}, align {align}", pure=False)

    def flat(self, space: Space, raw: Raw) -> Raw:
        """An address of a window as a generic one."""
        return self.addressing.flat(space, raw)

    # ── the check ───────────────────────────────────────────────────────────────────────

    def _checked(self, space: Space, raw: Raw, size: int, *, writing: bool) -> str:
        """Check an access; returns its pointer if it is uniform, else nothing."""
        code = self.code
        if isinstance(raw, Affine) and raw.bank is not None and 0 <= raw.bank <= self.at.bank_size - size and not writing:
            return code.emit(f"getelementptr i8, ptr %params, i64 {raw.bank}")
        if self.at.kernel.trusted:
            return self.addressing.pointer(space, raw) if isinstance(raw, Affine) and not raw.terms else ""
        span = self._span(space, raw, size)
        site = self.at.site(self.bound, space, size, span, writing=writing)
        # Under the checks the first access of a site has its allocation saved, and the place of its tags found.
        asks = self.at.kernel.tagged or (self.at.kernel.shadow is not None and writing)
        within = not asks and variable_bounds.certain(self.at, space, raw, size, writing=writing)
        if not within and not self._compared_together(space, raw, size):
            if self.at.kernel.tagged or not variable_bounds.in_own_stack(self.at, self.addressing, space, raw, size):
                self._compare(site, space, raw, size)
            variable_bounds.check(self.at, self.addressing, self.bound, space, raw, size)
        if self.at.kernel.shadow is not None:
            check = ShadowCheck(self.at, self.addressing, self.at.kernel.shadow, in_cluster=self.in_cluster)
            check.check(site, space, raw, size, self.access)
        if isinstance(raw, Affine) and not raw.terms:
            return self.addressing.pointer(space, raw)
        return ""

    def _compared_together(self, space: Space, raw: Raw, size: int) -> bool:
        """Is the access covered by a check of the window, or of its variable, that other accesses of the node share?"""
        if space is not Space.SHARED:
            return False
        held = variable_bounds.part(self.at, self.bound, space) or (0, self.at.window_size(space))
        low = self.alg.cast("resize", u64, u32, raw, "rn")
        return self.at.ranges.covers(low, size, held)

    def _compare(self, site: int, space: Space, raw: Raw, size: int) -> None:
        """Check a single access against the window, or the last allocation of its site."""
        code = self.code
        apart = self.at.caches_bounds or self.at.kernel.tagged or self.at.kernel.recorded
        together = space in WINDOWS or not apart
        if isinstance(raw, Varying) and together:
            self._compare_lanes(site, space, raw, size)
            return
        good = self._good_window(space, raw, size) if space in WINDOWS else self._good(site, raw, size)
        if good == "true":
            return
        slow, onward = code.label(), code.label()
        records = self._records(space) and not self._is_uniform(raw)
        quick, allowed = (code.label(), code.label()) if records else (onward, onward)
        code.branch(good, quick, slow, likely=True)
        with code.scope():
            code.block(slow)
            self.at.stores.write_aside()
            self._slow(site, space, raw, size, allowed)
        if records:
            with code.scope():
                code.block(allowed)
                self._touched(space).of_lanes(raw, size)
                code.jump(onward)
            with code.scope():
                code.block(quick)
                self._touched(space).of_site(site, raw, size)
                code.jump(onward)
        code.block(onward)
        if self._records(space) and isinstance(raw, Affine) and not records:
            self._touched(space).of_address(raw, size)

    def _records(self, space: Space) -> bool:
        """Does the code note what it accesses in a space?"""
        return self.at.kernel.recorded and space in (Space.GLOBAL, Space.GENERIC)

    def _touched(self, space: Space) -> TouchedBytes:
        return TouchedBytes(self.at, self.addressing, replace(self.access, space=space))

    def _is_uniform(self, raw: Raw) -> bool:
        """Do all lanes access one address, and is there such a lane?"""
        return isinstance(raw, Affine) and not raw.terms and not isinstance(self.at.guard, Varying)

    def _record_run(self, space: Space, each: int, first: Raw, size: int) -> None:
        """Note loads of neighbouring elements, which are all in the last allocation of their site."""
        touched = self._touched(space)
        if isinstance(first, Affine) and self._is_uniform(first):
            touched.of_address(first, size)
        else:
            touched.of_site(self.at.site(self.bound, space, each, 0, writing=False), first, size)

    def _compare_lanes(self, site: int, space: Space, raw: Varying, size: int) -> None:
        """Check each lane, by a shared function that has the slow path too."""
        code, lanes = self.code, self.at.active_vector()
        type, addresses = (u32, self.alg.cast("resize", u64, u32, raw, "rn")) if space in WINDOWS else (u64, raw)
        arguments = [("ptr", slow_path.ROOM), *[word[1:] for word in slow_path.CALLER], ("i64", str(site))]
        arguments.append((self.alg.vector_type(type), self.alg.vector(type, addresses)))
        if lanes is not None:
            arguments.append((f"i{self.width}", code.mask_bits(lanes)))
        shape = self._shape(site, space, raw, size)
        piece = gather_checks.allowed(
            code.unit, shape, type, lambda: "" if shape.asks_host else allocation_search.helper(self.at.kernel)
        )
        onward, exact = code.label(), code.label()
        low, bound = (self.at.site_field(site, n) for n in (0, 2)) if type is u64 else ("", "")
        if type is u64 and (quick := index_checks.inside(self.at, raw, size.bit_length() - 1, low, bound)) is not None:
            code.branch(quick, onward, exact, likely=True)
            code.block(exact)
        code.branch(code.call("i1", piece, *arguments, pure=False), onward, "fault", likely=True)
        code.block(onward)

    def _slow(self, site: int, space: Space, raw: Raw, size: int, onward: str) -> None:
        """The slow path: search all allocations; the warp faults if the access is refused."""
        code = self.code
        lanes, window, tagged = self.at.active_vector(), space in WINDOWS, self.at.kernel.tagged
        shape = self._shape(site, space, raw, size)
        words = [(slow_path.SITE, "i64", str(site))]
        if lanes is not None:
            words += [(slow_path.MASKS + n, "i32", code.warp_bits(lanes, n)) for n in code.warps()]
        if isinstance(raw, Affine):
            known = (raw.base, *(u for _, u in raw.moving))
            words += [(slow_path.ADDRESS + n, "i64", text("i64", u)) for n, u in enumerate(known)]
        else:
            held = f"<{self.width} x i64>"
            lanes_at = self.alg.vector(u64, self.alg.low_half(raw) if window else raw)
            where = code.emit(f"getelementptr i64, ptr {slow_path.ROOM}, i64 {slow_path.ADDRESS}")
            code.run(f"store {held} {lanes_at}, ptr {where}, align 64")
        allowed = slow_path.ask(code, shape, "" if shape.asks_host else allocation_search.helper(self.at.kernel), words)
        if not self.at.caches_bounds and (not tagged or window):
            code.branch(allowed, onward, "fault", likely=True)
            return
        kept = code.label()
        code.branch(allowed, kept, "fault", likely=True)
        code.block(kept)
        self.at.reload_site(site)
        if not tagged or window:
            code.jump(onward)
            return
        # All lanes must be in one allocation, whose tags the site has now.
        code.branch(self._exact(site, space, raw, size), onward, "suspect", likely=True)

    def _shape(self, site: int, space: Space, raw: Raw, size: int) -> slow_path.CheckKind:
        """The shape of the question that the slow path asks."""
        full, window, kernel = self.at.active_vector() is None, space in WINDOWS, self.at.kernel
        fixed = isinstance(raw, Affine) and constant_offsets(raw, self.width) is not None
        tests_lanes = isinstance(raw, Affine) and bool(raw.terms) and not (full and fixed)
        found = kernel.sites.all[site]
        asks_host = window or kernel.tagged or (kernel.shadow is not None and found.writing)  # which saves what is written
        return slow_path.CheckKind(
            width=self.width,
            terms=tuple((k, u if isinstance(u, int) else None) for k, u in raw.terms) if isinstance(raw, Affine) else None,
            window=self._window_bound(space, size) if window else None,
            asks_host=asks_host, tests_lanes=tests_lanes, full=full,
            size=size, span=found.span, need=allocation_search.need(space, writing=found.writing),
        )  # fmt: skip

    def _span(self, space: Space, raw: Raw, size: int) -> int:
        """The span of the lanes if it is constant, else 0; the bounds of the site allow for it."""
        if space in WINDOWS or not isinstance(raw, Affine):
            return 0
        box = LaneOffsets.of(raw, self.width)
        return box.span if box is not None and box.fits(size) else 0

    def _exact(self, site: int, space: Space, raw: Raw, size: int) -> str:
        """Is each active lane in bounds, tested lane by lane?"""
        log = size.bit_length() - 1
        if space in WINDOWS:
            low = self.alg.cast("resize", u64, u32, raw, "rn")
            return self._all_lanes(u32, low, log, "0", str(self._window_bound(space, size)))
        return self._all_in_allocation(site, raw, log)

    def _all_in_allocation(self, site: int, raw: Raw, log: int) -> str:
        return self._all_lanes(u64, raw, log, self.at.site_field(site, 0), self.at.site_field(site, 2))

    def _window_bound(self, space: Space, size: int) -> int:
        """How many elements of a size a window holds."""
        room = self.at.window_size(space)
        return ((room - size) >> (size.bit_length() - 1)) + 1 if room >= size else 0

    def _good_window(self, space: Space, raw: Raw, size: int) -> str:
        """Is the offset of each lane aligned and in the window?  One comparison decides both."""
        log = size.bit_length() - 1
        bound = self._window_bound(space, size)
        low = self.alg.cast("resize", u64, u32, raw, "rn")
        if isinstance(low, Affine):
            box = LaneOffsets.of(low, self.width)
            fits = box is not None and box.fits(size)
            first = self.alg.scalar("add", 32, low.base, box.least) if box is not None else ""
            last = bound - (box.span >> log) if box is not None else 0
            if fits and isinstance(first, int) and not first % size and first >> log < last:
                return "true"
            if (good := self._good_ends(low, 32, log, "0", lambda: str(bound))) is not None:
                return good
            if fits:
                turned = self._turned("i32", text("i32", first), log)
                return self.code.emit(f"icmp ult i32 {turned}, {max(last, 0)}")
        return self._all_lanes(u32, low, log, "0", str(bound))

    def _good(self, site: int, raw: Raw, size: int) -> str:
        """Is the access in the last allocation of its site?"""
        code, log = self.code, size.bit_length() - 1
        low = self.at.site_field(site, 0)
        bound = self.at.site_field(site, 1)
        if isinstance(raw, Affine):
            if (good := self._good_ends(raw, 64, log, low, lambda: self.at.site_field(site, 2))) is not None:
                return good
            box = LaneOffsets.of(raw, self.width)
            if box is not None and box.fits(size):
                if box.span != self.at.kernel.sites.all[site].span:
                    return self._all_in_allocation(site, raw, log)
                first = self.alg.scalar("add", 64, raw.base, box.least)
                offset = code.emit(f"sub i64 {text('i64', first)}, {low}")
                return code.emit(f"icmp ult i64 {self._turned('i64', offset, log)}, {bound}")
            return lane_ends.in_box(self.alg, raw, size, low, bound)
        return self._all_in_allocation(site, raw, log)

    def _good_ends(self, raw: Affine, bits: int, log: int, low: str, bound: Callable[[], str]) -> str | None:
        """Are the first and the last active lane in the allocation?  None unless lanes are masked and at equal distances."""
        lanes = self.at.active_vector() if raw.terms else None
        found = lane_ends.Progression.of(self.alg, raw, bits, throughout=True) if lanes is not None else None
        return lane_ends.inside(self.code, found, lanes or "", bits, log, low, bound()) if found is not None else None

    def _turned(self, llvm: str, offset: str, log: int) -> str:
        """Rotate the low bits to the top, where they make an unaligned offset too large."""
        if not log:
            return offset
        return self.code.intrinsic(llvm, f"llvm.fshr.{llvm}", (llvm, offset), (llvm, offset), (llvm, str(log)))

    def _all_lanes(self, type: Type, raw: Raw, log: int, low: str, bound: str) -> str:
        """Is each active lane a multiple of a size from `low`, and within `bound` elements?"""
        if self.at.kernel.scalar and isinstance(raw, Affine):
            distance = self.code.emit(f"sub {scalar_type(type)} {text(scalar_type(type), raw.base)}, {low}")
            return self.code.emit(f"icmp ult {scalar_type(type)} {self._turned(scalar_type(type), distance, log)}, {bound}")
        code, llvm, lanes = self.code, scalar_type(type), self.at.active_vector()
        arguments = [(self.alg.vector_type(type), self.alg.vector(type, raw))]
        if lanes is not None:
            arguments.append((f"i{self.width}", code.mask_bits(lanes)))
        piece = gather_checks.compared(code.unit, type, log, some=lanes is not None)
        quick = index_checks.inside(self.at, raw, log, low, bound) if type is u64 else None
        if quick is None:
            return code.call("i1", piece, *arguments, (llvm, low), (llvm, bound))
        here, exact, onward = code.label(), code.label(), code.label()
        code.jump(here)
        code.block(here)
        code.branch(quick, onward, exact, likely=True)
        code.block(exact)
        answer = code.call("i1", piece, *arguments, (llvm, low), (llvm, bound), pure=False)
        code.jump(onward)
        code.block(onward)
        return code.emit(f"phi i1 [ true, %{here} ], [ {answer}, %{exact} ]", pure=False)

    # ── atomics ─────────────────────────────────────────────────────────────────────────

    def atomic(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:  # fmt: skip
        """Update for one lane after the other, in order."""
        raw = self._before_update(space, type, address, 1, attributes)
        old = atomics.updated(self.at, self.bound.i.mnemonic, type, self.access, raw, update, operands)
        if self._follows_mbarriers(self.access.space):
            cta_clocks.mbarrier_signalled(self.at, self.access, self._offsets(raw), self.alg.vector(type, old.raw))
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
        self._checked(space, raw, count * type.bytes, writing=True)
        self._count(address.raw)
        self.at.dirty = True
        return raw

    def _follows_mbarriers(self, space: Space) -> bool:
        """Is the access one of an mbarrier, whose phases order others under the check for races?

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
        outer = self.at.guard
        for number in range(settings.devices() - 1):
            (distance,) = self.at.host_call(self.bound, ReplicaDistance(number), [(u64, address.raw)], [u64])
            there = distance.compare("ne", distance.lift(0))
            both = there.raw if outer is None else self.alg.integer("and", pred, outer, there.raw)
            self.at.guard = Varying(self.alg.vector(pred, both))
            yield there, address + distance
            self.at.guard = outer

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
        if self.at.kernel.deferred:
            self._poll(over)
        self.access = Access.of(Verb.READ, space, u64, mbarrier=MbarrierStep.TEST)
        space, raw = self._where(space, address, u64.bytes)
        function = self.bound.function
        if self._follows_mbarriers(space) and function is not None and self.bound not in self.at.kernel.faint(function):
            acquires = attributes.get("order") is Order.ACQUIRE
            cta_clocks.phase_over(self.at, self._offsets(raw), self.at.bits_of(over.raw), acquires=acquires)

    def _poll(self, over: Value) -> None:
        """Let the host end work where a lane finds that a phase goes on, and other warps run."""
        outer = self.at.guard
        waits = (~over).raw
        both = waits if outer is None else self.alg.integer("and", pred, outer, waits)
        self.at.guard = Varying(self.alg.vector(pred, both))
        self.at.host_call(self.bound, PhaseGoesOn(), [], [])
        self.at.guard = outer

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

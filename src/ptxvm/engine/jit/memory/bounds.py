"""Bounds checks of accesses: against the window, or the last allocation of the access site, with the slow path behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.memory import (
    allocation_search,
    gather_checks,
    index_checks,
    lane_ends,
    mbarrier_checks,
    slow_path,
    stored_pointers,
    told_order,
    variable_bounds,
)
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.lane_offsets import LaneOffsets, constant_offsets
from ptxvm.engine.jit.memory.shadow_tags import ShadowCheck
from ptxvm.engine.jit.memory.touched_bytes import TouchedBytes
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access, Verb

WINDOWS = (Space.SHARED, Space.LOCAL)


class Bounds:
    """Writes the checks of the accesses of an instruction; those of shared memory of a cluster are `in_cluster`."""

    def __init__(self, at: NodeBuilder, bound: Bound, addressing: Addressing) -> None:
        self.at, self.alg, self.code, self.bound, self.addressing = at, at.alg, at.code, bound, addressing
        self.width = at.width
        self.in_cluster = False
        self.access = Access(Verb.READ, Space.GENERIC)

    def checked(self, access: Access, space: Space, raw: Raw, size: int) -> str:
        """Check an access; returns its pointer if it is uniform, else nothing."""
        self.access, writing = access, access.verb is not Verb.READ
        if isinstance(raw, Affine) and raw.bank is not None and 0 <= raw.bank <= self.at.bank_size - size and not writing:
            return self.code.emit(f"getelementptr i8, ptr %params, i64 {raw.bank}")
        if self.at.kernel.trusted:
            return self.addressing.pointer(space, raw) if isinstance(raw, Affine) and not raw.terms else ""
        mbarrier_checks.spared(self.at, access, space, raw, self.addressing, size)
        span = self.span(space, raw, size)
        site = self.at.site(self.bound, space, size, span, writing=writing)
        if writing:
            stored_pointers.check(self.at, self.addressing, self.bound, access, space, raw)
        if space is Space.GENERIC and self.at.kernel.reaches_local_anywhere:
            self._check_apart(site, raw, size)
            variable_bounds.check(self.at, self.addressing, self.bound, space, raw, size)
            return self.addressing.pointer(space, raw) if isinstance(raw, Affine) and not raw.terms else ""
        if self.at.kernel.tagged and space not in WINDOWS and self._is_anywhere(raw):
            self._compare_in_turns(site, space, raw, size)
            variable_bounds.check(self.at, self.addressing, self.bound, space, raw, size)
            return ""
        # Under the checks the first access of a site has its allocation saved, and the place of its tags found.
        asks = self.at.kernel.tagged or (self.at.kernel.shadow is not None and writing)
        within = not asks and variable_bounds.certain(self.at, space, raw, size, writing=writing)
        if not within and not self._compared_together(space, raw, size):
            if self.at.kernel.tagged or not variable_bounds.in_own_stack(self.at, self.addressing, space, raw, size):
                self._compare(site, space, raw, size)
            variable_bounds.check(self.at, self.addressing, self.bound, space, raw, size)
        self._check_tags(site, space, raw, size)
        if isinstance(raw, Affine) and not raw.terms:
            return self.addressing.pointer(space, raw)
        return ""

    def _check_tags(self, site: int, space: Space, raw: Raw, size: int) -> None:
        if self.at.kernel.shadow is not None:
            check = ShadowCheck(self.at, self.addressing, self.at.kernel.shadow, in_cluster=self.in_cluster)
            check.check(site, space, raw, size, self.access)
            told_order.accessed(self.at, self.addressing, self.bound, self.access, space, raw)

    def _check_apart(self, site: int, raw: Raw, size: int) -> None:
        """Check lanes that reach their own local memory apart from the others: it has marks in place of tags."""
        at, code, word = self.at, self.code, f"i{self.width}"
        at.needs_local()
        offset = self.alg.integer("sub", u64, raw, self.addressing.base(Space.LOCAL))
        inside = self.alg.compare("le", u64, offset, Affine(at.kernel.stack_size - size))
        aligned = self.alg.compare("eq", u64, self.alg.integer("and", u64, offset, Affine(size - 1)), Affine(0))
        lanes = at.active_vector()
        own = code.mask_bits(self.alg.vector(pred, self.alg.integer("and", pred, inside, aligned)))
        active = "-1" if lanes is None else code.mask_bits(lanes)
        own = code.emit(f"and {word} {own}, {active}")
        others = code.emit(f"xor {word} {own}, {active}")
        for some, reached, place in ((own, Space.LOCAL, offset), (others, Space.GENERIC, raw)):
            there, onward = code.label(), code.label()
            code.branch(code.emit(f"icmp ne {word} {some}, 0"), there, onward, likely=None)
            with code.scope():
                code.block(there)
                with at.among(self._lanes(some)):
                    if reached is Space.LOCAL:
                        self._check_tags(site, reached, place, size)
                    elif self._is_anywhere(place):
                        self._compare_in_turns(site, reached, place, size)
                    else:
                        self._compare(site, reached, place, size)
                        self._check_tags(site, reached, place, size)
                code.jump(onward)
            code.block(onward)

    def _compared_together(self, space: Space, raw: Raw, size: int) -> bool:
        """Is the access covered by a check of the window, or of its variable, that other accesses of the node share?"""
        if space is not Space.SHARED or self.bound in self.at.kernel.graph.bounded.marked:
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
        records = self.records(space) and not self._is_uniform(raw)
        quick, allowed = (code.label(), code.label()) if records else (onward, onward)
        code.branch(good, quick, slow, likely=True)
        with code.scope():
            code.block(slow)
            self.at.stores.write_aside()
            self._slow(site, space, raw, size, allowed)
        if records:
            with code.scope():
                code.block(allowed)
                self._touched(self.access, space).of_lanes(raw, size)
                code.jump(onward)
            with code.scope():
                code.block(quick)
                self._touched(self.access, space).of_site(site, raw, size)
                code.jump(onward)
        code.block(onward)
        if self.records(space) and isinstance(raw, Affine) and not records:
            self._touched(self.access, space).of_address(raw, size)

    # ── lanes in several allocations ────────────────────────────────────────────────────

    def _is_anywhere(self, raw: Raw) -> bool:
        """May lanes well access several allocations: is their address no sum of one that they share and an index?"""
        return isinstance(raw, Varying) and raw.name not in self.alg.scaled

    def _compare_in_turns(self, site: int, space: Space, raw: Raw, size: int) -> None:
        """Check the lanes of one allocation after those of another, since each has tags of its own."""
        code, word = self.code, f"i{self.width}"
        lanes, left, turn = self.at.active_vector(), self.at.buffer(word, 18), self.at.buffer(word, 19)
        head, slow, found, done = (code.label() for _ in range(4))
        code.run(f"store {word} {'-1' if lanes is None else code.mask_bits(lanes)}, ptr {left}, align 8")
        code.jump(head)
        with code.scope():
            code.block(head)
            rest = code.emit(f"load {word}, ptr {left}, align 8", pure=False)
            code.run(f"store {word} {rest}, ptr {turn}, align 8")
            with self.at.among(self._lanes(rest)):
                good = self._good(site, raw, size)
            code.branch(good, found, slow, likely=True)
            with code.scope():
                code.block(slow)
                self.at.stores.write_aside()
                self._find(site, space, raw, size, rest, turn)
                code.jump(found)
            code.block(found)
            now = code.emit(f"load {word}, ptr {turn}, align 8", pure=False)
            with self.at.among(self._lanes(now)):
                self._check_tags(site, space, raw, size)
            rest = code.emit(f"xor {word} {rest}, {now}")
            code.run(f"store {word} {rest}, ptr {left}, align 8")
            code.branch(code.emit(f"icmp eq {word} {rest}, 0"), done, head, likely=True)
        code.block(done)

    def _find(self, site: int, space: Space, raw: Raw, size: int, rest: str, turn: str) -> None:
        """Let the site have the allocation of the first lane left: it is the turn of all lanes that are in it."""
        code, word, kept, some = self.code, f"i{self.width}", self.code.label(), self.code.label()
        first = code.emit(f"and {word} {rest}, {code.emit(f'sub {word} 0, {rest}')}")
        with self.at.among(self._lanes(first)):
            code.branch(self._asked(site, space, raw, size), kept, "fault", likely=True)
        code.block(kept)
        self.at.reload_site(site)
        low, bound = (self.at.site_field(site, n) for n in (0, 2))
        outside = gather_checks.outside(code, u64, self.alg.vector(u64, raw), size.bit_length() - 1, low, bound)
        inside = code.emit(f"and {word} {rest}, {code.emit(f'xor {word} {outside}, -1')}")
        code.run(f"store {word} {inside}, ptr {turn}, align 8")
        code.branch(code.emit(f"icmp ne {word} {inside}, 0"), some, "suspect", likely=True)
        code.block(some)

    def _lanes(self, mask: str) -> Varying:
        """A mask of lanes as a predicate."""
        return Varying(self.code.emit(f"bitcast i{self.width} {mask} to <{self.width} x i1>"))

    # ── what is noted ───────────────────────────────────────────────────────────────────

    def records(self, space: Space) -> bool:
        """Does the code note what it accesses in a space?"""
        return self.at.kernel.recorded and space in (Space.GLOBAL, Space.GENERIC)

    def _touched(self, access: Access, space: Space) -> TouchedBytes:
        return TouchedBytes(self.at, self.addressing, replace(access, space=space))

    def _is_uniform(self, raw: Raw) -> bool:
        """Do all lanes access one address, and is there such a lane?"""
        return isinstance(raw, Affine) and not raw.terms and not isinstance(self.at.guard, Varying)

    def record_run(self, access: Access, space: Space, each: int, first: Raw, size: int) -> None:
        """Note loads of neighbouring elements, which are all in the last allocation of their site."""
        touched = self._touched(access, space)
        if isinstance(first, Affine) and self._is_uniform(first):
            touched.of_address(first, size)
        else:
            touched.of_site(self.at.site(self.bound, space, each, self.span(space, first, each), writing=False), first, size)

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
        code, tagged = self.code, self.at.kernel.tagged
        allowed = self._asked(site, space, raw, size)
        if not self.at.caches_bounds and (not tagged or space in WINDOWS):
            code.branch(allowed, onward, "fault", likely=True)
            return
        kept = code.label()
        code.branch(allowed, kept, "fault", likely=True)
        code.block(kept)
        self.at.reload_site(site)
        if not tagged or space in WINDOWS:
            code.jump(onward)
            return
        # All lanes must be in one allocation, whose tags the site has now.
        code.branch(self._exact(site, space, raw, size), onward, "suspect", likely=True)

    def _asked(self, site: int, space: Space, raw: Raw, size: int) -> str:
        """Is the access of the active lanes allowed?"""
        code, lanes = self.code, self.at.active_vector()
        shape = self._shape(site, space, raw, size)
        words = [(slow_path.SITE, "i64", str(site))]
        if lanes is not None:
            words += [(slow_path.MASKS + n, "i32", code.warp_bits(lanes, n)) for n in code.warps()]
        if isinstance(raw, Affine):
            known = (raw.base, *(u for _, u in raw.moving))
            words += [(slow_path.ADDRESS + n, "i64", text("i64", u)) for n, u in enumerate(known)]
        else:
            held = f"<{self.width} x i64>"
            lanes_at = self.alg.vector(u64, self.alg.low_half(raw) if space in WINDOWS else raw)
            where = code.emit(f"getelementptr i64, ptr {slow_path.ROOM}, i64 {slow_path.ADDRESS}")
            code.run(f"store {held} {lanes_at}, ptr {where}, align 64")
        return slow_path.ask(code, shape, "" if shape.asks_host else allocation_search.helper(self.at.kernel), words)

    def _shape(self, site: int, space: Space, raw: Raw, size: int) -> slow_path.CheckKind:
        """The shape of the question that the slow path asks."""
        full, window, kernel = self.at.active_vector() is None, space in WINDOWS, self.at.kernel
        fixed = isinstance(raw, Affine) and constant_offsets(raw, self.width) is not None
        tests_lanes = isinstance(raw, Affine) and bool(raw.terms) and not (full and fixed)
        found, noted = kernel.sites.all[site], kernel.shadow is not None  # the host saves what is written
        return slow_path.CheckKind(
            width=self.width,
            terms=tuple((k, u if isinstance(u, int) else None) for k, u in raw.terms) if isinstance(raw, Affine) else None,
            window=self._window_bound(space, size) if window else None,
            asks_host=window, tests_lanes=tests_lanes, full=full,
            size=size, span=found.span, need=allocation_search.need(space, self.access.verb, noted=noted),
        )  # fmt: skip

    def span(self, space: Space, raw: Raw, size: int) -> int:
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

    def good_run(self, space: Space, first: Raw, size: int, extent: int) -> str:
        """Are accesses of a size, side by side over an extent, in the window, or in the last allocation of the first one?"""
        log = size.bit_length() - 1
        more = extent - size >> log
        if space in WINDOWS:
            low = self.alg.cast("resize", u64, u32, first, "rn")
            return self._all_lanes(u32, low, log, "0", str(max(self._window_bound(space, size) - more, 0)))
        site = self.at.site(self.bound, space, size, self.span(space, first, size), writing=False)
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

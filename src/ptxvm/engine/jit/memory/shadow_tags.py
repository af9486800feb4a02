"""Shadow memory of instrumented code: epoch and thread of the last write and read of each cell, for the race check.

A cell is a few bytes of shared or global memory, no more than the smallest access of the kernel.  It has two tags of 32 bits,
for its last write and for its reads: `epoch << 11 | thread`.  CTAs run one after the other, but where some wait for others.
An epoch ends at a barrier of all threads of a CTA, or where another CTA runs.  So accesses of one CTA in different epochs are
ordered, and accesses of different CTAs never are, unless threads tell each other of them (`told_order`).  An access is
*suspicious* unless the tags show that it is ordered after the accesses that left them; then the kernel stops, and the exact
checker runs it (`checks.prefilter`).  Tags are coarser than happens-before: collectives, and release and acquire, order
nothing here.

Where barriers are for some of the threads, each warp has an epoch of its own: `tag_order` and `cta_clocks`.

Memory of which a tag would tell nothing has none, and its accesses skip the check: the sites that reach it have no
displacement (`checks.observed_launch`).

Local memory has marks in place of tags (`local_marks`).  Generic addresses of it are suspicious.

Strong accesses and atomics of one size leave a tag of their own kind, which other accesses of that kind do not suspect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxvm.algebra.memory_order import Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.memory import cta_clocks, told_order
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.lane_offsets import Chunk, constant_offsets, pieces
from ptxvm.engine.jit.memory.local_marks import LocalMarks
from ptxvm.engine.jit.memory.pending_copies import PendingCopies, pending
from ptxvm.engine.jit.memory.tag_check import TagCheck
from ptxvm.engine.jit.memory.tag_order import FenceOrder
from ptxvm.engine.jit.memory.tags import EPOCH, MANY, NEVER, OF_WARP, PENDING, STRONG, UNTAGGED, WITHIN_CTA
from ptxvm.engine.jit.node.instrumentation import GRAIN
from ptxvm.isa.effects import Access, Verb
from ptxvm.isa.special_registers import WARP

WIDE = (Scope.GPU, Scope.SYS)


@dataclass(frozen=True, slots=True)
class LaneTags:
    """The tags of `count` cells of each lane, which are loaded and stored as the lanes' own elements are."""

    addressing: Addressing
    space: Space
    places: Raw
    count: int

    def load(self) -> list[str]:
        """The tags of the first cells of all lanes, of the second ones, and so on."""
        return self.addressing.load(self.space, "i32", GRAIN, self.places, self.count)

    def store(self, tags: list[str]) -> None:
        """Leave tags."""
        self.addressing.store(self.space, "i32", GRAIN, self.places, tags)


class ShadowCheck(TagCheck):
    """Writes the check of an access against the tags of its cells, and their update."""

    def check(self, site: int, space: Space, raw: Raw, size: int, access: Access) -> None:
        """Check an access before it happens; a suspicious one ends the kernel."""
        if space is Space.LOCAL and self.at.kernel.marks_local:
            self.site, self._wrong = site, {}
            self._marks(raw, size, access)
            return
        if space not in (Space.SHARED, Space.GLOBAL, Space.GENERIC) or not (self.shadow.race or self.shadow.init):
            return
        self.shadow.note(space, access.element)
        self.own = space is Space.SHARED
        self.site, self.space = site, space
        self.cells = max(size // self.shadow.grain[self.own], 1)
        self.verb, self.coherent, self.late, self._wrong = access.verb, access.coherent, access.asynchronous, {}
        self._moved, self._observed = self._displacement(), False
        if access.strong:
            told_order.may_observe(self.at)
        if space is Space.GENERIC and self.shadow.race:
            cta_clocks.cluster_reached(self.at, raw)
        if self.own:
            self._check_cells(raw, size, access)
            return
        with self._where(self.code.emit(f"icmp ne i64 {self._moved}, {UNTAGGED}"), likely=None):
            self._check_cells(raw, size, access)

    def _check_cells(self, raw: Raw, size: int, access: Access) -> None:
        """Check an access of cells that have tags."""
        self.order = self._order()
        if access.strong:
            self._strong_lanes(raw, access)
        else:
            affine = self.addressing.affine(self.space, raw)
            cut = pieces(affine, size, self.width) if affine is not None else None
            if affine is not None and cut is not None:
                self._pieces([(piece, self.addressing.piece_pointer(self.space, affine, piece)) for piece in cut])
            elif affine is None or not self._shared_rows(self.space, affine, size, access):
                self._lanes(raw)
        self._leave()
        if self.late and self.verb is Verb.WRITE:
            PendingCopies(self.at).started(self._cells(raw, 0), self.cells)

    def _marks(self, raw: Raw, size: int, access: Access) -> None:
        """Mark the bytes of local memory that are written; suspect lanes that read bytes without a mark."""
        code, count, llvm = self.code, self.width, f"i{8 * access.element}"
        marks = LocalMarks(self.at, self.addressing)
        written = f"splat ({llvm} -1)"
        if access.verb is Verb.WRITE:
            marks.store(llvm, access.element, raw, [written] * (size // access.element))
            return
        for found in marks.load(llvm, access.element, raw, size // access.element):
            wrong = code.emit(f"icmp ne <{count} x {llvm}> {found}, {written}")
            self._suspect(count, wrong, self.at.active_vector())
        self._leave()

    # ── chunks ──────────────────────────────────────────────────────────────────────────

    def _pieces(self, cut: list[tuple[Chunk, str]]) -> None:
        """Check chunks: cells that are contiguous, or shared by lanes."""
        whole = self.at.active_vector() is None
        pointers = [pointer for _, pointer in cut]
        for n, (piece, pointer) in enumerate(cut):
            if whole and pointers.index(pointer) < n:
                continue
            if whole and (pointers.count(pointer) > 1 or (not piece.contiguous and piece.count > 1)):
                self._several(piece, pointer)
            elif piece.contiguous:
                self._contiguous(piece, pointer)
            else:
                self._one_address(piece, pointer)

    def _several(self, piece: Chunk, pointer: str) -> None:
        """Check a chunk whose cells several lanes access."""
        count = self.cells * (piece.count if piece.contiguous else 1)
        if self.verb is Verb.WRITE and self.shadow.race:
            self._suspect(1, "true")
            return
        self._tags(count, self._cell(pointer), None, None)

    def _shared_rows(self, space: Space, raw: Affine, size: int, access: Access) -> bool:
        """Check rows of elements each of which several lanes read; is it such an access?"""
        plan = None
        if access.verb is Verb.READ:
            plan = self.addressing.plan(raw, access.element, size // access.element, writing=False)
        if plan is None:
            return False
        readers: dict[tuple[int, int], set[int]] = {}
        for n, position in enumerate(plan.positions):
            readers.setdefault(position, set()).add(n % self.width)
        if len(readers) < sum(row.count for row in plan.rows) or any(len(lanes) == 1 for lanes in readers.values()):
            return False
        each = max(access.element // self.shadow.grain[self.own], 1)
        for row, pointer in zip(plan.rows, self.addressing.row_pointers(space, raw, plan), strict=True):
            self._tags(row.count * each, self._cell(pointer), None, None)
        return True

    def _contiguous(self, piece: Chunk, pointer: str) -> None:
        """Check a chunk in which each lane has its own cells."""
        count = piece.count * self.cells
        threads = [piece.first + n // self.cells for n in range(count)]
        self._tags(count, self._cell(pointer), self.order.mine(threads), self.addressing.mask(piece, self.cells))

    def _one_address(self, piece: Chunk, pointer: str) -> None:
        """Check one address for the active lanes of a chunk: none, one or several."""
        code, word = self.code, f"i{self.width}"
        lanes = self.at.active_vector()
        bits = code.mask_bits(lanes) if lanes is not None else "-1"
        own = code.emit(f"and {word} {bits}, {((1 << piece.count) - 1) << piece.first}")
        rest = code.emit(f"and {word} {own}, {code.emit(f'sub {word} {own}, 1')}")
        alone = code.emit(f"icmp eq {word} {rest}, 0")
        idle = code.emit(f"icmp eq {word} {own}, 0")
        lane = code.intrinsic(word, f"llvm.cttz.{word}", (word, own), ("i1", "false"))
        lane = lane if self.width == 32 else code.emit(f"{'trunc' if self.width > 32 else 'zext'} {word} {lane} to i32")
        thread = code.emit(f"add i32 {self.order.first()}, {lane}")
        mine = code.emit(f"select i1 {alone}, i32 {thread}, i32 {self.order.many()}")
        spare = self.at.buffer(f"<{self.width} x i64>", 0)
        cells = code.emit(f"select i1 {idle}, ptr {spare}, ptr {self._cell(pointer)}")
        busy = code.emit(f"xor i1 {idle}, true")
        if self.verb is Verb.WRITE and self.shadow.race:
            self._suspect(1, code.emit(f"xor i1 {alone}, true"))
        reads = code.emit(f"select i1 {idle}, ptr {spare}, ptr {self._reads(self._cell(pointer))}")
        self._tags(self.cells, cells, self.every(self.cells, mine), self.every(self.cells, busy, "i1"), reads)

    def _tags(self, count: int, cells: str, mine: str | None, mask: str | None, reads: str = "") -> None:
        """Check contiguous cells and update their tags; without `mine`, for several threads."""
        wrote = self._load(count, cells, mask)
        self._look_at(cells)
        self._suspect(count, self._suspicious(count, wrote, mine, writes=True), mask)
        if not self.shadow.race:
            if self.verb is Verb.WRITE and not self.late:
                self._store(count, self.every(count, "0"), cells, mask)
            return
        reads = reads or self._reads(cells)
        if self.verb is Verb.WRITE:
            read = self._load(count, reads, mask)
            self._suspect(count, self._suspicious(count, read, mine, writes=False), mask)
            self._store(count, self._left(count, str(mine)), cells, mask)
            return
        if self.late:
            self._store(count, self.every(count, self.order.grid()), reads, mask)
            return
        if mine is None and self.own and not self.at.kernel.clocked:  # whichever lanes have read it in this epoch
            self._store(count, self.every(count, self.order.many()), reads, mask)
            return
        read = self._load(count, reads, mask)
        self._store(count, self.order.readers(count, read, mine), reads, mask)

    # ── gathers and scatters ────────────────────────────────────────────────────────────

    def _lanes(self, raw: Raw) -> None:
        """Check each lane by itself; two lanes may share a cell."""
        mask, count = self.at.active_vector(), self.width
        mine, tags = self.order.mine(range(count)), self._lane_tags(raw, self._moved)
        for n, wrote in enumerate(tags.load()):
            self._look_at_lanes(raw, n)
            self._suspect(count, self._suspicious(count, wrote, mine, writes=True), mask)
        if not self.shadow.race:
            if self.verb is Verb.WRITE and not self.late:
                tags.store([self.every(count, "0")] * self.cells)
            return
        reads = self._lane_tags(raw, self.code.emit(f"add i64 {self._moved}, {self._distance()}"))
        if self.verb is Verb.WRITE:
            for n, read in enumerate(reads.load()):
                self._look_at_lanes(raw, n)
                self._suspect(count, self._suspicious(count, read, mine, writes=False), mask)
            left = [self._left(count, mine)] * self.cells
            tags.store(left)
            for lost in self._lost(tags, raw, left):
                self._suspect(count, lost, mask)
        elif self.late:
            reads.store([self.every(count, self.order.grid())] * self.cells)
        else:
            self._read_by_lanes(reads, raw, mine)

    def _read_by_lanes(self, reads: LaneTags, raw: Raw, mine: str) -> None:
        """Leave the tags of reads; those that say it already stay, and what several lanes read is marked."""
        code, mask, count = self.code, self.at.active_vector(), self.width
        before, made = reads.load(), list[str]()
        for n, read in enumerate(before):
            self._look_at_lanes(raw, n)
            made.append(self.order.readers(count, read, mine))
        changes = [code.emit(f"icmp ne <{count} x i32> {old}, {new}") for old, new in zip(before, made, strict=True)]
        with self._where(self._some(changes, mask), likely=None):
            reads.store(made)
            for n, lost in enumerate(self._lost(reads, raw, made)):
                with self._where(self._some([lost], mask), likely=False):
                    again = lost if mask is None else self.both(count, lost, mask)
                    if isinstance(self.order, FenceOrder):
                        again = self._but_crowds(self.order, self._reads(self._cells(raw, n), count), made[n], again)
                    self.at.scatter("i32", self.every(count, self.order.many()), self._reads(self._cells(raw, n), count), again)

    def _but_crowds(self, order: FenceOrder, cells: str, made: str, lost: str) -> str:
        """Of the lanes whose tag of reads is lost, those in whose place none of several CTAs is; those with one are suspect."""
        count, code = self.width, self.code
        stays = order.crowd(count, self.at.gather("i32", cells, lost))
        others = self.both(count, lost, code.emit(f"xor <{count} x i1> {stays}, splat (i1 true)"))
        self.at.suspect_where(self._any(count, self.both(count, others, order.crowd(count, made))))
        return others

    def _some(self, wrong: list[str], mask: str | None) -> str:
        """Is one of some predicates true for an active lane?"""
        code, count = self.code, self.width
        found, *more = wrong
        for each in more:
            found = code.emit(f"or <{count} x i1> {found}, {each}")
        return self._any(count, found if mask is None else self.both(count, found, mask))

    @contextmanager
    def _where(self, condition: str, *, likely: bool | None) -> Iterator[None]:
        """Code that runs if a condition holds."""
        there, onward = self.code.label(), self.code.label()
        self.code.branch(condition, there, onward, likely=likely)
        with self.code.scope():
            self.code.block(there)
            yield
            self.code.jump(onward)
        self.code.block(onward)

    def _lane_tags(self, raw: Raw, moved: str) -> LaneTags:
        """The tags of each lane's cells, at a distance from the address, which is scaled to cells."""
        alg, shift, bound = self.at.alg, self._shift(), self.addressing.bound
        scaled = alg.integer("shl", u64, raw, Affine(shift)) if shift else raw
        if not self.own:
            return LaneTags(Addressing(self.at, bound), self.space, alg.integer("add", u64, scaled, Affine(moved)), self.cells)
        start = self.code.emit(f"shl i64 {self.code.emit('ptrtoint ptr %shared to i64')}, {shift}")
        window = self.code.emit(f"inttoptr i64 {self.code.emit(f'add i64 {start}, {moved}')} to ptr")
        return LaneTags(Addressing(self.at, bound, window), self.space, scaled, self.cells)

    def _left(self, count: int, mine: str) -> str:
        """The tags that a write leaves: of a copy that goes on beside the threads, those of pending ones."""
        return pending(self.at, mine, count) if self.late else mine

    def _lost(self, tags: LaneTags, raw: Raw, made: list[str]) -> list[str]:
        """For each cell the lanes whose tag another lane has overwritten; nothing where no two lanes share a cell."""
        offsets, grain = constant_offsets(raw, self.width) if isinstance(raw, Affine) else None, self.shadow.grain[self.own]
        if offsets is not None:
            cells = {offset // grain + n for offset in offsets for n in range(self.cells)}
            if len(cells) == self.width * self.cells and not any(offset % grain for offset in offsets):
                return []
        found = zip(tags.load(), made, strict=True)
        return [self.code.emit(f"icmp ne <{self.width} x i32> {left}, {mine}") for left, mine in found]

    def _strong_lanes(self, raw: Raw, access: Access) -> None:
        """Check strong accesses, which do not suspect others of their kind."""
        self.shadow.scheduled = True
        scope, one_cta = access.scope or Scope.SYS, self.at.kernel.cluster_size == 1
        within = scope not in WIDE and not self.own and not self.in_cluster
        if within and not one_cta:
            self.shadow.doubts.add(f"strong accesses of scope .{scope} outside shared memory in a cluster")
        elif scope is Scope.CTA and not one_cta and access.mbarrier is None:
            self.shadow.doubts.add("strong accesses of scope .cta in a cluster, to which those of other CTAs are weak")
        kind = STRONG + access.element.bit_length() + (WITHIN_CTA if within else 0)
        for n in range(self.cells):
            cells = self._cells(raw, n)
            if self.shadow.race:
                self._strong_cells(cells, access, kind, within=within)
            else:
                self._given_cells(cells, access)

    def _given_cells(self, cells: str, access: Access) -> None:
        """Check that a cell of each lane has a value; after a write it has one."""
        count, mask = self.width, self.at.active_vector()
        wrote = self.at.gather("i32", cells, mask)
        self._suspect(count, self._suspicious(count, wrote, None, writes=True), mask)
        if access.verb is not Verb.READ:
            self.at.scatter("i32", self.every(count, "0"), cells, mask)

    def _strong_cells(self, cells: str, access: Access, kind: int, *, within: bool) -> None:
        """Check a cell of each lane against other accesses."""
        code, count, mask, llvm = self.code, self.width, self.at.active_vector(), self.type(self.width)
        wrote, read = (self.at.gather("i32", each, mask) for each in (cells, self._reads(cells, count)))
        mine = self.order.mine(range(count))
        self._look_at(cells, count)
        low = code.emit(f"and {llvm} {wrote}, {self.every(count, str(EPOCH - 1))}")
        other = code.emit(f"icmp ne {llvm} {low}, {self.every(count, str(kind))}")
        of_warp = self.order.of_warp(kind)
        if of_warp:
            other = self.both(count, other, code.emit(f"icmp ne {llvm} {low}, {self.every(count, of_warp)}"))
        if self.at.kernel.logs_copies:
            under_way = code.emit(f"icmp uge {llvm} {wrote}, {self.every(count, str(PENDING))}")
            other = code.emit(f"or <{count} x i1> {other}, {under_way}")
        own = self._in_own_window()
        unordered = self.both(count, other, self.order.strong_unordered(count, wrote, own=own, within=within))
        readers = self._suspicious(count, read, mine, writes=False)
        marker = self.order.alone(kind) if own else ""
        if marker:
            other = code.emit(f"icmp ne {llvm} {read}, {self.every(count, marker)}")
            unordered, readers = self.both(count, unordered, other), self.both(count, readers, other)
        unsettled = self.order.unsettled(count, wrote)
        unsettled = unsettled and self.both(count, other, unsettled)
        if access.verb is Verb.READ and (unsettled or isinstance(self.order, FenceOrder)):
            mask = self._weak_reads(cells, (wrote, read), unsettled or self._plain(wrote, low))
            told_order.observes(self.at, mask, first=not self._observed)
            self._observed = True
        for wrong in (unordered, readers):
            self._suspect(count, wrong, mask)
        if within:
            self._suspect(count, self.order.of_another_cta(count, wrote), mask)
        if self.shadow.init and access.verb is not Verb.WRITE:
            self._suspect(count, code.emit(f"icmp eq {llvm} {wrote}, {self.every(count, str(NEVER))}"), mask)
        made = self.order.strong(count, wrote, kind)
        if of_warp:
            made = self._kept_of_warp(low, made, (kind, of_warp), "" if access.verb is Verb.READ else unsettled)
        if marker and access.verb is not Verb.UPDATE:
            self._leave_alone(cells, (wrote, read), (made, mine, marker), own)
        else:
            self.at.scatter("i32", made, cells, mask)

    def _kept_of_warp(self, low: str, made: str, kinds: tuple[int, str], unsettled: str) -> str:
        """The new tags of strong accesses, where this warp knows of a write that others do not know.

        They say that it is this warp alone, if the write was its own too; else a later access might miss the write.
        """
        code, count, llvm = self.code, self.width, self.type(self.width)
        kind, of_warp = kinds
        again = code.emit(f"icmp eq {llvm} {low}, {self.every(count, of_warp)}")
        if unsettled:
            apart = code.emit(f"xor {llvm} {low}, {self.every(count, code.emit(f'sub i32 {of_warp}, {kind + OF_WARP}'))}")
            own = self.both(count, unsettled, code.emit(f"icmp ult {llvm} {apart}, {self.every(count, str(WARP))}"))
            foreign = self.both(count, unsettled, code.emit(f"xor <{count} x i1> {own}, splat (i1 true)"))
            self._suspect(count, foreign, self.at.active_vector())
            again = code.emit(f"or <{count} x i1> {again}, {own}")
        left = self.every(count, code.emit(f"or i32 {self.order.now()}, {of_warp}"))
        return code.emit(f"select <{count} x i1> {again}, {llvm} {left}, {llvm} {made}")

    def _plain(self, wrote: str, low: str) -> str:
        """The lanes whose cell a weak store of the grid has written last."""
        plain = self.code.emit(f"icmp ule {self.type(self.width)} {low}, {self.every(self.width, str(MANY))}")
        return self.both(self.width, plain, self.order.of_the_grid(self.width, wrote))

    def _weak_reads(self, cells: str, tags: tuple[str, str], plain: str) -> str:
        """Check strong loads of some lanes as weak loads, so that the tag of the write stays; returns the other lanes."""
        code, count, mask, order = self.code, self.width, self.at.active_vector(), self.order
        mine = order.mine(range(count))
        plain = plain if mask is None else self.both(count, plain, mask)
        none = f"{self.type(count)} zeroinitializer"
        wrote, read = (code.emit(f"select <{count} x i1> {plain}, {self.type(count)} {each}, {none}") for each in tags)
        self._suspect(count, order.unordered(count, wrote, mine, writes=True), plain)
        self.at.scatter("i32", order.readers(count, read, mine), self._reads(cells, count), plain)
        others = code.emit(f"xor <{count} x i1> {plain}, splat (i1 true)")
        return others if mask is None else self.both(count, others, mask)

    def _leave_alone(self, cells: str, before: tuple[str, str], after: tuple[str, str, str], own: str) -> None:
        """Leave the tags of strong loads or stores; a cell that only one thread has accessed gets its tag, and a marker.

        So its weak loads are right.  Lanes of one access that share a cell are several threads.  Only cells of the CTA's `own`
        memory are marked: strong accesses of other CTAs would suspect the tag of a thread.
        """
        code, count, mask = self.code, self.width, self.at.active_vector()
        llvm, bits = self.type(count), self.type(count, "i1")
        (wrote, read), (made, mine, marker) = before, after
        now, marked = self.every(count, self.order.now()), self.every(count, marker)
        unused = self.both(count, *(code.emit(f"icmp ult {llvm} {tag}, {now}") for tag in before))
        again = self.both(count, code.emit(f"icmp eq {llvm} {wrote}, {mine}"), code.emit(f"icmp eq {llvm} {read}, {marked}"))
        single = self.both(count, code.emit(f"or {bits} {unused}, {again}"), self.every(count, own, "i1"))
        self.at.scatter("i32", code.emit(f"select {bits} {single}, {llvm} {mine}, {llvm} {made}"), cells, mask)
        single = single if mask is None else self.both(count, single, mask)
        self.at.scatter("i32", marked, self._reads(cells, count), single)
        lost = self.both(count, single, code.emit(f"icmp ne {llvm} {self.at.gather('i32', cells, mask)}, {mine}"))
        self.at.scatter("i32", made, cells, lost)

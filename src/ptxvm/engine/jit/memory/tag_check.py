"""The check of tags: what each access does with the tags of its cells (`shadow_tags`) is made of these steps."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.tag_order import CellVectors, ClockOrder, EpochOrder, FenceOrder, TagOrder
from ptxvm.engine.jit.memory.tags import NEVER
from ptxvm.engine.jit.node.instrumentation import GRAIN, Shadow
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Verb


class TagCheck(CellVectors):
    """The suspicions of one access, and the places of its tags.

    The addresses of accesses that are `in_cluster` are generic, and known to be in the shared memory of the cluster; `own`
    says that the cells are in shared memory, `late` that the access goes on beside the threads.
    """

    own = coherent = late = _observed = False
    site = cells = 0
    space, verb = Space.GENERIC, Verb.READ
    order: TagOrder

    def __init__(self, at: NodeBuilder, addressing: Addressing, shadow: Shadow, *, in_cluster: bool = False) -> None:
        super().__init__(at.code)
        self.at, self.addressing, self.shadow, self.in_cluster = at, addressing, shadow, in_cluster
        self.width = at.code.width
        self._wrong: dict[int, str] = {}  # the suspicions so far, by the number of cells in a vector
        self._moved = ""  # the distance from an address, scaled to cells, to its tag

    # ── the order ───────────────────────────────────────────────────────────────────────

    def _order(self) -> TagOrder:
        kernel, own = self.at.kernel, self.own or self.in_cluster
        if kernel.follows_fences:
            order = FenceOrder(self.at, own=own)
            order.changes = self.verb is not Verb.READ
            return order
        return (ClockOrder if kernel.clocked else EpochOrder)(self.at, own=own)

    def _look_at(self, cells: str, count: int = 1) -> None:
        """Tell the order of which cells the next tags are; their addresses are a vector for `count` lanes."""
        if isinstance(self.order, FenceOrder):
            self.order.cells = cells if count == 1 else f"<{count} x ptr> {cells}"

    def _look_at_lanes(self, raw: Raw, number: int) -> None:
        """The same for a cell of each lane."""
        if isinstance(self.order, FenceOrder):
            self._look_at(self._cells(raw, number), self.width)

    # ── rules ───────────────────────────────────────────────────────────────────────────

    def _suspicious(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Is the access behind a tag not ordered before this one, or is the cell uninitialised where it is read?"""
        code, llvm = self.code, self.type(count)
        found = self._not_before(count, tag, mine, writes=writes) if self.shadow.race else self.every(count, "false", "i1")
        if not (self.shadow.init and writes and self.verb is not Verb.WRITE):
            return found
        never = code.emit(f"icmp eq {llvm} {tag}, {self.every(count, str(NEVER))}")
        return code.emit(f"or {self.type(count, 'i1')} {found}, {never}") if self.shadow.race else never

    def _not_before(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Is the access behind a tag not ordered before this one?"""
        if writes and not self.coherent:  # a texture read is never ordered after writes of the grid (PTX 2.3)
            return self.order.of_the_grid(count, tag)
        return self.order.unordered(count, tag, mine, writes=writes)

    def _suspect(self, count: int, wrong: str, mask: str | None = None) -> None:
        """Collect a suspicion of the active lanes."""
        if mask is not None:
            wrong = self.both(count, wrong, mask)
        old = self._wrong.get(count)
        self._wrong[count] = wrong if old is None else self.code.emit(f"or {self.type(count, 'i1')} {old}, {wrong}")

    def _leave(self) -> None:
        """End the kernel if there is a suspicion."""
        code = self.code
        if not self._wrong:
            return
        found, *more = [self._any(count, wrong) for count, wrong in self._wrong.items()]
        for each in more:
            found = code.emit(f"or i1 {found}, {each}")
        good, bad = code.label(), code.label()
        code.branch(found, bad, good, likely=False)
        with code.scope():
            code.block(bad)
            code.run(f"store i32 {self.site + 2}, ptr {self.at.kernel.launch_field_pointer(code, 'suspicion')}, align 8")
            code.jump("fault")
        code.block(good)

    # ── tags and cells ──────────────────────────────────────────────────────────────────

    def _in_own_window(self) -> str:
        """Is what the access reaches in the shared memory of its CTA?  Empty where it never is."""
        if self.own:
            return "true"
        if self.space is not Space.GENERIC or self.in_cluster:
            return ""
        # Windows begin on 256 bytes, so that the first element of a site's is where they begin.
        return self.code.emit(f"icmp eq i64 {self.at.site_field(self.site, 0)}, %shared.address")

    def _displacement(self) -> str:
        if self.own:
            where = self.at.kernel.launch_field_pointer(self.code, "shadow")
            return self.code.emit(f"load i64, ptr {where}, align 8")
        return self.at.site_field(self.site, 3)

    def _shift(self) -> int:
        """The logarithm of the distance of two tags in bytes, for each byte between their cells."""
        return (GRAIN // self.shadow.grain[self.own]).bit_length() - 1

    def _cell(self, pointer: str) -> str:
        """The address of the tag of the last write."""
        code, shift = self.code, self._shift()
        if not shift:
            return code.emit(f"getelementptr i8, ptr {pointer}, i64 {self._moved}")
        moved = code.emit(f"shl i64 {code.emit(f'ptrtoint ptr {pointer} to i64')}, {shift}")
        return code.emit(f"inttoptr i64 {code.emit(f'add i64 {moved}, {self._moved}')} to ptr")

    def _cells(self, raw: Raw, number: int) -> str:
        """The addresses of the tags of a cell of each lane."""
        code, shift = self.code, self._shift()
        found, wide = self.addressing.pointers(self.space, raw), f"<{self.width} x i64>"
        if not shift:
            offset = code.emit(f"add i64 {self._moved}, {4 * number}") if number else self._moved
            return code.emit(f"getelementptr i8, <{self.width} x ptr> {found}, i64 {offset}")
        moved = code.emit(f"shl {wide} {code.emit(f'ptrtoint <{self.width} x ptr> {found} to {wide}')}, splat (i64 {shift})")
        offset = code.emit(f"add i64 {self._moved}, {4 * number}")
        addresses = code.emit(f"add {wide} {moved}, {code.splat('i64', offset)}")
        return code.emit(f"inttoptr {wide} {addresses} to <{self.width} x ptr>")

    def _reads(self, cells: str, count: int = 1) -> str:
        """The addresses of the tags of reads, from those of writes."""
        return self.code.emit(
            f"getelementptr i8, {'ptr' if count == 1 else f'<{count} x ptr>'} {cells}, i64 {self._distance()}"
        )

    def _distance(self) -> str:
        """Bytes from the tag of a write to that of reads."""
        return self.code.emit(f"load i64, ptr {self.at.kernel.launch_field_pointer(self.code, 'reads')}, align 8")

    # ── vectors ─────────────────────────────────────────────────────────────────────────

    def _any(self, count: int, wrong: str) -> str:
        if count == 1:
            return wrong
        bits = self.code.emit(f"bitcast <{count} x i1> {wrong} to i{count}")
        return self.code.emit(f"icmp ne i{count} {bits}, 0")

    def _load(self, count: int, cells: str, mask: str | None) -> str:
        if mask is None or count == 1:
            return self.code.emit(f"load {self.type(count)}, ptr {cells}, align 4", pure=False)
        return self.code.masked_load(count, "i32", cells, 4, mask)

    def _store(self, count: int, value: str, cells: str, mask: str | None) -> None:
        if mask is None or count == 1:
            self.code.run(f"store {self.type(count)} {value}, ptr {cells}, align 4")
        else:
            self.code.masked_store(count, "i32", value, cells, 4, mask)

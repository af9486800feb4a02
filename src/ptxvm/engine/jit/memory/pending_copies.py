"""Asynchronous copies under the checks: cells are pending until the thread that started the copy waits for it (PTX 9.7.9.25.3).

Compiled code copies at once.  The cells that a copy writes get a tag that precedes nothing (`tags.PENDING`), so that any access
of them is suspicious; for `init` alone they stay without a value.  A log of each warp has these cells, with the group of the
copy in each lane.  A wait gives the cells of the groups that it waits for the tag of a write that the thread does now; where an
mbarrier will tell of copies, they get that of a write by the agent of the warp (`memory.cta_clocks`).  What a
copy reads stays read for good (`tags.READ_FOR_GOOD`): a write to it in the same grid is suspicious.
"""

from __future__ import annotations

from ptxvm.algebra.value import Value
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.cta_clocks import has_agents
from ptxvm.engine.jit.memory.tag_order import ClockOrder, EpochOrder
from ptxvm.engine.jit.memory.tags import NEVER, PENDING
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP

ENTRIES = 256  # of a log, which a thread may start before it waits
ENTRY = 448  # bytes: the pointers, groups and lanes of a warp, and how many cells each lane has
HEADER = 192  # bytes: the first and the next entry, and the groups that each lane has made
WORDS, POINTERS = f"<{WARP} x i32>", f"<{WARP} x ptr>"


def log_size(kernel: KernelContext) -> int:
    """Bytes of the logs of a CTA or a cluster, the headers first."""
    return kernel.warps_together * (HEADER + ENTRIES * ENTRY)


def header_size(kernel: KernelContext) -> int:
    """Bytes of the headers, which are zero where a CTA or a cluster begins."""
    return kernel.warps_together * HEADER


class PendingCopies:
    """Writes the calls that keep the logs of the warps of a node."""

    def __init__(self, at: NodeBuilder) -> None:
        self.at, self.code, self.kernel = at, at.code, at.kernel
        self.watched = at.kernel.logs_copies

    def started(self, cells: str, count: int) -> None:
        """The active lanes have started to copy to `count` cells each, whose tags begin at these addresses."""
        for warp, log, lanes in self._warps():
            own = self._of_warp(POINTERS, cells, warp)
            arguments = f"ptr {log}, ptr {self._entries(warp)}, i32 {lanes}, {POINTERS} {own}, i32 {count}"
            self.at.suspect_where(self.code.emit(f"call i1 @{self._function()}.start({arguments})", pure=False))

    def commit(self) -> None:
        """The active lanes make a group of the copies that they have started."""
        for _, log, lanes in self._warps():
            self.code.run(f"call void @{self._function()}.commit(ptr {log}, i32 {lanes})")

    def wait(self, left: Value | None) -> None:
        """The active lanes wait for all but their `left` latest groups."""
        count = 0 if left is None else left.raw.constant
        if count is not None and self.watched:
            self._settle(count)

    def hand_over(self) -> None:
        """An mbarrier will tell of all copies that the active lanes have started: the agent of the warp did these accesses."""
        if not self.watched:
            return
        if self.kernel.clocked and has_agents(self.kernel):
            self._settle(-1, number=self.kernel.warps_together * WARP)
        elif self.kernel.shadow is not None:
            self.kernel.shadow.doubts.add("an mbarrier tells of copies, and too many warps wait for it, or none")

    def _settle(self, left: int, number: int = 0) -> None:
        """The cells of all but the `left` latest groups are written now: by the active lanes, `number` added to their own.

        With -1 those that are in no group yet are, too.
        """
        shadow = self.kernel.shadow
        before, after = f"splat (i32 {NEVER})", "zeroinitializer"
        if shadow is not None and shadow.race:
            order = (ClockOrder if self.kernel.clocked else EpochOrder)(self.at, own=True)
            mine = order.mine(range(self.at.width))
            before, after = pending(self.at, mine), mine
            if number:
                after = self.code.emit(f"add <{self.at.width} x i32> {mine}, splat (i32 {number})")
        for warp, log, lanes in self._warps():
            tags = [each if each[0] != "%" else self._of_warp(WORDS, each, warp) for each in (before, after)]
            arguments = f"ptr {log}, ptr {self._entries(warp)}, i32 {lanes}, i32 {left}, {WORDS} {tags[0]}, {WORDS} {tags[1]}"
            self.code.run(f"call void @{self._function()}.wait({arguments})")

    # ── warps ───────────────────────────────────────────────────────────────────────────

    def _warps(self) -> list[tuple[int, str, str]]:
        """For each warp of the node its number there, the address of the header of its log, and the active lanes."""
        if not self.watched:
            return []
        code, found, lanes = self.code, [], self.at.active_vector()
        logs = self.kernel.launch_field(code, "copies")
        for warp in code.warps():
            first = code.emit(f"mul i32 {self._number(warp)}, {HEADER}")
            log = code.emit(f"getelementptr i8, ptr {logs}, i32 {first}")
            found.append((warp, log, "-1" if lanes is None else code.warp_bits(lanes, warp)))
        return found

    def _number(self, warp: int) -> str:
        first = self.kernel.warp_among
        return self.code.emit(f"add i32 {first}, {warp}") if warp else first

    def _entries(self, warp: int) -> str:
        """The address of the entries of a warp."""
        first = self.code.emit(f"mul i32 {self._number(warp)}, {ENTRIES * ENTRY}")
        first = self.code.emit(f"add i32 {first}, {header_size(self.kernel)}")
        return self.code.emit(f"getelementptr i8, ptr {self.kernel.launch_field(self.code, 'copies')}, i32 {first}")

    def _of_warp(self, llvm: str, vector: str, warp: int) -> str:
        if self.at.width == WARP:
            return vector
        one = llvm.split(" x ")[1].rstrip(">")
        return self.code.shuffle(one, self.at.width, vector, "poison", list(range(warp * WARP, (warp + 1) * WARP)))

    def _function(self) -> str:
        """Define the functions that keep a log; returns what their names begin with."""
        unit, name = self.code.unit, "ptxvm.copies"
        mask = f"<{WARP} x i1>"
        unit.declarations["llvm.masked.gather.v32i32.v32p0"] = (
            f"declare {WORDS} @llvm.masked.gather.v32i32.v32p0({POINTERS}, i32 immarg, {mask}, {WORDS})"
        )
        unit.declarations["llvm.masked.scatter.v32i32.v32p0"] = (
            f"declare void @llvm.masked.scatter.v32i32.v32p0({WORDS}, {POINTERS}, i32 immarg, {mask})"
        )
        return unit.helper(name, runtime("pending_copies", name=name, entries=ENTRIES, entry=ENTRY))


def pending(at: NodeBuilder, mine: str, count: int | None = None) -> str:
    """The tags of pending copies of the threads that have some tags."""
    number = at.width if count is None else count
    llvm = "i32" if number == 1 else f"<{number} x i32>"
    low, mark = ("1023", str(PENDING)) if number == 1 else ("splat (i32 1023)", f"splat (i32 {PENDING})")
    return at.code.emit(f"or {llvm} {at.code.emit(f'and {llvm} {mine}, {low}')}, {mark}")

"""Happens-before by tags: is the access that left a tag ordered before one that this warp does now?

`EpochOrder` serves kernels whose barriers are all for the whole CTA: one epoch for all its threads (`barrier_epochs`);
`FenceOrder` adds what fences and strong accesses tell (`told_order`).  `ClockOrder` serves the others: each warp has a clock,
and knows up to which clock the accesses of every other warp precede its own (`cta_clocks`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import cta_clocks, told_order
from ptxvm.engine.jit.memory.tags import ALONE, CROWD, EPOCH, MANY, OF_WARP
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP


class CellVectors:
    """Values of some cells: a scalar for one, a vector for several."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def type(self, count: int, one: str = "i32") -> str:
        """The type of values of some cells."""
        return one if count == 1 else f"<{count} x {one}>"

    def every(self, count: int, scalar: str, one: str = "i32") -> str:
        """A scalar for each cell."""
        if count == 1:
            return scalar
        return f"splat ({one} {scalar})" if scalar[0] != "%" else self.code.splat(one, scalar, count)

    def both(self, count: int, a: str, b: str) -> str:
        """The cells for which two predicates hold."""
        return self.code.emit(f"and {self.type(count, 'i1')} {a}, {b}")


class TagOrder(CellVectors, ABC):
    """The order of the accesses behind tags before one access; `own` says that its cells are in shared memory."""

    def __init__(self, at: NodeBuilder, *, own: bool) -> None:
        super().__init__(at.code)
        self.at, self.kernel, self.own = at, at.kernel, own

    @abstractmethod
    def now(self) -> str:
        """The tag of an access that this warp does now, without a thread."""

    @abstractmethod
    def many(self) -> str:
        """The tag of accesses that several threads of this warp do now."""

    @abstractmethod
    def unordered(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Is the access behind a tag not ordered before this one?  `mine` are the own tags, None for several threads."""

    @abstractmethod
    def readers(self, count: int, read: str, mine: str | None) -> str:
        """The new tag of reads, where `read` was the last one; that of the first CTA stays."""

    @abstractmethod
    def strong(self, count: int, wrote: str, kind: int) -> str:
        """The new tag of a strong write of some kind; that of the first CTA stays, since no other is ordered after it."""

    def alone(self, kind: int) -> str:
        """The tag of reads that says that the tag of a write is of strong accesses of a kind by its thread alone.

        Empty where there is no such tag; it is left in shared memory only.
        """
        return ""

    def of_warp(self, kind: int) -> str:
        """What a tag has in place of a thread, if strong accesses of a kind by this warp have followed what others do not know.

        Empty where there is no such tag: all threads know of the write before any strong access.
        """
        return ""

    def unsettled(self, count: int, wrote: str) -> str:
        """Does a tag mean a write that some warp does not know?  Behind a strong access its tag would be missed.

        Empty where there is no such write.
        """
        return ""

    def strong_unordered(self, count: int, wrote: str, *, own: str, within: bool) -> str:
        """Does a tag mean a write that is not ordered before this strong access?

        Outside of the CTA's `own` memory any write is meant, unless the scope of the access is `within` the CTA.
        """
        if self.own or within:
            return self.unordered(count, wrote, None, writes=True)
        found = self.of_the_grid(count, wrote)
        if not own:
            return found
        unordered, elsewhere = self.unordered(count, wrote, None, writes=True), self.code.emit(f"xor i1 {own}, true")
        return self.both(count, found, self._either(count, unordered, self.every(count, elsewhere, "i1")))

    def _either(self, count: int, a: str, b: str) -> str:
        return self.code.emit(f"or {self.type(count, 'i1')} {a}, {b}")

    def of_the_grid(self, count: int, tag: str) -> str:
        """Has a CTA of this grid left a tag?"""
        return self.code.emit(f"icmp uge {self.type(count)} {tag}, {self.every(count, self.grid())}")

    def grid(self) -> str:
        """The least tag of this grid; also that of reads after which no CTA may write, as if another one had read."""
        return self.kernel.launch_field(self.code, "grid_epoch")

    def cta(self) -> str:
        """The tag of the first epoch of this CTA."""
        return self.kernel.launch_field(self.code, "cta_epoch")

    def first(self) -> str:
        """The tag of the first lane of the warp."""
        thread = self.code.emit(f"mul i32 {self.kernel.warp_among}, {WARP}")
        return self.code.emit(f"add i32 {self.now()}, {thread}")

    def mine(self, lanes: Iterable[int]) -> str:
        """The tags of lanes."""
        numbers = list(lanes)
        first = self.every(len(numbers), self.first())
        if len(numbers) == 1:
            return self.code.emit(f"add i32 {first}, {numbers[0]}")
        steps = ", ".join(f"i32 {n}" for n in numbers)
        return self.code.emit(f"add <{len(numbers)} x i32> {first}, <{steps}>")

    def of_another_cta(self, count: int, tag: str) -> str:
        """Did another CTA of this grid leave a tag?"""
        llvm, least = self.type(count), self.grid()
        above = self.code.emit(f"sub {llvm} {tag}, {self.every(count, least)}")
        span = self.code.emit(f"sub i32 {self.cta()}, {least}")
        return self.code.emit(f"icmp ult {llvm} {above}, {self.every(count, span)}")


class EpochOrder(TagOrder):
    """All accesses of earlier epochs of the CTA are ordered before those of this one."""

    def now(self) -> str:
        """The epoch."""
        return self.kernel.launch_field(self.code, "epoch")

    def many(self) -> str:
        """The epoch, and a mark."""
        return self.code.emit(f"or i32 {self.now()}, {MANY}")

    def alone(self, kind: int) -> str:
        """This epoch, the kind, and a mark."""
        return self.code.emit(f"or i32 {self.now()}, {kind + ALONE}")

    def unordered(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Is it of this epoch and of another thread, or of another CTA?"""
        code, llvm = self.code, self.type(count)
        epoch = self.every(count, self.now())
        if self.own:
            found = code.emit(f"icmp uge {llvm} {tag}, {epoch}")
        else:
            away = code.emit(f"sub {llvm} {tag}, {self.every(count, self.cta())}")
            span = code.emit(f"sub i32 {self.now()}, {self.cta()}")
            found = code.emit(f"icmp uge {llvm} {away}, {self.every(count, span)}")
            found = self.both(count, found, self.of_the_grid(count, tag))
        if mine is not None:
            found = self.both(count, found, code.emit(f"icmp ne {llvm} {tag}, {mine}"))
        return found

    def readers(self, count: int, read: str, mine: str | None) -> str:
        """One thread of this epoch, or several."""
        code, llvm, bits, many = self.code, self.type(count), self.type(count, "i1"), self.every(count, self.many())
        mine = mine or many
        now = code.emit(f"icmp uge {llvm} {read}, {self.every(count, self.now())}")
        another = self.both(count, now, code.emit(f"icmp ne {llvm} {read}, {mine}"))
        made = code.emit(f"select {bits} {another}, {llvm} {many}, {llvm} {mine}")
        if self.own:
            return made
        before = self.of_another_cta(count, read)
        return code.emit(f"select {bits} {before}, {llvm} {read}, {llvm} {made}")

    def strong(self, count: int, wrote: str, kind: int) -> str:
        """This epoch and the kind."""
        code, llvm = self.code, self.type(count)
        strong = self.every(count, code.emit(f"or i32 {self.now()}, {kind}"))
        if self.own:
            return strong
        before = self.of_another_cta(count, wrote)
        return code.emit(f"select <{count} x i1> {before}, {llvm} {wrote}, {llvm} {strong}")


class FenceOrder(EpochOrder):
    """Accesses of this CTA before its last barrier come before this one, and those of which the threads have been told.

    What barriers leave open is a question to the host (`told_order`).  The epoch is a time, which fences advance.  `cells` are
    the addresses of the tags that are looked at: a vector, or that of the first of contiguous ones.
    """

    cells = ""
    changes = True  # does the access that is looked at write?

    def now(self) -> str:
        """The time."""
        return self.kernel.launch_field(self.code, "epoch", pure=False)

    def met(self) -> str:
        """The time at which the CTA met last."""
        return self.kernel.launch_field(self.code, "met", pure=False)

    def alone(self, kind: int) -> str:
        """Nothing: the notes tell which threads access a word."""
        return ""

    def unordered(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Is it of another thread since the last barrier, or of another CTA, and not known by what threads have told?"""
        found = self._open(count, tag)
        if mine is not None:
            other = self._apart(count, tag, mine)
            if not self.own:
                before = self.code.emit(f"icmp ult {self.type(count)} {tag}, {self.every(count, self.cta())}")
                other = self._either(count, other, before)
            found = self.both(count, found, other)
        return self._asked(count, tag, mine, found)

    def strong_unordered(self, count: int, wrote: str, *, own: str, within: bool) -> str:
        """What fences tell does not count: later strong accesses would not know of the write, whose tag is lost."""
        return self._open(count, wrote) if self.own or within else self.of_the_grid(count, wrote)

    def _open(self, count: int, tag: str) -> str:
        """Do barriers of the CTA leave it open whether the access behind a tag comes before this one?"""
        code, llvm = self.code, self.type(count)
        if self.own:
            return code.emit(f"icmp uge {llvm} {tag}, {self.every(count, self.met())}")
        away = code.emit(f"sub {llvm} {tag}, {self.every(count, self.cta())}")
        since = code.intrinsic("i32", "llvm.usub.sat.i32", ("i32", self.met()), ("i32", self.cta()))
        span = self.every(count, since)  # none where it has not met since others ran
        found = self._either(count, code.emit(f"icmp uge {llvm} {away}, {span}"), self._is_crowd(count, tag))
        return self.both(count, found, self.of_the_grid(count, tag))

    def readers(self, count: int, read: str, mine: str | None) -> str:
        """The thread where the earlier reads are known, or are its own; else several of this CTA, or of several CTAs.

        Nobody is asked about most words: those of shared memory, and what several threads or CTAs have read.  Where CTAs wait
        for each other, the tag of several CTAs says which.
        """
        code, llvm, bits, many = self.code, self.type(count), self.type(count, "i1"), self.every(count, self.many())
        mine = mine or many
        recent = code.emit(f"icmp uge {llvm} {read}, {self.every(count, self.met())}")
        another = self.both(count, recent, self._apart(count, read, mine))
        of_cta = code.emit(f"select {bits} {another}, {llvm} {many}, {llvm} {mine}")
        if self.own:
            return of_cta
        one = code.emit(f"icmp ult {llvm} {self._difference(count, read, mine)}, {self.every(count, str(MANY))}")
        before, crowd = self.of_another_cta(count, read), self.crowd(count, read)
        if self.kernel.runs_beside:
            of_others = self._either(count, self._either(count, self.both(count, another, one), before), crowd)
            return code.emit(f"select {bits} {of_others}, {llvm} {self._joined(count, read, mine, of_others)}, {llvm} {of_cta}")
        several = self.every(count, code.emit(f"or i32 {self.now()}, {CROWD}"))
        single = self.both(count, before, code.emit(f"xor {bits} {crowd}, {self.every(count, 'true', 'i1')}"))
        open_one = self._either(count, self.both(count, another, one), single)
        unknown = self._asked(count, read, mine, open_one)
        known = self.both(count, open_one, code.emit(f"xor {bits} {unknown}, {self.every(count, 'true', 'i1')}"))
        left = code.emit(f"select {bits} {self._either(count, before, crowd)}, {llvm} {several}, {llvm} {of_cta}")
        return code.emit(f"select {bits} {known}, {llvm} {mine}, {llvm} {left}")

    def _difference(self, count: int, tag: str, mine: str) -> str:
        """The bits in which the threads of two tags differ."""
        llvm = self.type(count)
        apart = self.code.emit(f"xor {llvm} {tag}, {mine}")
        return self.code.emit(f"and {llvm} {apart}, {self.every(count, str(EPOCH - 1))}")

    def _apart(self, count: int, tag: str, mine: str) -> str:
        """Has another thread of a CTA left a tag, or several?"""
        return self.code.emit(f"icmp ne {self.type(count)} {self._difference(count, tag, mine)}, {self.every(count, '0')}")

    def _is_crowd(self, count: int, tag: str) -> str:
        """Does a tag mean reads by several CTAs?"""
        llvm = self.type(count)
        low = self.code.emit(f"and {llvm} {tag}, {self.every(count, str(EPOCH - 1))}")
        return self.code.emit(f"icmp eq {llvm} {low}, {self.every(count, str(CROWD))}")

    def crowd(self, count: int, tag: str) -> str:
        """Does a tag of this grid mean reads by several CTAs?"""
        return self.both(count, self._is_crowd(count, tag), self.of_the_grid(count, tag))

    def _joined(self, count: int, read: str, mine: str, found: str) -> str:
        """The new tags of the reads that are `found`."""
        code, name = self.code, told_order.joined(self.code.unit, count)
        found = code.emit(f"zext {self.type(count, 'i1')} {found} to {self.type(count, 'i8')}")
        arguments = self._vectors(count, ("i32", read), ("i32", mine), ("i8", found))
        made = code.call(f"<{count} x i32>", name, ("ptr", "%ctx"), *arguments, ("i32", self.kernel.warp_among), pure=False)
        return code.emit(f"extractelement <1 x i32> {made}, i64 0") if count == 1 else made

    def _vectors(self, count: int, *values: tuple[str, str]) -> list[tuple[str, str]]:
        """The arguments of a runtime function: vectors, where one cell is a scalar elsewhere."""
        code = self.code
        return [
            (f"<{count} x {one}>", code.emit(f"bitcast {one} {each} to <1 x {one}>") if count == 1 else each)
            for one, each in values
        ]

    def _asked(self, count: int, tag: str, mine: str | None, found: str) -> str:
        """Which of the accesses that barriers leave open are unordered?"""
        code, byte = self.code, self.type(count, "i8")
        name = told_order.asked(code.unit, count)
        found = code.emit(f"zext {self.type(count, 'i1')} {found} to {byte}")
        mine = mine or self.every(count, self.many())
        arguments = self._vectors(count, ("i32", tag), ("i32", mine), ("i64", self._addresses(count)), ("i8", found))
        left = code.call(f"<{count} x i8>", name, ("ptr", "%ctx"), *arguments, ("i32", self._caller()), pure=False)
        if count == 1:
            left = code.emit(f"extractelement <1 x i8> {left}, i64 0")
        return code.emit(f"icmp ne {byte} {left}, {self.every(count, '0', 'i8')}")

    def _caller(self) -> str:
        """The number of the warp, and a bit."""
        warp = self.kernel.warp_among
        return self.code.emit(f"or i32 {warp}, {told_order.CHANGES}") if self.changes else warp

    def _addresses(self, count: int) -> str:
        """The addresses of the tags."""
        code = self.code
        if self.cells.startswith("<"):
            return code.emit(f"ptrtoint {self.cells} to <{count} x i64>")
        first = code.emit(f"ptrtoint ptr {self.cells} to i64")
        if count == 1:
            return first
        steps = ", ".join(f"i64 {4 * n}" for n in range(count))
        return code.emit(f"add <{count} x i64> {code.splat('i64', first, count)}, <{steps}>")


class ClockOrder(TagOrder):
    """An access is ordered before this one if this warp knows the other warp up to the clock of the access.

    A tag of several readers has the last of their clocks, and a bit for each group of warps with a reader.
    """

    def __init__(self, at: NodeBuilder, *, own: bool) -> None:
        super().__init__(at, own=own)
        self.row, self._now = cta_clocks.row(at), ""

    def now(self) -> str:
        """The clock of the warp."""
        if not self._now:
            self._now = cta_clocks.now(self.at)
        return self._now

    def many(self) -> str:
        """The clock, a mark, and the group of the warp."""
        bits = cta_clocks.group_bits(self.kernel.warps_together)
        group = self.code.emit(f"lshr i32 {self.kernel.warp_among}, {bits}")
        marked = self.code.emit(f"or i32 {self.code.emit(f'shl i32 1, {group}')}, {MANY}")
        return self.code.emit(f"or i32 {self.now()}, {marked}")

    def unordered(self, count: int, tag: str, mine: str | None, *, writes: bool) -> str:
        """Does the warp not know it, and is it of another thread; or is it of another CTA?"""
        mine = mine or self.every(count, self.many())
        found = self._asked("writes" if writes else "reads", "i1", count, tag, mine)
        if self.own:
            return found
        return self.code.emit(f"or {self.type(count, 'i1')} {found}, {self.of_another_cta(count, tag)}")

    def readers(self, count: int, read: str, mine: str | None) -> str:
        """The thread, where the warp knows the earlier reads, or else these and the warp."""
        many = self.many()
        made = self._asked("readers", "i32", count, read, mine or self.every(count, many), many)
        if self.own:
            return made
        before = self.of_another_cta(count, read)
        llvm = self.type(count)
        return self.code.emit(f"select {self.type(count, 'i1')} {before}, {llvm} {read}, {llvm} {made}")

    def strong(self, count: int, wrote: str, kind: int) -> str:
        """The last clock of the writes of one kind that are not ordered among each other."""
        code, llvm, bits = self.code, self.type(count), self.type(count, "i1")
        strong = self.every(count, code.emit(f"or i32 {self.now()}, {kind}"))
        low = code.emit(f"and {llvm} {wrote}, {self.every(count, str(EPOCH - 1))}")
        alike = code.emit(f"icmp eq {llvm} {low}, {self.every(count, str(kind))}")
        later = self.both(count, alike, code.emit(f"icmp ugt {llvm} {wrote}, {strong}"))
        made = code.emit(f"select {bits} {later}, {llvm} {wrote}, {llvm} {strong}")
        if self.own:
            return made
        before = self.of_another_cta(count, wrote)
        return code.emit(f"select {bits} {before}, {llvm} {wrote}, {llvm} {made}")

    def of_warp(self, kind: int) -> str:
        """The kind, a mark, and the warp."""
        warp = self.code.emit(f"shl i32 {self.kernel.warp_among}, 5")
        return self.code.emit(f"or i32 {warp}, {kind + OF_WARP}")

    def unsettled(self, count: int, wrote: str) -> str:
        """Is it later than what all warps know?"""
        least = cta_clocks.everyone(self.at)
        return self._asked("writes", "i1", count, wrote, self.every(count, self.many()), row=least)

    def _asked(self, question: str, one: str, count: int, tag: str, mine: str, many: str = "", row: str = "") -> str:
        """Ask a runtime function about tags; the row is that of the warp, if no other is given."""
        code, vector = self.code, f"<{count} x i32>"
        name = question_of(code.unit, self.kernel.warps_together, question, count)
        arguments = [(vector, code.emit(f"bitcast i32 {each} to {vector}") if count == 1 else each) for each in (tag, mine)]
        more = [("i32", many)] if many else []
        found = code.call(f"<{count} x {one}>", name, *arguments, ("ptr", row or self.row), *more, pure=False)
        return code.emit(f"extractelement <1 x {one}> {found}, i64 0") if count == 1 else found


def question_of(unit: Unit, warps: int, question: str, count: int) -> str:
    """Define the runtime function that answers a question about the tags of so many cells; returns its name."""
    name = f"ptxvm.clocks.{question}.{count}"
    if name in unit.helpers:
        return name
    if question == "readers":
        question_of(unit, warps, "reads", count)
    vector, pointers, mask = f"<{count} x i32>", f"<{count} x ptr>", f"<{count} x i1>"
    gather = f"llvm.masked.gather.v{count}i32.v{count}p0"
    unit.declarations[gather] = f"declare {vector} @{gather}({pointers}, i32 immarg, {mask}, {vector})"
    parts = cta_clocks.group_parts(warps, count)
    text = runtime(f"clocks_{question}", n=count, gather=gather, strong_of_warp=MANY + OF_WARP, **parts)
    return unit.helper(name, text)

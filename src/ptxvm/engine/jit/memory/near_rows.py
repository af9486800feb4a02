"""Accesses whose lanes are probably neighbours: looked at when they run, eight lanes at a time.

An address that is computed from the positions of lanes, and from nothing that memory holds, has an order, even where no
formula of the lane tells it: a quotient, lanes that have made different numbers of iterations, a bit that is inserted.  Often
eight lanes in a row access a row.  One comparison tells, and a row costs a fraction of a gather.  Where it fails, the warp may
still access two rows: lanes that are an iteration of a loop ahead of the others, as behind the remainder of an unrolled loop
over a length that is no multiple of 32, or a line for each register of lanes (`near_lines`).  An address that depends on loaded
values has no such order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import address_registers, bit_of
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import SMALL, Code, short
from ptxvm.engine.jit.ir.lane_values import vector_literal
from ptxvm.engine.jit.memory import near_lines, prefetches, some_lanes
from ptxvm.engine.jit.memory.near_lines import NearLines
from ptxvm.engine.jit.node import small_elements
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple

BLOCK = 8  # lanes that are looked at together
SIZES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}  # of elements in bytes

Typed = tuple[str, str]  # an operand and its LLVM type, which comes first


def kind(at: NodeBuilder, bound: Bound | None, space: Space, *, writing: bool) -> str:
    """How an access whose lanes are anywhere is written, in words."""
    one_by_one = "scatter" if writing else "gather"
    return f"rows or {one_by_one}" if probable(at, bound, space) else one_by_one


def suits(at: NodeBuilder, bound: Bound | None, space: Space, llvm: str) -> bool:
    """Is an access of elements of a type written by this module?"""
    return llvm in SIZES and probable(at, bound, space)


def probable(at: NodeBuilder, bound: Bound | None, space: Space) -> bool:
    """Are the lanes of an access probably neighbours, and is it cheap to look?  Other processors have no mask registers."""
    if bound is None or space is Space.LOCAL or not cpu.has("avx512f"):
        return False
    registers = [bit_of(register) for register in address_registers(bound)]
    loaded = at.kernel.memory_dependent(at.node.frame)
    return bool(registers) and all(bit and not bit & loaded for bit in registers)


def gather(code: Code, llvm: str, base: str, offsets: Typed, lanes: str | None) -> str:
    """Load the elements at distances from a base, a vector; without a base, the distances are addresses."""
    name = _gather(code, llvm, offsets[0], base, some=lanes is not None)
    parts = [
        code.call(f"<{WARP} x {llvm}>", name, *_arguments(code, base, offsets, lanes, n), pure=False)
        for n in code.active_warps()
    ]
    return some_lanes.of_all_warps(code, llvm, parts)


def scatter(code: Code, llvm: str, value: str, base: str, offsets: Typed, lanes: str | None) -> None:
    """Store elements at distances from a base, or at addresses, in the order of the lanes."""
    name = _scatter(code, llvm, offsets[0], base, some=lanes is not None)
    for n in code.active_warps():
        arguments = [some_lanes.of_warp(code, llvm, value, n), *_arguments(code, base, offsets, lanes, n)]
        code.perform(name, *arguments)


def _arguments(code: Code, base: str, offsets: Typed, lanes: str | None, n: int) -> list[Typed]:
    start = [("ptr", base)] if base else []
    mask = [("i32", code.warp_bits(lanes, n))] if lanes is not None else []
    return [*start, some_lanes.of_warp(code, *offsets, n), *mask]


# ── the functions ───────────────────────────────────────────────────────────────────────


def _gather(code: Code, llvm: str, offset: str, base: str, *, some: bool) -> str:
    """Define the function that loads; returns its name."""
    vector, small = f"<{WARP} x {llvm}>", llvm in SMALL
    word = "i32" if small else llvm
    words, native = f"<{WARP} x {word}>", f"llvm.masked.gather.v{WARP}{short(word)}.v{WARP}p0"
    code.unit.declarations[native] = f"declare {words} @{native}(<{WARP} x ptr>, i32 immarg, <{WARP} x i1>, {words})"

    def rows(warp: _Warp) -> str:
        return warp.code.concatenate(llvm, [warp.load(n) for n in range(WARP // BLOCK)], BLOCK)

    def pair(warp: _Warp, first: Row, last: Row) -> str:
        if not base:  # of a stream in global memory
            ahead = warp.code.offset(first.pointer, prefetches.AHEAD)
            prefetches.prefetch_row(warp.code, ahead, WARP * warp.size, prefetches.FIRST_CACHE)
        loaded = [warp.code.masked_load(WARP, llvm, each.pointer, warp.size, each.lanes) for each in (first, last)]
        return warp.code.emit(f"select <{WARP} x i1> {first.lanes}, {vector} {loaded[0]}, {vector} {loaded[1]}", pure=False)

    def apart(warp: _Warp) -> str:
        def whole(pointers: str) -> str:
            loaded = warp.code.call(words, native, *warp.operands(pointers), (words, "zeroinitializer"), pure=False)
            return warp.code.emit(f"freeze {words} {loaded}", pure=False)

        return small_elements.gathered(warp.code, llvm, WARP, warp.pointers(), whole) if small else whole(warp.pointers())

    writers = _Writers(rows, pair, lambda lines: lines.load(), apart)
    return _function(code, "gather", _Access(llvm, offset, base, some), writers, result=vector)


def _scatter(code: Code, llvm: str, offset: str, base: str, *, some: bool) -> str:
    """Define the function that stores; returns its name."""
    vector, native = f"<{WARP} x {llvm}>", f"llvm.masked.scatter.v{WARP}{short(llvm)}.v{WARP}p0"
    small, one_by_one = llvm in SMALL, ""
    if small:
        one_by_one = small_elements.loop(code.unit, "scatter", llvm)
    else:
        code.unit.declarations[native] = f"declare void @{native}({vector}, <{WARP} x ptr>, i32 immarg, <{WARP} x i1>)"

    def rows(warp: _Warp) -> str:
        for n in range(WARP // BLOCK):
            warp.store(n)
        return ""

    def pair(warp: _Warp, first: Row, last: Row) -> str:
        for each in (first, last):
            warp.code.masked_store(WARP, llvm, "%value", each.pointer, warp.size, each.lanes)
        return ""

    def lines(found: NearLines) -> str:
        found.store("%value")
        return ""

    def apart(warp: _Warp) -> str:
        if small:
            bits = ("i32", "%mask" if some else "-1")
            warp.code.perform(one_by_one, (vector, "%value"), (f"<{WARP} x ptr>", warp.pointers()), bits)
        else:
            warp.code.perform(native, (vector, "%value"), *warp.operands(warp.pointers()))
        return ""

    writers = _Writers(rows, pair, lines, apart)
    return _function(code, "scatter", _Access(llvm, offset, base, some), writers, value=f"{vector} %value, ")


class _Access(NamedTuple):
    """The types of an element and of an offset, the base or "", and whether a mask selects `some` lanes."""

    llvm: str
    offset: str
    base: str
    some: bool

    @property
    def parameters(self) -> str:
        """The parameters for the addresses."""
        start, mask = "ptr %base, " if self.base else "", ", i32 %mask" if self.some else ""
        return f"{start}<{WARP} x {self.offset}> %offsets{mask}"


class Row(NamedTuple):
    """The pointer of lane 0 of a row, and the predicate of the lanes that access it."""

    pointer: str
    lanes: str


class _Writers(NamedTuple):
    """The functions that write the access of a warp: of rows of eight lanes, two rows, lines, and each element by itself."""

    rows: Callable[[_Warp], str]
    pair: Callable[[_Warp, Row, Row], str]
    lines: Callable[[NearLines], str]
    apart: Callable[[_Warp], str]


def _function(code: Code, kind: str, access: _Access, writers: _Writers, *, result: str = "void", value: str = "") -> str:
    """Define a function that accesses rows if the lanes are neighbours, and else each element by itself; returns its name."""

    def write(inner: Code) -> str:
        warp, found, end = _Warp(inner, access), [], inner.label()

        def arm(label: str, written: Callable[[], str]) -> None:
            inner.block(label)
            with inner.scope():
                found.append(f"[ {written()}, %{label} ]")
            inner.jump(end)

        writing = result == "void"
        tests: list[tuple[Callable[[], str], Callable[[], str]]] = [(warp.neighbours, partial(writers.rows, warp))]
        if access.some:  # lanes of a loop that others have left are masked
            tests.insert(0, (partial(warp.two_rows, ordered=writing), lambda: writers.pair(warp, *warp.pair())))
        if near_lines.suits(warp.size):
            tests.append((lambda: warp.lines.within(writing=writing), lambda: writers.lines(warp.lines)))
        for test, written in tests:
            here, onward = inner.label(), inner.label()
            inner.branch(test(), here, onward)
            arm(here, written)
            inner.block(onward)
        apart = inner.label()
        inner.jump(apart)
        arm(apart, partial(writers.apart, warp))
        inner.block(end)
        return inner.emit(f"phi {result} {', '.join(found)}", pure=False) if result != "void" else ""

    name = f"ptxvm.{kind}_near.{access.llvm}.{access.offset}{'.some' if access.some else ''}"
    return code.unit.piece(name, result, value + access.parameters, write)


class _Warp:
    """The test of one warp, and the accesses of its blocks: `lanes` is the predicate of the active ones, None for all."""

    def __init__(self, code: Code, access: _Access) -> None:
        self.code, self.llvm, self.offset, self.base = code, access.llvm, access.offset, access.base
        self.size = SIZES[self.llvm]
        self.lanes = code.emit(f"bitcast i32 %mask to <{WARP} x i1>") if access.some else None

    def neighbours(self) -> str:
        """Do the active lanes of every block access a row?"""
        code, held = self.code, f"<{WARP} x {self.offset}>"
        starts = code.shuffle(self.offset, WARP, "%offsets", "poison", [n - n % BLOCK for n in range(WARP)])
        row = vector_literal(self.offset, tuple(self.size * (n % BLOCK) for n in range(WARP)))
        apart = code.emit(f"icmp ne {held} %offsets, {code.emit(f'add {held} {starts}, {row}')}")
        bits = code.emit(f"bitcast <{WARP} x i1> {apart} to i32")
        if self.lanes is not None:
            bits = code.emit(f"and i32 {bits}, %mask")
        return code.emit(f"icmp eq i32 {bits}, 0")

    @cached_property
    def lines(self) -> NearLines:
        """The lines of the lanes."""
        code, offsets = self.code, "%offsets"
        if self.base:
            start = code.splat("i64", self._start(), WARP)
            wide = code.emit(f"sext <{WARP} x {self.offset}> %offsets to <{WARP} x i64>")
            offsets = code.emit(f"add <{WARP} x i64> {wide}, {start}")
        return NearLines(code, self.llvm, self.size, offsets, self._of_address, some=self.lanes is not None)

    def _start(self) -> str:
        """The address of the base."""
        return self.code.emit("ptrtoint ptr %base to i64")

    def _of_address(self, address: str) -> str:
        """The pointer of an address."""
        if not self.base:
            return self._at(address)
        distance = self.code.emit(f"sub i64 {address}, {self._start()}")
        return self.code.emit(f"getelementptr i8, ptr %base, i64 {distance}", pure=False)

    # ── two rows ────────────────────────────────────────────────────────────────────────

    def two_rows(self, *, ordered: bool) -> str:
        """Do the active lanes access the row of the first lane or that of the last?  `ordered` rows have nothing in common."""
        code, (first, last) = self.code, self._starts()
        here = code.emit(f"or <{WARP} x i1> {self._of_row(first)}, {self._of_row(last)}")
        others = code.emit(f"xor i32 {code.emit(f'bitcast <{WARP} x i1> {here} to i32')}, -1")
        if self.lanes is not None:
            others = code.emit(f"and i32 {others}, %mask")
        good = code.emit(f"icmp eq i32 {others}, 0")
        if not ordered:
            return good
        length = (WARP - 1) * self.size
        moved = code.emit(f"add {self.offset} {code.emit(f'sub {self.offset} {last}, {first}')}, {length}")
        return code.emit(f"and i1 {good}, {code.emit(f'icmp ugt {self.offset} {moved}, {2 * length}')}")

    def pair(self) -> tuple[Row, Row]:
        """The row of the first lane, and what of that of the last lane is not in it."""
        code, (first, last) = self.code, self._starts()
        of_first, of_last = self._of_row(first), self._of_row(last)
        if self.lanes is not None:
            of_first, of_last = (code.emit(f"and <{WARP} x i1> {each}, {self.lanes}") for each in (of_first, of_last))
        others = code.emit(f"xor <{WARP} x i1> {of_first}, splat (i1 true)")
        of_last = code.emit(f"and <{WARP} x i1> {of_last}, {others}")
        return Row(self._at(first), of_first), Row(self._at(last), of_last)

    def _moved(self) -> str:
        """The offsets of all lanes less that within a row: equal in the lanes of one."""
        row = vector_literal(self.offset, tuple(self.size * n for n in range(WARP)))
        return self.code.emit(f"sub <{WARP} x {self.offset}> %offsets, {row}")

    def _starts(self) -> tuple[str, str]:
        """Where the rows of the first lane and of the last begin."""
        held, moved = f"<{WARP} x {self.offset}>", self._moved()
        first, last = (self.code.emit(f"extractelement {held} {moved}, i64 {n}") for n in (0, WARP - 1))
        return first, last

    def _of_row(self, start: str) -> str:
        """The lanes that access the row from an offset on."""
        held = f"<{WARP} x {self.offset}>"
        return self.code.emit(f"icmp eq {held} {self._moved()}, {self.code.splat(self.offset, start, WARP)}")

    # ── accesses ────────────────────────────────────────────────────────────────────────

    def operands(self, pointers: str) -> list[Typed]:
        """The operands of a masked access: pointers, alignment and active lanes."""
        lanes = self.lanes or "splat (i1 true)"
        return [(f"<{WARP} x ptr>", pointers), ("i32", str(max(self.size, 4))), (f"<{WARP} x i1>", lanes)]

    def pointers(self) -> str:
        """The pointers of all lanes."""
        held = f"<{WARP} x {self.offset}>"
        if self.base:
            return self.code.emit(f"getelementptr i8, ptr %base, {held} %offsets", pure=False)
        return self.code.emit(f"inttoptr {held} %offsets to <{WARP} x ptr>", pure=False)

    def load(self, n: int) -> str:
        """Load the row of a block."""
        if self.lanes is None:
            return self.code.emit(f"load <{BLOCK} x {self.llvm}>, ptr {self._pointer(n)}, align {self.size}", pure=False)
        return self.code.masked_load(BLOCK, self.llvm, self._pointer(n), self.size, self._own("i1", self.lanes, n))

    def store(self, n: int) -> None:
        """Store the row of a block."""
        value = self._own(self.llvm, "%value", n)
        if self.lanes is None:
            self.code.run(f"store <{BLOCK} x {self.llvm}> {value}, ptr {self._pointer(n)}, align {self.size}")
            return
        self.code.masked_store(BLOCK, self.llvm, value, self._pointer(n), self.size, self._own("i1", self.lanes, n))

    def _own(self, llvm: str, vector: str, n: int) -> str:
        return self.code.shuffle(llvm, WARP, vector, "poison", list(range(n * BLOCK, (n + 1) * BLOCK)))

    def _pointer(self, n: int) -> str:
        return self._at(self.code.emit(f"extractelement <{WARP} x {self.offset}> %offsets, i64 {n * BLOCK}"))

    def _at(self, offset: str) -> str:
        if self.base:
            return self.code.emit(f"getelementptr i8, ptr %base, {self.offset} {offset}", pure=False)
        return self.code.emit(f"inttoptr {self.offset} {offset} to ptr", pure=False)

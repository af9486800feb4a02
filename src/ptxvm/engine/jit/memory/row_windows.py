"""Row windows: what the lanes of a walk along rows load is loaded 64 bytes of each lane at a time, and transposed.

Lanes that each walk along a row of their own (`cfg.row_walks`) read neighbouring elements one iteration after the other, but
together they are anywhere, so that each load is a gather; and rows whose length is a power of two share a few sets of the first
cache, which then forgets a line before the next element of it is wanted.  A window holds the next 64 bytes of every lane,
element by element, so that loads of the following iterations are contiguous.

All lanes must be equally far into their windows; else, and at the begin of a row, the elements are gathered, and the window
remembers where.  It is filled where the lanes have moved on a little since, or where the last one was worth it; after some
disappointments it is left alone.  An instruction that may change memory, or wait for a change, makes a new epoch, in which
windows of earlier ones are void.  An element is taken at most once: a loop that reads one place again asks memory again.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import SMALL, Code, Unit
from ptxvm.engine.jit.memory import prefetches
from ptxvm.engine.jit.memory.lane_chunks import pointer_in, transposed
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.named_tuple import NamedTuple

SIZE = 64  # bytes of a lane, and of a register
EPOCH = "%row_windows.epoch"
LOSSES, FILLING = 64, 8  # looks in vain before a window is left alone, and as how many one counts that fills it ...
PAUSE = 4096  # ... until there were so many loads
ENOUGH = 3  # how often a full window serves if it is worth it ...
STEP = SIZE // (ENOUGH + 1)  # ... and how far lanes then move at most
STEPS = 2  # that far apart before a window is filled: a shorter walk is over too soon
AHEAD = 2 * SIZE  # of prefetches
GATHER = -1  # instead of a distance into the window

# A window: the addresses of all lanes, this record, and a row of all lanes for each element.
OF_EPOCH, LAST, UNIT, HITS = 0, 8, 16, 24
RECORD = 64


def suits(llvm: str, size: int, count: int) -> bool:
    """Are vectors of so many elements of a type and size loaded by windows?  Longer ones are loaded as chunks as fast."""
    known = count == 1 if llvm in SMALL else llvm in ("i32", "float", "i64", "double")
    return cpu.has("avx2") and known and size * count <= STEP


def bytes_of(width: int) -> int:
    """The size of the window of so many lanes."""
    return 8 * width + RECORD + SIZE * width


def variable(number: int) -> str:
    """The variable of the warp function that holds a window."""
    return f"%row_window.{number}"


def begin(number: int, width: int) -> list[str]:
    """The lines at the entry of the warp function for a window."""
    name = variable(number)
    return [
        f"  {name} = alloca [{bytes_of(width)} x i8], align 64",
        f"  store <{width} x i64> zeroinitializer, ptr {name}, align 64",
        f"  {name}.hits = getelementptr i8, ptr {name}, i64 {8 * width + HITS}",
        f"  store i32 {-STEPS}, ptr {name}.hits, align 4",
    ]


def begin_epochs() -> list[str]:
    """The lines at the entry of the warp function that count epochs."""
    return [f"  {EPOCH} = alloca i64, align 8", f"  store i64 0, ptr {EPOCH}, align 8"]


def end_epoch(code: Code) -> None:
    """Memory may change here."""
    now = code.emit(f"load i64, ptr {EPOCH}, align 8", pure=False)
    code.run(f"store i64 {code.emit(f'add i64 {now}, 1')}, ptr {EPOCH}, align 8")


def word(element: int) -> int:
    """The bytes of a word, of which the rows of a window for elements of a size consist: smaller ones are parts of it."""
    return max(element, 4)


class Allocation(NamedTuple):
    """Where an allocation begins, and how many units of some bytes it has."""

    begin: str
    room: str
    unit: str


class RowWindow:
    """The window of a load, by its number: `addresses` are those of all lanes, each loads `count` elements."""

    def __init__(self, at: NodeBuilder, number: int, addresses: str, element: int, count: int) -> None:
        self.at, self.code, self.width, self.number, self.name = at, at.code, at.width, number, variable(number)
        self.element, self.count, self.size, self.word = element, count, element * count, word(element)
        lanes = at.active_vector()
        self.some = lanes is not None
        active = self.code.mask_bits(lanes) if lanes is not None else "-1"
        self.arguments = [("ptr", self.name), (f"<{self.width} x i64>", addresses), (f"i{self.width}", active)]

    def load(self, llvm: str, within: Allocation, otherwise: Callable[[], list[str]]) -> list[str]:
        """The vectors of its elements: from the window, which is filled `within` one allocation, or as `otherwise` writes."""
        code, nested = self.code, self.at.nested
        look, wait, held, apart, end = (code.label() for _ in range(5))
        losses = code.emit(f"getelementptr i8, ptr %sites, i64 {self.at.kernel.walk_record(self.number)}")
        lost = code.emit(f"load i64, ptr {losses}, align 8", pure=False)
        code.branch(code.emit(f"icmp ult i64 {lost}, {LOSSES}"), look, wait)
        with code.scope():
            code.block(wait)
            later = code.emit(f"and i64 {code.emit(f'add i64 {lost}, 1')}, {PAUSE - 1}")
            code.run(f"store i64 {later}, ptr {losses}, align 8")
            code.jump(apart)
        with code.scope():
            code.block(look)
            epoch = code.emit(f"load i64, ptr {EPOCH}, align 8", pure=False)
            more = ("i64", str(self.size)), ("i64", epoch), ("ptr", losses), *[("i64", each) for each in within]
            distance = code.call("i64", self._take(code.unit), *self.arguments, *more, pure=False)
            code.branch(code.emit(f"icmp sge i64 {distance}, 0"), held, apart, likely=True)
        with code.scope():
            code.block(held)
            rows = [self._row(llvm, distance, n) for n in range(self.count)]
            code.jump(end)
        self.at.nested = True
        with code.scope():
            code.block(apart)
            others, last = otherwise(), code.label()
            code.jump(last)
            code.block(last)
            code.jump(end)
        self.at.nested = nested
        code.block(end)
        vector = f"<{self.width} x {llvm}>"
        ways = [(f"[ {a}, %{held} ]", f"[ {b}, %{last} ]") for a, b in zip(rows, others, strict=True)]
        return [code.emit(f"phi {vector} {', '.join(pair)}", pure=False) for pair in ways]

    def _row(self, llvm: str, distance: str, n: int) -> str:
        """Element `n` of all lanes behind a distance, which is in a word that all have."""
        code, width = self.code, self.width
        start = code.offset(self.name, 8 * width + RECORD + n * self.element * width)
        word = code.emit(f"and i64 {distance}, -4") if llvm in SMALL else distance
        place = code.emit(f"getelementptr i8, ptr {start}, i64 {code.emit(f'mul i64 {word}, {width}')}")
        if llvm not in SMALL:
            return code.emit(f"load <{width} x {llvm}>, ptr {place}, align 64", pure=False)
        words = code.emit(f"load <{width} x i32>, ptr {place}, align 64", pure=False)
        bits = code.emit(f"shl i64 {code.emit(f'and i64 {distance}, 3')}, 3")
        turned = code.splat("i32", code.emit(f"trunc i64 {bits} to i32"))
        moved = code.emit(f"lshr <{width} x i32> {words}, {turned}")
        return code.emit(f"trunc <{width} x i32> {moved} to <{width} x {llvm}>")

    # ── the functions ───────────────────────────────────────────────────────────────────

    @property
    def _parameters(self) -> list[tuple[str, str]]:
        """The parameters of both functions."""
        lanes = (f"<{self.width} x i64>", "%addresses"), (f"i{self.width}", "%lanes")
        return [("ptr", "%window"), *lanes, ("i64", "%size"), ("i64", "%epoch")]

    def _first_lane(self, code: Code) -> str:
        """The number of the first active lane; where none is, any."""
        mask = f"i{self.width}"
        name = f"llvm.cttz.{mask}"
        code.unit.declarations[name] = f"declare {mask} @{name}({mask}, i1 immarg)"
        return code.emit(f"and {mask} {code.call(mask, name, (mask, '%lanes'), ('i1', 'false'))}, {self.width - 1}")

    def _take(self, unit: Unit) -> str:
        """Define the function that tells how far into its window each lane is, perhaps after filling it; returns its name.

        It gives `GATHER` where the elements are not in the window.
        """
        width, mask, addresses = self.width, f"i{self.width}", f"<{self.width} x i64>"

        def write(code: Code) -> str:
            record, hit, miss, end = _Record(code, width), code.label(), code.label(), code.label()
            losses = code.emit("load i64, ptr %losses, align 8", pure=False)
            starts = code.emit(f"load {addresses}, ptr %window, align 64", pure=False)
            distances = code.emit(f"sub {addresses} %addresses, {starts}")
            first = self._first_lane(code) if self.some else "0"
            distance = code.emit(f"extractelement {addresses} {distances}, {mask} {first}")
            apart = code.mask_bits(code.emit(f"icmp ne {addresses} {distances}, {code.splat('i64', distance)}"))
            if self.some:
                apart = code.emit(f"and {mask} {apart}, %lanes")
            good = together = code.emit(f"icmp eq {mask} {apart}, 0")
            hits = record.load("i32", HITS)
            more, part = code.emit(f"add i32 {hits}, 1"), code.emit("sub i64 %unit, 1")
            for test in (
                f"icmp sge i32 {hits}, 0",
                f"icmp ule i64 {distance}, {code.emit(f'sub i64 {SIZE}, %size')}",
                f"icmp sgt i64 {distance}, {record.load('i64', LAST)}",
                f"icmp eq i64 {code.emit(f'and i64 {distance}, {part}')}, 0",
                f"icmp eq i64 {record.load('i64', OF_EPOCH)}, %epoch",
                f"icmp ule i64 %unit, {record.load('i64', UNIT)}",  # else a lane may be misaligned
            ):
                good = code.emit(f"and i1 {good}, {code.emit(test)}")
            code.branch(good, hit, miss, likely=True)
            code.block(hit)
            record.store("i32", HITS, more)
            record.store("i64", LAST, distance)
            worth = code.emit(f"icmp sge i32 {more}, {ENOUGH}")
            code.run(f"store i64 {code.emit(f'select i1 {worth}, i64 0, i64 {losses}')}, ptr %losses, align 8")
            code.jump(end)
            code.block(miss)
            served = code.emit(f"icmp sge i32 {hits}, {ENOUGH}")
            near = code.emit(f"icmp ult i64 {code.emit(f'sub i64 {distance}, 1')}, {STEP}")
            empty = code.emit(f"icmp slt i32 {hits}, 0")
            walks = code.emit(f"and i1 {together}, {code.emit(f'and i1 {near}, {empty}')}")
            steps = code.emit(f"select i1 {walks}, i32 {more}, i32 {-STEPS}")
            ways = self._missed(code, record, losses, served, steps, end)
            code.block(end)
            ways.append((distance, hit))
            return code.emit(f"phi i64 {', '.join([f'[ {value}, %{label} ]' for value, label in ways])}", pure=False)

        name = f"ptxvm.row_window.take.{self.word}{'.some' if self.some else ''}"
        return unit.piece(name, "i64", f"{_listed(self._parameters)}, ptr %losses, i64 %begin, i64 %room, i64 %unit", write)

    def _missed(
        self, code: Code, record: _Record, losses: str, served: str, steps: str, end: str
    ) -> list[tuple[str, str]]:  # fmt: skip
        """Fill the window, or remember where the lanes are; returns what is given, with the block that comes from there.

        `served`: it was worth to fill it the last time; `steps` is 0 where the lanes have moved on often enough since.
        """
        ask, fill, keep = code.label(), code.label(), code.label()
        fills = code.emit(f"or i1 {served}, {code.emit(f'icmp sge i32 {steps}, 0')}")
        cost = code.emit(f"select i1 {fills}, i64 {FILLING}, i64 1")
        lost = code.emit(f"select i1 {served}, i64 0, i64 {code.emit(f'add i64 {losses}, {cost}')}")
        code.run(f"store i64 {lost}, ptr %losses, align 8")
        code.branch(fills, ask, keep)
        code.block(ask)
        code.branch(self._may_fill(code), fill, end)
        code.block(fill)
        begun = code.call("i64", self._fill(code.unit), *self._parameters, pure=False)
        record.store("i64", UNIT, "%unit")
        code.jump(end)
        code.block(keep)
        code.run(f"store <{self.width} x i64> %addresses, ptr %window, align 64")
        record.store("i32", HITS, steps)
        code.jump(end)
        return [(begun, fill), (str(GATHER), ask), (str(GATHER), keep)]

    def _may_fill(self, code: Code) -> str:
        """Are windows of all active lanes in the allocation (`Allocation`), at multiples of a unit?"""
        width, mask, addresses = self.width, f"i{self.width}", f"<{self.width} x i64>"
        bytes = code.emit("mul i64 %room, %unit")
        last = code.splat("i64", code.emit(f"sub i64 {bytes}, {SIZE}"))
        places = code.emit(f"sub {addresses} %addresses, {code.splat('i64', '%begin')}")
        part = code.splat("i64", code.emit("sub i64 %unit, 1"))
        beyond = code.emit(f"icmp ugt {addresses} {places}, {last}")
        uneven = code.emit(f"icmp ne {addresses} {code.emit(f'and {addresses} {places}, {part}')}, zeroinitializer")
        wrong = code.mask_bits(code.emit(f"or <{width} x i1> {beyond}, {uneven}"))
        good = code.emit(f"icmp eq {mask} {code.emit(f'and {mask} {wrong}, %lanes')}, 0")
        return code.emit(f"and i1 {good}, {code.emit(f'icmp uge i64 {bytes}, {SIZE}')}")

    def _fill(self, unit: Unit) -> str:
        """Define the function that fills a window, and tells how far into it the lanes are; returns its name.

        That is none, but where all lanes are equally far from the begin of a line, which holds what they load: then the
        window is that line.
        """
        width, mask, size = self.width, f"i{self.width}", self.word
        llvm, each = f"i{8 * size}", SIZE // size

        def write(code: Code) -> str:
            record = _Record(code, width)
            addresses = f"<{width} x i64>"
            distance = code.emit(f"extractelement {addresses} %addresses, {mask} {self._first_lane(code)}")
            different = code.emit(f"xor {addresses} %addresses, {code.splat('i64', distance)}")
            different = code.emit(f"and {addresses} {different}, splat (i64 {SIZE - 1})")
            others = code.mask_bits(code.emit(f"icmp ne {addresses} {different}, zeroinitializer"))
            others = code.emit(f"and {mask} {others}, %lanes")
            inside = code.emit(f"and i64 {distance}, {SIZE - 1}")
            within = code.emit(f"sub i64 {SIZE}, %size")
            aligned = code.emit(f"icmp eq {mask} {others}, 0")
            aligned = code.emit(f"and i1 {aligned}, {code.emit(f'icmp ule i64 {inside}, {within}')}")
            begun = code.emit(f"select i1 {aligned}, i64 {inside}, i64 0")
            starts = code.emit(f"sub {addresses} %addresses, {code.splat('i64', begun)}")
            # A lane that is not active loads what no lane can ask for.
            active = code.emit(f"bitcast {mask} %lanes to <{width} x i1>")
            own = code.splat("i64", code.emit("ptrtoint ptr %window to i64"))
            starts = code.emit(f"select <{width} x i1> {active}, {addresses} {starts}, {addresses} {own}")
            code.run(f"store {addresses} {starts}, ptr %window, align 64")
            record.store("i64", OF_EPOCH, "%epoch")
            record.store("i64", LAST, begun)
            before = code.emit(f"udiv i64 {begun}, %size")  # as often as it would have served until here
            record.store("i32", HITS, code.emit(f"trunc i64 {before} to i32"))
            again, end, onward = code.label(), code.label(), code.name()
            code.jump(again)
            code.block(again)
            first = code.emit(f"phi i64 [ 0, %entry ], [ {onward}, %{again} ]", pure=False)
            slot = code.emit(f"getelementptr i64, ptr %window, i64 {first}")
            registers = []
            for lane in range(each):
                pointer = pointer_in(code, code.offset(slot, 8 * lane))
                registers.append(code.emit(f"load <{each} x {llvm}>, ptr {pointer}, align 1", pure=False))
                prefetches.prefetch(code, code.offset(pointer, AHEAD), prefetches.SECOND_CACHE)
            start = code.offset("%window", 8 * width + RECORD)
            column = code.emit(f"getelementptr {llvm}, ptr {start}, i64 {first}")
            for n, row in enumerate(transposed(code, llvm, registers, each)):
                code.run(f"store <{each} x {llvm}> {row}, ptr {code.offset(column, n * size * width)}, align {SIZE}")
            code.run(f"{onward} = add i64 {first}, {each}")
            code.branch(code.emit(f"icmp ult i64 {onward}, {width}"), again, end)
            code.block(end)
            return begun

        return unit.piece(f"ptxvm.row_window.fill.{size}", "i64", _listed(self._parameters), write, called=True)


def _listed(parameters: list[tuple[str, str]]) -> str:
    return ", ".join([f"{llvm} {name}" for llvm, name in parameters])


class _Record:
    """The record of `%window`, of so many lanes."""

    def __init__(self, code: Code, width: int) -> None:
        self.code, self.start = code, 8 * width

    def load(self, llvm: str, at: int) -> str:
        """A field."""
        return self.code.emit(f"load {llvm}, ptr {self.code.offset('%window', self.start + at)}, align 4", pure=False)

    def store(self, llvm: str, at: int, value: str) -> None:
        """Change a field."""
        self.code.run(f"store {llvm} {value}, ptr {self.code.offset('%window', self.start + at)}, align 4")

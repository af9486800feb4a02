"""Remembered patterns: the rows of affine accesses of whole warps, by their scalars and by where in a line they begin.

An access looks where its first lane lies in its line.  If the pattern remembered there has the scalars of the address, and
all lanes are in the allocation that it is of, its row counts; else the lanes are counted, and remembered.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.counter_rows import (
    CLASS,
    CLASSES,
    LENGTH,
    LOW,
    MOVED,
    OF_CLASS,
    PATTERN,
    ROOM,
    ROW,
    SCALARS,
    START,
    WORD,
)
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Pattern, vector_literal
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.lane_traffic import COUNTS, global_row, plain_row, shared_row
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import LINE, WORD as BANK_WORD

HEAD = ROW  # words before the patterns: the place that was met last
ROW_AT = WORD * (PATTERN - ROW)  # where its row stands in a pattern, in bytes
CALLER = (("ctx", "ptr"), ("memory", "ptr"), ("rows", "ptr"), ("base", "i64"), ("u0", "i64"), ("u1", "i64"))
ADDRESS = {Space.SHARED: "i32"}  # the type of an address, where it is not i64


@dataclass(frozen=True)
class Shape:
    """The shape of an affine access: the patterns of its lanes, each with its factor or None for a scalar of the address."""

    width: int
    terms: tuple[tuple[Pattern, int | None], ...]
    space: Space
    size: int
    atomic: bool

    @property
    def log(self) -> int:
        """The size as a power of two."""
        return self.size.bit_length() - 1

    @property
    def period(self) -> int:
        """Bytes after which places cost the same: of a line, or of a bank's word."""
        return BANK_WORD if self.space is Space.SHARED else LINE

    @property
    def words(self) -> int:
        """The words that it needs."""
        return HEAD + PATTERN * max(self.period // self.size, 1)

    @property
    def name(self) -> str:
        """A name for its functions."""
        return Digest().add(repr(self)).text[:16]

    @property
    def scalars(self) -> int:
        """How many scalars of the address it depends on."""
        return sum(factor is None for _, factor in self.terms)

    @property
    def classes(self) -> int:
        """The rows that it counts in."""
        return len(CLASSES) if self.space is Space.GENERIC else 1


# ── lane by lane ────────────────────────────────────────────────────────────────────────


def every_class(unit: Unit, space: Space, size: int, *, atomic: bool) -> str:
    """The function that counts one warp: `f(ctx, place, rows, addresses, mask)`, in a row for each space that it may reach."""
    log, held = size.bit_length() - 1, f"<{WARP} x {ADDRESS.get(space, 'i64')}>"

    def write(code: Code) -> str:
        some, end = code.label(), code.label()
        if space is not Space.SHARED:  # here, so that they are variables of the function that this one is written into
            code.run(f"%room = alloca [{WARP + ROW} x i32], align 64")
            code.run(f"%lanes = alloca {held}, align 64")
        code.branch(code.emit("icmp ne i32 %mask, 0"), some, end)
        code.block(some)
        if space is Space.SHARED:
            _add(code, shared_row(unit, log, atomic=atomic), "%rows", "%addresses", "%mask")
        elif space is Space.GENERIC:
            places = _places(code)
            for n, each in enumerate(CLASSES):
                mask_at, rows = _offset(code, "%room", 4 * (WARP + n)), _offset(code, "%rows", n * ROW * WORD)
                _of_class(code, each, log, places, mask_at, rows, atomic=atomic)
        else:
            _add(code, global_row(unit, log, atomic=atomic), "%rows", _places(code), "%mask")
        code.jump(end)
        code.block(end)
        return ""

    name = f"ptxvm.count.{space}.{log}{'.atomic' if atomic else ''}"
    return unit.piece(name, "void", f"ptr %ctx, ptr %place, ptr %rows, {held} %addresses, i32 %mask", write)


def _of_class(code: Code, space: Space, log: int, places: str, mask_at: str, rows: str, *, atomic: bool) -> None:
    """Count the lanes whose addresses are in one space."""
    mask = code.emit(f"load i32, ptr {mask_at}, align 4", pure=False)
    some, onward = code.label(), code.label()
    code.branch(code.emit(f"icmp ne i32 {mask}, 0"), some, onward)
    with code.scope():
        code.block(some)
        match space:
            case Space.GLOBAL:
                function = global_row(code.unit, log, atomic=atomic)
            case Space.SHARED:
                function = shared_row(code.unit, log, atomic=atomic)
            case _:
                function = plain_row(code.unit)
        _add(code, function, rows, places, mask)
        code.jump(onward)
    code.block(onward)


def _add(code: Code, function: str, rows: str, places: str, mask: str) -> None:
    found = code.call(COUNTS, function, (f"<{WARP} x i32>", places), ("i32", mask), pure=False)
    _add_row(code, rows, found)


def _add_row(code: Code, rows: str, found: str) -> None:
    before = code.emit(f"load {COUNTS}, ptr {rows}, align 8", pure=False)
    code.run(f"store {COUNTS} {code.emit(f'add {COUNTS} {before}, {found}', pure=False)}, ptr {rows}, align 8")


def _places(code: Code) -> str:
    """Where all lanes lie, as numbers of 32 bits; the lanes of each class stand in `%room` behind them."""
    words, wide = f"<{WARP} x i32>", f"<{WARP} x i64>"
    classes = _offset(code, "%room", 4 * WARP)
    code.run(f"store <{ROW} x i32> zeroinitializer, ptr {classes}, align 32")
    start, length, moved = (_load(code, "%place", n) for n in (START, LENGTH, MOVED))
    away = code.emit(f"sub {wide} %addresses, {code.splat('i64', start, WARP)}")
    outside = code.emit(f"icmp uge {wide} {away}, {code.splat('i64', length, WARP)}")
    bad = code.emit(f"and i32 {code.emit(f'bitcast <{WARP} x i1> {outside} to i32')}, %mask")
    near, far, onward = (code.label() for _ in range(3))
    code.branch(code.emit(f"icmp eq i32 {bad}, 0"), near, far, likely=True)
    code.block(near)
    low = code.emit(f"trunc {wide} %addresses to {words}", pure=False)
    moved = code.splat("i32", code.emit(f"trunc i64 {moved} to i32", pure=False), WARP)
    quick = code.emit(f"add {words} {low}, {moved}", pure=False)
    own = code.emit(f"getelementptr i32, ptr {classes}, i64 {_load(code, '%place', CLASS)}", pure=False)
    code.run(f"store i32 %mask, ptr {own}, align 4")
    code.jump(onward)
    code.block(far)
    fields = {name: offset(name) for name in ("places", "place_count")}
    search = code.unit.helper("ptxvm.find_places", runtime("find_places", **fields))
    code.run(f"store {wide} %addresses, ptr %lanes, align 64")
    pointers = (("ptr", name) for name in ("%ctx", "%place", "%lanes", "%room", classes))
    code.perform(search, *pointers, ("i32", "%mask"))
    found = code.emit(f"load {words}, ptr %room, align 64", pure=False)
    code.jump(onward)
    code.block(onward)
    return code.emit(f"phi {words} [ {quick}, %{near} ], [ {found}, %{far} ]", pure=False)


def _load(code: Code, pointer: str, word: int) -> str:
    return code.emit(f"load i64, ptr {_offset(code, pointer, WORD * word)}, align 8", pure=False)


def _store(code: Code, value: str, pointer: str, word: int) -> None:
    code.run(f"store i64 {value}, ptr {_offset(code, pointer, WORD * word)}, align 8")


def _offset(code: Code, pointer: str, size: int) -> str:
    return code.emit(f"getelementptr i8, ptr {pointer}, i64 {size}", pure=False)


# ── by pattern ──────────────────────────────────────────────────────────────────────────


def counter(unit: Unit, shape: Shape) -> str:
    """The function that counts an access of all lanes: `f(ctx, memory, rows, base, u0, u1)`."""

    def write(code: Code) -> str:
        code.run(f"%room = alloca [{len(CALLER)} x i64], align 64")
        first = _lane_address(code, shape, 0)
        pattern = _pattern(code, shape, first)
        away = code.emit(f"sub i64 {first}, {_load(code, pattern, LOW)}")
        good = code.emit(f"icmp ult i64 {away}, {_load(code, pattern, ROOM)}")
        for n in range(shape.scalars):
            same = code.emit(f"icmp eq i64 {_load(code, pattern, n)}, %u{n}")
            good = code.emit(f"and i1 {good}, {same}")
        hit, miss, end = (code.label() for _ in range(3))
        code.branch(good, hit, miss, likely=True)
        code.block(hit)
        known = code.emit(f"load {COUNTS}, ptr {_offset(code, pattern, ROW_AT)}, align 64", pure=False)
        _add_row(code, _row_of_class(code, shape, "%rows", _load(code, pattern, OF_CLASS)), known)
        code.jump(end)
        code.block(miss)
        words = [(n, llvm, f"%{name}") for n, (name, llvm) in enumerate(CALLER)]
        preserving_calls.ask(code, _learn(unit, shape), "%room", words)
        code.jump(end)
        code.block(end)
        return ""

    parameters = ", ".join(f"{llvm} %{name}" for name, llvm in CALLER)
    return unit.piece(f"ptxvm.pattern.{shape.name}", "void", parameters, write)


def _pattern(code: Code, shape: Shape, first: str) -> str:
    """The pattern that is remembered for where the first lane lies in its line."""
    within = code.emit(f"and i64 {first}, {max(shape.period, shape.size) - 1}")
    index = code.emit(f"lshr i64 {within}, {shape.log}")
    begin = _offset(code, "%memory", HEAD * WORD)
    return code.emit(f"getelementptr [{PATTERN} x i64], ptr {begin}, i64 {index}", pure=False)


def _row_of_class(code: Code, shape: Shape, rows: str, number: str) -> str:
    """The row for a class of places."""
    if shape.space is not Space.GENERIC:
        return rows
    return code.emit(f"getelementptr [{ROW} x i64], ptr {rows}, i64 {number}", pure=False)


def _lane_address(code: Code, shape: Shape, lane: int) -> str:
    """The address of one lane."""
    total, scalar = "%base", 0
    for pattern, factor in shape.terms:
        u = f"%u{scalar}" if factor is None else str(factor)
        scalar += factor is None
        if pattern[lane]:
            total = code.emit(f"add i64 {total}, {code.emit(f'mul i64 {u}, {pattern[lane]}')}")
    return total


def _learn(unit: Unit, shape: Shape) -> str:
    """The function that counts all lanes, and remembers the pattern where they lie in one allocation."""
    name = f"ptxvm.learn.{shape.name}"
    if name in unit.helpers:
        return name
    unit.helper(name, "")
    code, classes = Code(unit, whole=True), shape.classes
    all_rows = f"<{classes * ROW} x i64>"
    for n, (field, llvm) in enumerate(CALLER):
        code.run(f"%{field}.at = getelementptr i64, ptr %q, i64 {n}")
        code.run(f"%{field} = load {llvm}, ptr %{field}.at, align 8")
    code.run(f"%own = alloca {all_rows}, align 64")
    code.run(f"store {all_rows} zeroinitializer, ptr %own, align 64")
    lanes = _all_addresses(code, shape)
    _count_warps(code, shape, lanes)
    found = code.emit(f"load {all_rows}, ptr %own, align 64", pure=False)
    total = code.emit(f"load {all_rows}, ptr %rows, align 8", pure=False)
    code.run(f"store {all_rows} {code.emit(f'add {all_rows} {total}, {found}', pure=False)}, ptr %rows, align 8")
    first = _lane_address(code, shape, 0)
    pattern = _pattern(code, shape, first)
    low, room = _extent(code, shape, lanes, first)
    number = _load(code, "%memory", CLASS)
    for word, value in (*((n, f"%u{n}") for n in range(SCALARS)), (LOW, low), (ROOM, room), (OF_CLASS, number)):
        _store(code, value, pattern, word)
    row = code.emit(f"load {COUNTS}, ptr {_row_of_class(code, shape, '%own', number)}, align 64", pure=False)
    code.run(f"store {COUNTS} {row}, ptr {_offset(code, pattern, ROW_AT)}, align 8")
    lines = "\n".join(code.lines)
    del unit.helpers[name]
    return unit.helper(name, f"define internal i64 @{name}(ptr %q) cold noinline #0 {{\nentry:\n{lines}\n  ret i64 0\n}}")


def _extent(code: Code, shape: Shape, lanes: str, first: str) -> tuple[str, str]:
    """For which addresses of the first lane the pattern holds: from the least on, for so many bytes.

    All lanes must stay in the allocation where they are; in shared memory an access that is not is a fault.
    """
    if shape.space is Space.SHARED:
        return "0", "-1"
    held = f"<{shape.width} x i64>"
    away = code.emit(f"sub {held} {lanes}, {code.splat('i64', first, shape.width)}")
    least, most = (
        code.intrinsic("i64", f"llvm.vector.reduce.{end}.v{shape.width}i64", (held, away)) for end in ("smin", "smax")
    )
    start, length = _load(code, "%memory", START), _load(code, "%memory", LENGTH)
    low = code.emit(f"sub i64 {start}, {least}")
    extent = code.emit(f"add i64 {code.emit(f'sub i64 {most}, {least}')}, {shape.size - 1}")
    room = code.intrinsic("i64", "llvm.usub.sat.i64", ("i64", length), ("i64", extent))
    inside = code.emit(f"icmp ult i64 {code.emit(f'sub i64 {first}, {low}')}, {room}")
    return low, code.emit(f"select i1 {inside}, i64 {room}, i64 0")


def _all_addresses(code: Code, shape: Shape) -> str:
    """The addresses of all lanes."""
    held, scalar = f"<{shape.width} x i64>", 0
    total = code.splat("i64", "%base", shape.width)
    for pattern, factor in shape.terms:
        scaled = vector_literal("i64", tuple(n * (1 if factor is None else factor) for n in pattern))
        if factor is None:
            scaled = code.emit(f"mul {held} {code.splat('i64', f'%u{scalar}', shape.width)}, {scaled}")
            scalar += 1
        total = code.emit(f"add {held} {total}, {scaled}")
    return total


def _count_warps(code: Code, shape: Shape, lanes: str) -> None:
    """Count warp by warp."""
    function = every_class(code.unit, shape.space, shape.size, atomic=shape.atomic)
    llvm, width = ADDRESS.get(shape.space, "i64"), shape.width
    if llvm == "i32":
        lanes = code.emit(f"trunc <{width} x i64> {lanes} to <{width} x i32>")
    for n in range(width // WARP):
        own = code.shuffle(llvm, width, lanes, "poison", range(n * WARP, (n + 1) * WARP))
        code.perform(function, ("ptr", "%ctx"), ("ptr", "%memory"), ("ptr", "%own"), (f"<{WARP} x {llvm}>", own), ("i32", "-1"))

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
    OF_CLASS,
    PATTERN,
    ROOM,
    ROW,
    SCALARS,
    START,
    WORD,
)
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Pattern, vector_literal
from ptxvm.engine.jit.memory.request_batches import Request, key_words, rest
from ptxvm.engine.jit.memory.request_places import ADDRESS, keeper
from ptxvm.engine.jit.memory.row_values import COUNTS, add_row
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import LINE, WORD as BANK_WORD

HEAD = ROW  # words before the patterns: the place that was met last
ROW_AT = WORD * (PATTERN - ROW)  # where its row stands in a pattern, in bytes
CALLER = (("ctx", "ptr"), ("memory", "ptr"), ("rows", "ptr"), ("base", "i64"), ("u0", "i64"), ("u1", "i64"))


@dataclass(frozen=True)
class Shape:
    """The shape of an affine access: the patterns of its lanes, each with its factor or None for a scalar of the address."""

    width: int
    terms: tuple[tuple[Pattern, int | None], ...]
    space: Space
    verb: Verb
    size: int

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


def _load(code: Code, pointer: str, word: int) -> str:
    return code.emit(f"load i64, ptr {_offset(code, pointer, WORD * word)}, align 8", pure=False)


def _store(code: Code, value: str, pointer: str, word: int) -> None:
    code.run(f"store i64 {value}, ptr {_offset(code, pointer, WORD * word)}, align 8")


def _offset(code: Code, pointer: str, size: int) -> str:
    return code.emit(f"getelementptr i8, ptr {pointer}, i64 {size}", pure=False)


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
        add_row(code, _row_of_class(code, shape, "%rows", _load(code, pattern, OF_CLASS)), known)
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
    """Count all lanes in `%own`: the requests of their warps are batches of their own."""
    request = Request(shape.space, shape.verb, shape.size)
    function, llvm, width = keeper(code.unit, request), ADDRESS.get(shape.space, "i64"), shape.width
    if llvm == "i32":
        lanes = code.emit(f"trunc <{width} x i64> {lanes} to <{width} x i32>")
    warps, zero = width // WARP, f"@{code.unit.table('i64', (0,))}"
    batches = []
    for space in request.batched:
        keys, kept = f"%keys.{space}", f"%kept.{space}"
        code.run(f"{keys} = alloca [{key_words(warps)} x i64], align 128")
        code.run(f"{kept} = alloca i64, align 8")
        code.run(f"store i64 0, ptr {kept}, align 8")
        number = CLASSES.index(space) if shape.space is Space.GENERIC else 0
        batches.append((space, keys, kept, _offset(code, "%own", number * ROW * WORD)))
    pointers = [("ptr", each) for _, keys, kept, row in batches for each in (keys, zero, kept, kept, row)]
    arguments = ("ptr", "%ctx"), ("ptr", "%memory"), ("ptr", "%own")
    for n in range(warps):
        own = code.shuffle(llvm, width, lanes, "poison", range(n * WARP, (n + 1) * WARP))
        code.perform(function, *arguments, (f"<{WARP} x {llvm}>", own), ("i32", "-1"), *pointers)
    for space, keys, kept, row in batches:
        count = code.emit(f"load i64, ptr {kept}, align 8", pure=False)
        code.perform(rest(code.unit, request.within(space)), ("ptr", keys), ("ptr", row), ("i64", count))

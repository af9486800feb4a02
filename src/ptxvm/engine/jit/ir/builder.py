"""The IR builder: the instructions of an LLVM function, and the declarations and helpers of its module."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.isa.special_registers import WARP

REMEMBERED = 4096  # masks of shuffles
PAGE = 4096  # bytes of memory that are there together
SMALL = ("i8", "i16")  # elements that AVX2 neither gathers, scatters nor loads under a mask
LONGEST = 200  # lines of a block: without optimisation, LLVM's code generator takes time that grows with their square


# A shared piece of code is a function of its own: quick code calls it, the best tier inlines it.
PIECES = "attributes #1 = { noinline "
IN_PLACE = PIECES.replace("noinline", "alwaysinline")
MEANING = "ptxvm.meaning."  # how the names of those begin that instructions of one form share

# A function that runs once for a CTA, or seldom: the quick tier writes it down as it is, which takes a third of the time.
SELDOM = '"ptxvm-seldom"'


class TooWideError(Exception):
    """Code for several warps abreast holds an instruction that is written for one warp only."""


class Unit:
    """A module under construction: how many lanes a vector has, declarations, helper functions, a counter for names."""

    def __init__(self, width: int = WARP) -> None:
        self.width = width
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.count = 0
        self.suffix = ""  # of the names of functions that depend on the width

    def widened(self, times: int) -> Unit:
        """The same module for vectors that are so many times as long: it has pieces of its own."""
        wide = Unit(self.width * times)
        wide.declarations, wide.helpers, wide.suffix = self.declarations, self.helpers, f".{times}"
        return wide

    def declare(self, name: str, result: str, *parameters: str) -> str:
        """Declare a function of another module; returns its name."""
        self.declarations[name] = f"declare {result} @{name}({', '.join(parameters)})"
        return name

    def helper(self, name: str, body: str) -> str:
        """Define a function of the module, once; returns its name."""
        self.helpers[name] = body
        return name

    def piece(self, name: str, result: str, parameters: str, write: Callable[[Code], str], *, called: bool = False) -> str:
        """Define a function for a shared piece of code: `write` writes its body and returns its result.

        One that is `called` stays a function in the best tier, too.
        """
        name += self.suffix
        if name not in self.helpers:
            self.helper(name, "")  # the helpers that its body needs come before it
            code = Code(self, whole=True)
            answer = write(code)
            lines = "\n".join([*code.lines, f"  ret {result} {answer}"])
            del self.helpers[name]
            how = "noinline #0" if called else "#1"
            self.helper(name, f"define internal {result} @{name}({parameters}) {how} {{\nentry:\n{lines}\n}}")
        return name

    def table(self, llvm: str, entries: tuple[int, ...]) -> str:
        """A constant array; returns its name."""
        items = ", ".join(f"{llvm} {n & (1 << int(llvm[1:])) - 1}" for n in entries)
        name = f"ptxvm.table.{llvm}.{Digest().add(items).text[:16]}"
        return self.helper(name, f"@{name} = internal constant [{len(entries)} x {llvm}] [{items}], align 64")


class Code:
    """Lines of one function under construction; of `whole` ones, which read the same in any module."""

    def __init__(self, unit: Unit, *, whole: bool = False) -> None:
        self.unit, self.width = unit, unit.width
        self.count = 0
        self._numbered: Unit | Code = self if whole else unit
        self.lines: list[str] = []
        self.memo: dict[str, str] = {}
        self.sums: dict[str, tuple[str, int]] = {}  # scalars that are the sum of another scalar and a constant
        self.root_bits: dict[str, int] = {}  # the bits that scalars may have to which constants were added
        self.casts: dict[str, tuple[str, str]] = {}  # the type and value of the same bits before a bitcast
        self.begun = 0  # the line at which the last block begins
        self.first_alone = False  # lanes of other warps than the first are not active

    def widened(self, times: int) -> Code:
        """The same lines, for vectors that are so many times as long."""
        wide = Code(self.unit.widened(times))
        wide._numbered, wide.lines, wide.memo, wide.casts = self._numbered, self.lines, self.memo, self.casts
        wide.sums, wide.root_bits, wide.begun = self.sums, self.root_bits, self.begun
        return wide

    def one_warp(self) -> None:
        """Raise TooWideError unless a vector is one warp."""
        if self.width != WARP:
            raise TooWideError

    def name(self) -> str:
        """The name of a new value."""
        self._numbered.count += 1
        return f"%v{self._numbered.count}"

    def label(self) -> str:
        """The name of a new block."""
        self._numbered.count += 1
        return f"L{self._numbered.count}"

    def run(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def emit(self, text: str, *, pure: bool = True) -> str:
        """Append an instruction with a result; equal pure ones share it (value numbering)."""
        if pure and text in self.memo:
            return self.memo[text]
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        if pure:
            self.memo[text] = name
        return name

    def call(self, result: str, function: str, *arguments: tuple[str, str], pure: bool = True) -> str:
        """Call a function; arguments are (type, operand)."""
        return self.emit(f"call {result} @{function}({_listed(arguments)})", pure=pure)

    def perform(self, function: str, *arguments: tuple[str, str]) -> None:
        """Call a function without a result; arguments are (type, operand)."""
        self.run(f"call void @{function}({_listed(arguments)})")

    def structure(self, llvm: str, *elements: tuple[str, str]) -> str:
        """Several values as one of a structure, which a function returns; elements are (type, operand)."""
        made = "poison"
        for n, (type, operand) in enumerate(elements):
            made = self.emit(f"insertvalue {llvm} {made}, {type} {operand}, {n}")
        return made

    def offset(self, pointer: str, size: int) -> str:
        """A pointer some bytes behind another."""
        return self.emit(f"getelementptr i8, ptr {pointer}, i64 {size}") if size else pointer

    def bitcast(self, source: str, operand: str, target: str) -> str:
        """The same bits as another type; undoes an earlier bitcast where that gives the type."""
        source, operand = self.casts.get(operand, (source, operand))
        if source == target:
            return operand
        made = self.emit(f"bitcast {source} {operand} to {target}")
        self.casts[made] = source, operand
        return made

    def intrinsic(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """Call an LLVM intrinsic."""
        self.unit.declare(name, result, *[type for type, _ in arguments])
        return self.call(result, name, *arguments)

    @staticmethod
    def float_literal(x: float) -> str:
        """A number as an f32 constant: LLVM writes these as the f64 of the same value."""
        (single,) = struct.unpack("<f", struct.pack("<f", x))
        return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"

    def block(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.begun = len(self.lines)

    def cut(self) -> None:
        """Begin another block where this one is long."""
        if len(self.lines) - self.begun > LONGEST:
            onward = self.label()
            self.jump(onward)
            self.block(onward)

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.run(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, *, likely: bool | None = None) -> None:
        """End the block with a conditional branch."""
        hint = "" if likely is None else ", !prof !1" if likely else ", !prof !2"
        self.run(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    @contextmanager
    def scope(self, *, fresh: bool = False) -> Iterator[None]:
        """Values of a loop, or of a block that may be skipped: code after it does not share them.

        Nor does it share those of the code before it, where it is `fresh`.
        """
        outer, shared = self.memo, len(self.memo)
        if fresh:
            self.memo = {}
        try:
            yield
        finally:
            self.memo = outer
            while len(outer) > shared:  # the values that came last; a copy of all would make long code quadratic
                outer.popitem()

    # ── vectors ─────────────────────────────────────────────────────────────────────────

    def splat(self, type: str, operand: str, count: int | None = None) -> str:
        """A scalar in all lanes."""
        count = count or self.width
        one = self.emit(f"insertelement <{count} x {type}> poison, {type} {operand}, i64 0")
        zeros = f"<{count} x i32> zeroinitializer"
        return self.emit(f"shufflevector <{count} x {type}> {one}, <{count} x {type}> poison, {zeros}")

    def shuffle(self, type: str, count: int, a: str, b: str, order: Sequence[int | None]) -> str:
        """Some elements of two vectors; None where any will do."""
        return self.emit(f"shufflevector <{count} x {type}> {a}, <{count} x {type}> {b}, {_mask(tuple(order))}")

    def concatenate(self, type: str, parts: list[str], each: int) -> str:
        """Concatenate vectors of `each` elements; their number is a power of two."""
        while len(parts) > 1:
            parts = [
                self.shuffle(type, each, a, b, list(range(2 * each))) for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            each *= 2
        return parts[0]

    def pieces(self, type: str, vector: str, each: int) -> list[str]:
        """A vector of all lanes as vectors of `each` elements; one that is shorter has its first element behind its own."""
        if self.width < each:
            return [self.shuffle(type, self.width, vector, "poison", [*range(self.width), *[0] * (each - self.width)])]
        return [self.shuffle(type, self.width, vector, "poison", list(range(n, n + each))) for n in range(0, self.width, each)]

    def joined(self, type: str, pieces: list[str], each: int) -> str:
        """The vector of all lanes whose pieces these are."""
        if self.width < each:
            return self.shuffle(type, each, pieces[0], "poison", list(range(self.width)))
        return self.concatenate(type, pieces, each)

    def masked_load(self, count: int, llvm: str, pointer: str, align: int, mask: str) -> str:
        """Load the elements that the mask selects; the others are zero."""
        vector = f"<{count} x {llvm}>"
        if llvm in SMALL and not cpu.has("avx512bw"):
            return self._masked_rows(count, llvm, pointer, align, mask)
        # frozen, so that LLVM does not merge it with a later `select`, past stores in between (22.1 does)
        return self.emit(f"freeze {vector} {self._masked_load(count, llvm, pointer, align, mask)}", pure=False)

    def _masked_load(self, count: int, llvm: str, pointer: str, align: int, mask: str) -> str:
        vector, name = f"<{count} x {llvm}>", f"llvm.masked.load.v{count}{short(llvm)}.p0"
        self.unit.declarations[name] = f"declare {vector} @{name}(ptr, i32 immarg, <{count} x i1>, {vector})"
        arguments = [("ptr", pointer), ("i32", str(align)), (f"<{count} x i1>", mask), (vector, "zeroinitializer")]
        return self.call(vector, name, *arguments, pure=False)

    def _masked_rows(self, count: int, llvm: str, pointer: str, align: int, mask: str) -> str:
        """Load bytes or halves under a mask, for which AVX2 has no instruction: a row of at most a warp after the other."""
        each, found = min(count, WARP), []
        vector, chosen = f"<{each} x {llvm}>", f"<{each} x i1>"
        name = f"ptxvm.row.{llvm}.{each}.{align}"
        piece = self.unit.piece(name, vector, f"ptr %p, {chosen} %m", lambda within: within.masked_row(each, llvm, align))
        for first in range(0, count, each):
            own = mask if count == each else self.shuffle("i1", count, mask, "poison", list(range(first, first + each)))
            start = self.offset(pointer, first * int(llvm[1:]) // 8)
            found.append(self.call(vector, piece, ("ptr", start), (chosen, own), pure=False))
        return self.concatenate(llvm, found, each)

    def masked_row(self, count: int, llvm: str, align: int) -> str:
        """The elements at `%p` that `%m` selects: if there is one, and all are in one page, all can be read.

        Otherwise LLVM tests lane after lane.
        """
        vector, bits = f"<{count} x {llvm}>", f"i{count}"
        some = self.emit(f"icmp ne {bits} {self.emit(f'bitcast <{count} x i1> %m to {bits}')}, 0")
        place = self.emit(f"and i64 {self.emit('ptrtoint ptr %p to i64')}, {PAGE - 1}")
        within = self.emit(f"icmp ule i64 {place}, {PAGE - count * int(llvm[1:]) // 8}")
        whole, apart, end = self.label(), self.label(), self.label()
        self.branch(self.emit(f"and i1 {some}, {within}"), whole, apart, likely=True)
        self.block(whole)
        loaded = self.emit(f"freeze {vector} {self.emit(f'load {vector}, ptr %p, align {align}', pure=False)}", pure=False)
        chosen = self.emit(f"select <{count} x i1> %m, {vector} {loaded}, {vector} zeroinitializer")
        self.jump(end)
        self.block(apart)
        others = self._masked_load(count, llvm, "%p", align, "%m")
        self.jump(end)
        self.block(end)
        return self.emit(f"phi {vector} [ {chosen}, %{whole} ], [ {others}, %{apart} ]", pure=False)

    def masked_store(self, count: int, llvm: str, value: str, pointer: str, align: int, mask: str) -> None:
        """Store the elements that the mask selects."""
        vector, name = f"<{count} x {llvm}>", f"llvm.masked.store.v{count}{short(llvm)}.p0"
        self.unit.declarations[name] = f"declare void @{name}({vector}, ptr, i32 immarg, <{count} x i1>)"
        self.run(f"call void @{name}({vector} {value}, ptr {pointer}, i32 {align}, <{count} x i1> {mask})")

    def masked_gather(self, llvm: str, pointers: str, mask: str) -> str:
        """Load from an address for each lane that the mask selects; the others are zero."""
        vector, addresses, predicates = (f"<{self.width} x {one}>" for one in (llvm, "ptr", "i1"))
        name = f"llvm.masked.gather.v{self.width}{short(llvm)}.v{self.width}p0"
        self.unit.declarations[name] = f"declare {vector} @{name}({addresses}, i32 immarg, {predicates}, {vector})"
        align = "8" if llvm in ("i64", "double") else "4"
        arguments = [(addresses, pointers), ("i32", align), (predicates, mask), (vector, "zeroinitializer")]
        return self.emit(f"freeze {vector} {self.call(vector, name, *arguments, pure=False)}", pure=False)

    def mask_bits(self, predicate: str) -> str:
        """A vector of predicates as an integer."""
        return self.emit(f"bitcast <{self.width} x i1> {predicate} to i{self.width}")

    def lanes(self, bits: str) -> str:
        """An integer as predicates of the lanes of a warp, the inverse of `mask_bits`."""
        key = f"lanes of {bits}"
        if key not in self.memo:
            self.memo[key] = self.emit(f"bitcast i32 {bits} to <{WARP} x i1>") if cpu.has("avx512f") else self._tested(bits)
            self.memo[f"bitcast <{WARP} x i1> {self.memo[key]} to i32"] = bits
        return self.memo[key]

    def all_lanes(self, bits: str) -> str:
        """An integer as predicates of all lanes, of one warp or several."""
        if self.width == WARP:
            return self.lanes(bits)
        if cpu.has("avx512f"):
            made = self.emit(f"bitcast i{self.width} {bits} to <{self.width} x i1>")
        else:
            made = self.concatenate("i1", [self.lanes(self.part_of(bits, n)) for n in self.warps()], WARP)
        self.memo[f"bitcast <{self.width} x i1> {made} to i{self.width}"] = bits
        return made

    def part_of(self, bits: str, warp: int) -> str:
        """The part of a mask of all lanes that is of one of the warps."""
        if self.width == WARP:
            return bits
        moved = self.emit(f"lshr i{self.width} {bits}, {warp * WARP}") if warp else bits
        return self.emit(f"trunc i{self.width} {moved} to i32")

    def _tested(self, bits: str) -> str:
        """A bit for each lane, tested with vectors: of a bitcast LLVM extracts bit after bit for masked accesses."""
        one = ", ".join(f"i32 {1 << n}" for n in range(WARP))
        own = self.emit(f"and <{WARP} x i32> {self.splat('i32', bits, WARP)}, <{one}>")
        return self.emit(f"icmp ne <{WARP} x i32> {own}, zeroinitializer")

    def warps(self) -> range:
        """The numbers of the warps that a vector holds, from 0."""
        return range(max(1, self.width // WARP))

    def active_warps(self) -> range:
        """Those of them that may have active lanes."""
        return range(1) if self.first_alone else self.warps()

    def warp_bits(self, predicate: str, warp: int) -> str:
        """The predicates of one of the warps as an integer.

        It is a part of those of all: a part of the vector as an integer LLVM would take through memory, where it waits.
        """
        return self.part_of(self.mask_bits(predicate), warp)


def _listed(arguments: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{type} {operand}" for type, operand in arguments)


@lru_cache(REMEMBERED)
def _mask(order: tuple[int | None, ...]) -> str:
    """The mask of a shuffle, with its type."""
    return f"<{len(order)} x i32> <" + ", ".join(f"i32 {'poison' if n is None else n}" for n in order) + ">"


def short(llvm: str) -> str:
    """A type as the name of an intrinsic spells it."""
    return {"float": "f32", "double": "f64"}.get(llvm, llvm)

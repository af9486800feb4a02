"""Accesses whose lanes stay within two lines of the cache: looked at when they run, a register of lanes at a time.

The partners of a butterfly (`t ^ 1`), digits that are reversed, small tables and the pixels of an image that is made larger
are neither rows nor strides, but the sixteen lanes of a register often ask for one line of 64 bytes, or for it and the next.
A line that some lane asks for can be loaded as a whole, and a permutation brings each lane its element.  A store goes the
same way within one line where the permutation is its own inverse, as that of a butterfly is: two lanes then never store to
one place.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import vector_literal
from ptxvm.isa.special_registers import WARP

LINE = 64  # bytes of a line, and of a register
PERMUTE = {4: "llvm.x86.avx512.permvar.si.512", 8: "llvm.x86.avx512.permvar.di.512"}  # by the bytes of an element
FROM_TWO = {4: "llvm.x86.avx512.vpermi2var.d.512", 8: "llvm.x86.avx512.vpermi2var.q.512"}


def suits(size: int) -> bool:
    """Can the processor permute elements of a size by indices in a register?"""
    return size in PERMUTE and cpu.has("avx512f")


class NearLines:
    """The lines that the lanes of one warp access: `addresses` are those of all lanes, `%mask` are the active ones if `some`.

    `pointer` makes the pointer of an address.
    """

    def __init__(
        self, code: Code, llvm: str, size: int, addresses: str, pointer: Callable[[str], str], *, some: bool
    ) -> None:  # fmt: skip
        self.code, self.llvm, self.size, self.pointer, self.some = code, llvm, size, pointer, some
        self.each = LINE // size
        self.word = f"i{8 * size}"
        self.held = f"<{self.each} x {self.word}>"
        self.predicate = f"<{self.each} x i1>"
        self.registers = [self._part("i64", addresses, n) for n in range(WARP // self.each)]
        self.active = [self._active(n) for n in range(WARP // self.each)] if some else []
        self.lines = [self._line(n) for n in range(WARP // self.each)]

    def within(self, *, writing: bool) -> str:
        """Are the active lanes of each register in its lines?  `writing`: in one, and is the permutation its own inverse?"""
        code, good = self.code, "true"
        for n in range(len(self.registers)):
            apart = self._from(n, LINE if writing else 2 * LINE)
            if writing:
                apart = code.emit(f"or {self.predicate} {apart}, {self._others(self._own_inverse(n))}")
            good = code.emit(f"and i1 {good}, {code.emit(f'icmp eq i{self.each} {self._active_bits(apart, n)}, 0')}")
        return good

    def load(self) -> str:
        """Load the element of each lane; those of lanes that are not active are any of the lines."""
        code, found = self.code, []
        for n, line in enumerate(self.lines):
            further = code.emit(f"icmp ne i{self.each} {self._active_bits(self._from(n, LINE), n)}, 0")
            second = code.emit(f"select i1 {further}, i64 {code.emit(f'add i64 {line}, {LINE}')}, i64 {line}")
            loaded = [
                code.emit(f"load {self.held}, ptr {self._readable(n, each)}, align {LINE}", pure=False)
                for each in (line, second)
            ]
            arguments = (self.held, loaded[0]), (self.held, self._indices(n, 2)), (self.held, loaded[1])
            own = code.intrinsic(self.held, FROM_TWO[self.size], *arguments)
            found.append(code.bitcast(self.held, own, f"<{self.each} x {self.llvm}>"))
        return code.concatenate(self.llvm, found, self.each)

    def store(self, value: str) -> None:
        """Store the element of each active lane."""
        code = self.code
        for n, line in enumerate(self.lines):
            own = code.bitcast(f"<{self.each} x {self.llvm}>", self._part(self.llvm, value, n), self.held)
            chosen = self._own_inverse(n)
            if self.some:
                wide = code.emit(f"sext {self.predicate} {self.active[n]} to {self.held}")
                active = code.emit(f"icmp slt {self.held} {self._permuted(wide, n)}, zeroinitializer")
                chosen = code.emit(f"and {self.predicate} {chosen}, {active}")
            code.masked_store(self.each, self.word, self._permuted(own, n), self.pointer(line), LINE, chosen)

    # ── a register of lanes ─────────────────────────────────────────────────────────────

    def _part(self, llvm: str, vector: str, n: int) -> str:
        return self.code.shuffle(llvm, WARP, vector, "poison", list(range(n * self.each, (n + 1) * self.each)))

    def _bits(self, n: int) -> str:
        return self.code.emit(f"trunc i32 {self.code.emit(f'lshr i32 %mask, {n * self.each}')} to i{self.each}")

    def _active(self, n: int) -> str:
        return self.code.emit(f"bitcast i{self.each} {self._bits(n)} to {self.predicate}")

    def _active_bits(self, predicate: str, n: int) -> str:
        """The active lanes of which something holds, as an integer."""
        bits = self.code.emit(f"bitcast {self.predicate} {predicate} to i{self.each}")
        return self.code.emit(f"and i{self.each} {bits}, {self._bits(n)}") if self.some else bits

    def _line(self, n: int) -> str:
        """The line of the first active lane, or of the last one if that is lower."""
        first, last = (self._address(n, lane) for lane in self._ends(n))
        lower = self.code.intrinsic("i64", "llvm.umin.i64", ("i64", first), ("i64", last))
        return self.code.emit(f"and i64 {lower}, {-LINE}")

    def _ends(self, n: int) -> tuple[str, str]:
        """The first active lane, and the last; where none is, any."""
        if not self.some:
            return "0", str(self.each - 1)
        bits, word = self._bits(n), f"i{self.each}"
        names = (f"llvm.{count}.{word}" for count in ("cttz", "ctlz"))
        below, above = (self.code.intrinsic(word, name, (word, bits), ("i1", "false")) for name in names)
        return self._lane(below), self._lane(self.code.emit(f"sub {word} {self.each - 1}, {above}"))

    def _lane(self, number: str) -> str:
        """A number, modulo that of the lanes, as an index."""
        word = f"i{self.each}"
        return self.code.emit(f"zext {word} {self.code.emit(f'and {word} {number}, {self.each - 1}')} to i32")

    def _address(self, n: int, lane: str) -> str:
        return self.code.emit(f"extractelement <{self.each} x i64> {self.registers[n]}, i32 {lane}")

    def _from(self, n: int, distance: int) -> str:
        """The lanes whose elements are so many bytes or more behind the begin of the line, or before it."""
        code, there = self.code, f"<{self.each} x i64>"
        apart = code.emit(f"sub {there} {self.registers[n]}, {code.splat('i64', self.lines[n], self.each)}")
        return code.emit(f"icmp uge {there} {apart}, splat (i64 {distance})")

    def _indices(self, n: int, lines: int = 1) -> str:
        """The index of each lane's element in so many lines."""
        code, there = self.code, f"<{self.each} x i64>"
        register = self.registers[n]
        if lines > 1:
            register = code.emit(f"sub {there} {register}, {code.splat('i64', self.lines[n], self.each)}")
        moved = code.emit(f"lshr {there} {register}, splat (i64 {self.size.bit_length() - 1})")
        low = moved if self.word == "i64" else code.emit(f"trunc {there} {moved} to {self.held}")
        return code.emit(f"and {self.held} {low}, splat ({self.word} {lines * self.each - 1})")

    def _permuted(self, vector: str, n: int) -> str:
        return self.code.intrinsic(self.held, PERMUTE[self.size], (self.held, vector), (self.held, self._indices(n)))

    def _own_inverse(self, n: int) -> str:
        """The elements whose lane, and its element, lead back to them."""
        numbers = vector_literal(self.word, tuple(range(self.each)))
        return self.code.emit(f"icmp eq {self.held} {self._permuted(self._indices(n), n)}, {numbers}")

    def _others(self, predicate: str) -> str:
        return self.code.emit(f"xor {self.predicate} {predicate}, splat (i1 true)")

    def _readable(self, n: int, line: str) -> str:
        """The pointer of a line if an active lane asks for it, else of something that can be read."""
        if not self.some:
            return self.pointer(line)
        idle = self.code.emit(f"icmp eq i{self.each} {self._bits(n)}, 0")
        spare = self.code.unit.table("i64", (0,) * (LINE // 8))
        return self.code.emit(f"select i1 {idle}, ptr @{spare}, ptr {self.pointer(line)}", pure=False)

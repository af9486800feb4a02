"""Accesses whose lanes stay within a line of the cache, in any order: looked at when they run, a register of lanes at a time.

The partners of a butterfly (`t ^ 1`), digits that are reversed and small tables are neither rows nor strides, but the sixteen
lanes of a register often ask for one line of 64 bytes.  A line that some lane asks for can be loaded as a whole, and a
permutation brings each lane its element.  A store goes the same way where the permutation is its own inverse, as that of a
butterfly is: two lanes then never store to one place.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import vector_literal
from ptxvm.isa.special_registers import WARP

LINE = 64  # bytes of a line, and of a register
PERMUTE = {4: "llvm.x86.avx512.permvar.si.512", 8: "llvm.x86.avx512.permvar.di.512"}  # by the bytes of an element


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
        self.indices = [self._indices(n) for n in range(WARP // self.each)]

    def within(self, *, writing: bool) -> str:
        """Are the active lanes of each register in a line?  `writing`: and is the permutation its own inverse?"""
        code, good = self.code, "true"
        for n, (register, line) in enumerate(zip(self.registers, self.lines, strict=True)):
            there = f"<{self.each} x i64>"
            own = code.emit(f"and {there} {register}, splat (i64 {-LINE})")
            apart = code.emit(f"icmp ne {there} {own}, {code.splat('i64', line, self.each)}")
            if writing:
                apart = code.emit(f"or {self.predicate} {apart}, {self._others(self._own_inverse(n))}")
            bits = code.emit(f"bitcast {self.predicate} {apart} to i{self.each}")
            if self.some:
                bits = code.emit(f"and i{self.each} {bits}, {self._bits(n)}")
            good = code.emit(f"and i1 {good}, {code.emit(f'icmp eq i{self.each} {bits}, 0')}")
        return good

    def load(self) -> str:
        """Load the element of each lane; those of lanes that are not active are any of the line."""
        found = []
        for n, line in enumerate(self.lines):
            loaded = self.code.emit(f"load {self.held}, ptr {self._readable(n, line)}, align {LINE}", pure=False)
            found.append(self.code.bitcast(self.held, self._permuted(loaded, n), f"<{self.each} x {self.llvm}>"))
        return self.code.concatenate(self.llvm, found, self.each)

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

    def _line(self, n: int) -> str:
        """The line of the first active lane."""
        code, there, first = self.code, f"<{self.each} x i64>", "0"
        if self.some:
            kept = code.emit(f"or i32 {code.emit(f'zext i{self.each} {self._bits(n)} to i32')}, {1 << self.each - 1}")
            first = code.intrinsic("i32", "llvm.cttz.i32", ("i32", kept), ("i1", "true"))
        address = code.emit(f"extractelement {there} {self.registers[n]}, i32 {first}")
        return code.emit(f"and i64 {address}, {-LINE}")

    def _indices(self, n: int) -> str:
        """The index of each lane's element in its line."""
        code, there = self.code, f"<{self.each} x i64>"
        moved = code.emit(f"lshr {there} {self.registers[n]}, splat (i64 {self.size.bit_length() - 1})")
        low = moved if self.word == "i64" else code.emit(f"trunc {there} {moved} to {self.held}")
        return code.emit(f"and {self.held} {low}, splat ({self.word} {self.each - 1})")

    def _permuted(self, vector: str, n: int) -> str:
        return self.code.intrinsic(self.held, PERMUTE[self.size], (self.held, vector), (self.held, self.indices[n]))

    def _own_inverse(self, n: int) -> str:
        """The elements whose lane, and its element, lead back to them."""
        numbers = vector_literal(self.word, tuple(range(self.each)))
        return self.code.emit(f"icmp eq {self.held} {self._permuted(self.indices[n], n)}, {numbers}")

    def _others(self, predicate: str) -> str:
        return self.code.emit(f"xor {self.predicate} {predicate}, splat (i1 true)")

    def _readable(self, n: int, line: str) -> str:
        """The pointer of a line if an active lane asks for it, else of something that can be read."""
        if not self.some:
            return self.pointer(line)
        idle = self.code.emit(f"icmp eq i{self.each} {self._bits(n)}, 0")
        spare = self.code.unit.table("i64", (0,) * (LINE // 8))
        return self.code.emit(f"select i1 {idle}, ptr @{spare}, ptr {self.pointer(line)}", pure=False)

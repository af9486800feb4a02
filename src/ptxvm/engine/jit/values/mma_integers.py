"""Matrix products of small integers and of bits, which are exact (PTX 9.7.14.5).

A register holds neighbours along the depth; their order does not matter if A and B are split alike.  They are split into
pairs of signed 16-bit factors, which one instruction of x86 multiplies and adds.  Registers of bits are combined whole, and
their ones are counted.
"""

from __future__ import annotations

import platform

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values.mma_writer import WORDS, ProductWriter
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP

PAIRS = f"<{2 * WARP} x i16>"


class Integers(ProductWriter):
    """Sums of products of 8 or 4 bits, which wrap or saturate when C is added."""

    def __init__(self, unit: Unit, product: Product) -> None:
        super().__init__(unit, product)
        self.kind = "sat" if product.finite else "wrap"
        self.piece, self.madd = multiply_and_add()

    def body(self) -> None:
        """Multiply the registers of A and B one after the other."""
        left, right = self._apart(self.product.a, 0), self._apart(self.product.b, self.first_of_b)
        packed = self.product.a.packed
        sums = [["zeroinitializer"] * (WARP // self.piece) for _ in self.pairs]
        for k in range(0, self.depth, packed):
            for a, b in zip(left, right, strict=True):
                rows = [self._pieces(self.from_a("i32", a, each, k, packed)) for each in self.rows]
                columns = [self._pieces(self.from_b("i32", b, each, k, packed)) for each in self.columns]
                for n, (row, column) in enumerate(self.pairs):
                    operands = zip(sums[n], rows[row], columns[column], strict=True)
                    sums[n] = [self._added(*each) for each in operands]
        self._finish([self.code.concatenate("i32", pieces, self.piece) for pieces in sums])

    def _finish(self, sums: list[str]) -> None:
        """Add C."""
        results = []
        for total, added in zip(sums, self.loaded(WORDS, self.first_of_c, self.count), strict=True):
            if self.product.finite:
                arguments = (WORDS, total), (WORDS, added)
                results.append(self.code.intrinsic(WORDS, f"llvm.sadd.sat.v{WARP}i32", *arguments))
            else:
                results.append(self.code.emit(f"add {WORDS} {total}, {added}"))
        self.give(WORDS, results)

    def _apart(self, fragment: Fragment, first: int) -> list[list[str]]:
        """The registers as pairs of 16 bits: the lowest elements of the halves of each, the next ones, and so on."""
        registers = self.loaded(PAIRS, first, fragment.registers)
        return [
            [self._words(self._element(fragment.type, each, n)) for each in registers] for n in range(16 // fragment.type.bits)
        ]

    def _element(self, type: Type, pairs: str, number: int) -> str:
        """One of the elements in 16 bits, widened to them."""
        emit, above, word = self.code.emit, 16 - (number + 1) * type.bits, "ashr" if type.is_signed else "lshr"
        upper = emit(f"shl {PAIRS} {pairs}, splat (i16 {above})") if above else pairs
        return emit(f"{word} {PAIRS} {upper}, splat (i16 {16 - type.bits})")

    def _words(self, pairs: str) -> str:
        return self.code.emit(f"bitcast {PAIRS} {pairs} to {WORDS}")

    def _pieces(self, words: str) -> list[str]:
        """The vectors of a register that one instruction multiplies."""
        size = self.piece
        return [
            self.code.shuffle("i32", WARP, words, "poison", list(range(n, n + size))) for n in range(0, WARP, size)
        ]  # fmt: skip

    def _added(self, total: str, a: str, b: str) -> str:
        """The products of two pairs, added."""
        emit, vector = self.code.emit, f"<{self.piece} x i32>"
        if self.madd is not None:
            pairs = f"<{2 * self.piece} x i16>"
            arguments = [(pairs, emit(f"bitcast {vector} {each} to {pairs}")) for each in (a, b)]
            return emit(f"add {vector} {total}, {self.code.intrinsic(vector, self.madd, *arguments)}")
        for half in (self._lower, self._upper):
            product = emit(f"mul {vector} {half(a)}, {half(b)}")
            total = emit(f"add {vector} {total}, {product}")
        return total

    def _lower(self, words: str) -> str:
        vector = f"<{self.piece} x i32>"
        return self._upper(self.code.emit(f"shl {vector} {words}, splat (i32 16)"))

    def _upper(self, words: str) -> str:
        return self.code.emit(f"ashr <{self.piece} x i32> {words}, splat (i32 16)")


class Bits(Integers):
    """Counts the ones of `a op b`."""

    def __init__(self, unit: Unit, product: Product) -> None:
        super().__init__(unit, product)
        self.kind = product.operation

    def body(self) -> None:
        """Combine the registers of A and B one after the other."""
        left = self.loaded(WORDS, 0, self.product.a.registers)
        right = self.loaded(WORDS, self.first_of_b, self.product.b.registers)
        sums = ["zeroinitializer"] * self.count
        for k in range(0, self.depth, self.product.a.packed):
            rows = [self.from_a("i32", left, each, k, self.product.a.packed) for each in self.rows]
            columns = [self.from_b("i32", right, each, k, self.product.b.packed) for each in self.columns]
            for n, (row, column) in enumerate(self.pairs):
                bits = self.code.emit(f"{self.product.operation} {WORDS} {rows[row]}, {columns[column]}")
                ones = self.code.intrinsic(WORDS, f"llvm.ctpop.v{WARP}i32", (WORDS, bits))
                sums[n] = self.code.emit(f"add {WORDS} {sums[n]}, {ones}")
        self._finish(sums)


def multiply_and_add() -> tuple[int, str | None]:
    """The instruction that adds two products of 16 bits: its number of words, and its name; None where there is none.

    AVX-512 VNNI has one that adds to an accumulator as well.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return WARP, None
    if cpu.has("avx512bw"):
        return 16, "llvm.x86.avx512.pmaddw.d.512"
    return (8, "llvm.x86.avx2.pmadd.wd") if cpu.has("avx2") else (4, "llvm.x86.sse2.pmadd.wd")

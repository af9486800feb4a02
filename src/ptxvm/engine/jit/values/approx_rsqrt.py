"""`rsqrt.approx` by the sums of `approx_exact`, for two registers at once: words of 16 bits are computed for all 32 lanes.

In units of 2**17 the sum is c0*2**14 - 1 - c1*x + 4*c2*s for half a square s, and its row follows from the exponent's
lowest bit and six bits of the fraction.  Three words of 16 bits are looked up: c1; the upper ones of c0 less what c1*x has
above its 16 lowest bits; and the two lowest of c0 beside 4*c2, complemented.  A product of words adds the rest.
"""

from __future__ import annotations

from functools import cache, reduce

from ptxvm.algebra.derived.approximations import RSQRT
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import vector_literal
from ptxvm.engine.jit.values.approx_exact import EACH, NORMAL, WORDS, FunctionWriter, registers

LANES = 2 * EACH
SHORTS, BYTES, CHOICE = f"<{LANES} x i16>", f"<{2 * LANES} x i8>", f"<{LANES} x i1>"
HALF = 64  # entries for odd exponents, before those for even ones (the lowest bit of the biased exponent is set)
LOWEST = 0x3FFF  # the bits of 4*c2
SIGN = 0x8000
# The order of words after packing, where each 128 bits hold words of the first vector and then of the second
INTERLEAVED = [[8 * (n // 8) + 4 * part + n % 8 // 2 + LANES * (n % 2) for n in range(LANES)] for part in (0, 1)]


@cache
def columns() -> tuple[tuple[int, ...], ...]:
    """The words that are looked up, by the exponent's lowest bit and six of the fraction."""
    rows = RSQRT.rows[64:] + RSQRT.rows[:64]
    starts = [(c0 - 4 * c1 << 14) + (1 << 16) - SIGN - 1 - 4 * c2 for c0, c1, c2 in rows]  # as if x had 17 bits
    return tuple(c1 for _, c1, _ in rows), tuple(n >> 16 & 0xFFFF for n in starts), tuple(n & 0xFFFF for n in starts)


@cache
def triangles() -> tuple[int, ...]:
    """The partial products of three bits with three whose places add up to enough; bit 3 is of neither."""
    pairs = [(i, j) for i in range(3) for j in range(4, 7) if i + j >= 6]
    return tuple(sum((n >> i & n >> j & 1) << i + j - 6 for i, j in pairs) for n in range(128))


class VectorPair:
    """Writes for the lanes of two registers."""

    def __init__(self, code: Code, first: str, second: str) -> None:
        self.code, self.registers = code, [FunctionWriter(code, a) for a in (first, second)]
        self.low = self._packed(*(each.word("and", each.bits, 0xFFFF) for each in self.registers))
        self.high = self._packed(*(each.word("lshr", each.bits, 16) for each in self.registers))

    def _packed(self, first: str, second: str) -> str:
        """In 128 bits of a register, words of the first vector stand before those of the second."""
        return self.code.intrinsic(SHORTS, "llvm.x86.avx512.packusdw.512", (WORDS, first), (WORDS, second))

    # ── one instruction ─────────────────────────────────────────────────────────────────

    def op(self, text: str) -> str:
        """Append an instruction."""
        return self.code.emit(text)

    def short(self, name: str, a: str, b: str | int) -> str:
        """An instruction on words of 16 bits; a number is the same in all lanes."""
        return self.op(f"{name} {SHORTS} {a}, {b if isinstance(b, str) else f'splat (i16 {b})'}")

    def upper(self, a: str, b: str) -> str:
        """The upper halves of the products."""
        return self.code.intrinsic(SHORTS, "llvm.x86.avx512.pmulhu.w.512", (SHORTS, a), (SHORTS, b))

    def moved(self, high: str, low: str, left: int) -> str:
        """Of two words one after the other those that begin so many bits further right."""
        return self.code.intrinsic(
            SHORTS, f"llvm.fshl.v{LANES}i16", (SHORTS, high), (SHORTS, low), (SHORTS, f"splat (i16 {left})")
        )

    def bytes(self, a: str) -> str:
        """The same bits."""
        return self.op(f"bitcast {SHORTS} {a} to {BYTES}")

    def average(self, a: str, b: str) -> str:
        """Half the sum, rounded up."""
        wide = f"<{LANES} x i32>"
        first, second = (self.op(f"zext {SHORTS} {each} to {wide}") for each in (a, b))
        total = self.op(f"add {wide} {self.op(f'add {wide} {first}, {second}')}, splat (i32 1)")
        return self.op(f"trunc {wide} {self.op(f'lshr {wide} {total}, splat (i32 1)')} to {SHORTS}")

    def has(self, a: str, bits: int) -> str:
        """Where some of these bits are set."""
        return self.op(f"icmp ne {SHORTS} {self.short('and', a, bits)}, zeroinitializer")

    def where(self, condition: str, a: str, b: str) -> str:
        """One or the other."""
        return self.op(f"select {CHOICE} {condition}, {SHORTS} {a}, {SHORTS} {b}")

    def interleaved(self, low: str, high: str) -> list[str]:
        """The words of two halves, for both registers."""
        both = [self.code.shuffle("i16", LANES, low, high, order) for order in INTERLEAVED]
        return [self.op(f"bitcast {SHORTS} {each} to {WORDS}") for each in both]

    # ── the sum ─────────────────────────────────────────────────────────────────────────

    def rsqrt(self) -> list[str]:
        """1 over the root; that of a power of four is exact, where the sum is less by one."""
        c1, start, rest = self._rows()
        square = self._half_square()
        product = self.short("mul", c1, self.low)
        start = self.short("sub", start, self.upper(c1, self.low))
        small = self.op(f"icmp eq {SHORTS} {self.short('and', self.high, 1)}, zeroinitializer")
        start = self.where(small, self.short("add", start, c1), start)
        start = self.where(self._exact(c1, small), self.short("add", start, square), start)  # which is 1
        factors = self.interleaved(square, self.short("xor", product, -SIGN))
        sums = self.interleaved(rest, start)
        return [self._root(*each) for each in zip(self.registers, sums, factors, strict=True)]

    def _exact(self, c1: str, small: str) -> str:
        """Is x zero in the first row of the even exponents?"""
        first = self.op(f"icmp eq {SHORTS} {c1}, splat (i16 {columns()[0][HALF]})")
        none = self.op(f"icmp eq {SHORTS} {self.low}, zeroinitializer")
        return self.op(f"and {CHOICE} {none}, {self.op(f'and {CHOICE} {first}, {small}')}")

    def unusual(self) -> str:
        """Bits of the lanes whose arguments are not ordinary."""
        above = self.short("sub", self.high, NORMAL.first >> 16)
        wrong = self.op(f"icmp uge {SHORTS} {above}, splat (i16 {NORMAL.end - NORMAL.first >> 16})")
        return self.op(f"bitcast {CHOICE} {wrong} to i{LANES}")

    def _root(self, register: FunctionWriter, total: str, factors: str) -> str:
        """4*c2 times half a square, and the rest of c1*x."""
        by = register.word("or", register.word("and", register.word("xor", total, -1), LOWEST), -1 << 16)
        apart = register.dot(total, by, factors)
        estimate = register.as_words(register.estimate("rsqrt", register.a))
        return register.as_floats(register.joined(16, apart, estimate))

    def _rows(self) -> list[str]:
        """The words of the tables: of each byte one of 64 entries, and of those for the other exponents."""
        shifts = tuple(16 * word + 1 for word in range(4) for _ in range(2)) * 8
        row = self.code.intrinsic(
            BYTES, "llvm.x86.avx512.pmultishift.qb.512", (BYTES, vector_literal("i8", shifts)), (BYTES, self.bytes(self.high))
        )
        other = self.op(f"icmp ne {BYTES} {self.op(f'and {BYTES} {row}, splat (i8 {HALF})')}, zeroinitializer")
        return [self._word(column, row, other) for column in columns()]

    def _word(self, column: tuple[int, ...], row: str, other: str) -> str:
        halves = []
        for shift in (0, 8):
            table = tuple(n >> shift & 0xFF for n in column)
            first, second = (self._looked_up(table[start : start + HALF], row) for start in (0, HALF))
            halves.append(self.op(f"select <{2 * LANES} x i1> {other}, {BYTES} {second}, {BYTES} {first}"))
        alternating = [n + 2 * LANES * (n % 2) for n in range(2 * LANES)]
        low, high = halves
        return self.op(f"bitcast {BYTES} {self.code.shuffle('i8', 2 * LANES, low, high, alternating)} to {SHORTS}")

    def _looked_up(self, table: tuple[int, ...], row: str) -> str:
        return self.code.intrinsic(BYTES, "llvm.x86.avx512.permvar.qi.512", (BYTES, vector_literal("i8", table)), (BYTES, row))

    def _half_square(self) -> str:
        """Half of `truncated_square` without the 18 zeros at its end, and 1.

        That is half the square of the 8 highest bits of x, that of four bits with four, and two triangles of products.
        """
        x = self.moved(self.high, self.low, 15)  # but for its lowest bit
        top = self.short("and", x, 0xFF00)
        crossed = self.upper(self.short("and", self.low, 0x1E0), self.short("and", x, 0xF000))
        half = self.average(self.upper(top, top), self.short("or", crossed, 1))
        return self.short("add", half, self._triangles(self.moved(x, x, 3)))

    def _triangles(self, products: str) -> str:
        """The sum of what is looked up for both bytes of a word."""
        low, high = (vector_literal("i8", triangles()[n : n + 64]) for n in (0, 64))
        arguments = (BYTES, low), (BYTES, self.bytes(products)), (BYTES, high)
        found = self.code.intrinsic(BYTES, "llvm.x86.avx512.vpermi2var.qi.512", *arguments)
        return self.code.intrinsic(SHORTS, "llvm.x86.avx512.pmaddubs.w.512", (BYTES, found), (BYTES, "splat (i8 1)"))


class ExactRsqrt(FunctionWriter):
    """Writes every function, of one register or of two."""

    @classmethod
    def all_lanes(cls, code: Code, name: str, a: str) -> str:
        """A function of as many lanes as a vector has."""
        if name != "rsqrt":
            return super().all_lanes(code, name, a)
        return code.joined("float", [root for pair in pairs(code, a) for root in pair.rsqrt()], EACH)

    @classmethod
    def unusual(cls, code: Code, name: str, a: str) -> str:
        """Is some argument out of the range?"""
        if name != "rsqrt":
            return super().unusual(code, name, a)
        found = [pair.unusual() for pair in pairs(code, a)]
        return code.emit(f"icmp ne i{LANES} {reduce(lambda one, other: code.emit(f'or i{LANES} {one}, {other}'), found)}, 0")


def pairs(code: Code, a: str) -> list[VectorPair]:
    """Registers of a vector, two by two; a single one is its own other."""
    parts = registers(code, a)
    parts = parts if len(parts) > 1 else 2 * parts
    return [VectorPair(code, *each) for each in zip(parts[::2], parts[1::2], strict=True)]

"""The `.approx` functions of `approx_exact` with AVX2 instead of AVX-512: the same sums of 32 bits.

One gather loads a row of the table as a word of 64 bits; the partial products of the square are added in words of 16 bits.
"""

from __future__ import annotations

from functools import cache
from math import inf

from ptxvm.algebra.derived import approximations
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.values.approx_exact import DOUBLES, EACH, FLOATS, WORDS, FunctionWriter, Scale

NEEDS = ("avx2", "fma")
RSQRT = Scale(approximations.RSQRT, 17, 16, swapped=True)
SHORTS, WIDE = f"<{EACH} x i16>", f"<{EACH} x i64>"
POWER_OF_FOUR, TO_EXPONENT = 0x0080_0000, 0x00FF_FFFF  # an even exponent, whose bias is odd, and a fraction of zero
CUT = -1 << 29  # the bits of an f64 that an f32 has too


@cache
def available() -> bool:
    """Has the processor the instructions that this module uses?"""
    return all(cpu.has(feature) for feature in NEEDS)


class Avx2Writer(FunctionWriter):
    """Writes a function for the lanes of two registers."""

    def short(self, name: str, a: str, b: str | int) -> str:
        """An instruction on words of 16 bits; a constant operand is the same in all lanes."""
        return self.op(f"{name} {SHORTS} {a}, {b if isinstance(b, str) else f'splat (i16 {b})'}")

    def estimate(self, name: str, a: str) -> str:
        """A reciprocal, which may be barely normal; or 11 bits of that of the root."""
        if name == "rcp":
            return self.op(f"fdiv {FLOATS} {self.number(1.0)}, {a}")
        half, full = f"<{EACH // 2} x float>", "llvm.x86.avx.rsqrt.ps.256"
        self.code.unit.declare(full, half, half)
        parts = [self.code.shuffle("float", EACH, a, "poison", list(range(n, n + EACH // 2))) for n in (0, EACH // 2)]
        return self.code.concatenate("float", [self.code.call(half, full, (half, part)) for part in parts], EACH // 2)

    def rsqrt(self) -> str:
        """1 over the root; that of a power of four is exact, where the sum is less by one."""
        power = self.op(f"icmp eq {WORDS} {self.word('and', self.bits, TO_EXPONENT)}, splat (i32 {POWER_OF_FOUR})")
        one = self.op(f"select <{EACH} x i1> {power}, {WORDS} splat (i32 {1 << 32 - RSQRT.exact}), {WORDS} zeroinitializer")
        total = self.word("add", self.sum(RSQRT, self.bits), one)
        return self.as_floats(self.joined(RSQRT.exact, total, self.as_words(self.estimate("rsqrt", self.a))))

    def dot(self, total: str, a: str, b: str) -> str:
        """Add the products of signed 16-bit halves."""
        name, half, held = "llvm.x86.avx2.pmadd.wd", f"<{EACH // 2} x i32>", f"<{EACH} x i16>"
        self.code.unit.declare(name, half, held, held)
        parts = []
        for first in (0, EACH // 2):
            order = list(range(first, first + EACH // 2))
            halves = [self.code.shuffle("i32", EACH, v, "poison", order) for v in (a, b)]
            arguments = [(held, self.op(f"bitcast {half} {v} to {held}")) for v in halves]
            parts.append(self.code.call(half, name, *arguments))
        return self.word("add", total, self.code.concatenate("i32", parts, EACH // 2))

    def joined(self, exact: int, total: str, estimate: str) -> str:
        """The number nearest to an estimate whose low bits are the exact upper ones of the sum; both as words."""
        inexact = 32 - exact
        apart = self.word("sub", total, self.word("shl", estimate, inexact))
        return self.word("add", estimate, self.word("ashr", apart, inexact))

    def _row(self, scale: Scale, row: str, bits: str) -> list[str]:
        """The entries of two tables, which are interleaved in memory."""
        code, (sums, words) = self.code, scale.columns()
        table = code.unit.table("i64", tuple(low | high << 32 for low, high in zip(sums, words, strict=True)))
        index = self.op(f"zext {WORDS} {self.word('and', row, len(sums) - 1)} to {WIDE}")
        pointers = self.op(f"getelementptr i64, ptr @{table}, {WIDE} {index}")
        name = f"llvm.masked.gather.v{EACH}i64.v{EACH}p0"
        code.unit.declarations[name] = f"declare {WIDE} @{name}(<{EACH} x ptr>, i32 immarg, <{EACH} x i1>, {WIDE})"
        mask = (f"<{EACH} x i1>", "splat (i1 true)")
        found = code.call(WIDE, name, (f"<{EACH} x ptr>", pointers), ("i32", "8"), mask, (WIDE, "poison"))
        both = self.op(f"bitcast {WIDE} {found} to <{2 * EACH} x i32>")
        return [code.shuffle("i32", 2 * EACH, both, "poison", list(range(n, 2 * EACH, 2))) for n in (0, 1)]

    def _square(self, x: str, doubled: int) -> str:
        """Half of `truncated_square`, of x or of 2x, without the 18 zeros at its end.

        That is half the square of the bits from 9 on, and for each bit i below it that is set the bits from 18 - i on.
        """
        upper = self.op(f"trunc {WORDS} {self.word('lshr', x, 10 - doubled)} to {SHORTS}")
        lower = self.op(f"trunc {WORDS} {x} to {SHORTS}")
        total = ""
        for i in range(2, 9):
            mask = self.short("ashr", self.short("shl", lower, 15 - i + doubled), 15)
            part = self.short("and", mask, self.short("lshr", upper, 8 - i) if i < 8 else upper)
            total = self.short("add", total, part) if total else part
        high = self.op(f"trunc {WORDS} {self.word('lshr', x, 9 - doubled)} to {SHORTS}")
        half = self.short("lshr", self.short("mul", high, high), 1)
        return self.op(f"zext {SHORTS} {self.short('add', total, half)} to {WORDS}")

    def to_single(self, a: str) -> str:
        """Half of the lanes from f64: what an f32 has no room for is cut off."""
        half = EACH // 2
        words, single = f"<{half} x i64>", f"<{half} x float>"
        kept = self.op(f"and {words} {self.op(f'bitcast {DOUBLES} {a} to {words}')}, splat (i64 {CUT})")
        return self.op(f"fptrunc {DOUBLES} {self.op(f'bitcast {words} {kept} to {DOUBLES}')} to {single}")

    def truncated(self, name: str, a: str, b: str) -> str:
        """`add` or `mul`, rounded to zero: an f64 holds the product of two floats, and the sums that are asked for."""
        half, found = EACH // 2, []
        for first in (0, half):
            order = list(range(first, first + half))
            parts = [self.code.shuffle("float", EACH, v, "poison", order) for v in (a, b)]
            wide = [self.op(f"fpext <{half} x float> {part} to {DOUBLES}") for part in parts]
            found.append(self.to_single(self.op(f"f{name} {DOUBLES} {', '.join(wide)}")))
        return self.code.concatenate("float", found, half)

    def scaled(self, a: str, power: str) -> str:
        """A float from 1 to 2 times two to the power of an integer: beyond -126 and 127 it is zero or infinite."""
        found = self.as_floats(self.word("add", self.as_words(a), self.word("shl", power, 23)))
        small, large = (
            self.op(f"icmp {how} {WORDS} {power}, splat (i32 {last})") for how, last in (("slt", -126), ("sgt", 127))
        )
        return self.select(large, self.number(inf), self.select(small, "zeroinitializer", found))

"""Products of f16, bf16 or tf32 that are added to f32 or f16 (PTX 9.7.14).

With `numerics="fast"` a product is a chain of multiplications and additions in f32, within the bounds of the manual.  The
exact function has the bits of the tensor cores (`machine.tensor_core`), which add integers: a product of two significands
is exact in f32, so is its multiple by a power of two, and the integral part of that is added.

The exact function leaves infinite factors and NaN to another one (`mma_wide`), and bf16 and tf32 whose products could leave
the range of f32.
"""

from __future__ import annotations

import struct

from ptxvm.algebra.types import bf16, f16, tf32
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values.mma_writer import WORDS, ProductWriter
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import tensor_core
from ptxvm.machine.warp_matrix import where

FLOATS, HALVES, SIGNS = f"<{WARP} x float>", f"<{WARP} x half>", f"<{WARP} x i1>"
PAIRS, PAIR_SIGNS, BYTES = f"<{2 * WARP} x i16>", f"<{2 * WARP} x i1>", f"<{2 * WARP} x i8>"
EXPONENT = 0x7F80_0000


@dataclass(frozen=True)
class FloatFormat:
    """A format: the position of the biased exponent, and the exponents for which f32 holds all products."""

    fraction: int
    bias: int
    least: int
    most: int

    @property
    def span(self) -> int:
        """How many exponents there are."""
        return self.most - self.least


WIDE = FloatFormat(7, 127, 127 - 50, 127 + 63)  # of bf16, and of the upper halves of tf32
FORMS = {f16: FloatFormat(10, 15, 1, 31), bf16: WIDE, tf32: WIDE}
TF32 = 0xFFFF_E000  # the significant bits of a register
LEAST_F16 = 127 - 14 << 23  # the least exponent of f16, in the bits of an f32
KEPT, WORD_BITS, LONG_BITS = 24, 32, 64  # bits of a result, and of sums
PARTS = 2  # sums whose total has 32 bits and a sign
SUMMED = 28  # 2**28 less the bits below the largest exponent: so many products and the accumulator have a sum in an i32


def f32_bits(value: float) -> int:
    """The bits of an f32."""
    return int.from_bytes(struct.pack("<f", value), "little")


class Floats(ProductWriter):
    """Operands as vectors of f32, and results as f32 or f16."""

    def left(self) -> list[str]:
        """The elements of A that each lane holds."""
        return self._factors(self.product.a, 0)

    def right(self) -> list[str]:
        """The elements of B."""
        return self._factors(self.product.b, self.first_of_b)

    def added(self) -> list[str]:
        """The elements of C."""
        if self.product.c.type is f16:
            return [self._half(self.first_of_c + n // 2, n % 2) for n in range(self.count)]
        return self.loaded(FLOATS, self.first_of_c, self.count)

    def _factors(self, fragment: Fragment, first: int) -> list[str]:
        if self.type is tf32:
            return [self.floats(self.code.emit(f"and {WORDS} {each}, splat (i32 {TF32})"))
                    for each in self.loaded(WORDS, first, fragment.elements)]  # fmt: skip
        return [self._factor(first + n // 2, n % 2) for n in range(fragment.elements)]

    def _factor(self, number: int, half: int) -> str:
        if self.type is f16:
            return self._half(number, half)
        (word,) = self.loaded(WORDS, number, 1)
        return self.floats(
            self.code.emit(f"and {WORDS} {word}, splat (i32 -65536)" if half else f"shl {WORDS} {word}, splat (i32 16)")
        )

    def _half(self, number: int, half: int) -> str:
        """The lower or upper f16 of a register."""
        parts = [self._halves(self.register(number), first, half) for first in (0, 16)]
        return self.code.concatenate("float", parts, 16)

    def _halves(self, register: str, first: int, half: int) -> str:
        """The lower or upper f16 of 16 lanes; one permutation sorts them before they are widened."""
        emit = self.code.emit
        packed = emit(f"load <32 x half>, ptr {emit(f'getelementptr i32, ptr {register}, i64 {first}')}, align 64")
        apart = self.code.shuffle("half", 32, packed, "poison", [*range(0, 32, 2), *range(1, 32, 2)])
        wide = emit(f"fpext <32 x half> {apart} to <32 x float>")
        return self.code.shuffle("float", 32, wide, "poison", list(range(16 * half, 16 * half + 16)))

    def words(self, value: str) -> str:
        """The bits of floats."""
        return self.code.emit(f"bitcast {FLOATS} {value} to {WORDS}")

    def floats(self, value: str) -> str:
        """The floats of bits."""
        return self.code.emit(f"bitcast {WORDS} {value} to {FLOATS}")

    def results(self, totals: list[str]) -> None:
        """Store D, in which every NaN has the same bits."""
        if self.product.d.type is f16:
            halves = [self._unlike_nan(each, self.narrowed(each), HALVES, "half 0xH7FFF") for each in totals]
            order = [position for lane in range(WARP) for position in (lane, WARP + lane)]
            pairs = [self.code.shuffle("half", WARP, *each, order) for each in zip(halves[::2], halves[1::2], strict=True)]
            self.give(f"<{2 * WARP} x half>", pairs)
            return
        nan = f"float 0x{0x7FFF_FFFF_E000_0000:016X}"
        self.give(FLOATS, [self._unlike_nan(each, each, FLOATS, nan) for each in totals])

    def narrowed(self, value: str) -> str:
        """Round to f16, to nearest even."""
        return self.code.emit(f"fptrunc {FLOATS} {value} to {HALVES}")

    def _unlike_nan(self, total: str, result: str, vector: str, nan: str) -> str:
        wrong = self.code.emit(f"fcmp uno {FLOATS} {total}, {total}")
        return self.code.emit(f"select {SIGNS} {wrong}, {vector} splat ({nan}), {vector} {result}")


class Fast(Floats):
    """A chain of multiplications and additions; the code generator may fuse them."""

    kind = "fast"

    def body(self) -> None:
        """The chain along the depth."""
        left, right, totals = self.left(), self.right(), self.added()
        self.multiply_add("float", f"llvm.fmuladd.v{WARP}f32", left, right, totals)
        self.results(totals)


class TensorCoreSums(Floats):
    """The sums of the tensor cores: `length` products at once, each truncated `fraction` bits below the largest exponent."""

    def __init__(self, unit: Unit, product: Product, core: tensor_core.Accumulation, *, sparse: bool = False) -> None:
        super().__init__(unit, product)
        self.core, self.sparse = core, sparse
        self.otherwise = ""  # the name of the function that has the same operands, and what this one leaves
        self.length, self.fraction, self.form = min(core.length << sparse, self.depth), core.fraction, FORMS[self.type]
        self.parts = max(1, self.length >> SUMMED - core.fraction + sparse)
        self.kind = f"{self.length}.{self.parts}.{core.fraction}.{core.accumulator_bits}"
        self.lost = KEPT - 1 - core.accumulator_bits  # bits of an f32 that an accumulator has not
        self.in_f16 = product.c.type is product.d.type is f16  # the type of the accumulator
        self.is_long = self.parts > PARTS
        self.floor = f32_bits(core.least(f16)) if self.in_f16 else 0  # no product of f32 is below the other one

    def body(self) -> None:
        """Add `length` products at a time."""
        left, right, totals = self.left(), self.right(), self.added()
        sizes = self._sizes(self.product.a, 0), self._sizes(self.product.b, self.first_of_b)
        for first in range(0, self.depth, self.length):
            depths = range(first, first + self.length)
            totals = self._sum(left, right, totals, self._largest(*sizes, depths), depths)
        self.results(totals)

    # ── exponents ───────────────────────────────────────────────────────────────────────

    def _sizes(self, fragment: Fragment, first: int) -> list[str]:
        """Exponents for the registers of A, complements of exponents for B; saturating differences are exponents of products.

        The least exponent is 1, and a zero factor has 0.  Leave the product if an exponent does not fit.
        """
        found, highest = [], ""
        registers = fragment.elements // fragment.packed  # the other registers of a `wmma` fragment repeat these
        words = self.loaded(WORDS, first, fragment.registers) if self.type is tf32 else []
        pairs = self.upper_halves(words) if words else self.loaded(PAIRS, first, registers)
        for number, pair in enumerate(pairs):
            above, there = self.sizes(pair, self._least(fragment, number), of_a=fragment is self.product.a)
            highest = self.higher(highest, above) if highest else above
            found.append(self._in_bytes(there))
        self.leave(self.are_far(highest), self.otherwise)
        return found

    def sizes(self, pair: str, least: str, *, of_a: bool) -> tuple[str, str]:
        """How far the exponents in a register are above the least one that fits, and what stands for them."""
        emit, form = self.code.emit, self.form
        size = emit(f"and {PAIRS} {pair}, splat (i16 32767)")
        zero = emit(f"icmp eq {PAIRS} {size}, zeroinitializer")
        exponent = emit(f"lshr {PAIRS} {size}, splat (i16 {form.fraction})")
        if least:
            exponent = self.higher(exponent, least)
        above = emit(f"sub {PAIRS} {exponent}, splat (i16 {form.least})")
        if self.type is not f16:
            above = emit(f"select {PAIR_SIGNS} {zero}, {PAIRS} zeroinitializer, {PAIRS} {above}")
        if of_a:
            there, none = emit(f"add {PAIRS} {exponent}, splat (i16 {form.span + 1 - form.least})"), 0
        else:
            there, none = emit(f"sub {PAIRS} splat (i16 {form.span + form.least}), {exponent}"), 255
        return above, emit(f"select {PAIR_SIGNS} {zero}, {PAIRS} splat (i16 {none}), {PAIRS} {there}")

    def are_far(self, highest: str) -> str:
        """Is an exponent too far above the least one?"""
        far = self.code.emit(f"icmp uge {PAIRS} {highest}, splat (i16 {self.form.span})")
        return self.code.emit(f"icmp ne i{2 * WARP} {self.code.emit(f'bitcast {PAIR_SIGNS} {far} to i{2 * WARP}')}, 0")

    def _least(self, fragment: Fragment, number: int) -> str:
        """The exponent of subnormal numbers, and of zeros, in a register of A or B; empty where there are none."""
        return "splat (i16 1)" if self.type is f16 else ""

    def upper_halves(self, words: list[str]) -> list[str]:
        """The upper halves of two tf32 registers in one; a number with only low bits stays different from zero."""
        emit, found = self.code.emit, []
        for word in words:
            size = emit(f"and {WORDS} {word}, splat (i32 {TF32 & 0x7FFF_FFFF})")
            lower = emit(f"and {WORDS} {size}, splat (i32 {TF32 & 0xFFFF})")
            carry = emit(f"and {WORDS} {emit(f'add {WORDS} {lower}, splat (i32 {TF32 & 0xFFFF})')}, splat (i32 65536)")
            found.append(emit(f"or {WORDS} {size}, {carry}"))
        found += ["zeroinitializer"] * (len(found) % 2)
        pairs = []
        for low, high in zip(found[::2], found[1::2], strict=True):
            both = emit(
                f"or {WORDS} {emit(f'lshr {WORDS} {low}, splat (i32 16)')}, {emit(f'and {WORDS} {high}, splat (i32 -65536)')}"
            )
            pairs.append(emit(f"bitcast {WORDS} {both} to {PAIRS}"))
        return pairs

    def higher(self, a: str, b: str) -> str:
        """The higher exponents of two registers."""
        return self.code.intrinsic(PAIRS, f"llvm.umax.v{2 * WARP}i16", (PAIRS, a), (PAIRS, b))

    def _in_bytes(self, sizes: str) -> str:
        """Exponents as bytes: of the first 16 lanes in even bytes, of the others in odd ones."""
        emit, words = self.code.emit, f"<{WARP} x i16>"
        first, second = (self.code.shuffle("i16", 2 * WARP, sizes, "poison", list(range(n, n + WARP))) for n in (0, WARP))
        both = emit(f"or {words} {first}, {emit(f'shl {words} {second}, splat (i16 8)')}")
        return emit(f"bitcast {words} {both} to <{2 * WARP} x i8>")

    def _largest(self, left: list[str], right: list[str], depths: range) -> list[str]:
        """For each element of D the largest exponent of a product, in the bits of an f32; 0 where every product is zero."""
        found: list[str] = []
        for n in range(0, self.count, 2):
            sums = [self._product_sizes(left, right, n, k) for k in depths]
            most = sums[0]
            for each in sums[1:]:
                most = self.code.intrinsic(BYTES, f"llvm.umax.v{2 * WARP}i8", (BYTES, most), (BYTES, each))
            found.extend(self._exponent(most, half) for half in (0, 1))
        return found

    def _product_sizes(self, left: list[str], right: list[str], n: int, k: int) -> str:
        """For two elements of D, the exponents of their products at one depth."""
        pairs = [self.pairs[n], self.pairs[n + 1]]
        rows = [(row, k) for at, _ in pairs for row in self.rows[at]]
        columns = [(k, column) for _, at in pairs for column in self.columns[at]]
        arguments = self._small(self.product.a, left, rows), self._small(self.product.b, right, columns)
        return self.code.intrinsic(BYTES, f"llvm.usub.sat.v{2 * WARP}i8", *[(BYTES, each) for each in arguments])

    def _small(self, fragment: Fragment, sizes: list[str], positions: list[tuple[int, int]]) -> str:
        held = [divmod(int(where(fragment)[0][position]), fragment.packed * fragment.registers) for position in positions]
        order = [(at // 2, 2 * lane + at % 2) for lane, at in held]
        return self.gathered("i8", sizes, [(register, 2 * (n % WARP) + n // WARP) for register, n in order], 2 * WARP)

    def _exponent(self, sizes: str, half: int) -> str:
        """The exponents of one of the two elements of D, in the bits of an f32."""
        emit, form = self.code.emit, self.form
        small = self.code.shuffle("i8", 2 * WARP, sizes, "poison", self.sizes_of_half(half))
        wide = emit(f"zext <{WARP} x i8> {small} to {WORDS}")
        biased = emit(f"add {WORDS} {wide}, splat (i32 {126 + 2 * (form.least - form.bias)})")
        none = emit(f"icmp eq {WORDS} {wide}, zeroinitializer")
        return emit(f"select {SIGNS} {none}, {WORDS} zeroinitializer, {WORDS} {emit(f'shl {WORDS} {biased}, splat (i32 23)')}")

    def sizes_of_half(self, half: int) -> list[int]:
        """Where the exponents of the products for one of two elements of D stand."""
        return list(range(half * WARP, (half + 1) * WARP))

    # ── sums ────────────────────────────────────────────────────────────────────────────

    def _sum(self, left: list[str], right: list[str], totals: list[str], largest: list[str], depths: range) -> list[str]:
        """Add the products of some depths to the totals, given the largest exponents."""
        emit = self.code.emit
        exponents = [self._accumulated(total) for total in totals]
        tops = [self._most(a, b) for a, b in zip(largest, exponents, strict=True)]
        if self.floor:
            tops = [self._most(top, f"splat (i32 {self.floor})") for top in tops]
        scales = [self.floats(emit(f"sub {WORDS} splat (i32 {254 + self.fraction << 23}), {top}")) for top in tops]
        starts = [self._cut(total, scale) for total, scale in zip(totals, scales, strict=True)]
        sums: list[list[str]] = [[] for _ in totals]
        for part in range(self.parts):
            found = starts if part == 0 else [""] * self.count
            for k in depths[part * self.length // self.parts : (part + 1) * self.length // self.parts]:
                found = [self._added(at, *each) for at, each in zip(found, self._products(left, right, scales, k), strict=True)]
            for all_parts, one in zip(sums, found, strict=True):
                all_parts.append(one)
        made = [self._rounded(parts, top) for parts, top in zip(sums, tops, strict=True)]
        return [self._unless_alone(*each) for each in zip(made, totals, largest, exponents, strict=True)]

    def _accumulated(self, total: str) -> str:
        """The exponent of an accumulator in the bits of an f32; 0 where the accumulator is zero."""
        found = self.code.emit(f"and {WORDS} {self.words(total)}, splat (i32 {EXPONENT})")
        if not self.in_f16:
            return found
        none = self.code.emit(f"icmp eq {WORDS} {found}, zeroinitializer")
        return self.code.emit(
            f"select {SIGNS} {none}, {WORDS} zeroinitializer, {WORDS} {self._most(found, f'splat (i32 {LEAST_F16})')}"
        )

    def _products(self, left: list[str], right: list[str], scales: list[str], k: int) -> list[tuple[str, str]]:
        """For each element of D, its product at a depth, with its scale."""
        rows = [self.from_a("float", left, each, k) for each in self.rows]
        columns = [self.from_b("float", right, each, k) for each in self.columns]
        products = [self.code.emit(f"fmul {FLOATS} {rows[row]}, {columns[column]}") for row, column in self.pairs]
        return list(zip(products, scales, strict=True))

    def _added(self, total: str, product: str, scale: str) -> str:
        cut = self._cut(product, scale)
        return self.code.emit(f"add {WORDS} {total}, {cut}") if total else cut

    def _cut(self, value: str, scale: str) -> str:
        """A number in units of the last kept place, truncated."""
        return self.code.emit(f"fptosi {FLOATS} {self.code.emit(f'fmul {FLOATS} {value}, {scale}')} to {WORDS}")

    def _rounded(self, sums: list[str], top: str) -> str:
        """The f32 with the upper 24 bits of a sum in units of the last kept place.

        An accumulator of f16 is rounded to nearest even: the last of the 24 bits is set first where lower ones are cut off.
        """
        emit = self.code.emit
        negative, size = self._sign_and_size(sums)
        bits = LONG_BITS if self.is_long else WORD_BITS
        vector, integer = f"<{WARP} x i{bits}>", f"i{bits}"
        some = emit(f"or {vector} {size}, splat ({integer} 1)")
        zeros = self.code.intrinsic(vector, f"llvm.ctlz.v{WARP}{integer}", (vector, some), ("i1", "false"))
        kept = KEPT if self.in_f16 else KEPT - self.lost
        below = emit(f"lshr {vector} splat ({integer} {(1 << bits - kept) - 1}), {zeros}")
        cut = emit(f"and {vector} {size}, {emit(f'xor {vector} {below}, splat ({integer} -1)')}")
        if self.in_f16:
            last = emit(f"and {vector} {emit(f'add {vector} {below}, splat ({integer} 1)')}, splat ({integer} -2)")
            exact = emit(f"icmp eq {vector} {size}, {cut}")
            cut = emit(f"select {SIGNS} {exact}, {vector} {cut}, {vector} {emit(f'or {vector} {cut}, {last}')}")
        unit = self.floats(emit(f"sub {WORDS} {top}, splat (i32 {self.fraction << 23})"))
        value = emit(f"fmul {FLOATS} {emit(f'uitofp {vector} {cut} to {FLOATS}')}, {unit}")
        value = emit(f"select {SIGNS} {negative}, {FLOATS} {emit(f'fneg {FLOATS} {value}')}, {FLOATS} {value}")
        return emit(f"fpext {HALVES} {self.narrowed(value)} to {FLOATS}") if self.in_f16 else value

    def _sign_and_size(self, sums: list[str]) -> tuple[str, str]:
        """Sign and magnitude of one sum, or of two whose sum may overflow an i32: then half of it has the sign.

        The magnitude of more has 64 bits.
        """
        if self.is_long:
            return self._long_sign_and_size(sums)
        total = half = sums[0]
        if len(sums) > 1:
            total = self.code.emit(f"add {WORDS} {sums[0]}, {sums[1]}")
            both, either = (self.code.emit(f"{op} {WORDS} {sums[0]}, {sums[1]}") for op in ("and", "xor"))
            half = self.code.emit(f"add {WORDS} {both}, {self.code.emit(f'ashr {WORDS} {either}, splat (i32 1)')}")
        negative = self.code.emit(f"icmp slt {WORDS} {half}, zeroinitializer")
        negated = self.code.emit(f"sub {WORDS} zeroinitializer, {total}")
        return negative, self.code.emit(f"select {SIGNS} {negative}, {WORDS} {negated}, {WORDS} {total}")

    def _long_sign_and_size(self, sums: list[str]) -> tuple[str, str]:
        emit, vector = self.code.emit, f"<{WARP} x i{LONG_BITS}>"
        total, *others = (emit(f"sext {WORDS} {each} to {vector}") for each in sums)
        for each in others:
            total = emit(f"add {vector} {total}, {each}")
        negative = emit(f"icmp slt {vector} {total}, zeroinitializer")
        negated = emit(f"sub {vector} zeroinitializer, {total}")
        return negative, emit(f"select {SIGNS} {negative}, {vector} {negated}, {vector} {total}")

    def _unless_alone(self, made: str, total: str, largest: str, exponent: str) -> str:
        """The sum; but the total where every product is zero or the total is not finite.

        It loses the bits that an accumulator has not.  A negative zero becomes positive.
        """
        emit = self.code.emit
        alone = emit(f"icmp eq {WORDS} {largest}, zeroinitializer")
        endless = emit(f"icmp eq {WORDS} {exponent}, splat (i32 {EXPONENT})")
        if self.lost and not self.in_f16:
            cut = self.floats(emit(f"and {WORDS} {self.words(total)}, splat (i32 {-1 << self.lost})"))
            total = emit(f"select {SIGNS} {endless}, {FLOATS} {total}, {FLOATS} {cut}")
        stays = emit(f"or {SIGNS} {alone}, {endless}")
        return emit(f"select {SIGNS} {stays}, {FLOATS} {emit(f'fadd {FLOATS} {total}, zeroinitializer')}, {FLOATS} {made}")

    # ── vocabulary ──────────────────────────────────────────────────────────────────────

    def _most(self, a: str, b: str) -> str:
        return self.code.intrinsic(WORDS, f"llvm.umax.v{WARP}i32", (WORDS, a), (WORDS, b))


class ExactSmall(TensorCoreSums):
    """The sums of numbers of eight bits and less, which come as f16, or with a scale as bf16.

    Behind C stand the least exponents of the upper and lower rows of A, and of the columns of B, as the type has exponents: a
    number below it has the least one.
    """

    def _least(self, fragment: Fragment, number: int) -> str:
        behind = 2 if fragment is self.product.b else number % 2
        return self.loaded(PAIRS, self.first_of_c + self.product.c.registers + behind, 1)[0]

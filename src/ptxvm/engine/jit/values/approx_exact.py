"""The `.approx` functions of `algebra.derived.approximations` in vector registers: the same bits, sooner.

The derivation sums c0*2**p0 ± c1*x*2**p1 ± c2*sq(x) in 64 bits and keeps 24 of them.  Here the sum is taken in 32 bits,
in units of the lowest bit that its terms share, so the low half of the result is exact and its high half is lost; that
comes from an estimate of the processor's, which needs no more than ten good bits.  Arguments that are not ordinary
(subnormal, infinite, out of the range where the result is ordinary) go to the derivation, out of line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ptxvm.algebra.derived import approximations
from ptxvm.algebra.derived.approximations import Quadratic
from ptxvm.algebra.types import f32
from ptxvm.algebra.value import Value
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir import cpu, preserving_calls
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Raw, Varying, vector_literal
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

EACH = 16  # lanes of a register
WORDS, FLOATS, DOUBLES = f"<{EACH} x i32>", f"<{EACH} x float>", f"<{EACH // 2} x double>"
NEEDS = ("avx512f", "avx512bw", "avx512dq", "avx512vbmi", "avx512vnni", "avx512bitalg")
FRACTION, ONE, SIGN = 0x7F_FFFF, 0x3F80_0000, 0x8000_0000
CURRENT, TRUNCATE = 4, 11  # roundings, as AVX-512 says them
MOST_EXPONENT = 255.0  # 2**23 times this is an i32
LOGARITHM = (0.68567, 362.82866, -146.66767, 39.79414)  # 256 times log2(1 + x), and a half
SINE = (64 * 1.548075, 64 * -0.552576)  # of x and its cube: 64 times the sine of x quarter turns, within a third
TURN = 1 << 23  # a quarter turn
C1_BITS = 17  # the low bits of an entry, with c1; c2 is in the others


@dataclass(frozen=True)
class Scale:
    """A unit of the sum: 2**unit.  Of the result's bits the `exact` lowest are those of the sum from 32 - exact on."""

    quadratic: Quadratic
    unit: int
    exact: int
    swapped: bool = False  # rows of odd exponents first

    @cache  # noqa: B019 - there are six
    def columns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """c0 with what is added in any row, and c1 and c2 with their signs in one word."""
        q, unit = self.quadratic, self.unit
        sums, words = [], []
        for start, (_, c1, c2) in zip(q.columns[0], q.rows, strict=True):
            first, second = c1 << q.p1 - unit, q.sign2 * c2 << 19 - 2 * self.doubled - unit  # squares come halved
            sums.append(start >> unit)
            words.append(first | second << C1_BITS)
        if self.swapped:
            sums, words = (half[64:] + half[:64] for half in (sums, words))
        return tuple(n & 0xFFFF_FFFF for n in sums), tuple(n & 0xFFFF_FFFF for n in words)

    @property
    def low(self) -> int:
        """Bits of the fraction that are x."""
        return 23 - self.quadratic.bits

    @property
    def doubled(self) -> bool:
        """Is the square taken of 2x?"""
        return self.low == 16


RCP = Scale(approximations.RCP, 16, 16)
SQRT = Scale(approximations.SQRT, 18, 15, swapped=True)
EX2 = Scale(approximations.EX2, 18, 16)
LG2 = Scale(approximations.LG2, 17, 32)
SIN = Scale(approximations.SIN, 19, 32)


@cache
def available() -> bool:
    """Has the processor the instructions that are used here?"""
    return all(cpu.has(feature) for feature in NEEDS)


class FunctionWriter:
    """Writes a function for the lanes of one register."""

    def __init__(self, code: Code, a: str) -> None:
        self.code, self.a = code, a
        self.bits = self.op(f"bitcast {FLOATS} {a} to {WORDS}")

    @classmethod
    def all_lanes(cls, code: Code, name: str, a: str) -> str:
        """A function of all lanes of a vector."""
        return code.joined("float", [getattr(cls(code, each), name)() for each in registers(code, a)], EACH)

    @classmethod
    def unusual(cls, code: Code, name: str, a: str) -> str:
        """Is any argument out of the ordinary range?"""
        return code.emit(f"icmp ne i{code.width} {code.mask_bits(ORDINARY[name].misses(code, a))}, 0")

    # ── one instruction ─────────────────────────────────────────────────────────────────

    def op(self, text: str) -> str:
        """Append an instruction."""
        return self.code.emit(text)

    def word(self, name: str, a: str, b: str | int) -> str:
        """An instruction on words; a number is the same in all lanes."""
        return self.op(f"{name} {WORDS} {a}, {b if isinstance(b, str) else f'splat (i32 {b})'}")

    def floats(self, name: str, *arguments: str) -> str:
        """An intrinsic on floats."""
        return self.code.intrinsic(FLOATS, f"llvm.{name}.v{EACH}f32", *[(FLOATS, x) for x in arguments])

    def number(self, x: float) -> str:
        """A float in all lanes."""
        return f"splat (float {Code.float_literal(x)})"

    def as_floats(self, a: str) -> str:
        """The same bits."""
        return self.op(f"bitcast {WORDS} {a} to {FLOATS}")

    def as_words(self, a: str) -> str:
        """The same bits."""
        return self.op(f"bitcast {FLOATS} {a} to {WORDS}")

    def estimate(self, name: str, a: str) -> str:
        """14 bits of a reciprocal, or of that of the root."""
        full = f"llvm.x86.avx512.{name}14.ps.512"
        self.code.unit.declare(full, FLOATS, FLOATS, FLOATS, "i16")
        return self.code.call(FLOATS, full, (FLOATS, a), (FLOATS, "zeroinitializer"), ("i16", "-1"))

    def truncated(self, name: str, a: str, b: str) -> str:
        """`add` or `mul`, rounded to zero."""
        full = f"llvm.x86.avx512.{name}.ps.512"
        self.code.unit.declarations[full] = f"declare {FLOATS} @{full}({FLOATS}, {FLOATS}, i32 immarg)"
        return self.code.call(FLOATS, full, (FLOATS, a), (FLOATS, b), ("i32", str(TRUNCATE)))

    def select(self, condition: str, a: str, b: str) -> str:
        """One float or the other."""
        return self.op(f"select <{EACH} x i1> {condition}, {FLOATS} {a}, {FLOATS} {b}")

    # ── the sum ─────────────────────────────────────────────────────────────────────────

    def sum(self, scale: Scale, bits: str) -> str:
        """The low 32 bits of the sum, in its units, for a fraction and the bits above it that choose the row."""
        c0, entry = self._row(scale, self.word("lshr", bits, scale.low), bits)
        x = self.word("and", bits, (1 << scale.low) - 1)
        product = self.word("mul", self.word("and", entry, (1 << C1_BITS) - 1), x)
        both = self.word("add" if scale.quadratic.sign1 > 0 else "sub", c0, product)
        return self.dot(both, self.word("ashr", entry, C1_BITS), self._square(x, int(scale.doubled)))

    def _row(self, scale: Scale, row: str, bits: str) -> list[str]:
        """The entries of two tables."""
        columns = scale.columns()
        name = "llvm.x86.avx512.vpermi2var.d.512"
        self.code.unit.declare(name, WORDS, WORDS, WORDS, WORDS)
        upper = [self._bit(bits, scale.low + 5 + n) for n in range((len(columns[0]) // 32).bit_length() - 1)]
        found = []
        for column in columns:
            parts = []
            for start in range(0, len(column), 32):
                low, high = (vector_literal("i32", column[n : n + 16]) for n in (start, start + 16))
                parts.append(self.code.call(WORDS, name, (WORDS, low), (WORDS, row), (WORDS, high)))
            for mask in upper:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [self.op(f"select <{EACH} x i1> {mask}, {WORDS} {b}, {WORDS} {a}") for a, b in pairs]
            found.append(parts[0])
        return found

    def _bit(self, bits: str, n: int) -> str:
        return self.op(f"icmp ne {WORDS} {self.word('and', bits, 1 << n)}, zeroinitializer")

    def _square(self, x: str, doubled: int) -> str:
        """Half of `truncated_square`, of x or of 2x, without the 18 zeros at its end.

        With b for the bits of x from 10 on, it is 2*b*b, twice b if bit 9 is set, and for each bit i below it that is set
        the bits from 18 - i on: bytes, whose sum is a product with a constant.
        """
        upper = self._bytes(x, [10 - doubled, 24, 10 - doubled, 24])
        total = self.dot("zeroinitializer", upper, upper)
        for rows, weights in (((9, 8, 7, 6), 0x0101_0102), ((5, 4, 3, 2), 0x0101_0101)):
            name, held = "llvm.x86.avx512.vpshufbitqmb.512", "<64 x i8>"
            self.code.unit.declare(name, "<64 x i1>", held, held)
            bits = tuple(base + i - doubled for base in (0, 32) for i in rows) * 8
            arguments = (held, self.op(f"bitcast {WORDS} {x} to {held}")), (held, vector_literal("i8", bits))
            chosen = self.code.call("<64 x i1>", name, *arguments)
            cut = self._bytes(x, [max(18 - i, 10) - doubled for i in rows])
            kept = self.op(
                f"select <64 x i1> {chosen}, {held} {self.op(f'bitcast {WORDS} {cut} to {held}')}, {held} zeroinitializer"
            )
            total = self._dot_bytes(total, kept, weights)
        return total

    def _bytes(self, x: str, starts: list[int]) -> str:
        """Eight bits of every word from each of four places on; words end in eight zeros."""
        shifts = tuple(base + n for base in (0, 32) for n in starts) * 8
        name, held = "llvm.x86.avx512.pmultishift.qb.512", "<64 x i8>"
        self.code.unit.declare(name, held, held, held)
        from_words = self.op(f"bitcast {WORDS} {x} to {held}")
        found = self.code.call(held, name, (held, vector_literal("i8", shifts)), (held, from_words))
        return self.op(f"bitcast {held} {found} to {WORDS}")

    def _dot_bytes(self, total: str, a: str, weights: int) -> str:
        """Add the bytes of every word, each times one of a word's bytes."""
        name, held = "llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"
        self.code.unit.declare(name, WORDS, WORDS, held, held)
        by = self.op(f"bitcast {WORDS} splat (i32 {weights}) to {held}")
        return self.code.call(WORDS, name, (WORDS, total), (held, a), (held, by))

    def dot(self, total: str, a: str, b: str) -> str:
        """Add the products of signed 16-bit halves."""
        name, held = "llvm.x86.avx512.vpdpwssd.512", "<32 x i16>"
        self.code.unit.declare(name, WORDS, WORDS, held, held)
        halves = [(held, self.op(f"bitcast {WORDS} {v} to {held}")) for v in (a, b)]
        return self.code.call(WORDS, name, (WORDS, total), *halves)

    def joined(self, exact: int, total: str, estimate: str) -> str:
        """The number nearest to an estimate whose low bits are the exact upper ones of the sum; both as words."""
        inexact = 32 - exact
        apart = self.word("sub", total, self.word("shl", estimate, inexact))
        if inexact == 16:
            return self.dot(estimate, apart, f"splat (i32 {1 << 16})")  # what a shift and an addition would give
        return self.word("add", estimate, self.word("ashr", apart, inexact))

    # ── the functions ───────────────────────────────────────────────────────────────────

    def rcp(self) -> str:
        """1/a."""
        estimate = self.as_words(self.estimate("rcp", self.a))
        return self.as_floats(self.joined(RCP.exact, self.sum(RCP, self.bits), estimate))

    def sqrt(self) -> str:
        """The root."""
        root = self.op(f"fmul {FLOATS} {self.a}, {self.estimate('rsqrt', self.a)}")
        return self.as_floats(self.joined(SQRT.exact, self.sum(SQRT, self.bits), self.as_words(root)))

    def ex2(self) -> str:
        """2**a: a in fixed point is whole and fraction; below zero the ones' complement, but for whole numbers."""
        size = self.op(f"fmul {FLOATS} {self.exponent_size()}, {self.number(2.0**23)}")
        magnitude = self.op(f"fptosi {FLOATS} {size} to {WORDS}")
        fixed = self.word("xor", magnitude, self.word("ashr", self.bits, 31))
        negative = self.op(f"icmp slt {WORDS} {self.bits}, zeroinitializer")
        integral = self.op(f"icmp eq {WORDS} {self.word('and', magnitude, FRACTION)}, zeroinitializer")
        carried = self.op(f"zext <{EACH} x i1> {self.op(f'and <{EACH} x i1> {negative}, {integral}')} to {WORDS}")
        fixed = self.word("add", fixed, carried)
        part = self.op(f"sitofp {WORDS} {self.word('and', fixed, FRACTION)} to {FLOATS}")
        # in units of 2**23: 0.0024 is the most that this is off
        slope = self.floats("fma", part, self.number(0.34371719 / 2**46), self.number(0.65628281 / 2**23))
        estimate = self.as_words(self.floats("fma", part, slope, self.number(1.0)))
        result = self.joined(EX2.exact, self.sum(EX2, self.word("and", fixed, FRACTION)), estimate)
        return self.scaled(self.as_floats(result), self.word("ashr", fixed, 23))

    def exponent_size(self) -> str:
        """The size of the argument of `ex2`, or a bound that an integer holds."""
        return self.floats("minnum", self.floats("fabs", self.a), self.number(MOST_EXPONENT))

    def scaled(self, a: str, power: str) -> str:
        """A float times two to the power of an integer: it may be zero or infinite."""
        return self.by_power(a, self.op(f"sitofp {WORDS} {power} to {FLOATS}"))

    def by_power(self, a: str, power: str) -> str:
        """The same, where the power is whole and a float."""
        full = "llvm.x86.avx512.mask.scalef.ps.512"
        self.code.unit.declarations[full] = f"declare {FLOATS} @{full}({FLOATS}, {FLOATS}, {FLOATS}, i16, i32 immarg)"
        rest = (FLOATS, "zeroinitializer"), ("i16", "-1"), ("i32", str(CURRENT))
        return self.code.call(FLOATS, full, (FLOATS, a), (FLOATS, power), *rest)

    def lg2(self) -> str:
        """The logarithm to base 2: the whole sum as an f64, truncated twice."""
        one = self.as_floats(self.word("or", self.word("and", self.bits, FRACTION), ONE))
        part = self.op(f"fsub {FLOATS} {one}, {self.number(1.0)}")
        estimate = self.number(LOGARITHM[-1])
        for coefficient in LOGARITHM[-2::-1]:
            estimate = self.floats("fma", part, estimate, self.number(coefficient))
        steps = self.op(f"fptosi {FLOATS} {estimate} to {WORDS}")  # of 2**31 units
        apart = self.word("sub", self.sum(LG2, self.bits), self.word("shl", steps, 31))
        exponent = self.word("sub", self.word("lshr", self.bits, 23), 127)
        found = self.whole(self.word("add", steps, self.word("shl", exponent, 8)), apart, LG2, cut=3)
        is_one = self.op(f"icmp eq {WORDS} {self.bits}, splat (i32 {ONE})")
        return self.select(is_one, "zeroinitializer", found)

    def whole(self, steps: str, apart: str, scale: Scale, cut: int = 0) -> str:
        """A sum as an f32, truncated: so many steps of 2**31 units, and what it is apart from these; without `cut` bits."""
        halves = [self._half(steps, apart, cut, first) for first in (0, EACH // 2)]
        weight = scale.quadratic.weight - scale.unit - cut
        return self.op(f"fmul {FLOATS} {self.code.concatenate('float', halves, EACH // 2)}, {self.number(2.0**-weight)}")

    def _half(self, steps: str, apart: str, cut: int, first: int) -> str:
        """Half of the lanes, in units of the last bit that counts."""
        half, order = EACH // 2, list(range(first, first + EACH // 2))
        high, low = (
            self.op(f"sitofp <{half} x i32> {self.code.shuffle('i32', EACH, v, 'poison', order)} to {DOUBLES}")
            for v in (steps, apart)
        )
        if cut:
            low = self.op(f"fmul {DOUBLES} {low}, splat (double {2.0**-cut})")
        arguments = [(DOUBLES, high), (DOUBLES, f"splat (double {float(1 << 31 - cut)})"), (DOUBLES, low)]
        total = self.code.intrinsic(DOUBLES, f"llvm.fma.v{half}f64", *arguments)
        if cut:
            total = self.code.intrinsic(DOUBLES, f"llvm.trunc.v{half}f64", (DOUBLES, total))
        return self.to_single(total)

    def to_single(self, a: str) -> str:
        """Half of the lanes from f64, truncated."""
        single, name = f"<{EACH // 2} x float>", "llvm.x86.avx512.mask.cvtpd2ps.512"
        self.code.unit.declarations[name] = f"declare {single} @{name}({DOUBLES}, {single}, i8, i32 immarg)"
        return self.code.call(single, name, (DOUBLES, a), (single, "zeroinitializer"), ("i8", "-1"), ("i32", str(TRUNCATE)))

    def sin(self) -> str:
        """The sine of radians, whose sign is that of the argument."""
        return self._signed(self.wave(more=0, nearest=False))

    def sin_nearest(self) -> str:
        """The same, of an angle that is rounded where it was cut."""
        return self._signed(self.wave(more=0, nearest=True))

    def cos(self) -> str:
        """The cosine: the sine of a quarter turn more."""
        return self.wave(more=1, nearest=False)

    def cos_nearest(self) -> str:
        """The same, of an angle that is rounded where it was cut."""
        return self.wave(more=1, nearest=True)

    def _signed(self, sine: str) -> str:
        return self.as_floats(self.word("xor", self.as_words(sine), self.word("and", self.bits, SIGN)))

    def wave(self, *, more: int, nearest: bool) -> str:
        """The sine of the size of the argument and some quarter turns more: it rises, falls, and does the same below zero."""
        turns = self.word("add", self._quarter_turns(nearest=nearest), more * TURN)
        falling = self.word("ashr", self.word("shl", turns, 8), 31)
        fraction = self.word("and", self.word("xor", turns, falling), FRACTION)
        x = self.op(f"fmul {FLOATS} {self.op(f'sitofp {WORDS} {fraction} to {FLOATS}')}, {self.number(1 / TURN)}")
        square = self.op(f"fmul {FLOATS} {x}, {x}")
        slope = self.floats("fma", square, self.number(SINE[1]), self.number(SINE[0]))
        steps = self.op(f"fptosi {FLOATS} {self.floats('fma', x, slope, self.number(0.5))} to {WORDS}")  # of 2**31 units
        apart = self.word("sub", self.sum(SIN, fraction), self.word("shl", steps, 31))
        sign = self.word("and", self.word("shl", turns, 7), SIGN)
        return self.as_floats(self.word("or", self.as_words(self.whole(steps, apart, SIN)), sign))

    def _quarter_turns(self, *, nearest: bool) -> str:
        """The size of the argument in quarter turns, with 23 bits behind the point."""
        turns = self.truncated("mul", self.floats("fabs", self.a), self.number(approximations.TWO_OVER_PI / 2**24))
        scaled = self.op(f"fmul {FLOATS} {turns}, {self.number(float(TURN))}")
        if nearest:
            scaled = self.truncated("add", scaled, self.number(0.5))
        return self.op(f"fptosi {FLOATS} {scaled} to {WORDS}")


@dataclass(frozen=True)
class ArgumentRange:
    """The arguments that are ordinary: by their bits, from `first` on, before `end`; of both signs, or else positive."""

    first: int
    end: int
    signed: bool = False

    def misses(self, code: Code, a: str) -> str:
        """Which arguments are not."""
        held = f"<{code.width} x i32>"
        bits = code.emit(f"bitcast <{code.width} x float> {a} to {held}")
        if self.signed:
            bits = code.emit(f"and {held} {bits}, splat (i32 {0x7FFF_FFFF})")
        moved = code.emit(f"sub {held} {bits}, splat (i32 {self.first})") if self.first else bits
        return code.emit(f"icmp uge {held} {moved}, splat (i32 {self.end - self.first})")


@dataclass(frozen=True)
class ArgumentGap:
    """The arguments whose sizes are ordinary: all but those nearer to `middle` than a distance, and NaN."""

    middle: float
    distance: float

    def misses(self, code: Code, a: str) -> str:
        """Which arguments are not."""
        held = f"<{code.width} x float>"
        middle, distance = (f"splat (float {code.float_literal(x)})" for x in (self.middle, self.distance))
        apart = code.emit(f"fsub {held} {_size(code, a)}, {middle}")
        return code.emit(f"fcmp ult {held} {_size(code, apart)}, {distance}")


def _size(code: Code, a: str) -> str:
    """Floats without their signs."""
    held = f"<{code.width} x float>"
    return code.intrinsic(held, f"llvm.fabs.v{code.width}f32", (held, a))


NORMAL = ArgumentRange(0x0080_0000, 0x7F80_0000)
ANGLES = ArgumentRange(0, 0x43A0_0000, signed=True)  # below 320
ORDINARY: dict[str, ArgumentRange | ArgumentGap] = {
    "rcp": ArgumentRange(0x0080_0000, 0x7E80_0000, signed=True),
    **dict.fromkeys(("rsqrt", "sqrt", "lg2"), NORMAL),
    "ex2": ArgumentGap(138.0, 12.0),  # from 126 to 150 a power may be subnormal; beyond it is zero or infinite
    **dict.fromkeys(("sin", "sin_nearest", "cos", "cos_nearest"), ANGLES),
    "tanh": ArgumentRange(0, 0x7F80_0001, signed=True),  # all but NaN
}


def function(
    alg: VectorAlgebra, writer: type[FunctionWriter] | None, name: str, a: Value, derivation: Callable[[Value], Value]
) -> Value:
    """A function of all lanes; by the derivation if the processor or the shape of the argument does not suit."""
    if alg.derives or alg.known(f32, a.raw) is not None:
        return derivation(a)
    if not isinstance(a.raw, Varying) or writer is None:
        return shared(alg, name, a, derivation)
    code, held, flushes = alg.code, alg.vector_type(f32), a.raw.name in alg.unflushed
    both = f"{{ {held}, {held} }}"
    piece = code.unit.piece(
        f"ptxvm.{name}.{'flushed' if flushes else 'as_is'}", both, f"{held} %a",
        lambda within: _piece(alg.within(within), writer, name, derivation, flushes=flushes),
    )  # fmt: skip
    made = code.call(both, piece, (held, alg.unflushed.get(a.raw.name, a.raw.name)))
    found, kept = (code.emit(f"extractvalue {both} {made}, {n}") for n in (0, 1))
    alg.flushed[found] = kept
    return Value(alg, f32, Varying(found))


def shared(alg: VectorAlgebra, name: str, a: Value, derivation: Callable[[Value], Value]) -> Value:
    """The derivation as a shared piece of code, for all lanes or for the one value that they share."""
    varies, llvm, (argument,) = alg.operands(f32, a.raw)

    def write(code: Code) -> str:
        within = alg.within(code)
        within.derives = True
        raw = within.tight(f32, derivation(Value(within, f32, within.result(varies, "%a"))).raw)
        return str(within.operands(f32, raw)[2][0])

    piece = alg.code.unit.piece(f"ptxvm.{name}.{'lanes' if varies else 'one'}", llvm, f"{llvm} %a", write)
    return Value(alg, f32, alg.result(varies, alg.code.call(llvm, piece, (llvm, argument))))


def _piece(
    alg: VectorAlgebra, writer: type[FunctionWriter], name: str, derivation: Callable[[Value], Value], *, flushes: bool
) -> str:
    """The function of `%a`, and its flushed value; with `flushes` the derivation takes `%a` flushed."""
    code, held = alg.code, alg.vector_type(f32)
    both = f"{{ {held}, {held} }}"
    code.run(f"%room = alloca {held}, align 64")
    slow, fast, join = code.label(), code.label(), code.label()
    code.branch(writer.unusual(code, name, "%a"), slow, fast, likely=False)
    with code.scope():
        code.block(slow)
        argument = Value(alg, f32, Varying("%a"))
        derived = _out_of_line(alg, name, (alg.derived_flush_subnormal(argument) if flushes else argument).raw.name, derivation)
        flushed = alg.derived_flush_subnormal(Value(alg, f32, Varying(derived)))
        code.jump(join)
    with code.scope():
        code.block(fast)
        quick = writer.all_lanes(code, name, "%a")
        code.jump(join)
    code.block(join)
    ends = (derived, flushed.raw.name)  # what is ordinary is not subnormal
    found, kept = [code.emit(f"phi {held} [ {v}, %{slow} ], [ {quick}, %{fast} ]", pure=False) for v in ends]
    return code.structure(both, (held, found), (held, kept))


def registers(code: Code, a: str) -> list[str]:
    """The registers of a vector."""
    return code.pieces("float", a, EACH)


def _out_of_line(alg: VectorAlgebra, name: str, a: str, derivation: Callable[[Value], Value]) -> str:
    """The derivation as a function of the module."""
    held, helper = alg.vector_type(f32), f"ptxvm.{name}{alg.code.unit.suffix}"
    if helper not in alg.code.unit.helpers:
        alg.code.unit.helper(helper, "")  # it must not call itself
        code = Code(alg.code.unit, whole=True)
        within = alg.within(code)
        within.derives = True
        argument = code.emit(f"load {held}, ptr %room, align 64", pure=False)
        raw: Raw = derivation(Value(within, f32, Varying(argument))).raw
        code.run(f"store {held} {within.vector(f32, within.tight(f32, raw))}, ptr %room, align 64")
        lines = "\n".join([*code.lines, "  ret void"])
        alg.code.unit.helper(helper, f"define internal void @{helper}(ptr %room) noinline cold #0 {{\n{lines}\n}}")
    alg.code.run(f"store {held} {a}, ptr %room, align 64")
    preserving_calls.call(alg.code, helper, "%room")
    return alg.code.emit(f"load {held}, ptr %room, align 64", pure=False)

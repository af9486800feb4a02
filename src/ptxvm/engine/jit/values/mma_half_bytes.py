"""Products of half bytes (e2m1) whose blocks of K have scales, as `tensor_core.HALF_BYTES` adds them.

The products of 16 neighbours are added exactly, or of 32 where half of those of A are zeros, since it was sparse: twice the
numbers are integers, and the function of `mma` for these adds them.  Such a sum times its scales is exact in f64.  The sums
and the accumulator are cut off below the largest exponent, that of a sum being that of its scales, and added in f64, which
holds them.
"""

from __future__ import annotations

from ptxvm.algebra.types import e2m1, f32, s8, s32, ue8m0
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.values.mma_writer import WORDS, leave
from ptxvm.isa.fragments import Fragment, Product, Scaling, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import HALF_BYTES
from ptxvm.machine.warp_matrix import where

DEPTH, GROUP = 64, HALF_BYTES.group
BYTES, LONGS, DOUBLES, FLOATS = (f"<{count} x {llvm}>" for count, llvm in
                                 ((4 * WARP, "i8"), (WARP, "i64"), (WARP, "double"), (WARP, "float")))  # fmt: skip
BIAS, FRACTION = 1023, 52  # of f64
EXPONENT = 0x7FF << FRACTION
KEPT = -1 << FRACTION - 23  # of the bits of an f64, in an f32


def is_halved(product: Product) -> bool:
    """Is it a product of half bytes with scales, added to f32?  Of a sparse A, K is twice as deep."""
    halved = product.a.halved and product.b.halved and product.a.type is product.b.type is e2m1
    added = product.c.type is product.d.type is f32
    return halved and added and product.scaling is not None and product.a.shape[1] == DEPTH


def group(product: Product) -> Product:
    """The product of the integers of a group."""
    types, depth = {"a": s8, "b": s8, "c": s32, "d": s32}, GROUP * product.b.shape[0] // DEPTH
    a, b, c, d = (mma_fragment(name, type, f"m16n8k{depth}") for name, type in types.items())
    return Product(a, b, c, d)


def function(unit: Unit, name: str, called: str, product: Product, scaling: Scaling) -> str:
    """The text of the function, which calls that of the integers of a group; A is dense, or was made so."""
    code, own = Code(unit), group(product)
    first = product.a.registers + product.b.registers
    sums = [_group_sums(code, called, product, number) for number in range(DEPTH // GROUP)]
    added = [_loaded(code, first + n) for n in range(product.c.registers)]
    held = (_loaded(code, first + len(added) + n) for n in (0, 1))
    scales = Scales(code, scaling.a, next(held)), Scales(code, scaling.b, next(held))
    results = []
    for n, each in enumerate(added):
        factors = scale_factors(code, scales, [product.d.layout(lane, n) for lane in range(WARP)])
        results.append(_sum(code, [(made[n], *factor) for made, factor in zip(sums, factors, strict=True)], each))
    infinite = [_is(code, "eq", code.emit(f"and {WORDS} {each}, splat (i32 {0xFF << 23})"), 0xFF << 23) for each in added]
    some = "zeroinitializer"
    for refused in [*infinite, *scales[0].refused, *scales[1].refused]:
        some = code.emit(f"or <{WARP} x i1> {some}, {refused}")
    leave(code, code.emit(f"icmp ne i{WARP} {code.emit(f'bitcast <{WARP} x i1> {some} to i{WARP}')}, 0"))
    for n, result in enumerate(results):
        code.run(f"store {FLOATS} {result}, ptr {code.offset('%room', STEP * n)}, align 64")
    size = STEP * (own.a.registers + own.b.registers + own.c.registers)
    lines = "\n".join([f"  %work = alloca [{size} x i8], align 64", *code.lines])
    return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"


def _loaded(code: Code, register: int) -> str:
    return code.emit(f"load {WORDS}, ptr {code.offset('%room', STEP * register)}, align 64")


# ── numbers ─────────────────────────────────────────────────────────────────────────────


def _integers(code: Code, register: int) -> tuple[str, str]:
    """Twice the numbers of a register, of bytes: those of the lower halves of its bytes, and those of the upper ones."""
    bytes_ = code.emit(f"load {BYTES}, ptr {code.offset('%room', STEP * register)}, align 64")
    upper = code.emit(f"lshr {BYTES} {bytes_}, splat (i8 4)")
    return _doubled(code, bytes_), _doubled(code, upper)


def _doubled(code: Code, bits: str) -> str:
    """Twice a number: 0 to 3 as they are, then 4, 6, 8, 12; as words."""
    size = code.emit(f"and {BYTES} {bits}, splat (i8 7)")
    middle = code.emit(f"sub {BYTES} {code.emit(f'shl {BYTES} {size}, splat (i8 1)')}, splat (i8 4)")
    large = code.emit(f"sub {BYTES} {code.emit(f'shl {BYTES} {size}, splat (i8 2)')}, splat (i8 16)")
    chosen = size
    for least, other in ((4, middle), (6, large)):
        above = code.emit(f"icmp uge {BYTES} {size}, splat (i8 {least})")
        chosen = code.emit(f"select <{4 * WARP} x i1> {above}, {BYTES} {other}, {BYTES} {chosen}")
    sign = code.emit(f"icmp ne {BYTES} {code.emit(f'and {BYTES} {bits}, splat (i8 8)')}, zeroinitializer")
    negative = code.emit(f"sub {BYTES} zeroinitializer, {chosen}")
    return code.bitcast(BYTES, code.emit(f"select <{4 * WARP} x i1> {sign}, {BYTES} {negative}, {BYTES} {chosen}"), WORDS)


def _of_group(code: Code, halves: tuple[str, str], upper: int) -> str:
    """The integers of a group for the four lanes of a row: those of two lanes, whose order along K is the same in A and B."""
    order = [lane // 4 * 4 + upper * 2 + lane % 4 // 2 + lane % 2 * WARP for lane in range(WARP)]
    return code.shuffle("i32", WARP, *halves, order)


def _group_sums(code: Code, called: str, product: Product, number: int) -> list[str]:
    """Four times the sums of a group, as the registers of D."""
    a, c = product.a.registers, product.c.registers
    if product.b.shape[0] == DEPTH:
        deep, upper = number // 2, number % 2  # the registers of its depths, and their lanes
        words = [_of_group(code, _integers(code, n), upper) for n in (2 * deep, 2 * deep + 1, a + deep)]
    else:  # a register of B, and two of A: the lower halves of their bytes, then the upper ones
        top, bottom, across = (_integers(code, n) for n in (2 * number, 2 * number + 1, a + number))
        words = [top[0], bottom[0], top[1], bottom[1], *across]
    for n, each in enumerate([*words, *["zeroinitializer"] * c]):
        code.run(f"store {WORDS} {each}, ptr {code.offset('%work', STEP * n)}, align 64")
    code.run(f"call i32 @{called}(ptr %work)")
    return [code.emit(f"load {WORDS}, ptr {code.offset('%work', STEP * n)}, align 64", pure=False) for n in range(c)]


# ── scales ──────────────────────────────────────────────────────────────────────────────


class Scales:
    """The scales of a register: `refused` says which of them are no numbers."""

    def __init__(self, code: Code, fragment: Fragment, word: str) -> None:
        self.code, self.fragment, self.word = code, fragment, word
        self.refused: list[str] = []

    def blocks(self, places: list[tuple[int, int]]) -> tuple[str, str]:
        """The scales at some places of the fragment, one for each lane: values, and the bits of their exponents as powers."""
        held = [divmod(int(where(self.fragment)[0][place]), self.fragment.packed) for place in places]
        code, down = self.code, 8 * held[0][1]
        word = code.shuffle("i32", WARP, self.word, "poison", [lane for lane, _ in held])
        byte = code.emit(f"and {WORDS} {code.emit(f'lshr {WORDS} {word}, splat (i32 {down})')}, splat (i32 255)")
        return self._of_power(byte) if self.fragment.type is ue8m0 else self._of_number(byte)

    def _of_power(self, byte: str) -> tuple[str, str]:
        """Of ue8m0: a power of two."""
        self.refused.append(_is(self.code, "eq", byte, 0xFF))
        power = _power(self.code, byte, -127)
        return self.code.bitcast(LONGS, power, DOUBLES), power

    def _of_number(self, byte: str) -> tuple[str, str]:
        """Of ue4m3: a number with three bits of fraction."""
        emit = self.code.emit
        low = emit(f"and {WORDS} {byte}, splat (i32 127)")
        self.refused.append(_is(self.code, "eq", low, 0x7F))
        exponent, fraction = emit(f"lshr {WORDS} {low}, splat (i32 3)"), emit(f"and {WORDS} {low}, splat (i32 7)")
        whole = emit(f"or {WORDS} {fraction}, splat (i32 8)")
        normal = _is(self.code, "ne", exponent, 0)
        digits = emit(f"select <{WARP} x i1> {normal}, {WORDS} {whole}, {WORDS} {fraction}")
        above = emit(f"select <{WARP} x i1> {normal}, {WORDS} {exponent}, {WORDS} splat (i32 1)")
        step = self.code.bitcast(LONGS, _power(self.code, above, -10), DOUBLES)
        value = emit(f"fmul {DOUBLES} {emit(f'uitofp {WORDS} {digits} to {DOUBLES}')}, {step}")
        return value, _power(self.code, above, -7)


def _power(code: Code, exponent: str, more: int) -> str:
    """The bits of the f64 that is 2 to an exponent and a constant."""
    wide = code.emit(f"zext {WORDS} {exponent} to {LONGS}")
    return code.emit(f"shl {LONGS} {code.emit(f'add {LONGS} {wide}, splat (i64 {BIAS + more})')}, splat (i64 {FRACTION})")


def scale_factors(code: Code, scales: tuple[Scales, Scales], places: list[tuple[int, int]]) -> list[tuple[str, str]]:
    """The factors of each group for some elements of D."""
    count = scales[0].fragment.shape[1]
    rows = [scales[0].blocks([(row, block) for row, _ in places]) for block in range(count)]
    columns = [scales[1].blocks([(block, column) for _, column in places]) for block in range(count)]
    found = [_factor(code, *each) for each in zip(rows, columns, strict=True)]
    return [found[number * count * GROUP // DEPTH] for number in range(DEPTH // GROUP)]


def _factor(code: Code, row: tuple[str, str], column: tuple[str, str]) -> tuple[str, str]:
    """What the scales multiply the sum of a group by, whose integers are four times too large; and their power of two."""
    value = code.emit(f"fmul {DOUBLES} {code.emit(f'fmul {DOUBLES} {row[0]}, {column[0]}')}, splat (double 0.25)")
    both = code.emit(f"add {LONGS} {row[1]}, {column[1]}")
    return value, code.emit(f"sub {LONGS} {both}, splat (i64 {BIAS << FRACTION})")


# ── sums ────────────────────────────────────────────────────────────────────────────────


def _sum(code: Code, groups: list[tuple[str, str, str]], added: str) -> str:
    """The sums of groups, with their factors and powers, and the accumulator: what `tensor_core.aligned_sum` computes."""
    emit = code.emit
    total = emit(f"fpext {FLOATS} {code.bitcast(WORDS, added, FLOATS)} to {DOUBLES}")
    powers = [emit(f"and {LONGS} {code.bitcast(DOUBLES, total, LONGS)}, splat (i64 {EXPONENT})")]
    powers[0] = _largest(code, powers[0], _bits(-126))
    values = [total]
    for integers, factor, power in groups:
        values.append(emit(f"fmul {DOUBLES} {emit(f'sitofp {WORDS} {integers} to {DOUBLES}')}, {factor}"))
        powers.append(power)
    largest = f"splat (i64 {_bits(-139)})"  # FLOOR_OF_GROUPS
    for value, power in zip(values, powers, strict=True):
        some = emit(f"fcmp une {DOUBLES} {value}, zeroinitializer")
        largest = _largest(code, largest, emit(f"select <{WARP} x i1> {some}, {LONGS} {power}, {LONGS} zeroinitializer"))
    fraction = HALF_BYTES.fraction
    up = code.bitcast(LONGS, emit(f"sub {LONGS} splat (i64 {2 * BIAS + fraction << FRACTION}), {largest}"), DOUBLES)
    down = code.bitcast(LONGS, emit(f"sub {LONGS} {largest}, splat (i64 {fraction << FRACTION})"), DOUBLES)
    found = "zeroinitializer"  # from which an exact zero is positive
    for value in values:
        found = emit(f"fadd {DOUBLES} {found}, {_truncated(code, emit(f'fmul {DOUBLES} {value}, {up}'))}")
    return _rounded(code, emit(f"fmul {DOUBLES} {found}, {down}"))


def _rounded(code: Code, value: str) -> str:
    """A number as an f32, truncated: subnormal ones have fewer bits, and those that are too large are infinities."""
    emit = code.emit
    bits = code.bitcast(DOUBLES, value, LONGS)
    cut = code.bitcast(LONGS, emit(f"and {LONGS} {bits}, splat (i64 {KEPT})"), DOUBLES)
    raised = emit(f"fmul {DOUBLES} {value}, splat (double 0x{_bits(149):X})")
    steps = emit(f"fmul {DOUBLES} {_truncated(code, raised)}, splat (double 0x{_bits(-149):016X})")
    size = emit(f"and {LONGS} {bits}, splat (i64 {EXPONENT})")
    small = emit(f"icmp ult {LONGS} {size}, splat (i64 {_bits(-126)})")
    return emit(f"fptrunc {DOUBLES} {emit(f'select <{WARP} x i1> {small}, {DOUBLES} {steps}, {DOUBLES} {cut}')} to {FLOATS}")


def _bits(exponent: int) -> int:
    """The bits of the f64 that is 2 to an exponent."""
    return BIAS + exponent << FRACTION


def _largest(code: Code, one: str, other: str | int) -> str:
    operand = other if isinstance(other, str) else f"splat (i64 {other})"
    return code.intrinsic(LONGS, f"llvm.smax.v{WARP}i64", (LONGS, one), (LONGS, operand))


def _truncated(code: Code, value: str) -> str:
    return code.intrinsic(DOUBLES, f"llvm.trunc.v{WARP}f64", (DOUBLES, value))


def _is(code: Code, relation: str, words: str, constant: int) -> str:
    return code.emit(f"icmp {relation} {WORDS} {words}, splat (i32 {constant})")

"""Products of floats whatever they are: infinite ones, NaN, and exponents that lie too far apart for sums in integers.

These are the sums of `machine.tensor_core` as they stand there, in f64, which holds every product and every sum that is cut
off.  `mma_floats` computes most products in a fifth of the time, and leaves the others to these.
"""

from __future__ import annotations

import math
import struct
from string import Template
from typing import TYPE_CHECKING

from ptxvm.algebra.types import f16, f32
from ptxvm.engine.jit.values.mma_floats import EXPONENT, FLOATS, LEAST_F16, SIGNS, Floats
from ptxvm.engine.jit.values.mma_writer import WORDS
from ptxvm.isa.fragments import Fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import tensor_core

if TYPE_CHECKING:
    from ptxvm.engine.jit.values.mma_floats import TensorCoreSums

LINE = 4 * WARP  # bytes of an f32 in all lanes
F64_BITS, F32_BITS = 52, 23  # of fractions
LEAST_F32 = 1 << F32_BITS  # the least exponent of f32, bf16 and tf32, in the bits of an f32

# The sum for an element of D in all lanes.  Its factors stand in rows: a number, then the power of two of its exponent, for
# each position along K.
ELEMENT = Template("""
define internal <$w x float> @$name(ptr %left, ptr %right, <$w x float> %added) noinline #0 {
entry:
  %first = fpext <$w x float> %added to <$w x double>
  br label %group
group:
  %from = phi i64 [ 0, %entry ], [ %to, %rounded ]
  %total = phi <$w x double> [ %first, %entry ], [ %next, %rounded ]
  %to = add i64 %from, $length
  %size = call <$w x double> @llvm.fabs.v${w}f64(<$w x double> %total)
  %size.bits = bitcast <$w x double> %size to <$w x i64>
  %power.bits = and <$w x i64> %size.bits, splat (i64 $exponent)
  %power.high = bitcast <$w x i64> %power.bits to <$w x double>
  %subnormal = fcmp olt <$w x double> %power.high, splat (double $least)
  %power.some = select <$w x i1> %subnormal, <$w x double> splat (double $least), <$w x double> %power.high
  %none = fcmp oeq <$w x double> %size, zeroinitializer
  %endless = icmp eq <$w x i64> %power.bits, splat (i64 $exponent)
  %no.power = or <$w x i1> %none, %endless
  %power = select <$w x i1> %no.power, <$w x double> zeroinitializer, <$w x double> %power.some
  %floor.low = fcmp olt <$w x double> %power, splat (double $floor)
  %power.first = select <$w x i1> %floor.low, <$w x double> splat (double $floor), <$w x double> %power
  br label %powers
powers:
  %p = phi i64 [ %from, %group ], [ %p.next, %powers ]
  %most = phi <$w x double> [ %power.first, %group ], [ %more, %powers ]
  %p.twice = shl i64 %p, 1
  %p.at = or i64 %p.twice, 1
  %p.left.at = getelementptr <$w x float>, ptr %left, i64 %p.at
  %p.right.at = getelementptr <$w x float>, ptr %right, i64 %p.at
  %p.left.short = load <$w x float>, ptr %p.left.at, align 64
  %p.right.short = load <$w x float>, ptr %p.right.at, align 64
  %p.left = fpext <$w x float> %p.left.short to <$w x double>
  %p.right = fpext <$w x float> %p.right.short to <$w x double>
  %both = fmul <$w x double> %p.left, %p.right
  %higher = fcmp ogt <$w x double> %both, %most
  %more = select <$w x i1> %higher, <$w x double> %both, <$w x double> %most
  %p.next = add i64 %p, 1
  %p.over = icmp eq i64 %p.next, %to
  br i1 %p.over, label %aligned, label %powers
aligned:
  %scale = fdiv <$w x double> splat (double $unit), %more
  %start.all = fmul <$w x double> %total, %scale
  %start = call <$w x double> @llvm.trunc.v${w}f64(<$w x double> %start.all)
  br label %products
products:
  %k = phi i64 [ %from, %aligned ], [ %k.next, %products ]
  %sum = phi <$w x double> [ %start, %aligned ], [ %sum.next, %products ]
  %k.at = shl i64 %k, 1
  %left.at = getelementptr <$w x float>, ptr %left, i64 %k.at
  %right.at = getelementptr <$w x float>, ptr %right, i64 %k.at
  %left.short = load <$w x float>, ptr %left.at, align 64
  %right.short = load <$w x float>, ptr %right.at, align 64
  %left.one = fpext <$w x float> %left.short to <$w x double>
  %right.one = fpext <$w x float> %right.short to <$w x double>
  %product = fmul <$w x double> %left.one, %right.one
  %product.all = fmul <$w x double> %product, %scale
  %part = call <$w x double> @llvm.trunc.v${w}f64(<$w x double> %product.all)
  %sum.next = fadd <$w x double> %sum, %part
  %k.next = add i64 %k, 1
  %k.over = icmp eq i64 %k.next, %to
  br i1 %k.over, label %summed, label %products
summed:
  %positive = fadd <$w x double> %sum.next, zeroinitializer
  %value = fdiv <$w x double> %positive, %scale
  %bits = bitcast <$w x double> %value to <$w x i64>
$rounding
  br label %rounded
rounded:
  %over = icmp eq i64 %to, $depth
  br i1 %over, label %end, label %group
end:
  %result = fptrunc <$w x double> %next to <$w x float>
  ret <$w x float> %result
}""")

# An accumulator of f32 is cut off, and infinite beyond its range.
CUT = Template("""\
  %kept = and <$w x i64> %bits, splat (i64 $kept)
  %cut.normal = bitcast <$w x i64> %kept to <$w x double>
  %magnitude = call <$w x double> @llvm.fabs.v${w}f64(<$w x double> %value)
  %small = fcmp olt <$w x double> %magnitude, splat (double $least)
  %steps.all = fmul <$w x double> %value, splat (double $steps)
  %steps = call <$w x double> @llvm.trunc.v${w}f64(<$w x double> %steps.all)
  %cut.small = fmul <$w x double> %steps, splat (double $step)
  %cut = select <$w x i1> %small, <$w x double> %cut.small, <$w x double> %cut.normal
  %within = fcmp olt <$w x double> %magnitude, splat (double $beyond)
  %no.number = fmul <$w x double> %value, splat (double $endless)
  %next = select <$w x i1> %within, <$w x double> %cut, <$w x double> %no.number""")

# One of f16 is rounded to nearest even: on its way through f32, the last bit says whether any below it were cut off.
NEAREST = Template("""\
  %kept = and <$w x i64> %bits, splat (i64 $above)
  %exact = icmp eq <$w x i64> %kept, %bits
  %odd = or <$w x i64> %kept, splat (i64 $last)
  %sticky = select <$w x i1> %exact, <$w x i64> %kept, <$w x i64> %odd
  %on.way = bitcast <$w x i64> %sticky to <$w x double>
  %wrong = fcmp uno <$w x double> %value, %value
  %to.f32 = select <$w x i1> %wrong, <$w x double> %value, <$w x double> %on.way
  %as.f32 = fptrunc <$w x double> %to.f32 to <$w x float>
  %as.f16 = fptrunc <$w x float> %as.f32 to <$w x half>
  %next = fpext <$w x half> %as.f16 to <$w x double>""")


def _double(value: float) -> str:
    """A number as LLVM writes it."""
    return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"


def element(sums: TensorCoreSums) -> str:
    """The name of the function for an element of D, whose sums have the lengths and the widths of others."""
    unit = sums.code.unit
    name = f"ptxvm.mma.element.{sums.kind}.k{sums.depth}{'.f16' * sums.in_f16}"
    for intrinsic in ("fabs", "trunc"):
        unit.declare(f"llvm.{intrinsic}.v{WARP}f64", f"<{WARP} x double>", f"<{WARP} x double>")
    accumulated = f16 if sums.in_f16 else f32
    least, kept = tensor_core.LEAST_POWER[accumulated], sums.core.accumulator_bits
    if sums.in_f16:
        rounding = NEAREST.substitute(w=WARP, above=-1 << F64_BITS - F32_BITS, last=1 << F64_BITS - F32_BITS)
    else:
        rounding = CUT.substitute(
            w=WARP, kept=-1 << F64_BITS - kept, least=_double(least), beyond=_double(2.0**128),
            steps=_double(2.0 ** (126 + kept)), step=_double(2.0 ** -(126 + kept)), endless=_double(math.inf),
        )  # fmt: skip
    return unit.helper(name, ELEMENT.substitute(
        name=name, w=WARP, depth=sums.depth, length=sums.length, exponent=0x7FF << F64_BITS, least=_double(least),
        floor=_double(sums.core.least(accumulated) or tensor_core.SMALLEST), unit=_double(2.0**sums.fraction),
        rounding=rounding,
    ))  # fmt: skip


def power(floats: Floats, element: str, least: str) -> str:
    """The power of two of the exponent of an element; 0 for zeros, and for what is not finite.

    `least` is the exponent of subnormal elements, in the bits of an f32.
    """
    emit, words = floats.code.emit, floats.words(element)
    size = emit(f"and {WORDS} {words}, splat (i32 {0x7FFF_FFFF})")
    exponent = emit(f"and {WORDS} {words}, splat (i32 {EXPONENT})")
    found = floats.code.intrinsic(WORDS, f"llvm.umax.v{WARP}i32", (WORDS, exponent), (WORDS, least))
    none = emit(f"icmp eq {WORDS} {size}, zeroinitializer")
    endless = emit(f"icmp eq {WORDS} {exponent}, splat (i32 {EXPONENT})")
    nothing = emit(f"or {SIGNS} {none}, {endless}")
    return floats.floats(emit(f"select {SIGNS} {nothing}, {WORDS} zeroinitializer, {WORDS} {found}"))


class WideSums(Floats):
    """Writes the function for the products that `sums` leaves, which has the same operands.

    Of a sparse A it leaves those to the host in which an element of B is not finite: it meets zeros that A has not.
    """

    def __init__(self, sums: TensorCoreSums) -> None:
        super().__init__(sums.code.unit, sums.product)
        self.sums = sums
        self.kind = f"{sums.kind}.wide"

    def body(self) -> None:
        """Lay the factors out in the order of K, and find the elements of D one by one."""
        left, right, totals = self.left(), self.right(), self.added()
        if self.sums.sparse:
            self.leave(self._any_endless(right))
        rows, columns = self._laid_out("left", self.rows, left), self._laid_out("right", self.columns, right)
        function = element(self.sums)
        made = [
            self.code.emit(f"call {FLOATS} @{function}(ptr {rows[row]}, ptr {columns[column]}, {FLOATS} {total})", pure=False)
            for (row, column), total in zip(self.pairs, totals, strict=True)
        ]
        self.results(made)

    def _any_endless(self, elements: list[str]) -> str:
        """Is one of some elements infinite or NaN?"""
        some = ""
        for each in elements:
            exponent = self.code.emit(f"and {WORDS} {self.words(each)}, splat (i32 {EXPONENT})")
            one = self.code.emit(f"icmp eq {WORDS} {exponent}, splat (i32 {EXPONENT})")
            some = self.code.emit(f"or {SIGNS} {some}, {one}") if some else one
        return self.code.emit(f"icmp ne i{WARP} {self.code.emit(f'bitcast {SIGNS} {some} to i{WARP}')}, 0")

    def _laid_out(self, side: str, lines: list[tuple[int, ...]], elements: list[str]) -> list[str]:
        """Pointers to the rows of A, or the columns of B, as they come to the lanes."""
        fragment, brought = (self.product.a, self.from_a) if side == "left" else (self.product.b, self.from_b)
        powers = [self._power(fragment, n, each) for n, each in enumerate(elements)]
        room = 2 * LINE * self.depth
        self.code.run(f"%{side} = alloca [{room * len(lines)} x i8], align 64")
        pointers = [self.code.emit(f"getelementptr i8, ptr %{side}, i64 {room * n}") for n in range(len(lines))]
        for pointer, line in zip(pointers, lines, strict=True):
            for k in range(self.depth):
                for n, each in enumerate((elements, powers)):
                    to = self.code.emit(f"getelementptr i8, ptr {pointer}, i64 {LINE * (2 * k + n)}")
                    self.code.run(f"store {FLOATS} {brought('float', each, line, k)}, ptr {to}, align 64")
        return pointers

    def _power(self, fragment: Fragment, number: int, element: str) -> str:
        return power(self, element, self._least(fragment, number))

    def _least(self, fragment: Fragment, number: int) -> str:
        """The exponent of subnormal elements, in the bits of an f32."""
        return f"splat (i32 {LEAST_F16 if self.type is f16 else LEAST_F32})"


class WideSmall(WideSums):
    """Those of numbers of eight bits and less, as `mma_floats.ExactSmall` has them."""

    def _least(self, fragment: Fragment, number: int) -> str:
        behind, half = 2 if fragment is self.product.b else number // 2 % 2, number % 2
        (pairs,) = self.loaded(WORDS, self.first_of_c + self.product.c.registers + behind, 1)
        one = self.code.emit(f"lshr {WORDS} {pairs}, splat (i32 16)" if half else f"and {WORDS} {pairs}, splat (i32 65535)")
        if self.type is f16:
            one = self.code.emit(f"add {WORDS} {one}, splat (i32 {127 - 15})")
        return self.code.emit(f"shl {WORDS} {one}, splat (i32 {F32_BITS})")

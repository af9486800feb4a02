"""Products of f16 or bf16 that are added to f32, in vector registers: a function of the module for each kind (PTX 9.7.14).

An element of D is a lane of one of its registers, so what it is the sum of are lanes of A and of B, brought there by
shuffles, whose order comes of the fragments' layouts.  Within the bounds of the manual (`numerics="fast"`) it is a chain
of multiplications and additions in f32.  The bits of the tensor cores (`machine.tensor_core`) come of integers: a product
of two significands is exact in f32, and so is its multiple by a power of two, of which the integral part is added.

A function is given the registers of A, B and C as `Emitter.outside` puts them in memory, leaves D there, and returns 0
where it cannot: the exact one knows only finite factors, and bf16 of which products are neither too large nor too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ptxvm.algebra.types import bf16, f16, f32
from ptxvm.engine.jit import halves
from ptxvm.engine.jit.code import Code, Unit
from ptxvm.engine.jit.raw import WARP
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.machine.tensor_core import Architecture, unit_of
from ptxvm.machine.warp_matrix import where

STEP = 16 * WARP  # bytes from register to register
WORDS, FLOATS, SIGNS = f"<{WARP} x i32>", f"<{WARP} x float>", f"<{WARP} x i1>"
EXPONENT, LARGEST, CANONICAL = 0x7F80_0000, 0x7FFF_FFFF, 0x7FFF_FFFF
LEAST = {f16: -14, bf16: -126}  # the exponent of subnormal numbers
# From which power of two on, and up to which, factors have products that f32 holds; and below it there is nothing but zero.
HELD = {f16: (-24, 16), bf16: (-50, 63)}
TOGETHER = 8  # products of which an i32 holds the sum, with the accumulator


def written(unit: Unit, product: Product, architecture: Architecture, *, fast: bool) -> str | None:
    """The name of the function for a product; None where there is none."""
    if not known(product):
        return None
    core = unit_of(product, architecture)
    kind = "fast" if fast else f"{core.length}.{core.fraction}"
    (m, k), n = product.a.shape, product.b.shape[1]
    name = f"ptxvm.mma.{product.a.type}.m{m}n{n}k{k}.{kind}"
    if name not in unit.helpers:
        writer = Fast(unit, product) if fast else Exact(unit, product, core.length, core.fraction)
        unit.helper(name, writer.function(name))
    return name


def known(product: Product) -> bool:
    """Is it a product of f16 or of bf16, added to f32, of one matrix in a warp?"""
    types = product.a.type is product.b.type and product.c.type is product.d.type is f32
    if product.a.type is f16 and not halves.native():
        return False
    return types and product.a.type in HELD and product.a.matrices == 1 and not product.finite


def power(exponent: int) -> int:
    """The bits of a power of two."""
    return exponent + 127 << 23


class Writer:
    """What both functions have in common."""

    def __init__(self, unit: Unit, product: Product) -> None:
        self.code, self.product, self.type = Code(unit), product, product.a.type
        self.depth, self.count = product.a.shape[1], product.d.elements
        places = [[product.d.layout(lane, n) for lane in range(WARP)] for n in range(self.count)]
        rows, columns = ([tuple(at[axis] for at in each) for each in places] for axis in (0, 1))
        self.rows, self.columns = list(dict.fromkeys(rows)), list(dict.fromkeys(columns))
        self.pairs = [(self.rows.index(r), self.columns.index(c)) for r, c in zip(rows, columns, strict=True)]

    def function(self, name: str) -> str:
        """Its text."""
        self.body()
        lines = "\n".join(self.code.lines)
        return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"

    def body(self) -> None:
        """What it does."""
        raise NotImplementedError

    # ── operands ────────────────────────────────────────────────────────────────────────

    def register(self, number: int) -> str:
        """Where a register is."""
        return self.code.emit(f"getelementptr i8, ptr %room, i64 {STEP * number}")

    def factors(self, fragment: Fragment, first: int) -> list[str]:
        """The elements that each lane holds, as f32."""
        return [self._factor(first + n // 2, n % 2) for n in range(fragment.elements)]

    def _factor(self, number: int, half: int) -> str:
        emit = self.code.emit
        if self.type is f16:
            parts = [self._halves(self.register(number), first, half) for first in (0, 16)]
            return self.code.concatenate("float", parts, 16)
        word = emit(f"load {WORDS}, ptr {self.register(number)}, align 64")
        bits = f"and {WORDS} {word}, splat (i32 -65536)" if half else f"shl {WORDS} {word}, splat (i32 16)"
        return self._floats(emit(bits))

    def _halves(self, register: str, first: int, half: int) -> str:
        """Of 16 lanes: sorted by one permutation before they are widened."""
        emit = self.code.emit
        packed = emit(f"load <32 x half>, ptr {emit(f'getelementptr i32, ptr {register}, i64 {first}')}, align 64")
        apart = self.code.shuffle("half", 32, packed, "poison", [*range(0, 32, 2), *range(1, 32, 2)])
        wide = emit(f"fpext <32 x half> {apart} to <32 x float>")
        return self.code.shuffle("float", 32, wide, "poison", list(range(16 * half, 16 * half + 16)))

    def _words(self, value: str) -> str:
        return self.code.emit(f"bitcast {FLOATS} {value} to {WORDS}")

    def _floats(self, value: str) -> str:
        return self.code.emit(f"bitcast {WORDS} {value} to {FLOATS}")

    def left(self) -> list[str]:
        """The elements of A."""
        return self.factors(self.product.a, 0)

    def right(self) -> list[str]:
        """The elements of B."""
        return self.factors(self.product.b, self.product.a.registers)

    def added(self) -> list[str]:
        """The registers of C."""
        first = self.product.a.registers + self.product.b.registers
        return [self.code.emit(f"load {FLOATS}, ptr {self.register(first + n)}, align 64") for n in range(self.count)]

    def give(self, results: list[str]) -> None:
        """D, in which a NaN has one pattern."""
        nan = f"splat (float 0x{0x7FFF_FFFF_E000_0000:016X})"
        for n, result in enumerate(results):
            wrong = self.code.emit(f"fcmp uno {FLOATS} {result}, {result}")
            whole = self.code.emit(f"select {SIGNS} {wrong}, {FLOATS} {nan}, {FLOATS} {result}")
            self.code.run(f"store {FLOATS} {whole}, ptr {self.register(n)}, align 64")

    def from_a(self, elements: list[str], rows: tuple[int, ...], k: int) -> str:
        """For each lane the element of a row of A."""
        return self._brought(self.product.a, elements, [(row, k) for row in rows])

    def from_b(self, elements: list[str], columns: tuple[int, ...], k: int) -> str:
        """For each lane the element of a column of B."""
        return self._brought(self.product.b, elements, [(k, column) for column in columns])

    def _brought(self, fragment: Fragment, elements: list[str], places: list[tuple[int, int]]) -> str:
        held = [divmod(int(where(fragment)[0][place]), fragment.packed * fragment.registers) for place in places]
        order = [lane for lane, _ in held]
        sources = sorted({element for _, element in held})
        found = self.code.shuffle("float", WARP, elements[sources[0]], "poison", order)
        for source in sources[1:]:
            other = self.code.shuffle("float", WARP, elements[source], "poison", order)
            chosen = [WARP + n if element == source else n for n, (_, element) in enumerate(held)]
            found = self.code.shuffle("float", WARP, found, other, chosen)
        return found


class Fast(Writer):
    """A chain of multiplications and additions, each of which may round or not."""

    def body(self) -> None:
        """Along the depth."""
        left, right, totals = self.left(), self.right(), self.added()
        name = f"llvm.fmuladd.v{WARP}f32"
        for k in range(self.depth):
            rows = [self.from_a(left, each, k) for each in self.rows]
            columns = [self.from_b(right, each, k) for each in self.columns]
            for n, (row, column) in enumerate(self.pairs):
                given = (FLOATS, rows[row]), (FLOATS, columns[column]), (FLOATS, totals[n])
                totals[n] = self.code.intrinsic(FLOATS, name, *given)
        self.give(totals)


class Exact(Writer):
    """What the tensor cores do: so many products at once, each cut off so many bits below the largest exponent."""

    def __init__(self, unit: Unit, product: Product, length: int, fraction: int) -> None:
        super().__init__(unit, product)
        self.length, self.fraction = min(length, self.depth), fraction
        self.parts = -(-self.length // TOGETHER)

    def body(self) -> None:
        """Tables of the factors and of the powers of two of their exponents, and the sums over them."""
        left, right = self.left(), self.right()
        self._refuse(left + right)
        self._table("a", left, self.rows, self.from_a)
        self._table("b", right, self.columns, self.from_b)
        with self._loop(0, self.depth, self.length, self.added(), FLOATS) as (first, totals, results):
            results.extend(self._sum(first, totals))
        self.give(results)

    def _refuse(self, elements: list[str]) -> None:
        """Leave where a factor is not finite, or too large or small."""
        emit, wrong = self.code.emit, ""
        first, last = (power(n) for n in HELD[self.type])
        for element in elements:
            size = emit(f"and {WORDS} {self._words(element)}, splat (i32 {LARGEST})")
            above = emit(f"sub {WORDS} {size}, splat (i32 {first})")
            far = emit(f"icmp uge {WORDS} {above}, splat (i32 {last - first})")
            bad = emit(f"and {SIGNS} {far}, {emit(f'icmp ne {WORDS} {size}, zeroinitializer')}")
            wrong = emit(f"or {SIGNS} {wrong}, {bad}") if wrong else bad
        refused, good = self.code.label(), self.code.label()
        self.code.branch(emit(f"icmp eq i{WARP} {self.code.mask_bits(wrong)}, 0"), good, refused, likely=True)
        self.code.block(refused)
        self.code.run("ret i32 0")
        self.code.block(good)
        self.block = good

    def _table(self, name: str, elements: list[str], lanes: list[tuple[int, ...]], bring: Callable[..., str]) -> None:
        """In memory: what each lane multiplies at each depth, for each of some orders of lanes."""
        powers = [self._power(each) for each in elements]
        for what, vectors in (("values", elements), ("powers", powers)):
            self.code.run(f"%{name}.{what} = alloca [{self.depth * len(lanes)} x {FLOATS}], align 64")
            for k in range(self.depth):
                for n, each in enumerate(lanes):
                    place = self.code.emit(f"getelementptr {FLOATS}, ptr %{name}.{what}, i64 {k * len(lanes) + n}")
                    self.code.run(f"store {FLOATS} {bring(vectors, each, k)}, ptr {place}, align 64")

    def _power(self, value: str) -> str:
        """2 to the exponent, in the factors' format; 0 of a zero."""
        found = self.code.emit(f"and {WORDS} {self._words(value)}, splat (i32 {EXPONENT})")
        if self.type is f16:
            found = self._most(found, f"splat (i32 {power(LEAST[f16])})")
        zero = self.code.emit(f"fcmp oeq {FLOATS} {value}, zeroinitializer")
        return self._floats(self.code.emit(f"select {SIGNS} {zero}, {WORDS} zeroinitializer, {WORDS} {found}"))

    # ── sums ────────────────────────────────────────────────────────────────────────────

    def _sum(self, first: str, totals: list[str]) -> list[str]:
        """The products from a depth on, added to the totals."""
        last = self.code.emit(f"add i64 {first}, {self.length}")
        none = ["zeroinitializer"] * self.count
        with self._loop(first, last, 1, none, WORDS) as (k, found, largest):
            for most, value in zip(found, self._products("powers", k), strict=True):
                largest.append(self._most(most, self._words(value)))
        exponents = [self.code.emit(f"and {WORDS} {self._words(total)}, splat (i32 {EXPONENT})") for total in totals]
        tops = [self._most(a, b) for a, b in zip(largest, exponents, strict=True)]
        scales = [self._floats(self.code.emit(f"sub {WORDS} splat (i32 {254 + self.fraction << 23}), {top}")) for top in tops]
        starts = [self._cut(total, scale) for total, scale in zip(totals, scales, strict=True)]
        starts += none * (self.parts - 1)
        each = self.length // self.parts
        with self._loop(first, self.code.emit(f"add i64 {first}, {each}"), 1, starts, WORDS) as (k, found, sums):
            for part in range(self.parts):
                at = self.code.emit(f"add i64 {k}, {part * each}")
                for n, value in enumerate(self._products("values", at)):
                    cut = self._cut(value, scales[n])
                    sums.append(self.code.emit(f"add {WORDS} {found[part * self.count + n]}, {cut}"))
        made = [self._rounded(sums[n :: self.count], top) for n, top in enumerate(tops)]
        return [self._unless_alone(*each) for each in zip(made, totals, largest, exponents, strict=True)]

    def _products(self, what: str, k: str) -> list[str]:
        """The product of each element of D at a depth: of the factors, or of the powers of two of their exponents."""
        rows, columns = self._loads(f"a.{what}", len(self.rows), k), self._loads(f"b.{what}", len(self.columns), k)
        return [self.code.emit(f"fmul {FLOATS} {rows[row]}, {columns[column]}") for row, column in self.pairs]

    def _loads(self, table: str, count: int, k: str) -> list[str]:
        start = self.code.emit(f"mul i64 {k}, {count}")
        places = [self.code.emit(f"add i64 {start}, {n}") for n in range(count)]
        places = [self.code.emit(f"getelementptr {FLOATS}, ptr %{table}, i64 {place}") for place in places]
        return [self.code.emit(f"load {FLOATS}, ptr {place}, align 64", pure=False) for place in places]

    def _cut(self, value: str, scale: str) -> str:
        """So many units of the last place that counts."""
        return self.code.emit(f"fptosi {FLOATS} {self.code.emit(f'fmul {FLOATS} {value}, {scale}')} to {WORDS}")

    def _rounded(self, sums: list[str], top: str) -> str:
        """The sum, of which an f32 has the upper 24 bits, in units of the last place that counts."""
        emit = self.code.emit
        negative, size = self._sign_and_size(sums)
        some = emit(f"or {WORDS} {size}, splat (i32 1)")
        zeros = self.code.intrinsic(WORDS, f"llvm.ctlz.v{WARP}i32", (WORDS, some), ("i1", "false"))
        below = emit(f"lshr {WORDS} splat (i32 255), {zeros}")
        kept = emit(f"and {WORDS} {size}, {emit(f'xor {WORDS} {below}, splat (i32 -1)')}")
        unit = self._floats(emit(f"sub {WORDS} {top}, splat (i32 {self.fraction << 23})"))
        value = emit(f"fmul {FLOATS} {emit(f'uitofp {WORDS} {kept} to {FLOATS}')}, {unit}")
        return emit(f"select {SIGNS} {negative}, {FLOATS} {emit(f'fneg {FLOATS} {value}')}, {FLOATS} {value}")

    def _sign_and_size(self, sums: list[str]) -> tuple[str, str]:
        """Of one sum, or of two that an i32 does not hold together: half of them has their sign."""
        total = half = sums[0]
        if len(sums) > 1:
            total = self.code.emit(f"add {WORDS} {sums[0]}, {sums[1]}")
            both, either = (self.code.emit(f"{op} {WORDS} {sums[0]}, {sums[1]}") for op in ("and", "xor"))
            half = self.code.emit(f"add {WORDS} {both}, {self.code.emit(f'ashr {WORDS} {either}, splat (i32 1)')}")
        negative = self.code.emit(f"icmp slt {WORDS} {half}, zeroinitializer")
        negated = self.code.emit(f"sub {WORDS} zeroinitializer, {total}")
        return negative, self.code.emit(f"select {SIGNS} {negative}, {WORDS} {negated}, {WORDS} {total}")

    def _unless_alone(self, made: str, total: str, largest: str, exponent: str) -> str:
        """The total stays where each product is zero, and where it is not finite; but no sum is a negative zero."""
        emit = self.code.emit
        alone = emit(f"icmp eq {WORDS} {largest}, zeroinitializer")
        endless = emit(f"icmp eq {WORDS} {exponent}, splat (i32 {EXPONENT})")
        stays = emit(f"or {SIGNS} {alone}, {endless}")
        return emit(f"select {SIGNS} {stays}, {FLOATS} {emit(f'fadd {FLOATS} {total}, zeroinitializer')}, {FLOATS} {made}")

    # ── vocabulary ──────────────────────────────────────────────────────────────────────

    @contextmanager
    def _loop(
        self, first: int | str, last: int | str, step: int, values: list[str], llvm: str
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop: its number, the values that it starts a turn with, and an empty list for those of the next turn.

        Its block is the function's last when the loop has ended; the list then holds the last values.
        """
        code, head, before = self.code, self.code.label(), self.block
        number, following = code.name(), code.name()
        found = [code.name() for _ in values]
        made: list[str] = []
        code.jump(head)
        code.block(head)
        start = len(code.lines)
        self.block = head
        with code.scope():
            yield number, found, made
            code.run(f"{following} = add i64 {number}, {step}")
            more, end = code.emit(f"icmp ult i64 {following}, {last}"), code.label()
            code.branch(more, head, end)
        phis = [f"  {number} = phi i64 [ {first}, %{before} ], [ {following}, %{self.block} ]"]
        for name, old, new in zip(found, values, made, strict=True):
            phis.append(f"  {name} = phi {llvm} [ {old}, %{before} ], [ {new}, %{self.block} ]")
        code.lines[start:start] = phis
        code.block(end)
        self.block = end

    def _most(self, a: str, b: str) -> str:
        return self.code.intrinsic(WORDS, f"llvm.umax.v{WARP}i32", (WORDS, a), (WORDS, b))


__all__ = ["known", "written"]

"""Products of large matrices in vector registers: A and B are laid out once, and rows of D are vectors of 32 columns.

A becomes a panel of f32, row by row, and B one of blocks of 32 columns, depth by depth.  Beside each stand the exponents of its
elements, as `mma_floats` has them: of B in bytes, of A in words of four equal bytes.  Both are written from registers of `mma`:
eight pieces of 16 bytes, each of which has eight neighbours along K of a row of A or a column of B, or the reverse.  An element
of A then is a factor of 32 columns at once, and the sums of four rows, which are those of the tensor cores, need no shuffles.
"""

from __future__ import annotations

from string import Template

from ptxvm.algebra.types import f16, tf32
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.values import mma, mma_wide
from ptxvm.engine.jit.values.mma_floats import BYTES, FLOATS, HALVES, PAIRS, SIGNS, TF32, TensorCoreSums
from ptxvm.engine.jit.values.mma_writer import WORDS
from ptxvm.isa.fragments import Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import Accumulation

GROUP = 8  # rows, columns or depths of a block of elements that is laid out at once
ROWS = 4  # of D, whose sums are found together
ACROSS = WARP  # columns of a block
TURNED = [n % GROUP * GROUP + n // GROUP for n in range(GROUP * GROUP)]
MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)"
NAN = f"float 0x{0x7FFF_FFFF_E000_0000:016X}"
PANELS = "ptr %a.floats, ptr %a.sizes, ptr %b.floats, ptr %b.sizes"  # as arguments of `sums` and `wide`


# Adds the products of all rows and columns to D, whose rows have their addresses in a table.
SUMS = Template("""
define internal void @$name(
  ptr %a, ptr %a.sizes, ptr %b, ptr %b.sizes, ptr %d, i32 %height, i32 %width, i1 %counts
) noinline #0 {
entry:
  br label %block
block:
  %j = phi i32 [ 0, %entry ], [ %j.more, %block.done ]
  %first = shl i32 %j, 5
  %left = sub i32 %width, %first
  %across.short = shl i32 %first, 2
  %across = zext i32 %across.short to i64
  %b.at = mul i32 %first, $depth
  %b.own = getelementptr float, ptr %b, i32 %b.at
  %b.sizes.own = getelementptr i8, ptr %b.sizes, i32 %b.at
  br label %rows
rows:
  %i = phi i32 [ 0, %block ], [ %i.more, %rows ]
  %a.at = mul i32 %i, $depth
  %a.own = getelementptr float, ptr %a, i32 %a.at
  %a.sizes.own = getelementptr i32, ptr %a.sizes, i32 %a.at
  %d.own = getelementptr i64, ptr %d, i32 %i
  call void @$rows(ptr %a.own, ptr %a.sizes.own, ptr %b.own, ptr %b.sizes.own, ptr %d.own, i64 %across, i32 %left, i1 %counts)
  %i.more = add i32 %i, $together
  %i.over = icmp uge i32 %i.more, %height
  br i1 %i.over, label %block.done, label %rows
block.done:
  %j.more = add i32 %j, 1
  %j.end = shl i32 %j.more, 5
  %j.over = icmp uge i32 %j.end, %width
  br i1 %j.over, label %end, label %block
end:
  ret void
}""")


# Clears the last block of B, some of whose columns are in no matrix: what lay there might be slow to compute with.
CLEAR = Template("""
define internal void @$name(ptr %b, ptr %b.sizes, i32 %width) alwaysinline {
entry:
  %rest = and i32 %width, 31
  %some = icmp ne i32 %rest, 0
  br i1 %some, label %clear, label %end
clear:
  %first = and i32 %width, -32
  %at = mul i32 %first, $depth
  %floats = getelementptr float, ptr %b, i32 %at
  %sizes = getelementptr i8, ptr %b.sizes, i32 %at
  call void @llvm.memset.p0.i64(ptr align 64 %floats, i8 0, i64 $floats, i1 false)
  call void @llvm.memset.p0.i64(ptr align 32 %sizes, i8 -1, i64 $sizes, i1 false)
  br label %end
end:
  ret void
}""")


class PanelFunctions:
    """The functions of a module for a product of floats on a tensor core, each written when it is first asked for.

    `small` numbers of eight bits and less come as f16 or bf16; of a `sparse` A half of the elements at most are not zero.
    """

    def __init__(self, unit: Unit, product: Product, core: Accumulation, *, small: bool, sparse: bool, fast: bool) -> None:
        self.unit, self.product, self.core, self.sparse = unit, product, core, sparse
        self.fast, self.small, self.depth = fast, small, product.a.shape[1]
        types = ".".join(each.type.name for each in (product.d, product.a, product.c))
        self.name = f"ptxvm.panels.{types}.k{self.depth}.{self._writer().kind}{'.fast' * fast}{'.small' * small}"

    def _writer(self, *, wide: bool = False) -> Panels:
        kind = WidePanels if wide else FastPanels if self.fast else SmallPanels if self.small else Panels
        return kind(self.unit, self.product, self.core, sparse=self.sparse)

    def layout(self, *, of_a: bool, turned: bool) -> str:
        """The name of the function that lays out a block of A or B."""
        name = f"{self.name}.{'a' if of_a else 'b'}{'.turned' * turned}"
        if name not in self.unit.helpers:
            self.unit.helper(name, self._writer().layout(name, of_a=of_a, turned=turned))
        return name

    def sums(self) -> str:
        """The name of the function that adds all products to D."""
        return self._sums(f"{self.name}.sums", self._writer())

    def wide(self) -> str | None:
        """The name of the function that adds products whose exponents lie far apart, in f64; None where the host does.

        A sparse A has got zeros, which an infinity of B must not meet; and what bf16 does not hold is marked by its exponents.
        """
        if self.fast or self.sparse or (self.small and self.product.a.type is not f16):
            return None
        return self._sums(f"{self.name}.wide", self._writer(wide=True))

    def _sums(self, name: str, writer: Panels) -> str:
        rows = f"{name}.rows"
        if name not in self.unit.helpers:
            self.unit.helper(rows, writer.four_rows(rows))
            self.unit.helper(name, SUMS.substitute(name=name, rows=rows, depth=self.depth, together=ROWS))
        return name

    def clear(self) -> str:
        """The name of the function that clears the columns of B behind the last one."""
        self.unit.declarations["llvm.memset.p0.i64"] = MEMSET
        size = self.depth * ACROSS
        return self.unit.helper(f"{self.name}.clear", CLEAR.substitute(
            name=f"{self.name}.clear", depth=self.depth, floats=4 * size, sizes=size))  # fmt: skip

    def is_high(self) -> list[str]:
        """LLVM lines that tell, as `%high`, whether an exponent is too high for sums in integers."""
        if self.fast:
            return ["  %high = icmp eq i32 0, 1"]
        writer = self._writer()
        found = writer.are_far(writer.code.emit(f"load {PAIRS}, ptr %highest, align 64"))
        return [*writer.code.lines, f"  %high = or i1 {found}, false"]


def functions(
    unit: Unit, product: Product, core: Accumulation, *, small: bool = False, sparse: bool = False, fast: bool
) -> PanelFunctions | None:
    """The functions for a product; None where no writer handles it."""
    if product.a.shape[1] % GROUP or not mma.of_floats(product):
        return None
    return PanelFunctions(unit, product, core, small=small, sparse=sparse, fast=fast)


def function_text(name: str, parameters: str, code: Code) -> str:
    """The text of a function without a result."""
    lines = "\n".join(code.lines)
    return f"define internal void @{name}({parameters}) noinline #0 {{\nentry:\n{lines}\n  ret void\n}}"


class Panels(TensorCoreSums):
    """Writes one of the functions."""

    exact = True

    def layout(self, name: str, *, of_a: bool, turned: bool) -> str:
        """The function that lays out a block: 8 rows of A by 8 depths, or 8 depths of B by 8 columns.

        It takes the address of the block, of the least exponents of its rows or columns, of its places in both panels, the
        elements from row to row there, and where the highest exponent so far stands.  `turned` is for pieces across the panel.
        """
        code, order = self.code, TURNED if turned else list(range(GROUP * GROUP))
        floats, pairs = self._wide_block(order) if self.type is tf32 else self._block(order)
        panels = [("float", "%floats", floats)]
        if self.exact:
            above, there = self.sizes(pairs, self._least_of_block(of_a=of_a), of_a=of_a)
            highest = code.emit(f"load {PAIRS}, ptr %highest, align 64", pure=False)
            code.run(f"store {PAIRS} {self.higher(highest, above)}, ptr %highest, align 64")
            panels.append(
                ("i32", "%sizes", self._repeated(there))
                if of_a
                else ("i8", "%sizes", code.emit(f"trunc {PAIRS} {there} to {BYTES}"))
            )
        for n in range(GROUP):
            row = code.emit(f"mul i64 %pitch, {n}")
            own = list(range(GROUP * n, GROUP * (n + 1)))
            for llvm, panel, values in panels:
                to = code.emit(f"getelementptr {llvm}, ptr {panel}, i64 {row}")
                eight = code.shuffle(llvm, GROUP * GROUP, values, "poison", own)
                code.run(f"store <{GROUP} x {llvm}> {eight}, ptr {to}, align {GROUP}")
        parameters = "ptr %room, ptr %least, ptr %floats, ptr %sizes, i64 %pitch, ptr %highest"
        return function_text(name, parameters, code)

    def _repeated(self, sizes: str) -> str:
        """The exponents of A, four times in a word each: a load brings words to all columns, but not bytes."""
        words = f"<{GROUP * GROUP} x i32>"
        wide = self.code.emit(f"zext {PAIRS} {sizes} to {words}")
        return self.code.emit(f"mul {words} {wide}, splat (i32 {0x01010101})")

    def _block(self, order: list[int]) -> tuple[str, str]:
        """The elements of a block of 16 bits each as f32, and their bits."""
        code, count = self.code, GROUP * GROUP
        (stored,) = self.loaded(PAIRS, 0, 1)
        pairs = code.shuffle("i16", count, stored, "poison", order)
        if self.type is f16:
            return code.emit(f"fpext <{count} x half> {code.emit(f'bitcast {PAIRS} {pairs} to <{count} x half>')} to "
                             f"<{count} x float>"), pairs  # fmt: skip
        words = code.emit(f"shl <{count} x i32> {code.emit(f'zext {PAIRS} {pairs} to <{count} x i32>')}, splat (i32 16)")
        return code.emit(f"bitcast <{count} x i32> {words} to <{count} x float>"), pairs

    def _wide_block(self, order: list[int]) -> tuple[str, str]:
        """Those of a block of tf32, in two registers of four elements a row, and their upper halves."""
        code, count, each = self.code, GROUP * GROUP, GROUP // 2
        words = [code.emit(f"load {WORDS}, ptr {code.offset('%room', 4 * WARP * n)}, align 64") for n in (0, 1)]
        (halves,) = self.upper_halves(words)
        at = [(n // GROUP * each + n % each, n % GROUP // each) for n in order]  # the element of a register, and which
        pairs = code.shuffle("i16", count, halves, "poison", [2 * lane + which for lane, which in at])
        low, high = (self.floats(code.emit(f"and {WORDS} {word}, splat (i32 {TF32})")) for word in words)
        return code.shuffle("float", WARP, low, high, [WARP * which + lane for lane, which in at]), pairs

    def _least_of_block(self, *, of_a: bool) -> str:
        """The least exponents of the elements of a block."""
        return self._least(self.product.a, 0)

    def four_rows(self, name: str) -> str:
        """The function for four rows of D and 32 columns, or the first ones of them.

        It takes the places of the rows and columns in the panels, a table of the addresses of rows of D, in whose words the
        sums stand, the distance of the columns from these in bytes, how many there are, and whether D counts.
        """
        code = self.code
        self.count = ROWS
        numbers = ", ".join(f"i32 {n}" for n in range(ACROSS))
        mask = code.emit(f"icmp ult {WORDS} <{numbers}>, {code.splat('i32', '%columns', ACROSS)}")
        pointers, totals = [], []
        for n in range(ROWS):
            at = code.emit(f"getelementptr i64, ptr %rows, i64 {n}")
            first = code.emit(f"inttoptr i64 {code.emit(f'load i64, ptr {at}, align 8')} to ptr")
            pointers.append(code.emit(f"getelementptr i8, ptr {first}, i64 %across"))
        for pointer in pointers:
            words = code.masked_load(ACROSS, "i32", pointer, 4, mask)
            totals.append(self._number(code.emit(f"select i1 %counts, {WORDS} {words}, {WORDS} zeroinitializer")))
        for pointer, total in zip(pointers, self.totals(totals), strict=True):
            code.masked_store(ACROSS, "i32", self._word(total), pointer, 4, mask)
        parameters = "ptr %a, ptr %a.sizes, ptr %b, ptr %b.sizes, ptr %rows, i64 %across, i32 %columns, i1 %counts"
        return function_text(name, parameters, code)

    def totals(self, totals: list[str]) -> list[str]:
        """Add all products to the totals."""
        for first in range(0, self.depth, self.length):
            depths = range(first, first + self.length)
            totals = self._sum([], [], totals, self._largest([], [], depths), depths)
        return totals

    def _number(self, words: str) -> str:
        """An accumulator from the words of D."""
        if self.product.c.type is not f16:
            return self.floats(words)
        code, short = self.code, f"<{WARP} x i16>"
        halves = code.emit(f"bitcast {short} {code.emit(f'trunc {WORDS} {words} to {short}')} to {HALVES}")
        return code.emit(f"fpext {HALVES} {halves} to {FLOATS}")

    def _word(self, total: str) -> str:
        """The words of D; every NaN has the same bits."""
        if self.product.d.type is not f16:
            return self.words(self._unlike_nan(total, total, FLOATS, NAN))
        halves, short = self._unlike_nan(total, self.narrowed(total), HALVES, "half 0xH7FFF"), f"<{WARP} x i16>"
        return self.code.emit(f"zext {short} {self.code.emit(f'bitcast {HALVES} {halves} to {short}')} to {WORDS}")

    def _size_of_row(self, row: int, k: int) -> str:
        """The exponent of an element of A, four times in a word."""
        at = self.code.emit(f"getelementptr i32, ptr %a.sizes, i64 {row * self.depth + k}")
        return self.code.emit(f"load i32, ptr {at}, align 4")

    def _sizes_of_columns(self, k: int) -> str:
        """The exponents of the elements of B at a depth."""
        at = self.code.emit(f"getelementptr i8, ptr %b.sizes, i64 {ACROSS * k}")
        return self.code.emit(f"load <{ACROSS} x i8>, ptr {at}, align {ACROSS}")

    def _product_sizes(self, left: list[str], right: list[str], n: int, k: int) -> str:
        """For two rows of D, the exponents of their products at one depth."""
        code, count, each = self.code, ACROSS, ACROSS // 4
        rows = [code.splat("i32", self._size_of_row(row, k), each) for row in (n, n + 1)]
        both_rows = code.emit(f"bitcast <{2 * each} x i32> {code.concatenate('i32', rows, each)} to {BYTES}")
        columns = code.shuffle("i8", count, self._sizes_of_columns(k), "poison", [*range(count), *range(count)])
        return code.intrinsic(BYTES, f"llvm.usub.sat.v{2 * WARP}i8", (BYTES, both_rows), (BYTES, columns))

    def _products(self, left: list[str], right: list[str], scales: list[str], k: int) -> list[tuple[str, str]]:
        columns = self._columns(k)
        return [(self.code.emit(f"fmul {FLOATS} {self._of_row(n, k)}, {columns}"), scale) for n, scale in enumerate(scales)]

    def _of_row(self, row: int, k: int) -> str:
        """An element of A as a factor of all columns."""
        at = self.code.emit(f"getelementptr float, ptr %a, i64 {row * self.depth + k}")
        return self.code.splat("float", self.code.emit(f"load float, ptr {at}, align 4"), ACROSS)

    def _columns(self, k: int) -> str:
        """The elements of B at a depth."""
        at = self.code.emit(f"getelementptr float, ptr %b, i64 {ACROSS * k}")
        return self.code.emit(f"load {FLOATS}, ptr {at}, align 64")


class SmallPanels(Panels):
    """Those of numbers of eight bits and less, which come as f16 or bf16, and have the least exponent of their row or more."""

    def _least_of_block(self, *, of_a: bool) -> str:
        code, count = self.code, GROUP * GROUP
        eight = code.emit(f"load <{GROUP} x i16>, ptr %least, align 2")
        return code.shuffle("i16", GROUP, eight, "poison", [n // GROUP if of_a else n % GROUP for n in range(count)])


class WidePanels(Panels):
    """Sums in f64 (`mma_wide`)."""

    def totals(self, totals: list[str]) -> list[str]:
        """Lay the factors of each row out as they meet the columns."""
        function = mma_wide.element(self)
        columns = [(value := self._columns(k), self._power_of_columns(value, k)) for k in range(self.depth)]
        right, found = self._laid_out("wide.right", columns), []
        for n, total in enumerate(totals):
            row = [(value := self._of_row(n, k), self._power_of_row(value, n, k)) for k in range(self.depth)]
            left = self._laid_out(f"wide.left.{n}", row)
            found.append(self.code.emit(f"call {FLOATS} @{function}(ptr {left}, ptr {right}, {FLOATS} {total})", pure=False))
        return found

    def _laid_out(self, name: str, factors: list[tuple[str, str]]) -> str:
        self.code.run(f"%{name} = alloca [{2 * mma_wide.LINE * self.depth} x i8], align 64")
        for n, each in enumerate(each for factor in factors for each in factor):
            to = self.code.emit(f"getelementptr i8, ptr %{name}, i64 {mma_wide.LINE * n}")
            self.code.run(f"store {FLOATS} {each}, ptr {to}, align 64")
        return f"%{name}"

    def _power_of_columns(self, values: str, k: int) -> str:
        """The powers of two of the exponents at a depth of B: those of f16 from their bytes, which know the least ones."""
        if self.type is not f16:
            return mma_wide.power(self, values, f"splat (i32 {mma_wide.LEAST_F32})")
        sizes = self.code.emit(f"zext <{ACROSS} x i8> {self._sizes_of_columns(k)} to {WORDS}")
        return self._power(self.code.emit(f"sub {WORDS} splat (i32 {self.form.most}), {sizes}"))

    def _power_of_row(self, value: str, row: int, k: int) -> str:
        """That of an element of A, for all columns."""
        if self.type is not f16:
            return mma_wide.power(self, value, f"splat (i32 {mma_wide.LEAST_F32})")
        size = self.code.emit(f"and i32 {self._size_of_row(row, k)}, 255")
        return self._power(self.code.splat("i32", self.code.emit(f"sub i32 {size}, {self.form.span}"), ACROSS))

    def _power(self, exponents: str) -> str:
        """The powers of two of exponents of f16; 0 for zeros, whose exponent is below, and for what is not finite."""
        emit, form = self.code.emit, self.form
        within = emit(f"icmp ult {WORDS} {emit(f'sub {WORDS} {exponents}, splat (i32 {form.least})')}, splat (i32 {form.span})")
        bits = emit(f"shl {WORDS} {emit(f'add {WORDS} {exponents}, splat (i32 {127 - form.bias})')}, splat (i32 23)")
        return self.floats(emit(f"select {SIGNS} {within}, {WORDS} {bits}, {WORDS} zeroinitializer"))


class FastPanels(Panels):
    """Sums within the bounds of the manual: a chain of multiplications and additions."""

    exact = False

    def totals(self, totals: list[str]) -> list[str]:
        """The chain along the depth."""
        for k in range(self.depth):
            columns = (FLOATS, self._columns(k))
            totals = [
                self.code.intrinsic(FLOATS, f"llvm.fmuladd.v{WARP}f32", (FLOATS, self._of_row(n, k)), columns, (FLOATS, total))
                for n, total in enumerate(totals)
            ]
        return totals

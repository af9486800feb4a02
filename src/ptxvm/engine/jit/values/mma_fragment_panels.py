"""Panels (`mma_panels`) for products whose D stays in fragments of `mma`: 16 rows and any columns.

A vector has 32 columns of a row of D: those of four tiles of eight columns, first the even ones, then the odd ones.  So four
rows are 16 lanes of some registers, whose groups of four lanes change places.  B is laid out in that order, 32 columns at once.

Exponents of A stand in pairs of rows, and those of B twice, by four columns: one load brings those of two rows to all columns.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from ptxvm.algebra.types import f16, tf32
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma
from ptxvm.engine.jit.values.mma_floats import BYTES, PAIRS, TF32
from ptxvm.engine.jit.values.mma_panels import (
    ACROSS,
    GROUP,
    ROWS,
    FastPanels,
    PanelFunctions,
    Panels,
    SmallPanels,
    WidePanels,
    function_text,
)  # fmt: skip
from ptxvm.engine.jit.values.mma_writer import WORDS
from ptxvm.isa.fragments import Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import Accumulation

TILES = ACROSS // GROUP  # whose columns are in a vector
REGISTER = 4 * WARP  # bytes
OF_TILE = 2 * REGISTER  # from the registers of B of a tile to those of the next
HALF = WARP // 2  # lanes of a register that have four rows
FOURS = f"<{HALF} x i64>"  # of elements of 16 bits, in a register
COLUMN = [GROUP * (n // 4 % TILES) + 2 * (n % 4) + n // HALF for n in range(ACROSS)]  # of a place in a vector
TWICE = [n // 8 * 4 + n % 4 for n in range(2 * ACROSS)]  # the columns of the exponents of B

# Adds the products of all rows and columns to D, whose registers stand `STEP` bytes apart.
SUMS = Template("""
define internal void @$name(
  ptr %a, ptr %a.sizes, ptr %b, ptr %b.sizes, ptr %d, i32 %width, i32 %enabled
) noinline #0 {
entry:
  %spare = alloca [$spare x i8], align 64
  call void @llvm.memset.p0.i64(ptr align 64 %spare, i8 0, i64 $spare, i1 false)
  br label %block
block:
  %j = phi i32 [ 0, %entry ], [ %j.more, %block.done ]
  %first = shl i32 %j, 5
  %left = sub i32 %width, %first
  %b.at = mul i32 %first, $depth
  %b.own = getelementptr float, ptr %b, i32 %b.at
  %b.sizes.own = getelementptr i16, ptr %b.sizes, i32 %b.at
  %d.at = mul i32 %j, $of_block
  %d.block = getelementptr i8, ptr %d, i32 %d.at
  br label %rows
rows:
  %i = phi i32 [ 0, %block ], [ %i.more, %rows ]
  %a.at = mul i32 %i, $of_rows
  %a.own = getelementptr float, ptr %a, i32 %a.at
  %a.sizes.own = getelementptr i32, ptr %a.sizes, i32 %a.at
  %half = lshr i32 %i, 1
  %d.half = mul i32 %half, $of_half
  %upper = and i32 %i, 1
  %d.upper = shl i32 %upper, 6
  %d.within = add i32 %d.half, %d.upper
  %d.own = getelementptr i8, ptr %d.block, i32 %d.within
  %past = shl i32 %upper, 4
  %bits = lshr i32 %enabled, %past
  call void @$rows(ptr %a.own, ptr %a.sizes.own, ptr %b.own, ptr %b.sizes.own, ptr %d.own, i32 %left, i32 %bits, ptr %spare)
  %i.more = add i32 %i, 1
  %i.over = icmp eq i32 %i.more, 4
  br i1 %i.over, label %block.done, label %rows
block.done:
  %j.more = add i32 %j, 1
  %j.end = shl i32 %j.more, 5
  %j.over = icmp uge i32 %j.end, %width
  br i1 %j.over, label %end, label %block
end:
  ret void
}""")


class FragmentFunctions(PanelFunctions):
    """The functions of a module for a product."""

    def _writer(self, *, wide: bool = False) -> FragmentPanels:
        kind = WideFragments if wide else FastFragments if self.fast else SmallFragments if self.small else FragmentPanels
        return kind(self.unit, self.product, self.core)

    def rows(self) -> str:
        """The name of the function that lays out 8 rows of A by 8 depths."""
        return self._laid("rows", lambda name: self._writer().rows_layout(name))

    def columns(self) -> str:
        """The name of the function that lays out 8 depths of B by 32 columns."""
        return self._laid("columns", lambda name: self._writer().columns_layout(name))

    def _laid(self, part: str, write: Callable[[str], str]) -> str:
        name = f"{self.name}.fragments.{part}"
        if name not in self.unit.helpers:
            self.unit.helper(name, write(name))
        return name

    def _sums(self, name: str, writer: Panels) -> str:
        rows, each = f"{name}.rows", self.product.d.registers
        if name not in self.unit.helpers:
            self.unit.declarations["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)"
            self.unit.helper(rows, writer.four_rows(rows))
            self.unit.helper(name, SUMS.substitute(
                name=name, rows=rows, depth=self.depth, spare=2 * STEP, of_block=STEP * each * TILES,
                of_rows=ROWS * self.depth, of_half=STEP * each // 2))  # fmt: skip
        return name


def functions(unit: Unit, product: Product, core: Accumulation, *, small: bool, fast: bool) -> FragmentFunctions | None:
    """The functions for a product, given that of eight of its columns; None where no writer handles it."""
    if not mma.of_floats(product):
        return None
    return FragmentFunctions(unit, product, core, small=small, sparse=False, fast=fast)


class FragmentPanels(Panels):
    """Writes one of the functions."""

    def rows_layout(self, name: str) -> str:
        """The function for 8 rows of A by 8 depths: pieces of 16 bytes, each with neighbours along K of a row."""
        code, order = self.code, list(range(GROUP * GROUP))
        floats, pairs = self._wide_block(order) if self.type is tf32 else self._block(order)
        for row in range(GROUP):
            to = code.emit(f"getelementptr float, ptr %floats, i64 {row * self.depth}")
            own = code.shuffle("float", GROUP * GROUP, floats, "poison", order[GROUP * row : GROUP * (row + 1)])
            code.run(f"store <{GROUP} x float> {own}, ptr {to}, align 32")
        if self.exact:
            sizes = self._repeated(*self._sized([pairs], of_a=True))
            for row in range(0, GROUP, 2):
                to = code.emit(f"getelementptr i32, ptr %sizes, i64 {row * self.depth}")
                both = [GROUP * (row + n % 2) + n // 2 for n in range(2 * GROUP)]
                code.run(
                    f"store <{2 * GROUP} x i32> {code.shuffle('i32', GROUP * GROUP, sizes, 'poison', both)}, ptr {to}, align 64"
                )
        return function_text(name, "ptr %room, ptr %least, ptr %floats, ptr %sizes, ptr %highest", code)

    def columns_layout(self, name: str) -> str:
        """The function for 8 depths of B by 32 columns: such pieces of each column, in the registers of four tiles."""
        code = self.code
        floats, pairs = self._wide_columns() if self.type is tf32 else self._columns_of_tiles()
        for k, each in enumerate(floats):
            to = code.emit(f"getelementptr float, ptr %floats, i64 {ACROSS * k}")
            code.run(f"store <{ACROSS} x float> {each}, ptr {to}, align 64")
        for n, sizes in enumerate(self._sized(pairs, of_a=False) if self.exact else []):
            small = code.emit(f"trunc {PAIRS} {sizes} to {BYTES}")
            for k in (2 * n, 2 * n + 1):
                twice = code.shuffle("i8", 2 * ACROSS, small, "poison", [ACROSS * (k % 2) + place for place in TWICE])
                code.run(f"store {BYTES} {twice}, ptr {code.offset('%sizes', 2 * ACROSS * k)}, align 64")
        return function_text(name, "ptr %room, ptr %least, ptr %floats, ptr %sizes, ptr %highest", code)

    def _sized(self, registers: list[str], *, of_a: bool) -> list[str]:
        """What stands for the exponents of elements; the highest is remembered."""
        least, found = self._least_of_block(of_a=of_a), []
        highest = self.code.emit(f"load {PAIRS}, ptr %highest, align 64", pure=False)
        for pairs in registers:
            above, there = self.sizes(pairs, least, of_a=of_a)
            highest = self.higher(highest, above)
            found.append(there)
        self.code.run(f"store {PAIRS} {highest}, ptr %highest, align 64")
        return found

    def _columns_of_tiles(self) -> tuple[list[str], list[str]]:
        """The elements of 16 bits each at every depth as f32; and their bits, at two depths each."""
        code, floats, found = self.code, [], []
        order = [column * GROUP + k for k in range(GROUP) for column in (0, 2, 4, 6, 1, 3, 5, 7)]
        tiles = []
        for n in range(TILES):
            tile = code.emit(f"load {PAIRS}, ptr {code.offset('%room', OF_TILE * n)}, align 64")
            turned = code.shuffle("i16", 2 * WARP, tile, "poison", order)
            tiles.append(code.emit(f"bitcast {PAIRS} {turned} to {FOURS}"))
        for first in range(0, GROUP, 2):
            places = [(tile, 2 * k + odd) for k in (first, first + 1) for odd in (0, 1) for tile in range(TILES)]
            pairs = code.emit(f"bitcast {FOURS} {self.gathered('i64', tiles, places, HALF)} to {PAIRS}")
            found.append(pairs)
            for part in (0, 1):
                one = code.shuffle("i16", 2 * WARP, pairs, "poison", list(range(WARP * part, WARP * (part + 1))))
                floats.append(self._widened(one))
        return floats, found

    def _widened(self, bits: str) -> str:
        """The f32 of the bits of 32 halves."""
        code = self.code
        if self.type is f16:
            return code.emit(f"fpext <{WARP} x half> {code.emit(f'bitcast <{WARP} x i16> {bits} to <{WARP} x half>')} to "
                             f"<{WARP} x float>")  # fmt: skip
        return self.floats(code.emit(f"shl {WORDS} {code.emit(f'zext <{WARP} x i16> {bits} to {WORDS}')}, splat (i32 16)"))

    def _wide_columns(self) -> tuple[list[str], list[str]]:
        """Those of tf32, in two registers of a tile, which have four depths each."""
        code, each, floats, found = self.code, GROUP // 2, [], []
        for first in range(0, GROUP, 2):
            places = [code.offset("%room", OF_TILE * n + REGISTER * (first // each)) for n in range(TILES)]
            registers = [code.emit(f"load {WORDS}, ptr {place}, align 64") for place in places]
            words = [
                self.gathered(
                    "i32", registers, [(column // GROUP, column % GROUP * each + k % each) for column in COLUMN], WARP
                )
                for k in (first, first + 1)
            ]
            (halves,) = self.upper_halves(words)
            found.append(code.shuffle("i16", 2 * WARP, halves, "poison", [*range(0, 2 * WARP, 2), *range(1, 2 * WARP, 2)]))
            floats += [self.floats(code.emit(f"and {WORDS} {word}, splat (i32 {TF32})")) for word in words]
        return floats, found

    def four_rows(self, name: str) -> str:
        """The function for four rows of D and 32 columns, or the first ones of them.

        It takes the places of the rows and columns in the panels, that of 16 lanes of the first register of D, how many
        columns there are, a bit for each of these lanes in which D counts, and memory for the registers of other columns.
        """
        code, half = self.code, f"<{HALF} x i32>"
        self.count = ROWS
        enabled = code.emit(f"bitcast i{HALF} {code.emit(f'trunc i32 %bits to i{HALF}')} to <{HALF} x i1>")
        pointers = self._registers()
        words = [code.emit(f"load {half}, ptr {each}, align 64", pure=False) for each in pointers]
        taken = [code.emit(f"select <{HALF} x i1> {enabled}, {half} {each}, {half} zeroinitializer") for each in words]
        totals = self.totals([self._number(each) for each in self._rows_of(taken)])
        for pointer, each in zip(pointers, self._fragments_of([self._word(total) for total in totals]), strict=True):
            code.run(f"store {half} {each}, ptr {pointer}, align 64")
        parameters = "ptr %a, ptr %a.sizes, ptr %b, ptr %b.sizes, ptr %d, i32 %columns, i32 %bits, ptr %spare"
        return function_text(name, parameters, code)

    def _registers(self) -> list[str]:
        """The addresses of the 16 lanes in the registers of four tiles: of pairs, or of even and of odd columns."""
        code, found, each = self.code, [], self.product.d.registers
        for tile in range(TILES):
            there = code.emit(f"icmp ugt i32 %columns, {GROUP * tile}")
            of_tile = code.emit(f"select i1 {there}, ptr {code.offset('%d', STEP * each * tile)}, ptr %spare")
            found += [code.offset(of_tile, STEP * n) for n in range(each // 2)]
        return found

    def _rows_of(self, registers: list[str]) -> list[str]:
        """The words of four rows, from 16 lanes of the registers."""
        code, found = self.code, []
        for row in range(ROWS):
            if len(registers) == TILES:
                pairs = self.gathered("i32", registers, [(tile, 4 * row + n) for tile in range(TILES) for n in range(4)], HALF)
                both = [code.emit(f"and <{HALF} x i32> {pairs}, splat (i32 65535)"),
                        code.emit(f"lshr <{HALF} x i32> {pairs}, splat (i32 16)")]  # fmt: skip
            else:
                both = [
                    self.gathered(
                        "i32", registers, [(2 * tile + odd, 4 * row + n) for tile in range(TILES) for n in range(4)], HALF
                    )
                    for odd in (0, 1)
                ]
            found.append(code.concatenate("i32", both, HALF))
        return found

    def _fragments_of(self, rows: list[str]) -> list[str]:
        """16 lanes of the registers, from the words of four rows."""
        code, found = self.code, []
        for tile in range(TILES):
            both = [
                self.gathered("i32", rows, [(n // 4, HALF * odd + 4 * tile + n % 4) for n in range(HALF)], WARP)
                for odd in (0, 1)
            ]
            if self.product.d.type is f16:
                upper = code.emit(f"shl <{HALF} x i32> {both[1]}, splat (i32 16)")
                both = [code.emit(f"or <{HALF} x i32> {both[0]}, {upper}")]
            found += both
        return found

    def _size_of_row(self, row: int, k: int) -> str:
        at = self.code.emit(f"getelementptr i32, ptr %a.sizes, i64 {2 * (row // 2 * self.depth + k) + row % 2}")
        return self.code.emit(f"load i32, ptr {at}, align 4")

    def _sizes_of_columns(self, k: int) -> str:
        return self.code.shuffle("i8", 2 * ACROSS, self._twice(k), "poison", [TWICE.index(n) for n in range(ACROSS)])

    def _twice(self, k: int) -> str:
        """The exponents of B at a depth, as they stand."""
        return self.code.emit(f"load {BYTES}, ptr {self.code.offset('%b.sizes', 2 * ACROSS * k)}, align 64")

    def _product_sizes(self, left: list[str], right: list[str], n: int, k: int) -> str:
        code = self.code
        at = code.emit(f"getelementptr i32, ptr %a.sizes, i64 {n * self.depth + 2 * k}")
        both = code.splat("i64", code.emit(f"load i64, ptr {at}, align 8"), GROUP)
        rows = code.emit(f"bitcast <{GROUP} x i64> {both} to {BYTES}")
        return code.intrinsic(BYTES, f"llvm.usub.sat.v{2 * WARP}i8", (BYTES, rows), (BYTES, self._twice(k)))

    def sizes_of_half(self, half: int) -> list[int]:
        """The two rows alternate by four columns."""
        return [n // 4 * 8 + 4 * half + n % 4 for n in range(ACROSS)]


class SmallFragments(FragmentPanels, SmallPanels):
    """Those of numbers of eight bits and less."""

    def _least_of_block(self, *, of_a: bool) -> str:
        return self.code.emit(f"load {PAIRS}, ptr %least, align 64")


class WideFragments(FragmentPanels, WidePanels):
    """Sums in f64."""


class FastFragments(FragmentPanels, FastPanels):
    """Sums within the bounds of the manual."""

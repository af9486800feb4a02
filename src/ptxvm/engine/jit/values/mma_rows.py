"""Products of 16 rows and any columns of floats, whose operands are fragments of `mma`.

The function takes the address of a record (`AT_COLUMNS` and what follows) and that of D, whose registers stand `STEP` bytes
apart.  In the record A has two registers for its upper rows, then two for its lower ones, and B two for every eight columns:
32 bytes along K.  Columns behind the last ones, up to a multiple of 32, are zero there.  All kernels share the function
(`ir.libraries`).
"""

from __future__ import annotations

from functools import lru_cache
from string import Template

from ptxvm.algebra.types import Type, tf32
from ptxvm.engine.jit.ir import cpu, libraries
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma_fragment_panels, mma_small, small_floats
from ptxvm.engine.jit.values.mma_fragment_panels import OF_TILE, REGISTER, TILES, FragmentFunctions
from ptxvm.engine.jit.values.mma_panels import ACROSS, GROUP, PANELS
from ptxvm.isa.fragments import Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import Accumulation

ROWS, MOST_COLUMNS = 16, 256
ALONG = OF_TILE // REGISTER  # registers of eight rows of A, or of eight columns of B

# The record: how many columns there are, a bit for each lane in which D counts, and the registers.
AT_COLUMNS, AT_ENABLED, AT_A = 0, 4, 64
AT_B = AT_A + REGISTER * ALONG * ROWS // GROUP
SIZE = AT_B + OF_TILE * MOST_COLUMNS // GROUP

PARAMETERS = "ptr, ptr"
FUNCTION = Template("""
define internal i32 @$name(ptr %factors, ptr %d) noinline #0 {
entry:
  %wide = alloca [$wide x i8], align 64
  %highest = alloca [128 x i8], align 64
  %a.floats = alloca [$of_a x float], align 64
  %a.sizes = alloca [$of_a x i32], align 64
  %b.floats = alloca [$of_b x float], align 64
  %b.sizes = alloca [$of_b x i16], align 64
$least
  store <64 x i16> zeroinitializer, ptr %highest, align 64
  %width = load i32, ptr %factors, align 64
  %enabled.at = getelementptr i8, ptr %factors, i64 $at_enabled
  %enabled = load i32, ptr %enabled.at, align 4
  %a = getelementptr i8, ptr %factors, i64 $at_a
  %b = getelementptr i8, ptr %factors, i64 $at_b
  br label %a.group
$lay_a
$lay_b
laid:
$high
  br i1 %high, label %far, label %near
far:
$otherwise
near:
  call void @$sums($panels, ptr %d, i32 %width, i32 %enabled)
  ret i32 1
}""")

# Lays out the registers of eight rows, or of 32 columns, at a time.
LAY = Template("""$m.group:
  %$m.i = phi i32 [ 0, %$before ], [ %$m.i.more, %$m.group ]
  %$m.from = mul i32 %$m.i, $stored
  %$m.registers = getelementptr i8, ptr %$m, i32 %$m.from
  %$m.to = mul i32 %$m.i, $step
$lay
  %$m.i.more = add i32 %$m.i, 1
  %$m.done = mul i32 %$m.i.more, $together
  %$m.over = icmp uge i32 %$m.done, $end
  br i1 %$m.over, label %$after, label %$m.group""")


def shared(unit: Unit, product: Product, core: Accumulation, *, fast: bool) -> str | None:
    """Declare the function for a product of any columns; returns its name, or None where none handles it."""
    small = (product.a.type, product.b.type) if mma_small.is_small(product) else None
    name = _library(mma_small.tile(product), small, core, cpu.identity(), fast=fast)
    return None if name is None else libraries.declared(unit, name, PARAMETERS)


@lru_cache(maxsize=256)
def _library(tile: Product, small: tuple[Type, Type] | None, core: Accumulation, _processor: str, *, fast: bool) -> str | None:
    unit = Unit()
    panels = mma_fragment_panels.functions(unit, tile, core, small=small is not None, fast=fast)
    if panels is None:
        return None
    name = ".".join([panels.name, *(each.name for each in small or ()), "fragments"])
    return libraries.enter(unit, unit.helper(name, _text(name, panels, tile, small)), PARAMETERS)


def _text(name: str, panels: FragmentFunctions, tile: Product, small: tuple[Type, Type] | None) -> str:
    depth, wide = tile.a.shape[1], panels.wide()
    lay_a, lay_b = (
        LAY.substitute(
            m=m, before=before, stored=REGISTER * ALONG * tiles, step=together * depth, together=together, end=end, after=after,
            lay="\n".join(_laid(m, layout, along, tiles, tile.a.type, None if small is None else small["ab".index(m)])),
        )
        for m, before, layout, along, tiles, together, end, after in (
            ("a", "entry", panels.rows(), 1, 1, GROUP, str(ROWS), "b.group"),
            ("b", "a.group", panels.columns(), ACROSS, TILES, ACROSS, "%width", "laid"),
        )
    )  # fmt: skip
    sums = f"{PANELS}, ptr %d, i32 %width, i32 %enabled"
    otherwise = "  ret i32 0" if wide is None else f"  call void @{wide}({sums})\n  ret i32 1"
    return FUNCTION.substitute(
        name=name, wide=OF_TILE * TILES, of_a=ROWS * depth, of_b=MOST_COLUMNS * depth, at_enabled=AT_ENABLED, at_a=AT_A,
        at_b=AT_B, least="\n".join(_least(small)), lay_a=lay_a, lay_b=lay_b, high="\n".join(panels.is_high()),
        sums=panels.sums(), panels=PANELS, otherwise=otherwise,
    )  # fmt: skip


def _least(small: tuple[Type, Type] | None) -> list[str]:
    """The least exponents of the elements of a block, where the layout of small numbers looks for them."""
    return [
        line
        for m, type in zip("ab", small or (), strict=False)
        for line in (
            f"  %least.{m} = alloca <{2 * WARP} x i16>, align 64",
            f"  store <{2 * WARP} x i16> splat (i16 {small_floats.least_exponent(type)}), ptr %least.{m}, align 64",
        )
    ]


def _laid(m: str, layout: str, along: int, tiles: int, type: Type, small: Type | None) -> list[str]:
    """Lay out two registers of each tile: a block of tf32, two blocks of 16 bits, or four of bytes."""
    lines, depth = [], 0
    least, sizes_of = "null" if small is None else f"%least.{m}", "i32" if m == "a" else "i16"
    for n in range(1 if type is tf32 else ALONG):
        blocks = [f"%{m}.register.{n}"]
        lines.append(f"  {blocks[0]} = getelementptr i8, ptr %{m}.registers, i32 {REGISTER * n}")
        if small is not None:
            for tile in range(tiles):
                source, low = (f"%{m}.registers", REGISTER * n + OF_TILE * tile), OF_TILE * tile
                lines += small_floats.register_widened(f"{m}.{n}.{tile}", small.name, source, ("%wide", low, low + REGISTER))
            lines.append(f"  %{m}.wide.{n} = getelementptr i8, ptr %wide, i64 {REGISTER}")
            blocks = ["%wide", f"%{m}.wide.{n}"]
        for block in blocks:
            to, floats, sizes = (f"%{m}.to.{part}.{depth}" for part in ("place", "floats", "sizes"))
            lines += [
                f"  {to} = add i32 %{m}.to, {depth * along}",
                f"  {floats} = getelementptr float, ptr %{m}.floats, i32 {to}",
                f"  {sizes}.at = add i32 %{m}.to, {depth * along * (1 if m == 'b' else 2)}",
                f"  {sizes} = getelementptr {sizes_of}, ptr %{m}.sizes, i32 {sizes}.at",
                f"  call void @{layout}(ptr {block}, ptr {least}, ptr {floats}, ptr {sizes}, ptr %highest)",
            ]
            depth += GROUP
    return lines

"""Products of whole matrices in vector registers: a loop over tiles of 16 by 8 that calls the function of `mma`.

The matrices lie in memory as the fragments of their tiles: tile after tile, register after register, lane after lane.
"""

from __future__ import annotations

from string import Template

from ptxvm.algebra.types import Type, bf16, f16, f32, tf32
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma
from ptxvm.engine.jit.values.mma_writer import STEP
from ptxvm.isa.fragments import Core, Product, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import Architecture

BYTES = 4 * WARP  # of a register
KINDS: dict[str, tuple[Type, ...]] = {"f16": (f16, bf16), "tf32": (tf32,)}
"""For kinds of products the types of A and B that functions handle; D is of f32."""

FUNCTION = Template("""
define internal i32 @$name(ptr %a, ptr %b, ptr %d, i32 %rows, i32 %columns) noinline #0 {
entry:
  %work = alloca [$work x i8], align 64
  br label %row
row:
  %i = phi i32 [ 0, %entry ], [ %i.more, %row.done ]
  %a.at = mul i32 %i, $a_size
  %d.row = mul i32 %i, %columns
  br label %tile
tile:
  %j = phi i32 [ 0, %row ], [ %j.more, %stored ]
  %b.at = mul i32 %j, $b_size
  %d.tile = add i32 %d.row, %j
  %d.at = mul i32 %d.tile, $d_size
$prepare
  %ok = call i32 @$tile(ptr %work)
  %refused = icmp eq i32 %ok, 0
  br i1 %refused, label %leave, label %stored
leave:
  ret i32 0
stored:
$keep
  %j.more = add i32 %j, 1
  %j.over = icmp eq i32 %j.more, %columns
  br i1 %j.over, label %row.done, label %tile
row.done:
  %i.more = add i32 %i, 1
  %i.over = icmp eq i32 %i.more, %rows
  br i1 %i.over, label %end, label %row
end:
  ret i32 1
}""")


def tile_product(type: Type) -> Product:
    """The product of a tile: as deep as the instruction, 32 bytes."""
    shape = f"m16n8k{256 // type.bits}"
    a, b, c, d = (mma_fragment(name, each, shape) for name, each in zip("abcd", (type, type, f32, f32), strict=True))
    return Product(a, b, c, d, core=Core.TCGEN05)


def written(unit: Unit, type: Type, architecture: Architecture, *, fast: bool) -> str | None:
    """Write the function for a type of A and B unless it is there; returns its name, or None where none handles it."""
    product = tile_product(type)
    called = mma.written(unit, product, architecture, fast=fast)
    if called is None:
        return None
    name = f"{called}.tiles"
    if name not in unit.helpers:
        unit.helper(name, _text(name, called, product))
    return name


def _text(name: str, called: str, product: Product) -> str:
    a, b, d = (each.registers for each in (product.a, product.b, product.d))
    prepare = [
        *(line for n in range(a) for line in _moved("a", n, n)),
        *(line for n in range(b) for line in _moved("b", n, a + n)),
        *(line for n in range(d) for line in _moved("d", n, a + b + n)),
    ]
    keep = [line for n in range(d) for line in _moved("d", n, n, back=True)]
    return FUNCTION.substitute(
        name=name, tile=called, work=STEP * (a + b + d), a_size=BYTES * a, b_size=BYTES * b, d_size=BYTES * d,
        prepare="\n".join(prepare), keep="\n".join(keep),
    )  # fmt: skip


def _moved(matrix: str, number: int, slot: int, *, back: bool = False) -> list[str]:
    """Copy a register of a tile to its place for the function, or back."""
    key = f"{matrix}.{number}.{'back' if back else 'to'}"
    lines = [
        f"  %at.{key} = add i32 %{matrix}.at, {BYTES * number}",
        f"  %tile.{key} = getelementptr i8, ptr %{matrix}, i32 %at.{key}",
        f"  %slot.{key} = getelementptr i8, ptr %work, i32 {STEP * slot}",
    ]
    source, target = (f"%slot.{key}", f"%tile.{key}") if back else (f"%tile.{key}", f"%slot.{key}")
    return [
        *lines,
        f"  %word.{key} = load <{WARP} x i32>, ptr {source}, align 4",
        f"  store <{WARP} x i32> %word.{key}, ptr {target}, align 4",
    ]

"""Products of a warpgroup in vector registers: a loop over columns of D that calls the function of `mma` (PTX 9.7.15.5).

The function copies a fragment of B from shared memory for every eight columns, and one of A where it is not in registers.
K-major matrices have four lanes of a fragment in each piece of 16 bytes, so a register consists of eight pieces.
"""

from __future__ import annotations

from dataclasses import replace
from string import Template

from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma
from ptxvm.engine.jit.values.mma_writer import STEP
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WARPS, WarpgroupProduct
from ptxvm.machine.tensor_core import Architecture

COLUMNS = 8  # of the product that `mma` computes
BYTES = 4 * WARP  # of a register
REACH = 1 << 18  # the addresses that a descriptor names

COPY = Template("""
define internal void @ptxvm.wgmma.pieces(ptr %to, ptr %shared, i32 %start, i32 %row, i32 %base, i32 %mask) alwaysinline {
entry:
  br label %next
next:
  %n = phi i32 [ 0, %entry ], [ %n.more, %next ]
  %down = mul i32 %n, %row
  %sum = add i32 %start, %down
  %at = and i32 %sum, 262143
  %line = lshr i32 %at, 7
  %from.base = sub i32 %line, %base
  %turned = and i32 %from.base, %mask
  %moved = shl i32 %turned, 4
  %place = xor i32 %at, %moved
  %source = getelementptr i8, ptr %shared, i32 %place
  %piece = load <4 x i32>, ptr %source, align 16
  %n.bytes = shl i32 %n, 4
  %target = getelementptr i8, ptr %to, i32 %n.bytes
  store <4 x i32> %piece, ptr %target, align 16
  %n.more = add i32 %n, 1
  %over = icmp eq i32 %n.more, 8
  br i1 %over, label %done, label %next
done:
  ret void
}""")

FUNCTION = Template("""
define internal i32 @$name(ptr %room, ptr %shared, i32 %warp) noinline #0 {
entry:
  %work = alloca [$work x i8], align 64
  %found = alloca [$found x i8], align 64
  %held = alloca [$held x i8], align 64
$fields
  br i1 %far, label %leave, label %good
leave:
  ret i32 0
good:
  %enabled.at = getelementptr i8, ptr %room, i64 $enabled_at
  %enabled.bytes = load <$lanes x i8>, ptr %enabled.at, align 64
  %enabled = icmp ne <$lanes x i8> %enabled.bytes, zeroinitializer
$fill_a
  br label %tile
tile:
  %j = phi i32 [ 0, %good ], [ %j.more, %stored ]
  %across = mul i32 %j, %b.stride
  %b.first = add i32 %b.start, %across
  %d.first = mul i32 %j, $d_step
  %f.first = mul i32 %j, $f_step
$prepare
  %ok = call i32 @$tile(ptr %work)
  %refused = icmp eq i32 %ok, 0
  br i1 %refused, label %leave, label %stored
stored:
$keep
  %j.more = add i32 %j, 1
  %over = icmp eq i32 %j.more, $tiles
  br i1 %over, label %result, label %tile
result:
  %r = phi i32 [ 0, %stored ], [ %r.more, %result ]
  %r.from = mul i32 %r, $bytes
  %r.to = mul i32 %r, $step
  %r.source = getelementptr i8, ptr %found, i32 %r.from
  %r.value = load <$lanes x i32>, ptr %r.source, align 64
  %r.target = getelementptr i8, ptr %room, i32 %r.to
  store <$lanes x i32> %r.value, ptr %r.target, align 64
  %r.more = add i32 %r, 1
  %r.over = icmp eq i32 %r.more, $registers
  br i1 %r.over, label %end, label %result
end:
  ret i32 1
}""")

FIELDS = Template("""  %$m.at = getelementptr i8, ptr %room, i64 $place
  %$m.all = load <$lanes x i64>, ptr %$m.at, align 64
  %$m = extractelement <$lanes x i64> %$m.all, i32 0
  %$m.low = trunc i64 %$m to i32
  %$m.start.field = and i32 %$m.low, 16383
  %$m.start = shl i32 %$m.start.field, 4
  %$m.leading.part = lshr i32 %$m.low, 16
  %$m.leading.field = and i32 %$m.leading.part, 16383
  %$m.leading = shl i32 %$m.leading.field, 4
  %$m.high.wide = lshr i64 %$m, 32
  %$m.high = trunc i64 %$m.high.wide to i32
  %$m.stride.field = and i32 %$m.high, 16383
  %$m.stride = shl i32 %$m.stride.field, 4
  %$m.base.part = lshr i32 %$m.high, 17
  %$m.base = and i32 %$m.base.part, 7
  %$m.mode = lshr i32 %$m.high, 30
  %$m.mode.bits = shl i32 %$m.mode, 2
  %$m.widths = lshr i32 9345, %$m.mode.bits ; 0x2481: the pieces of a row, by mode
  %$m.width = and i32 %$m.widths, 15
  %$m.mask = sub i32 %$m.width, 1
  %$m.row = shl i32 %$m.width, 4
  %$m.plain = icmp eq i32 %$m.mode, 0
  %$m.step = select i1 %$m.plain, i32 %$m.leading, i32 16
  %$m.rows.end = mul i32 %$m.row, 7
  %$m.strides.end = mul i32 %$m.stride, $groups
  %$m.end.0 = add i32 %$m.start, %$m.rows.end
  %$m.end.1 = add i32 %$m.end.0, %$m.strides.end
  %$m.end.2 = add i32 %$m.end.1, %$m.step
  %$m.slack = select i1 %$m.plain, i32 15, i32 127
  %$m.end = or i32 %$m.end.2, %$m.slack
  %$m.beyond = icmp uge i32 %$m.end, $most
  %$m.one = insertelement <$lanes x i64> poison, i64 %$m, i64 0
  %$m.same = shufflevector <$lanes x i64> %$m.one, <$lanes x i64> poison, <$lanes x i32> zeroinitializer
  %$m.differ = icmp ne <$lanes x i64> %$m.all, %$m.same
  %$m.differ.bits = bitcast <$lanes x i1> %$m.differ to i$lanes
  %$m.apart = icmp ne i$lanes %$m.differ.bits, 0
  %$m.far = or i1 %$m.beyond, %$m.apart""")


def written(unit: Unit, spec: WarpgroupProduct, architecture: Architecture, shared_size: int, *, fast: bool) -> str | None:
    """Write the function of a product unless it is there; returns its name, or None where none handles it."""
    product = spec.product
    if product.further or spec.transposed != (False, False) or spec.negated != (False, False):
        return None
    tile_product = tile(product)
    called = mma.written(unit, tile_product, architecture, fast=fast)
    if called is None:
        return None
    columns = product.d.shape[1]
    where = "registers" if spec.in_registers else "shared"
    name = f"{called}.wgmma.n{columns}.{where}.{shared_size}"
    if name not in unit.helpers:
        unit.helper("ptxvm.wgmma.pieces", COPY.substitute())
        unit.helper(name, _text(name, called, spec, tile_product, shared_size))
    return name


def tile(product: Product) -> Product:
    """The product of eight of the columns."""
    shape = f"m16n{COLUMNS}k{product.a.shape[1]}"
    b, c, d = (mma_fragment(name, each.type, shape) for name, each in (("b", product.b), ("c", product.c), ("d", product.d)))
    return replace(product, b=b, c=c, d=d)


def _text(name: str, called: str, spec: WarpgroupProduct, each: Product, shared_size: int) -> str:
    """The function: operands lie in the room as D, A or its descriptor, the descriptor of B, and the predicate."""
    registers, tiles = spec.product.d.registers, spec.product.d.shape[1] // COLUMNS
    a, b, d = each.a.registers, each.b.registers, each.d.registers
    of_a, of_b = STEP * registers, STEP * (registers + (a if spec.in_registers else 1))
    most = min(shared_size, REACH)  # addresses that wrap are left to the host
    fields = [FIELDS.substitute(m="b", place=of_b, lanes=WARP, groups=tiles - 1, most=most)]
    if spec.in_registers:
        fields.append("  %far = or i1 %b.far, false")
        fill = [line for n in range(a) for line in _moved("%room", str(of_a + STEP * n), "%held", str(BYTES * n))]
    else:
        fields.append(FIELDS.substitute(m="a", place=of_a, lanes=WARP, groups=2 * WARPS - 1, most=most))
        fields.append("  %far = or i1 %b.far, %a.far")
        fill = _own_rows(a)
    prepare = [line for n in range(a) for line in _moved("%held", str(BYTES * n), "%work", str(STEP * n))]
    for n in range(b):
        prepare += _pieces("b", f"%b.first.{n}", f"%work.b.{n}", STEP * (a + n), "%b.first", n)
    for n in range(d):
        prepare += _moved("%room", f"%d.{n}", "%work", str(STEP * (a + b + n)), first="%d.first", offset=STEP * n, guarded=True)
    keep = [
        line
        for n in range(d)
        for line in _moved("%work", str(STEP * n), "%found", f"%f.{n}", first="%f.first", offset=BYTES * n)
    ]
    return FUNCTION.substitute(
        name=name, tile=called, work=STEP * (a + b + d), found=BYTES * registers, held=BYTES * a, lanes=WARP,
        fields="\n".join(fields), enabled_at=of_b + STEP, fill_a="\n".join(fill), d_step=STEP * d, f_step=BYTES * d,
        prepare="\n".join(prepare), keep="\n".join(keep), tiles=tiles, bytes=BYTES, step=STEP, registers=registers,
    )  # fmt: skip


def _own_rows(registers: int) -> list[str]:
    """The 16 rows of A of the warp: two groups of eight, in registers that alternate."""
    lines = ["  %rank = and i32 %warp, 3", "  %group = shl i32 %rank, 1", "  %down = mul i32 %group, %a.stride",
             "  %a.upper = add i32 %a.start, %down", "  %a.lower = add i32 %a.upper, %a.stride"]  # fmt: skip
    for n in range(registers):
        half = "%a.lower" if n % 2 else "%a.upper"
        lines += _pieces("a", f"%a.first.{n}", f"%held.a.{n}", BYTES * n, half, n // 2, to="%held")
    return lines


def _pieces(matrix: str, first: str, place: str, offset: int, start: str, number: int, *, to: str = "%work") -> list[str]:
    """Copy the eight pieces of a register: those of a number along K."""
    row = ", ".join(f"i32 %{matrix}.{field}" for field in ("row", "base", "mask"))
    return [
        f"  {first}.step = mul i32 %{matrix}.step, {number}",
        f"  {first} = add i32 {start}, {first}.step",
        f"  {place} = getelementptr i8, ptr {to}, i64 {offset}",
        f"  call void @ptxvm.wgmma.pieces(ptr {place}, ptr %shared, i32 {first}, {row})",
    ]


def _moved(
    source: str, here: str, target: str, there: str, *, first: str = "", offset: int = 0, guarded: bool = False
) -> list[str]:
    """Copy a register; a place that has a name is `offset` behind `first`, and a guarded one is zero where D does not count."""
    lines = []
    named = next((each for each in (here, there) if each.startswith("%")), "")
    if named:
        lines.append(f"  {named} = add i32 {first}, {offset}")
    key = f"{source}.{here}.{target}.{there}".replace("%", "")
    lines += [
        f"  %from.{key} = getelementptr i8, ptr {source}, i32 {here}",
        f"  %word.{key} = load <{WARP} x i32>, ptr %from.{key}, align 64",
        f"  %to.{key} = getelementptr i8, ptr {target}, i32 {there}",
    ]
    word = f"%word.{key}"
    if guarded:
        lines.append(f"  %kept.{key} = select <{WARP} x i1> %enabled, <{WARP} x i32> {word}, <{WARP} x i32> zeroinitializer")
        word = f"%kept.{key}"
    return [*lines, f"  store <{WARP} x i32> {word}, ptr %to.{key}, align 64"]

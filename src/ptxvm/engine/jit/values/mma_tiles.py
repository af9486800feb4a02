"""Products of whole matrices in vector registers.

Tiles of integers and of half bytes with scales are multiplied by the function of `mma`, other floats in panels.

A and B are given by the address of each piece of 16 bytes along K, D by the address of each row: matrices may lie in shared
memory, in tensor memory, or in an array.  D is changed when it is known that the product is not left to the host.
"""

from __future__ import annotations

from string import Template

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.tile_product import MOST_COLUMNS, MOST_ROWS, TileProduct
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma, mma_panels, small_floats
from ptxvm.engine.jit.values.mma_panels import ACROSS, GROUP, PANELS, PanelFunctions
from ptxvm.isa import fragments
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.isa.shared_matrix import PIECE
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import Architecture

NAME = "ptxvm.tiles"
BYTES = 4 * WARP  # of a register

# Copies eight pieces of 16 bytes, or of 32, whose addresses stand in a table; $$load are the lines that load one as %words.
COPY = Template("""
define internal void @$name(ptr %to, ptr %table, i32 %first, i32 %step, i32 %offset) alwaysinline {
entry:
  br label %next
next:
  %n = phi i32 [ 0, %entry ], [ %n.more, %next ]
  %down = mul i32 %n, %step
  %at = add i32 %first, %down
  %slot = getelementptr i64, ptr %table, i32 %at
  %address = load i64, ptr %slot, align 8
  %piece = inttoptr i64 %address to ptr
  %source = getelementptr i8, ptr %piece, i32 %offset
$load
  %n.bytes = mul i32 %n, $bytes
  %target = getelementptr i8, ptr %to, i32 %n.bytes
  store <$words x i32> %words, ptr %target, align 16
  %n.more = add i32 %n, 1
  %over = icmp eq i32 %n.more, 8
  br i1 %over, label %done, label %next
done:
  ret void
}""")

LOAD = "  %words = load <{} x i32>, ptr %source, align 4"
# Sixteen elements of four or six bits, and a gap behind them, as bytes (PTX 9.7.16.9.1).
LOAD_4 = f"""\
  %held = load <8 x i8>, ptr %source, align 4
  %even = and <8 x i8> %held, splat (i8 15)
  %odd = lshr <8 x i8> %held, splat (i8 4)
  %bytes = shufflevector <8 x i8> %even, <8 x i8> %odd, <16 x i32> <{", ".join(f"i32 {n // 2 + n % 2 * 8}" for n in range(16))}>
  %moved = shl <16 x i8> %bytes, splat (i8 2)
  %words = bitcast <16 x i8> %moved to <4 x i32>"""
FIRST, NEXT = (", ".join(f"i32 {6 * n // 8 + more}" for n in range(16)) for more in (0, 1))
LOAD_6 = f"""\
  %held = load <16 x i8>, ptr %source, align 4
  %wide = zext <16 x i8> %held to <16 x i16>
  %first.bits = shufflevector <16 x i16> %wide, <16 x i16> poison, <16 x i32> <{FIRST}>
  %next.bits = shufflevector <16 x i16> %wide, <16 x i16> poison, <16 x i32> <{NEXT}>
  %above = shl <16 x i16> %next.bits, splat (i16 8)
  %all.bits = or <16 x i16> %above, %first.bits
  %moved = lshr <16 x i16> %all.bits, <{", ".join(f"i16 {6 * n % 8}" for n in range(16))}>
  %six = and <16 x i16> %moved, splat (i16 63)
  %bytes = trunc <16 x i16> %six to <16 x i8>
  %words = bitcast <16 x i8> %bytes to <4 x i32>"""
LOADS = {4: LOAD_4, 6: LOAD_6}

FUNCTION = Template("""
define i32 @$name(ptr %a, ptr %b, ptr %d, ptr %out, ptr %least, i32 %rows, i32 %columns, i32 %enabled) noinline #0 {
entry:
  %work = alloca [$work x i8], align 64
  %held = alloca [$held x i8], align 64
  %lines = alloca [$lines x i8], align 64
  %counts = icmp ne i32 %enabled, 0
  br label %row
row:
  %i = phi i32 [ 0, %entry ], [ %i.more, %row.done ]
  %d.upper = shl i32 %i, 4
  %d.lower = add i32 %d.upper, 8
  %a.first = mul i32 %d.upper, $pieces
  %out.row = mul i32 %i, %columns
$fill_a
  br label %tile
tile:
  %j = phi i32 [ 0, %row ], [ %j.more, %stored ]
  %b.first = mul i32 %j, $b_step
  %d.across = shl i32 %j, 5
  %out.tile = add i32 %out.row, %j
  %out.at = shl i32 %out.tile, 9
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
  br i1 %i.over, label %write, label %row
write:
  %tiles = mul i32 %rows, %columns
  %count = shl i32 %tiles, 4
  br label %line
line:
  %t = phi i32 [ 0, %write ], [ %t.more, %line ]
  %t.tile = lshr i32 %t, 4
  %t.row = and i32 %t, 15
  %t.i = udiv i32 %t.tile, %columns
  %t.j = urem i32 %t.tile, %columns
  %t.first = shl i32 %t.i, 4
  %t.at = add i32 %t.first, %t.row
  %t.slot = getelementptr i64, ptr %d, i32 %t.at
  %t.address = load i64, ptr %t.slot, align 8
  %t.line = inttoptr i64 %t.address to ptr
  %t.across = shl i32 %t.j, 5
  %t.target = getelementptr i8, ptr %t.line, i32 %t.across
  %t.from = shl i32 %t, 5
  %t.source = getelementptr i8, ptr %out, i32 %t.from
  %t.words = load <8 x i32>, ptr %t.source, align 4
  store <8 x i32> %t.words, ptr %t.target, align 4
  %t.more = add i32 %t, 1
  %t.over = icmp eq i32 %t.more, %count
  br i1 %t.over, label %end, label %line
end:
  ret i32 1
}""")

# The same for floats, which are laid out in panels first; D is changed where it lies, as nothing is left to the host then.
IN_PANELS = Template("""
define i32 @$name(ptr %a, ptr %b, ptr %d, ptr %out, ptr %least, i32 %rows, i32 %columns, i32 %enabled) noinline #0 {
entry:
  %block = alloca [$block x i8], align 64
  %wide = alloca [$block x i8], align 64
  %highest = alloca [$block x i8], align 64
  %a.floats = alloca [$of_a x float], align 64
  %a.sizes = alloca [$of_a x i32], align 64
  %b.floats = alloca [$of_b x float], align 64
  %b.sizes = alloca [$of_b x i8], align 64
  store <64 x i16> zeroinitializer, ptr %highest, align 64
  %counts = icmp ne i32 %enabled, 0
  %height = shl i32 %rows, 4
  %width = shl i32 %columns, 3
  call void @$clear(ptr %b.floats, ptr %b.sizes, i32 %width)
  br label %a.row
$lay_a
b.start:
  %least.b = getelementptr i16, ptr %least, i32 %height
  br label %b.row
$lay_b
laid:
$high
  br i1 %high, label %leave, label %sum
leave:
$otherwise
sum:
  call void @$sums($panels, ptr %d, i32 %height, i32 %width, i1 %counts)
  ret i32 1
}""")

# Lays out a matrix: eight rows or columns at a time, and of these eight depths.
LAY = Template("""$m.row:
  %$m.i = phi i32 [ 0, %$before ], [ %$m.i.more, %$m.row.done ]
  %$m.first = mul i32 %$m.i, $pieces
  %$m.least = getelementptr i16, ptr $least, i32 %$m.i
$start
  br label %$m.depth
$m.depth:
  %$m.k = phi i32 [ 0, %$m.row ], [ %$m.k.more, %$m.depth ]
  %$m.piece = mul i32 %$m.k, $of_block
  %$m.from = add i32 %$m.first, %$m.piece
$copies
  %$m.along = mul i32 %$m.k, $step
  %$m.to = add i32 %$m.at, %$m.along
$lay
  %$m.k.more = add i32 %$m.k, 1
  %$m.k.over = icmp eq i32 %$m.k.more, $blocks
  br i1 %$m.k.over, label %$m.row.done, label %$m.depth
$m.row.done:
  %$m.i.more = add i32 %$m.i, 8
  %$m.i.over = icmp eq i32 %$m.i.more, $end
  br i1 %$m.i.over, label %$after, label %$m.row""")

# Where eight rows of A, or eight columns of B, begin in their panel.
START_A = "  %a.at = mul i32 %a.i, $depth"
START_B = """  %b.of.block = lshr i32 %b.i, 5
  %b.block.at = mul i32 %b.of.block, $block_size
  %b.within = and i32 %b.i, 31
  %b.at = add i32 %b.block.at, %b.within"""

EVEN, ODD = (", ".join(f"i32 {2 * n + odd}" for n in range(WARP)) for odd in (0, 1))
TOGETHER = ", ".join(f"i32 {n // 2 + n % 2 * WARP}" for n in range(2 * WARP))


def written(unit: Unit, tile: TileProduct) -> str | None:
    """Write the function of a product; returns its name, or None where none handles it."""
    product = tile_product(tile)
    for bits in sorted({8, *(type.bits for type in tile.packed or ())}):
        copy = _copy_of(bits)
        unit.helper(copy, COPY.substitute(name=copy, load=LOADS.get(bits, LOAD.format(4)), words=4, bytes=16))
    if tile.core is not None:
        panels = mma_panels.functions(unit, product, tile.core, small=tile.small, sparse=tile.sparse, fast=tile.fast)
        return None if panels is None else unit.helper(NAME, _in_panels(NAME, panels, tile))
    called = mma.written(unit, product, Architecture.BLACKWELL, fast=tile.fast)
    if called is None:
        return None
    unit.helper("ptxvm.tiles.lines", COPY.substitute(name="ptxvm.tiles.lines", load=LOAD.format(8), words=8, bytes=32))
    return unit.helper(NAME, _text(NAME, called, product))


def tile_product(tile: TileProduct) -> Product:
    """The product of a tile."""
    shape = f"m16n8k{tile.depth}"
    if tile.scales is not None:
        a, b = (fragments.halved_fragment(name, shape) for name in "ab")
        c, d = (mma_fragment(name, tile.sums, shape) for name in "cd")
        of_blocks = fragments.scaling(shape, tile.scales[1], tile.scales[0])
        return Product(a, b, c, d, scaling=of_blocks, core=fragments.Core.TCGEN05)
    a, b, c, d = (
        mma_fragment(name, each, shape) for name, each in zip("abcd", (tile.a, tile.b, tile.sums, tile.sums), strict=True)
    )
    return Product(a, b, c, d, finite=tile.finite)


def _in_panels(name: str, panels: PanelFunctions, tile: TileProduct) -> str:
    """The function for floats."""
    depth, of_block = tile.depth, max(16, tile.a.bits) // 16
    pieces = depth * (8 if tile.packed is not None else tile.a.bits) // (8 * PIECE)
    deep = GROUP if tile.packed is None else 2 * GROUP  # depths that are laid out in a turn
    starts = START_A.replace("$depth", str(depth)), START_B.replace("$block_size", str(depth * ACROSS))
    lay_a, lay_b = (
        LAY.substitute(
            m=m, before=before, pieces=pieces, least=least, start=start, of_block=of_block, step=deep * along, after=after,
            blocks=depth // deep, end=end, copies="\n".join(_block_copied(m, pieces, of_block, tile.packed)),
            lay="\n".join(_laid(m, panels, pitch, along, tile.packed)),
        )
        for m, before, least, start, along, pitch, after, end in (
            ("a", "entry", "%least", starts[0], 1, depth, "b.start", "%height"),
            ("b", "b.start", "%least.b", starts[1], ACROSS, ACROSS, "laid", "%width"),
        )
    )  # fmt: skip
    return IN_PANELS.substitute(
        name=name, block=2 * BYTES, of_a=MOST_ROWS * depth, of_b=MOST_COLUMNS * depth, lay_a=lay_a, lay_b=lay_b,
        high="\n".join(panels.is_high()), sums=panels.sums(), otherwise="\n".join(_otherwise(panels)), clear=panels.clear(),
        panels=PANELS,
    )  # fmt: skip


def _otherwise(panels: PanelFunctions) -> list[str]:
    """Exponents that lie far apart: sums in f64, or the product is left to the host."""
    name = panels.wide()
    if name is None:
        return ["  ret i32 0"]
    return [f"  call void @{name}({PANELS}, ptr %d, i32 %height, i32 %width, i1 %counts)", "  ret i32 1"]


def _laid(m: str, panels: PanelFunctions, pitch: int, along: int, packed: tuple[Type, Type] | None) -> list[str]:
    """Lay out a block; one of bytes is widened to two before, whose depths come in another order, the same in A and B."""
    lines, blocks = [], ["%block"]
    if packed is not None:
        lines += small_floats.register_widened(m, packed["ab".index(m)].name, ("%block", 0), ("%wide", 0, BYTES))
        lines.append(f"  %{m}.wide.high = getelementptr i8, ptr %wide, i64 {BYTES}")
        blocks = ["%wide", f"%{m}.wide.high"]
    layout = panels.layout(of_a=m == "a", turned=m == "b")
    for n, block in enumerate(blocks):
        to, floats, sizes = (f"%{m}.to.{part}.{n}" for part in ("place", "floats", "sizes"))
        lines += [
            f"  {to} = add i32 %{m}.to, {n * GROUP * along}",
            f"  {floats} = getelementptr float, ptr %{m}.floats, i32 {to}",
            f"  {sizes} = getelementptr {'i32' if m == 'a' else 'i8'}, ptr %{m}.sizes, i32 {to}",
            f"  call void @{layout}(ptr {block}, ptr %{m}.least, ptr {floats}, ptr {sizes}, i64 {pitch}, ptr %highest)",
        ]
    return lines


def _copy_of(bits: int) -> str:
    """The name of the function that copies pieces of elements of so many bits, or of more."""
    return f"ptxvm.tiles.pieces.{bits}" if bits in LOADS else "ptxvm.tiles.pieces"


def _block_copied(matrix: str, pieces: int, count: int, packed: tuple[Type, Type] | None) -> list[str]:
    """Copy the pieces of a block: of eight rows or columns, so many each."""
    lines, copy = [], _copy_of(8 if packed is None else packed["ab".index(matrix)].bits)
    for n in range(count):
        first, block = f"%{matrix}.from.{n}", f"%{matrix}.block.{n}"
        lines += [
            f"  {first} = add i32 %{matrix}.from, {n}",
            f"  {block} = getelementptr i8, ptr %block, i64 {BYTES * n}",
            f"  call void @{copy}(ptr {block}, ptr %{matrix}, i32 {first}, i32 {pieces}, i32 0)",
        ]
    return lines


def _text(name: str, called: str, product: Product) -> str:
    """The function: a register of A has upper or lower rows of a piece along K, in turn, and one of B has eight columns."""
    a, b, d = (each.registers for each in (product.a, product.b, product.d))
    pieces = a // 2
    fill = [line for n in range(a) for line in _pieces("a", n, "%held", BYTES * n, n % 2 * 8 * pieces + n // 2, pieces)]
    prepare = [line for n in range(a) for line in _moved(n)]
    prepare += [line for n in range(b) for line in _pieces("b", n, "%work", STEP * (a + n), n, pieces)]
    for half, start in enumerate(("%d.upper", "%d.lower")):
        prepare += _accumulators(half, start, STEP * (a + b + d // 2 * half))
    scales = 2 if product.scaling is not None else 0
    if scales:
        prepare += [*_scales("a", "%i", STEP * (a + b + d)), "  %scales.j = add i32 %rows, %j"]
        prepare += _scales("b", "%scales.j", STEP * (a + b + d + 1))
    keep = [line for half in (0, 1) for line in _results(half)]
    return FUNCTION.substitute(
        name=name, tile=called, work=STEP * (a + b + d + scales), held=BYTES * a, lines=2 * BYTES, pieces=pieces,
        b_step=8 * pieces, fill_a="\n".join(fill), prepare="\n".join(prepare), keep="\n".join(keep),
    )  # fmt: skip


def _pieces(matrix: str, number: int, to: str, offset: int, first: int, step: int) -> list[str]:
    """Copy the eight pieces of a register."""
    key = f"{matrix}.{number}"
    return [
        f"  %first.{key} = add i32 %{matrix}.first, {first}",
        f"  %to.{key} = getelementptr i8, ptr {to}, i32 {offset}",
        f"  call void @ptxvm.tiles.pieces(ptr %to.{key}, ptr %{matrix}, i32 %first.{key}, i32 {step}, i32 0)",
    ]


def _moved(number: int) -> list[str]:
    """Copy a register of A to its place for the function, which puts D there."""
    return [
        f"  %from.held.{number} = getelementptr i8, ptr %held, i32 {BYTES * number}",
        f"  %held.{number} = load <{WARP} x i32>, ptr %from.held.{number}, align 64",
        f"  %to.held.{number} = getelementptr i8, ptr %work, i32 {STEP * number}",
        f"  store <{WARP} x i32> %held.{number}, ptr %to.held.{number}, align 64",
    ]


def _accumulators(half: int, start: str, slot: int) -> list[str]:
    """The upper or lower half of a tile of D in two registers, of even and of odd columns; zeros where D does not count."""
    pairs, vector = f"<{2 * WARP} x i32>", f"<{WARP} x i32>"
    lines = [
        f"  call void @ptxvm.tiles.lines(ptr %lines, ptr %d, i32 {start}, i32 1, i32 %d.across)",
        f"  %d.lines.{half} = load {pairs}, ptr %lines, align 64",
    ]
    for odd, order in enumerate((EVEN, ODD)):
        key = f"d.{half}.{odd}"
        lines += [
            f"  %{key}.all = shufflevector {pairs} %d.lines.{half}, {pairs} poison, <{WARP} x i32> <{order}>",
            f"  %{key} = select i1 %counts, {vector} %{key}.all, {vector} zeroinitializer",
        ]
        lines += _stored(key, slot + STEP * odd)
    return lines


def _scales(matrix: str, tile: str, slot: int) -> list[str]:
    """Copy the register of the scales of a tile to its place for the function."""
    key = f"scales.{matrix}"
    return [
        f"  %{key}.offset = shl i32 {tile}, 7",
        f"  %{key}.from = getelementptr i8, ptr %least, i32 %{key}.offset",
        f"  %{key} = load <{WARP} x i32>, ptr %{key}.from, align 4",
        *_stored(key, slot),
    ]


def _stored(key: str, slot: int) -> list[str]:
    """Store a register for the function of `mma`."""
    return [
        f"  %to.{key} = getelementptr i8, ptr %work, i32 {slot}",
        f"  store <{WARP} x i32> %{key}, ptr %to.{key}, align 64",
    ]


def _results(half: int) -> list[str]:
    """The same registers as eight rows of results."""
    vector, lines = f"<{WARP} x i32>", []
    for odd in (0, 1):
        lines += [
            f"  %from.r.{half}.{odd} = getelementptr i8, ptr %work, i32 {STEP * (2 * half + odd)}",
            f"  %r.{half}.{odd} = load {vector}, ptr %from.r.{half}.{odd}, align 64",
        ]
    both = f"shufflevector {vector} %r.{half}.0, {vector} %r.{half}.1, <{2 * WARP} x i32> <{TOGETHER}>"
    return [
        *lines,
        f"  %r.{half} = {both}",
        f"  %out.{half} = add i32 %out.at, {2 * BYTES * half}",
        f"  %to.r.{half} = getelementptr i8, ptr %out, i32 %out.{half}",
        f"  store <{2 * WARP} x i32> %r.{half}, ptr %to.r.{half}, align 4",
    ]

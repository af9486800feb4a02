"""Products of a warpgroup in vector registers (PTX 9.7.15.5).

A function copies a fragment of B from shared memory for every eight columns, and one of A where it is not in registers.  Floats
are multiplied at once, by the function of `mma_rows`; integers, few columns, and a sparse A by that of `mma`, eight columns at
a time.

A register consists of eight pieces of 16 bytes.  In each piece of a K-major matrix four lanes have their elements along K;
the eight pieces of an MN-major matrix are eight rows of a block of 8 by 8, which is transposed.
"""

from __future__ import annotations

from dataclasses import replace
from string import Template

from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import mma, mma_rows, mma_small
from ptxvm.engine.jit.values.mma_rows import AT_A, AT_B, AT_ENABLED
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WARPS, WarpgroupProduct
from ptxvm.machine.tensor_core import Architecture, unit_of

COLUMNS = 8  # of the product that `mma` computes
FEW = 16  # columns, for which vectors of 32 are slower
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
  %offset = xor i32 %at, %moved
  %source = getelementptr i8, ptr %shared, i32 %offset
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

# Multiplies eight columns at a time.
BY_TILES = Template("""
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
$across
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

# Multiplies all columns at once.
AT_ONCE = Template("""
define internal i32 @$name(ptr %room, ptr %shared, i32 %warp) noinline #0 {
entry:
  %factors = alloca [$size x i8], align 64
  %b.factors = getelementptr i8, ptr %factors, i64 $at_b
$fields
  br i1 %far, label %leave, label %good
leave:
  ret i32 0
good:
  store i32 $columns, ptr %factors, align 64
  %enabled.at = getelementptr i8, ptr %room, i64 $enabled_at
  %enabled.bytes = load <$lanes x i8>, ptr %enabled.at, align 64
  %enabled = icmp ne <$lanes x i8> %enabled.bytes, zeroinitializer
  %enabled.bits = bitcast <$lanes x i1> %enabled to i$lanes
  %enabled.to = getelementptr i8, ptr %factors, i64 $enabled_to
  store i$lanes %enabled.bits, ptr %enabled.to, align 4
$fill_a
$clear
  br label %tile
tile:
  %j = phi i32 [ 0, %good ], [ %j.more, %tile ]
  %b.down = mul i32 %j, $of_tile
  %b.tile = getelementptr i8, ptr %b.factors, i32 %b.down
$across
  %b.first = add i32 %b.start, %across
$copy_b
  %j.more = add i32 %j, 1
  %over = icmp eq i32 %j.more, $tiles
  br i1 %over, label %multiply, label %tile
multiply:
  %ok = call i32 @$called(ptr %factors, ptr %room)
  ret i32 %ok
}""")

FIELDS = Template("""  %$m.at = getelementptr i8, ptr %room, i64 $start
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
$steps
  %$m.rows.end = mul i32 %$m.row, 7
  %$m.end.0 = add i32 %$m.start, %$m.rows.end
  %$m.end.1 = add i32 %$m.end.0, %$m.last
  %$m.end.along = mul i32 %$m.step, $along
  %$m.end.2 = add i32 %$m.end.1, %$m.end.along
  %$m.slack = select i1 %$m.plain, i32 15, i32 127
  %$m.end = or i32 %$m.end.2, %$m.slack
  %$m.beyond = icmp uge i32 %$m.end, $most
  %$m.one = insertelement <$lanes x i64> poison, i64 %$m, i64 0
  %$m.same = shufflevector <$lanes x i64> %$m.one, <$lanes x i64> poison, <$lanes x i32> zeroinitializer
  %$m.differ = icmp ne <$lanes x i64> %$m.all, %$m.same
  %$m.differ.bits = bitcast <$lanes x i1> %$m.differ to i$lanes
  %$m.apart = icmp ne i$lanes %$m.differ.bits, 0
  %$m.cut = icmp ult i32 %$m.width, $whole
  %$m.in.rows = xor i1 %$m.plain, true
  %$m.short = and i1 %$m.cut, %$m.in.rows
  %$m.far.0 = or i1 %$m.beyond, %$m.apart
  %$m.far = or i1 %$m.far.0, %$m.short""")

# The distance of two registers along K, and that of the last eight rows from the first ones.
ALONG_K = Template("""  %$m.step = select i1 %$m.plain, i32 %$m.leading, i32 16
  %$m.last = mul i32 %$m.stride, $groups""")
ACROSS_K = Template("""  %$m.step = select i1 %$m.plain, i32 %$m.leading, i32 %$m.stride
  %$m.logs = lshr i32 4656, %$m.mode.bits ; 0x1230: the binary logarithm of the pieces of a row, by mode
  %$m.log = and i32 %$m.logs, 15
  %$m.last.line = lshr i32 $groups, %$m.log
  %$m.last.far = mul i32 %$m.last.line, %$m.leading
  %$m.last.piece = shl i32 %$m.mask, 4
  %$m.last.turned = add i32 %$m.last.far, %$m.last.piece
  %$m.last.plain = mul i32 %$m.stride, $groups
  %$m.last = select i1 %$m.plain, i32 %$m.last.plain, i32 %$m.last.turned""")

# The distance of the eight rows of a number from the first ones.
ROWS_ALONG_K = Template("  $found = mul i32 $number, %$m.stride")
ROWS_ACROSS_K = Template("""  $found.in = and i32 $number, %$m.mask
  $found.piece = shl i32 $found.in, 4
  $found.line = lshr i32 $number, %$m.log
  $found.far = mul i32 $found.line, %$m.leading
  $found.turned = add i32 $found.far, $found.piece
  $found.plain = mul i32 $number, %$m.stride
  $found = select i1 %$m.plain, i32 $found.plain, i32 $found.turned""")


def written(unit: Unit, spec: WarpgroupProduct, architecture: Architecture, shared_size: int, *, fast: bool) -> str | None:
    """Write the function of a product unless it is there; returns its name, or None where none handles it."""
    product = spec.product
    tile, columns = _tile(product), product.d.shape[1]
    at_once = product.sparsity is None and mma.of_floats(tile) and (columns > FEW or mma_small.is_small(product))
    if at_once:
        called = mma_rows.shared(unit, product, unit_of(product, architecture), fast=fast)
    else:
        called = mma.shared(unit, tile, architecture, fast=fast)
    if called is None:
        return None
    marks = "".join(
        f".{mark}"
        for mark, there in (("registers", spec.in_registers), ("shared", not spec.in_registers), ("negated", opposite(spec)),
                            ("ma", spec.transposed[0]), ("mb", spec.transposed[1]))
        if there
    )  # fmt: skip
    name = f"{called}.wgmma.n{columns}{marks}.{shared_size}"
    if name not in unit.helpers:
        unit.helper("ptxvm.wgmma.pieces", COPY.substitute())
        kind = RowsFunction if at_once else TilesFunction
        unit.helper(name, kind(spec, shared_size).text(name, called))
    return name


def _tile(product: Product) -> Product:
    """The product of eight of the columns, of halves where A is not sparse and the floats are small."""
    if product.sparsity is None:
        return mma_small.tile(product)
    shape = f"m16n{COLUMNS}k{product.b.shape[0]}"
    b, c, d = (mma_fragment(name, each.type, shape) for name, each in (("b", product.b), ("c", product.c), ("d", product.d)))
    return replace(product, b=b, c=c, d=d)


def opposite(spec: WarpgroupProduct) -> bool:
    """Do the products have the opposite sign?"""
    return spec.negated[0] is not spec.negated[1]


class ProductFunction:
    """The function of a product.

    Operands lie in the room as D, A or its descriptor, the descriptor of B, and the predicate.
    """

    def __init__(self, spec: WarpgroupProduct, shared_size: int) -> None:
        self.spec = spec
        self.stored = spec.product.a.registers, spec.product.b.registers * COLUMNS // spec.product.b.shape[1]
        self.most = min(shared_size, REACH)  # addresses that wrap are left to the host
        self.registers = spec.product.d.registers
        self.tiles = spec.product.d.shape[1] // COLUMNS
        self.of_b = STEP * (self.registers + (self.stored[0] if spec.in_registers else 1))

    def text(self, name: str, called: str) -> str:
        """Its text, which calls a function."""
        raise NotImplementedError

    def _fields(self) -> list[str]:
        """The fields of the descriptors."""
        fields = [self._descriptor("b", self.of_b, self.tiles - 1)]
        if self.spec.in_registers:
            return [*fields, "  %far = or i1 %b.far, false"]
        return [*fields, self._descriptor("a", STEP * self.registers, 2 * WARPS - 1), "  %far = or i1 %b.far, %a.far"]

    def _descriptor(self, m: str, start: int, groups: int) -> str:
        steps = (ACROSS_K if self._transposed(m) else ALONG_K).substitute(m=m, groups=groups)
        along = self.stored["ab".index(m)] // (2 if m == "a" else 1)  # pieces along K, which a row of the pattern has whole
        return FIELDS.substitute(
            m=m, start=start, lanes=WARP, most=self.most, steps=steps, along=along - 1,
            whole=0 if self._transposed(m) else along,
        )  # fmt: skip

    def _transposed(self, m: str) -> bool:
        return self.spec.transposed["ab".index(m)]

    def _rows(self, m: str, number: str, found: str) -> str:
        return (ROWS_ACROSS_K if self._transposed(m) else ROWS_ALONG_K).substitute(m=m, number=number, found=found)

    def _fill(self, base: str, places: list[int]) -> list[str]:
        """The registers of A at places behind `base`, with the sign of the product."""
        lines = self._copied(base, places)
        if opposite(self.spec):
            lines += [line for place in places for line in _negated(base, place, self.spec.product.a.width)]
        return lines

    def _copied(self, base: str, places: list[int]) -> list[str]:
        """Copy A: 16 rows of the warp, two groups of eight, in turn."""
        if self.spec.in_registers:
            return [
                line for n, place in enumerate(places)
                for line in _moved("%room", str(STEP * (self.registers + n)), base, str(place))
            ]  # fmt: skip
        lines = ["  %rank = and i32 %warp, 3", "  %group.0 = shl i32 %rank, 1", "  %group.1 = or i32 %group.0, 1"]
        for half in (0, 1):
            lines += [self._rows("a", f"%group.{half}", f"%down.{half}"), f"  %a.half.{half} = add i32 %a.start, %down.{half}"]
        for n, place in enumerate(places):
            lines += self._pieces("a", n, (base, place), f"%a.half.{n % 2}", n // 2)
        return lines

    def _pieces(self, matrix: str, register: int, to: tuple[str, int], start: str, number: int) -> list[str]:
        """Copy the eight pieces of a register: those of a number along K."""
        row = ", ".join(f"i32 %{matrix}.{field}" for field in ("row", "base", "mask"))
        first, to_pointer = f"%{matrix}.first.{register}", f"%to.{matrix}.{register}"
        lines = [
            f"  {first}.step = mul i32 %{matrix}.step, {number}",
            f"  {first} = add i32 {start}, {first}.step",
            f"  {to_pointer} = getelementptr i8, ptr {to[0]}, i64 {to[1]}",
            f"  call void @ptxvm.wgmma.pieces(ptr {to_pointer}, ptr %shared, i32 {first}, {row})",
        ]
        return [*lines, *_block_transposed(to_pointer)] if self._transposed(matrix) else lines


class RowsFunction(ProductFunction):
    """That of floats."""

    def text(self, name: str, called: str) -> str:
        """Lay the fragments out as `mma_rows` takes them."""
        places = [AT_A + BYTES * (n % 2 * mma_rows.ALONG + n // 2) for n in range(self.stored[0])]
        fill = self._fill("%factors", places)
        of_tile = BYTES * self.stored[1]
        behind = [at for n in range(self.tiles, -(-self.tiles // 4) * 4) for at in range(of_tile * n, of_tile * (n + 1), BYTES)]
        copies = [line for n in range(self.stored[1]) for line in self._pieces("b", n, ("%b.tile", BYTES * n), "%b.first", n)]
        return AT_ONCE.substitute(
            name=name, called=called, size=mma_rows.SIZE, lanes=WARP, fields="\n".join(self._fields()), at_b=AT_B,
            enabled_at=self.of_b + STEP, enabled_to=AT_ENABLED, columns=self.tiles * COLUMNS, fill_a="\n".join(fill),
            clear="\n".join(_cleared(behind)), across=self._rows("b", "%j", "%across"), copy_b="\n".join(copies),
            of_tile=of_tile, tiles=self.tiles,
        )  # fmt: skip


def _cleared(places: list[int]) -> list[str]:
    """Clear registers behind the last columns of B."""
    return [
        line for place in places
        for line in (f"  %clear.{place} = getelementptr i8, ptr %b.factors, i64 {place}",
                     f"  store <{WARP} x i32> zeroinitializer, ptr %clear.{place}, align 64")
    ]  # fmt: skip


class TilesFunction(ProductFunction):
    """That of integers, of few columns, and of a sparse A."""

    def text(self, name: str, called: str) -> str:
        """Lay out the fragments of each tile as `mma` takes them."""
        (a, b), d = self.stored, self.registers // self.tiles
        fill = self._fill("%held", [BYTES * n for n in range(a)])
        further = len(self.spec.product.further)
        return BY_TILES.substitute(
            name=name, tile=called, work=STEP * (a + b + d + further), found=BYTES * self.registers, held=BYTES * a, lanes=WARP,
            fields="\n".join(self._fields()), enabled_at=self.of_b + STEP, fill_a="\n".join(fill), d_step=STEP * d,
            f_step=BYTES * d, prepare="\n".join(self._prepare(a, b, d)), across=self._rows("b", "%j", "%across"),
            keep="\n".join(_kept(d)), tiles=self.tiles, bytes=BYTES, step=STEP, registers=self.registers,
        )  # fmt: skip

    def _prepare(self, a: int, b: int, d: int) -> list[str]:
        """The operands of a tile."""
        lines = [line for n in range(a) for line in _moved("%held", str(BYTES * n), "%work", str(STEP * n))]
        for n in range(b):
            lines += self._pieces("b", n, ("%work", STEP * (a + n)), "%b.first", n)
        for n in range(d):
            slot = STEP * (a + b + n)
            lines += _moved("%room", f"%d.{n}", "%work", str(slot), first="%d.first", offset=STEP * n, guarded=True)
        if self.spec.product.sparsity is not None:  # the metadata are behind the predicate
            lines += _moved("%room", str(self.of_b + 2 * STEP), "%work", str(STEP * (a + b + d)))
        return lines


def _kept(d: int) -> list[str]:
    """Keep the results of a tile."""
    return [
        line for n in range(d)
        for line in _moved("%work", str(STEP * n), "%found", f"%f.{n}", first="%f.first", offset=BYTES * n)
    ]  # fmt: skip


BLOCK = "<64 x i16>"
TRANSPOSED = ", ".join(f"i32 {n % 8 * 8 + n // 8}" for n in range(64))


def _block_transposed(pointer: str) -> list[str]:
    """Transpose 8 by 8 elements of 16 bits."""
    return [
        f"  {pointer}.block = load {BLOCK}, ptr {pointer}, align 64",
        f"  {pointer}.turned = shufflevector {BLOCK} {pointer}.block, {BLOCK} poison, <64 x i32> <{TRANSPOSED}>",
        f"  store {BLOCK} {pointer}.turned, ptr {pointer}, align 64",
    ]


def _negated(base: str, offset: int, bits: int) -> list[str]:
    """Change the signs of a register of A."""
    signs = sum(1 << bits * (n + 1) - 1 for n in range(32 // bits))
    vector, key = f"<{WARP} x i32>", f"%negated.{offset}"
    return [
        f"  {key}.at = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {key}.old = load {vector}, ptr {key}.at, align 64",
        f"  {key} = xor {vector} {key}.old, splat (i32 {signs})",
        f"  store {vector} {key}, ptr {key}.at, align 64",
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

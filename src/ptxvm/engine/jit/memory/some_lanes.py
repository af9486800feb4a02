"""Gathers and scatters by functions of the module: of some lanes, and at strides that are known only at run time.

On a processor without mask registers LLVM would test every lane by itself, inline at each access.  The functions skip
warps without active lanes, and use contiguous accesses where the stride turns out to be that of an array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code, Unit, short
from ptxvm.engine.jit.ir.lane_values import vector_literal
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.node import NATIVE
from ptxvm.isa.special_registers import WARP

FEW = 8  # lanes up to which loads one by one are faster than masked gathers
HALF = WARP // 2
FAR = 1 << 26  # bytes between lanes for which an offset of 32 bits has room
BLOCK = 8  # elements of a contiguous store that are tested together

Typed = tuple[str, str]  # an operand and its LLVM type, which comes first


def suits(llvm: str) -> bool:
    """Are accesses of some lanes to elements of a type written by this module?"""
    return llvm in NATIVE and not cpu.has("avx512f")


def strides(llvm: str) -> bool:
    """Are accesses at run-time strides to elements of a type written by this module?"""
    return llvm in NATIVE


def _steps(size: int) -> list[int]:
    """Strides in elements whose rows are loaded and permuted, and on AVX-512 stored under a mask."""
    farthest = 32 if cpu.has("avx512f") else 16  # bytes
    return [step for step in (2, 4, 8) if step * size <= farthest]


def gather(code: Code, llvm: str, base: str, offsets: Typed, lanes: str) -> str:
    """Load the elements at distances from a base, a vector; lanes outside the predicate get zero.

    Without a base, the distances are addresses.
    """
    name = _function(code, "gather_some", llvm, offsets[0])
    parts = [
        code.call(f"<{WARP} x {llvm}>", name, *_arguments(code, base, offsets, lanes, n), pure=False)
        for n in code.active_warps()
    ]
    return of_all_warps(code, llvm, parts)


def of_all_warps(code: Code, llvm: str, parts: list[str]) -> str:
    """Concatenate what the warps with active lanes loaded; the others have zeros."""
    return code.concatenate(llvm, parts + ["zeroinitializer"] * (len(code.warps()) - len(parts)), WARP)


def scatter(code: Code, llvm: str, value: str, base: str, offsets: Typed, lanes: str) -> None:
    """Store elements at distances from a base, or at addresses, in the order of the lanes."""
    name = _function(code, "scatter_some", llvm, offsets[0])
    for n in code.active_warps():
        code.perform(name, of_warp(code, llvm, value, n), *_arguments(code, base, offsets, lanes, n))


def _arguments(code: Code, base: str, offsets: Typed, lanes: str, n: int) -> list[Typed]:
    start = [("ptr", base)] if base else []
    return [*start, of_warp(code, *offsets, n), ("i32", code.warp_bits(lanes, n))]


def gather_strided(code: Code, llvm: str, firsts: list[str], stride: str, lanes: str | None) -> str:
    """Load elements at multiples of a distance from an address for each warp."""
    name, loaded = _function(code, "gather_strided", llvm), f"<{WARP} x {llvm}>"

    def load(n: int, bits: str) -> str:
        return code.call(loaded, name, ("ptr", firsts[n]), ("i64", stride), ("i32", bits), pure=False)

    return of_all_warps(code, llvm, _of_active_warps(code, loaded, len(firsts), lanes, load))


def scatter_strided(code: Code, llvm: str, value: str, firsts: list[str], stride: str, lanes: str | None) -> None:
    """Store elements at multiples of a distance from an address for each warp, in the order of the lanes."""
    name = _function(code, "scatter_strided", llvm)

    def store(n: int, bits: str) -> str:
        code.perform(name, of_warp(code, llvm, value, n), ("ptr", firsts[n]), ("i64", stride), ("i32", bits))
        return ""  # nothing is loaded

    _of_active_warps(code, "", len(firsts), lanes, store)


Access = Callable[[int, str], str]
"""Writes the access of a warp, whose active lanes are bits; gives what it loads."""


def _of_active_warps(code: Code, llvm: str, count: int, lanes: str | None, access: Access) -> list[str]:
    """What the accesses of warps load, vectors of a type; zeros for a warp without active lanes, whose access is skipped.

    A guard that picks threads by their number leaves most of several warps abreast without any, and a branch costs less than
    a call.
    """
    warps = range(min(count, len(code.active_warps())))
    if lanes is None or len(warps) == 1:
        return [access(n, _bits(code, lanes, n)) for n in warps]
    return [_where(code, llvm, code.warp_bits(lanes, n), partial(access, n)) for n in warps]


def _where(code: Code, llvm: str, bits: str, access: Callable[[str], str]) -> str:
    """What an access loads where some lanes are active, of which the bits tell; else zeros."""
    before, active, after, onward = (code.label() for _ in range(4))
    code.jump(before)
    code.block(before)
    code.branch(code.emit(f"icmp ne i32 {bits}, 0"), active, onward)
    with code.scope():
        code.block(active)
        found = access(bits)
        code.jump(after)
        code.block(after)
        code.jump(onward)
    code.block(onward)
    return code.emit(f"phi {llvm} [ {found}, %{after} ], [ zeroinitializer, %{before} ]", pure=False) if llvm else ""


def _bits(code: Code, lanes: str | None, n: int) -> str:
    return "-1" if lanes is None else code.warp_bits(lanes, n)


def of_warp(code: Code, llvm: str, vector: str, n: int) -> Typed:
    """The part of a vector that is of one warp."""
    if code.width != WARP:
        vector = code.shuffle(llvm, code.width, vector, "poison", list(range(n * WARP, (n + 1) * WARP)))
    return f"<{WARP} x {llvm}>", vector


def _each_stored(llvm: str, size: int) -> str:
    """The lines that store element after element, each a stride behind the one before."""
    lines = []
    for n in range(WARP):
        lines += [f"  %value.{n} = extractelement <{WARP} x {llvm}> %values, i64 {n}"]
        lines += [*_next_element(n), f"  store {llvm} %value.{n}, ptr {_element(n)}, align {size}"]
    return "\n".join(lines)


def _each_loaded(llvm: str, size: int) -> str:
    """The lines that load element after element: processors with slow gathers insert them faster."""
    lines, before = [], "poison"
    for n in range(WARP):
        lines += [*_next_element(n), f"  %value.{n} = load {llvm}, ptr {_element(n)}, align {size}"]
        lines += [f"  %with.{n} = insertelement <{WARP} x {llvm}> {before}, {llvm} %value.{n}, i64 {n}"]
        before = f"%with.{n}"
    return "\n".join([*lines, f"  ret <{WARP} x {llvm}> {before}"])


def _next_element(n: int) -> list[str]:
    return [f"  {_element(n)} = getelementptr i8, ptr {_element(n - 1)}, i64 %stride"] if n else []


def _element(n: int) -> str:
    return f"%element.{n}" if n else "%first"


def _rows_loaded(unit: Unit, llvm: str, size: int) -> str:
    """Blocks that load rows with gaps, and take the even elements of two of them until one is left.

    The last row ends at the element of the last lane.
    """
    code, row = Code(unit, whole=True), f"<{WARP} x {llvm}>"
    for step in _steps(size):
        code.block(f"rows.{step}")
        rows = []
        for n in range(step):
            first = n * WARP - (step - 1 if n == step - 1 else 0)
            pointer = code.emit(f"getelementptr i8, ptr %first, i64 {first * size}", pure=False)
            rows.append(code.emit(f"load {row}, ptr {pointer}, align {size}", pure=False))
        behind = step - 1  # how far behind their index the elements of the last row are
        while len(rows) > 1:
            pairs = list(zip(rows[::2], rows[1::2], strict=True))
            rows = [_evens(code, llvm, a, b, behind if n == len(pairs) - 1 else 0) for n, (a, b) in enumerate(pairs)]
            behind = 0
        code.run(f"ret {row} {rows[0]}")
    return "\n".join(code.lines)


def _evens(code: Code, llvm: str, a: str, b: str, behind: int) -> str:
    """The even elements of two rows; those of the second are some positions behind their index, and its last are missing."""
    order = [2 * n for n in range(WARP // 2)] + [2 * n + behind for n in range(WARP // 2, WARP)]
    return code.shuffle(llvm, WARP, a, b, [n if n < 2 * WARP else None for n in order])


def _rows_stored(unit: Unit, llvm: str, size: int) -> str:
    """Blocks that store rows with gaps, under constant masks: only AVX-512 has these for little."""
    code = Code(unit, whole=True)
    for step in _steps(size):
        code.block(f"rows.{step}")
        if not cpu.has("avx512f"):
            code.jump("apart")
            continue
        each = 64 // size
        chosen = f"<{each} x i1> <{', '.join(f'i1 {int(n % step == 0)}' for n in range(each))}>"
        for n in range(step * WARP // each):
            spread = [n * each // step + k // step if k % step == 0 else None for k in range(each)]
            value = code.shuffle(llvm, WARP, "%values", "poison", spread)
            pointer = code.emit(f"getelementptr i8, ptr %first, i64 {64 * n}", pure=False)
            code.masked_store(each, llvm, value, pointer, size, chosen.partition("> ")[2])
        code.run("ret void")
    return "\n".join(code.lines)


def _pointer(offset: str, distance: str, count: int = 0) -> str:
    """The instruction that makes a pointer, or several, of distances of 32 bits, or of addresses.

    An address is no distance from a null pointer: what LLVM knows to be based on one is not accessed.
    """
    kind, pointers = (f"<{count} x {offset}>", f"<{count} x ptr>") if count else (offset, "ptr")
    return f"getelementptr i8, ptr %base, {kind} {distance}" if offset == "i32" else f"inttoptr {kind} {distance} to {pointers}"


def _blocks(unit: Unit, llvm: str, offset: str, size: int) -> str:
    """Load `%offsets` from `%base` for the lanes `%active`: a row for neighbours, else a gather."""
    code, held, lanes = Code(unit, whole=True), f"<{BLOCK} x {llvm}>", f"<{BLOCK} x {offset}>"
    gather, pointers = f"llvm.masked.gather.v{BLOCK}{short(llvm)}.v{BLOCK}p0", f"<{BLOCK} x ptr>"
    unit.declarations[gather] = f"declare {held} @{gather}({pointers}, i32 immarg, <{BLOCK} x i1>, {held})"
    row, found = vector_literal(offset, tuple(size * n for n in range(BLOCK))), []
    for first in range(0, WARP, BLOCK):
        order = list(range(first, first + BLOCK))
        own = code.shuffle(offset, WARP, "%offsets", "poison", order)
        active = code.shuffle("i1", WARP, "%active", "poison", order)
        moved = code.emit(f"sub {lanes} {own}, {row}")
        begin = code.emit(f"extractelement {lanes} {moved}, i64 0")
        apart = code.emit(f"icmp ne {lanes} {moved}, {code.splat(offset, begin, BLOCK)}")
        wrong = code.emit(f"bitcast <{BLOCK} x i1> {code.emit(f'and <{BLOCK} x i1> {apart}, {active}')} to i{BLOCK}")
        near, far, onward = code.label(), code.label(), code.label()
        code.branch(code.emit(f"icmp eq i{BLOCK} {wrong}, 0"), near, far)
        code.block(near)
        begins = code.emit(_pointer(offset, begin), pure=False)
        loaded = code.masked_load(BLOCK, llvm, begins, size, active)
        code.jump(onward)
        code.block(far)
        at = code.emit(_pointer(offset, own, BLOCK), pure=False)
        arguments = [(pointers, at), ("i32", str(size)), (f"<{BLOCK} x i1>", active), (held, "zeroinitializer")]
        gathered = code.call(held, gather, *arguments, pure=False)
        code.jump(onward)
        code.block(onward)
        found.append(code.emit(f"phi {held} [ {loaded}, %{near} ], [ {gathered}, %{far} ]", pure=False))
    made = code.concatenate(llvm, found, BLOCK)
    return "\n".join([*code.lines, f"  ret <{WARP} x {llvm}> {made}"])


def _function(code: Code, kind: str, llvm: str, offset: str = "i64") -> str:
    """Define a function of `runtime`, once in a module; returns its name."""
    unit, name, size = code.unit, f"ptxvm.{kind}.{llvm}.{offset}", 8 if llvm in ("i64", "double") else 4
    if name in unit.helpers:
        return name
    vector, pointers = f"<{WARP} x {llvm}>", f"<{WARP} x ptr>"
    intrinsic = f"llvm.masked.gather.v{WARP}{short(llvm)}.v{WARP}p0"
    unit.declarations[intrinsic] = f"declare {vector} @{intrinsic}({pointers}, i32 immarg, <{WARP} x i1>, {vector})"
    for count in (FEW, HALF):
        few, first = f"<{count} x {llvm}>", f"llvm.masked.gather.v{count}{short(llvm)}.v{count}p0"
        unit.declarations[first] = f"declare {few} @{first}(<{count} x ptr>, i32 immarg, <{count} x i1>, {few})"
    unit.declarations["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1 immarg)"
    unit.declare("llvm.ctpop.i32", "i32", "i32")
    lanes = range(WARP)
    return unit.helper(
        name,
        runtime(
            kind, far=FAR, farther=2 * FAR, numbers=vector_literal("i32", tuple(lanes)),
            first_ones=1 << FEW if cpu.has("avx512f") else 0,  # other processors load lane by lane
            widened=vector_literal("i32", tuple(min(n, FEW) for n in lanes)),
            half_ones=1 << HALF, half_numbers=vector_literal("i32", tuple(range(HALF))),
            half_widened=vector_literal("i32", tuple(min(n, HALF) for n in lanes)),
            cases=" ".join(f"i64 {step * size}, label %rows.{step}" for step in _steps(size)),
            loads=_rows_loaded(unit, llvm, size), stores=_rows_stored(unit, llvm, size),
            load_each=_each_loaded(llvm, size), store_each=_each_stored(llvm, size),
            apart="apart" if cpu.gathers_slowly() else "together",
            name=name, llvm=llvm, short=short(llvm), offset=offset, size=size, few=FEW,
            lanes=vector_literal("i64", tuple(lanes)),
            blocks=_blocks(unit, llvm, offset, size), base="ptr %base, " if offset == "i32" else "",
            pointer=_pointer(offset, "%distance"),
            bits=vector_literal("i32", tuple(1 << n for n in lanes)),
        ),
    )  # fmt: skip


# ── contiguous stores ───────────────────────────────────────────────────────────────────


def store(code: Code, count: int, llvm: str, value: str, pointer: str, size: int, mask: str) -> None:
    """Store the elements of a row that the mask selects: whole blocks by plain stores, since masked ones are slow."""
    if count % WARP or not suits(llvm):
        code.masked_store(count, llvm, value, pointer, size, mask)
        return
    name = _store(code, llvm, size)
    for first in range(0, count, WARP):
        row, chosen, order = value, mask, list(range(first, first + WARP))
        if count > WARP:
            row, chosen = (code.shuffle(type, count, v, "poison", order) for type, v in ((llvm, value), ("i1", mask)))
        part = code.offset(pointer, first * size)
        bits = code.emit(f"bitcast <{WARP} x i1> {chosen} to i32")
        code.perform(name, (f"<{WARP} x {llvm}>", row), ("ptr", part), ("i32", bits))


def _store(code: Code, llvm: str, size: int) -> str:
    """Define the function that stores a row of one warp; returns its name."""
    name = f"ptxvm.store_some.{llvm}"
    if name in code.unit.helpers:
        return name
    inner, ones, held = Code(code.unit, whole=True), (1 << BLOCK) - 1, f"<{BLOCK} x {llvm}>"
    inner.splat("i32", "%mask", BLOCK)
    for first in range(0, WARP, BLOCK):
        part = inner.shuffle(llvm, WARP, "%values", "poison", list(range(first, first + BLOCK)))
        pointer = inner.offset("%first", first * size)
        moved = inner.emit(f"lshr i32 %mask, {first}") if first else "%mask"
        bits = inner.emit(f"trunc i32 {moved} to i{BLOCK}")
        whole, some, onward = inner.label(), inner.label(), inner.label()
        inner.run(f"switch i{BLOCK} {bits}, label %{some} [ i{BLOCK} 0, label %{onward} i{BLOCK} {ones}, label %{whole} ]")
        inner.block(whole)
        inner.run(f"store {held} {part}, ptr {pointer}, align {size}")
        inner.jump(onward)
        inner.block(some)
        own = vector_literal("i32", tuple(1 << n for n in range(first, first + BLOCK)))
        tested = inner.emit(f"and <{BLOCK} x i32> {inner.splat('i32', '%mask', BLOCK)}, {own}", pure=False)
        chosen = inner.emit(f"icmp ne <{BLOCK} x i32> {tested}, zeroinitializer", pure=False)
        inner.masked_store(BLOCK, llvm, part, pointer, size, chosen)
        inner.jump(onward)
        inner.block(onward)
    lines = "\n".join(["entry:", *inner.lines, "  ret void"])
    parameters = f"<{WARP} x {llvm}> %values, ptr %first, i32 %mask"
    return code.unit.helper(name, f"define internal void @{name}({parameters}) noinline #0 {{\n{lines}\n}}")

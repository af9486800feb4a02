"""The special registers as values: affine in the lane wherever the shape of the CTA allows it."""

from __future__ import annotations

import time
from collections.abc import Callable

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, from_lanes
from ptxvm.engine.jit.node.host_queries import LAUNCH, SpecialRegisterQuery
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import SPECIAL, WARP
from ptxvm.machine.launch import MAX_GRID

ALL = (1 << 32) - 1
MASKS: dict[str, Callable[[int], int]] = {
    "lanemask_eq": lambda n: 1 << n,
    "lanemask_lt": lambda n: (1 << n) - 1,
    "lanemask_le": lambda n: (2 << n) - 1,
    "lanemask_gt": lambda n: ALL & ~((2 << n) - 1),
    "lanemask_ge": lambda n: ALL & ~((1 << n) - 1),
}
CLOCKS = {"clock": 0, "clock_hi": 32}


def value(at: NodeBuilder, bound: Bound, name: str, type: Type) -> Value:
    """A special register, as its type."""
    if name == "clock64":
        return Value(at.alg, u64, Affine(_cycles(at)))
    if SPECIAL[name.partition(".")[0]].of_cluster:
        return _of_cluster(at, name, type)
    if name.startswith("globaltimer"):
        now: Value = Value(at.alg, u64, Affine(_nanoseconds(at)))
        return (now >> 32 if name.endswith("hi") else now).to(type)
    if name in LAUNCH:
        asked: Value = at.host_call(bound, SpecialRegisterQuery(name), [], [u64])[0]
        return asked.to(type)
    raw: Raw | None = _of_thread(at, name) if at.kernel.scalar else None
    raw = _raw(at, name) if raw is None else raw
    if raw is None:
        raise Unsupported(f"the special register %{name} in the JIT")
    found = Value(at.alg, u32, raw)
    return found if type.bits == 32 else found.to(u64).to(type)


def _raw(at: NodeBuilder, name: str) -> Raw | None:  # noqa: C901, PLR0911 - a table
    register, _, axis = name.partition(".")
    block = at.kernel.rows.block
    number = "xyzw".find(axis) if axis else 0
    if (always := SPECIAL[register].always) is not None:
        return Affine(always)
    match register:
        case "tid":
            return _thread(at, number)
        case "ntid":
            return Affine(block[number] if number < 3 else 0)
        case "ctaid":
            return Affine(f"%ctaid.{axis}", bits=MAX_GRID[number]) if number < 3 else Affine(0)
        case "nctaid":
            return Affine(f"%nctaid.{axis}", bits=MAX_GRID[number]) if number < 3 else Affine(0)
        case "laneid":
            return from_lanes(u32, tuple(n % WARP for n in range(at.alg.width)))
        case "warpid":
            own = from_lanes(u32, tuple(n // WARP for n in range(at.alg.width)))
            return at.alg.integer("add", u32, _warp(at), own)
        case "nwarpid":
            return Affine(-(-block[0] * block[1] * block[2] // WARP))
        case "clock" | "clock_hi":
            moved = at.code.emit(f"lshr i64 {_cycles(at)}, {CLOCKS[register]}")
            return Affine(at.code.emit(f"trunc i64 {moved} to i32"))
    if register in MASKS:
        return from_lanes(u32, tuple(MASKS[register](n % WARP) for n in range(at.alg.width)))
    return None


def _of_thread(at: NodeBuilder, name: str) -> Affine | None:
    """A register that differs between the lanes of a warp, for the one thread that runs; None for any other."""
    lane = at.code.emit(f"and i32 %thread, {WARP - 1}")
    if name == "laneid":
        return Affine(lane, bits=WARP - 1)
    if name == "warpid":
        return Affine(at.code.emit(f"lshr i32 %thread, {WARP.bit_length() - 1}"))
    if name not in MASKS:
        return None
    table = at.code.unit.table("i32", tuple(MASKS[name](n) for n in range(WARP)))
    return Affine(at.code.emit(f"load i32, ptr {at.code.emit(f'getelementptr i32, ptr @{table}, i32 {lane}')}, align 4"))


def _of_cluster(at: NodeBuilder, name: str, type: Type) -> Value:
    """A special register about clusters; each CTA is one where the launch has none."""
    register, _, axis = name.partition(".")
    number = "xyzw".find(axis)
    sizes, alg = at.kernel.cluster or (1, 1, 1), at.alg
    if register == "is_explicit_cluster":
        return Value(alg, pred, Affine(int(at.kernel.cluster is not None)))

    def of_grid(counts: str, operation: str) -> Raw:
        if number > 2:
            return Affine(0)
        count = Affine(f"%{counts}.{axis}", bits=MAX_GRID[number])
        return alg.integer(operation, u32, count, Affine(sizes[number])) if sizes[number] > 1 else count

    found: Raw
    match register:
        case "clusterid":
            found = of_grid("ctaid", "div")
        case "nclusterid":
            found = of_grid("nctaid", "div")
        case "cluster_ctaid":
            found = of_grid("ctaid", "rem") if number < 3 and sizes[number] > 1 else Affine(0)
        case "cluster_nctaid":
            found = Affine(sizes[number] if number < 3 else 0)
        case "cluster_nctarank":
            found = Affine(at.kernel.cluster_size)
        case _:  # cluster_ctarank
            found = Affine("%cluster.rank" if at.kernel.cluster_size > 1 else 0)
    rank = Value(alg, u32, found)
    return rank if type.bits == 32 else rank.to(u64).to(type)


def _warp(at: NodeBuilder) -> Affine:
    """The number of the first warp of a vector."""
    return Affine("%warp", bits=(1 << (at.kernel.warps - 1).bit_length()) - max(1, at.alg.width // WARP))


def _cycles(at: NodeBuilder) -> str:
    at.code.unit.declare("llvm.readcyclecounter", "i64")
    now: str = at.code.emit("call i64 @llvm.readcyclecounter()", pure=False)
    return now


def _nanoseconds(at: NodeBuilder) -> str:
    """The time of the system's clock, by the C library's `clock_gettime`."""
    code, now = at.code, at.buffer("[2 x i64]", 20)
    code.emit(f"call i32 {at.launch_field('clock_gettime')}(i32 {time.CLOCK_REALTIME}, ptr {now})", pure=False)
    seconds = code.emit(f"load i64, ptr {now}, align 8", pure=False)
    rest = code.emit(f"load i64, ptr {code.offset(now, 8)}, align 8", pure=False)
    whole = code.emit(f"mul i64 {seconds}, 1000000000")
    found: str = code.emit(f"add i64 {whole}, {rest}")
    return found


def _thread(at: NodeBuilder, axis: int) -> Raw:
    """A coordinate of the thread: affine, if the rows of the CTA fit warps or warps fit rows."""
    x, y, z = extent = at.kernel.rows.lanes
    if axis > 2 or extent[axis] == 1:
        return Affine(0)
    alg, threads, width = at.alg, at.kernel.threads, at.alg.width
    first: Raw
    if at.kernel.scalar:
        first = Affine("%thread", bits=(1 << (threads - 1).bit_length()) - 1)
    else:
        first = Affine(0) if threads <= width else alg.integer("mul", u32, _warp(at), Affine(WARP))
    lanes = range(width)
    if x % width == 0 or (y == z == 1):  # one row
        start = _coordinate(at, first, axis)
        return alg.integer("add", u32, start, from_lanes(u32, tuple(lanes))) if axis == 0 else start
    if z > 1 and width % (x * y) == 0:  # whole planes
        start = _coordinate(at, first, axis) if axis == 2 else Affine(0)
        return alg.integer("add", u32, start, from_lanes(u32, tuple((n % x, n // x % y, n // (x * y))[axis] for n in lanes)))
    if width % x == 0 and (z == 1 or y % (width // x) == 0):  # rows of one plane
        start = _coordinate(at, first, axis) if axis else Affine(0)
        return alg.integer("add", u32, start, from_lanes(u32, tuple((n % x, n // x, 0)[axis] for n in lanes)))
    return _coordinate(at, alg.integer("add", u32, first, from_lanes(u32, tuple(lanes))), axis)


def _coordinate(at: NodeBuilder, thread: Raw, axis: int) -> Raw:
    """A coordinate of a thread, by its number."""
    alg, (x, y, z) = at.alg, at.kernel.rows.lanes
    if axis == 0:
        return thread if y == z == 1 else alg.integer("rem", u32, thread, Affine(x))
    row = alg.integer("div", u32, thread, Affine(x))
    if axis == 1:
        return row if z == 1 else alg.integer("rem", u32, row, Affine(y))
    return alg.integer("div", u32, row, Affine(y))

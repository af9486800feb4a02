"""The special registers: linear in the number of the lane wherever the shape of the CTA allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxvm.algebra.types import Type, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.asking import LAUNCH, TIMES, SpecialRegister
from ptxvm.engine.jit.raw import WARP, Lin, Raw, from_lanes
from ptxvm.machine.environment import ZEROS

ALL = (1 << 32) - 1
MASKS: dict[str, Callable[[int], int]] = {
    "lanemask_eq": lambda n: 1 << n,
    "lanemask_lt": lambda n: (1 << n) - 1,
    "lanemask_le": lambda n: (2 << n) - 1,
    "lanemask_gt": lambda n: ALL & ~((2 << n) - 1),
    "lanemask_ge": lambda n: ALL & ~((1 << n) - 1),
}
# What is the same in every launch that we can make.
CONSTANTS = {
    "smid": 0, "nsmid": 1, "cluster_ctarank": 0, "cluster_nctarank": 1,
    "cluster_ctaid.x": 0, "cluster_ctaid.y": 0, "cluster_ctaid.z": 0, "cluster_ctaid.w": 0,
    "cluster_nctaid.x": 1, "cluster_nctaid.y": 1, "cluster_nctaid.z": 1, "cluster_nctaid.w": 1,
}  # fmt: skip
CLOCKS = {"clock": 0, "clock_hi": 32}


def value(at: Any, bound: Bound, name: str, type: Type) -> Value:
    """A special register, as its type."""
    if name == "clock64":
        return Value(at.alg, u64, Lin(_cycles(at)))
    if name in LAUNCH or name in TIMES:
        asked: Value = at.outside(bound, SpecialRegister(name), [], [u64])[0]
        return asked.to(type)
    raw = _raw(at, name)
    if raw is None:
        raise Unsupported(f"the special register %{name} in the JIT")
    found = Value(at.alg, u32, raw)
    return found if type.bits == 32 else found.to(u64).to(type)


def _raw(at: Any, name: str) -> Raw | None:  # noqa: C901, PLR0911 - a table
    register, _, axis = name.partition(".")
    block = at.kernel.block
    number = "xyzw".find(axis) if axis else 0
    if name in CONSTANTS:
        return Lin(CONSTANTS[name])
    if name in ZEROS:
        return Lin(0)
    match register:
        case "tid":
            return _thread(at, number)
        case "ntid":
            return Lin(block[number] if number < 3 else 0)
        case "ctaid" | "clusterid":
            return Lin(f"%ctaid.{axis}") if number < 3 else Lin(0)
        case "nctaid" | "nclusterid":
            return Lin(f"%nctaid.{axis}") if number < 3 else Lin(0)
        case "laneid":
            return from_lanes(u32, tuple(n % WARP for n in range(at.alg.width)))
        case "warpid":
            own = from_lanes(u32, tuple(n // WARP for n in range(at.alg.width)))
            return at.alg.integer("add", u32, Lin("%warp"), own)  # type: ignore[no-any-return]
        case "nwarpid":
            return Lin(-(-block[0] * block[1] * block[2] // WARP))
        case "clock" | "clock_hi":
            moved = at.code.emit(f"lshr i64 {_cycles(at)}, {CLOCKS[register]}")
            return Lin(at.code.emit(f"trunc i64 {moved} to i32"))
    if register in MASKS:
        return from_lanes(u32, tuple(MASKS[register](n % WARP) for n in range(at.alg.width)))
    return None


def _cycles(at: Any) -> str:
    at.code.unit.declare("llvm.readcyclecounter", "i64")
    now: str = at.code.emit("call i64 @llvm.readcyclecounter()", pure=False)
    return now


def _thread(at: Any, axis: int) -> Raw:
    """A coordinate of the thread: the warp's first one and a constant for each lane, where rows fit warps."""
    x, y, z = at.kernel.block
    if axis > 2 or (x, y, z)[axis] == 1:
        return Lin(0)
    alg, threads, width = at.alg, x * y * z, at.alg.width
    first: Raw = Lin(0) if threads <= width else alg.integer("mul", u32, Lin("%warp"), Lin(WARP))
    lanes = range(width)
    own = from_lanes(u32, tuple(lanes))
    if x % width == 0 or (y == z == 1):
        if axis == 0:
            start = first if y == z == 1 else alg.integer("rem", u32, first, Lin(x))
            start = Lin(start.base, shift=width.bit_length() - 1) if isinstance(start, Lin) else start
            return alg.integer("add", u32, start, own)  # type: ignore[no-any-return]
        row = alg.integer("div", u32, first, Lin(x))
        return alg.integer("rem" if axis == 1 else "div", u32, row, Lin(y))  # type: ignore[no-any-return]
    if width % x == 0 and y % (width // x) == 0:
        if axis == 0:
            return from_lanes(u32, tuple(n % x for n in lanes))
        row = alg.integer("div", u32, first, Lin(x))
        if axis == 2:
            return alg.integer("div", u32, row, Lin(y))  # type: ignore[no-any-return]
        start = alg.integer("rem", u32, row, Lin(y))
        return alg.integer("add", u32, start, from_lanes(u32, tuple(n // x for n in lanes)))  # type: ignore[no-any-return]
    thread = alg.integer("add", u32, first, own)
    if axis == 0:
        return alg.integer("rem", u32, thread, Lin(x))  # type: ignore[no-any-return]
    row = alg.integer("div", u32, thread, Lin(x))
    return alg.integer("rem" if axis == 1 else "div", u32, row, Lin(y))  # type: ignore[no-any-return]

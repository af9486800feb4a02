"""Requests whose lanes lie at constant distances in increasing or decreasing order, for some lanes of a warp.

Equal addresses, and those in one sector or line, are then neighbours: they are runs of lanes.  How many runs have an active
lane is what the request costs.  Nothing has to be sorted, so such a request is counted where it is made, not in a batch.
"""

from __future__ import annotations

from itertools import pairwise

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.counter_rows import (
    ADDRESSES,
    CLASS,
    CLASSES,
    IDEAL,
    LANES,
    LENGTH,
    LINES,
    MOVED,
    REQUESTS,
    START,
    STEPS,
    UNITS,
    WORD,
)
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, sums, text, vector_literal
from ptxvm.engine.jit.memory.request_batches import LANE_WORDS, Request
from ptxvm.engine.jit.memory.row_values import add_row, row
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import LINE, SECTOR

SPAN = 1 << 31  # bytes between the lanes: places are numbers of 32 bits
EVERY_LANE = (1 << WARP) - 1


@dataclass(frozen=True)
class Monotone:
    """The request of a warp whose lanes lie in order: the distance of each from the first one, in bytes."""

    request: Request
    distances: Pattern

    @property
    def low(self) -> int:
        """The distance of the lane with the least address."""
        return min(self.distances)

    @property
    def extent(self) -> int:
        """The bytes from the first one of the lane with the least address to the last one of that with the greatest."""
        return max(self.distances) - self.low + self.request.size

    @property
    def runs(self) -> int:
        """The first lanes of the runs of lanes with one address, as bits."""
        return 1 | sum(1 << n for n, (a, b) in enumerate(pairwise(self.distances), 1) if a != b)


def monotone(raw: Affine, request: Request, warp: int) -> Monotone | None:
    """The request of a warp for an address, if its lanes lie in order and do not overlap in part."""
    first = warp * WARP
    lanes = range(first, first + WARP)
    if request.space not in {Space.GLOBAL, Space.GENERIC} or any(k[n] != k[first] for k, _ in raw.moving for n in lanes):
        return None
    at = sums(0, raw.fixed, len(raw.terms[0][0]) if raw.terms else first + WARP)[first : first + WARP]
    steps = [b - a for a, b in pairwise(at)]
    if not (all(n >= 0 for n in steps) or all(n <= 0 for n in steps)):
        return None
    found = Monotone(request, tuple(n - at[0] for n in at))
    if found.extent >= SPAN or any(0 < abs(n) < request.size for n in steps):
        return None
    return None if request.atomic and found.runs not in {1, EVERY_LANE} else found


def first_address(code: Code, raw: Affine, warp: int) -> str:
    """The address of the first lane of a warp, as i64."""
    total = text("i64", raw.base)
    for pattern, u in raw.terms:
        if factor := pattern[warp * WARP]:
            part = str(factor * u) if isinstance(u, int) else code.emit(f"mul i64 {u}, {factor}")
            total = code.emit(f"add i64 {total}, {part}")
    return total


def counter(unit: Unit, found: Monotone) -> str:
    """The function that counts such a request: `f(place, row, address, mask)`.

    It answers whether it has: not where some lane may be outside the place that the access met last.
    """
    name = f"ptxvm.monotone.{Digest().add(repr(found)).text[:16]}"
    return unit.piece(name, "i1", "ptr %place, ptr %row, i64 %address, i32 %mask", lambda code: _write(code, found))


def _write(code: Code, found: Monotone) -> str:
    start, length, moved, number = (
        code.emit(f"load i64, ptr {code.offset('%place', WORD * n)}, align 8", pure=False)
        for n in (START, LENGTH, MOVED, CLASS)
    )
    away = code.emit(f"sub i64 {code.emit(f'add i64 %address, {found.low}')}, {start}")
    room = code.intrinsic("i64", "llvm.usub.sat.i64", ("i64", length), ("i64", str(found.extent - 1)))
    known = code.emit(f"icmp ult i64 {away}, {room}")
    if found.request.space is Space.GENERIC:
        known = code.emit(f"and i1 {known}, {code.emit(f'icmp eq i64 {number}, {CLASSES.index(Space.GLOBAL)}')}")
    before, inside, end = (code.label() for _ in range(3))
    code.jump(before)
    code.block(before)
    code.branch(known, inside, end, likely=True)
    code.block(inside)
    place = code.emit(f"trunc i64 {code.emit(f'add i64 %address, {moved}')} to i32")
    add_row(code, "%row", row(code, _counts(code, found, place)))
    code.jump(end)
    code.block(end)
    return code.emit(f"phi i1 [ false, %{before} ], [ true, %{inside} ]", pure=False)


def _counts(code: Code, found: Monotone, place: str) -> dict[int, str]:
    """What the active lanes cost, by the place of the first lane."""
    mask = code.emit("zext i32 %mask to i64")
    idle = code.emit(f"xor i64 {mask}, {EVERY_LANE}")
    lanes, some = _bits(code, mask), code.emit(f"zext i1 {code.emit('icmp ne i32 %mask, 0')} to i64")
    known = {1: some, EVERY_LANE: lanes}
    elements = known.get(found.runs) or _with_active(code, mask, idle, str(found.runs))
    filled = code.emit(f"add i64 {code.emit(f'mul i64 {elements}, {found.request.size}')}, {SECTOR - 1}")
    counts = {REQUESTS: some, LANES: lanes, IDEAL: code.emit(f"udiv i64 {filled}, {SECTOR}")}
    for word, size in ((UNITS, SECTOR), (LINES, LINE)):
        counts[word] = some if found.runs == 1 else _with_active(code, mask, idle, _runs(code, found, place, size))
    if found.request.atomic:
        counts |= {ADDRESSES: elements, STEPS: lanes if found.runs == 1 else some}
    return counts


def _runs(code: Code, found: Monotone, place: str, size: int) -> str:
    """The first lanes of the runs of lanes that lie in one block of so many bytes, as bits."""
    here = code.splat("i32", place, WARP)
    own, before = (
        code.emit(f"add {LANE_WORDS} {here}, {vector_literal('i32', each)}")
        for each in (found.distances, (found.distances[0], *found.distances[:-1]))
    )
    differ = code.emit(f"xor {LANE_WORDS} {own}, {before}")
    begins = code.emit(f"icmp uge {LANE_WORDS} {differ}, splat (i32 {size})")
    bits = code.emit(f"bitcast <{WARP} x i1> {begins} to i32")
    return code.emit(f"or i64 {code.emit(f'zext i32 {bits} to i64')}, 1")


def _with_active(code: Code, active: str, idle: str, first: str) -> str:
    """How many runs have an active lane, given the lanes that begin one.

    A run that begins with an idle lane adds a bit behind that lane, which is carried past idle lanes: it comes to the first
    active lane of the run, or to the beginning of another.
    """
    within = code.emit(f"and i64 {idle}, {code.emit(f'xor i64 {first}, -1')}")
    behind = code.emit(f"shl i64 {code.emit(f'and i64 {first}, {idle}')}, 1")
    carried = code.emit(f"add i64 {behind}, {within}")
    return _bits(code, code.emit(f"and i64 {code.emit(f'or i64 {carried}, {first}')}, {active}"))


def _bits(code: Code, mask: str) -> str:
    return code.intrinsic("i64", "llvm.ctpop.i64", ("i64", mask))

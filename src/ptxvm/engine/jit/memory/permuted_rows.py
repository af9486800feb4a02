"""Strided and shared accesses: rows of memory are loaded or stored, and shuffles permute them to or from the lanes.

A constant stride of a few elements, rows that several lanes share, and a few distinct addresses are gathers and scatters to
the processor, which take an element at a time.  Here the accessed memory is loaded or stored in rows, and shuffles move
each element to or from its lane.  Where all lanes are active, the bytes between two of them lie in pages that the lanes touch:
a row that is loaded may cover more than the lanes ask for.  A row that is stored has no gaps, but where masks cost nothing.
Where some lanes are active, shuffles move their predicate to the rows as well, and only their elements are accessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import REMEMBERED, Affine, Pattern, sums
from ptxvm.named_tuple import NamedTuple

NATIVE = 4  # bytes of the smallest element that the processor gathers
LOAD, SCALAR, SHUFFLE, STORE, MASKED = 0.5, 1.5, 1.5, 1.0, 1.5  # costs of instructions, roughly in cycles of one port ...
GATHERED, SCATTERED, OUT_OF_LINE = 1.2, 2.0, 4.0  # ... and per lane of a gather, of a scatter, of either for small elements

Position = tuple[int, int]  # of an element: its row, and its index in the row
Element = tuple[Pattern, int]  # the factors of the run-time scalars, and a distance in bytes


@dataclass(frozen=True, slots=True)
class Row:
    """Neighbouring elements: their number, their distance from the base in bytes, and a lane whose scalars are added."""

    lane: int
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The rows of an access, and the position in them of every element of every lane (`component * width + lane`)."""

    rows: tuple[Row, ...]
    positions: tuple[Position, ...]
    each: int  # elements of a register

    def sources(self) -> list[list[Position | None]]:
        """For each element of each row its register, among those of all components and lanes, and its index; None in gaps."""
        found: list[list[Position | None]] = [[None] * row.count for row in self.rows]
        for n, (row, element) in enumerate(self.positions):
            found[row][element] = divmod(n, self.each)
        return found


def register(size: int) -> int:
    """How many elements of a size are permuted at a time; few processors permute the bytes of more than 16."""
    if size < NATIVE and not cpu.has("avx512vbmi"):
        return 16 // size
    return (64 if cpu.has("avx512f") else 32) // size


def kind(plan: RowPlan) -> str:
    """The plan in words."""
    rows, single = sum(row.count > 1 for row in plan.rows), sum(row.count == 1 for row in plan.rows)
    counted = ((rows, "row"), (single, "element"))
    said = " and ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in counted if count)
    return f"{said}, permuted"


# ── which rows ──────────────────────────────────────────────────────────────────────────


def loads(raw: Affine, size: int, offsets: Pattern, width: int) -> RowPlan | None:
    """A plan for loads at some offsets in bytes from the address of each lane; None where a gather is as good."""
    if size > 2 * NATIVE or not cpu.has("avx2"):
        return None
    return _loads(*_elements(raw, offsets, width), size, len(offsets), width, min(register(size), width))


def stores(raw: Affine, size: int, offsets: Pattern, width: int) -> RowPlan | None:
    """A plan for stores; None where a scatter is as good, or where the order of lanes matters."""
    if size > 2 * NATIVE or not cpu.has("avx2"):
        return None
    gaps = cpu.has("avx512f" if size >= NATIVE else "avx512bw")
    return _stores(*_elements(raw, offsets, width), size, len(offsets), width, min(register(size), width), gaps=gaps)


def pays_masked(plan: RowPlan, size: int, *, known: bool, writing: bool) -> bool:
    """Does a plan pay off where only some lanes are active, whose predicate is `known` or not?

    Each element is of one lane, and the processor has masks.
    """
    if size < NATIVE or not cpu.has("avx512f") or len({*plan.positions}) < len(plan.positions):
        return False
    cost = 0.0 if writing else SHUFFLE * _shuffles(plan)
    for own in plan.sources():
        shuffles = SHUFFLE * len({position[0] for position in own if position is not None})
        cost += MASKED + (shuffles if writing else 0.0) + (0.0 if known else shuffles)
    return cost < len(plan.positions) * (SCATTERED if writing else GATHERED)


def row_masks(code: Code, plan: RowPlan, lanes: str | None) -> list[str]:
    """For each row of a plan the predicate of its elements, a register of them: those of active lanes; empty for all lanes."""
    if lanes is None:
        return []
    each, groups = plan.each, code.width // plan.each
    word = f"i{512 // each}"
    held = f"<{each} x {word}>"
    sources = {n: code.emit(f"sext <{each} x i1> {part} to {held}") for n, part in enumerate(code.pieces("i1", lanes, each))}
    permuter, found = Permuter(code, word, each), []
    for own in plan.sources():
        wanted = [position and (position[0] % groups, position[1]) for position in own]
        wanted += [None] * (each - len(own))
        active = code.emit(f"icmp slt {held} {permuter.collected(sources, {}, wanted)}, zeroinitializer")
        if None in wanted:
            chosen = ", ".join(f"i1 {int(position is not None)}" for position in wanted)
            active = code.emit(f"select <{each} x i1> <{chosen}>, <{each} x i1> {active}, <{each} x i1> zeroinitializer")
        found.append(active)
    return found


def _elements(raw: Affine, offsets: Pattern, width: int) -> tuple[tuple[Pattern, ...], Pattern]:
    """The factors of the scalars of every lane, and the distance in bytes of every element of every lane."""
    return _of_lanes(tuple(k for k, _ in raw.moving), sums(0, raw.fixed, width), offsets, width)


@lru_cache(REMEMBERED)
def _of_lanes(
    moving: tuple[Pattern, ...], fixed: Pattern, offsets: Pattern, width: int
) -> tuple[tuple[Pattern, ...], Pattern]:  # fmt: skip
    factors = tuple(zip(*moving, strict=True)) if moving else ((),) * width
    return factors, tuple(n + offset for offset in offsets for n in fixed)


@lru_cache(REMEMBERED)
def _loads(
    factors: tuple[Pattern, ...], distances: Pattern, size: int, count: int, width: int, each: int
) -> RowPlan | None:  # fmt: skip
    groups = _groups(factors, distances, size, width)
    if groups is None:
        return None
    rows: list[Row] = []
    found: dict[Element, Position] = {}
    for factor, (lane, offsets) in groups.items():
        for run in _runs(sorted(offsets), size, each):
            for start, length in _covers(run, size, each):
                for offset in run:
                    if start <= offset < start + length * size:
                        found.setdefault((factor, offset), (len(rows), (offset - start) // size))
                rows.append(Row(lane, start, length))
    positions = tuple(found[factors[n % width], distance] for n, distance in enumerate(distances))
    plan = RowPlan(tuple(rows), positions, each)
    cost = sum(LOAD if row.count > 1 else SCALAR for row in rows) + SHUFFLE * _shuffles(plan)
    return plan if cost < width * count * (GATHERED if size >= NATIVE else OUT_OF_LINE) else None


@lru_cache(REMEMBERED)
def _stores(
    factors: tuple[Pattern, ...], distances: Pattern, size: int, count: int, width: int, each: int, *, gaps: bool
) -> RowPlan | None:  # fmt: skip
    groups = _groups(factors, distances, size, width)
    order = list(dict.fromkeys(factors))
    in_order = [order.index(factor) for factor in factors]
    if groups is None or in_order != sorted(in_order) or sum(len(each) for _, each in groups.values()) < len(distances):
        return None
    plans = []
    for cut in (_filled, _with_gaps) if gaps else (_filled,):
        rows: list[Row] = []
        found: dict[Element, Position] = {}
        for factor, (lane, offsets) in groups.items():
            for start, length, own in cut(sorted(offsets), size, each):
                found |= {(factor, offset): (len(rows), (offset - start) // size) for offset in own}
                rows.append(Row(lane, start, length))
        plans.append(
            RowPlan(tuple(rows), tuple(found[factors[n % width], distance] for n, distance in enumerate(distances)), each)
        )
    plan = min(plans, key=_cost_of_stores)
    return plan if _cost_of_stores(plan) < width * count * (SCATTERED if size >= NATIVE else OUT_OF_LINE) else None


def _cost_of_stores(plan: RowPlan) -> float:
    cost = 0.0
    for own in plan.sources():
        registers = {position[0] for position in own if position is not None}
        shuffles = SHUFFLE * max(len(registers) - 1, 1)
        cost += SCATTERED if len(own) == 1 else shuffles + (MASKED if None in own else STORE)
    return cost


def _filled(offsets: list[int], size: int, each: int) -> Iterator[tuple[int, int, list[int]]]:
    """Rows without gaps: where each begins, its number of elements, a power of two, and their offsets."""
    for run in _runs(offsets, size, 2):
        done = 0
        while done < len(run):
            length = min(each, 1 << (len(run) - done).bit_length() - 1)
            yield run[done], length, run[done : done + length]
            done += length


def _with_gaps(offsets: list[int], size: int, each: int) -> Iterator[tuple[int, int, list[int]]]:
    """Rows of whole registers, of which some elements are stored."""
    rest = offsets
    while rest:
        own = [offset for offset in rest if offset < rest[0] + each * size]
        yield rest[0], each if len(own) > 1 else 1, own
        rest = rest[len(own) :]


def _groups(
    factors: tuple[Pattern, ...], distances: Pattern, size: int, width: int
) -> dict[Pattern, tuple[int, set[int]]] | None:  # fmt: skip
    """For each set of factors a lane that has them and all distances; None where some are not whole elements apart."""
    found: dict[Pattern, tuple[int, set[int]]] = {}
    for n, distance in enumerate(distances):
        found.setdefault(factors[n % width], (n % width, set()))[1].add(distance)
    whole = all((n - min(offsets)) % size == 0 for _, offsets in found.values() for n in offsets)
    return found if whole else None


def _runs(offsets: list[int], size: int, each: int) -> list[list[int]]:
    """Runs of offsets whose neighbours are less than a register apart."""
    runs = [[offsets[0]]]
    for offset in offsets[1:]:
        if offset - runs[-1][-1] < each * size:
            runs[-1].append(offset)
        else:
            runs.append([offset])
    return runs


def _covers(run: list[int], size: int, each: int) -> list[tuple[int, int]]:
    """Rows that cover a run, and nothing beyond its ends: where each begins, and its number of elements."""
    last, covered = run[-1], run[0]
    length = min(each, 1 << ((last - run[0]) // size + 1).bit_length() - 1)
    found = []
    for offset in run:
        if offset >= covered:
            start = min(offset, last - (length - 1) * size)
            found.append((start, length))
            covered = start + length * size
    return found


# ── permutations ────────────────────────────────────────────────────────────────────────


def _shuffles(plan: RowPlan) -> int:
    """How many shuffles of two registers bring the elements to their lanes."""
    parts = {plan.positions[n : n + plan.each] for n in range(0, len(plan.positions), plan.each)}
    return sum(max(len({row for row, _ in part}) - 1, 1) for part in parts if len({*part}) > 1)


class Permuter:
    """Writes the shuffles of vectors of `each` elements."""

    def __init__(self, code: Code, llvm: str, each: int) -> None:
        self.code, self.llvm, self.each = code, llvm, each

    def collected(self, sources: dict[int, str], scalars: dict[int, str], wanted: Sequence[Position | None]) -> str:
        """One register from elements of several registers and of scalars, which are rows of one element."""
        plan = _shuffle_plan(frozenset(scalars), tuple(wanted), self.each)
        if plan.splat is not None:
            return self.code.splat(self.llvm, scalars[plan.splat], self.each)
        held = "poison"
        for row, n in plan.inserted:
            held = self.code.emit(f"insertelement <{self.each} x {self.llvm}> {held}, {self.llvm} {scalars[row]}, i64 {n}")
        names = [held if row == INSERTED else sources[row] for row in plan.rows]
        for merge in plan.merges:
            a, b = names[merge.a], "poison" if merge.b is None else names[merge.b]
            names.append(self.code.shuffle(self.llvm, self.each, a, b, merge.order))
        return names[plan.result]


INSERTED = -1  # the register into which scalars are inserted, among the rows


class Merge(NamedTuple):
    """A shuffle of one or two registers, by their numbers: those of the rows come first, then those that are made."""

    a: int
    b: int | None
    order: tuple[int | None, ...]


class ShufflePlan(NamedTuple):
    """How elements come into one register: the scalars and their lanes, the registers that are merged, and the shuffles."""

    splat: int | None  # the row of the scalar that all lanes have
    inserted: tuple[tuple[int, int], ...] = ()
    rows: tuple[int, ...] = ()
    merges: tuple[Merge, ...] = ()
    result: int = 0


@lru_cache(REMEMBERED)
def _shuffle_plan(scalars: frozenset[int], wanted: tuple[Position | None, ...], each: int) -> ShufflePlan:
    """The shuffles that give the wanted elements, of which some are scalars."""
    found = [(position[0], n) for n, position in enumerate(wanted) if position is not None]
    alone = {row: n for row, n in reversed(found) if row in scalars}
    if len(alone) == 1 and len({*wanted}) == 1:
        return ShufflePlan(next(iter(alone)))
    if alone:
        wanted = tuple((INSERTED, alone[at[0]]) if at is not None and at[0] in alone else at for at in wanted)
    rows = dict.fromkeys([INSERTED] if alone else [])
    rows |= dict.fromkeys(at[0] for at in wanted if at is not None and at[0] != INSERTED)
    merges: list[Merge] = []
    result = _tree([(frozenset({row}), n) for n, row in enumerate(rows)], wanted, each, merges)
    inserted = sorted(alone.items(), key=lambda item: item[1])
    return ShufflePlan(None, tuple(inserted), tuple(rows), tuple(merges), result)


def _tree(
    made: list[tuple[frozenset[int], int]], wanted: tuple[Position | None, ...], each: int, merges: list[Merge]
) -> int:  # fmt: skip
    """Merge two registers into one with the elements of both in their lanes, until one is left: its number."""
    placed: set[int] = set()
    first = len(made)
    while len(made) > 1 or not placed:
        pairs = [made[n : n + 2] for n in range(0, len(made), 2)]
        made = []
        for pair in pairs:
            rows = frozenset().union(*(rows for rows, _ in pair))
            order = _order([rows for rows, _ in pair], placed, wanted, each)
            if len(pair) == 1 and (placed >= rows or all(k in (None, n) for n, k in enumerate(order))):
                made.append(pair[0])
                continue
            numbers = [number for _, number in pair]
            made.append((rows, first + len(merges)))
            merges.append(Merge(numbers[0], numbers[1] if len(numbers) > 1 else None, order))
        placed |= {row for rows, _ in made for row in rows}
    return made[0][1]


def _order(
    pair: list[frozenset[int]], placed: set[int], wanted: tuple[Position | None, ...], each: int
) -> tuple[int | None, ...]:  # fmt: skip
    """For each lane the element of one or two registers that it gets; those that are placed stand in their lanes."""
    order: list[int | None] = [None] * len(wanted)
    which = {row: k * each for k, rows in enumerate(pair) for row in rows}
    for n, position in enumerate(wanted):
        if position is not None and position[0] in which:
            order[n] = which[position[0]] + (n if position[0] in placed else position[1])
    return tuple(order)

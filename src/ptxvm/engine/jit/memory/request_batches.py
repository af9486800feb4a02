"""Batches of requests: the counterpart of `profile.warp_accesses` in compiled code, for lanes with any addresses.

A request keeps a key for each lane (`abi.counter_rows`).  As many requests as a vector has elements are counted together: they
are transposed, so that a vector holds a lane of each, and a sorting network and one pass over neighbours serve all of them.
What is left when the launch ends is counted by the host (`run.event_counts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.counter_rows import (
    ADDRESSES,
    BATCHED,
    IDEAL,
    KEY_WORDS,
    LANES,
    LINES,
    REQUESTS,
    STEPS,
    UNITS,
    WORD,
    element,
)
from ptxvm.engine.jit.ir import cpu, preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, LINE, PARTNERS, SECTOR, WORD as BANK_WORD, may_pair

POINTERS = ("keys", "base", "own", "held", "row")
"""Of a batch: its keys; the words whose sum is how many requests are kept, of which the node adds to the second; the word that
says how many of them hold, whatever the node does; and the row."""
ROOM = 4  # words of a question to `flush`
LANE_WORDS = f"<{WARP} x i32>"
KEY_BITS = 32


@dataclass(frozen=True)
class Request:
    """A kind of requests: the space, what is done to memory, and the bytes of a lane."""

    space: Space
    verb: Verb
    size: int

    @property
    def atomic(self) -> bool:
        """Do its lanes compete for addresses?"""
        return self.verb is Verb.UPDATE

    @property
    def paired(self) -> bool:
        """May a pass over the banks serve twice as many lanes, in pairs?"""
        return may_pair(self.space, self.verb, self.size)

    @property
    def batched(self) -> tuple[Space, ...]:
        """The spaces that it may reach and that are counted in batches."""
        return BATCHED if self.space is Space.GENERIC else tuple(space for space in BATCHED if space is self.space)

    def within(self, space: Space) -> Request:
        """The requests of its lanes in one space."""
        return Request(space, self.verb, self.size)

    @property
    def name(self) -> str:
        """A name for its functions."""
        kind = ".atomic" if self.atomic else ".paired" if self.paired else ""
        return f"{self.space}.{self.size.bit_length() - 1}{kind}"

    @property
    def shift(self) -> int:
        """The key of an address is without so many of its bits."""
        return element(self.space, self.size, atomic=self.atomic).bit_length() - 1


def requests() -> int:
    """The requests of a batch."""
    return 16 if cpu.has("avx512f") else 8


def key_words(warps: int) -> int:
    """The words of the keys of a batch, of an access of so many warps: before it is counted there may be a node's more."""
    return KEY_WORDS * (requests() + warps)


# ── keeping ─────────────────────────────────────────────────────────────────────────────


def keep(code: Code, request: Request, room: str, places: str, mask: str, pointers: Sequence[str]) -> None:
    """Keep the request of the active lanes of a warp, of which there are some; `pointers` are those of its batch."""
    keys, base, own, held, row = pointers
    full, onward = code.label(), code.label()
    before = code.emit(f"load i64, ptr {held}, align 8", pure=False)
    code.branch(code.emit(f"icmp ult i64 {before}, {requests()}"), onward, full, likely=True)
    code.block(full)
    words = ("ptr", keys), ("ptr", row), ("ptr", held), ("i64", _number(code, base, own))
    preserving_calls.ask(code, _flush(code.unit, request), room, [(n, *word) for n, word in enumerate(words)])
    code.jump(onward)
    code.block(onward)
    each = code.emit(f"lshr {LANE_WORDS} {places}, splat (i32 {request.shift})")
    each = code.emit(f"select <{WARP} x i1> {code.lanes(mask)}, {LANE_WORDS} {each}, {LANE_WORDS} splat (i32 -1)")
    at = code.emit(f"getelementptr {LANE_WORDS}, ptr {keys}, i64 {_number(code, base, own)}", pure=False)
    code.run(f"store {LANE_WORDS} {each}, ptr {at}, align 64")
    count = code.emit(f"load i64, ptr {own}, align 8", pure=False)
    code.run(f"store i64 {code.emit(f'add i64 {count}, 1', pure=False)}, ptr {own}, align 8")


def _number(code: Code, base: str, own: str) -> str:
    """How many requests are kept."""
    parts = [code.emit(f"load i64, ptr {pointer}, align 8", pure=False) for pointer in (base, own)]
    return code.emit(f"add i64 {parts[0]}, {parts[1]}", pure=False)


def rest(unit: Unit, request: Request) -> str:
    """The function that counts fewer requests than a batch has, or as many: `f(keys, row, number)`."""
    return _runtime(unit, "count_rest", f"ptxvm.rest.{request.name}", count=_batch(unit, request))


def _flush(unit: Unit, request: Request) -> str:
    """The function that counts a batch, and keeps the requests behind it: `f(question)`."""
    return _runtime(unit, "flush_batch", f"ptxvm.flush.{request.name}", count=_batch(unit, request))


# ── counting ────────────────────────────────────────────────────────────────────────────


def _batch(unit: Unit, request: Request) -> str:
    """The function that counts a batch: `f(keys, row)`."""
    name = f"ptxvm.batch.{request.name}"
    if name in unit.helpers:
        return name
    code = Code(unit, whole=True)
    code.run(f"%sorted = alloca [{WARP} x {_vector()}], align 64")
    if request.paired:
        code.perform(_lanes(unit), ("ptr", "%keys"), ("ptr", "%row"))
    for sort, counts in _passes(unit, request):
        code.perform(sort, ("ptr", "%keys"), ("ptr", "%sorted"))
        for count in counts:
            code.perform(count, ("ptr", "%sorted"), ("ptr", "%row"))
    return _function(unit, f"{name}(ptr %keys, ptr %row)", code)


def _passes(unit: Unit, request: Request) -> Iterator[tuple[str, list[str]]]:
    """How the keys of a batch are sorted, and what is then counted."""
    contention = [_contention(unit)] if request.atomic else []
    if request.space is Space.GLOBAL:
        yield _sort(unit, WARP), [_sectors(unit, request), *contention]
        return
    lanes = BANKS * BANK_WORD // max(request.size, BANK_WORD)  # of a pass: as many as there are groups of banks
    below = max(BANK_WORD // element(Space.SHARED, request.size, atomic=request.atomic), 1).bit_length() - 1
    together = request.atomic and lanes == WARP and not below  # in the order of banks the same addresses are neighbours, too
    sort = _sort(unit, lanes, lanes.bit_length() - 1, below, paired=request.paired)
    yield sort, [_banks(unit, lanes, paired=request.paired), *(contention if together else [])]
    if contention and not together:
        yield _sort(unit, WARP), contention


def _sectors(unit: Unit, request: Request) -> str:
    """The function that counts sectors, lines and elements."""
    log = request.size.bit_length() - 1
    sums = _sums(unit, {REQUESTS: "%one", LANES: "%lanes.next", UNITS: "%sectors.next", IDEAL: "%ideal", LINES: "%lines.next"})
    return _runtime(
        unit, "sorted_sectors", f"ptxvm.sectors.{log}", sums=sums, log=log, sector=SECTOR >> log, line=LINE >> log
    )  # fmt: skip


def _banks(unit: Unit, lanes: int, *, paired: bool = False) -> str:
    """The function that counts the wavefronts of passes of so many lanes.

    Requests that may be paired have a key for each pair: their lanes are counted apart.
    """
    of_lanes = {} if paired else {LANES: "%lanes.next"}
    sums = _sums(unit, {REQUESTS: "%one", UNITS: "%units.next", IDEAL: "%ideal.next"} | of_lanes)
    bank = 1 << KEY_BITS - (lanes.bit_length() - 1)
    name = f"ptxvm.banks.{lanes}{'.paired' if paired else ''}"
    return _runtime(unit, "sorted_banks", name, sums=sums, lanes=lanes, last=lanes - 1, bank=bank)


def _lanes(unit: Unit) -> str:
    """The function that counts the active lanes of a batch: `f(keys, row)`."""
    name = "ptxvm.lanes"
    if name in unit.helpers:
        return name
    code, total = Code(unit, whole=True), "0"
    for request in range(requests()):
        keys = code.emit(f"load {LANE_WORDS}, ptr {code.offset('%keys', 4 * WARP * request)}, align 64", pure=False)
        active = code.emit(f"icmp ne {LANE_WORDS} {keys}, splat (i32 -1)")
        bits = code.emit(f"bitcast <{WARP} x i1> {active} to i32")
        total = code.emit(f"add i32 {total}, {code.intrinsic('i32', 'llvm.ctpop.i32', ('i32', bits))}")
    _add(code, LANES, total)
    return _function(unit, f"{name}(ptr %keys, ptr %row)", code)


def _contention(unit: Unit) -> str:
    """The function that counts addresses, and the lanes that want one."""
    sums = _sums(unit, {ADDRESSES: "%addresses.next", STEPS: "%most.next"})
    return _runtime(unit, "sorted_contention", "ptxvm.contention", sums=sums)


def _runtime(unit: Unit, template: str, name: str, **values: str | int) -> str:
    if name in unit.helpers:
        return name
    count = requests()
    unit.declare(f"llvm.umax.v{count}i32", *[_vector()] * 3)
    return unit.helper(name, runtime(template, name=name, n=count, align=4 * count, **values))


def _function(unit: Unit, signature: str, code: Code) -> str:
    """Define a function of the lines of some code; returns its name."""
    lines = "\n".join(code.lines)
    name = signature.partition("(")[0]
    return unit.helper(name, f"define internal void @{signature} noinline #0 {{\nentry:\n{lines}\n  ret void\n}}")


def _sums(unit: Unit, parts: dict[int, str]) -> str:
    """Lines that add the elements of vectors to words of a row."""
    code = Code(unit, whole=True)
    for word, vector in parts.items():
        _add(code, word, code.intrinsic("i32", f"llvm.vector.reduce.add.v{requests()}i32", (_vector(), vector)))
    return "\n".join(code.lines)


def _add(code: Code, word: int, amount: str) -> None:
    """Add a number of 32 bits to a word of the row."""
    pointer = code.offset("%row", WORD * word)
    before = code.emit(f"load i64, ptr {pointer}, align 8", pure=False)
    after = code.emit(f"add i64 {before}, {code.emit(f'zext i32 {amount} to i64')}", pure=False)
    code.run(f"store i64 {after}, ptr {pointer}, align 8")


# ── sorting ─────────────────────────────────────────────────────────────────────────────


def _vector() -> str:
    """The type of a lane of each request."""
    return f"<{requests()} x i32>"


def _sort(unit: Unit, lanes: int, rotated: int = 0, below: int = 0, *, paired: bool = False) -> str:
    """The function that sorts the keys of a batch, those of so many lanes among themselves: `f(keys, sorted)`.

    First the lowest bits of the keys are left out, and then some are rotated: the highest bits are the number of a bank.
    Of `paired` requests twice as many lanes may be among themselves.
    """
    name = f"ptxvm.sort.{lanes}.{rotated}.{below}{'.paired' if paired else ''}"
    if name in unit.helpers:
        return name
    code, count, held = Code(unit, whole=True), requests(), _vector()
    values: list[str] = []
    for first in range(0, WARP, count):
        pointers = [code.offset("%keys", 4 * (request * WARP + first)) for request in range(count)]
        values += _transposed(code, [code.emit(f"load {held}, ptr {at}, align {4 * count}", pure=False) for at in pointers])
    if paired:
        values = _in_pairs(code, values, lanes)
    if below:  # the highest bit repeats: that of NO_KEY
        values = [code.emit(f"ashr {held} {value}, splat (i32 {below})") for value in values]
    if rotated:
        values = [
            code.intrinsic(held, f"llvm.fshr.v{count}i32", (held, value), (held, value), (held, f"splat (i32 {rotated})"))
            for value in values
        ]
    for first in range(0, WARP, lanes):
        for a, b in exchanges(lanes):
            pair = (held, values[first + a]), (held, values[first + b])
            least, most = (code.intrinsic(held, f"llvm.{end}.v{count}i32", *pair) for end in ("umin", "umax"))
            values[first + a], values[first + b] = least, most
    for n, value in enumerate(values):
        code.run(f"store {held} {value}, ptr {code.offset('%sorted', 4 * count * n)}, align {4 * count}")
    return _function(unit, f"{name}(ptr %keys, ptr %sorted)", code)


def _in_pairs(code: Code, values: list[str], lanes: int) -> list[str]:
    """The keys of requests, for passes of so many lanes: where the lanes are pairs of one address, a key for each pair.

    Then passes of `lanes` pairs stand where every other one of the lanes did, and the others have none
    (`profile.warp_accesses.may_pair`).
    """
    count, held, found = requests(), _vector(), values
    for apart in PARTNERS:
        same, keys = "splat (i1 true)", list[str]()
        for a, b in ((values[n], values[n ^ apart]) for n in range(WARP) if not n & apart):
            least, most = (code.intrinsic(held, f"llvm.{end}.v{count}i32", (held, a), (held, b)) for end in ("umin", "umax"))
            equal = code.emit(f"icmp eq {held} {least}, {most}")
            alone = code.emit(f"icmp eq {held} {most}, splat (i32 -1)")
            either = code.emit(f"or <{count} x i1> {equal}, {alone}")
            same = code.emit(f"and <{count} x i1> {same}, {either}")
            keys.append(least)
        passes = (keys[first : first + lanes] + ["splat (i32 -1)"] * lanes for first in range(0, WARP // 2, lanes))
        found = [
            code.emit(f"select <{count} x i1> {same}, {held} {key}, {held} {other}")
            for key, other in zip(chain.from_iterable(passes), found, strict=True)
        ]
    return found


def _transposed(code: Code, rows: list[str]) -> list[str]:
    """The columns of as many rows as a row has elements: blocks of 2, 4 and more rows change places across the diagonal."""
    count, size = len(rows), 1
    while size < count:
        made = list(rows)
        for a in range(count):
            if not a & size:
                b = a + size
                above = [n if not n & size else count + n - size for n in range(count)]
                beneath = [n + size if not n & size else count + n for n in range(count)]
                made[a] = code.shuffle("i32", count, rows[a], rows[b], above)
                made[b] = code.shuffle("i32", count, rows[a], rows[b], beneath)
        rows, size = made, 2 * size
    return rows


def exchanges(count: int) -> Iterator[tuple[int, int]]:
    """The exchanges of Batcher's odd-even merge sort of `count` values, a power of two.

    Knuth, The Art of Computer Programming, volume 3, 5.3.4.
    """
    size = 1
    while size < count:
        apart = size
        while apart:
            for first in range(apart % size, count - apart, 2 * apart):
                for a in range(first, min(first + apart, count - apart)):
                    if a // (2 * size) == (a + apart) // (2 * size):
                        yield a, a + apart
            apart //= 2
        size *= 2

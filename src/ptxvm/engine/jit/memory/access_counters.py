"""Counters of accesses: the row of an access for the active lanes, by the shape of its address.

One address for all lanes, and constant distances in shared memory, cost the same each time: the node's own count stands for
them.  What an affine address of whole warps costs depends on little more than its scalars and on where in a line it begins;
such patterns are counted once and remembered.  Other requests are counted in batches (`memory.request_batches`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u32, u64
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.counter_rows import (
    ADDRESSES,
    CLASSES,
    IDEAL,
    LANES,
    LINES,
    REQUESTS,
    ROW,
    SCALARS,
    STEPS,
    UNITS,
    row_weights,
)
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, sums, text, wrapped
from ptxvm.engine.jit.memory import monotone_requests, remembered_patterns
from ptxvm.engine.jit.memory.monotone_requests import Monotone, first_address, monotone
from ptxvm.engine.jit.memory.remembered_patterns import Shape
from ptxvm.engine.jit.memory.request_batches import Request, key_words
from ptxvm.engine.jit.memory.request_places import keeper
from ptxvm.engine.jit.memory.row_values import COUNTS, LanesOfBanks, lanes_of_banks, most_of_banks, row
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access, Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.profile import warp_accesses
from ptxvm.profile.warp_accesses import Ints

WHOLE_LINE = 128  # bytes: places that differ by multiples of it cost the same


@dataclass(frozen=True, slots=True)
class Counted:
    """An access to be counted: the number of its instruction, its kind, its space, and the bytes of a lane."""

    instruction: int
    verb: Verb
    space: Space
    size: int

    @property
    def atomic(self) -> bool:
        """Do its lanes compete for addresses?"""
        return self.verb is Verb.UPDATE

    @property
    def classes(self) -> tuple[Space, ...]:
        """The spaces that it may reach."""
        return CLASSES if self.space is Space.GENERIC else (self.space,)


def count_access(at: NodeBuilder, bound: Bound, access: Access, raw: Raw) -> None:
    """Count an access of the active lanes to an address, in profiled code.

    Updates of mbarriers are none of the program's, nor is what a call passes.
    """
    if access.mbarrier is not None or access.asynchronous or access.type is None or bound.calls:
        return
    size = access.type.bytes * access.count
    counted = Counted(at.kernel.instruction_number(bound), access.verb, access.window, size)
    AccessCounters(at, counted).count(raw)


class AccessCounters:
    """Writes the counters of one access."""

    def __init__(self, at: NodeBuilder, access: Counted) -> None:
        if at.events is None:
            raise TypeError("a node without counters")
        self.at, self.code, self.alg, self.events, self.access = at, at.code, at.alg, at.events, access
        self.width = at.code.width
        self.row = self._rows()

    def _rows(self) -> int:
        """The rows of the access, one for each space that it may reach; the number of their first word."""
        access, words = self.access, self.events.words
        first = words.take(("access", access), ROW * len(access.classes))
        for n, space in enumerate(access.classes):
            weights = list(row_weights(space, access.verb, access.size))
            for word in range(ROW):
                stands = [(access.instruction, metric, factor) for own, metric, factor in weights if own == word]
                words.stand(first + n * ROW + word, stands)
        return first

    def count(self, raw: Raw) -> None:
        """Count the access of the active lanes to an address."""
        match self.access.space:
            case Space.GLOBAL | Space.SHARED:
                self._traffic(raw)
            case Space.GENERIC:
                self._by_address(raw)
            case _:
                self._alike({})

    def _traffic(self, raw: Raw) -> None:
        access = self.access
        known = self._known(raw) if isinstance(raw, Affine) else None
        if known is not None and self._all_active():
            self._always(known)
        elif isinstance(raw, Affine) and not self.access.atomic and (banks := self._banks(raw)) is not None:
            self._by_banks(banks)
        elif isinstance(raw, Affine) and not raw.terms and access.size <= self._pass:
            each = {UNITS: 1, IDEAL: 1, LINES: 1} if access.space is Space.GLOBAL else {UNITS: 1, IDEAL: 1}
            self._alike(each | ({ADDRESSES: 1} if access.atomic else {}))
        else:
            self._by_address(raw)

    @property
    def _pass(self) -> int:
        """The bytes of an access, up to which one address for all lanes costs the same whichever lanes are active."""
        return warp_accesses.SECTOR if self.access.space is Space.GLOBAL else warp_accesses.WORD

    def _all_active(self) -> bool:
        return self.at.active_vector() is None

    # ── what is known without the address ───────────────────────────────────────────────

    def _alike(self, each: dict[int, int]) -> None:
        """Count an access whose cost for a warp is that of any lane of it."""
        lanes = self.at.active_vector()
        by_lane = [STEPS] if self.access.atomic and each else []
        if lanes is None:
            self._always({word: n * self.width // WARP for word, n in each.items()} | dict.fromkeys(by_lane, self.width))
            return
        bits = self.code.mask_bits(lanes)
        warps, count = self.events.warps(bits), self.events.lanes(bits)
        counts = {REQUESTS: warps, LANES: count} | dict.fromkeys(each, warps)
        self._add(row(self.code, counts | dict.fromkeys(by_lane, count)))

    def _offsets(self, raw: Affine) -> Ints | None:
        """The bytes of all lanes of an access to shared memory from the least one; None if the address matters."""
        if self.access.space is not Space.SHARED or self.access.size < warp_accesses.WORD:
            return None
        if raw.moving:
            return None
        lanes_at = sums(0, raw.fixed, self.width)
        wide = [wrapped(n, 32) for n in lanes_at]
        return np.array(wide, np.int64) - min(wide)

    def _banks(self, raw: Affine) -> list[LanesOfBanks] | None:
        """For each warp the lanes of each bank, of words at constant distances; None where lanes share words or many a bank."""
        offsets = self._offsets(raw)
        if offsets is None or self.access.size != warp_accesses.WORD:
            return None
        found = [lanes_of_banks(own // warp_accesses.WORD) for own in offsets.reshape(-1, WARP)]
        return None if None in found else [each for each in found if each is not None]

    def _by_banks(self, banks: list[LanesOfBanks]) -> None:
        """Count the active lanes, whose banks are known."""
        lanes = self.at.active_vector() or ""
        total = "0"
        for n, own in enumerate(banks):
            if n not in self.code.active_warps():
                continue
            taken = most_of_banks(self.code, self.code.warp_bits(lanes, n), own)
            total = self.code.emit(f"add i64 {total}, {taken}")
        bits = self.code.mask_bits(lanes)
        warps = self.events.warps(bits)
        self._add(row(self.code, {REQUESTS: warps, LANES: self.events.lanes(bits), UNITS: total, IDEAL: warps}))

    def _known(self, raw: Affine) -> dict[int, int] | None:
        """The row of all lanes of an access to shared memory at constant distances; None if the address matters."""
        offsets, lanes = self._offsets(raw), np.arange(self.width)
        if offsets is None:
            return None
        found = warp_accesses.shared_traffic(lanes // WARP, lanes % WARP, offsets, self.access.verb, self.access.size)
        known = {UNITS: found.wavefronts, IDEAL: found.ideal}
        if self.access.atomic:
            rivals = warp_accesses.contention(lanes // WARP, offsets)
            known |= {ADDRESSES: rivals.addresses, STEPS: rivals.steps}
        return known

    def _always(self, known: dict[int, int]) -> None:
        """Count an access of all lanes whose row is known: with the node, where each of its runs comes here."""
        counts = {REQUESTS: self.width // WARP, LANES: self.width} | known
        if self.at.full and not self.at.nested:
            self.events.always += [
                (self.access.instruction, metric, factor * counts.get(word, 0))
                for word, metric, factor in row_weights(self.access.space, self.access.verb, self.access.size)
            ]
            return
        self._add("<" + ", ".join(f"i64 {counts.get(word, 0)}" for word in range(ROW)) + ">")

    def _add(self, counts: str) -> None:
        self.events.add(self.row, COUNTS, counts)

    # ── what depends on the address ─────────────────────────────────────────────────────

    def _by_address(self, raw: Raw) -> None:
        """Count by a remembered pattern where all lanes are active and the address is affine, else in batches."""
        lanes = self.at.active_vector()
        shape = self._shape(raw) if isinstance(raw, Affine) else None
        if shape is None:
            self._lane_by_lane(raw, lanes)
        elif lanes is None:
            self._remembered(shape, raw)
        else:
            all_, some, onward = (self.code.label() for _ in range(3))
            self.code.branch(self.code.emit(f"icmp eq i{self.width} {self.code.mask_bits(lanes)}, -1"), all_, some)
            ways = (all_, partial(self._remembered, shape, raw)), (some, partial(self._lane_by_lane, raw, lanes))
            for label, write in ways:
                with self.code.scope():
                    self.code.block(label)
                    write()
                    self.code.jump(onward)
            self.code.block(onward)

    def _shape(self, raw: Affine) -> Shape | None:
        """The shape of an affine address; None where too many scalars decide."""
        if len(raw.moving) > SCALARS:
            return None
        terms = tuple((k, u if isinstance(u, int) else None) for k, u in raw.terms)
        return Shape(self.width, terms, self.access.space, self.access.verb, self.access.size)

    def _remembered(self, shape: Shape, raw: Raw) -> None:
        if not isinstance(raw, Affine):
            raise TypeError("a pattern of lanes that vary")
        first = self.events.words.take(("patterns", self.access, shape), shape.words)
        function = remembered_patterns.counter(self.code.unit, shape)
        scalars = [u for _, u in raw.moving]
        self.code.perform(
            function, ("ptr", "%ctx"), ("ptr", self.events.word(first)), ("ptr", self.events.pointer(self.row, self._held)),
            *(("i64", text("i64", u)) for u in (raw.base, *scalars, *[0] * (SCALARS - len(scalars)))),
        )  # fmt: skip

    @property
    def _held(self) -> str:
        """The type of all rows of the access."""
        return f"<{ROW * len(self.access.classes)} x i64>"

    def _lane_by_lane(self, raw: Raw, lanes: str | None) -> None:
        if self.access.space is Space.SHARED:
            offsets = self.alg.vector(u32, self.alg.cast("resize", u64, u32, raw, "rn"))
            self._each_warp(offsets, "i32", lanes)
        elif isinstance(raw, Affine) and (found := self._monotone(raw)):
            self._in_order(raw, found, lanes)
        else:
            self._each_warp(self.alg.vector(u64, raw), "i64", lanes)

    @property
    def _request(self) -> Request:
        return Request(self.access.space, self.access.verb, self.access.size)

    @property
    def _place(self) -> str:
        """The address of the place that the access met last."""
        return self.events.word(self.events.words.take(("place", self.access), ROW))

    def _monotone(self, raw: Affine) -> list[Monotone]:
        """The requests of the warps, if all have their lanes in order."""
        found = [monotone(raw, self._request, n) for n in self.code.active_warps()]
        return [] if None in found else [each for each in found if each is not None]

    def _in_order(self, raw: Affine, found: list[Monotone], lanes: str | None) -> None:
        """Count the active lanes, which are in order; in a batch, where some may be in another allocation than before."""
        code, batches = self.code, self._batches(len(found))
        rows = self.events.pointer(self.row, self._held)
        for n, each in enumerate(found):
            mask, first = self._mask(lanes, n), first_address(code, raw, n)
            function, pointers = monotone_requests.counter(code.unit, each), (("ptr", self._place), ("ptr", rows))
            counted = code.call("i1", function, *pointers, ("i64", first), ("i32", mask), pure=False)
            other, onward = code.label(), code.label()
            code.branch(counted, onward, other, likely=True)
            with code.scope():
                code.block(other)
                self._keep(n, self.alg.vector(u64, raw), "i64", lanes, batches)
                code.jump(onward)
            code.block(onward)

    def _each_warp(self, addresses: str, llvm: str, lanes: str | None) -> None:
        warps = self.code.active_warps()
        batches = self._batches(len(warps))
        for n in warps:
            self._keep(n, addresses, llvm, lanes, batches)

    def _keep(self, warp: int, addresses: str, llvm: str, lanes: str | None, batches: list[tuple[str, str]]) -> None:
        """Keep the request of a warp in batches."""
        code, access = self.code, self.access
        rows = self.events.pointer(self.row, self._held) if access.space is Space.GENERIC else "null"
        own = code.shuffle(llvm, self.width, addresses, "poison", range(warp * WARP, (warp + 1) * WARP))
        arguments = ("ptr", "%ctx"), ("ptr", self._place), ("ptr", rows), (f"<{WARP} x {llvm}>", own)
        code.perform(keeper(code.unit, self._request), *arguments, ("i32", self._mask(lanes, warp)), *batches)

    def _mask(self, lanes: str | None, warp: int) -> str:
        """The active lanes of a warp as bits."""
        return "-1" if lanes is None else self.code.warp_bits(lanes, warp)

    def _batches(self, warps: int) -> list[tuple[str, str]]:
        """The pointers of the batches of an access of so many warps."""
        spaces = self._request.batched
        return [("ptr", pointer) for space in spaces for pointer in self._batch(self._request.within(space), warps)]

    def _batch(self, request: Request, warps: int) -> tuple[str, ...]:
        """The pointers of the batch of an access of so many warps, for its requests in one space."""
        row = self.row + self.access.classes.index(request.space) * ROW
        key = ("batch", self.access, request.space, warps)
        return self.events.batch(key, key_words(warps), row, (request.space, request.verb, request.size))

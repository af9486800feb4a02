"""Atomic operations: the lanes one after the other, each an update of its place.

Shared and local memory belong to the CTA, whose threads all run in one thread of the host: there an update is a load and
a store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxvm.algebra.types import Type, u32
from ptxvm.algebra.value import Value
from ptxvm.engine.jit import places, updates
from ptxvm.engine.jit.raw import Lin, Raw, Vec, scalar_type, text

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter

TOGETHER = 8  # lanes whose places are known before the first of them is updated: see _place
Given = tuple[Type, Raw, str]  # an operand, and the memory where its lanes are if they differ


class Updates:
    """Writes the updates of one instruction; places are checked."""

    def __init__(self, at: Emitter, space: str, type: Type, operation: str | None) -> None:
        self.operation = operation
        self.at, self.alg, self.code, self.width = at, at.alg, at.code, at.width
        self.space, self.type, self.llvm = space, type, scalar_type(type)
        self.plain = space in ("shared", "local")

    def run(self, address: Raw, update: Callable[..., Value], operands: Sequence[Value]) -> Value:
        """For all active lanes; what was there before."""
        code, vector = self.code, self.alg.vector_type(self.type)
        where = self._kept_places(address)
        results = self.at.buffer(vector, 2)
        given = [self._kept(n, operand) for n, operand in enumerate(operands)]
        with code.scope():
            code.memo.clear()
            lanes = self._begin()
            places = [self._place(where, lane) for lane in lanes]
            for lane, place in zip(lanes, places, strict=True):
                old = self._update(place, update, [Value(self.alg, t, self._lane_of(t, r, b, lane)) for t, r, b in given])
                kept = code.emit(f"getelementptr {self.llvm}, ptr {results}, i32 {lane}")
                code.run(f"store {self.llvm} {text(self.llvm, old.raw.base)}, ptr {kept}, align {min(self.type.bytes, 16)}")
            self._end(lanes)
        return Value(self.alg, self.type, Vec(code.emit(f"load {vector}, ptr {results}, align 64", pure=False)))

    # ── the lanes ───────────────────────────────────────────────────────────────────────

    def _begin(self) -> list[str]:
        """A loop over the active lanes; the numbers of those of one turn."""
        code = self.code
        self.head, self.done = code.label(), code.label()
        self.counter = self.at.buffer("i32", 9)
        self.all = self.at.active_vector() is None
        if self.all:
            code.run(f"store i32 0, ptr {self.counter}, align 4")
            code.jump(self.head)
            code.block(self.head)
            first = code.emit(f"load i32, ptr {self.counter}, align 4", pure=False)
            return [first, *(code.emit(f"add i32 {first}, {n}") for n in range(1, TOGETHER if self.plain else 1))]
        code.one_warp()
        code.run(f"store i32 {self.at.active_text()}, ptr {self.counter}, align 4")
        body = code.label()
        code.jump(self.head)
        code.block(self.head)
        left = code.emit(f"load i32, ptr {self.counter}, align 4", pure=False)
        code.branch(code.emit(f"icmp eq i32 {left}, 0"), self.done, body)
        code.block(body)
        less = code.emit(f"add i32 {left}, -1")
        code.run(f"store i32 {code.emit(f'and i32 {left}, {less}')}, ptr {self.counter}, align 4")
        return [code.intrinsic("i32", "llvm.cttz.i32", ("i32", left), ("i1", "true"))]

    def _end(self, lanes: list[str]) -> None:
        code = self.code
        if self.all:
            following = code.emit(f"add i32 {lanes[0]}, {len(lanes)}")
            code.run(f"store i32 {following}, ptr {self.counter}, align 4")
            code.branch(code.emit(f"icmp eq i32 {following}, {self.width}"), self.done, self.head)
        else:
            code.jump(self.head)
        code.block(self.done)

    def _kept(self, n: int, operand: Value) -> Given:
        raw, buffer = self.alg.tight(operand.type, operand.raw), ""
        if isinstance(raw, Vec) or raw.terms:
            held = self.alg.vector_type(operand.type)
            buffer = self.at.buffer(held, 3 + n)
            self.code.run(f"store {held} {self.alg.vector(operand.type, raw)}, ptr {buffer}, align 64")
        return operand.type, raw, buffer

    def _lane_of(self, type: Type, raw: Raw, buffer: str, lane: str) -> Raw:
        if not buffer:
            return raw
        llvm = scalar_type(type)
        place = self.code.emit(f"getelementptr {llvm}, ptr {buffer}, i32 {lane}")
        return Lin(self.code.emit(f"load {llvm}, ptr {place}, align 1"))

    # ── a place ─────────────────────────────────────────────────────────────────────────

    def _kept_places(self, address: Raw) -> str:
        """The places of all lanes in memory: offsets of shared memory, or pointers."""
        found, llvm = places.Places(self.at), "ptr"
        if self.space == "shared":
            llvm, low = "i32", self.alg.cast("resize", Type.named["u64"], u32, address, "rn")
            lanes = self.alg.vector(u32, low)
        else:
            lanes = found.pointers(self.space, address)
        buffer = self.at.buffer(f"<{self.width} x {llvm}>", 1)
        self.code.run(f"store <{self.width} x {llvm}> {lanes}, ptr {buffer}, align 64")
        return buffer

    def _place(self, where: str, lane: str) -> str:
        """Where a lane's update happens.

        The processor guesses that a load comes from nowhere where earlier stores go of which it has no address yet.  Between
        updates at random places it learns not to, and would wait with the address of each update for those before it.
        """
        code = self.code
        if self.space != "shared":
            return code.emit(f"load ptr, ptr {code.emit(f'getelementptr ptr, ptr {where}, i32 {lane}')}, align 8")
        # volatile, as LLVM would move the loads back among the updates
        offset = code.emit(f"load volatile i32, ptr {code.emit(f'getelementptr i32, ptr {where}, i32 {lane}')}, align 4")
        return code.emit(f"getelementptr i8, ptr %shared, i64 {code.emit(f'zext i32 {offset} to i64')}")

    def _update(self, place: str, update: Callable[..., Value], operands: list[Value]) -> Value:
        """What was there; the new value is there now."""
        if self.plain:
            return updates.plain(self.at, self.type, place, update, operands)
        return updates.atomic(self.at, self.type, place, update, operands, self.operation)

"""Atomic operations of a warp: a loop over the active lanes, in order.

One host thread runs all threads of a CTA, so in shared and local memory an update is a plain load and store.  Elsewhere it is
one while no other host thread runs kernels, which the loop asks when it begins (`machine.sole_thread`): not for scope .sys,
whose threads may be the program's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from ptxvm.algebra.memory_order import Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import short
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.memory import addressing, atomic_rmw
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.isa.effects import Access
from ptxvm.isa.special_registers import WARP

AHEAD = 6  # updates ahead of which an address is loaded: see _queue
PACKED = (32, 64)  # bits of elements that the processor can compress
COMPILER_FENCE = 'fence syncscope("singlethread") seq_cst'  # it orders what LLVM writes, not what the processor does
Given = tuple[Type, Raw, str]  # an operand, and the buffer of its lanes if they differ


def updated(
    at: NodeBuilder,
    mnemonic: str,
    type: Type,
    access: Access,
    address: Raw,
    update: Callable[..., Value],
    operands: Sequence[Value],
) -> Value:
    """Update at checked addresses for the active lanes, in this place or by a piece of code; returns the old values."""
    alg, lanes = at.alg, at.active_vector()
    if access.space is Space.SHARED:
        addresses = Value(alg, u32, Varying(alg.vector(u32, alg.cast("resize", u64, u32, address, "rn"))))
    else:
        pointers = addressing.Addressing(at).pointers(access.space, address)
        words = at.code.emit(f"ptrtoint <{at.width} x ptr> {pointers} to <{at.width} x i64>")
        addresses = Value(alg, u64, Varying(words))
    active = Value(alg, pred, Affine(1) if lanes is None else Varying(lanes))

    def meaning(addresses: Value, active: Value, *operands: Value) -> Value:
        within = cast("LlvmAlgebra", addresses.alg)
        lanes = active.raw.name if isinstance(active.raw, Varying) else None
        return Updates(within, type, access, lanes).run(addresses.raw, update, operands)

    what = mnemonic, access, update.__code__
    found = at.kernel.meanings.result(alg, what, meaning, [addresses, active, *operands], ["%ctx", "%shared"])
    return cast("Value", found)


class Updates:
    """Writes the updates of one instruction; `active` are the lanes that take part, None for all."""

    def __init__(self, alg: LlvmAlgebra, type: Type, access: Access, active: str | None) -> None:
        self.alg, self.code, self.width = alg, alg.code, alg.width
        self.space, self.type, self.operation = access.space, type, access.operation
        self.llvm = scalar_type(type)
        self.plain = self.space in (Space.SHARED, Space.LOCAL)
        self.may_be_sole = not self.plain and access.scope is not Scope.SYS
        self.element = "i32" if self.space is Space.SHARED else "i64"  # of an address
        self.where = alg.buffer(f"[{self.width + AHEAD} x {self.element}]", 1)
        self.queue: list[str] = []  # variables with the addresses of the next lanes
        self.active = active
        self.packed = self.active is not None and cpu.has("avx512f") and type.bits in PACKED

    def run(self, addresses: Raw, update: Callable[..., Value], operands: Sequence[Value]) -> Value:
        """Update for all active lanes: at offsets in shared memory, or at addresses; returns the old values."""
        code, vector = self.code, self.alg.vector_type(self.type)
        self._store_lanes(self.element, self.alg.vector(u32 if self.element == "i32" else u64, addresses), self.where)
        results = self.alg.buffer(vector, 2)
        buffered = [self._buffered(n, operand) for n, operand in enumerate(operands)]

        def write() -> None:
            with code.scope(fresh=True):
                for lane in self._lanes():
                    old = self._update(lane, update, [Value(self.alg, t, self._lane_of(t, r, b, lane)) for t, r, b in buffered])
                    kept = code.emit(f"getelementptr {self.llvm}, ptr {results}, i32 {lane}")
                    code.run(f"store {self.llvm} {text(self.llvm, old.raw.base)}, ptr {kept}, align {min(self.type.bytes, 16)}")

        if self.may_be_sole:
            self._plain_if_sole(write)
        else:
            write()
        return Value(self.alg, self.type, Varying(self._spread(vector, results)))

    def _plain_if_sole(self, write: Callable[[], None]) -> None:
        """Write the loop with plain updates, for a host thread that is the only one to run kernels, and with locked ones."""
        code = self.code
        updating = self._field("updating")
        plain, locked, done = code.label(), code.label(), code.label()
        code.run(f"store volatile i64 1, ptr {updating}, align 8")
        code.run(COMPILER_FENCE)
        sole = code.emit(f"load volatile i64, ptr {self._field('sole')}, align 8", pure=False)
        code.branch(code.emit(f"icmp ne i64 {sole}, 0", pure=False), plain, locked)
        for label, self.plain in ((plain, True), (locked, False)):
            code.block(label)
            if not self.plain:
                code.run(f"store volatile i64 0, ptr {updating}, align 8")
            write()
            if self.plain:
                code.run(f"store atomic volatile i64 0, ptr {updating} release, align 8")
            code.jump(done)
        code.block(done)

    def _field(self, name: str) -> str:
        """The address of a field of the launch record."""
        return self.code.emit(f"getelementptr i8, ptr %ctx, i64 {offset(name)}")

    def _update(self, lane: str, update: Callable[..., Value], operands: list[Value]) -> Value:
        """Update for one lane; returns the old value."""
        if self.plain:
            return atomic_rmw.plain(self.alg, self.type, self._address_of(lane), update, operands)
        return atomic_rmw.atomic(self.alg, self.type, self._address_of(lane), update, operands, self.operation)

    # ── the lanes ───────────────────────────────────────────────────────────────────────

    def _lanes(self) -> Iterator[str]:
        """A loop over the active lanes; yields the index of a lane in the buffers, for the caller to write its update."""
        code, counter = self.code, self.alg.buffer("i32", 9)
        head, body, done = code.label(), code.label(), code.label()
        bits = self.active is not None and not self.packed
        if bits:
            code.one_warp()
            first, end = code.mask_bits(self.active or ""), "0"
        else:
            first, end = "0", self._count()
            self._queue()
        code.run(f"store i32 {first}, ptr {counter}, align 4")
        code.jump(head)
        code.block(head)
        now = code.emit(f"load i32, ptr {counter}, align 4", pure=False)
        code.branch(code.emit(f"icmp eq i32 {now}, {end}"), done, body)
        code.block(body)
        following = code.emit(f"add i32 {now}, {-1 if bits else 1}")
        following = code.emit(f"and i32 {now}, {following}") if bits else following
        code.run(f"store i32 {following}, ptr {counter}, align 4")
        yield code.intrinsic("i32", "llvm.cttz.i32", ("i32", now), ("i1", "true")) if bits else now
        code.jump(head)
        code.block(done)

    def _count(self) -> str:
        if self.active is None:
            return str(self.width)
        word = f"i{self.width}"
        count = self.code.intrinsic(word, f"llvm.ctpop.{word}", (word, self.code.mask_bits(self.active)))
        return count if self.width == WARP else self.code.emit(f"trunc {word} {count} to i32")

    def _buffered(self, n: int, operand: Value) -> Given:
        raw, buffer = self.alg.tight(operand.type, operand.raw), ""
        if isinstance(raw, Varying) or raw.terms:
            buffer = self.alg.buffer(self.alg.vector_type(operand.type), 3 + n)
            self._store_lanes(scalar_type(operand.type), self.alg.vector(operand.type, raw), buffer)
        return operand.type, raw, buffer

    def _store_lanes(self, llvm: str, lanes: str, buffer: str) -> None:
        """Store the elements of all lanes, or compressed those of the active lanes."""
        code, vector = self.code, f"<{self.width} x {llvm}>"
        if not self.packed:
            code.run(f"store {vector} {lanes}, ptr {buffer}, align 64")
            return
        # A register at a time, and compressed there: instructions that compress into memory take some processors 100 cycles.
        each = 64 // (8 if llvm in ("i64", "double") else 4)
        part, mask, name = f"<{each} x {llvm}>", f"<{each} x i1>", f"llvm.experimental.vector.compress.v{each}{short(llvm)}"
        for first, pointer in zip(range(0, self.width, each), self._packed_parts(llvm, each, buffer), strict=True):
            order = list(range(first, first + each))
            own = code.shuffle(llvm, self.width, lanes, "poison", order)
            active = code.shuffle("i1", self.width, self.active or "", "poison", order)
            packed = code.intrinsic(part, name, (part, own), (mask, active), (part, "poison"))
            code.run(f"store {part} {packed}, ptr {pointer}, align 4")

    def _packed_parts(self, llvm: str, each: int, buffer: str) -> Iterator[str]:
        """Where the active lanes of each part of the warp begin in a buffer: behind those of the parts before."""
        code, word, before = self.code, f"i{self.width}", ""
        bits = code.mask_bits(self.active or "")
        for first in range(0, self.width, each):
            if first:
                own = code.emit(f"and {word} {bits}, {(1 << first) - 1}")
                before = code.intrinsic(word, f"llvm.ctpop.{word}", (word, own))
                before = code.emit(f"trunc {word} {before} to i32") if self.width != WARP else before
            yield code.emit(f"getelementptr {llvm}, ptr {buffer}, i32 {before}") if first else buffer

    def _spread(self, vector: str, results: str) -> str:
        """Load the results, expanded to their lanes."""
        code = self.code
        if not self.packed:
            return code.emit(f"load {vector}, ptr {results}, align 64", pure=False)
        name, mask = f"llvm.masked.expandload.v{self.width}{short(self.llvm)}", f"<{self.width} x i1>"
        code.unit.declare(name, vector, "ptr", mask, vector)
        arguments = (("ptr", results), (mask, self.active or ""), (vector, "zeroinitializer"))
        return code.call(vector, name, *arguments, pure=False)

    def _lane_of(self, type: Type, raw: Raw, buffer: str, lane: str) -> Raw:
        if not buffer:
            return raw
        llvm = scalar_type(type)
        pointer = self.code.emit(f"getelementptr {llvm}, ptr {buffer}, i32 {lane}")
        return Affine(self.code.emit(f"load {llvm}, ptr {pointer}, align 1"))

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def _queue(self) -> None:
        """Load the first addresses.

        The processor speculates that a load does not alias earlier stores of unknown address.  Updates at random addresses
        teach it not to; then the load of each address would wait for the updates before it.
        """
        if self.plain:
            self.queue = [self.alg.buffer("i64", 14 + n) for n in range(AHEAD)]
        for n, slot in enumerate(self.queue):
            self.code.run(f"store i64 {self._read(str(n))}, ptr {slot}, align 8")

    def _read(self, lane: str) -> str:
        """The address of a lane, wide: a load extends it, and an instruction would behind the queue."""
        pointer = self.code.emit(f"getelementptr {self.element}, ptr {self.where}, i32 {lane}")
        # volatile, or LLVM would sink it to its use
        address = self.code.emit(f"load volatile {self.element}, ptr {pointer}, align 4", pure=False)
        return address if self.element == "i64" else self.code.emit(f"zext i32 {address} to i64")

    def _address_of(self, lane: str) -> str:
        """The address of a lane; loads that of a later lane."""
        code = self.code
        if self.queue:
            first, *others = (code.emit(f"load i64, ptr {slot}, align 8", pure=False) for slot in self.queue)
            others.append(self._read(code.emit(f"add i32 {lane}, {AHEAD}")))
            for slot, pointer in zip(self.queue, others, strict=True):
                code.run(f"store i64 {pointer}, ptr {slot}, align 8")
        else:
            first = self._read(lane)
        if self.space is not Space.SHARED:
            return code.emit(f"inttoptr i64 {first} to ptr")
        return code.emit(f"getelementptr i8, ptr %shared, i64 {first}")

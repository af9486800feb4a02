"""The ports `warp`, `cta`, `flow` and `clock`, which lower what meanings ask of them to LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Label, Prototype, Table, Variable
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, from_lanes, scalar_type
from ptxvm.engine.jit.lower import barriers
from ptxvm.engine.jit.memory import barrier_epochs
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Action, Argument, Call, Ending, Goto, Port, Request, Result, Switch
from ptxvm.isa.fragments import Product
from ptxvm.isa.special_registers import WARP


class Peers:
    """The lanes of a collective; the member mask may differ between lanes."""

    def __init__(self, at: NodeBuilder, bound: Bound, members: Raw, payload: tuple[Value, ...]) -> None:
        self.emitter, self.bound, self.alg, self.code, self.width = at, bound, at.alg, at.code, at.code.width
        self.mask, self.payload = members, payload

    @property
    def members(self) -> Value:
        """The lanes that take part, as a mask."""
        return Value(self.alg, u32, self.mask)

    def ballot(self, payload: int = 0) -> Value:
        """The bits of a predicate."""
        self.code.one_warp()
        bits = self.code.mask_bits(self.alg.vector(pred, self.payload[payload].raw))
        return Value(self.alg, u32, self.alg.integer("and", u32, Affine(bits), self.mask))

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The operand of another lane; the own operand where that lane takes no part."""
        value = self.payload[payload]
        if meant:
            barrier_epochs.lanes_meant(self.emitter, lane.raw)
            if self.emitter.kernel.unset_registers is not None:
                self.emitter.given_by = self._or_own(u32, lane.raw, lane.raw, Warp(self.emitter, self.bound).lane.raw)
        if isinstance(value.raw, Affine) and not value.raw.terms:
            return value
        found = self._permuted(value.type, value.raw, lane.raw)
        return Value(self.alg, value.type, self._or_own(value.type, lane.raw, found, value.raw))

    def _or_own(self, type: Type, lane: Raw, theirs: Raw, own: Raw) -> Raw:
        """What another lane has, or what the lane itself has where that one takes no part."""
        if self.alg.known(u32, self.mask) == (0xFFFF_FFFF,) * self.width:
            return theirs
        bit = self.alg.integer("and", u32, self.alg.integer("shr", u32, self.mask, lane), Affine(1))
        return self.alg.select(type, self.alg.compare("ne", u32, bit, Affine(0)), theirs, own)

    def multiply(
        self, product: Product, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value], *further: Sequence[Value]
    ) -> list[Value]:
        """A product of matrices, by the tensor cores of the module's target."""
        from ptxvm.engine.jit.lower import mma_on_host  # noqa: PLC0415 - few kernels multiply matrices, ...
        from ptxvm.engine.jit.values import mma  # noqa: PLC0415 - ... and this imports much

        parts = (a, b, c, *further)
        inputs = [(v.type, v.raw) for part in parts for v in part]
        type = Type.named[f"b{product.d.register}"]
        work = mma_on_host.Multiplication.of(self.bound, product, tuple(map(len, parts)))
        quick = mma.written(self.code.unit, product, work.architecture, fast=self.emitter.kernel.fast)
        return self.emitter.host_call(self.bound, work, inputs, [type] * product.d.registers, quick)

    def _permuted(self, type: Type, raw: Raw, lane: Raw) -> Raw:
        llvm, vector = scalar_type(type), self.alg.vector(type, raw)
        known = self.alg.known(u32, lane)
        if known is not None and (self.width > WARP or len({*known}) > 1):
            order = [n - n % WARP + (other & WARP - 1) for n, other in enumerate(known)]
            return Varying(self.code.shuffle(llvm, self.width, vector, "poison", order), loose=raw.loose)
        self.code.one_warp()
        if isinstance(lane, Affine) and not lane.terms:
            index = str(lane.base & 31) if isinstance(lane.base, int) else self.code.emit(f"and i32 {lane.base}, 31")
            return Affine(self.code.emit(f"extractelement {self.alg.vector_type(type)} {vector}, i32 {index}"), loose=raw.loose)
        index = self.alg.vector(u32, lane)
        if llvm == "i32" and cpu.has("avx512f"):
            return Varying(self._vpermi2(vector, index), loose=raw.loose)
        buffer = self.emitter.buffer(self.alg.vector_type(type), 0)
        self.code.run(f"store {self.alg.vector_type(type)} {vector}, ptr {buffer}, align 64")
        offsets = self.code.emit(f"and <{self.width} x i32> {index}, splat (i32 31)")
        pointers = self.code.emit(f"getelementptr {llvm}, ptr {buffer}, <{self.width} x i32> {offsets}")
        return Varying(self.emitter.gather(llvm, pointers, None), loose=raw.loose)

    def _vpermi2(self, vector: str, index: str) -> str:
        """Any permutation of 32 words by two instructions."""
        half, name = "<16 x i32>", "llvm.x86.avx512.vpermi2var.d.512"
        self.code.unit.declare(name, half, half, half, half)
        low, high = (self.code.shuffle("i32", self.width, vector, "poison", list(range(n, n + 16))) for n in (0, 16))
        parts = []
        for first in (0, 16):
            chosen = self.code.shuffle("i32", self.width, index, "poison", list(range(first, first + 16)))
            parts.append(self.code.call(half, name, (half, low), (half, chosen), (half, high)))
        return self.code.concatenate("i32", parts, 16)


class Warp(Port):
    """The port `warp`."""

    @property
    def lane(self) -> Value:
        """The number of the lane."""
        return Value(self.alg, u32, from_lanes(u32, tuple(n % WARP for n in range(self.width))))

    def active(self) -> Value:
        """The active lanes, as a mask."""
        return Value(self.alg, u32, self.at.active_raw())

    def converge(self, members: Value, *payload: Value) -> Request:
        """Wait for the members of a mask."""
        return Request((members, *payload))

    def converge_warpgroup(self, members: Value) -> Request:
        """Wait for the lanes of the warpgroup: each warp does its part of a product where it begins it."""
        return self.converge(members)

    def together(self, *payload: Value) -> Peers:
        """The active lanes."""
        self.code.one_warp()
        return Peers(self.at, self.bound, self.at.active_raw(), payload)


class Votes(Port):
    """The outcome of a vote at a barrier of the whole CTA."""

    def _counted(self) -> tuple[Affine, Affine]:
        return Affine(self.at.context("ayes_then")), Affine(self.at.context("voters_then"))

    def count(self) -> Value:
        """How many threads voted aye."""
        return Value(self.alg, u32, self._counted()[0])

    def all(self) -> Value:
        """Did all threads vote aye?"""
        return Value(self.alg, pred, self.alg.compare("eq", u32, *self._counted()))

    def any(self) -> Value:
        """Did any thread vote aye?"""
        return Value(self.alg, pred, self.alg.compare("ne", u32, self._counted()[0], Affine(0)))


class Cta(Port):
    """The port `cta`."""

    def barrier(self, number: Value, threads: Value | None = None, vote: Value | None = None) -> Request:
        """Wait at a barrier of the CTA."""
        return Request((number, threads, vote))

    def arrive(self, number: Value, threads: Value) -> None:
        """Arrive without waiting."""
        barriers.record_arrivals(self.at, self.bound, number, threads, "0", waits=False)


class Cluster(Port):
    """The port `cluster`."""

    @property
    def size(self) -> Value:
        """The number of its CTAs."""
        return Value(self.alg, u32, Affine(self.at.kernel.cluster_size))

    def arrive_at_cluster(self, order: Order) -> None:
        """Arrive at the barrier of the cluster."""
        barriers.arrive_at_cluster(self.at)

    def await_cluster(self) -> Request:
        """Wait for the threads of the cluster."""
        return Request(())


class Flow(Port):
    """`flow`: notes how the node ends; `terminators` writes the jumps."""

    action: Action | None = None

    def goto(self, target: Label) -> None:
        """Go to a label."""
        self.action = Goto(target)

    def switch(self, index: Value, table: Table) -> None:
        """Go to one of several labels."""
        self.action = Switch(table, index)

    def call(
        self,
        function: Function | Value,
        arguments: Sequence[Argument] | None = None,
        results: Sequence[Result] | None = None,
        prototype: Prototype | Table | Variable | None = None,
    ) -> None:
        """Call a function."""
        callee, pointer = (None, function.to(u64)) if isinstance(function, Value) else (function, None)
        resolved = self.at.kernel.image.resolve(callee) if callee is not None else None
        self.action = Call(resolved, pointer, arguments or (), results or ())

    def leave(self) -> None:
        """Return from the function."""
        self.action = Ending.LEAVE

    def exit(self) -> None:
        """End the thread."""
        self.action = Ending.EXIT

    def trap(self) -> None:
        """Stop the grid with a fault."""
        self.action = Ending.TRAP

    def breakpoint(self) -> None:
        """Do nothing: no debugger is attached."""
        self.action = Ending.NEXT

    def event(self, number: Value | None = None, mask: Value | None = None) -> None:
        """Do nothing: there are no performance counters."""
        self.action = Ending.NEXT


class Clock(Port):
    """The port `clock`."""

    def sleep(self, nanoseconds: Value) -> None:
        """End the time slice of the warp in a fair kernel; a spin loop that sleeps lasts."""
        kernel = self.at.kernel
        if kernel.fair:
            self.code.run(f"store i32 1, ptr {'%ticks' if kernel.general else '%spins'}, align 4")

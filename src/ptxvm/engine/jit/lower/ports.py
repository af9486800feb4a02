"""The ports `warp`, `cta`, `flow` and `clock`, which lower what meanings ask of them to LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Label, Prototype, Table, Variable
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.lower import barriers
from ptxvm.engine.jit.memory import barrier_epochs
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Action, Argument, Call, Ending, Goto, Port, Request, Result, Switch
from ptxvm.engine.jit.values.exchange import Exchange, Lanes
from ptxvm.isa.fragments import Product


class Peers(Exchange):
    """The lanes of a collective in a node."""

    def __init__(self, at: NodeBuilder, bound: Bound, members: Raw, payload: tuple[Value, ...]) -> None:
        super().__init__(at.alg, members, payload)
        self.emitter, self.bound = at, bound

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The operand of another lane; the own operand where that lane takes no part."""
        if meant:
            barrier_epochs.lanes_meant(self.emitter, lane.raw, self.mask)
            if self.emitter.kernel.unset_registers is not None:
                self.emitter.given_by = self.or_own(u32, lane.raw, lane.raw, Lanes(self.alg).lane.raw)
        return super().at(lane, payload)

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
        quick = mma.shared(self.code.unit, product, work.architecture, fast=self.emitter.kernel.fast)
        return self.emitter.host_call(self.bound, work, inputs, [type] * product.d.registers, quick)


class Warp(Port, Lanes):
    """The port `warp`."""

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
        return Affine(self.at.launch_field("ayes_then")), Affine(self.at.launch_field("voters_then"))

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
        barriers.arrive_at_cluster(self.at, order)

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
            self.code.run(f"store i32 1, ptr {kernel.slice_counter}, align 4")

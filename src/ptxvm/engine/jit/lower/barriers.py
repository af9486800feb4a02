"""Barriers for some threads of a CTA: arrivals at the barrier record of the CTA (PTX 9.7.13.1)."""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.types import pred, u32
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.cta_barriers import BARRIERS, CtaBarriers
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, text
from ptxvm.engine.jit.memory import barrier_epochs
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Request
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers

WORDS = f"<{WARP} x i32>"


def arrive(at: NodeBuilder, bound: Bound, request: Request) -> None:
    """Let lanes arrive at a barrier and wait."""
    number, threads, vote = request.values
    if number is None:
        raise TypeError(f"'{bound.i.mnemonic}' gives its barrier no number")
    ayes = "0" if vote is None else at.bits_of(vote.raw)
    at.waits_as_one = isinstance(number.raw, Affine) and not number.raw.terms
    record_arrivals(at, bound, number, threads, ayes, waits=True)


def record_arrivals(at: NodeBuilder, bound: Bound, number: Value, threads: Value | None, ayes: str, *, waits: bool) -> None:
    """Record which lanes arrive at which barrier."""
    code = at.code
    code.one_warp()
    if not isinstance(number.raw, Affine) or number.raw.constant is None or number.raw.constant >= BARRIERS:
        wrong = Value(at.alg, pred, at.alg.compare("ge", u32, number.raw, Affine(BARRIERS)))
        at.refuse(bound, wrong, NoSuchBarrier(), [(u32, number.raw)])
    numbers = _spread(at, number, 10)
    counts = "null" if threads is None else _spread(at, threads, 11)
    barrier_epochs.warp_arrives(at, numbers, counts)
    arguments = f"ptr {numbers}, ptr {counts}, i32 {ayes}, i1 {'true' if waits else 'false'}"
    code.run(f"call void @ptxvm.arrive(ptr %cta_barriers, i32 %warp, i32 {at.active_text()}, {arguments})")


def arrive_at_cluster(at: NodeBuilder, order: Order) -> None:
    """Record which lanes arrive at the barrier of the cluster."""
    at.code.one_warp()
    barrier_epochs.warp_arrives_at_cluster(at, releases=order is Order.RELEASE)
    first = cluster_records(at.kernel)
    at.code.run(f"call void @ptxvm.cluster.arrive(ptr %cta_barriers, ptr {first}, i32 %warp, i32 {at.active_text()})")


def wait_for_cluster(at: NodeBuilder) -> None:
    """Record which lanes wait for the threads of the cluster."""
    at.code.one_warp()
    at.waits_as_one = True
    barrier_epochs.warp_waits_for_cluster(at)
    at.code.run(f"call void @ptxvm.cluster.wait(ptr %cta_barriers, i32 %warp, i32 {at.active_text()})")


def wait_for_warpgroup(at: NodeBuilder, members: Value | None) -> None:
    """Record which lanes wait for the other warps of the warpgroup."""
    at.code.one_warp()
    at.waits_as_one = True
    if members is not None:
        barrier_epochs.lanes_meet(at, members.raw, whole=True)
    at.code.run(f"call void @ptxvm.warpgroup.wait(ptr %cta_barriers, i32 %warp, i32 {at.active_text()})")


def wait_for_columns(at: NodeBuilder, bound: Bound, columns: Value | None) -> None:
    """Tell the host which lanes wait for columns of tensor memory: it releases them."""
    at.code.one_warp()
    at.waits_as_one = True
    if columns is not None:
        at.host_call(bound, ColumnRequest(), [(columns.type, columns.raw)], [])


def cluster_records(kernel: KernelContext) -> str:
    """The barrier record of the first CTA of the cluster."""
    return "%cta_barriers" if kernel.cluster_size == 1 else "%cluster.records"


def _spread(at: NodeBuilder, value: Value, buffer: int) -> str:
    """Store the values of all lanes; returns the address."""
    buffered = at.buffer(WORDS, buffer)
    at.code.run(f"store {WORDS} {at.alg.vector(u32, value.raw)}, ptr {buffered}, align 64")
    return buffered


@dataclass(frozen=True, slots=True)
class NoSuchBarrier:
    """Host call: the fault of a barrier number out of range."""

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Raise the fault."""
        first = int(np.argmax(values[0] >= BARRIERS))
        said = f"there is no barrier {values[0][first]}: they are 0 to 15"
        raise AccessFault("invalid-barrier", said, lane_index=first)


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """Host call: lanes of a warp wait for columns of tensor memory."""

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Count them; the warp goes on when all are there, and so many columns are free."""
        host.columns.arrive(bound, threads, int(values[0][0]))


class Outcome:
    """The outcome of a vote, for the lanes that waited at the barrier."""

    def __init__(self, at: NodeBuilder, bound: Bound, request: Request) -> None:
        self.at, self.alg, self.code = at, at.alg, at.code
        number = request.values[0]
        if number is None:
            raise TypeError("a barrier without a number")
        self.number = number.raw

    def _word(self, which: int) -> Raw:
        """A word of the outcome of the barrier: 0 for the ayes, 1 for the voters."""
        cta_barriers, code = CtaBarriers(self.at.kernel.warps), self.code
        row = code.emit(f"mul i32 %warp, {2 * BARRIERS}")
        start = code.emit(f"add i32 {row}, {cta_barriers.outcome + which}")
        if isinstance(self.number, Affine) and not self.number.terms:
            pair = code.emit(f"shl i32 {text('i32', self.number.base)}, 1")
            pointer = code.emit(f"getelementptr i32, ptr %cta_barriers, i32 {code.emit(f'add i32 {start}, {pair}')}")
            return Affine(code.emit(f"load i32, ptr {pointer}, align 4", pure=False))
        pairs = code.emit(f"shl {WORDS} {self.alg.vector(u32, self.number)}, splat (i32 1)")
        offsets = code.emit(f"add {WORDS} {pairs}, {code.splat('i32', start)}")
        pointers = code.emit(f"getelementptr i32, ptr %cta_barriers, {WORDS} {offsets}")
        return Varying(self.at.gather("i32", pointers, self.at.active_vector()))

    def count(self) -> Value:
        """How many threads voted aye."""
        return Value(self.alg, u32, self._word(0))

    def all(self) -> Value:
        """Did all threads vote aye?"""
        return Value(self.alg, pred, self.alg.compare("eq", u32, self._word(0), self._word(1)))

    def any(self) -> Value:
        """Did any thread vote aye?"""
        return Value(self.alg, pred, self.alg.compare("ne", u32, self._word(0), Affine(0)))

"""The port `tasks`: asynchronous copies (PTX 9.7.9.25).  They may complete at any time; here they complete at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.types import b32, b64, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying
from ptxvm.engine.jit.memory.memory import Memory
from ptxvm.engine.jit.node.port import Port
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.bulk import PIECE, pieces
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Array
from ptxvm.machine.per_lane import LaneNumbers

WORD = 4  # bytes
HELD = np.dtype(np.uint32)


class Tasks(Port):
    """The port `tasks`."""

    def copy(self, target: Value, source: Value, size: Value, given: Value | None) -> None:
        """Copy from .global to .shared: all bytes, or `given` bytes and then zeros."""
        count = size.raw.constant // WORD
        if given is None or (isinstance(given.raw, Affine) and given.raw.constant == count * WORD):
            self._whole(target, source, count)
            return
        outer = self.at.guard
        given = given.to(u32)
        whole, none = given.compare("ge", given.lift(count * WORD)), given.eq(0)
        self.at.refuse(self.bound, ~(whole | none), PartialCopy(count * WORD),
                       [(u64, target.raw), (u64, source.raw), (u32, given.raw)])  # fmt: skip
        self._under(outer, whole, lambda: self._whole(target, source, count))
        self._under(outer, none, lambda: self._store(target, [Value(self.alg, b32, Affine(0))] * count))
        self.at.guard = outer

    def _under(self, outer: Raw | None, chosen: Value, work: Callable[[], object]) -> None:
        """Do something for the lanes that a predicate selects."""
        both = chosen.raw if outer is None else self.alg.integer("and", pred, outer, chosen.raw)
        self.at.guard = Varying(self.alg.vector(pred, both))
        work()
        self.at.guard = outer

    def _whole(self, target: Value, source: Value, count: int) -> None:
        self._store(target, Memory(self.at, self.bound).load("global", b32, source, count))

    def _store(self, target: Value, words: list[Value]) -> None:
        Memory(self.at, self.bound).store("shared", b32, target, words)

    def copy_bulk(
        self, to: str, target: Value, origin: str, source: Value, size: Value, mbarrier: Value | None,
        update: Callable[[Value, Value], Value] | None,
    ) -> None:  # fmt: skip
        """Copy at once, and complete as many bytes at the mbarrier."""
        outer = self.at.guard
        self.at.host_call(self.bound, BulkCopy(to, origin), [(u64, target.raw), (u64, source.raw), (u32, size.raw)], [])
        if mbarrier is not None and update is not None:
            some, count = size.ne(0), [size.to(u64)]
            port = Memory(self.at, self.bound)
            self._under(outer, some, lambda: port.atomic(
                "shared", b64, mbarrier, update, count, order=Order.RELAXED, scope=Scope.CTA, mbarrier="complete"
            ))  # fmt: skip

    def multiply(
        self, product: WarpgroupProduct, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Multiply at once."""
        from ptxvm.engine.jit.lower import warpgroup_on_host  # noqa: PLC0415 - few kernels multiply matrices

        parts: list[Sequence[Value]] = [d, a, [b, enabled], *further]
        work = warpgroup_on_host.WarpgroupMultiplication.of(self.bound, product, tuple(map(len, parts)))
        inputs = [(v.type, v.raw) for part in parts for v in part]
        return self.at.host_call(self.bound, work, inputs, [b32] * len(d))

    def commit(self, kind: str = "copies") -> None:
        """All copies are done."""

    def wait(self, groups: Value | None, kind: str = "copies", *, reading: bool = False) -> None:
        """All copies are done."""

    def arrive(
        self, space: str, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None
    ) -> None:
        """Update the mbarrier, and once more since all copies are complete."""
        port = Memory(self.at, self.bound)
        for each, how in ((before, "postpone"), (update, "arrive")):
            if each is not None:
                port.atomic(space, b64, address, each, [], order=Order.RELEASE, scope=Scope.CTA, mbarrier=how)


@dataclass(frozen=True, slots=True)
class PartialCopy:
    """Host call: a copy that reads fewer bytes than it writes."""

    size: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Copy byte by byte."""
        for lane in np.flatnonzero((values[2] > 0) & (values[2] < self.size)):
            target, source, given = (int(column[lane]) for column in values)
            try:
                held = host.memory.read(source, given)
            except AccessFault as wrong:
                raise wrong.at_lane(int(lane)) from None
            words = np.frombuffer(held.ljust(self.size, b"\0"), np.uint8)
            window, own = host.windows["shared"], threads[lane : lane + 1]
            for n in range(self.size):
                place = window.offsets(np.array([target + n], np.uint64), own)
                window.store(np.dtype(np.uint8), place, words[n : n + 1], 1, own)


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """Host call: a bulk copy between spaces."""

    to: str
    origin: str

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Check all addresses, then copy piece by piece."""
        target, source, sizes = values
        whose, at = pieces(sizes.astype(np.int64))
        if not len(whose):
            return
        lanes = threads[whose]
        try:
            there, to = self._places(host, self.to, target[whose] + at, lanes, writing=True)
            here, of = self._places(host, self.origin, source[whose] + at, lanes, writing=False)
        except AccessFault as wrong:
            raise wrong.at_lane(int(whose[wrong.lane_index])) from None
        there[to] = here[of]

    def _places(self, host: Host, space: str, address: Array, lanes: LaneNumbers, *, writing: bool) -> tuple[Array, Array]:
        """A view of memory, and the index of each piece in it."""
        count = PIECE // HELD.itemsize
        if (window := host.windows.get(space)) is not None:
            found = window.resolve(HELD, window.offsets(address, lanes), count, lanes, writing=writing)
        else:
            if host.memory.address_bits == 32:
                address = address & 0xFFFF_FFFF
            found = host.memory.resolve(HELD, address, count, space, lanes, writing=writing)
        view, index = found
        return view, index

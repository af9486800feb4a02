"""The port `tasks`: asynchronous copies, which the machine may end when it likes, and this one ends at once (PTX 9.7.9.25)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxvm.algebra.types import b32, b64, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.memory import Memory
from ptxvm.engine.jit.ports import Port
from ptxvm.engine.jit.raw import Lin, Vec
from ptxvm.machine.faults import AccessFault

WORD = 4  # bytes


class Tasks(Port):
    """`tasks`."""

    def copy(self, target: Value, source: Value, size: Value, given: Value | None) -> None:
        """Copy from .global to .shared: all bytes, or those that are `given`, and zeros."""
        count = size.raw.constant // WORD
        if given is None or (isinstance(given.raw, Lin) and given.raw.constant == count * WORD):
            self._whole(target, source, count)
            return
        outer = self.at.guard
        given = given.to(u32)
        whole, none = given.compare("ge", given.lift(count * WORD)), given.eq(0)
        self.at.refuse(self.bound, ~(whole | none), PartialCopy(count * WORD),
                       [(u64, target.raw), (u64, source.raw), (u32, given.raw)])  # fmt: skip
        self._under(outer, whole, lambda: self._whole(target, source, count))
        self._under(outer, none, lambda: self._store(target, [Value(self.alg, b32, Lin(0))] * count))
        self.at.guard = outer

    def _under(self, outer: Any, chosen: Value, work: Callable[[], None]) -> None:
        """Do something for the lanes that a predicate chooses."""
        both = chosen.raw if outer is None else self.alg.integer("and", pred, outer, chosen.raw)
        self.at.guard = Vec(self.alg.vector(pred, both))
        work()
        self.at.guard = outer

    def _whole(self, target: Value, source: Value, count: int) -> None:
        self._store(target, Memory(self.at, self.bound).load("global", b32, source, count))

    def _store(self, target: Value, words: list[Value]) -> None:
        Memory(self.at, self.bound).store("shared", b32, target, words)

    def copy_bulk(
        self, to: str, target: Value, origin: str, source: Value, size: Value, told: Value | None,
        update: Callable[[Value, Value], Value] | None,
    ) -> None:  # fmt: skip
        """Left to the interpreter."""
        raise Unsupported("a copy in bulk in the JIT")

    def commit(self, kind: str = "copies") -> None:
        """All copies are done."""

    def wait(self, groups: Value | None, kind: str = "copies", *, reading: bool = False) -> None:
        """All copies are done."""

    def arrive(
        self, space: str, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None
    ) -> None:
        """Update at once, and again since all copies are done."""
        port = Memory(self.at, self.bound)
        for each, how in ((before, "postpone"), (update, "arrive")):
            if each is not None:
                port.atomic(space, b64, address, each, [], order="release", scope="cta", mbarrier=how)


@dataclass(frozen=True, slots=True)
class PartialCopy:
    """A copy of fewer bytes than are written."""

    size: int

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> None:
        """Byte by byte."""
        for lane in np.flatnonzero((values[2] > 0) & (values[2] < self.size)):
            target, source, given = (int(column[lane]) for column in values)
            try:
                held = machine.memory.read(source, given)
            except AccessFault as wrong:
                raise wrong.at_lane(int(lane)) from None
            words = np.frombuffer(held.ljust(self.size, b"\0"), np.uint8)
            window, own = machine.windows["shared"], threads[lane : lane + 1]
            for n in range(self.size):
                window.store(np.dtype(np.uint8), np.array([target + n & 0xFFFF_FFFF], np.uint64), words[n : n + 1], 1, own)

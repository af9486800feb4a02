"""What compiled code asks Python for: the texture unit, where an address lies, and registers that the launch knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine import textures
from ptxvm.engine.jit.ports import Port
from ptxvm.machine import texture_unit
from ptxvm.machine.faults import AccessFault


class Textures(Port, textures.Textures):
    """`tex`."""

    def ask(self, work: texture_unit.Work, types: Sequence[Type], **operands: Sequence[Value] | None) -> list[Value]:
        """What the texture unit gives for some operands."""
        given = {name: list(values) for name, values in operands.items() if values is not None}
        question = TextureQuestion(work, tuple((name, len(values)) for name, values in given.items()))
        inputs = [(v.type, v.raw) for values in given.values() for v in values]
        found: list[Value] = self.at.outside(self.bound, question, inputs, list(types))
        return found


@dataclass(frozen=True, slots=True)
class TextureQuestion:
    """Something to ask the texture unit, and the names of the operands with how many values each has."""

    work: texture_unit.Work
    operands: tuple[tuple[str, int], ...]

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> list[Any]:
        """Ask it for the active lanes."""
        rest = iter(values)
        given = {name: [next(rest) for _ in range(count)] for name, count in self.operands}
        machine.look_up(self.work, given)
        return list(self.work(machine.memory, given))


@dataclass(frozen=True, slots=True)
class Within:
    """Is a generic address in a space?"""

    space: str

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> list[Any]:
        """Look for the active lanes."""
        return [machine.memory.within(self.space, values[0])]


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A special register that is the same for all threads, and not known when the kernel is compiled."""

    name: str

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> list[Any]:
        """Its value now."""
        now = TIMES.get(self.name)
        value = now() if now is not None else machine.environment.get(self.name)
        return [np.full(len(threads), value, np.uint64)]


@dataclass(frozen=True, slots=True)
class NoTarget:
    """An index past the end of a list of targets."""

    name: str
    count: int

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> None:
        """Refuse the least of them."""
        wrong = np.where(values[0] >= self.count, values[0], np.iinfo(values[0].dtype).max)
        first = int(np.argmin(wrong))
        said = f"the index {wrong[first]} is outside the list '{self.name}' of {self.count} targets"
        raise AccessFault("invalid-branch", said, lane_index=first)


TIMES: dict[str, Callable[[], int]] = {
    "globaltimer": time.time_ns,
    "globaltimer_lo": lambda: time.time_ns() & 0xFFFF_FFFF,
    "globaltimer_hi": lambda: time.time_ns() >> 32,
}
LAUNCH = {"gridid", "dynamic_smem_size", "total_smem_size", "aggr_smem_size", "envreg1", "envreg2"}

"""The port of the texture unit: compiled code asks Python for what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine import textures
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.node.port import Port
from ptxvm.machine import texture_unit
from ptxvm.machine.allocation import Lanes
from ptxvm.machine.memory import Array


class Textures(Port, textures.Textures):
    """`tex`."""

    def ask(self, work: texture_unit.Work, types: Sequence[Type], **operands: Sequence[Value] | None) -> list[Value]:
        """What the texture unit gives for some operands."""
        given = {name: list(values) for name, values in operands.items() if values is not None}
        question = TextureQuestion(work, tuple((name, len(values)) for name, values in given.items()))
        inputs = [(v.type, v.raw) for values in given.values() for v in values]
        found: list[Value] = self.at.host_call(self.bound, question, inputs, list(types))
        return found


@dataclass(frozen=True, slots=True)
class TextureQuestion:
    """Something to ask the texture unit, and the names of the operands with how many values each has."""

    work: texture_unit.Work
    operands: tuple[tuple[str, int], ...]

    def __call__(self, host: Host, bound: Bound, threads: Lanes, values: list[Array]) -> list[Array]:
        """Ask it for the active lanes."""
        rest = iter(values)
        given = {name: [next(rest) for _ in range(count)] for name, count in self.operands}
        host.look_up(self.work, given)
        return list(self.work(host.memory, given))

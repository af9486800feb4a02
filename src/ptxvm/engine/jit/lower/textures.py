"""The port `tex`: host calls ask the texture unit, where compiled code does not do it (`texture_plans`, `surface_plans`)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine import textures
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.lower import surface_plans, texture_plans
from ptxvm.engine.jit.node.port import Port
from ptxvm.machine import texture_unit
from ptxvm.machine.per_lane import Array, LaneNumbers


class Textures(Port, textures.Textures):
    """The port `tex`."""

    def ask(self, work: texture_unit.Work, types: Sequence[Type], **operands: Sequence[Value] | None) -> list[Value]:
        """The results of the texture unit for some operands."""
        present = {name: list(values) for name, values in operands.items() if values is not None}
        question = TextureQuestion(work, tuple((name, len(values)) for name, values in present.items()))
        inputs = [(v.type, v.raw) for values in present.values() for v in values]
        plans, table = (surface_plans, "surface_plans") if surface_plans.suits(work) else (texture_plans, "texture_plans")
        quick = plans.written(self.at, work, question.operands)
        arguments = f", i32 {self.at.active_text()}, ptr {self.at.launch_field(table)}" if quick else ""
        found: list[Value] = self.at.host_call(self.bound, question, inputs, list(types), quick, arguments, whole=False)
        return found


@dataclass(frozen=True, slots=True)
class TextureQuestion:
    """Host call: a request to the texture unit, with the names of its operands and their counts of values."""

    work: texture_unit.Work
    operands: tuple[tuple[str, int], ...]

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Ask the texture unit for the active lanes."""
        rest = iter(values)
        named = {name: [next(rest) for _ in range(count)] for name, count in self.operands}
        host.look_up(self.work, named)
        found = list(self.work(host.memory, named))
        if texture_plans.suits(self.work):
            texture_plans.remember(host, named)
        elif surface_plans.suits(self.work):
            surface_plans.remember(host, named)
        return found

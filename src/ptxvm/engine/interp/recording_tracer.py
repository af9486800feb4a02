"""A tracer whose code tells the cohort of each instruction: what it reads before it, and what it has written after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import VECTOR_PARTS, names_in
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import ports
from ptxvm.engine.interp.segment import CARRY_SLOT, Tracer
from ptxvm.engine.operands import OperandValue
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand


class Named(NamedTuple):
    """A value of an instruction in the code: the text of its operand, its type, and its variable."""

    text: str
    type: Type
    raw: str


@dataclass(frozen=True, eq=False, slots=True)
class Recorded:
    """An instruction, and the texts and types of the values that are told with it."""

    bound: Bound
    texts: tuple[str, ...]
    types: tuple[Type, ...]


class RecordingTracer(Tracer):
    """Traces instructions, and around each what it read and wrote."""

    arrived = False  # past the wait of an instruction that was told of when lanes arrived
    assigned: set[int]

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """Trace one instruction, and tell of it; of one that waits when lanes arrive, and when they go on."""
        self.arrived, self.assigned = stage == "run" and "waits" in bound.i.of.effects, set()
        super().instruction(bound, stage)
        if stage == "run":
            self.tell("retired", bound, list(self.written_by(bound)))

    def arguments(self, bound: Bound, found_ports: Mapping[str, ports.Port]) -> list[Any]:
        """The arguments of the meaning; tell of those that it reads."""
        found = super().arguments(bound, found_ports)
        if not self.arrived:
            read = bound.operands.keys() - (bound.written - frozenset(bound.i.of.updates))
            operands = zip(bound.i.of.parameters, found, strict=True)
            values = ((bound.operands[name], value) for name, value in operands if name in read)
            self.tell("issued", bound, [each for node, value in values for each in self.read(bound, node, value)])
        return found

    def assign(self, slot: int, type: Type, value: Value) -> None:
        """Give a slot a new value, and remember that."""
        super().assign(slot, type, value)
        self.assigned.add(slot)

    def tell(self, event: str, bound: Bound, values: list[Named]) -> None:
        """Write a call of the cohort."""
        texts, types, raws = zip(*values, strict=True) if values else ((), (), ())
        recorded = self.code.refer(Recorded(bound, texts, types))
        self.code.run(f"C.{event}({recorded}, L, {self.guard}, ({''.join(f'{raw}, ' for raw in raws)}))")

    def read(self, bound: Bound, node: tree.Operand, value: OperandValue) -> Iterator[Named]:
        """The values of an operand that only a run knows."""
        if isinstance(value, list):
            for part, element in zip(parts_of(node), value, strict=False):
                yield from self.read(bound, part, element)
        elif isinstance(value, Register):
            yield from self.read(bound, node, self.register(value, None, None))
        elif isinstance(value, Value) and varies(bound, node):
            is_address = isinstance(node, tree.Address)
            meant = value.type.as_bits if is_address else self.meant(value.type, next(registers_in(node, bound), None))
            yield Named(print_operand(node), meant, value.raw)

    def written_by(self, bound: Bound) -> Iterator[Named]:
        """The registers that the instruction has written."""
        for name in bound.i.destinations():
            node = bound.operands.get(name)
            for item in node.items if isinstance(node, tree.Vector) else [node]:
                if isinstance(item, tree.Name) and isinstance(register := bound.scope.find(item.text), Register):
                    yield from self.parts(register, item, bound.i.type_of(name))
        if CARRY_SLOT in self.assigned:
            yield Named("CC.CF", pred, self.current[CARRY_SLOT].raw)

    def parts(self, register: Register, item: tree.Name, type: Type | None) -> Iterator[Named]:
        """The elements of a register that have been written."""
        one = VECTOR_PARTS[item.component] if register.count > 1 and item.component else None
        for part in range(register.count) if one is None else (one,):
            slot = self.key(register, part)
            if slot in self.assigned:
                name = item.text if register.count == 1 else f"{item.text}.{'xyzw'[part]}"
                yield Named(name, self.meant(type or register.type, register), self.current[slot].raw)

    def meant(self, type: Type, register: Register | None) -> Type:
        """The type to show a value by: the instruction's, or the register's where the instruction has bits of its size."""
        if register is not None and type is type.as_bits and register.type.bits == type.bits:
            return register.type
        return type


def parts_of(node: tree.Operand) -> Sequence[tree.Operand]:
    """The operands in an operand: items, or the elements of a vector register."""
    match node:
        case tree.Vector() | tree.Group() | tree.Address():
            return node.items
        case tree.Name():
            return [tree.Name(node.text, part) for part in "xyzw"]
    return ()


def varies(bound: Bound, node: tree.Operand) -> bool:
    """Has the operand a value that only a run knows: of a register, a special register, or an address?"""
    if isinstance(node, tree.Address) or any(True for _ in registers_in(node, bound)):
        return True
    return any(special(name.text, name.component) is not None for name in names_in(node))


__all__ = ["Recorded", "RecordingTracer"]

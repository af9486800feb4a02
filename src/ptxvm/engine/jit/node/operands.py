"""The operands of an instruction as affine, uniform or varying values."""

from __future__ import annotations

from typing import Protocol

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.node import special_registers, stack
from ptxvm.engine.jit.node.context import SYMBOL_ALIGNMENT
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.operands import OperandValue
from ptxvm.machine.image import Placement
from ptxvm.machine.window import RANK

RANKS = 0xFF << RANK


class MemoryPort(Protocol):
    """The part of the port `mem` that operands need (`memory.memory`)."""

    def flat(self, space: Space, raw: Raw) -> Raw:
        """An address of a window as a generic one."""

    def to_generic(self, space: Space, address: Value) -> Value:
        """The same for a value."""


class Operands(NodeBuilder):
    """The operands of the instructions of a node: special registers, and addresses of functions and variables."""

    def memory(self, bound: Bound) -> MemoryPort:
        """The port `mem`."""
        raise NotImplementedError

    def register(self, register: Register, component: str | None, type: Type | None) -> OperandValue:
        """A register's value: where a single lane is known to run, that of this lane, one scalar."""
        found, lane = super().register(register, component, type), self.lone_lane()
        if lane is None:
            return found
        return [self.of_lane(each, lane) for each in found] if isinstance(found, list) else self.of_lane(found, lane)

    def special_register(self, bound: Bound, name: str, type: Type, *, volatile: bool) -> Value:
        """The value of a special register."""
        return special_registers.value(self, bound, name, type)

    def _u64(self, n: int) -> Value:
        return Value(self.alg, u64, self.alg.const(u64, n))

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def function_address(self, function: Function) -> Value:
        """The address of a function, from the table of the module's addresses."""
        return self._address(function)

    def _address(self, symbol: Function | Variable) -> Value:
        """The address of a function or variable of the module, which each process loads elsewhere."""
        number, more = self.kernel.image.address_number(symbol)
        start = Value(self.alg, u64, Affine(self.kernel.address(number), bits=-SYMBOL_ALIGNMENT))
        return start + more if more else start

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """The address of a variable in its own space; parameters have generic addresses."""
        frame = self.node.frame
        where, at = self.kernel.image.locate(variable, frame.function)
        if where is Placement.PARAMETER:
            bank: Value = Value(self.alg, u64, Affine("%params.address", bank=0)) + (at + offset)
            return bank
        if where is Placement.ABSOLUTE and variable.space not in (Space.SHARED, Space.LOCAL):
            return self._address(variable) + offset
        address: Value = self._u64(at + offset + (frame.offset if where.in_frame else 0))
        if where.in_frame and frame.root.shared:
            address = stack.start(self, frame) + address
        if where is Placement.ABSOLUTE and variable.space is Space.SHARED and self.kernel.cluster_size > 1:
            based: Value = address + Value(self.alg, u64, Affine("%cluster.base", bits=RANKS))
            return based
        if where is Placement.GENERIC_FRAME:
            raw: Raw = self.memory_port().flat(Space.LOCAL, address.raw)
            return Value(self.alg, u64, raw)
        return address

    def memory_port(self) -> MemoryPort:
        """The port `mem` of the current instruction."""
        raise NotImplementedError

    def as_address(self, bound: Bound, value: Value) -> Value:
        """A register as an address; in a window only the low 32 bits count, so an affine one may wrap."""
        windowed = not bound.summary.spaces.isdisjoint((Space.SHARED, Space.LOCAL))
        raw = value.raw
        if windowed and value.type.bits == 32 and isinstance(raw, Affine) and raw.terms:

            def wide(u: int | str, word: str) -> int | str:
                return u if isinstance(u, int) else self.code.emit(f"{word} i32 {u} to i64")

            terms = tuple((k, wide(u, "sext")) for k, u in raw.terms)
            return Value(self.alg, u64, Affine(wide(raw.base, "zext"), terms))
        return value.to(u64)

    def to_generic(self, bound: Bound, space: Space, address: Value) -> Value:
        """An address of a window as a generic one."""
        made: Value = self.memory(bound).to_generic(space, address)
        return made

"""Where the operands of an instruction are, as values of the JIT."""

from __future__ import annotations

from typing import Protocol

from ptxvm.algebra.types import Type, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.node import special_registers, stack
from ptxvm.engine.jit.node.node import NodeBuilder


class MemoryPort(Protocol):
    """What operands ask of the port `mem` (`memory.memory`)."""

    def flat(self, space: str, raw: Raw) -> Raw:
        """An address of a window as a generic one."""

    def to_generic(self, space: str, address: Value) -> Value:
        """The same as a value, which may be checked."""


class Operands(NodeBuilder):
    """The operands of the instructions of a node: special registers, and addresses of functions and variables."""

    def memory(self, bound: Bound) -> MemoryPort:
        """The port `mem`."""
        raise NotImplementedError

    def special_register(self, bound: Bound, name: str, type: Type, *, volatile: bool) -> Value:
        """Affine in the lane where it can be."""
        return special_registers.value(self, bound, name, type)

    def _u64(self, n: int) -> Value:
        return Value(self.alg, u64, self.alg.const(u64, n))

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def function_address(self, function: Function) -> Value:
        """It is kept with the addresses of the module."""
        return self._address(function)

    def _address(self, symbol: Function | Variable) -> Value:
        """Where a function or variable of the module is, which differs from process to process."""
        number, more = self.kernel.image.address_number(symbol)
        start = Value(self.alg, u64, Affine(self.kernel.address(number), bits=-1 << 4))
        return start + more if more else start

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """Where a variable is, in its own space; parameters are at generic addresses."""
        frame = self.node.frame
        where, at = self.kernel.image.place(variable, frame.function)
        if where == "parameter":
            bank: Value = Value(self.alg, u64, Affine("%params.address", bank=0)) + (at + offset)
            return bank
        if where == "absolute" and variable.space not in ("shared", "local"):
            return self._address(variable) + offset
        place: Value = self._u64(at + offset + (frame.offset if where.endswith("frame") else 0))
        if where.endswith("frame") and frame.root.shared:
            place = stack.start(self, frame) + place
        if where == "generic frame":
            raw: Raw = self.memory_port().flat("local", place.raw)
            return Value(self.alg, u64, raw)
        return place

    def memory_port(self) -> MemoryPort:
        """The port `mem` of the instruction at hand."""
        raise NotImplementedError

    def as_address(self, bound: Bound, value: Value) -> Value:
        """A register as an address: of a window the low 32 bits count, so it does not matter where lanes wrap."""
        windowed = not bound.summary.spaces.isdisjoint(("shared", "local"))
        raw = value.raw
        if windowed and value.type.bits == 32 and isinstance(raw, Affine) and raw.terms:

            def wide(u: int | str, word: str) -> int | str:
                return u if isinstance(u, int) else self.code.emit(f"{word} i32 {u} to i64")

            terms = tuple((k, wide(u, "sext")) for k, u in raw.terms)
            return Value(self.alg, u64, Affine(wide(raw.base, "zext"), terms))
        return value.to(u64)

    def to_generic(self, bound: Bound, space: str, address: Value) -> Value:
        """The port `mem` knows."""
        made: Value = self.memory(bound).to_generic(space, address)
        return made

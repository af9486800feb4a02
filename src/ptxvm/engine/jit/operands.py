"""What the operands of an instruction are, as values of the JIT."""

from __future__ import annotations

import struct
from typing import Any

from ptxvm.algebra.types import Type, f32, f64, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis import constants
from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import VECTOR_PARTS
from ptxvm.analysis.symbols import Label, Prototype, Register, Table, Variable
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit import specials, stack
from ptxvm.engine.jit.algebra import LlvmAlgebra
from ptxvm.engine.jit.code import Code
from ptxvm.engine.jit.plan import Node
from ptxvm.engine.jit.raw import Lin, Raw
from ptxvm.isa.special_registers import COMPONENTS, SPECIAL
from ptxvm.syntax import tree

SPACES = {"global", "shared", "local", "const", "param"}


class Operands:
    """Reads operands; who inherits this knows the registers (`slot`) and the kernel (`kernel`)."""

    alg: LlvmAlgebra
    code: Code
    kernel: Any
    node: Node

    def slot(self, key: tuple[int, int], type: Type) -> Value:
        """What a register holds."""
        raise NotImplementedError

    def key(self, register: Register, part: int = 0) -> tuple[int, int]:
        """A register of this node's function among those of the kernel."""
        raise NotImplementedError

    def memory(self, bound: Bound) -> Any:
        """The port `mem`."""
        raise NotImplementedError

    def operand(self, bound: Bound, name: str) -> Any:
        """An operand as the meaning gets it: a Value, a list of them, a symbol, or None where it was left out."""
        node = bound.operands.get(name)
        if node is None:
            return None
        return self.value(bound, node, bound.i.type_of(name), split="split" in bound.i.operand_type(name).marks)

    def value(self, bound: Bound, node: tree.Operand, type: Type | None, *, split: bool = False) -> Any:
        """The value of an operand, as its type."""
        match node:
            case tree.Address():
                if len(node.items) == 1:
                    return self.address(bound, node.items[0])
                return [self.value(bound, item, type) for item in node.items]
            case tree.Vector():
                element = type
                if split and type is not None:
                    element = Type.named[f"b{type.bits // len(node.items)}"]
                return [self.value(bound, item, element) for item in node.items]
            case tree.Group():
                return [self._argument(bound, item) for item in node.items]
            case tree.Name():
                return self.named(bound, node, type)
            case tree.Unary(op="!"):
                return ~self.value(bound, node.operand, type)
            case tree.Unary(op="-") if not isinstance(node.operand, tree.Integer | tree.Float):
                if any(True for _ in registers_in(node.operand, bound)):  # its sign is a flag of the instruction
                    return self.value(bound, node.operand, type)
        return self.constant(bound, node, type or u64)

    def _argument(self, bound: Bound, node: tree.Operand) -> Any:
        if isinstance(node, tree.Name) and (symbol := bound.scope.find(node.text)) is not None:
            return symbol
        return node

    def named(self, bound: Bound, node: tree.Name, type: Type | None) -> Any:
        """What a name stands for."""
        symbol = bound.scope.find(node.text)
        if isinstance(symbol, Register):
            return self.register(symbol, node.component, type)
        if isinstance(symbol, Label | Table | Prototype):
            return symbol
        if isinstance(symbol, Function):
            if type is None:
                return symbol
            return self.fit(self._address(symbol), type)
        if isinstance(symbol, Variable):
            return self.fit(self.variable_address(symbol), type or u64)
        if node.text == "_":
            return None
        if node.text == "WARP_SZ":
            return Value(self.alg, type or u32, self.alg.const(type or u32, 32))
        return self._special(bound, node, type)

    def register(self, register: Register, component: str | None, type: Type | None) -> Any:
        """A register's value; a vector register is a list of its elements."""
        if register.count > 1:
            parts = range(register.count) if component is None else [VECTOR_PARTS[component]]
            found = [self.fit(self.slot(self.key(register, n), register.type), type) for n in parts]
            return found if component is None else found[0]
        return self.fit(self.slot(self.key(register), register.type), type)

    def fit(self, value: Value, type: Type | None) -> Value:
        """A register's bits as an operand of a type: the low ones of a wider register."""
        if type is None or value.type is type or pred in (value.type, type):
            return value
        if value.type.bits != type.bits:
            value = value.view(value.type.as_unsigned).to(type.as_unsigned)
        return value.view(type)

    def _special(self, bound: Bound, node: tree.Name, type: Type | None) -> Any:
        """A special register; a vector as a whole is a list."""
        found = special(node.text, node.component)
        if found is None:
            raise Unsupported(f"the special register {node.text}")
        if node.component is None and found.name in SPECIAL and SPECIAL[found.name].count > 1:
            return [self._special(bound, tree.Name(node.text, part), type) for part in "xyzw"]
        name = found.name + (f".{'xyzw'[COMPONENTS[found.component]]}" if found.component else "")
        return self.fit(specials.value(self, bound, name, found.type), type)

    def _u64(self, n: int) -> Value:
        return Value(self.alg, u64, self.alg.const(u64, n))

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def _address(self, symbol: Function | Variable) -> Value:
        """Where a function or variable of the module is, which differs from process to process."""
        number, more = self.kernel.image.address_number(symbol)
        start = Value(self.alg, u64, Lin(self.kernel.address(number), shift=4))
        return start + more if more else start

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """Where a variable is, in its own space; parameters are at generic addresses."""
        frame = self.node.frame
        where, at = self.kernel.image.place(variable, frame.function)
        if where == "parameter":
            bank: Value = Value(self.alg, u64, Lin("%params.address", bank=0)) + (at + offset)
            return bank
        if where == "absolute" and variable.space not in ("shared", "local"):
            return self._address(variable) + offset
        place: Value = self._u64(at + offset + (frame.offset if where.endswith("frame") else 0))
        if where.endswith("frame") and frame.root.shared:
            place = stack.start(self, frame) + place  # type: ignore[arg-type]
        if where == "generic frame":
            raw: Raw = self.memory_port().places.flat("local", place.raw)
            return Value(self.alg, u64, raw)
        return place

    def memory_port(self) -> Any:
        """The port `mem` of the instruction at hand."""
        raise NotImplementedError

    def address(self, bound: Bound, node: tree.Operand) -> Value:
        """The address that `[…]` names, before the base of its window is added."""
        offset = 0
        if isinstance(node, tree.Binary) and node.op in ("+", "-"):
            found = constants.evaluate(node.right, lambda _: None)
            offset = int(found) if node.op == "+" else -int(found)  # type: ignore[arg-type]
            node = node.left
        if isinstance(node, tree.Name):
            symbol = bound.scope.find(node.text)
            if isinstance(symbol, Variable):
                return self._in_space(bound, symbol, offset)
            value = self.named(bound, node, None)
            wide = self._widened(bound, value.view(value.type.as_unsigned))
            return wide + offset if offset else wide
        if isinstance(node, tree.Index):
            symbol = bound.scope.find(node.name.text)
            at = int(constants.evaluate(node.index, lambda _: None)) * symbol.element_size  # type: ignore[arg-type]
            return self._in_space(bound, symbol, offset + at)
        return self.constant(bound, node, u64) + offset

    def _widened(self, bound: Bound, value: Value) -> Value:
        """A register as an address: of a window the low 32 bits count, so it does not matter where lanes wrap."""
        windowed = any(w.partition("::")[0] in ("shared", "local") for w in bound.node.words)
        raw = value.raw
        if windowed and value.type.bits == 32 and isinstance(raw, Lin) and raw.terms:

            def wide(u: int | str, word: str) -> int | str:
                return u if isinstance(u, int) else self.code.emit(f"{word} i32 {u} to i64")

            terms = tuple((k, wide(u, "sext")) for k, u in raw.terms)
            return Value(self.alg, u64, Lin(wide(raw.base, "zext"), terms))
        return value.to(u64)

    def _in_space(self, bound: Bound, variable: Variable, offset: int) -> Value:
        """The address of a variable as this instruction needs it: generic where it names no space."""
        value = self.variable_address(variable, offset)
        generic = not any(w.partition("::")[0] in SPACES for w in bound.node.words)
        if generic and variable.space in ("shared", "local") and "mem" in bound.i.of.effects:
            made: Value = self.memory(bound).to_generic(variable.space, value)
            return made
        return value

    # ── constants ───────────────────────────────────────────────────────────────────────

    def constant(self, bound: Bound, node: tree.Operand, type: Type) -> Value:
        """A constant expression as a value of a type."""
        if isinstance(node, tree.Float):
            return self._float(node, type)
        found = constants.evaluate(node, bound.scope.find)
        if isinstance(found, constants.Address):
            if isinstance(found.symbol, Variable):
                return self.fit(self.variable_address(found.symbol, found.offset), type)
            return self.fit(self._address(found.symbol) + found.offset, type)
        if type.is_float or type.is_packed:
            if isinstance(found, float):
                return Value(self.alg, type, self.alg.const(type, found))
            return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, found)).view(type)
        if type is pred:
            return Value(self.alg, pred, self.alg.const(pred, bool(found)))
        return Value(self.alg, type, self.alg.const(type, int(found)))

    def _float(self, node: tree.Float, type: Type) -> Value:
        """A literal by its bits; a double literal for f32 is rounded."""
        bits = node.bits
        if node.width == f64.bits and type.bits == f32.bits:
            (number,) = struct.unpack("<d", struct.pack("<Q", bits))
            bits = self.alg.const(f32, number).constant  # type: ignore[assignment, union-attr]
        elif node.width == f32.bits and type.bits == f64.bits:
            (number,) = struct.unpack("<f", struct.pack("<I", bits))
            (bits,) = struct.unpack("<Q", struct.pack("<d", number))
        return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, bits)).view(type)

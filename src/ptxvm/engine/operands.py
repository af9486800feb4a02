"""Operands over any algebra: the values that a meaning receives, and the destinations of its results.

An engine supplies the registers (`key`, `slot`, `assign`), the addresses of functions and variables, special registers and
windows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32, f32, pred, u32, u64
from ptxvm.algebra.value import Algebra, Value
from ptxvm.analysis import constants
from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import VECTOR_PARTS
from ptxvm.analysis.symbols import Label, Prototype, Register, Table, Variable
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.emulated_products import adds_numbers
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.special_registers import COMPONENTS, SPECIAL, WARP
from ptxvm.machine.initialise import float_bits, number_bits
from ptxvm.syntax import tree

Key: TypeAlias = Any
"""How an engine finds a register: the slot of a file, or its own record of it."""

OperandValue: TypeAlias = Any
"""What a meaning gets for an operand, or gives for a result: a `Value`, a list of them, a symbol, or None.

The syntax line of the instruction says which.
"""


class Operands:
    """Reads and writes operands; `alg` is the algebra of their values."""

    alg: Algebra

    # ── what an engine knows ────────────────────────────────────────────────────────────

    def key(self, register: Register, part: int = 0) -> Key:
        """The key of a register, or of an element of a vector register."""
        raise NotImplementedError

    def slot(self, key: Key, type: Type) -> Value:
        """The value in a register."""
        raise NotImplementedError

    def assign(self, key: Key, type: Type, value: Value) -> None:
        """Give a register a new value, where the guard holds."""
        raise NotImplementedError

    def special_register(self, bound: Bound, name: str, type: Type, *, volatile: bool) -> Value:
        """The value of a special register, or of an element of one."""
        raise NotImplementedError

    def function_address(self, function: Function) -> Value:
        """The address of a function."""
        raise NotImplementedError

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """The address of a variable in its own space; parameters have generic addresses."""
        raise NotImplementedError

    def to_generic(self, bound: Bound, space: Space, address: Value) -> Value:
        """The generic address for an address in a window."""
        raise NotImplementedError

    def as_address(self, bound: Bound, value: Value) -> Value:
        """A register's value as an address."""
        return value.to(u64)

    # ── values ──────────────────────────────────────────────────────────────────────────

    def operand(self, bound: Bound, name: str) -> OperandValue:
        """An operand as a meaning receives it: a Value, a list of them, a symbol, or None where it was left out."""
        node = bound.operands.get(name)
        if node is None:
            return None
        if isinstance(node, tree.Vector) and adds_numbers(bound.i, name):
            return [self.number(bound, *part) for part in zip(node.items, bound.i.shape(name).items, strict=True)]
        return self.value(bound, node, bound.i.type_of(name), split="split" in bound.i.operand_type(name).marks)

    def number(self, bound: Bound, node: tree.Operand, shape: Shape) -> OperandValue:
        """An element of a vector as bits: those of a number of f32 where it is a floating-point constant."""
        found = self.value(bound, node, f32 if shape.kind == "float" else b32)
        return found.view(b32) if isinstance(found, Value) else found

    def value(self, bound: Bound, node: tree.Operand, type: Type | None, *, split: bool = False) -> OperandValue:
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
                return [within_braces(self.value(bound, item, element), element) for item in node.items]
            case tree.Group():
                return [self.argument(bound, item) for item in node.items]
            case tree.Name():
                return self.named(bound, node, type)
        return self.expression(bound, node, type)

    def expression(self, bound: Bound, node: tree.Operand, type: Type | None) -> Value:
        """A register behind `!` or `-`, a register plus an offset, which ptxas adds to its bits, or a constant expression."""
        match node:
            case tree.Unary(op="!") if type is pred or any(True for _ in registers_in(node, bound)):
                return ~self.value(bound, node.operand, type)  # type: ignore[no-any-return]
            case tree.Unary(op="-") if any(True for _ in registers_in(node, bound)):  # its sign is a flag of the instruction
                return self.value(bound, node.operand, type)  # type: ignore[no-any-return]
            case tree.Binary(left=tree.Name() as base) if isinstance(bound.scope.find(base.text), Register):
                value: Value = self.named(bound, base, type)
                whole = value.view(value.type.as_unsigned)
                return (whole + self.constant(bound, node.right, whole.type)).view(value.type)
        return self.constant(bound, node, type or u64)

    def argument(self, bound: Bound, node: tree.Operand) -> Register | Variable | tree.Operand:
        """An argument of a call: the symbol of a register or `.param` variable, or the node of a constant."""
        symbol: Register | Variable | None = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
        if symbol is not None:
            return symbol
        return node

    def named(self, bound: Bound, node: tree.Name, type: Type | None) -> OperandValue:
        """The value of a name."""
        symbol = bound.scope.find(node.text)
        if isinstance(symbol, Register):
            return self.register(symbol, node.component, type)
        if isinstance(symbol, Label | Table | Prototype):
            return symbol
        if isinstance(symbol, Function):
            if type is pred:
                raise Unsupported("a function as a predicate")
            return symbol if type is None else self.fit(self.function_address(symbol), type)
        if isinstance(symbol, Variable):
            return self.fit(self.variable_address(symbol), type or u64)
        if node.text == "_":
            return None
        if node.text == "WARP_SZ":
            return Value(self.alg, type or u32, self.alg.const(type or u32, WARP))
        return self.special(bound, node, type)

    def register(self, register: Register, component: str | None, type: Type | None) -> OperandValue:
        """A register's value; a vector register is a list of its elements."""
        if register.count > 1:
            parts = range(register.count) if component is None else [VECTOR_PARTS[component]]
            found = [self.fit(self.slot(self.key(register, n), register.type), type) for n in parts]
            return found if component is None else found[0]
        return self.fit(self.slot(self.key(register), register.type), type)

    def fit(self, value: Value, type: Type | None) -> Value:
        """A register's bits as an operand of a type: of a wider register the low bits."""
        if type is None or value.type is type or pred in (value.type, type):
            return value
        if value.type.bits != type.bits:
            value = value.view(value.type.as_unsigned).to(type.as_unsigned)
        return value.view(type)

    def special(self, bound: Bound, node: tree.Name, type: Type | None) -> OperandValue:
        """A special register; a counter is read anew each time.  A vector as a whole is a list."""
        found = special(node.text, node.component)
        if found is None:
            raise Unsupported(f"the special register {node.text}")
        known = SPECIAL.get(found.name)
        if node.component is None and known is not None and known.count > 1:
            return [self.special(bound, tree.Name(node.text, part), type) for part in "xyzw"]
        name = found.name + (f".{'xyzw'[COMPONENTS[found.component]]}" if found.component else "")
        return self.fit(self.special_register(bound, name, found.type, volatile=known is not None and known.volatile), type)

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def address(self, bound: Bound, node: tree.Operand) -> Value:
        """The address of `[…]`, before the base of its window is added."""
        offset = 0
        if isinstance(node, tree.Binary) and node.op in ("+", "-"):
            found = constants.evaluate(node.right, lambda _: None)
            offset = int(found) if node.op == "+" else -int(found)  # type: ignore[arg-type]
            node = node.left
        if isinstance(node, tree.Name):
            symbol = bound.scope.find(node.text)
            if isinstance(symbol, Variable):
                return self.in_space(bound, symbol, offset)
            value = self.named(bound, node, None)
            wide = self.as_address(bound, value.view(value.type.as_unsigned))
            return wide + offset if offset else wide
        if isinstance(node, tree.Index):
            symbol = bound.scope.find(node.name.text)
            at = int(constants.evaluate(node.index, lambda _: None)) * symbol.element_size  # type: ignore[arg-type]
            return self.in_space(bound, symbol, offset + at)
        return self.constant(bound, node, u64) + offset

    def in_space(self, bound: Bound, variable: Variable, offset: int) -> Value:
        """The address of a variable for this instruction: generic where it names no space."""
        value = self.variable_address(variable, offset)
        generic = bound.summary.spaces <= {Space.GENERIC}
        if generic and variable.space in (Space.SHARED, Space.LOCAL) and not bound.i.of.effects.isdisjoint(("mem", "tasks")):
            return self.to_generic(bound, variable.space, value)
        return value

    # ── constants ───────────────────────────────────────────────────────────────────────

    def constant(self, bound: Bound, node: tree.Operand, type: Type) -> Value:
        """A constant expression as a value of a type."""
        if isinstance(node, tree.Float):
            lower = type.kind == "b" and node.width > type.bits  # `1.5` as .b32 is the lower half of its bits (ptxas 13.0)
            held = node.bits & (1 << type.bits) - 1 if lower else float_bits(node, type)
            return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, held)).view(type)
        found = constants.evaluate(node, bound.scope.find)
        if isinstance(found, constants.SymbolAddress):
            if isinstance(found.symbol, Variable):
                return self.fit(self.variable_address(found.symbol, found.offset), type)
            return self.fit(self.function_address(found.symbol) + found.offset, type)
        if type.is_float or type.is_packed:
            if isinstance(found, float):
                return Value(self.alg, type, self.alg.const(type, found))
            return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, found)).view(type)
        if type is pred:
            return Value(self.alg, pred, self.alg.const(pred, bool(found)))
        whole = number_bits(found, type) if isinstance(found, float) else found
        return Value(self.alg, type, self.alg.const(type, whole))

    # ── results ─────────────────────────────────────────────────────────────────────────

    def commit(self, bound: Bound, result: OperandValue) -> None:
        """Write the results of an instruction to its destinations."""
        names = bound.i.destinations()
        if result is None or not names:
            return
        values = result if isinstance(result, tuple) else (result,)
        for name, value in zip(names, values, strict=False):
            node = bound.operands.get(name)
            if node is not None:
                self.write(bound, node, value)

    def write(self, bound: Bound, node: tree.Operand, value: OperandValue) -> None:
        """Write a value to a destination."""
        if isinstance(node, tree.Vector):
            for item, element in zip(node.items, value if isinstance(value, list) else [value], strict=True):
                self.write(bound, item, element)
            return
        if not isinstance(node, tree.Name) or node.text == "_":
            return
        register = bound.scope.find(node.text)
        if register is None:  # a special register, which ptxas lets stand within braces: nothing writes it (PTX 10)
            return
        if isinstance(value, list):
            if register.count > 1:
                for n, element in enumerate(value):
                    self.assign(self.key(register, n), register.type, element)
                return
            (value,) = value
        if register.type is pred and value.type is not pred:
            raise Unsupported(A_PREDICATE)
        part = VECTOR_PARTS.get(node.component or "", 0) if register.count > 1 else 0
        self.assign(self.key(register, part), register.type, value)


A_PREDICATE = "a predicate among the elements of a vector"
"""What ptxas takes beside registers of bits; no section gives it a meaning, and its code differs from case to case."""


def within_braces(value: OperandValue, type: Type | None) -> OperandValue:
    """The value of an element in braces; `Unsupported` for a predicate that stands for a word."""
    if isinstance(value, Value) and value.type is pred and type is not pred:
        raise Unsupported(A_PREDICATE)
    return value


def fitting(value: Value, type: Type) -> Value:
    """A result as the type of its register: a wider one is filled with the sign of an integer, else with zeros (PTX 9.4.1)."""
    if value.type is pred:
        return value
    if value.type.bits != type.bits:
        whole = value if value.type.is_signed else value.view(value.type.as_bits)
        value = whole.to(type.as_bits)
    return value.view(type)

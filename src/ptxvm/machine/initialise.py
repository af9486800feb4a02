"""Initial values: the bytes that a variable begins with (PTX 5.4.4)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import copysign, inf, prod

from ptxvm.algebra.types import Type
from ptxvm.analysis import constants
from ptxvm.analysis.constants import ConstantError, Lookup, SymbolAddress
from ptxvm.analysis.symbols import Variable
from ptxvm.syntax import tree

AddressOf = Callable[[SymbolAddress], int]

FORMATS = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}


def dimensions_of(variable: Variable) -> tuple[int, ...]:
    """The dimensions; an open first dimension has the length of the initialiser, or 0."""
    count = len(variable.initial.items) if isinstance(variable.initial, tree.Vector) else 0
    return tuple(count if d is None else d for d in variable.dimensions)


def size_of(variable: Variable) -> int:
    """How many bytes the variable takes, sized by its initialiser where it is open."""
    return variable.element_size * prod(dimensions_of(variable))


def initial_bytes(variable: Variable, lookup: Lookup, address_of: AddressOf) -> bytes:
    """The initial value of a variable; all that the initialiser leaves out is zero."""
    size = size_of(variable)
    if variable.initial is None or variable.opaque:
        return bytes(size)
    shape = dimensions_of(variable) + ((variable.vector,) if variable.vector > 1 else ())
    return _Initialiser(variable.type, lookup, address_of).encode(variable.initial, shape)


class _Initialiser:
    """Encodes the elements of one variable."""

    def __init__(self, element: Type, lookup: Lookup, address_of: AddressOf) -> None:
        self.type, self.lookup, self.address_of = element, lookup, address_of

    def encode(self, node: tree.Operand, shape: Sequence[int]) -> bytes:
        """A value for each element, row by row."""
        size = self.type.bytes * prod(shape)
        match node:
            case tree.Vector() if shape:
                if len(node.items) > shape[0]:
                    raise ConstantError(f"{len(node.items)} values for {shape[0]} elements", node)
                return b"".join(self.encode(item, shape[1:]) for item in node.items).ljust(size, b"\0")
            case tree.String() if len(shape) == 1 and len(node.text) <= shape[0]:
                return node.text.encode("latin-1").ljust(size, b"\0")
            case _ if not shape:
                return (self.bits(node) & (1 << 8 * size) - 1).to_bytes(size, "little")
        raise ConstantError("a list in braces is needed here", node)

    def bits(self, node: tree.Operand) -> int:
        """The value of one element."""
        if isinstance(node, tree.Integer) and not self.type.is_float:
            return node.value
        if isinstance(node, tree.Float):
            return float_bits(node, self.type)
        value = constants.evaluate(node, self.lookup)
        if isinstance(value, SymbolAddress):
            return value.masked(self.address_of(value))
        if isinstance(value, int) and (not self.type.is_float or self.type.bits not in (32, 64)):
            return value
        return number_bits(float(value), self.type)


def float_bits(literal: tree.Float, type: Type) -> int:
    """The bits of a literal as a type."""
    if constants.keeps_bits(literal, type.bits):
        return literal.bits
    return number_bits(constants.float_value(literal), type)


def number_bits(number: float, type: Type) -> int:
    """The bits of a number, rounded to the float of the type's size; those of an f64 where there is none."""
    as_float, as_bits = FORMATS.get(type.bits, FORMATS[64])
    try:
        packed = struct.pack(as_float, number)
    except OverflowError:
        packed = struct.pack(as_float, copysign(inf, number))
    (bits,) = struct.unpack(as_bits, packed)
    return int(bits)

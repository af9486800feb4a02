"""The values of constant expressions (PTX 4.5.4 to 4.5.6).

Integers have 64 bits and are signed or unsigned; every operation is defined.  Floats are f64.  An address is known only
when the module is loaded: it stays a symbol with an offset (PTX 5.4.4).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from dataclasses import replace
from math import copysign, inf, isnan, nan
from typing import Any

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

BITS = (1 << 64) - 1
SIGN = 1 << 63

Lookup = Callable[[str], Any]  # a symbol by its name: see `analysis.symbols.Symbol`, which stands above this


class ConstantError(ValueError):
    """An expression that has no value; `node` is the part that is wrong."""

    def __init__(self, message: str, node: tree.Node) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True, slots=True)
class SymbolAddress:
    """The address of a variable or function: in its own state space, or `generic`.

    Where there is a `mask`, only those bits of it, moved down: `0xFF00(x)`.
    """

    symbol: Any  # a `Variable` or `Function`
    offset: int = 0
    generic: bool = False
    mask: int = 0

    def masked(self, address: int) -> int:
        """The selected bits of the address, once the address is known."""
        return extract(address, self.mask) if self.mask else address


class Int(NamedTuple):
    """A 64-bit integer: `value` is within the range of `.u64` or `.s64`."""

    value: int
    unsigned: bool = False


Value = Int | float | SymbolAddress


def evaluate(node: tree.Operand, lookup: Lookup = lambda _: None) -> int | float | SymbolAddress:
    """The value of a constant expression; `lookup` finds the symbols whose addresses it takes."""
    value = _evaluate(node, lookup)
    return value.value if isinstance(value, Int) else value


def float_value(literal: tree.Float) -> float:
    """The number that the bits of a literal encode."""
    number: float
    if literal.width == 32:
        (number,) = struct.unpack("<f", struct.pack("<I", literal.bits))
    else:
        (number,) = struct.unpack("<d", struct.pack("<Q", literal.bits))
    return number


def keeps_bits(literal: tree.Float, bits: int) -> bool:
    """Does a literal stand for its bits as they are in a number of so many bits, NaN payloads too?

    One of that width does; and the 32 bits of a `0f` are the lower half of an f64, with a zero above them (ptxas 13.0, an
    H200).
    """
    return literal.width == bits or (literal.width == 32 and bits == 64)


def extract(value: int, mask: int) -> int:
    """The bits of the mask, moved to the lowest position (PTX 5.4.4)."""
    return (value & mask) >> (mask & -mask).bit_length() - 1


def _integer(value: int, *, unsigned: bool) -> Int:
    """A result modulo 2^64."""
    value &= BITS
    return Int(value, unsigned=True) if unsigned else Int((value ^ SIGN) - SIGN)


def _evaluate(node: tree.Operand, lookup: Lookup) -> Value:
    match node:
        case tree.Integer():
            return _integer(node.value, unsigned=node.unsigned or node.value >= SIGN)
        case tree.Float():
            return float_value(node)
        case tree.Name():
            return _name(node, lookup)
        case tree.Index():
            return _index(node, lookup)
        case tree.Call():
            return _call(node, lookup)
        case tree.Unary():
            return _unary(node, _evaluate(node.operand, lookup))
        case tree.Cast():
            return _integer(_int(node.operand, lookup).value, unsigned=node.type.removeprefix(".") == "u64")
        case tree.Binary():
            return _chain(node, lookup)
        case tree.Conditional():
            return _conditional(node, lookup)
    raise ConstantError("this is not a constant", node)


def _int(node: tree.Operand, lookup: Lookup) -> Int:
    value = _evaluate(node, lookup)
    if not isinstance(value, Int):
        raise ConstantError("an integer is needed here", node)
    return value


# ── addresses ───────────────────────────────────────────────────────────────────────────


def _name(node: tree.Name, lookup: Lookup) -> Value:
    if node.text == "WARP_SZ":
        return Int(WARP)
    symbol = lookup(node.text)
    if symbol is None or node.component is not None:
        raise ConstantError(f"'{node.text}' is not a constant", node)
    return SymbolAddress(symbol)


def _index(node: tree.Index, lookup: Lookup) -> SymbolAddress:
    base = _name(node.name, lookup)
    if not isinstance(base, SymbolAddress):
        raise ConstantError(f"'{node.name.text}' has no elements", node)
    return SymbolAddress(base.symbol, _int(node.index, lookup).value * base.symbol.element_size)


def _call(node: tree.Call, lookup: Lookup) -> Value:
    """`generic(x)`, or a mask: `0xFF00(x)`."""
    value = _evaluate(node.argument, lookup)
    if isinstance(node.function, tree.Integer):
        mask = node.function.value
        if not mask or mask & ~BITS:
            raise ConstantError("a mask has 1 to 64 bits", node.function)
        if isinstance(value, SymbolAddress):
            return replace(value, mask=mask)
        if isinstance(value, Int):
            return Int(extract(value.value & BITS, mask))
    elif node.function.text == "generic" and isinstance(value, SymbolAddress):
        return replace(value, generic=True)
    raise ConstantError("this is not the address of a variable", node.argument)


# ── operators ───────────────────────────────────────────────────────────────────────────


def _unary(node: tree.Unary, value: Value) -> Value:
    if isinstance(value, Int):
        match node.op:
            case "+":
                return value
            case "-":
                return _integer(-value.value, unsigned=value.unsigned)
            case "!":
                return Int(int(not value.value))
            case "~":
                return _integer(~value.value, unsigned=True)
    if isinstance(value, float) and node.op in "+-":
        return -value if node.op == "-" else value
    raise ConstantError(f"'{node.op}' takes an integer", node)


ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
LOGICAL = {"&&": all, "||": any}
DIVISIONS: dict[str, Callable[[int, int, bool], Int]] = {
    "/": lambda a, b, unsigned: _integer(_quotient(a, b), unsigned=unsigned),
    "%": lambda a, b, _: _integer((a & BITS) % (b & BITS), unsigned=False),
}
SHIFTS: dict[str, Callable[[int, int, bool], Int]] = {
    "<<": lambda a, amount, unsigned: _integer(a << amount, unsigned=unsigned),
    ">>": lambda a, amount, unsigned: _integer(a >> amount, unsigned=unsigned),
}


def _quotient(a: int, b: int) -> int:
    """The quotient, truncated as in C."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _chain(node: tree.Binary, lookup: Lookup) -> Value:
    first, operators = tree.chain(node)
    value = _evaluate(first, lookup)
    for each in operators:
        value = _binary(each, value, _evaluate(each.right, lookup))
    return value


def _binary(node: tree.Binary, left: Value, right: Value) -> Value:
    if isinstance(left, Int) and isinstance(right, Int):
        return _of_integers(node, left, right)
    if isinstance(left, float) and isinstance(right, float):
        return _of_floats(node, left, right)
    if isinstance(left, SymbolAddress) and isinstance(right, Int) and node.op in "+-":
        return replace(left, offset=left.offset + (right.value if node.op == "+" else -right.value))
    if isinstance(left, Int) and isinstance(right, SymbolAddress) and node.op == "+":
        return replace(right, offset=right.offset + left.value)
    if isinstance(left, SymbolAddress) or isinstance(right, SymbolAddress):
        raise ConstantError("only an offset can be added to an address", node)
    raise ConstantError("integers and floating-point numbers do not mix", node)


def _of_integers(node: tree.Binary, left: Int, right: Int) -> Int:
    """Both sides are unsigned if one is: the usual arithmetic conversions (PTX 4.5.5)."""
    op, unsigned = node.op, left.unsigned or right.unsigned
    a, b = (left.value & BITS, right.value & BITS) if unsigned else (left.value, right.value)
    if op in ARITHMETIC:
        return _integer(ARITHMETIC[op](a, b), unsigned=unsigned)
    if op in BITWISE:
        return _integer(BITWISE[op](a, b), unsigned=unsigned)
    if op in COMPARISONS:
        return Int(int(COMPARISONS[op](a, b)))
    if op in LOGICAL:
        return Int(int(LOGICAL[op]((a, b))))
    if op in DIVISIONS:
        if not b:
            raise ConstantError("division by zero", node)
        return DIVISIONS[op](a, b, unsigned)
    if op in SHIFTS:  # of the type of the first operand
        return SHIFTS[op](left.value, min(right.value & BITS, 64), left.unsigned)
    raise ConstantError(f"'{op}' is not an operator of constants", node)


def _of_floats(node: tree.Binary, left: float, right: float) -> Value:
    op = node.op
    if op in ARITHMETIC:
        return float(ARITHMETIC[op](left, right))
    if op in COMPARISONS:
        return Int(int(COMPARISONS[op](left, right)))
    if op == "/":
        if right:
            return left / right
        return nan if not left or isnan(left) or isnan(right) else copysign(inf, left) * copysign(1.0, right)
    raise ConstantError(f"'{op}' takes integers", node)


def _conditional(node: tree.Conditional, lookup: Lookup) -> Value:
    condition = _int(node.condition, lookup).value
    yes, no = _evaluate(node.yes, lookup), _evaluate(node.no, lookup)
    if isinstance(yes, Int) and isinstance(no, Int):
        return _integer((yes if condition else no).value, unsigned=yes.unsigned or no.unsigned)
    if isinstance(yes, float) and isinstance(no, float):
        return yes if condition else no
    raise ConstantError("both results are integers, or both are floating-point numbers", node)

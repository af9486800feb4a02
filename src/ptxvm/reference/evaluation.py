"""What an instruction computes from given values: its declared meaning, run once over the eager algebra.

Values are kept as their bits with the type that the operand has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type, b32, f64, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis import constants
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import names_in
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import arrays, value_text
from ptxvm.engine.interp.eager import EAGER
from ptxvm.engine.interp.value_text import as_floats, in_digits
from ptxvm.engine.operands import OperandValue
from ptxvm.isa.model import PORTS, Decoded
from ptxvm.isa.special_registers import WARP, lookup
from ptxvm.reference.reading import Reading
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand

CARRY = "CC.CF"
FLOATS = {16: ("f16",), 32: ("f32", "f16x2"), 64: ("f64",)}
"""The types as which untyped bits are read too, by their size."""

EXACT = {"0f": 8, "0d": 16}  # the digits of PTX's exact floats (PTX 4.5.2)


class BadValue(ValueError):  # noqa: N818 - it says what happened
    """A value that was given does not fit; the message says why."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of an operand: what was written there, and the bits."""

    operand: str
    text: str
    type: Type
    bits: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The operands that went in, and those that came out."""

    inputs: tuple[Quantity, ...]
    outputs: tuple[Quantity, ...]


# ── what has to be given ────────────────────────────────────────────────────────────────


def is_computable(reading: Reading) -> bool:
    """Does the result depend on registers and constants of the lane alone, the carry flag included?"""
    alone = reading.decoded.of.effects <= {"cc"} and bool(reading.decoded.of.sources)
    return alone and computes_registers(reading) and not names_an_address(reading)


def computes_registers(reading: Reading) -> bool:
    """Does it read and write registers of lanes of the warp, and nothing else?"""
    of = reading.decoded.of
    return of.executes and of.effects <= {"cc", "warp", "waits"} and not _has_whole_vector(reading)


def names_an_address(reading: Reading) -> bool:
    """Does an operand name a variable, label or function, whose value only a loaded module knows?"""
    sources = [node for _, node, _ in _sources(reading)]
    return any(isinstance(node, tree.Address) for node in sources) or any(
        _is_address(reading, name) for node in sources for name in names_in(node)
    )


def _has_whole_vector(reading: Reading) -> bool:
    """Is a vector register read as a whole: `%tid`, or one of `.v4`?"""
    names = [name for _, node, _ in _sources(reading) for name in names_in(node) if name.component is None]
    symbols = [reading.bound.scope.find(name.text) or lookup(name.text) for name in names]
    return any(getattr(symbol, "count", 1) > 1 for symbol in symbols)


def wanted(reading: Reading) -> dict[str, Type]:
    """The registers that it reads, and the type as which it reads each; `CC.CF` if it reads the carry flag."""
    found: dict[str, Type] = {}
    for operand, node, type in _sources(reading):
        for name in names_in(node):
            if name.text != "WARP_SZ":
                found.setdefault(print_operand(name) if _is_special(name) else name.text, type or _declared(reading, operand))
    if reading.bound.summary.reads_carry:
        found[CARRY] = pred
    return found


def _sources(reading: Reading) -> Iterator[tuple[str, tree.Operand, Type | None]]:
    """The operands that are read, with their nodes and types; of a vector, those of its elements."""
    i = reading.decoded
    for operand in i.of.sources:
        node = reading.bound.operands.get(operand)
        if node is None:
            continue
        type = i.type_of(operand)
        if isinstance(node, tree.Vector) and "split" in i.operand_type(operand).marks and type is not None:
            type = Type.named[f"b{type.bits // len(node.items)}"]
        yield operand, node, type


def _is_special(name: tree.Name) -> bool:
    return special(name.text, name.component) is not None


def _is_address(reading: Reading, name: tree.Name) -> bool:
    """Does the name stand for a variable, label or function?"""
    symbol = reading.bound.scope.find(name.text)
    return symbol is not None and symbol.shape.kind not in ("register", "special")


def _declared(reading: Reading, operand: str) -> Type:
    """The type of the register itself, where the operand has none."""
    node = reading.bound.operands[operand]
    symbol = reading.bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return symbol.type if symbol is not None and symbol.shape.type is not None else b32


# ── the computation ─────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Carry:
    """The port `cc`: the carry flag."""

    carry: Value


def compute(reading: Reading, values: Mapping[str, int]) -> Evaluation:
    """The results, from the bits of every register in `wanted`."""
    i = reading.decoded
    evaluator = Evaluator(reading, values)
    before = _value(pred, values.get(CARRY, 0))
    carry = Carry(before)
    arguments = [carry if p in PORTS else evaluator.operand(p) for p in i.of.parameters]
    with np.errstate(all="ignore"):
        returned = i.of.meaning(i, *arguments)
        results = returned if isinstance(returned, tuple) else (returned,)
        outputs = list(_outputs(reading, results))
    inputs = list(evaluator.quantities.values())
    if CARRY in values:
        inputs.append(Quantity("cc", CARRY, pred, values[CARRY]))
    if carry.carry is not before:
        outputs.append(Quantity("cc", CARRY, pred, _bits(carry.carry)))
    return Evaluation(tuple(inputs), tuple(outputs))


def _outputs(reading: Reading, results: Sequence[Any]) -> Iterator[Quantity]:  # each a Value, or those of a vector
    """What goes to each destination; a destination that was left out, or is `_`, gets nothing."""
    i = reading.decoded
    for operand, value in zip(i.destinations(), results, strict=False):
        node = reading.bound.operands.get(operand)
        if node is None:
            continue
        parts = list(zip(node.items, value, strict=True)) if isinstance(node, tree.Vector) else [(node, value)]
        for part, element in parts:
            if not (isinstance(part, tree.Name) and part.text == "_"):
                type = i.type_of(operand) or element.type
                shown = type if type.bits == element.type.bits else element.type
                yield Quantity(operand, print_operand(part), _format(i, shown), _bits(element))


def _format(i: Decoded, type: Type) -> Type:
    """The type of a result in an integer register: the format that the instruction names for it, such as tf32."""
    first = next((Type.named[word] for word in i.bound.values() if word in Type.named), type)
    return first if type.kind == "u" and first.is_float and first.bits == type.bits else type


@dataclass(slots=True)
class Evaluator:
    """Operands as Values, remembered as quantities."""

    reading: Reading
    values: Mapping[str, int]
    quantities: dict[tuple[str, str], Quantity] = field(default_factory=dict)

    def operand(self, name: str) -> OperandValue:
        """An operand as the meaning takes it; None where it was left out."""
        found = next(((node, type) for operand, node, type in _sources(self.reading) if operand == name), None)
        return None if found is None else self.value(name, found[0], found[1])

    def value(self, operand: str, node: tree.Operand, type: Type | None) -> OperandValue:
        """A node as a Value, or a list of them."""
        type = type or _declared(self.reading, operand)
        match node:
            case tree.Vector():
                return [self.value(operand, item, type) for item in node.items]
            case tree.Unary(op="!"):
                return ~self.value(operand, node.operand, type)
            case tree.Unary(op="-") if names_in(node.operand):
                return -self.value(operand, node.operand, type)
            case tree.Name(text="WARP_SZ"):
                bits = WARP
            case tree.Name():
                bits = self.values[print_operand(node) if _is_special(node) else node.text]
            case tree.Binary(left=tree.Name() as base) if base.text in self.values:
                bits = (self.values[base.text] + _constant(node.right, type)) % (1 << type.bits)
            case _:
                bits = _constant(node, type)
        self.quantities.setdefault((operand, print_operand(node)), Quantity(operand, print_operand(node), type, bits))
        return _value(type, bits)


def _constant(node: tree.Operand, type: Type) -> int:
    """The bits of a constant expression as an operand of a type (PTX 4.5)."""
    mask = (1 << type.bits) - 1
    if isinstance(node, tree.Float) and (not type.is_float or constants.keeps_bits(node, type.bits)):
        return node.bits & mask
    value = constants.evaluate(node)
    if isinstance(value, float):
        return float_bits(value, type)
    if isinstance(value, int):
        return int(bool(value)) if type is pred else value & mask
    raise BadValue(f"'{print_operand(node)}' is an address, which only a loaded module has")


def _value(type: Type, bits: int) -> Value:
    if type is pred:
        return Value(EAGER, pred, EAGER.const(pred, bool(bits)))
    plain = type.as_bits
    return Value(EAGER, plain, EAGER.const(plain, bits)).view(type)


def _bits(value: Value) -> int:
    if value.type is pred:
        return int(bool(value.raw))
    raw = value.view(value.type.as_bits).raw
    if arrays.dtype(value.type.as_bits) == arrays.B128:
        return int(raw["lo"]) | int(raw["hi"]) << 64
    return int(raw)


# ── values as people write them ─────────────────────────────────────────────────────────


def bits_of(text: str, type: Type) -> int:
    """The bits that a text stands for, of a type.

    A decimal number is a number; hexadecimal, octal and binary ones are bits; `0f` and `0d` with their digits are the
    bits of a float; packed types take the elements too, the lowest first: `1.5,2`.  Raises `BadValue`.
    """
    text = text.strip()
    if type is pred:
        words = {"0": 0, "1": 1, "false": 0, "true": 1}
        if text.lower() not in words:
            raise BadValue(f"'{text}' is no predicate: give true or false")
        return words[text.lower()]
    if "," in text and type.is_packed:
        parts = text.split(",")
        if len(parts) != type.lanes:
            raise BadValue(f"{type} has {type.lanes} elements, and '{text}' has {len(parts)}")
        return sum(bits_of(part, type.element) << n * type.element.bits for n, part in enumerate(parts))
    digits = EXACT.get(text[:2].lower())
    if digits and len(text) == digits + 2 and _is_hexadecimal(text[2:]):
        return _fitting(int(f"0x{text[2:]}", 0), text, type)
    return _number(text, type)


def _number(text: str, type: Type) -> int:
    try:
        number: float = int(text, 0)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            raise BadValue(f"'{text}' is not a number") from None
    are_bits = isinstance(number, int) and text.lstrip("+-")[:2].lower() in ("0x", "0b", "0o")
    if type.is_float and not type.is_packed and not are_bits:
        return float_bits(float(number), type)
    if isinstance(number, float):
        if type.kind == "b" and type.bits in (32, 64):
            return float_bits(number, Type.named[f"f{type.bits}"])
        raise BadValue(f"'{text}' is not an integer, and {type} is wanted")
    return _fitting(number, text, type)


def float_bits(number: float, type: Type) -> int:
    """The bits of a number, rounded once to a floating-point type."""
    if type.bits < 16:
        raise BadValue(f"a {type} has few numbers: give its bits, such as 0x38")
    with np.errstate(all="ignore"):
        return _bits(Value(EAGER, f64, np.float64(number)).to(type))


def _fitting(number: int, text: str, type: Type) -> int:
    if not -(1 << type.bits - 1) <= number < 1 << type.bits:
        raise BadValue(f"'{text}' does not fit the {type.bits} bits of {type}")
    return number & (1 << type.bits) - 1


def _is_hexadecimal(text: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in text)


def readings(bits: int, type: Type) -> list[tuple[str, Type]]:
    """Untyped bits as floating-point numbers of their size, where these are normal numbers or zeros, but not all zeros."""
    found = []
    for other in (Type.named[name] for name in FLOATS.get(type.bits, ()) if type.kind == "b"):
        numbers = as_floats(bits, other)
        smallest = np.finfo(numbers[0].dtype).smallest_normal
        if bits and all(np.isfinite(number) and (number == 0 or abs(number) >= smallest) for number in numbers):
            found.append((", ".join(map(in_digits, numbers)), other))
    return found


def constants_of(reading: Reading) -> dict[str, int]:
    """The operands that are constants, with their bits."""
    found = {}
    for operand, node, type in _sources(reading):
        names = [name for name in names_in(node) if name.text != "WARP_SZ"]
        if type is not None and not isinstance(node, tree.Vector | tree.Address | tree.Group) and not names:
            found[operand] = _constant(node, type)
    return found


def hexadecimal(quantity: Quantity) -> str:
    """The bits, all of them."""
    return value_text.hexadecimal(quantity.type, quantity.bits)


def number(quantity: Quantity) -> str:
    """The bits as the type has them; for untyped ones, unsigned."""
    return "" if quantity.type is pred else value_text.number(quantity.type, quantity.bits)

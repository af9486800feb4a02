"""Remedies for wrong operand types: a literal of the right type, or a conversion."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ptxvm.algebra.types import Type, f16, f32, f64, pred
from ptxvm.diagnostics import numbers
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax.lexer import integer

Remedy = str | Callable[[str], str]


def remedy(shape: Shape, type: Type | None) -> Remedy:
    """The help for an operand of this shape where a type is required; empty if none is known."""
    if shape.kind == "special":
        return lambda text: f"`mov.{shape.type.name if shape.type else 'u32'} r, {text};` reads it into a register"
    if type is None:
        return ""
    if shape.kind == "integer" and type.is_float:
        return lambda text: integer_as_float(text, type)
    if shape.kind == "float":
        return lambda text: float_as(text, type)
    if shape.kind == "register" and shape.type is not None and not shape.detail:
        return conversion(shape.type, type)
    return ""


def integer_as_float(text: str, type: Type) -> str:
    """The help for an integer such as `1` where a float is required."""
    if type not in (f32, f64):
        digits = text.lstrip("-")
        found = integer(digits) if digits.isdecimal() else None
        return "" if found is None else in_register(found[0] * (-1) ** (len(text) - len(digits)), type)
    number = numbers.as_float(text, type.bits)
    return f"write `{number}`" if number else "a float has a point, or is exact bits: `1.0`, `0f3F800000`"


def float_as(text: str, type: Type) -> str:
    """The help for `1.0` where an integer, or a float type without constants, is required."""
    try:
        value = float(text)
    except ValueError:
        return ""
    if type.is_float:
        return in_register(value, type)
    return f"write `{int(value)}`" if value.is_integer() else f"a {type} constant is an integer"


def in_register(value: float, type: Type) -> str:
    """The bits of a constant of 16 bits, which PTX does not write as a float."""
    if type.bits != 16:
        return ""
    try:
        packed = struct.pack(">e" if type is f16 else ">f", float(value))
    except OverflowError:
        return ""
    return f"a {type} has no constants: `mov.b16 h, 0x{packed[:2].hex().upper()};` puts the bits into a register"


def conversion(actual: Type, type: Type) -> Remedy:
    """The help for a register of one type where an operand of another is required."""
    if type is pred:
        return "" if actual.is_float else f"`setp.ne.{actual.as_bits.name} p, {{}}, 0;` makes a predicate of it".format
    if actual is pred:
        return "`selp.b32 r, 1, 0, {};` makes a number of it".format
    if actual.is_packed or type.is_packed or max(actual.bits, type.bits) > 64:
        return ""
    source, target = numeric(actual, type), numeric(type, actual)
    if actual.is_float and type.is_float:
        return f"`cvt{'.rn' if target.bits < source.bits else ''}.{target.name}.{source.name}` converts it"
    if actual.is_float != type.is_float and "b" not in (actual.kind, type.kind):
        rounding = ".rzi" if actual.is_float else ".rn"
        same = f", `mov.b{actual.bits}` copies its bits" if actual.bits == type.bits else ""
        return f"`cvt{rounding}.{target.name}.{source.name}` converts the value{same}"
    if actual.bits < type.bits:
        return f"`cvt.{target.name}.{source.name}` widens it"
    return f"`cvt.{target.name}.{source.name}` takes its lower {type.bits} bits" if actual.bits > type.bits else ""


def numeric(type: Type, other: Type) -> Type:
    """The type under which `cvt` takes a value; bits become an integer type, signed like the other type."""
    if type.kind != "b":
        return type
    return type.as_signed if other.is_signed else type.as_unsigned


__all__ = ["remedy"]

"""Values as people write them: the bits of a register or of memory, by their type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from ptxvm.algebra.derived.formats import FORMATS, decode, decode_scale
from ptxvm.algebra.types import Type, b8, pred
from ptxvm.algebra.value import Value
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.eager import EAGER

MOST_DIGITS = 16
"""Digits behind the first one that tell every f64 from its neighbours."""

PLAIN = 1e-4, 1e16
"""Numbers between these are written without an exponent."""


def text(type: Type, bits: int) -> str:
    """The value as its type says; untyped bits and predicates as `hexadecimal` has them."""
    return hexadecimal(type, bits) if type is pred or type.kind == "b" else number(type, bits)


def hexadecimal(type: Type, bits: int) -> str:
    """The bits, all of them; a predicate as true or false."""
    if type is pred:
        return str(bool(bits)).lower()
    return f"0x{bits:0{-(-type.bits // 4)}x}"


def number(type: Type, bits: int) -> str:
    """The bits as the type has them; untyped ones are unsigned."""
    if type.is_float:
        return ", ".join(floats(bits, type))
    if type.is_packed:
        return ", ".join(str(part) for part in _parts(bits, type))
    return str(signed(bits, type.bits) if type.is_signed else bits)


def signed(bits: int, width: int) -> int:
    """The bits as a two's complement number."""
    return bits - (1 << width) if bits >> width - 1 else bits


def floats(bits: int, type: Type) -> list[str]:
    """The bits as floating-point numbers of the type, the lowest element first; of integers there are none."""
    return [in_digits(number) for number in as_floats(bits, type)]


def in_digits(number: np.floating) -> str:
    """The fewest digits that tell a number from its neighbours, all of an integer; an exponent only far from 1."""
    type, value = np.dtype(number.dtype).type, float(number)
    if not np.isfinite(value) or (value.is_integer() and abs(value) < PLAIN[1]):
        return str(value)
    digits = next(text for n in range(MOST_DIGITS + 1) if type(float(text := f"{value:.{n}e}")) == number)
    if value and not PLAIN[0] <= abs(value) < PLAIN[1]:
        return str(float(digits))
    return f"{Decimal(digits):f}"


def as_floats(bits: int, type: Type) -> list[np.floating]:
    """The elements as floating-point numbers, the lowest first; none where the type has none."""
    element = type.element
    if type.is_float and type.bits // type.lanes < 16:
        return _small_floats(bits, type)
    if not element.is_float:
        return []
    held = arrays.dtype(element)
    parts = [bits >> n * element.bits & (1 << element.bits) - 1 for n in range(type.bits // element.bits)]
    return [np.array([part], f"u{held.itemsize}").view(held)[0] for part in parts]


def _small_floats(bits: int, type: Type) -> list[np.floating]:
    """Floats of 8, 6 and 4 bits (PTX 5.2.3) as f32, which holds them exactly; those of 6 bits lie in a byte each."""
    name, width = type.name.partition("x")[0], type.bits // type.lanes
    codes = [bits >> n * width & (1 << width) - 1 for n in range(type.lanes)]
    values = [Value(EAGER, b8, EAGER.const(b8, code)) for code in codes]
    if name == "ue8m0":
        return [np.float32(decode_scale(value).raw) for value in values]
    return [np.float32(decode(value, FORMATS[name.removeprefix("u")]).raw) for value in values]


def _parts(bits: int, type: Type) -> list[int]:
    """The elements of a packed value, the lowest first."""
    width = type.element.bits
    parts = [bits >> width * n & (1 << width) - 1 for n in range(type.lanes)]
    return [signed(part, width) for part in parts] if type.element.is_signed else parts

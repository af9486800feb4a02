"""Packed values: several elements in one register, the first in the lowest bits (PTX 5.2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value


def elements(a: Value) -> list[Value]:
    """The elements of a packed value; a value that is not packed alone."""
    element = a.type.element
    if element is a.type:
        return [a]
    bits = a.view(a.type.as_bits)
    return [(bits >> n * element.bits).to(element.as_bits).view(element) for n in range(a.type.lanes)]


def pack(parts: Sequence[Value], type: Type) -> Value:
    """One value of the elements, which have the whole width together."""
    bits = type.as_bits
    total = parts[0].view(parts[0].type.as_bits).to(bits)
    for n, part in enumerate(parts[1:], 1):
        total = total | part.view(part.type.as_bits).to(bits) << n * part.type.bits
    return total.view(type)


def each(function: Callable[..., Value], *operands: Value) -> Value:
    """`function` of the first elements, of the second, and so on, packed again; of a scalar, the function itself."""
    type = operands[0].type
    if type.lanes == 1:
        return function(*operands)
    return pack([function(*parts) for parts in zip(*map(elements, operands), strict=True)], type)

"""Packed values: several elements in one register, the first in the lowest bits (PTX 5.2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value


def elements(a: Value, type: Type | None = None) -> list[Value]:
    """The elements of a packed value, each as that type (its own, if none is given), the lowest first."""
    type = type or a.type.element
    bits = a.view(a.type.as_bits)
    return [(bits >> at).to(type.as_bits).view(type) for at in range(0, bits.type.bits, type.bits)]


def pack(parts: Sequence[Value], type: Type) -> Value:
    """The value of that type whose elements these are, the lowest first."""
    size = type.bits // len(parts)
    whole, *others = (part.view(part.type.as_bits).to(type.as_bits) for part in parts)
    for n, part in enumerate(others, 1):
        whole |= part << n * size
    return whole.view(type)


def each(function: Callable[..., Value], a: Value, *others: Value) -> Value:
    """`function` of the first elements, of the second, and so on, packed again; of scalars, the function itself.

    An engine may take all elements together: its `derived_each` gives None where it does not.
    """
    if not a.type.is_packed:
        return function(a, *others)
    together = getattr(a.alg, "derived_each", None)
    if together is not None and (made := together(function, a, *others)) is not None:
        return made  # type: ignore[no-any-return]
    return pack(list(map(function, *map(elements, (a, *others)))), a.type)

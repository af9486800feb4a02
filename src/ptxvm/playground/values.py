"""Values of registers, as the page shows them."""

from __future__ import annotations

from ptxvm.algebra.types import Type, pred
from ptxvm.reference.evaluation import Quantity, hexadecimal, number


def shown(type: Type, bits: int) -> str:
    """A value as its type says; a predicate is 0 or 1, untyped bits are hexadecimal digits."""
    if type is pred:
        return str(bits)
    quantity = Quantity("", "", type, bits)
    return hexadecimal(quantity) if type.kind == "b" else number(quantity)


__all__ = ["shown"]

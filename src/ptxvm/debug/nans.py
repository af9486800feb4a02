"""NaNs in the registers that an instruction writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.analysis.symbols import Register
from ptxvm.debug.values import View
from ptxvm.engine.interp import arrays
from ptxvm.machine.per_lane import Array
from ptxvm.syntax import tree

LEAST = 16  # bits of an element: formats of 8 bits and fewer are left alone


def has_nan(view: View) -> Array:
    """Which lanes have a NaN in a register that the instruction of the view writes?"""
    found = np.zeros(len(view.lanes), np.bool_)
    for type, raw in written_floats(view):
        elements = np.ascontiguousarray(raw).view(arrays.dtype(type.element)).reshape(len(raw), type.lanes)
        found |= np.isnan(elements.astype(np.float64)).any(axis=1)
    return found


def written_floats(view: View) -> Iterator[tuple[Type, Array]]:
    """The values of the registers that the instruction writes as floating-point numbers, with their types."""
    bound = view.bound
    for name in bound.i.destinations():
        node, type = bound.operands.get(name), bound.i.type_of(name)
        for each in node.items if isinstance(node, tree.Vector) else [node]:
            symbol = bound.scope.find(each.text) if isinstance(each, tree.Name) else None
            if not isinstance(symbol, Register) or not isinstance(each, tree.Name):
                continue
            meant = type if type is not None and type.is_float and type.bits == symbol.type.bits else symbol.type
            if meant.is_float and meant.element.bits >= LEAST:
                yield meant, view.read(view.named(each.text, each.component)).raw


__all__ = ["has_nan"]

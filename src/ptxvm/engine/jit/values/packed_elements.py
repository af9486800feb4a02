"""Operations on packed elements: all elements of all lanes are one vector, in the order of the bits.

A vector of 32 registers that hold two halves each is one of 64 halves: they need not be taken apart and packed again.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import bf16
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, vector_type
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

APART = (bf16,)  # a bf16 is the upper half of an f32: of one element of a lane and of the other by a mask and by a shift


def each(alg: VectorAlgebra, function: Callable[..., Value], operands: tuple[Value, ...]) -> Value | None:
    """A function of corresponding elements; None where they are better taken apart."""
    type = operands[0].type
    alike = all(x.type.lanes == type.lanes for x in operands)
    if not alike or type.element in APART or all(isinstance(x.raw, Affine) for x in operands):
        return None
    wide = alg.widened(type.lanes)
    made = function(*(Value(wide, x.type.element, _elements(alg, x)) for x in operands))
    whole = wide.vector(made.type, wide.tight(made.type, made.raw))
    return Value(alg, type, Varying(alg.code.bitcast(wide.vector_type(made.type), whole, alg.vector_type(type))))


def _elements(alg: VectorAlgebra, x: Value) -> Raw:
    """The elements of all lanes: a constant if they are alike."""
    type, element = x.type, x.type.element
    known = alg.known(type, x.raw)
    if known is not None:
        parts = {lane >> at & (1 << element.bits) - 1 for lane in known for at in range(0, type.bits, element.bits)}
        if len(parts) == 1:
            return Affine(parts.pop())
    source, target = alg.vector_type(type), vector_type(element, alg.width * type.lanes)
    return Varying(alg.code.bitcast(source, alg.vector(type, alg.tight(type, x.raw)), target))

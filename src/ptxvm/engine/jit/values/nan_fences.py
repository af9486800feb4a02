"""Optimisation fences in f64 arithmetic, whose NaNs keep payload and sign (PTX 9.7.3).

LLVM takes all NaNs for equal: it makes x of `x * 1.0`, which would quiet a NaN, and `a - b` of `a + (-b)`, where the NaN
has another sign.  A fence is no instruction; nothing is merged over it.
numerics="fast" has none.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type, f64
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

MAGNITUDE, ONE, INFINITY = (1 << 63) - 1, 0x3FF << 52, 0x7FF << 52


def operand(alg: VectorAlgebra, type: Type, raw: Raw, name: str, *, varies: bool) -> str:
    """An operand of f64 arithmetic; a fence hides constants with which LLVM would remove the operation."""
    constant = raw.constant if isinstance(raw, Affine) else None
    if type is not f64 or constant is None:
        return name
    size = constant & MAGNITUDE
    if size in (0, ONE) or size >= INFINITY:
        return fenced(alg, name, varies=varies)
    return name


def fenced(alg: VectorAlgebra, name: str, *, varies: bool) -> str:
    """The same f64, behind a fence."""
    llvm = alg.vector_type(f64) if varies else "double"
    return alg.code.intrinsic(llvm, f"llvm.arithmetic.fence.{alg.suffix(varies, llvm)}", (llvm, name))

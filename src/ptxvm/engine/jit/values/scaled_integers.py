"""Scaled integers: vectors of 64 bits that are a scalar and a multiple of a vector of 32 bits, as the addresses of elements.

A compiler writes `a[i]` with a varying `i` as `base + 4 * i`, of which only `i` is a vector (mul.wide, add).  Half as many
registers hold it, and the processor gathers by such an index.
"""

from __future__ import annotations

from dataclasses import replace

from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Scalar, Scaled, Varying, splat_literal, wrapped
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

MOST = 1 << 16  # of a factor
HALF = 1 << 31
FULL = (1 << 64) - 1


def base(alg: VectorAlgebra, found: Scaled) -> Scalar:
    """The sum of the scalars."""
    total: Scalar = 0
    for scalar, factor in found.scalars:
        total = alg.scalar("add", 64, total, alg.scalar("mul", 64, scalar, factor & FULL))
    return total


def as_signed(alg: VectorAlgebra, found: Scaled) -> Scaled:
    """The same with a signed root."""
    if found.signed:
        return found
    root = alg.code.emit(f"xor <{alg.width} x i32> {found.root}, {splat_literal('i32', HALF)}")
    return replace(found, root=root, signed=True, scalars=(*found.scalars, (HALF, found.factor)))


def of_operation(known: dict[str, Scaled], op: str, a: Raw, b: Raw) -> Scaled | None:
    """The result of an operation on 64-bit integers, given what is known of its operands."""
    if isinstance(a, Affine) and op in ("add", "mul"):
        a, b = b, a
    if not isinstance(a, Varying) or not isinstance(b, Affine) or b.terms or (found := known.get(a.name)) is None:
        return None
    if op in ("add", "sub"):
        return replace(found, scalars=(*found.scalars, (b.base, 1 if op == "add" else -1)))
    if op not in ("mul", "shl") or b.constant is None:
        return None
    by = wrapped(b.constant, 64) if op == "mul" else 1 << min(b.constant, 64)
    if not 0 < by * found.factor <= MOST:
        return None
    return replace(found, factor=found.factor * by, scalars=tuple((scalar, n * by) for scalar, n in found.scalars))

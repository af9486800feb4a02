"""Uniform bounds of predicates: the ends of affine values tell, by scalars, if a predicate holds in all lanes or in none.

A number of a thread that is compared with a size is a pair of scalar comparisons in nearly all warps.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Scalar, Varying, text, wrapped
from ptxvm.engine.jit.values.affine_integers import MIRRORED
from ptxvm.engine.jit.values.vector_algebra import Extremes, VectorAlgebra

# By the relation of an affine value to a uniform one: which end tells of all lanes and how, which of none and how.
TESTS = {
    "lt": ("high", "slt", "low", "sge"),
    "le": ("high", "sle", "low", "sgt"),
    "gt": ("low", "sgt", "high", "sle"),
    "ge": ("low", "sge", "high", "slt"),
}


def of_comparison(alg: VectorAlgebra, op: str, type: Type, a: Raw, b: Raw) -> Extremes | None:
    """The bounds of a comparison of an affine 32-bit integer with a uniform one."""
    if type.bits != 32 or not isinstance(a, Affine) or not isinstance(b, Affine) or op not in MIRRORED:
        return None
    if b.terms:
        a, b, op = b, a, MIRRORED[op]
    if b.terms or not a.terms:
        return None
    low, high = ends(alg, type, a)
    limit = widened(alg, type, b.base)
    at = {"low": low, "high": high}
    first, tells_all, second, tells_none = TESTS[op]
    whole = _fits(alg, type, low, high)
    both = [_test(alg, relation, at[end], limit) for end, relation in ((first, tells_all), (second, tells_none))]
    return tuple(alg.code.emit(f"and i1 {each}, {whole}") for each in both)  # type: ignore[return-value]


def of_logic(alg: VectorAlgebra, op: str, a: Raw, b: Raw) -> Extremes | None:
    """The bounds of a conjunction, a disjunction or a negation."""
    if op == "xor":
        negated = a if isinstance(b, Affine) and b.constant == 1 else None
        found = _of(alg, negated) if negated is not None else None
        return None if found is None else (found[1], found[0])
    first, second = _of(alg, a), _of(alg, b)
    if op not in ("and", "or") or first is None or second is None:
        return None
    other = "or" if op == "and" else "and"
    return (
        alg.code.emit(f"{op} i1 {first[0]}, {second[0]}"),
        alg.code.emit(f"{other} i1 {first[1]}, {second[1]}"),
    )


def _of(alg: VectorAlgebra, a: Raw) -> Extremes | None:
    if isinstance(a, Varying):
        return alg.extremes.get(a.name)
    holds = text("i1", a.base)
    return holds, alg.code.emit(f"xor i1 {holds}, true")


def widened(alg: VectorAlgebra, type: Type, u: Scalar) -> Scalar:
    """A 32-bit scalar as 64 bits."""
    if isinstance(u, int):
        return wrapped(u, 32) if type.is_signed else u
    return alg.code.emit(f"{'sext' if type.is_signed else 'zext'} i32 {u} to i64")


def ends(alg: VectorAlgebra, type: Type, a: Affine) -> tuple[Scalar, Scalar]:
    """The least and the greatest of the lanes, in 64 bits, if none wraps."""
    code = alg.code
    low = high = widened(alg, type, a.base)
    for pattern, u in a.terms:
        step = wrapped(u, 32) if isinstance(u, int) else code.emit(f"sext i32 {u} to i64")
        if isinstance(step, int):
            least, most = sorted((min(pattern) * step, max(pattern) * step))
            low, high = alg.scalar("add", 64, low, least), alg.scalar("add", 64, high, most)
            continue
        a0, a1 = (text("i64", alg.scalar("mul", 64, step, k & (1 << 64) - 1)) for k in (min(pattern), max(pattern)))
        low = alg.scalar("add", 64, low, code.intrinsic("i64", "llvm.smin.i64", ("i64", a0), ("i64", a1)))
        high = alg.scalar("add", 64, high, code.intrinsic("i64", "llvm.smax.i64", ("i64", a0), ("i64", a1)))
    return low, high


def _fits(alg: VectorAlgebra, type: Type, low: Scalar, high: Scalar) -> str:
    """Does no lane wrap?"""
    least, most = (-(1 << 31), (1 << 31) - 1) if type.is_signed else (0, (1 << 32) - 1)
    first, second = _test(alg, "sge", low, least), _test(alg, "sle", high, most)
    return alg.code.emit(f"and i1 {first}, {second}")


def _test(alg: VectorAlgebra, relation: str, a: Scalar, b: Scalar) -> str:
    return alg.code.emit(f"icmp {relation} i64 {text('i64', a)}, {text('i64', b)}")

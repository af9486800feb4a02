"""Conversions of floats to integers: truncation that saturates, with 0 for a NaN.

LLVM has an intrinsic, for which it converts the lanes of a vector one by one on x86.  So vectors are converted by the
instruction that leaves lanes out of range undefined, and those are replaced.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Raw, scalar_type
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

WORDS = 32  # bits from which on the processor converts a vector without narrowing it


def truncated(alg: VectorAlgebra, source: Type, target: Type, a: Raw) -> Raw:
    """An f32 or f64 as an integer, towards zero."""
    varies, llvm, (x,) = alg.operands(source, a)
    if varies and target.bits >= WORDS and cpu.has("avx2"):
        return alg.result(varies, _replaced(alg, llvm, target, x))
    word = "fptosi" if target.is_signed else "fptoui"
    result = alg.vector_type(target) if varies else scalar_type(target)
    name = f"llvm.{word}.sat.{alg.suffix(varies, result)}.{alg.suffix(varies, llvm)}"
    return alg.result(varies, alg.code.intrinsic(result, name, (llvm, x)))


def _replaced(alg: VectorAlgebra, floats: str, target: Type, x: str) -> str:
    """The conversion of all lanes, and the ends of the range in those beyond it."""
    code, integers, bits = alg.code, alg.vector_type(target), target.bits
    one = floats.rsplit(maxsplit=1)[-1].rstrip(">")

    def where(comparison: str, bound: float, there: int, otherwise: str) -> str:
        limit = f"splat ({one} {code.float_literal(bound)})"
        holds = code.emit(f"fcmp {comparison} {floats} {x}, {limit}")
        return code.emit(f"select <{alg.width} x i1> {holds}, {integers} splat (i{bits} {there}), {integers} {otherwise}")

    if not target.is_signed:
        made = code.emit(f"fptoui {floats} {x} to {integers}")
        return where("ule", -1.0, 0, where("oge", 2.0**bits, (1 << bits) - 1, made))
    half = 1 << bits - 1
    made = code.emit(f"fptosi {floats} {x} to {integers}")
    return where("uno", 0.0, 0, where("olt", -(2.0 ** (bits - 1)), half, where("oge", 2.0 ** (bits - 1), half - 1, made)))

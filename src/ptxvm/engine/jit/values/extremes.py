"""Minimum and maximum of f32 and f64: a comparison and a choice, which are one instruction of many processors.

The two orders of the operands give the same number, or zeros of both signs, of which the bits are joined.  Where an operand
is NaN, the result is the other one.
"""

from __future__ import annotations

from ptxvm.algebra.value import Value
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra


def extreme(alg: VectorAlgebra, a: Value, b: Value, *, greatest: bool) -> Value:
    """The lesser of two numbers, or the greater one; -0 is below +0."""
    code = alg.code
    varies, llvm, (x, y) = alg.operands(a.type, a.raw, b.raw)
    bits = f"i{a.type.bits}"
    word, truth = (f"<{alg.width} x {bits}>", f"<{alg.width} x i1>") if varies else (bits, "i1")

    def chosen(first: str, second: str) -> str:
        before = code.emit(f"fcmp {'ogt' if greatest else 'olt'} {llvm} {first}, {second}")
        return code.emit(f"bitcast {llvm} {code.emit(f'select {truth} {before}, {llvm} {first}, {llvm} {second}')} to {word}")

    both = code.emit(f"{'and' if greatest else 'or'} {word} {chosen(x, y)}, {chosen(y, x)}")
    found = code.emit(f"bitcast {word} {both} to {llvm}")
    for nan, other in ((x, y), (y, x)):
        wrong = code.emit(f"fcmp uno {llvm} {nan}, {nan}")
        found = code.emit(f"select {truth} {wrong}, {llvm} {other}, {llvm} {found}")
    return Value(alg, a.type, alg.result(varies, found, loose=a.raw.loose or b.raw.loose))

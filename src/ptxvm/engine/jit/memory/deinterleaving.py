"""Deinterleaving: the components of the vectors of all lanes, from memory where each lane's stand side by side.

On AVX2 LLVM takes six instructions for a register of every fourth element.  Four registers are transposed by 4 by 4 elements in
each half, which takes three.
"""

from __future__ import annotations

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code

EACH = 8  # elements of a register
LOW_HALVES, HIGH_HALVES = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
LOW, HIGH = [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]
LOW_PAIRS, HIGH_PAIRS = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]


def components(code: Code, llvm: str, size: int, loaded: str, lanes: int, count: int) -> list[str]:
    """Of each lane's `count` elements in a vector the first ones, the second ones, and so on."""
    total = lanes * count
    if count != 4 or size != 4 or lanes % EACH or cpu.has("avx512f") or not cpu.has("avx2"):
        return [code.shuffle(llvm, total, loaded, "poison", list(range(n, total, count))) for n in range(count)]
    parts = [_transposed(code, llvm, loaded, total, first) for first in range(0, total, 4 * EACH)]
    return [code.concatenate(llvm, [part[n] for part in parts], EACH) for n in range(count)]


def _transposed(code: Code, llvm: str, loaded: str, total: int, first: int) -> list[str]:
    """The components of eight lanes, whose elements begin at `first`."""

    def pick(a: str, b: str, order: list[int]) -> str:
        return code.shuffle(llvm, EACH, a, b, order)

    rows = [code.shuffle(llvm, total, loaded, "poison", list(range(n, n + EACH))) for n in range(first, first + 4 * EACH, EACH)]
    quarters = [pick(rows[n], rows[n + 2], order) for n in (0, 1) for order in (LOW_HALVES, HIGH_HALVES)]
    pairs = [[pick(quarters[n], quarters[n + 1], order) for n in (0, 2)] for order in (LOW, HIGH)]
    return [pick(a, b, order) for a, b in pairs for order in (LOW_PAIRS, HIGH_PAIRS)]

"""Dot products of packed integers (PTX 9.7.1.23, 9.7.1.24)."""

from __future__ import annotations

from ptxvm.algebra.derived.integers import field
from ptxvm.isa.model import alu


@alu(
    """
    dp4a.atype.btype  d, a, b, c;
    .atype = .btype = { .u32, .s32 };
    """,
    section="9.7.1.23",
    types="d c: atype|btype, a: atype, b: btype",
    needs={"": "PTX 5.0, sm_61"},
)
def dp4a(i, a, b, c):
    """Multiply the four bytes of two words pair by pair, and add the products to a third word."""
    return _dot(c, _parts(a, 8), _parts(b, 8))


@alu(
    """
    dp2a.mode.atype.btype  d, a, b, c;
    .atype = .btype = { .u32, .s32 };
    .mode = { .lo, .hi };
    """,
    section="9.7.1.24",
    types="d c: atype|btype, a: atype, b: btype",
    needs={"": "PTX 5.0, sm_61"},
    fixed=1,
)
def dp2a(i, a, b, c):
    """Multiply the halves of one word by the lower or upper bytes of another, and add the products to a third word."""
    return _dot(c, _parts(a, 16), _parts(b, 8)[2 if i.mode == "hi" else 0 :])


def _parts(a, size):
    """The parts of a word, extended as its type says."""
    return [field(a, at, size) for at in range(0, 32, size)]


def _dot(total, left, right):
    """The total plus the products, modulo 2**32."""
    for x, y in zip(left, right, strict=False):
        total += x * y
    return total

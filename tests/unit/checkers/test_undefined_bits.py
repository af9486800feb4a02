"""The check `init` bit by bit: which bits of a result are undefined where bits of an operand are.

The oracle is the meaning of the word: a bit of a result is undefined if it depends on what the undefined bits of the operands
are.  Each operation is written here once more, over Python's integers, and evaluated for every value of those bits.
"""

from __future__ import annotations

import itertools
from functools import cache, reduce
from operator import or_

import numpy as np
import pytest

import ptxvm

ONES = (1 << 32) - 1


def signed(x, bits=32):
    return x - (1 << bits) if x >> bits - 1 & 1 else x


def shifted(x, n):
    return x << n if n < 32 else 0


def reversed_bits(x):
    return int(f"{x:032b}"[::-1], 2)


def permuted(x, y, selector):
    pool = y << 32 | x
    return sum((pool >> 8 * (selector >> 4 * n & 7) & 0xFF) << 8 * n for n in range(4))


def extracted(x, start, length):
    return x >> start & (1 << length) - 1


def funnelled(x, y, n):
    return (y << 32 | x) << n >> 32


EXACT = {
    "mov.b32 r, x": lambda x, y: x,
    "and.b32 r, x, y": lambda x, y: x & y,
    "or.b32 r, x, y": lambda x, y: x | y,
    "and.b32 r, y, x": lambda x, y: x & y,
    "or.b32 r, y, x": lambda x, y: x | y,
    "brev.b32 y, x; and.b32 y, y, 0xffff0; and.b32 r, y, 0xff": lambda x, y: reversed_bits(x) & 0xF0,
    "xor.b32 r, x, y": lambda x, y: x ^ y,
    "not.b32 r, x": lambda x, y: ~x,
    "xor.b32 r, x, x": lambda x, y: 0,
    "sub.u32 r, x, x": lambda x, y: 0,
    "shl.b32 r, x, 7": lambda x, y: x << 7,
    "shr.u32 r, x, 9": lambda x, y: x >> 9,
    "shr.s32 r, x, 9": lambda x, y: signed(x) >> 9,
    "brev.b32 r, x": lambda x, y: reversed_bits(x),
    "bfe.u32 r, x, 4, 9": lambda x, y: extracted(x, 4, 9),
    "prmt.b32 r, x, y, 0x6104": lambda x, y: permuted(x, y, 0x6104),
    "shf.l.wrap.b32 r, x, y, 12": lambda x, y: funnelled(x, y, 12),
    "lop3.b32 r, x, y, 0xff00ff, 0xca": lambda x, y: x & y | ~x & 0xFF00FF,
    "cvt.u32.u8 r, x": lambda x, y: x & 0xFF,
    "cvt.s32.s16 r, x": lambda x, y: signed(x & 0xFFFF, 16),
    "selp.b32 r, x, y, q": lambda x, y: x,
    "selp.b32 r, y, x, q": lambda x, y: y,
    "mov.b32 {l, h}, x; mov.b32 r, {h, l}": lambda x, y: x >> 16 | x << 16,
    "mov.b64 w, {x, y}; shr.b64 w, w, 20; cvt.u32.u64 r, w": lambda x, y: (y << 32 | x) >> 20,
    "setp.eq.u32 e, x, y; selp.u32 r, 1, 0, e": lambda x, y: int(x == y),
    "setp.lt.s32 e, x, 0; selp.u32 r, 5, 6, e": lambda x, y: 5 if signed(x) < 0 else 6,
    "setp.ne.u32 e, x, y; and.pred e, e, !q; selp.u32 r, 1, 0, e": lambda x, y: 0,
    "setp.ne.u32 e, x, y; or.pred e, e, q; selp.u32 r, 1, 0, e": lambda x, y: 1,
    "setp.ne.u32 e, x, y; mov.u32 r, 9; @e mov.u32 r, 8": lambda x, y: 8 if x != y else 9,
}  # fmt: skip
"""Moves and logic: no bit more, and none less, is found."""

COARSE = {
    "add.u32 r, x, y": lambda x, y: x + y,
    "sub.u32 r, y, x": lambda x, y: y - x,
    "mul.lo.u32 r, x, y": lambda x, y: x * y,
    "mul.hi.u32 r, x, y": lambda x, y: x * y >> 32,
    "mad.lo.u32 r, x, 8, y": lambda x, y: x * 8 + y,
    "shl.b32 r, y, x": lambda x, y: shifted(y, x),
    "min.u32 r, x, y": min,
    "popc.b32 r, x": lambda x, y: x.bit_count(),
    "clz.b32 r, x": lambda x, y: 32 - x.bit_length(),
    "div.u32 r, y, x": lambda x, y: y // x if x else ONES,
    "abs.s32 r, x": lambda x, y: abs(signed(x)),
    "sad.u32 r, x, y, 3": lambda x, y: abs(x - y) + 3,
    "add.cc.u32 r, x, y; addc.u32 r, 0, 0": lambda x, y: x + y >> 32,
    "cvt.rn.f32.u32 f, x; cvt.rni.u32.f32 r, f": lambda x, y: x,  # of less than 24 bits
    "setp.lt.u32 e, x, 9; selp.u32 r, x, 7, e": lambda x, y: x if x < 9 else 7,
    "shl.b32 y, x, 4; and.b32 r, x, y": lambda x, y: x & x << 4,
    "shl.b32 y, x, 4; or.b32 r, x, y": lambda x, y: x | x << 4,
    "setp.lt.u32 e, x, y; selp.u32 r, 0, 12, e": lambda x, y: 0 if x < y else 12,
}
"""Arithmetic: no bit is missed; bits may be found that happen not to depend on the undefined ones."""

PATTERNS = [
    (0x0000_1234, 0x0012_00F0, 0x0000_5081),
    (0x00C0_FFEE, 0x0000_0011, 0x0040_FF0F),
    (0x0000_00AA, 0x0080_4000, 0x0000_00AA),
    (0x0000_0003, 0x0000_0006, 0x0000_5081),
]
"""An operand, its undefined bits, and the other operand."""

KERNEL = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 given, .param .u32 open, .param .u32 other)
{
    .reg .pred q, e; .reg .b16 l, h; .reg .b64 w; .reg .f32 f; .reg .b32 x, y, r, u, m; .reg .b64 d;
    ld.param.u64 d, [data]; ld.param.u32 x, [given]; ld.param.u32 m, [open]; ld.param.u32 y, [other];
    and.b32 u, u, m;
    not.b32 m, m;
    and.b32 x, x, m;
    or.b32 x, x, u;
    setp.eq.u32 q, m, m;
    OPERATION;
BITS
    ret;
}
"""
BITS = "\n".join(f"and.b32 m, r, {1 << n}; st.global.u32 [d], m;" for n in range(32))
FIRST = KERNEL[: KERNEL.index("BITS")].count("\n") + 1  # the line of the first bit


@cache
def kernel(operation):
    return ptxvm.load(KERNEL.replace("OPERATION", operation).replace("BITS", BITS)).kernel()


def found(operation, given, undefined, other, engine="interp"):
    """The bits of the result whose use the check reports."""
    args = [np.zeros(1, np.uint32), given, undefined, other]
    result = kernel(operation).launch(1, 1, args, check=("init",), engine=engine)
    return sum({1 << line - FIRST for each in result.findings for line in (each.line, *each.also)})


def depending(meaning, given, undefined, other):
    """The bits of the result that depend on the undefined bits of the operand."""
    places = [n for n in range(32) if undefined >> n & 1]
    results = [
        meaning(given & ~undefined | sum(1 << n for n, on in zip(places, chosen, strict=True) if on), other) & ONES
        for chosen in itertools.product((False, True), repeat=len(places))
    ]
    return reduce(or_, (result ^ results[0] for result in results))


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
@pytest.mark.parametrize("operation", EXACT)
def test_moves_and_logic_are_followed_bit_by_bit(operation, pattern):
    assert found(operation, *pattern) == depending(EXACT[operation], *pattern)


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
@pytest.mark.parametrize("operation", COARSE)
def test_no_undefined_bit_of_arithmetic_is_missed(operation, pattern):
    real, reported = depending(COARSE[operation], *pattern), found(operation, *pattern)
    assert real & ~reported == 0


@pytest.mark.parametrize("operation", [*EXACT, *COARSE])
def test_a_defined_operand_gives_a_defined_result(operation):
    assert found(operation, 0x1234, 0, 0x5081) == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operation", [*EXACT, *COARSE])
def test_compiled_code_finds_the_same(operation):
    assert found(operation, *PATTERNS[0], engine="jit") == found(operation, *PATTERNS[0])

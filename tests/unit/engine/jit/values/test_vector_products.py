"""The upper halves of products of 32 bits, and divisions by constants that are made of them: Python's integers are exact."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)
{
    .reg .b32 %r<9>; .reg .b64 %d<8>;
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4;
    add.u64 %d4, %d0, %d3; add.u64 %d5, %d1, %d3; add.u64 %d6, %d2, %d3;
    ld.global.u32 %r1, [%d4]; ld.global.u32 %r2, [%d5];
    mul.hi.TYPE %r3, %r1, %r2; st.global.u32 [%d6], %r3;
    mul.hi.TYPE %r4, %r1, -1840700269; st.global.u32 [%d6+512], %r4;
    mul.hi.s32 %r5, %r1, 954437177; shr.u32 %r6, %r5, 31; shr.s32 %r7, %r5, 3; add.s32 %r8, %r6, %r7;
    st.global.u32 [%d6+1024], %r8;
    ret;
}
"""
EDGES = (0, 1, 2, 35, 36, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF, 0xFFFF_FFFE, 0x1_0000, 0xFFFF)
BLOCK = 128


def signed(n: int) -> int:
    """The number that 32 bits are."""
    return n - (1 << 32) if n >> 31 else n


@pytest.mark.parametrize("type", ["s32", "u32"])
def test_upper_halves(type: str, rng: np.random.Generator) -> None:
    kernel = ptxvm.load(KERNEL.replace("TYPE", type)).kernel()
    number = signed if type == "s32" else int
    pairs = [(a, b) for a in EDGES for b in EDGES]
    pairs += [(int(a), int(b)) for a, b in rng.integers(0, 1 << 32, (2 * BLOCK - len(pairs) % BLOCK, 2))]
    magic = number(-1840700269 & 0xFFFF_FFFF)
    for first in range(0, len(pairs), BLOCK):
        a, b = (np.array(column, np.uint32) for column in zip(*pairs[first : first + BLOCK], strict=True))
        out = np.zeros((3, BLOCK), np.uint32)
        kernel.launch(1, BLOCK, [a, b, out], engine="jit")
        x, y = ([number(int(n)) for n in each] for each in (a, b))
        assert out[0].tolist() == [(i * j >> 32) & 0xFFFF_FFFF for i, j in zip(x, y, strict=True)]
        assert out[1].tolist() == [(i * magic >> 32) & 0xFFFF_FFFF for i in x]
        quotients = (abs(signed(int(n))) // 36 * (-1 if signed(int(n)) < 0 else 1) for n in a)
        assert out[2].tolist() == [q & 0xFFFF_FFFF for q in quotients]

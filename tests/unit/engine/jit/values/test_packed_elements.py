"""Operations on packed elements: those of all lanes are one vector, whose results the interpreter has too."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

KERNEL = """
.version 8.6
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b64 %w<4>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 8;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    ld.global.v2.u32 {%r2, %r3}, [%d3];
    mov.b64 %w0, {%r2, %r3};
    mov.b64 %w1, {%r3, %r2};
    mov.b64 %w2, 0;
    mov.b32 %r4, 0;
    mov.b32 %r7, 0x64806480;
    OPERATION
    mov.b64 {%r5, %r6}, %w2;
    xor.b32 %r4, %r4, %r5;
    st.global.v2.u32 [%d4], {%r4, %r6};
    ret;
}
"""
TOGETHER = {
    "add.s16x2 %r4, %r2, %r3;": "add <64 x i16>",
    "max.s16x2 %r4, %r2, %r3;": "<64 x i16> @llvm.smax",
    "max.relu.s16x2 %r4, %r2, %r7;": "<64 x i16> @llvm.smax",
    "add.f16x2 %r4, %r2, %r3;": "fadd <64 x half>",
    "sub.f16x2 %r4, %r2, %r7;": "<64 x half>",
    "mul.sat.f16x2 %r4, %r2, %r3;": "fmul <64 x half>",
    "fma.rn.relu.f16x2 %r4, %r2, %r3, %r2;": "<64 x half>",
    "min.NaN.f16x2 %r4, %r2, %r3;": "<64 x i16>",
    "neg.f16x2 %r4, %r2;": "<64 x i16>",
    "ex2.approx.f16x2 %r4, %r2;": "<64 x float>",
    "add.f32x2 %w2, %w0, %w1;": "fadd <64 x float>",
    "fma.rn.ftz.f32x2 %w2, %w0, %w1, %w0;": "<64 x float>",
}


def kernel(operation: str) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.replace("OPERATION", operation)).kernel()


@pytest.mark.parametrize("operation", TOGETHER)
def test_elements_are_one_vector(operation: str, rng: np.random.Generator) -> None:
    """Any bits: halves of all kinds, and NaN."""
    made = kernel(operation)
    assert TOGETHER[operation] in made.dump("llvm", 32)
    given = rng.integers(0, 1 << 32, 2 * 96, dtype=np.uint32)
    same(made, [given, np.zeros_like(given)], block=96)


def test_a_bf16_is_taken_apart(rng: np.random.Generator) -> None:
    """It is the upper half of an f32 already."""
    made = kernel("add.bf16x2 %r4, %r2, %r3;")
    assert "<64 x float>" not in made.dump("llvm", 32)
    given = rng.integers(0, 1 << 32, 2 * 96, dtype=np.uint32)
    same(made, [given, np.zeros_like(given)], block=96)


def test_values_that_all_lanes_share_stay_scalar() -> None:
    """They are computed once."""
    made = kernel("ld.global.u32 %r7, [%d0]; add.s16x2 %r4, %r7, %r7;")
    assert "<64 x i16>" not in made.dump("llvm", 32)

"""tanh and 2**a are the true values rounded once; the oracle is the f64 function of the C library."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ptxvm

KERNEL = """
.version 8.6
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %d<5>; .reg .HELD %f<2>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r0, 1024, %r1;
    mul.wide.u32 %d2, %r2, BYTES;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    ld.global.HELD %f0, [%d3];
    FUNCTION %f1, %f0;
    st.global.HELD [%d4], %f1;
    ret;
}
"""


def results(function: str, given: np.ndarray, engine: str) -> np.ndarray:
    """The function of 1,024 values a CTA."""
    held = {2: "b16", 4: "f32"}[given.itemsize]
    text = KERNEL.replace("HELD", held).replace("BYTES", str(given.itemsize)).replace("FUNCTION", function)
    made = np.zeros_like(given)
    ptxvm.load(text).kernel().launch(grid=len(given) // 1024, block=1024, args=[given, made], engine=engine)
    return made


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_tanh_is_rounded_once(engine: str, rng: np.random.Generator) -> None:
    """Of exponents at which the result is neither the argument nor 1, and of some beyond."""
    size = np.exp2(rng.uniform(-15, 4, 4096)).astype(np.float32)
    given = np.copysign(size, rng.uniform(-1, 1, 4096)).astype(np.float32)
    want = np.array([math.tanh(x) for x in given.tolist()], np.float32)
    assert np.array_equal(results("tanh.approx.f32", given, engine), want)


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_tanh_keeps_its_corners(engine: str) -> None:
    """Zeros keep their sign, subnormals pass through, NaN is canonical (PTX 9.7.3.22)."""
    corners = {0: 0, 1 << 31: 1 << 31, 1: 1, 0x8000_0003: 0x8000_0003, 0x7F80_0000: 0x3F80_0000, 0xFF80_0000: 0xBF80_0000}
    corners |= {0xFFC0_0001: 0x7FFF_FFFF, 0x7F7F_FFFF: 0x3F80_0000}
    given = np.resize(np.array(list(corners), np.uint32), 1024).view(np.float32)
    want = np.resize(np.array(list(corners.values()), np.uint32), 1024)
    assert np.array_equal(results("tanh.approx.f32", given, engine).view(np.uint32), want)


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_tanh_of_all_halves(engine: str) -> None:
    """Computed in f32, correctly rounded, and rounded to f16 (PTX 9.7.4.9)."""
    given = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        want = np.tanh(given.view(np.float16).astype(np.float64)).astype(np.float32).astype(np.float16)
    want = np.where(np.isnan(want), 0x7FFF, want.view(np.uint16))
    assert np.array_equal(results("tanh.approx.f16", given, engine), want)

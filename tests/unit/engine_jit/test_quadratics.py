"""The functions that the JIT computes in vector registers have the bits of their derivations.

The interpreter computes the derivation, which recorded sweeps of hardware are compared with elsewhere.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit import quadratics

KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
    .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>; .reg .pred %p;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r3, [n];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r0, 128, %r1;
    setp.ge.u32 %p, %r2, %r3;
    @%p ret;
    mul.wide.u32 %d2, %r2, 4;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    ld.global.f32 %f0, [%d3];
    FUNCTION.f32 %f1, %f0;
    st.global.f32 [%d4], %f1;
    ret;
}
"""
FUNCTIONS = [f"{name}.approx{ftz}" for name in ("rcp", "sqrt", "rsqrt", "ex2", "lg2") for ftz in ("", ".ftz")]


def arguments(rng: np.random.Generator) -> np.ndarray:
    """Any bits; every row of the tables, at both ends and within; common sizes; powers of two and their neighbours."""
    rows = np.arange(256, dtype=np.uint32)[:, None] << 16
    within = rng.integers(0, 1 << 16, (256, 200), dtype=np.uint32)
    ends = np.broadcast_to(np.array([0, 1, 2, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF], np.uint32), (256, 7))
    return np.concatenate(
        [
            rng.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32),
            (np.uint32(0x3F80_0000) + (rows | np.concatenate([within, ends], axis=1))).ravel().view(np.float32),
            rng.uniform(-130, 130, 20_000).astype(np.float32),
            np.arange(-200, 200, dtype=np.float32),
            np.ldexp(1 + np.arange(-2, 3)[:, None] * 2.0**-24, np.arange(-149, 128)[None]).astype(np.float32).ravel(),
        ]
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_bits_are_those_of_the_derivation(function: str, rng: np.random.Generator) -> None:
    kernel = ptxvm.load(KERNEL.replace("FUNCTION", function)).kernel()
    given = arguments(rng)
    found = []
    for engine in ("interp", "jit"):
        out = np.zeros_like(given)
        kernel.launch(grid=-(-len(given) // 128), block=128, args=[given, out, np.uint32(len(given))], engine=engine)
        found.append(out.view(np.uint32))
    wrong = np.flatnonzero(found[0] != found[1])
    assert not len(wrong), (given[wrong[:5]], found[0][wrong[:5]], found[1][wrong[:5]])


def test_where_the_processor_lacks_something_the_derivation_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quadratics, "available", lambda: False)
    given, out = np.linspace(0.5, 9, 64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = ptxvm.load(KERNEL.replace("FUNCTION", "rsqrt.approx")).kernel()
    kernel.launch(block=64, args=[given, out, np.uint32(64)], engine="jit")
    assert np.allclose(out, given**-0.5, rtol=2e-7)

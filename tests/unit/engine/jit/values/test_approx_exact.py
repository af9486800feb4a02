"""The functions that the JIT computes in vector registers have the bits of their derivations, or keep the manual's bounds.

The interpreter computes the derivation, which recorded sweeps of hardware are compared with elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from engines import same

import ptxvm
from ptxvm.engine.jit.values import approx_avx2, approx_exact

KERNEL = """
.version 7.0
.target sm_75
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
FUNCTIONS = [f"{name}.approx{ftz}" for name in ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos") for ftz in ("", ".ftz")]


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
            rng.uniform(-160, 160, 20_000).astype(np.float32),
            np.ldexp(1 + np.arange(-2, 3)[:, None] * 2.0**-24, np.arange(-149, 128)[None]).astype(np.float32).ravel(),
        ]
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_bits_are_those_of_the_derivation(function: str, rng: np.random.Generator) -> None:
    kernel = ptxvm.load(KERNEL.replace("FUNCTION", function)).kernel()
    given = arguments(rng)
    same(kernel, [given, np.zeros_like(given), np.uint32(len(given))], grid=-(-len(given) // 128), block=128)


@pytest.mark.parametrize("target", ["sm_75", "sm_120"])  # whose angles are cut, and rounded
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_any_angle(function: str, target: str, rng: np.random.Generator) -> None:
    """Angles of all sizes, and those next to whole and half quarter turns."""
    source = KERNEL.replace("FUNCTION", f"{function}.approx").replace(".version 7.0", ".version 8.7").replace("sm_75", target)
    kernel = ptxvm.load(source).kernel()
    turns = np.arange(-900, 900) * (np.pi / 4)
    near = np.float32(turns)[:, None].view(np.int32) + np.arange(-8, 9, dtype=np.int32)
    sizes = np.exp2(rng.uniform(-40, 9, 100_000)) * rng.choice([-1, 1], 100_000)
    given = np.concatenate([near.view(np.float32).ravel(), sizes.astype(np.float32)])
    same(kernel, [given, np.zeros_like(given), np.uint32(len(given))], grid=-(-len(given) // 128), block=128)


def test_where_the_processor_lacks_something_the_derivation_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approx_exact, "available", lambda: False)
    monkeypatch.setattr(approx_avx2, "available", lambda: False)
    given, out = np.linspace(0.5, 9, 64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = ptxvm.load(KERNEL.replace("FUNCTION", "rsqrt.approx")).kernel()
    kernel.launch(block=64, args=[given, out, np.uint32(64)], engine="jit")
    assert np.allclose(out, given**-0.5, rtol=2e-7)


# ── numerics="fast" ─────────────────────────────────────────────────────────────────────


def power(x: Decimal) -> Decimal:
    return Decimal(2) ** x


def logarithm(x: Decimal) -> Decimal:
    return x.ln() / Decimal(2).ln()


def rounded(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    """By the library of C, whose f64 is far more than an f32 can tell."""
    return lambda x: Decimal(function(float(x)))


# By the tables of PTX 9.7.3.13 to 9.7.3.22: arguments from and to, whether spread over their exponents, the greatest error:
# relative to the result ("rel"), absolute ("abs"), in ulps from the correctly rounded result ("ulp").
BOUNDS = [
    ("rcp", lambda x: 1 / x, 2.0**-126, 2.0**126, True, "ulp", 1),
    ("sqrt", lambda x: x.sqrt(), 2.0**-126, 2.0**127, True, "rel", 2.0**-23),
    ("rsqrt", lambda x: 1 / x.sqrt(), 2.0**-126, 2.0**127, True, "rel", 2.0**-22.9),
    ("rsqrt", lambda x: 1 / x.sqrt(), 1.0, 4.0, False, "rel", 2.0**-22.9),
    ("lg2", logarithm, 0.5, 2.0, False, "abs", 2.0**-22),
    ("lg2", logarithm, 2.0, 2.0**127, True, "rel", 2.0**-22),
    ("ex2", power, -125.9, 125.9, False, "ulp", 2),
    ("ex2", power, -1.0, 1.0, False, "ulp", 2),
    ("sin", rounded(math.sin), -2 * math.pi, 2 * math.pi, False, "abs", 2.0**-20.5),
    ("sin", rounded(math.sin), -100 * math.pi, 100 * math.pi, False, "abs", 2.0**-14.7),
    ("cos", rounded(math.cos), -2 * math.pi, 2 * math.pi, False, "abs", 2.0**-20.5),
    ("cos", rounded(math.cos), -100 * math.pi, 100 * math.pi, False, "abs", 2.0**-14.7),
    ("tanh", rounded(math.tanh), 2.0**-126, 2.0**127, True, "rel", 2.0**-11),
    ("tanh", rounded(math.tanh), -4.0, 4.0, False, "rel", 2.0**-11),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "exact", "low", "high", "wide", "kind", "bound"), BOUNDS, ids=[f"{b[0]}-{n}" for n, b in enumerate(BOUNDS)]
)
def test_the_bound_is_kept(
    name: str,
    exact: Callable[[Decimal], Decimal],
    low: float,
    high: float,
    wide: bool,
    kind: str,
    bound: float,
    rng: np.random.Generator,
) -> None:
    if name in ("sin", "cos") and not approx_exact.available():
        pytest.skip("here it is silicon's, whose greatest error is 3 % above the bound")
    given = np.exp2(rng.uniform(np.log2(low), np.log2(high), 4096)) if wide else rng.uniform(low, high, 4096)
    given = given.astype(np.float32)
    out = np.zeros_like(given)
    kernel = ptxvm.load(KERNEL.replace("FUNCTION", f"{name}.approx")).kernel()
    kernel.launch(grid=32, block=128, args=[given, out, np.uint32(4096)], engine="jit", numerics="fast")
    with localcontext() as context:
        context.prec = 50
        for x, y in zip(given.tolist(), out.tolist(), strict=True):
            want = exact(Decimal(x))
            scale = {"abs": 1.0, "rel": abs(float(want)), "ulp": float(np.spacing(np.float32(abs(float(want)))))}[kind]
            error = abs(y - float(np.float32(float(want)))) if kind == "ulp" else abs(Decimal(y) - want)
            assert error <= bound * scale, (x, y, want)


def test_unusual_arguments_give_what_they_give_exactly() -> None:
    given = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1.0, 3e38] * 16, np.float32)
    for name in ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "tanh"):
        kernel, found = ptxvm.load(KERNEL.replace("FUNCTION", f"{name}.approx")).kernel(), []
        for how in ({"engine": "interp"}, {"engine": "jit", "numerics": "fast"}):
            out = np.zeros_like(given)
            kernel.launch(block=128, args=[given, out, np.uint32(128)], **how)
            found.append(out.view(np.uint32))
        assert (found[0] == found[1]).all(), name

"""`mma` as the JIT's vectors compute it: agreement with the model of the tensor cores.

Exact, it is what the model of the tensor cores says (`machine.tensor_core`, which the recorded products of silicon
hold to); else within the bound of a sum of f32.  The fragments are put together by the manual's formulas.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from warp_matrices import multiply

import ptxvm
from ptxvm.algebra.types import Type, f32
from ptxvm.engine import fused
from ptxvm.engine.jit.lower import mma_on_host
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.machine import tensor_core

SHAPES = [(16, 8, 8), (16, 8, 16)]
HELD = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
TARGETS = [80, 90, 120]
KINDS = [(type, target) for type in HELD for target in TARGETS]
SPECIAL = np.array([0, 1 << 31, 1, (1 << 31) + 1, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0001, 0x7F7F_FFFF], np.uint32)
STACK = 24


@pytest.fixture
def asked(monkeypatch):
    """How often the JIT asks Python for a product, as a list."""
    calls: list[int] = []
    original = mma_on_host.Multiplication.__call__

    def counted(*given):
        calls.append(1)
        return original(*given)

    monkeypatch.setattr(mma_on_host.Multiplication, "__call__", counted)
    return calls


def expected(shape, type, target, a, b, c):
    name = "m{}n{}k{}".format(*shape)
    parts = [mma_fragment(m, t, name) for m, t in zip("abcd", [Type.named[type]] * 2 + [f32] * 2, strict=True)]
    return tensor_core.multiply(Product(*parts), tensor_core.architecture_of(target), a, b, c, None)


def agree(shape, type, target, a, b, c):
    types = f"f32.{type}.{type}.f32"
    got = multiply(shape, types, a, b, c, target=f"sm_{target}", engine="jit")
    wanted = expected(shape, type, target, a, b, c)
    assert not (wrong := np.argwhere(got != wanted)).size, (wrong[0], got[tuple(wrong[0])], wanted[tuple(wrong[0])])


def bits(type, values):
    return values.astype(HELD[type]).view(np.uint16)


def factors(rng, type, size, spread):
    """Finite numbers of exponents from -spread to spread, some of them zero."""
    values = rng.uniform(-2, 2, size) * 2.0 ** rng.integers(-spread, spread + 1, size)
    return np.where(rng.random(size) < 0.1, 0.0, values)


def accumulators(rng, size):
    """Numbers of all sizes, zeros of both signs, subnormal numbers, infinities, NaNs."""
    anything = rng.integers(0, 2**32, size, np.uint32)
    usual = rng.uniform(-8, 8, size).astype(np.float32).view(np.uint32)
    return np.choose(rng.integers(0, 3, size), [anything, usual, rng.choice(SPECIAL, size)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shape", "type", "target"), [*((shape, *kind) for shape in SHAPES for kind in KINDS), ((16, 8, 8), "f16", 75)]
)
def test_exact_products_are_those_of_the_tensor_cores(shape, type, target, rng, asked):
    m, n, k = shape
    for spread in (0, 3, 12):
        a, b = (bits(type, factors(rng, type, size, spread)) for size in ((STACK, m, k), (STACK, k, n)))
        agree(shape, type, target, a, b, rng.uniform(-8, 8, (STACK, m, n)).astype(np.float32).view(np.uint32))
        agree(shape, type, target, a, b, accumulators(rng, (STACK, m, n)))
    assert not asked


@pytest.mark.parametrize(("type", "target"), KINDS)
def test_exact_cancellation(type, target, rng, asked):
    """The second half of each row is the first one, negated but for one unit of the last place here and there."""
    shape = m, n, k = 16, 8, 16
    a, b = (bits(type, factors(rng, type, size, 6)) for size in ((STACK, m, k), (STACK, k, n)))
    order = rng.permutation(k)
    a[:, :, order[8:]] = a[:, :, order[:8]] ^ 0x8000
    b[:, order[8:]] = b[:, order[:8]]
    agree(shape, type, target, a, b, np.zeros((STACK, m, n), np.uint32))
    a[:, :, 3] ^= rng.integers(0, 2, (STACK, m), np.uint16) & (a[:, :, 3] & 0x7FFF != 0)
    agree(shape, type, target, a, b, (rng.uniform(-1, 1, (STACK, m, n)) * 2.0**-18).astype(np.float32).view(np.uint32))
    assert not asked


@pytest.mark.parametrize(("type", "target"), KINDS)
def test_exact_largest_sums_of_all_products(type, target, asked):
    """Sums that need 33 bits: 16 products of the largest significands, of one sign or nearly so, and the accumulator."""
    shape = m, n, k = 16, 8, 16
    most = 1.9990234375 if type == "f16" else 1.9921875
    a, b = np.full((4, m, k), most), np.full((4, k, n), most)
    a[1], a[2], a[3, :, ::2] = -most, -most, -most
    c = np.full((4, m, n), np.nextafter(np.float32(4), np.float32(0)))
    c[1:3] = -c[1:3]
    b[2, :3] = 0
    agree(shape, type, target, bits(type, a), bits(type, b), c.view(np.uint32))
    assert not asked


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_subnormal_factors_of_f16(shape, target, rng, asked):
    m, n, k = shape
    a, b = rng.integers(0, 1 << 10, (STACK, m, k), np.uint16), bits("f16", factors(rng, "f16", (STACK, k, n), 14))
    a |= rng.integers(0, 3, a.shape, np.uint16) << 10 | rng.integers(0, 2, a.shape, np.uint16) << 15
    agree(shape, "f16", target, a, b, (rng.uniform(-1, 1, (STACK, m, n)) * 2.0**-12).astype(np.float32).view(np.uint32))
    agree(shape, "f16", target, a, b, accumulators(rng, (STACK, m, n)))
    assert not asked


@pytest.mark.parametrize(("type", "target"), KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_products_of_any_bits(shape, type, target, rng, asked):
    """Infinities and NaNs, and bf16 of any size."""
    m, n, k = shape
    a, b = (rng.integers(0, 1 << 16, size, np.uint16) for size in ((STACK, m, k), (STACK, k, n)))
    agree(shape, type, target, a, b, accumulators(rng, (STACK, m, n)))
    a, b = (bits(type, factors(rng, type, size, 14 if type == "f16" else 70)) for size in ((STACK, m, k), (STACK, k, n)))
    a[rng.random(a.shape) < 0.02] = 0x7F80 if type == "bf16" else 0x7C00
    agree(shape, type, target, a, b, accumulators(rng, (STACK, m, n)))
    assert not asked


@pytest.mark.parametrize("type", HELD)
def test_borders_of_sums_in_integers(type, rng):
    """Factors about the least and the greatest that they hold."""
    shape = m, n, k = 16, 8, 16
    for power in (-52, -51, -50, -49, 61, 62, 63, 64) if type == "bf16" else (-24, -15, -14, 14, 15):
        a, b = (bits(type, np.clip(factors(rng, type, size, 1) * 2.0**power, -65504.0, 65504.0) if type == "f16"
                     else factors(rng, type, size, 1) * 2.0**power) for size in ((4, m, k), (4, k, n)))  # fmt: skip
        agree(shape, type, 90, a, b, np.zeros((4, m, n), np.uint32))
        agree(shape, type, 80, a, b, accumulators(rng, (4, m, n)))


@pytest.mark.parametrize("type", HELD)
@pytest.mark.parametrize("shape", SHAPES)
def test_fast_products_keep_the_bound_of_f32(shape, type, rng, asked):
    """A product and k additions are rounded at most, by 2**-24 of no more than all sizes together."""
    m, n, k = shape
    a, b = (factors(rng, type, size, 4).astype(HELD[type]) for size in ((STACK, m, k), (STACK, k, n)))
    c = rng.uniform(-8, 8, (STACK, m, n)).astype(np.float32)
    given = a.view(np.uint16), b.view(np.uint16), c.view(np.uint32)
    got = multiply(shape, f"f32.{type}.{type}.f32", *given, target="sm_80", engine="jit", numerics="fast").view(np.float32)
    left, right = a.astype(np.float64), b.astype(np.float64)
    sizes = abs(left) @ abs(right) + abs(c)
    assert (abs(got - (left @ right + c)) <= (k + 2) * 2.0**-24 * sizes).all()
    assert not asked


@pytest.mark.parametrize("type", HELD)
def test_fast_products_of_infinities(type, asked):
    a, b, c = np.ones((1, 16, 16)), np.ones((1, 16, 8)), np.zeros((1, 16, 8), np.float32)
    a[0, 1, 5], a[0, 2, 9], b[0, 9, 3], c[0, 4, 4] = np.inf, np.nan, 0.0, -np.inf
    a[0, 3, 9] = np.inf
    given = bits(type, a), bits(type, b), c.view(np.uint32)
    got = multiply((16, 8, 16), f"f32.{type}.{type}.f32", *given, target="sm_80", engine="jit", numerics="fast")[0]
    values = got.view(np.float32)
    assert (values[0] == [16, 16, 16, 15, 16, 16, 16, 16]).all()
    assert (values[1] == np.inf).all()
    assert (got[2] == 0x7FFF_FFFF).all()
    assert got[3, 3] == 0x7FFF_FFFF
    assert values[3, 0] == np.inf
    assert values[4, 4] == -np.inf
    assert not asked


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_half_a_warp_multiplies_nothing(numerics):
    """All lanes have to take part (PTX 9.7.14.5.14)."""
    kernel = ptxvm.load("""
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry k()
        {
        .reg .b32 %a<4>, %b<2>; .reg .f32 %c<4>; .reg .u32 %t; .reg .pred %p;
        mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 16; @%p bra done;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
            {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
        done: ret;
        }""").kernel("k")
    with pytest.raises(ptxvm.Fault) as caught:
        kernel.launch(block=32, engine="jit", numerics=numerics)
    assert caught.value.kind == "incomplete-warp"


OTHERS = [
    *[((16, 8, 32), f"s32.{a}.{b}.s32") for a in ("s8", "u8") for b in ("s8", "u8")],
    *[((8, 8, 16), "s32.s8.u8.s32"), ((16, 8, 16), "s32.u8.s8.s32"), ((8, 8, 32), "s32.u4.s4.s32")],
    *[((16, 8, 64), f"s32.{a}.{b}.s32") for a in ("s4", "u4") for b in ("s4", "u4")],
    ((16, 8, 8), "f16.f16.f16.f16"),
    ((16, 8, 16), "f16.f16.f16.f16"),
    ((16, 8, 4), "f32.tf32.tf32.f32"),
    ((16, 8, 8), "f32.tf32.tf32.f32"),
    ((8, 8, 4), "f64.f64.f64.f64"),
    ((16, 8, 16), "f64.f64.f64.f64"),
]
HALF_SPECIAL = np.array([0, 1 << 15, 1, 0x8001, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF, 0x03FF], np.uint16)


def small(rng, type, size, spread):
    """The bits of factors of any type of `OTHERS`; of floats of 32 bits and less any, where no spread is asked for."""
    if type[0] in "su":
        return rng.integers(0, 1 << int(type[1:]), size)
    if spread is None and type != "f64":
        return rng.integers(0, 1 << 16, size, np.uint16) if type == "f16" else rng.integers(0, 1 << 32, size, np.uint32)
    spread = spread or 0
    values = factors(rng, type, size, min(spread, 6) if type == "f16" else spread)
    if type == "f64":
        return values.view(np.uint64)
    return bits("f16", values) if type == "f16" else values.astype(np.float32).view(np.uint32)


def added(rng, type, size):
    """The bits of accumulators of any type of `OTHERS`."""
    if type == "s32":
        return rng.integers(0, 1 << 32, size, np.uint32)
    if type == "f16":
        usual = rng.uniform(-8, 8, size).astype(np.float16).view(np.uint16)
        anything = rng.integers(0, 1 << 16, size, np.uint16)
        return np.choose(rng.integers(0, 3, size), [anything, usual, rng.choice(HALF_SPECIAL, size)])
    return accumulators(rng, size) if type == "f32" else rng.uniform(-8, 8, size).view(np.uint64)


def product_of(shape, types, **how):
    name = "m{}n{}k{}".format(*shape)
    kinds = dict(zip("dabc", (Type.named[each] for each in types.split(".")), strict=True))
    return Product(*[mma_fragment(m, kinds[m], name) for m in "abcd"], **how)


def fma(_, a, b, c):
    return fused.fma_f64(a, b, c)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("shape", "types"), OTHERS)
def test_other_products_are_those_of_the_tensor_cores(shape, types, rng, asked):
    m, n, k = shape
    target = 90 if shape == (16, 8, 16) and "f64" in types else 80
    _, a_type, b_type, c_type = types.split(".")
    for spread in (0, 12, None):
        a, b = small(rng, a_type, (STACK, m, k), spread), small(rng, b_type, (STACK, k, n), spread)
        c = added(rng, c_type, (STACK, m, n))
        got = multiply(shape, types, a, b, c, target=f"sm_{target}", engine="jit")
        architecture = tensor_core.architecture_of(target)
        wanted = tensor_core.multiply(product_of(shape, types), architecture, a, b, c, fma)
        assert not (wrong := np.argwhere(got != wanted)).size, (wrong[0], got[tuple(wrong[0])], wanted[tuple(wrong[0])])
    assert not asked


def test_sums_in_f16_overflow_and_are_rounded_once(asked):
    """Ties, what a lower bit decides, infinity, and subnormal results."""
    shape = m, n, k = 16, 8, 8
    a, b, c = np.zeros((1, m, k)), np.zeros((1, k, n)), np.zeros((1, m, n))
    b[0, 0], b[0, 1] = 1.0, 2.0**-4
    a[0, 0, 0], c[0, 0] = 2048, 1
    a[0, 1, :2], c[0, 1] = (2048, 2.0**-4), 1
    a[0, 2, 0], c[0, 2] = 2048, 3
    a[0, 3, 0] = 60000
    a[0, 4, 0], c[0, 4] = 60000, 60000
    a[0, 5, 1], c[0, 5] = 2.0**-20, 2.0**-24
    given = bits("f16", a), bits("f16", b), bits("f16", c)
    got = multiply(shape, "f16.f16.f16.f16", *given, target="sm_80", engine="jit").view(np.float16)[0]
    assert got[:6, 0].tolist() == [2048.0, 2050.0, 2052.0, 60000.0, np.inf, 2.0**-23]
    assert not asked


# ── floats of eight bits and less ───────────────────────────────────────────────────────

SMALL = {"e4m3": (8, 0), "e5m2": (8, 0), "e3m2": (6, 0), "e2m3": (6, 0), "e2m1": (4, 2)}  # bits, and where they stand in a byte
SMALL_PAIRS = [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2"), ("e3m2", "e2m1"), ("e2m3", "e4m3")]
ENDLESS = {"e4m3": [0x7F, 0xFF], "e5m2": [*range(0x7C, 0x80), *range(0xFC, 0x100)]}


def small_bits(rng, type, size, *, finite):
    """Any bits of a small float in a byte."""
    width, place = SMALL[type]
    found = rng.integers(0, 1 << width, size, np.uint8)
    if finite:
        found[np.isin(found, ENDLESS.get(type, []))] = 0
    return found << place


@pytest.mark.sampled(8)
@pytest.mark.parametrize("sums", ["f32", "f16"])
@pytest.mark.parametrize("target", ["89", "90", "120a"])
@pytest.mark.parametrize(("a_type", "b_type"), SMALL_PAIRS)
def test_products_of_small_bits(a_type, b_type, target, sums, rng, asked):
    """They are computed in vectors, infinities and NaNs too."""
    if (target, sums) == ("90", "f16") or (target != "120a" and SMALL[a_type][0] < 8):
        return  # ptxas converts the first, and refuses the second
    shape, before = (16, 8, 32), ".kind::f8f6f4" if target == "120a" else ""
    types, name = f"{sums}.{a_type}.{b_type}.{sums}", "m16n8k32"
    parts = [mma_fragment(m, Type.named[t], name) for m, t in zip("abcd", (a_type, b_type, sums, sums), strict=True)]
    for finite in (True, False):
        a, b = (
            small_bits(rng, a_type, (STACK, 16, 32), finite=finite),
            small_bits(rng, b_type, (STACK, 32, 8), finite=finite),
        )
        if not finite:
            a[:, 0, 0] = ENDLESS.get(a_type, [0])[0]
        c = rng.uniform(-8, 8, (STACK, 16, 8)).astype(np.float32 if sums == "f32" else np.float16)
        c = c.view(np.uint32 if sums == "f32" else np.uint16)
        wanted = tensor_core.multiply(Product(*parts), tensor_core.architecture_of(int(target[:3].rstrip("a"))), a, b, c, None)
        got = multiply(shape, types, a, b, c, target=f"sm_{target}", engine="jit", before=before)
        assert np.array_equal(got, wanted)
    assert not asked

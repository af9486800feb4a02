"""Sparse products of halves and bytes in the JIT's vectors have the bits of the reference, which hardware has been held to."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.lower import mma_on_host

PAIRS = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint32)  # two of four elements, in order (PTX 9.7.14.6.1)


SCALED = ".kind::mxf8f6f4.block_scale.scale_vec::1X"


def kernel(depth, type, sums, target, selector, kind=""):
    """A product of a warp, whose lanes have their registers in memory: A, B, C, the metadata, and scales where it is scaled."""
    of_a = of_b = depth // 8 if type in ("f16", "bf16") else depth // 16
    of_c, scaled = 4 if sums == "f32" else 2, kind == SCALED

    def registers(first, count):
        return "{" + ", ".join(f"%x{first + n}" for n in range(count)) + "}"

    last = of_a + of_b + of_c
    count, c = last + 1 + 2 * scaled, registers(of_a + of_b, of_c)
    operands = f"{c}, {registers(0, of_a)}, {registers(of_a, of_b)}, {c}, %x{last}, {selector}"
    of_scales = ".ue8m0" * scaled
    operands += f", %x{last + 1}, {{1, 1}}, %x{last + 2}, {{2, 3}}" * scaled
    return (
        count,
        of_c,
        ptxvm.load(f"""
        .version 8.7
        .target {target}
        .address_size 64
        .visible .entry k(.param .u64 out, .param .u64 in)
        {{
        .reg .b64 %p, %q; .reg .b32 %t, %x<{count}>;
        ld.param.u64 %p, [out]; ld.param.u64 %q, [in]; mov.u32 %t, %tid.x; mad.wide.u32 %q, %t, {4 * count}, %q;
        {" ".join(f"ld.global.b32 %x{n}, [%q+{4 * n}];" for n in range(count))}
        mma.sp::ordered_metadata.sync.aligned.m16n8k{depth}.row.col{kind}.{sums}.{type}.{type}.{sums}{of_scales} {operands};
        mad.wide.u32 %p, %t, {4 * of_c}, %p;
        {" ".join(f"st.global.b32 [%p+{4 * n}], %x{of_a + of_b + n};" for n in range(of_c))}
        ret;
        }}""").kernel("k"),
    )


def halves(rng, type, count):
    """Registers of two numbers of many magnitudes each."""
    values = rng.standard_normal((32, 2 * count)) * 2.0 ** rng.integers(-9, 6, (32, 2 * count))
    if type == "f16":
        return values.astype(np.float16).view(np.uint32)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)


def agree(product, words, of_c):
    """Are the results of both engines equal?"""
    found = {}
    for engine in ("interp", "jit"):
        found[engine] = np.zeros((32, of_c), np.uint32)
        product.launch(1, 32, [found[engine], words], engine=engine)
    return (found["interp"] == found["jit"]).all()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120a"])
@pytest.mark.parametrize(("type", "sums"), [("f16", "f32"), ("f16", "f16"), ("bf16", "f32")])
@pytest.mark.parametrize(("depth", "selectors"), [(16, (0, 1, 2, 3)), (32, (0, 1))])
def test_the_bits_are_those_of_the_reference(rng, monkeypatch, depth, selectors, type, sums, target):
    asked = []
    call = mma_on_host.Multiplication.__call__
    monkeypatch.setattr(mma_on_host.Multiplication, "__call__", lambda *args: asked.append(1) or call(*args))
    for selector in selectors:
        count, of_c, product = kernel(depth, type, sums, target, selector)
        words = np.zeros((32, count), np.uint32)
        words[:, : depth // 4] = halves(rng, type, depth // 4)
        added = rng.standard_normal((32, 4))
        words[:, depth // 4 : -1] = added.astype(np.float32 if sums == "f32" else np.float16).view(np.uint32)
        words[:, -1] = (rng.choice(PAIRS, (32, 8)) << 4 * np.arange(8, dtype=np.uint32)).sum(axis=1)
        assert agree(product, words, of_c)
        assert not asked
        words[:, : depth // 8] = rng.integers(0, 1 << 32, (32, depth // 8), np.uint32)
        assert agree(product, words, of_c)
        assert not asked  # whatever A is
        words[3, depth // 4 - 1] = 0x7F80_7C00
        assert agree(product, words, of_c)
        assert asked  # an infinity of B may meet the zeros that A does not have
        asked.clear()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("type", "sums", "target", "kind"),
    [("e4m3", "f32", "sm_89", ""), ("e4m3", "f32", "sm_90", ""), ("e5m2", "f32", "sm_100", ""),
     ("e5m2", "f32", "sm_120a", ""), ("e5m2", "f16", "sm_120a", ".kind::f8f6f4"),
     ("e2m3", "f32", "sm_120a", ".kind::f8f6f4"), ("e2m1", "f32", "sm_120a", ".kind::f8f6f4"),
     ("e4m3", "f32", "sm_120a", SCALED), ("e3m2", "f32", "sm_120a", SCALED)],
)  # fmt: skip
def test_bytes_have_the_bits_of_the_reference(rng, monkeypatch, type, sums, target, kind):
    """The numbers have any bits but those of infinities and NaN."""
    asked = []
    call = mma_on_host.Multiplication.__call__
    monkeypatch.setattr(mma_on_host.Multiplication, "__call__", lambda *args: asked.append(1) or call(*args))
    count, of_c, product = kernel(64, type, sums, target, 0, kind)
    words = rng.integers(0, 1 << 32, (32, count), np.uint32) & np.uint32(0xBBBB_BBBB)
    added = rng.standard_normal((32, 4))
    words[:, 8 : 8 + of_c] = added.astype(np.float32 if sums == "f32" else np.float16).view(np.uint32)
    words[:, 8 + of_c] = (rng.choice(PAIRS, (32, 8)) << 4 * np.arange(8, dtype=np.uint32)).sum(axis=1)
    if kind == SCALED:
        words[:, -2:] = rng.integers(110, 140, (32, 2, 4)).astype(np.uint8).view(np.uint32)[..., 0]
    found = {engine: np.zeros((32, of_c), np.uint32) for engine in ("interp", "jit")}
    for engine, out in found.items():
        product.launch(1, 32, [out, words], engine=engine)
    assert (found["interp"] == found["jit"]).all()
    assert not asked


HALF_BYTES = """
.version 8.7
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .b64 %p, %q; .reg .b32 %t, %x<15>;
ld.param.u64 %p, [out]; ld.param.u64 %q, [in]; mov.u32 %t, %tid.x; mad.wide.u32 %q, %t, 60, %q;
LOADS
mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.KIND.block_scale.SIZE.f32.e2m1.e2m1.f32.SCALES {%x8, %x9, %x10, %x11},
    {%x0, %x1, %x2, %x3}, {%x4, %x5, %x6, %x7}, {%x8, %x9, %x10, %x11}, %x12, 0, %x13, {0, 1}, %x14, {0, 2};
mad.wide.u32 %p, %t, 16, %p;
st.global.v4.b32 [%p], {%x8, %x9, %x10, %x11};
ret;
}
""".replace("LOADS", " ".join(f"ld.global.b32 %x{n}, [%q+{4 * n}];" for n in range(15)))


@pytest.mark.parametrize(
    ("kind", "size", "scales"),
    [("mxf4", "scale_vec::2X", "ue8m0"), ("mxf4nvf4", "scale_vec::2X", "ue8m0"), ("mxf4nvf4", "scale_vec::4X", "ue4m3")],
)
def test_half_bytes_have_the_bits_of_the_reference(rng, monkeypatch, kind, size, scales):
    """Pairs of them are neighbours (PTX 9.7.14.6.1): any numbers, with scales far apart."""
    asked = []
    call = mma_on_host.Multiplication.__call__
    monkeypatch.setattr(mma_on_host.Multiplication, "__call__", lambda *args: asked.append(1) or call(*args))
    product = ptxvm.load(HALF_BYTES.replace("KIND", f"kind::{kind}").replace("SIZE", size).replace("SCALES", scales)).kernel()
    words = rng.integers(0, 1 << 32, (32, 15), np.uint32)
    words[:, 8:12] = rng.standard_normal((32, 4)).astype(np.float32).view(np.uint32)
    words[:, 12] = (rng.choice(PAIRS, (32, 8)) << 4 * np.arange(8, dtype=np.uint32)).sum(axis=1)
    within = (110, 140) if scales == "ue8m0" else (0, 0x7F)
    words[:, 13:] = rng.integers(*within, (32, 2, 4)).astype(np.uint8).view(np.uint32)[..., 0]
    assert agree(product, words, 4)
    assert not asked
    words[7, 13] = 0xFFFF_FFFF  # scales that are no numbers
    assert agree(product, words, 4)
    assert asked

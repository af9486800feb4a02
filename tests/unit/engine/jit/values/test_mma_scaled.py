"""Products of scaled blocks in the JIT's vectors have the bits of the reference, which recorded products are held to."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.lower import mma_on_host

TYPES = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
HALF_BYTES = "mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{blocks}X.f32.e2m1.e2m1.f32.{scale}"
PRODUCT = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0"
COUNT = 12  # registers of a lane: A, B, C, and the scales


def kernel(product, ids=("{1, 0}", "{2, 1}")):
    """A product of a warp, whose lanes have their registers in memory."""
    loads = " ".join(f"ld.global.b32 %x{n}, [%q+{4 * n}];" for n in range(COUNT))
    stores = " ".join(f"st.global.b32 [%p+{4 * n}], %x{6 + n};" for n in range(4))
    sums = "{%x6, %x7, %x8, %x9}"
    return ptxvm.load(f"""
        .version 9.1
        .target sm_120a
        .address_size 64
        .visible .entry k(.param .u64 out, .param .u64 in)
        {{
        .reg .b64 %p, %q; .reg .b32 %t, %x<{COUNT}>;
        ld.param.u64 %p, [out]; ld.param.u64 %q, [in]; mov.u32 %t, %tid.x; mad.wide.u32 %q, %t, {4 * COUNT}, %q;
        {loads}
        {product} {sums}, {{%x0, %x1, %x2, %x3}}, {{%x4, %x5}}, {sums}, %x10, {ids[0]}, %x11, {ids[1]};
        mad.wide.u32 %p, %t, 16, %p; {stores}
        ret;
        }}""").kernel("k")


@pytest.fixture
def asked(monkeypatch):
    """How often the JIT asks the host for a product, as a list."""
    calls, call = [], mma_on_host.Multiplication.__call__
    monkeypatch.setattr(mma_on_host.Multiplication, "__call__", lambda *args: calls.append(1) or call(*args))
    return calls


def both(product, words):
    """D by the interpreter and by the JIT."""
    found = {engine: np.zeros((32, 4), np.uint32) for engine in ("interp", "jit")}
    for engine, out in found.items():
        product.launch(1, 32, [out, words], engine=engine)
    return found["interp"], found["jit"]


def registers(rng, scales, numbers=0xBBBB_BBBB):
    """Any numbers but the infinities and NaN, accumulators of some size, and scales out of a range."""
    words = rng.integers(0, 1 << 32, (32, COUNT), np.uint32) & np.uint32(numbers)
    words[:, 6:10] = (rng.standard_normal((32, 4)) * 100).astype(np.float32).view(np.uint32)
    words[:, 10:] = rng.integers(*scales, (32, 2, 4)).astype(np.uint8).view(np.uint32)[..., 0]
    return words


@pytest.mark.sampled(8)
@pytest.mark.parametrize("b", TYPES)
@pytest.mark.parametrize("a", TYPES)
def test_the_bits_are_those_of_the_reference(rng, asked, a, b):
    product = kernel(PRODUCT.format(a=a, b=b))
    for scales in ((120, 135), (100, 150)):
        interpreted, compiled = both(product, registers(rng, scales))
        assert (interpreted == compiled).all()
    interpreted, compiled = both(product, registers(rng, (120, 135), numbers=0xFFFF_FFFF))
    assert (interpreted == compiled).all()
    assert not asked


@pytest.mark.parametrize("scales", [(0, 6), (250, 256), (0, 256)])
def test_numbers_beyond_bf16_are_left_to_the_host(rng, scales):
    product = kernel(PRODUCT.format(a="e4m3", b="e5m2"))
    for large in (False, True):
        words = registers(rng, scales)
        if large:
            words[:, 11] = 0xFEFE_FEFE  # what is too small for bf16 counts, times 2**127
            words[:, :4] &= np.uint32(0x0303_0303)
            words[:, 6:10] = 0
        interpreted, compiled = both(product, words)
        assert (interpreted == compiled).all()
        interpreted, compiled = both(product, registers(rng, scales, numbers=0xFFFF_FFFF))
        assert (interpreted == compiled).all()


@pytest.mark.parametrize(("blocks", "scale"), [(2, "ue8m0"), (4, "ue8m0"), (4, "ue4m3")])
def test_half_bytes_have_the_bits_of_the_reference(rng, asked, blocks, scale):
    """With scales of any size, whose sums cancel, are subnormal, or too large for f32."""
    product = kernel(
        HALF_BYTES.format(kind="mxf4" if blocks == 2 else "mxf4nvf4", blocks=blocks, scale=scale),
        ("{2, 1}", "{0, 2}") if blocks == 2 else ("{0, 1}", "{0, 2}"),
    )
    for scales in ((40, 72), (0, 127)) if scale == "ue4m3" else ((120, 135), (0, 255), (40, 60)):
        for size in (1e-39, 1, 1e38):
            words = registers(rng, scales)
            words[:, :6] = rng.integers(0, 1 << 32, (32, 6), np.uint32) * (rng.random((32, 6)) < 0.8)
            words[:, 6:10] = (rng.standard_normal((32, 4)).clip(-3, 3) * size).astype(np.float32).view(np.uint32)
            interpreted, compiled = both(product, words)
            assert (interpreted == compiled).all()
    assert not asked


@pytest.mark.parametrize(("place", "word"), [(6, 0x7F80_0000), (9, 0xFFC0_0000), (10, 0xFFFF_FFFF), (11, 0x7F7F_7F7F)])
def test_half_bytes_beside_what_is_no_number_are_left_to_the_host(rng, asked, place, word):
    product = kernel(HALF_BYTES.format(kind="mxf4nvf4", blocks=4, scale="ue4m3"), ("{0, 0}", "{0, 0}"))
    words = registers(rng, (40, 72))
    words[5, place] = word
    words[4, place] = word
    interpreted, compiled = both(product, words)
    assert (interpreted == compiled).all()
    assert asked

"""Undefined elements of matrix products: those of D that other values of the undefined registers would change."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.algebra.types import named_type
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.undefined_products import undefined
from ptxvm.isa.fragments import Core, Product, mma_fragment, quarter_fragment, wmma_fragment
from ptxvm.machine.tensor_core import Architecture
from ptxvm.machine.warp_matrix import multiply, registers_of

PRODUCTS = {
    "f16": ("m16n8k16", "f32.f16.f16.f32", mma_fragment),
    "sums of f16": ("m16n8k8", "f16.f16.f16.f16", mma_fragment),
    "four at once": ("m8n8k4", "f32.f16.f16.f32", quarter_fragment),
    "f64": ("m8n8k4", "f64.f64.f64.f64", mma_fragment),
    "bytes": ("m16n8k32", "s32.s8.u8.s32", mma_fragment),
    "half bytes": ("m8n8k32", "s32.u4.u4.s32", mma_fragment),
    "bits": ("m8n8k128", "s32.b1.b1.s32", mma_fragment),
    "wmma": ("m16n16k16", "f32.f16.f16.f32", wmma_fragment),
}


def values(fragment, rng):
    """Registers with small numbers."""
    shape = (2 * fragment.matrices, *fragment.shape)
    small = rng.integers(1, 1 << min(fragment.width, 3), shape) if fragment.width > 1 else rng.integers(0, 2, shape)
    held = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(fragment.type.name)
    bits = small.astype(held).view(f"u{fragment.width // 8}") if held else small.astype(f"u{max(fragment.width, 8) // 8}")
    if fragment.width >= 8:
        return registers_of(fragment, bits)
    return [rng.integers(0, 1 << 32, 64).astype(np.uint32) for _ in range(fragment.registers)]


@pytest.mark.parametrize(("shape", "types", "of"), PRODUCTS.values(), ids=PRODUCTS)
def test_what_other_values_would_change_is_undefined(shape, types, of, rng):
    kinds = {m: named_type(t) for m, t in zip("dabc", types.split("."), strict=True)}
    parts = {m: of(m, t) if of is quarter_fragment else of(m, t, shape) for m, t in kinds.items()}
    how = {"core": Core.WMMA} if of is wmma_fragment else {}
    product = Product(**parts, **how, **({"operation": "xor"} if "b1" in types else {}))
    fragments = product.a, product.b, product.c

    def fma(rounding, a, b, c):
        return arrays.floating("fma", rounding, arrays.F64, a, b, c)

    fixed = [values(each, rng) for each in fragments]
    masks = [[np.where(rng.integers(0, 24, 64) == 0, -1, 0).astype(each.dtype) for each in part] for part in fixed]
    if of is wmma_fragment:  # whose lanes may hold an element twice
        masks = [[np.zeros_like(each) for each in part] for part in masks[:2]] + masks[2:]
    origins = [[np.full(64, 7 + n, np.int32) for _ in part] for n, part in enumerate(masks)]
    found = undefined(product, masks, origins)
    changed = [np.zeros_like(mask) for mask, _ in found]
    before = multiply(product, Architecture.AMPERE, *fixed, fma=fma)
    for _ in range(12):
        drawn = [
            [old & ~mask | new & mask for old, new, mask in zip(*each, strict=True)]
            for each in zip(fixed, [values(each, rng) for each in fragments], masks, strict=True)
        ]
        after = multiply(product, Architecture.AMPERE, *drawn, fma=fma)
        changed = [old | (was ^ now) for old, was, now in zip(changed, before, after, strict=True)]
    assert any(each.any() for each in changed)
    for (mask, origin), other in zip(found, changed, strict=True):
        assert not (other & ~mask).any()
        assert ((mask != 0) == (origin != 0)).all()
        assert set(origin.tolist()) <= {0, 7, 8, 9}
        if product.d.packed == 1:
            assert ((mask != 0) == (other != 0)).all()


PARTLY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 rows) {
    .reg .b32 %a<4>, %b<2>, %d<4>, %c, %t, %r, %n; .reg .b64 %in, %out; .reg .pred %p, %q;
    ld.param.b64 %in, [in]; ld.param.b64 %out, [out]; ld.param.b32 %n, [rows]; mov.u32 %t, %tid.x; shr.u32 %r, %t, 2;
    mad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %out, %t, 16, %out;
    setp.lt.u32 %p, %r, %n; add.u32 %r, %r, 8; setp.lt.u32 %q, %r, %n; mov.b32 %c, 0;
    @%p ld.global.b32 %a0, [%in]; @%q ld.global.b32 %a1, [%in]; @%p ld.global.b32 %a2, [%in]; @%q ld.global.b32 %a3, [%in];
    ld.global.b32 %b0, [%in]; ld.global.b32 %b1, [%in];
    PRODUCT
    @%p st.global.v2.b32 [%out], {%d0, %d1}; STORE st.global.v2.b32 [%out + 8], {%d2, %d3};
    ret;
}
"""
DENSE = """mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c, %c, %c, %c};"""
SPARSE = """mov.b32 %r, 0x44444444; mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1}, {%c, %c, %c, %c}, %r, 0;"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("instruction", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_rows_that_nothing_has_loaded_are_found_where_they_are_stored(instruction, engine):
    """The last tile of a matrix: its rows past the end are multiplied, and must not be stored."""
    text = PARTLY.replace("PRODUCT", instruction)
    if "ordered" in instruction:
        text = text.replace(".version 8.0", ".version 8.5")
    launch = {"block": 32, "args": [np.ones(32, np.uint32), np.zeros(128, np.uint32), 11], "check": ("init",)}
    assert ptxvm.load(text.replace("STORE", "@%q")).kernel().launch(engine=engine, **launch).findings == []
    (found,) = ptxvm.load(text.replace("STORE", "")).kernel().launch(engine=engine, **launch).findings
    assert found.message.startswith("reading register %d2, which comes from register %a")
    assert found.accesses[-1].thread == (12, 0, 0)

"""Elements of four and six bits: a tensor copy pads 16 of them to 16 bytes, and `ldmatrix` makes bytes of them.

The padding has no value (PTX 5.5.1.1), and is none of the bytes that an mbarrier counts: CUTLASS 4.2 announces the bits of the
elements alone (`TmaTransactionBytes` of sm100_blockscaled_mma_warpspecialized.hpp and sm120_blockscaled_mma_tma.hpp).
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm import DeviceArray, Swizzle, TensorMap, TensorType

ROWS, COLUMNS = 8, 128
PTX = """
.version 8.7
.target sm_120a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes)
{{
    .reg .b64 %map, %out; .reg .b32 %t, %n, %row, %at, %r<4>; .reg .pred %first, %over;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 done;
    mov.b64 %map, map; ld.param.b64 %out, [out]; ld.param.b32 %n, [bytes];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    bar.warp.sync -1;
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [done], %n;
    mov.b32 %at, 0;
    @%first cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%map, {{%at, %at}}], [done];
again:
    mbarrier.try_wait.parity.shared.b64 %over, [done], 0;
    @!%over bra again;
    and.b32 %row, %t, 7; shr.u32 %at, %t, 3; xor.b32 %at, %at, %row; shl.b32 %at, %at, 4; // the swizzle of 128 bytes
    mad.lo.u32 %at, %row, 128, %at; mov.u32 %row, tile; add.u32 %at, %at, %row;
    ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{format} {{%r0, %r1, %r2, %r3}}, [%at];
    mad.wide.u32 %out, %t, 16, %out;
    st.global.v4.b32 [%out], {{%r0, %r1, %r2, %r3}};
    ret;
}}
"""


@pytest.mark.parametrize("asynchronous", ["early", "late", None])
@pytest.mark.parametrize(
    ("bits", "type", "format"),
    [(4, TensorType.U4_ALIGN16B, "b4x16_p64"), (6, TensorType.U6_ALIGN16B, "b6x16_p32")],
    ids=["four bits", "six bits"],
)
def test_padded_elements_become_bytes(bits, type, format, asynchronous, rng):
    elements = rng.integers(0, 1 << bits, (ROWS, COLUMNS)).astype(np.uint8)
    there = DeviceArray.from_host(np.packbits(elements[..., None] >> np.arange(bits) & 1, bitorder="little"))
    row = COLUMNS * bits // 8
    tensor = TensorMap.tiled(
        type, there.address, (COLUMNS, ROWS), sizes=(COLUMNS, ROWS), strides=(row,), swizzle=Swizzle.B128
    )  # fmt: skip
    out = np.zeros((32, 4), np.uint32)
    engine = "interp" if asynchronous else "jit"
    kernel = ptxvm.load(PTX.format(format=format)).kernel()
    launched = kernel.launch(
        1, 32, [tensor, out, np.uint32(ROWS * row)], engine=engine, asynchronous=asynchronous, check=("init", "race", "sync")
    )
    assert launched.findings == []
    loaded = out.view(np.uint8).reshape(ROWS, 4, 4, 4).swapaxes(1, 2).reshape(ROWS, 64)
    assert (loaded == elements[:, :64] << (2 if bits == 4 else 0)).all()


STORE = """
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u32 x, .param .u32 y)
{{
    .reg .b64 %map, %in; .reg .b32 %t, %x, %y, %at, %v; .reg .pred %first, %p;
    .shared .align 1024 .b8 tile[1024];
    mov.b64 %map, map; ld.param.b64 %in, [in]; ld.param.b32 %x, [x]; ld.param.b32 %y, [y];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at; mad.wide.u32 %in, %t, 4, %in;
    mov.u32 %v, 0;
next:
    ld.global.b32 %t, [%in]; st.shared.b32 [%at], %t;
    add.u64 %in, %in, 128; add.u32 %at, %at, 128; add.u32 %v, %v, 128;
    setp.lt.u32 %p, %v, 1024; @%p bra next;
    fence.proxy.async.shared::cta;
    bar.warp.sync -1;
    @%first {copy}.bulk_group [%map, {{%x, %y}}], [tile];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
    ret;
}}
"""


def stored(tensor, data, x, y, engine, copy="cp.async.bulk.tensor.2d.global.shared::cta.tile", **how):
    return ptxvm.load(STORE.format(copy=copy)).kernel().launch(1, 32, [tensor, data, x, y], engine=engine, **how)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("x", "y", "swizzle"), [(0, 0, Swizzle.NONE), (128, 5, Swizzle.B128), (256, 0, Swizzle.NONE)])
def test_bytes_become_elements_of_six_bits(x, y, swizzle, engine, rng):
    """`.b6p2x16`: the upper two bits of each byte are no part of the tensor (PTX 5.5.1.1); rows outside are not written."""
    before = rng.integers(0, 64, (8, 256)).astype(np.uint8)
    there = DeviceArray.from_host(np.packbits(before[..., None] >> np.arange(6) & 1, bitorder="little"))
    tensor = TensorMap.tiled(TensorType.U6_ALIGN16B, there.address, (128, 8), sizes=(256, 8), strides=(192,), swizzle=swizzle)
    data = rng.integers(0, 256, 1024).astype(np.uint8)
    launched = stored(tensor, data, x, y, engine, check=("memory", "init", "race", "sync"))
    assert launched.findings == []
    rows = data.reshape(8, 128) & 63
    if swizzle is Swizzle.B128:  # chunk k of line n lies at k ^ n
        rows = np.stack([row.reshape(8, 16)[np.arange(8) ^ n].ravel() for n, row in enumerate(rows)])
    after = before.copy()
    if x < 256:
        after[y:, x : x + 128] = rows[: 8 - y]
    want = np.packbits(after[..., None] >> np.arange(6) & 1, bitorder="little")
    assert (there.array == want).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("type", "copy", "x", "kind", "said"),
    [
        (TensorType.U4_ALIGN16B, "async", 0, "invalid-tensor-map", r"a tensor of \.b4x16_p64 has no copies to it"),
        (TensorType.U6_ALIGN16B, "reduce", 0, "invalid-tensor-map", r"a tensor of \.b6x16_p32 has no reductions"),
        (TensorType.U4_ALIGN8B, "reduce", 0, "invalid-tensor-map", r"a tensor of \.b4x16 has no reductions"),
        (TensorType.U6_ALIGN16B, "async", 32, "misaligned", "multiple of 64, not 32"),
    ],
)
def test_what_no_copy_does_with_them(type, copy, x, kind, said, engine):
    """PTX 9.7.9.27.1.1."""
    there = DeviceArray(4096, np.uint8)
    tensor = TensorMap.tiled(type, there.address, (128, 8), sizes=(256, 8), strides=(192,))
    name = "cp.async.bulk.tensor.2d.global.shared::cta.tile" if copy == "async" else \
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile"  # fmt: skip
    with pytest.raises(ptxvm.Fault, match=said) as caught:
        stored(tensor, np.zeros(1024, np.uint8), x, 0, engine, name)
    assert caught.value.kind == kind

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

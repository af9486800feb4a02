"""Accesses at strides that a run tells: the same elements as lane by lane, for all lanes and for some.

The expectations are NumPy's slices, of what PTX 9.7.9 (ld, st) says of each thread.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.ir import cpu

BLOCK, SIZE = 128, 4096
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 stride, .param .u32 lanes)
{
    .shared .align 8 .b8 s[32768];
    .reg .b32 %r<8>; .reg .bBITS %v, %w; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [stride]; ld.param.u32 %r1, [lanes];
    mov.u32 %r2, %tid.x; mov.u32 %r3, s; mul.lo.u32 %r4, %r2, %r0; mov.u32 %r7, 0;
    mad.lo.u32 %r5, %r4, BYTES, %r3; mul.wide.s32 %d2, %r4, BYTES; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
L:  setp.ge.u32 %p, %r2, %r1; @%p bra E;
    ld.global.bBITS %v, [%d3]; st.shared.bBITS [%r5], %v;
    ld.shared.bBITS %w, [%r5]; add.uBITS %w, %w, 1; st.global.bBITS [%d4], %w;
E:  add.u32 %r7, %r7, 1; setp.lt.u32 %p, %r7, 2; @%p bra L;
    ret;
}
"""


@pytest.fixture(scope="module", params=[4, 8])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def kernel(size: int) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.replace("BITS", str(8 * size)).replace("BYTES", str(size))).kernel("k")


@pytest.mark.parametrize("lanes", [BLOCK, 77, 32, 9, 3, 0])
def test_run_time_strides(kernel: ptxvm.Kernel, size: int, lanes: int, rng: np.random.Generator) -> None:
    for stride in (0, 1, 2, 3, 4, 5, 8, 16, 31):
        data = rng.integers(1, 1 << 8 * size - 1, SIZE, dtype=f"u{size}")
        out, wanted = np.zeros_like(data), np.zeros_like(data)
        at = np.arange(lanes) * stride
        wanted[at] = data[at] + np.ones_like(at, f"u{size}")
        kernel.launch(1, BLOCK, [data, out, np.uint32(stride), np.uint32(lanes)], engine="jit")
        assert np.array_equal(out, wanted), stride


def test_the_last_lane_may_be_at_the_end(kernel: ptxvm.Kernel, size: int) -> None:
    for stride in (1, 2, 4, 8):
        length = (BLOCK - 1) * stride + 1
        data, out = np.arange(length, dtype=f"u{size}"), np.zeros(length, f"u{size}")
        kernel.launch(1, BLOCK, [data, out, np.uint32(stride), np.uint32(BLOCK)], engine="jit")
        assert np.array_equal(out[::stride], data[::stride] + np.ones(BLOCK, data.dtype))
        assert not np.delete(out, np.arange(BLOCK) * stride).any()


@pytest.mark.parametrize("warps", range(16))
def test_warps_without_active_lanes_access_nothing(size: int, warps: int, rng: np.random.Generator) -> None:
    """Any of four warps abreast, whose lanes all take part or none; one lane of the last one never does."""
    guard = "shr.u32 %r6, %r2, 5; shr.u32 %r6, %r1, %r6; and.b32 %r6, %r6, 1; setp.eq.u32 %p, %r2, 127; @%p mov.u32 %r6, 0;"
    source = KERNEL.replace("setp.ge.u32 %p, %r2, %r1;", f"{guard} setp.eq.u32 %p, %r6, 0;")
    one = ptxvm.load(source.replace("BITS", str(8 * size)).replace("BYTES", str(size))).kernel("k")
    at = np.array([lane for lane in range(BLOCK - 1) if warps >> lane // 32 & 1], int) * 7
    data = rng.integers(1, 1 << 8 * size - 1, SIZE, dtype=f"u{size}")
    out, wanted = np.zeros_like(data), np.zeros_like(data)
    wanted[at] = data[at] + np.ones_like(at, f"u{size}")
    one.launch(1, BLOCK, [data, out, np.uint32(7), np.uint32(warps)], engine="jit")
    assert np.array_equal(out, wanted)


@pytest.mark.skipif(not cpu.has("avx512f"), reason="one warp runs at a time")
def test_each_of_several_warps_is_skipped_where_it_has_no_active_lanes(kernel: ptxvm.Kernel) -> None:
    """A branch looks at the mask of its lanes before the call."""
    text = kernel.dump("llvm", BLOCK)
    masks = {*re.findall(r"call .*@ptxvm\.(?:gather|scatter)_strided.*, i32 (%\S+)\)", text)}
    assert len(masks) == BLOCK // 32
    assert masks <= {*re.findall(r"icmp \w+ i32 (%\S+), 0\n", text)}

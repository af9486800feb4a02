"""Interleaved local memory: each thread has its own bytes, whatever the size and the offset of an access (PTX 5.1.5)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"


def kernel(body: str) -> ptxvm.Kernel:
    """A kernel with 64 bytes of local memory at %here; %r0 is the thread, %d1 the address of its two words of the output."""
    return ptxvm.load(f"""{HEAD}
.visible .entry k(.param .u64 out, .param .u32 given)
{{
    .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<5>; .reg .b64 %here;
    .local .align 16 .b8 own[64];
    ld.param.u64 %d0, [out];
    ld.param.u32 %r19, [given];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 8, %d0;
    mov.u64 %here, own;
    {body}
    ret;
}}""").kernel()


MIXED = {
    "words": ("st.local.u32", "%r0", 4, "ld.local.u64 %d4, [%here+8];"),
    "halves": ("cvt.u16.u32 %h0, %r0;\n st.local.u16", "%h0", 2, "ld.local.u64 %d4, [%here+8];"),
    "bytes": ("st.local.u8", "%r0", 1, "ld.local.v2.u32 {%r4, %r5}, [%here+8];\n mov.b64 %d4, {%r4, %r5};"),
}


@pytest.mark.parametrize("block", [32, 256, 40])
@pytest.mark.parametrize("size", MIXED)
def test_elements_of_several_sizes_share_their_bytes(size: str, block: int) -> None:
    store, value, step, load = MIXED[size]
    body = "\n".join([
        "cvt.u64.u32 %d2, %r0;\n mul.lo.u64 %d2, %d2, 0x0102030405060708;",
        "st.local.u64 [%here+8], %d2;",
        f"{store} [%here+{8 + step}], {value};",
        f"{load}\n st.global.u64 [%d1], %d4;",
    ])  # fmt: skip
    (out,) = same(kernel(body), [np.zeros(block, np.uint64), np.uint32(0)], block=block)[:1]
    expected = np.arange(block, dtype=np.uint64) * np.uint64(0x0102030405060708)
    bytes_ = expected.view(np.uint8).reshape(block, 8)
    bytes_[:, step : 2 * step] = np.arange(block, dtype=np.uint64).view(np.uint8).reshape(block, 8)[:, :step]
    assert out.tolist() == bytes_.reshape(-1).view(np.uint64).tolist()


def test_lanes_with_different_offsets_and_lanes_that_are_inactive_keep_their_own_elements() -> None:
    body = """
    shl.b32 %r1, %r0, 2;
    and.b32 %r1, %r1, 60;
    cvt.u64.u32 %d2, %r1;
    add.u64 %d2, %d2, %here;
    st.local.u32 [%d2], %r0;
    setp.lt.u32 %p0, %r0, 50;
    @%p0 st.local.u32 [%here+4], 1000;
    and.b32 %r2, %r0, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    st.local.v2.u32 [%here], {%r19, %r0};
    EVEN:
    ld.local.u32 %r3, [%here+4];
    ld.local.u32 %r4, [%d2];
    st.global.v2.u32 [%d1], {%r3, %r4};
"""
    (out,) = same(kernel(body), [np.zeros((64, 2), np.uint32), np.uint32(7)], block=64)[:1]
    own = np.zeros((64, 16), np.uint32)
    for n in range(64):
        own[n, n % 16] = n
        own[n, 1] = 1000 if n < 50 else own[n, 1]
        if n % 2:
            own[n, :2] = 7, n
    assert (out == np.stack([own[:, 1], own[np.arange(64), np.arange(64) % 16]], axis=1)).all()


def test_a_predicate_that_no_lane_has_lets_an_offset_be_anything() -> None:
    body = """
    st.local.u32 [%here], %r0;
    mul.wide.u32 %d2, %r19, 4096;
    add.u64 %d2, %d2, %here;
    setp.gt.u32 %p0, %r0, %r19;
    @%p0 ld.local.u32 %r3, [%d2];
    @%p0 st.local.u32 [%d2], %r0;
    ld.local.u32 %r4, [%here];
    st.global.u32 [%d1], %r4;
"""
    (out,) = same(kernel(body), [np.zeros((64, 2), np.uint32), np.uint32(1 << 18)], block=64)[:1]
    assert out[:, 0].tolist() == list(range(64))
    assert same_fault(kernel(body), [np.zeros((64, 2), np.uint32), np.uint32(3)], block=64).kind == "out-of-bounds"


def test_a_generic_address_of_local_memory_reaches_the_bytes_of_its_thread() -> None:
    body = """
    st.local.v2.u32 [%here+8], {%r0, %r19};
    cvta.local.u64 %d2, %here;
    ld.u64 %d3, [%d2+8];
    st.global.u64 [%d1], %d3;
"""
    (out,) = same(kernel(body), [np.zeros((64, 2), np.uint32), np.uint32(9)], block=64)[:1]
    assert out.tolist() == [[n, 9] for n in range(64)]


def test_a_uniform_offset_is_a_row() -> None:
    shapes = kernel("st.local.u32 [%here+4], %r0;\n ld.local.u32 %r1, [%here+4];\n st.global.u32 [%d1], %r1;").dump(
        "shapes", 64
    )
    assert [line.split()[-1] for line in shapes.splitlines() if ".local.u32 " in line] == ["contiguous"] * 2

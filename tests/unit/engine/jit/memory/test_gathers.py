"""Bytes and halves at any addresses, which the processor gathers as parts of words: PTX 9.7.9.8 (ld)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same_fault

import ptxvm

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 index, .param .u64 out)
{
    .reg .b32 %r<3>; .reg .b16 %h; .reg .b64 %d<6>;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [index]; ld.param.u64 %d2, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
    ld.global.u32 %r1, [%d1]; mul.wide.u32 %d4, %r1, SIZE; add.u64 %d5, %d0, %d4;
    ld.global.TYPE %h, [%d5]; cvt.s32.TYPE %r2, %h; st.global.s32 [%d2], %r2;
    ret;
}
"""
BLOCK = 64


def kernel(type: str) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.replace("SIZE", str(int(type[1:]) // 8)).replace("TYPE", type)).kernel("k")


@pytest.mark.parametrize("type", ["u8", "s8", "u16", "s16"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 97])
def test_parts_of_words_up_to_the_end_of_an_array(type: str, count: int, rng: np.random.Generator) -> None:
    element = np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(type[1:]) // 8}")
    data = rng.integers(0, 1 << 8 * element.itemsize, count).astype(f"u{element.itemsize}").view(element)
    index = np.concatenate([np.arange(count) % count, rng.integers(0, count, BLOCK)])[-BLOCK:].astype(np.uint32)
    out = np.zeros(BLOCK, np.int32)
    kernel(type).launch(1, BLOCK, [data, index, out], engine="jit")
    assert np.array_equal(out, data[index].astype(np.int32))


@pytest.mark.parametrize("type", ["u8", "u16"])
def test_a_part_beyond_the_end_is_a_fault_of_its_lane(type: str) -> None:
    data, index = np.zeros(5, f"u{int(type[1:]) // 8}"), np.zeros(BLOCK, np.uint32)
    index[37] = 5  # in the word that holds the last element
    same_fault(kernel(type), [data, index, np.zeros(BLOCK, np.int32)], block=BLOCK)

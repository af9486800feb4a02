"""Minimum and maximum on both engines: signed zeros, infinities, subnormals and NaN (PTX 9.7.3.11, 9.7.3.12)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

F32 = [0, 1 << 31, 1, 0x8000_0001, 0x3F80_0000, 0xBF80_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFFF_FFFF, 0x7F80_0001]
F64 = [0, 1 << 63, 1, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, (1 << 64) - 1, (0x7FF << 52) + 1]
TEXT = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 left, .param .u64 right, .param .u64 out)
{
    .reg .b32 %r0; .reg .b64 %d<9>; .reg .fTYPE %f<5>;
    ld.param.u64 %d0, [left];
    ld.param.u64 %d1, [right];
    ld.param.u64 %d2, [out];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d3, %r0, BYTES, %d0;
    mad.wide.u32 %d4, %r0, BYTES, %d1;
    mad.wide.u32 %d5, %r0, PAIR, %d2;
    ld.global.fTYPE %f0, [%d3];
    ld.global.fTYPE %f1, [%d4];
    min.fTYPE %f2, %f0, %f1;
    max.fTYPE %f3, %f0, %f1;
    st.global.fTYPE [%d5], %f2;
    st.global.fTYPE [%d5+BYTES], %f3;
    ret;
}
"""


@pytest.mark.parametrize(("bits", "values"), [(32, F32), (64, F64)])
def test_pairs_of_special_numbers(bits: int, values: list[int]) -> None:
    word, real = np.dtype(f"u{bits // 8}"), np.dtype(f"f{bits // 8}")
    left, right = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(*[np.array(values, word)] * 2))
    text = TEXT.replace("TYPE", str(bits)).replace("BYTES", str(bits // 8)).replace("PAIR", str(bits // 4))
    out = same(ptxvm.load(text).kernel(), [left, right, np.zeros((left.size, 2), word)], block=left.size)[2]
    a, b = left.view(real), right.view(real)
    below = (a < b) | ((a == b) & (np.signbit(a) >= np.signbit(b)))
    numbers = ~np.isnan(a) & ~np.isnan(b)
    for n, first in enumerate((below, ~below)):
        found = np.where(numbers, np.where(first, left, right), np.where(np.isnan(a), right, left))
        known = ~(np.isnan(a) & np.isnan(b))
        assert (out[known, n] == found[known]).all()
        assert np.isnan(out[~known, n].view(real)).all()

"""Shuffles of several warps abreast: each lane reads a lane of its own warp (PTX 9.7.9.6)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

KERNEL = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 count)
{{
    .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<3>; .reg .pred %p<3>;
    ld.param.u64 %d1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %d1, %r1, 4, %d1;
    mov.u32 %r5, 0;
AGAIN:
    ld.global.b32 %r2, [%d1];
    shfl.sync.{mode}.b32 %r3|%p1, %r2, {lane}, {clamp}, 0xffffffff;
    selp.b32 %r4, 0x100000, 0, %p1;
    add.u32 %r3, %r3, %r4;
    bar.sync 0;
    st.global.b32 [%d1], %r3;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 2;
    @%p2 bra AGAIN;
    ret;
}}
"""


def shuffled(values: np.ndarray, mode: str, amount: int, clamp: int) -> np.ndarray:
    """The pseudo code of the manual, lane by lane."""
    out = values.copy()
    for n in range(values.size):
        lane, warp = n % 32, n - n % 32
        segment, bound = clamp >> 8 & 31, clamp & 31
        low, high = lane & segment, (lane & segment) | (bound & ~segment & 31)
        other, valid = {
            "up": (lane - amount, lane - amount >= high),
            "down": (lane + amount, lane + amount <= high),
            "bfly": (lane ^ amount, lane ^ amount <= high),
            "idx": (low | (amount & ~segment & 31), (low | (amount & ~segment & 31)) <= high),
        }[mode]
        out[n] = values[warp + (other if valid else lane)] + (0x100000 if valid else 0)
    return out


@pytest.mark.parametrize("threads", [64, 96, 128, 256])
@pytest.mark.parametrize(
    ("mode", "amount", "clamp"),
    [
        ("down", 16, 31), ("down", 1, 31), ("up", 3, 0), ("up", 1, 0x1800), ("bfly", 5, 31), ("bfly", 16, 31), ("idx", 7, 31),
        ("idx", 3, 0x181F), ("down", 2, 0x1C1F),
    ],
)  # fmt: skip
def test_lanes_read_lanes_of_their_warp(mode: str, amount: int, clamp: int, threads: int) -> None:
    kernel = ptxvm.load(KERNEL.format(mode=mode, lane=amount, clamp=clamp)).kernel()
    values = np.arange(threads, dtype=np.uint32) * 3 + 1
    data = values.copy()
    kernel.launch(block=threads, args=[data, 0], engine="jit")
    once = shuffled(values, mode, amount, clamp)
    assert (data == shuffled(once, mode, amount, clamp)).all()


def test_they_are_abreast() -> None:
    text = ptxvm.load(KERNEL.format(mode="bfly", lane=1, clamp=31)).kernel().dump("shapes", 128)
    assert "4 abreast" in text.splitlines()[0]
    assert "Slow:" not in text

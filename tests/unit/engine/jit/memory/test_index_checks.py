"""Addresses made of an index of 32 bits: the elements that NumPy has there, and the interpreter's faults outside."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same_fault

import ptxvm

BLOCK, SIZE = 64, 1000
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .s64 start, .param .u64 index, .param .u64 out, .param .u32 lanes)
{{
    .reg .b32 %r<6>; .reg .b64 %d<8>; .reg .pred %p;
    ld.param.u64 %d0, [data]; ld.param.s64 %d1, [start]; ld.param.u64 %d2, [index]; ld.param.u64 %d3, [out];
    ld.param.u32 %r4, [lanes]; mov.u32 %r2, 77;
    add.s64 %d0, %d0, %d1; mov.u32 %r0, %tid.x; mul.wide.u32 %d4, %r0, 4; add.u64 %d2, %d2, %d4; add.u64 %d3, %d3, %d4;
    ld.global.u32 %r1, [%d2];
    {made}
    add.s64 %d5, %d0, %d5;
    {access}
    st.global.u32 [%d3], %r2;
    ret;
}}
"""
MADE = {
    "signed": "mul.wide.s32 %d5, %r1, 4;",
    "unsigned": "mul.wide.u32 %d5, %r1, 4;",
    "shifted": "cvt.s64.s32 %d6, %r1; shl.b64 %d5, %d6, 2;",
    "a sum shifted": "cvt.s64.s32 %d6, %r1; add.s64 %d6, %d6, 3; shl.b64 %d5, %d6, 2;",
    "members": "mul.wide.s32 %d5, %r1, 16;",
    "members, unsigned": "mul.wide.u32 %d5, %r1, 8;",
    "members of an odd size": "mul.wide.s32 %d5, %r1, 12;",
    "from above": "mul.wide.s32 %d6, %r1, 4; sub.s64 %d5, %d6, 40;",
}
FACTOR = {"members": 16, "members, unsigned": 8, "members of an odd size": 12}
MORE = {"a sum shifted": 12, "from above": -40}
ACCESSES = {
    "all": "ld.global.u32 %r2, [%d5];",
    "some": "setp.lt.u32 %p, %r0, %r4; @%p ld.global.u32 %r2, [%d5];",
    "a loop": "mov.u32 %r5, 0; L: ld.global.u32 %r2, [%d5]; add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, 3; @%p bra L;",
}


def arguments(name: str, start: int, indices: np.ndarray, lanes: int = 40) -> list:
    data = np.arange(1, SIZE + 1, dtype=np.uint32)
    return [data, np.int64(start - MORE.get(name, 0)), indices.astype(np.uint32), np.zeros(BLOCK, np.uint32), np.uint32(lanes)]


def kernel(name: str, access: str) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.format(made=MADE[name], access=ACCESSES[access])).kernel()


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("name", MADE)
def test_inside(name: str, access: str, rng: np.random.Generator) -> None:
    k, factor = kernel(name, access), FACTOR.get(name, 4)
    most = (SIZE * 4 - 4) // factor + 1
    for first in (0, 5, -7) if "unsigned" not in name else (0, 5):  # the least index, whose element is the first
        indices = rng.permutation(np.concatenate([[0, most - 1], rng.integers(0, most, BLOCK - 2)])) + first
        given = arguments(name, -first * factor, indices)
        given[2][40:] = given[2][40:] if access != "some" else 0x4000_0001  # what lanes that are not active hold is nothing
        k.launch(1, BLOCK, given, engine="jit")
        wanted = given[0][(indices - first) * factor // 4]
        if access == "some":
            wanted[40:] = 77
        assert given[3].tolist() == wanted.tolist()


@pytest.mark.parametrize("name", MADE)
def test_one_lane_outside(name: str) -> None:
    k, indices = kernel(name, "all"), np.zeros(BLOCK, np.int64)
    indices[13] = SIZE
    same_fault(k, arguments(name, 0, indices), block=BLOCK)
    for index in (-1, 0x7FFF_FFFF, -0x8000_0000, 0x4000_0000, -0x4000_0000, 0x3FFF_FFFF + SIZE):
        indices[13] = index
        with pytest.raises(ptxvm.Fault) as caught:  # what lies so far away is chance, and so are the words of the fault
            k.launch(1, BLOCK, arguments(name, 0, indices), engine="jit")
        assert caught.value.place.thread == (13, 0, 0)


@pytest.mark.parametrize("start", [2, -4, 4 * SIZE, 1 << 33, -(1 << 33)])
@pytest.mark.parametrize("name", ["signed", "unsigned", "members"])
def test_a_base_outside(name: str, start: int) -> None:
    same_fault(kernel(name, "all"), arguments(name, start, np.zeros(BLOCK, np.int64)), block=BLOCK)


def test_a_base_that_is_far_from_all_elements() -> None:
    """An index and a base that are both too far for 32 bits, and whose sum is in bounds."""
    indices = np.arange(BLOCK) + 0x7000_0000
    given = arguments("signed", -0x7000_0000 * 4, indices)
    kernel("signed", "all").launch(1, BLOCK, given, engine="jit")
    assert given[3].tolist() == given[0][:BLOCK].tolist()

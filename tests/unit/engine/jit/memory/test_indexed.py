"""Gathers and scatters at indices that memory holds, of all orders: the same elements as lane by lane.

The expectations are NumPy's, of what PTX 9.7.9 (ld, st) says of each thread; of threads of a warp that store to one place
the last one stays, as on the interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same_fault

import ptxvm

BLOCK, SIZE = 96, 512
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 from, .param .u64 to, .param .u64 out)
{
    .shared .align 8 .b8 s[4096];
    .reg .b32 %r<8>; .reg .bBITS %v, %w; .reg .b64 %d<9>;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; ld.param.u64 %d3, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d4, %r0, 4; add.u64 %d5, %d1, %d4; add.u64 %d6, %d2, %d4;
    ld.global.u32 %r1, [%d5]; ld.global.u32 %r2, [%d6]; mov.u32 %r3, s;
    mul.wide.u32 %d7, %r1, BYTES; add.u64 %d7, %d0, %d7; ld.global.bBITS %v, [%d7];
    mad.lo.u32 %r4, %r2, BYTES, %r3; st.shared.bBITS [%r4], %v;
    bar.sync 0;
    mad.lo.u32 %r5, %r1, BYTES, %r3; ld.shared.bBITS %w, [%r5]; add.uBITS %w, %w, %v;
    mul.wide.u32 %d8, %r2, BYTES; add.u64 %d8, %d3, %d8; st.global.bBITS [%d8], %w;
    ret;
}
"""
LANE = np.arange(BLOCK)
PLACES = {
    "a row": LANE + 17,
    "a row at the end": LANE + SIZE - BLOCK,
    "backwards": SIZE - 1 - LANE,
    "two rows": np.where(LANE % 32 < 5, LANE + 60, LANE + 200),
    "a first lane apart": np.where(LANE % 32 == 0, 3, LANE),
    "a last lane apart": np.where(LANE % 32 == 31, SIZE - 1, LANE),
    "two rows side by side": LANE % 16 + 16 * (LANE // 16 % 2) + 64 * (LANE // 32),
    "two rows in turn": np.where(LANE % 2, LANE, LANE + 300),
    "two rows with the same places": np.where(LANE % 32 < 20, LANE, LANE - 8),
    "rows in turn with the same places": np.where(LANE % 4 < 2, LANE, LANE - 2),
    "three rows": LANE + 40 * (LANE % 32 // 11),
    "one place": np.full(BLOCK, 9),
    "one lane apart": np.where(LANE % 32 == 13, 2, LANE),
    "pairs": LANE // 2,
}


@pytest.fixture(scope="module", params=[4, 8])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def kernel(size: int) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.replace("BITS", str(8 * size)).replace("BYTES", str(size))).kernel("k")


@pytest.mark.parametrize("name", PLACES)
def test_places(kernel: ptxvm.Kernel, size: int, name: str, rng: np.random.Generator) -> None:
    other = rng.permutation(SIZE)[:BLOCK]
    for start, end in ((PLACES[name], other), (other, PLACES[name]), (PLACES[name], PLACES[name])):
        data = rng.integers(1, 1 << 31, SIZE, dtype=f"u{size}")
        shared, out, wanted = (np.zeros(SIZE, f"u{size}") for _ in range(3))
        for k in LANE:
            shared[end[k]] = data[start[k]]
        for k in LANE:
            wanted[end[k]] = shared[start[k]] + data[start[k]]
        kernel.launch(1, BLOCK, [data, start.astype(np.uint32), end.astype(np.uint32), out], engine="jit")
        assert np.array_equal(out, wanted)


def test_a_row_that_leaves_an_array_is_a_fault_of_its_lane(kernel: ptxvm.Kernel, size: int) -> None:
    row, none = (LANE + 3).astype(np.uint32), np.zeros(BLOCK, np.uint32)
    for start, end in ((row, none), (none, row)):
        arrays = [np.zeros(BLOCK + (2 if part is row else 99), f"u{size}") for part in (start, end)]
        same_fault(kernel, [arrays[0], start, end, arrays[1]], block=BLOCK, threads=1)

"""CTAs that run grid-stride loops in step: with the same results, counts and faults as one after the other.

Sums are those of NumPy; which CTA has the first fault follows from the sizes.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import lone_array

import ptxvm
from ptxvm.engine.jit.run import runner

SUM = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 data, .param .u32 n, .param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .pred %p<4>;
    .shared .align 4 .b8 held[512];
    ld.param.u64 %d0, [data];
    ld.param.u32 %r0, [n];
    ld.param.u64 %d3, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %ctaid.x;
    mul.lo.u32 %r5, %r2, %r3;
    mad.lo.u32 %r6, %r4, %r2, %r1;
    mov.u32 %r7, 0;
NEXT:
    mul.wide.u32 %d1, %r6, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.u32 %r8, [%d2];
    add.u32 %r7, %r7, %r8;
    add.u32 %r6, %r6, %r5;
    setp.lt.u32 %p0, %r6, %r0;
    @%p0 bra NEXT;
    shl.b32 %r9, %r1, 2;
    mov.u32 %r10, held;
    add.u32 %r9, %r9, %r10;
    st.shared.u32 [%r9], %r7;
    bar.sync 0;
    xor.b32 %r11, %r1, 33;
    shl.b32 %r11, %r11, 2;
    add.u32 %r11, %r11, %r10;
    ld.shared.u32 %r12, [%r11];
    mad.lo.u32 %r13, %r4, %r2, %r1;
    mul.wide.u32 %d4, %r13, 4;
    add.u64 %d3, %d3, %d4;
    st.global.u32 [%d3], %r12;
    ret;
}
"""
BLOCK, GRID = 128, 8
ROW = BLOCK * GRID
ROWS = 2056 - 1  # the last row is the last but one of a round: 2056 is a multiple of `runner.ITERATIONS`


@pytest.fixture(scope="module")
def kernel() -> ptxvm.Kernel:
    found = ptxvm.load(SUM).kernel()
    assert "%in_step" in found.dump("llvm", BLOCK)
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_of_ctas_in_step(kernel: ptxvm.Kernel, rng: np.random.Generator, threads: int) -> None:
    data = rng.integers(0, 1 << 20, ROWS * ROW + 77, np.uint32)  # the last row has 77 elements: lanes part there
    assert data.nbytes >= runner.FAR
    out = np.zeros(ROW, np.uint32)
    result = kernel.launch(GRID, BLOCK, [data, len(data), out], engine="jit", threads=threads)
    padded = np.zeros((ROWS + 1) * ROW, np.uint32)
    padded[: len(data)] = data
    sums = padded.reshape(-1, GRID, BLOCK).sum(axis=0, dtype=np.uint32)
    assert (out.reshape(GRID, BLOCK) == sums[:, np.arange(BLOCK) ^ 33]).all()
    outside, inside = 24, 7  # instructions of a thread: all but those of the loop, and those of an iteration
    assert result.thread_instructions == outside * ROW + inside * len(data)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_cta_with_a_fault_is_named_where_a_later_one_comes_to_its_own_sooner(
    kernel: ptxvm.Kernel, threads: int
) -> None:
    assert (ROWS + 1) % runner.ITERATIONS == 0
    data = lone_array(ROWS * ROW + 5 * BLOCK, np.dtype(np.uint32))
    out = np.zeros(ROW, np.uint32)
    with pytest.raises(ptxvm.Fault) as caught:  # CTA 5 leaves the array in the last row of a turn, CTA 0 in the next
        kernel.launch(GRID, BLOCK, [data, data.size + 2 * ROW, out], engine="jit", threads=threads)
    assert (caught.value.kind, caught.value.place.cta) == ("out-of-bounds", (0, 0, 0))


def test_a_deadlock_in_a_cta_names_its_threads_while_others_are_in_the_loop() -> None:
    text = SUM.replace("bar.sync 0;", "setp.lt.u32 %p1, %r1, 32;\n    @%p1 bar.sync 1;\n    @!%p1 bar.sync 2;")
    data, out = np.ones(ROWS * ROW + 77, np.uint32), np.zeros(ROW, np.uint32)
    with pytest.raises(ptxvm.Fault) as caught:
        ptxvm.load(text).kernel().launch(GRID, BLOCK, [data, len(data), out], engine="jit", threads=1)
    assert (caught.value.kind, caught.value.place.cta) == ("deadlock", (0, 0, 0))

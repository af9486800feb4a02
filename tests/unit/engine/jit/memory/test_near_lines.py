"""Accesses whose lanes stay in a line in any order: butterflies, permutations, and lanes that share an element.

Expectations are computed by NumPy, lane after lane; both engines must agree besides.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.campaign.fuzz.engines import fenced

THREADS = 96
# A thread loads and stores the element ((t * times + more) & 15 ^ bits) + (t & ~15) - less, if (t & which) == want.
SOURCE = """.version 8.3\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 times, .param .u32 more, .param .u32 bits, .param .u32 which,
    .param .u32 want)
{
    .reg .b32 %r<20>; .reg .TYPE %v<4>; .reg .b64 %d<9>; .reg .pred %p<3>;
    .shared .align 64 .b8 held[1024];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [times];
    ld.param.u32 %r2, [more];
    ld.param.u32 %r3, [bits];
    ld.param.u32 %r4, [which];
    ld.param.u32 %r5, [want];
    mov.u32 %r0, %tid.x;
    mad.lo.u32 %r6, %r0, %r1, %r2;
    and.b32 %r6, %r6, 15;
    xor.b32 %r6, %r6, %r3;
    and.b32 %r7, %r0, -16;
    add.u32 %r6, %r6, %r7;
    mul.lo.u32 %r8, %r6, SIZE;
    cvt.u64.u32 %d2, %r8;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    mov.u32 %r9, held;
    add.u32 %r9, %r9, %r8;
    cvt.TYPE.u32 %v1, %r0;
    mul.lo.u32 %r10, %r0, SIZE;
    mov.u32 %r12, held;
    add.u32 %r10, %r10, %r12;
    st.shared.TYPE [%r10], 5;
    bar.sync 0;
    and.b32 %r11, %r0, %r4;
    setp.ne.u32 %p0, %r11, %r5;
    @%p0 bra done;
    ld.global.TYPE %v0, [%d3];
    add.TYPE %v0, %v0, %v1;
    st.shared.TYPE [%r9], %v0;
    ld.shared.TYPE %v2, [%r9];
    add.TYPE %v2, %v2, %v1;
    st.global.TYPE [%d4], %v2;
done:
    ret;
}
"""


def kernel(size: int) -> ptxvm.Kernel:
    """For elements of a size in bytes."""
    return ptxvm.load(SOURCE.replace("TYPE", f"u{8 * size}").replace("SIZE", str(size))).kernel()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("shift", [0, 3], ids=["lines", "across lines"])
@pytest.mark.parametrize(("which", "want"), [(0, 0), (1, 0), (4, 4), (16, 16), (128, 128)])
@pytest.mark.parametrize(
    ("times", "more", "bits"),
    [(1, 0, 1), (1, 0, 2), (1, 0, 8), (1, 0, 15), (5, 0, 0), (1, 3, 0), (2, 0, 0), (0, 7, 0), (1, 1, 4)],
)
def test_elements(times: int, more: int, bits: int, which: int, want: int, shift: int, size: int) -> None:
    t = np.arange(THREADS)
    places = ((t * times + more) & 15 ^ bits) + (t & ~15)
    whole = np.arange(1000, 1000 + THREADS + 16 + shift, dtype=f"u{size}")
    data, out = whole[shift:], np.zeros_like(whole)[shift:]
    held, expected = np.full(1024 // size, 5, np.uint64), np.zeros(len(out), np.uint64)
    active = t[(t & which) == want]
    for lane in active:
        held[places[lane]] = data[places[lane]] + lane
    for lane in active:  # all lanes have stored before the first loads
        expected[places[lane]] = held[places[lane]] + lane
    numbers = [np.uint32(n) for n in (times, more, bits, which, want)]
    _, found = same(kernel(size), [data, out, *numbers], block=THREADS)
    assert found.tolist() == expected.tolist()


def test_a_lane_beyond_an_array_is_a_fault() -> None:
    data = np.zeros(THREADS - 2, np.uint32)
    numbers = [np.uint32(n) for n in (1, 0, 1, 0, 0)]
    fault = same_fault(kernel(4), [data, np.zeros(THREADS, np.uint32), *numbers], block=THREADS, match="out-of-bounds")
    assert fault.place.thread == (THREADS - 2, 0, 0)


# A thread loads the element t * times / over, or that number less than the last one.
STRETCHED = """.version 8.3\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 times, .param .u32 over, .param .u32 last, .param .u32 limit)
{
    .reg .b32 %r<12>; .reg .TYPE %v<3>; .reg .b64 %d<6>; .reg .pred %p<3>;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [times];
    ld.param.u32 %r2, [over];
    ld.param.u32 %r3, [last];
    ld.param.u32 %r4, [limit];
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r5, %r0, %r1;
    div.u32 %r5, %r5, %r2;
    sub.u32 %r6, %r3, %r5;
    setp.ne.u32 %p0, %r3, 0;
    selp.b32 %r5, %r6, %r5, %p0;
    mul.wide.u32 %d2, %r5, SIZE;
    add.u64 %d3, %d0, %d2;
    mul.wide.u32 %d4, %r0, SIZE;
    add.u64 %d5, %d1, %d4;
    setp.ge.u32 %p1, %r0, %r4;
    @%p1 bra done;
    ld.global.TYPE %v0, [%d3];
    st.global.TYPE [%d5], %v0;
done:
    ret;
}
"""


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("times", "over"), [(1, 2), (49, 100), (3, 4), (9, 8), (1, 7)])
@pytest.mark.parametrize("limit", [THREADS, 83])
def test_rows_that_are_made_longer(limit: int, times: int, over: int, backwards: bool, size: int) -> None:
    """As pixels of an image that is enlarged; nothing behind the last element can be read, not even a byte of its line."""
    places = np.arange(limit) * times // over
    last = int(places[-1])
    data = fenced(np.arange(7, 8 + last, dtype=f"u{size}"))
    made = ptxvm.load(STRETCHED.replace("TYPE", f"u{8 * size}").replace("SIZE", str(size))).kernel()
    out = np.zeros(THREADS, f"u{size}")
    made.launch(block=THREADS, args=[data, out, *map(np.uint32, (times, over, last if backwards else 0, limit))], engine="jit")
    assert np.array_equal(out[:limit], data[last - places if backwards else places])
    assert not out[limit:].any()

"""Regions with loops in which lanes of whole warps part and meet again: the leader's loop, loops of different lengths, ends.

Expectations are computed by NumPy or by hand; both engines must agree besides.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm

MODULE = ".version 8.3\n.target sm_90\n.address_size 64\n"
HEAD = """
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 n)
{
    .reg .b32 %r<30>; .reg .b64 %d<9>; .reg .pred %p<9>;
    .shared .align 8 .b8 s[4096];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d3, [out];
    ld.param.u32 %r9, [n];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mad.lo.u32 %r3, %r1, %r2, %r0;
    mul.wide.u32 %d1, %r3, 4;
    add.u64 %d2, %d0, %d1;
    add.u64 %d4, %d3, %d1;
    ld.global.u32 %r4, [%d2];
    shl.b32 %r5, %r0, 2;
    mov.u32 %r6, s;
    add.u32 %r7, %r6, %r5;
"""


def kernel(body: str) -> ptxvm.Kernel:
    return ptxvm.load(MODULE + HEAD + body + "\n    ret;\n}\n").kernel()


# The first thread of each CTA adds the numbers of all threads up to one that its CTA names; all threads read the sum.
LEADER = """
    st.shared.u32 [%r7], %r4;
    bar.sync 0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra ON;
    add.u32 %r10, %r1, %r9;
    mov.u32 %r11, 0;
    mov.u32 %r12, %r6;
AGAIN:
    ld.shared.u32 %r13, [%r12];
    add.u32 %r11, %r11, %r13;
    add.u32 %r12, %r12, 4;
    add.u32 %r10, %r10, -1;
    setp.ne.u32 %p1, %r10, 0;
    @%p1 bra AGAIN;
    st.shared.u32 [s+2048], %r11;
ON:
    bar.sync 0;
    ld.shared.u32 %r14, [s+2048];
    ld.shared.u32 %r15, [%r7];
    add.u32 %r16, %r15, %r14;
    st.global.u32 [%d4], %r16;
"""


@pytest.mark.parametrize("threads", [32, 64, 256, 77])
def test_a_loop_of_the_first_thread(threads: int) -> None:
    made, ctas = kernel(LEADER), 4
    shapes = made.dump("shapes", threads)
    if threads % 32 == 0:
        assert "whole warps" in shapes.splitlines()[0]
        assert not any(line.endswith("else masked") for line in shapes.splitlines())
        assert any("ld.shared.u32 %r15" in line and line.endswith("contiguous") for line in shapes.splitlines())
    data = np.random.default_rng(1).integers(0, 2**32, ctas * threads, np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(5)], grid=ctas, block=threads)
    rows = data.reshape(ctas, threads)
    sums = [rows[cta, : cta + 5].sum(dtype=np.uint32) for cta in range(ctas)]
    assert out.tolist() == (rows + np.array(sums, np.uint32)[:, None]).ravel().tolist()


# A thread t makes (n - t) / 8 iterations, as of a loop that strides over a row; inside, lanes part once more by their number.
# %r20 is written in the region and read behind it, %r21 before it; both are formulas of the lane before.
UNEVEN = """
    add.u32 %r20, %r0, 7;
    add.u32 %r21, %r0, 1000;
    mov.u32 %r22, 0;
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra ON;
    sub.u32 %r10, %r9, %r0;
    shr.u32 %r10, %r10, 3;
    add.u32 %r10, %r10, 1;
AGAIN:
    add.u32 %r20, %r20, 3;
    and.b32 %r11, %r10, 1;
    setp.eq.u32 %p1, %r11, 0;
    @%p1 bra EVEN;
    mad.lo.u32 %r22, %r22, 5, %r20;
    bra MEET;
EVEN:
    and.b32 %r12, %r10, 3;
INNER:
    add.u32 %r22, %r22, %r4;
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p2, %r12, 4;
    @%p2 bra INNER;
MEET:
    add.u32 %r10, %r10, -1;
    setp.ne.u32 %p3, %r10, 0;
    @%p3 bra AGAIN;
ON:
    bar.sync 0;
    add.u32 %r23, %r20, %r21;
    add.u32 %r23, %r23, %r22;
    st.global.u32 [%d4], %r23;
"""


def uneven(data: np.ndarray, t: int, n: int) -> int:
    r20, r21, r22 = t + 7, t + 1000, 0
    for r10 in range((n - t) // 8 + 1 if t < n else 0, 0, -1):
        r20 += 3
        if r10 & 1:
            r22 = r22 * 5 + r20
        else:
            r22 += max(4 - (r10 & 3), 1) * int(data[t])
    return (r20 + r21 + r22) & 0xFFFF_FFFF


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [32, 128, 256, 45])
@pytest.mark.parametrize("n", [1, 130, 300])
def test_loops_of_different_lengths(threads: int, n: int) -> None:
    data = np.random.default_rng(2).integers(0, 1000, threads, np.uint32)
    _, out = same(kernel(UNEVEN), [data, np.zeros_like(data), np.uint32(n)], block=threads)
    assert out.tolist() == [uneven(data, t, n) for t in range(threads)]


@pytest.mark.parametrize("threads", [32, 256])
def test_registers_that_a_region_does_not_write_keep_their_shape(threads: int) -> None:
    made = kernel(UNEVEN)
    title, *rows = made.dump("shapes", threads).splitlines()
    assert "whole warps" in title
    assert any("@%p3 bra AGAIN" in row and row.endswith("may part") for row in rows)
    assert any("st.global.u32" in row and row.endswith("contiguous") for row in rows)


# Threads of some numbers end in the middle of a loop, those of the others at its end: no lane is left behind.
ENDING = """
    mov.u32 %r10, 0;
    and.b32 %r11, %r0, 15;
AGAIN:
    setp.eq.u32 %p0, %r10, %r11;
    @%p0 bra OUT;
    add.u32 %r10, %r10, 1;
    add.u32 %r4, %r4, %r10;
    setp.lt.u32 %p1, %r10, %r9;
    @%p1 bra AGAIN;
    add.u32 %r12, %r4, 5000;
    st.global.u32 [%d4], %r12;
    ret;
OUT:
    st.global.u32 [%d4], %r4;
"""


@pytest.mark.parametrize("threads", [32, 192])
def test_threads_that_end_inside(threads: int) -> None:
    data = np.arange(threads, dtype=np.uint32)
    _, out = same(kernel(ENDING), [data, np.zeros_like(data), np.uint32(9)], block=threads)
    t = np.arange(threads)
    early = (t & 15) < 9
    steps = np.where(early, t & 15, 9)
    assert out.tolist() == (t + steps * (steps + 1) // 2 + np.where(early, 0, 5000)).tolist()


# Threads of the last warps end just where those of the first ones meet behind a region.
BESIDE = """
    mov.u32 %r10, 0;
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra OTHER;
    and.b32 %r11, %r0, 7;
    setp.eq.u32 %p1, %r11, 0;
    @%p1 bra ON;
AGAIN:
    add.u32 %r10, %r10, %r11;
    add.u32 %r11, %r11, -1;
    setp.ne.u32 %p1, %r11, 0;
    @%p1 bra AGAIN;
    bra ON;
OTHER:
    and.b32 %r11, %r0, 1;
    setp.eq.u32 %p2, %r11, 1;
    @%p2 exit;
ON:
    bar.sync 0;
    add.u32 %r10, %r10, 1;
    st.global.u32 [%d4], %r10;
"""


@pytest.mark.parametrize("threads", [64, 256])
def test_threads_that_end_beside_a_region(threads: int) -> None:
    data = np.zeros(threads, np.uint32)
    _, out = same(kernel(BESIDE), [data, data, np.uint32(threads // 2)], block=threads)
    t = np.arange(threads)
    low = t & 7
    expected = np.where(t < threads // 2, low * (low + 1) // 2 + 1, np.where(t & 1, 0, 1))
    assert out.tolist() == expected.tolist()


# The first thread of a CTA waits for that of the CTA before, and adds its own number to what that one wrote.
CHAIN = """
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra ON;
    mul.wide.u32 %d5, %r1, 4;
    add.u64 %d6, %d0, %d5;
    mov.u32 %r10, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra FIRST;
AGAIN:
    ld.volatile.global.u32 %r10, [%d6+-4];
    setp.eq.u32 %p2, %r10, 0;
    @%p2 bra AGAIN;
FIRST:
    add.u32 %r11, %r10, %r1;
    add.u32 %r11, %r11, 1;
    st.volatile.global.u32 [%d6], %r11;
    st.shared.u32 [s], %r11;
ON:
    bar.sync 0;
    ld.shared.u32 %r12, [s];
    st.global.u32 [%d4], %r12;
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_first_thread_that_waits_for_another_cta(workers: str, backwards: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backwards, each CTA waits for one that begins later: the warp leaves the region for code with a fair scheduler."""
    monkeypatch.setenv("PTXVM_THREADS", workers)
    ctas, threads = 24, 64
    body = CHAIN
    if backwards:
        body = f"    sub.u32 %r1, {ctas - 1}, %r1;\n" + CHAIN
        body = f"    mov.u32 %r20, {ctas - 1};\n" + body.replace(f"sub.u32 %r1, {ctas - 1}, %r1", "sub.u32 %r1, %r20, %r1")
    data = np.zeros(ctas * threads, np.uint32)
    out = np.zeros_like(data)
    kernel(body).launch(ctas, threads, [data, out, np.uint32(0)], engine="jit")
    sums = np.cumsum(np.arange(1, ctas + 1))
    assert data[:ctas].tolist() == sums.tolist()
    rows = out.reshape(ctas, threads)
    assert (rows == rows[:, :1]).all()
    assert rows[:, 0].tolist() == (sums[::-1] if backwards else sums).tolist()


# Numbers of 32 bits that wrap in some lanes are extended inside a region, and a store there goes astray in one lane.
EXTENDS = """
    and.b32 %r10, %r0, 7;
    mov.u64 %d5, 0;
    setp.lt.u32 %p0, %r0, 3;
    @%p0 bra ON;
AGAIN:
    add.s32 %r11, %r0, %r9;
    cvt.s64.s32 %d6, %r11;
    add.s64 %d5, %d5, %d6;
    setp.eq.u32 %p1, %r10, 0;
    add.u32 %r10, %r10, -1;
    @!%p1 bra AGAIN;
ON:
    bar.sync 0;
    shr.u64 %d5, %d5, 16;
    cvt.u32.u64 %r12, %d5;
    st.global.u32 [%d4], %r12;
"""


@pytest.mark.parametrize("n", [5, 2**31 - 20, 2**31 - 200])
@pytest.mark.parametrize("threads", [32, 128])
def test_numbers_that_wrap_inside(threads: int, n: int) -> None:
    data = np.zeros(threads, np.uint32)
    _, out = same(kernel(EXTENDS), [data, data, np.uint32(n)], block=threads)
    t = np.arange(threads)
    wide = (t + n).astype(np.uint32).astype(np.int32).astype(np.int64)
    total = np.where(t < 3, 0, wide * ((t & 7) + 1))
    assert out.tolist() == (total >> 16).astype(np.uint32).tolist()


@pytest.mark.parametrize("threads", [32, 128])
def test_a_fault_inside_is_of_its_thread(threads: int) -> None:
    body = """
    and.b32 %r10, %r0, 7;
    setp.lt.u32 %p0, %r0, 3;
    @%p0 bra ON;
AGAIN:
    mul.wide.u32 %d5, %r10, %r9;
    add.u64 %d6, %d2, %d5;
    st.global.u32 [%d6], %r10;
    setp.eq.u32 %p1, %r10, 0;
    add.u32 %r10, %r10, -1;
    @!%p1 bra AGAIN;
ON:
    bar.sync 0;
"""
    data = np.zeros(7 * threads, np.uint32)
    fault = same_fault(kernel(body), [data, data, np.uint32(4 * threads)], block=threads, match="out-of-bounds")
    assert fault.place.thread == (7, 0, 0)


@pytest.mark.parametrize("threads", [64, 256])
def test_lanes_that_part_are_counted(threads: int) -> None:
    data = np.arange(threads, dtype=np.uint32)
    counts = [
        kernel(UNEVEN).launch(1, threads, [data.copy(), data.copy(), np.uint32(70)], engine=engine).thread_instructions
        for engine in ("interp", "jit")
    ]
    assert counts[0] == counts[1]


def test_what_ran_before_a_node_was_left_is_counted_once() -> None:
    body = """
    shr.u32 %r11, %r4, 31;
    setp.eq.u32 %p0, %r11, 0;
    @!%p0 bra ELSE;
    mul.lo.u32 %r10, %r0, 0x9000004;
    cvt.u64.u32 %d5, %r10;
    bra END;
ELSE:
    @%p0 mov.u32 %r12, 0;
END:
"""  # the product wraps in some lane, so the vector code is left; %p0 is false in each lane that comes to ELSE
    data = np.random.default_rng(5).integers(0, 2**32, 1024, np.uint32)
    arms = np.where(data >> 31 == 0, 3, 1).sum()
    for engine in ("interp", "jit"):
        done = kernel(body).launch(1, 1024, [data, np.zeros_like(data), np.uint32(0)], engine=engine)
        assert done.thread_instructions == 1024 * (14 + 3 + 1) + arms


# A warp walks over a row twice; the second loop counts in the register from which the first one began.
ROW = """
    mov.u32 %r10, 0;
    mov.u32 %r11, %r0;
    mov.u64 %d5, %d2;
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra SUM;
FIRST:
    ld.global.u32 %r12, [%d5];
    add.u32 %r10, %r10, %r12;
    add.u64 %d5, %d5, 128;
    add.u32 %r11, %r11, 32;
    setp.lt.u32 %p1, %r11, %r9;
    @%p1 bra FIRST;
SUM:
    redux.sync.add.u32 %r13, %r10, 0xffffffff;
    @%p0 bra ON;
AGAIN:
    mul.wide.u32 %d6, %r0, 4;
    add.u64 %d7, %d0, %d6;
    add.u64 %d8, %d3, %d6;
    ld.global.u32 %r14, [%d7];
    add.u32 %r14, %r14, %r13;
    st.global.u32 [%d8], %r14;
    add.u32 %r0, %r0, 32;
    setp.lt.u32 %p2, %r0, %r9;
    @%p2 bra AGAIN;
    st.global.u32 [%d4+1024], %r0;
ON:
"""


@pytest.mark.parametrize("n", [5, 32, 192, 200])
def test_a_register_that_only_the_last_region_writes_keeps_its_shape(n: int) -> None:
    made = kernel(ROW)
    rows = made.dump("shapes", 32).splitlines()
    assert sum(row.endswith("may part") for row in rows) == 4
    assert all(row.endswith("contiguous") for row in rows if "global.u32" in row)
    data = np.random.default_rng(4).integers(0, 2**32, 200, np.uint32)
    _, out = same(made, [data, np.zeros(288, np.uint32), np.uint32(n)], block=32)
    assert out[:n].tolist() == (data[:n] + data[:n].sum(dtype=np.uint32)).tolist()
    assert not out[n:256].any()
    t = np.arange(32)
    assert out[256:].tolist() == np.where(t < n, t + (n - t + 31) // 32 * 32, 0).tolist()


# The bounds of the row are loaded, by all lanes from one place.
SEGMENT = """
    ld.global.u32 %r15, [%d3];
    ld.global.u32 %r9, [%d3+4];
    add.u32 %r0, %r0, %r15;
    mov.u32 %r10, 0;
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra SUM;
AGAIN:
    mul.wide.u32 %d6, %r0, 4;
    add.u64 %d7, %d0, %d6;
    ld.global.u32 %r12, [%d7];
    add.u32 %r10, %r10, %r12;
    add.u32 %r0, %r0, 32;
    setp.lt.u32 %p1, %r0, %r9;
    @%p1 bra AGAIN;
SUM:
    redux.sync.add.u32 %r13, %r10, 0xffffffff;
    st.global.u32 [%d4+8], %r13;
"""


@pytest.mark.parametrize("bounds", [(0, 192), (3, 200), (7, 20), (50, 50)], ids=str)
def test_lanes_part_by_bounds_that_are_loaded_for_all_of_them(bounds: tuple[int, int]) -> None:
    made = kernel(SEGMENT)
    title, *rows = made.dump("shapes", 32).splitlines()
    assert "whole warps" in title
    assert any("ld.global.u32 %r12" in row and row.endswith("contiguous") for row in rows)
    data = np.random.default_rng(5).integers(0, 2**32, 200, np.uint32)
    out = np.zeros(200, np.uint32)
    out[:2] = bounds
    _, out = same(made, [data, out, np.uint32(0)], block=32)
    assert (out[2:34] == data[slice(*bounds)].sum(dtype=np.uint32)).all()


# Where a loop begins depends on how many iterations are left over, as nvcc writes it: each way is a formula of the lane.
PRELUDE = """
    mov.u32 %r10, 0;
    mov.u32 %r16, 0;
ROWS:
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra NEXT;
    mov.u32 %r11, %r0;
    sub.u32 %r12, %r9, %r0;
    add.u32 %r12, %r12, -1;
    shr.u32 %r12, %r12, 5;
    and.b32 %r12, %r12, 1;
    setp.eq.u32 %p1, %r12, 1;
    @%p1 bra PAIRS;
    mul.wide.u32 %d5, %r0, 4;
    add.u64 %d6, %d0, %d5;
    ld.global.u32 %r13, [%d6];
    add.u32 %r10, %r10, %r13;
    add.u32 %r11, %r0, 32;
PAIRS:
    setp.ge.u32 %p2, %r11, %r9;
    @%p2 bra NEXT;
AGAIN:
    mul.wide.u32 %d5, %r11, 4;
    add.u64 %d6, %d0, %d5;
    ld.global.u32 %r14, [%d6];
    ld.global.u32 %r15, [%d6+128];
    mad.lo.u32 %r10, %r10, 3, %r14;
    mad.lo.u32 %r10, %r10, 3, %r15;
    add.u32 %r11, %r11, 64;
    setp.lt.u32 %p3, %r11, %r9;
    @%p3 bra AGAIN;
NEXT:
    add.u32 %r16, %r16, 1;
    setp.lt.u32 %p4, %r16, 2;
    @%p4 bra ROWS;
    st.global.u32 [%d4], %r10;
"""


def prelude(data: np.ndarray, t: int, n: int) -> int:
    total = 0
    for _ in range(2):
        own = data[t:n:32].tolist()
        if len(own) % 2:
            total += own.pop(0)
        for each in own:
            total = total * 3 + each
    return total & 0xFFFF_FFFF


@pytest.mark.parametrize("n", [20, 64, 160, 250])
def test_a_branch_that_chooses_a_formula_of_the_lane_is_a_region(n: int) -> None:
    made = kernel(PRELUDE)
    rows = made.dump("shapes", 32).splitlines()
    assert all(row.endswith("contiguous") for row in rows if "ld.global.u32" in row)
    data = np.random.default_rng(6).integers(0, 2**32, 256, np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(n)], block=32)
    assert out[:32].tolist() == [prelude(data, t, n) for t in range(32)]


# The threads at the edges of a tile have no element of their own, and the last tiles go over the end.
TILE = """
    add.u32 %r10, %r0, -1;
    setp.lt.u32 %p0, %r10, 14;
    and.b32 %r11, %r0, 16;
    setp.eq.u32 %p1, %r11, 0;
    and.pred %p0, %p0, %p1;
    setp.lt.u32 %p2, %r3, %r9;
    and.pred %p3, %p0, %p2;
    not.pred %p4, %p3;
    @%p4 bra ON;
    st.global.u32 [%d4], %r4;
ON:
"""


def test_a_tile_whose_edge_has_no_elements_stays_whole() -> None:
    made = kernel(TILE)
    assert any("@%p4 bra ON" in row and row.endswith("predicated") for row in made.dump("shapes", 32).splitlines())
    data = np.arange(1, 97, dtype=np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(70)], grid=3, block=32)
    t, i = np.arange(96) % 32, np.arange(96)
    assert out.tolist() == np.where((t >= 1) & (t < 15) & (i < 70), data, 0).tolist()


# The first threads of each warp load what is far behind, whatever the arguments are.
BY_PLACE = """
    and.b32 %r10, %r0, 31;
    mov.u32 %r11, %r0;
    setp.gt.u32 %p0, %r10, 1;
    @%p0 bra ON;
    add.u32 %r11, %r0, 64;
ON:
    mul.wide.u32 %d5, %r11, 4;
    add.u64 %d6, %d0, %d5;
    ld.global.u32 %r12, [%d6];
    st.global.u32 [%d4], %r12;
"""


def test_where_lanes_part_in_every_warp_they_do_so_under_masks() -> None:
    made = kernel(BY_PLACE)
    assert any("@%p0 bra ON" in row and row.endswith("predicated") for row in made.dump("shapes", 64).splitlines())
    data = np.arange(128, dtype=np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(0)], block=64)
    t = np.arange(64)
    assert out[:64].tolist() == np.where(t % 32 < 2, t + 64, t).tolist()


# The last lane of each warp loads and stores at the number of its warp, as C divides; it alone counts its element up, odd ones
# once more, which nobody reads behind the blocks, and a sum, which all store.
LAST_LANES = """
    and.b32 %r10, %r0, 31;
    mov.u32 %r13, 7;
    setp.ne.u32 %p0, %r10, 31;
    @%p0 bra ON;
    shr.s32 %r11, %r3, 31;
    shr.u32 %r11, %r11, 27;
    add.u32 %r12, %r3, %r11;
    shr.s32 %r12, %r12, 5;
    mul.wide.s32 %d5, %r12, 4;
    add.u64 %d6, %d3, %d5;
    ld.global.u32 %r16, [%d6];
    and.b32 %r14, %r4, 1;
    add.u32 %r4, %r4, %r0;
    setp.eq.u32 %p1, %r14, 0;
    @%p1 bra EVEN;
    ld.global.u32 %r15, [%d2];
    and.b32 %r15, %r15, 1;
    add.u32 %r4, %r4, %r15;
EVEN:
    add.u32 %r4, %r4, %r16;
    add.u32 %r13, %r13, %r4;
    st.global.u32 [%d6], %r4;
ON:
    st.global.u32 [%d2], %r13;
"""


@pytest.mark.parametrize("threads", [32, 64, 128, 256, 80])
def test_one_lane_of_each_warp_runs_a_block_in_scalars(threads: int) -> None:
    made, ctas = kernel(LAST_LANES), 3
    if threads % 32 == 0:
        assert any("[%d6], %r4" in line and line.endswith("single store") for line in made.dump("shapes", threads).splitlines())
    data = np.random.default_rng(2).integers(0, 2**32, ctas * threads, np.uint32)
    before = np.arange(data.size, dtype=np.uint32) * 3
    after, out = same(made, [data, before, np.uint32(5)], grid=ctas, block=threads)
    thread = np.arange(data.size, dtype=np.uint32) % threads
    last = np.flatnonzero(thread % 32 == 31)
    stored = (data + thread + data % 2)[last] + before[last // 32]
    expected = np.full_like(data, 7)
    expected[last] += stored
    assert after.tolist() == expected.tolist()
    before[last // 32] = stored
    assert out.tolist() == before.tolist()


# Each warp sums its elements; the first one sums the sums, which all threads add to their element.
FIRST_WARP = """
    and.b32 %r10, %r0, 31;
    redux.sync.add.u32 %r11, %r4, -1;
    setp.ne.u32 %p0, %r10, 0;
    @%p0 bra STORED;
    shr.u32 %r12, %r0, 5;
    shl.b32 %r12, %r12, 2;
    add.u32 %r12, %r12, %r6;
    st.shared.u32 [%r12], %r11;
STORED:
    bar.sync 0;
    setp.gt.u32 %p1, %r0, 31;
    @%p1 bra SUMMED;
    shr.u32 %r13, %r2, 5;
    mov.u32 %r14, 0;
    setp.ge.u32 %p2, %r0, %r13;
    @%p2 bra LOADED;
    ld.shared.u32 %r14, [%r7];
LOADED:
    redux.sync.add.u32 %r15, %r14, -1;
    st.shared.u32 [s+1024], %r15;
SUMMED:
    bar.sync 0;
    ld.shared.u32 %r16, [s+1024];
    add.u32 %r17, %r16, %r4;
    st.global.u32 [%d4], %r17;
"""


@pytest.mark.parametrize("threads", [64, 256, 1024])
def test_the_first_warp_has_a_part_of_its_own(threads: int) -> None:
    made, ctas = kernel(FIRST_WARP), 3
    assert not any(line.endswith("else masked") for line in made.dump("shapes", threads).splitlines())
    data = np.random.default_rng(3).integers(0, 2**32, ctas * threads, np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(5)], grid=ctas, block=threads)
    sums = data.reshape(ctas, threads).sum(axis=1, dtype=np.uint32)
    assert out.tolist() == (data + np.repeat(sums, threads)).tolist()


LIMITS = (0, 1, 30, 31, 32, 33, 63, 64, 95, 96, 0xFFFF_FFFF)
COMPARED = """
    setp.{0} %p0, {1};
    selp.b32 %r11, 1, 0, %p0;
    shf.l.wrap.b32 %r10, %r10, %r10, 1;
    xor.b32 %r10, %r10, %r11;
"""
COMPARISONS = [*(f"{word}.{type}" for word in ("lt", "le", "gt", "ge") for type in ("u32", "s32")), "eq.u32"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operation", COMPARISONS)
@pytest.mark.parametrize("threads", [64, 96, 256])
def test_threads_beside_the_ends_of_warps(operation: str, threads: int) -> None:
    """The number of a thread is compared with constants in and between warps, on both sides (PTX 9.7.5: setp)."""
    lines = [COMPARED.format(operation, sides) for n in LIMITS for sides in (f"%r0, {n}", f"{n}, %r0")]
    made = kernel("mov.u32 %r10, 0;\n" + "\n".join(lines) + "\nst.global.u32 [%d4], %r10;")
    data = np.zeros(2 * threads, np.uint32)
    _, out = same(made, [data, np.zeros_like(data), np.uint32(5)], grid=2, block=threads)
    compare = {"lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__}[operation[:2]]
    for thread in range(threads):
        found = 0
        for n in LIMITS:
            limit = n - (1 << 32) if operation[3] == "s" and n >> 31 else n
            for holds in (compare(thread, limit), compare(limit, thread)):
                found = ((found << 1 | found >> 31) & 0xFFFF_FFFF) ^ holds
        assert out[thread] == found == out[threads + thread]

"""Regions of several blocks behind a branch: lanes run them under masks and stay together, whatever way each takes."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm
from ptxvm.engine.jit.run import tiering

MODULE = ".version 8.3\n.target sm_90\n.address_size 64\n"
HEAD = """
.visible .entry k(.param .u64 data, .param .u64 other, .param .u32 d)
{
    .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<6>;
    .shared .align 8 .b8 s[2048];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d3, [other];
    ld.param.u32 %r9, [d];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d2, %d0, %d1;
    add.u64 %d4, %d3, %d1;
    ld.global.u32 %r1, [%d2];
    shl.b32 %r2, %r0, 2;
    mov.u32 %r3, s;
    add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    mov.u32 %r5, 0;
    bar.sync 0;
"""
END = """
    st.global.u32 [%d2], %r5;
    ret;
}
"""
# An if with an else in a branch of an if with an else, whose blocks stand out of order, with predicated instructions.
NESTED = """
    and.b32 %r6, %r1, 3;
    setp.eq.u32 %p0, %r6, 0;
    @%p0 bra OTHER;
    setp.eq.u32 %p1, %r6, 1;
    mov.u32 %r7, 100;
    @%p1 bra ONE;
    add.u32 %r5, %r1, %r7;
    setp.gt.u32 %p2, %r1, 50;
    @%p2 add.u32 %r5, %r5, 7;
    @%p2 st.global.u32 [%d4], %r5;
    bra MEET;
OTHER:
    ld.global.u32 %r8, [%d4];
    add.u32 %r5, %r8, 1;
    bra DONE;
ONE:
    mov.u32 %r7, 5;
    sub.u32 %r5, %r7, %r1;
MEET:
    add.u32 %r5, %r5, %r7;
DONE:
"""


def nested(x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kind, stored = x & 3, other.copy()
    rest = x + np.uint32(100) + np.where(x > 50, np.uint32(7), np.uint32(0))
    stored = np.where((kind > 1) & (x > 50), rest, stored)
    some = np.where(kind == 1, np.uint32(5) - x + np.uint32(5), rest + np.uint32(100))
    return np.where(kind == 0, other + np.uint32(1), some).astype(np.uint32), stored.astype(np.uint32)


@pytest.mark.parametrize("threads", [32, 256, 77])
@pytest.mark.parametrize("kind", [None, 0, 1, 2])
def test_nested_branches(threads: int, kind: int | None) -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(0, 100, threads, np.uint32)
    if kind is not None:
        data = (data & ~np.uint32(3)) + np.uint32(kind)  # all lanes go one way
    other = rng.integers(0, 1000, threads, np.uint32)
    kernel = ptxvm.load(MODULE + HEAD + NESTED + END).kernel()
    found = same(kernel, [data, other, np.uint32(0)], block=threads)
    for got, expected in zip(found, nested(data, other), strict=True):
        assert got.tolist() == expected.tolist()


def test_lanes_stay_together_and_count() -> None:
    kernel = ptxvm.load(MODULE + HEAD + NESTED + END).kernel()
    title, *rows = kernel.dump("shapes", 256).splitlines()
    assert "whole warps" in title
    assert any("bra OTHER" in row and row.endswith("14 predicated") for row in rows)
    data = np.arange(256, dtype=np.uint32)
    counts = [
        kernel.launch(1, 256, [data.copy(), data.copy(), np.uint32(0)], engine=e).thread_instructions for e in ("interp", "jit")
    ]
    assert counts[0] == counts[1]


# Threads below d add what stands at a run-time stride of d: prefixes of lanes, with gathers and scatters at equal distances.
PREFIX = """
AGAIN:
    bar.sync 0;
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra ON;
    shl.b32 %r10, %r0, 1;
    mul.lo.u32 %r11, %r10, %r12;
    shl.b32 %r11, %r11, 2;
    add.u32 %r11, %r11, %r3;
    shl.b32 %r13, %r12, 2;
    add.u32 %r13, %r13, %r11;
    ld.shared.u32 %r14, [%r11];
    ld.shared.u32 %r15, [%r13];
    add.u32 %r14, %r14, %r15;
    st.shared.u32 [%r11], %r14;
ON:
    shl.b32 %r12, %r12, 1;
    shr.u32 %r9, %r9, 1;
    setp.ne.u32 %p1, %r9, 0;
    @%p1 bra AGAIN;
    bar.sync 0;
    ld.shared.u32 %r5, [%r4];
"""


@pytest.mark.parametrize("threads", [32, 64, 128, 512])
def test_a_tree_of_sums(threads: int) -> None:
    data = np.random.default_rng(4).integers(0, 2**32, threads, np.uint32)
    kernel = ptxvm.load(MODULE + HEAD + "    mov.u32 %r12, 1;\n" + PREFIX + END).kernel()
    assert "whole warps" in kernel.dump("shapes", threads)
    (found, _) = same(kernel, [data, data, np.uint32(threads // 2)], block=threads)
    expected, stride = data.copy(), 1
    while stride < threads:
        expected[:: 2 * stride] += expected[stride :: 2 * stride]
        stride *= 2
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("threads", "room"), [(256, 100), (256, 3), (96, 40)])
def test_lanes_beyond_an_array_are_none(threads: int, room: int) -> None:
    """Stores and loads of a prefix of lanes end where an array does; one lane more is a fault of that lane."""
    piece = """
    setp.ge.u32 %p0, %r0, %r9;
    @%p0 bra ON;
    ld.global.u32 %r5, [%d4];
    add.u32 %r5, %r5, %r1;
    st.global.u32 [%d4], %r5;
ON:
"""
    kernel = ptxvm.load(MODULE + HEAD + piece + END).kernel()
    data, other = np.arange(threads, dtype=np.uint32), np.full(room, 1000, np.uint32)
    found = same(kernel, [data, other, np.uint32(room)], block=threads)
    expected = np.where(data < room, data + 1000, 0)
    assert found[0].tolist() == expected.tolist()
    assert found[1].tolist() == expected[:room].tolist()
    for engine in ("interp", "jit"):
        with pytest.raises(ptxvm.Fault) as raised:
            kernel.launch(1, threads, [data.copy(), other.copy(), np.uint32(room + 1)], engine=engine)
        assert raised.value.place.thread == (room, 0, 0)


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 7])
def test_strides_of_run_time(stride: int) -> None:
    """Loads and stores at equal distances that are known at run time, of all lanes and of some; the last of equals stays."""
    piece = """
    mul.lo.u32 %r6, %r0, %r9;
    mul.wide.u32 %d5, %r6, 4;
    add.u64 %d6, %d3, %d5;
    ld.global.u32 %r7, [%d6];
    add.u32 %r5, %r7, %r1;
    st.global.u32 [%d6+4096], %r5;
    setp.gt.u32 %p0, %r1, 50;
    @%p0 ld.global.u32 %r8, [%d6+4];
    @%p0 add.u32 %r5, %r5, %r8;
    @%p0 st.global.u32 [%d6+8192], %r5;
"""
    threads, rng = 128, np.random.default_rng(6)
    data, other = rng.integers(0, 100, threads, np.uint32), rng.integers(0, 1000, 4096, np.uint32)
    found = same(ptxvm.load(MODULE + HEAD + piece + END).kernel(), [data, other, np.uint32(stride)], block=threads)
    places = np.arange(threads) * stride
    sums, after = other[places] + data, other.copy()
    chosen = data > 50
    total = np.where(chosen, sums + other[places + 1], sums)
    for n in range(threads):
        after[places[n] + 1024] = sums[n]
    for n in np.flatnonzero(chosen):
        after[places[n] + 2048] = total[n]
    assert found[0].tolist() == total.tolist()
    assert found[1].tolist() == after.tolist()


@pytest.mark.parametrize("tier", ["quick", "best"])
@pytest.mark.parametrize("threads", [32, 256])
def test_some_lanes_access_places_without_pattern(threads: int, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes whose data is odd load from places that data names and store to others; the first thread stores at one."""
    piece = """
    and.b32 %r6, %r1, 1;
    setp.eq.u32 %p0, %r6, 0;
    @%p0 bra ON;
    mul.wide.u32 %d5, %r1, 8;
    add.u64 %d6, %d3, %d5;
    ld.global.u32 %r5, [%d6];
    st.global.u32 [%d6+4], %r5;
ON:
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra END;
    st.global.u32 [%d3+8192], %r1;
END:
"""
    monkeypatch.setattr(tiering, "policy", lambda: tier)
    rng = np.random.default_rng(8)
    data, other = rng.permutation(1000)[:threads].astype(np.uint32), rng.integers(0, 1000, 2100, np.uint32)
    odd, after = data % 2 == 1, other.copy()
    expected = np.where(odd, other[2 * data], 0)
    after[2 * data[odd] + 1] = expected[odd]
    after[2048] = data[0]
    found = same(ptxvm.load(MODULE + HEAD + piece + END).kernel(), [data, other, np.uint32(0)], block=threads)
    assert found[0].tolist() == expected.tolist()
    assert found[1].tolist() == after.tolist()


@pytest.mark.parametrize("tier", ["quick", "best"])
def test_one_thread_of_each_cta_stores(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function that stores for some lanes has no other caller: an address must not become one behind a null pointer."""
    monkeypatch.setattr(tiering, "policy", lambda: tier)
    text = """
.visible .entry k(.param .u64 data, .param .u64 out)
{
    .reg .b32 %r<3>; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d3, %d0, %d2;
    ld.global.u32 %r2, [%d3];
    setp.ne.u32 %p, %r0, 0;
    @%p bra END;
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d5, %d1, %d4;
    st.global.u32 [%d5], %r2;
END:
    ret;
}"""
    data, out = np.arange(7, 263, dtype=np.uint32), np.zeros(4, np.uint32)
    ptxvm.load(MODULE + text).kernel().launch(4, 256, [data, out], engine="jit")
    assert out.tolist() == [7] * 4


# The arm that stands first writes registers that are dead behind it; the other arm reads what they were before the branch.
OVERWRITTEN = """
    setp.lt.u32 %p0, %r0, COUNT;
    mov.u32 %r6, 40;
    mov.u32 %r7, %r0;
    setp.eq.u32 %p3, %r6, 40;
    @%p0 bra OTHER;
    add.u32 %r5, %r6, %r7;
    @!%p3 add.u32 %r5, %r5, 1000;
    bra DONE;
OTHER:
    mov.u32 %r6, 2;
    mul.lo.u32 %r7, %r6, %r7;
    setp.eq.u32 %p3, %r6, %r7;
    @%p3 mov.u32 %r5, 9;
DONE:
"""


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("count", [0, 3, 32, 45, 64])
def test_what_an_arm_overwrites_stays_as_it_was_for_the_other(count: int, swapped: bool) -> None:
    """Each lane runs its own arm (PTX 9.7.12.1): thread t has 40 + t, or 9 where it takes the branch and is thread 1."""
    text = OVERWRITTEN.replace("COUNT", str(count))
    if swapped:
        text = text.replace("setp.lt", "setp.ge").replace("@%p0", "@!%p0")
    data = np.arange(64, dtype=np.uint32)
    (found, _) = same(ptxvm.load(MODULE + HEAD + text + END).kernel(), [data, data, np.uint32(0)], block=64)
    assert found.tolist() == [(9 if t == 1 else 0) if t < count else 40 + t for t in range(64)]

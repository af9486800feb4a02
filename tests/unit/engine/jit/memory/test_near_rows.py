"""Accesses whose lanes turn out to be neighbours, in blocks of eight, or not: loads, stores, masks, elements of 4 and 8 bytes.

Expectations are computed by NumPy; both engines must agree besides.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.engine.jit.ir import cpu

# A thread loads the element that a quotient and a remainder of its number name, and stores it at another such place.
SOURCE = """.version 8.3\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 by, .param .u32 low, .param .u32 high)
{
    .reg .b32 %r<20>; .reg .TYPE %v<4>; .reg .b64 %d<9>; .reg .pred %p<3>;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [by];
    ld.param.u32 %r2, [low];
    ld.param.u32 %r3, [high];
    cvta.to.global.u64 %d0, %d0;
    mov.u32 %r0, %tid.x;
    div.u32 %r4, %r0, %r1;
    rem.u32 %r5, %r0, %r1;
    mad.lo.u32 %r6, %r4, 64, %r5;
    mul.wide.u32 %d2, %r6, SIZE;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    setp.ge.u32 %p0, %r0, %r2;
    setp.lt.and.u32 %p0, %r0, %r3, %p0;
    mov.TYPE %v0, 1;
    @%p0 ld.global.TYPE %v0, [%d3];
    add.TYPE %v1, %v0, %v0;
    @%p0 st.global.TYPE [%d4], %v1;
    @!%p0 st.global.TYPE [%d4], 7;
    ret;
}
"""


def of_size(source: str, size: int) -> str:
    """The source for elements of a size in bytes; bytes are in registers of 16 bits (PTX 9.7.9.8, 9.7.9.11)."""
    if size == 1:
        for computed in (".reg .", "mov.", "add."):
            source = source.replace(f"{computed}TYPE", f"{computed}u16")
    return source.replace("TYPE", f"u{8 * size}").replace("SIZE", str(size))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("by", [3, 8, 24, 32])
@pytest.mark.parametrize(("low", "high"), [(0, 1000), (0, 40), (9, 77), (100, 90)])
def test_quotients(size: int, by: int, low: int, high: int) -> None:
    threads = 96
    kernel = ptxvm.load(of_size(SOURCE, size)).kernel()
    t = np.arange(threads)
    places = t // by * 64 + t % by
    data = np.random.default_rng(by).integers(0, 2 ** min(31, 8 * size), 64 * 96, dtype=f"u{size}")
    out = np.zeros_like(data)
    _, found = same(kernel, [data, out, np.uint32(by), np.uint32(low), np.uint32(high)], block=threads)
    expected, inside = np.zeros_like(data), (t >= low) & (t < high)
    expected[places] = np.where(inside, 2 * data[places], 7)
    assert found.tolist() == expected.tolist()


def test_a_lane_beyond_an_array_is_a_fault() -> None:
    kernel = ptxvm.load(SOURCE.replace("TYPE", "u32").replace("SIZE", "4")).kernel()
    data = np.zeros(64 * 3 + 30, np.uint32)
    fault = same_fault(kernel, [data, data, np.uint32(32), np.uint32(0), np.uint32(200)], block=128, match="out-of-bounds")
    assert fault.place.thread == (96 + 30, 0, 0)


def test_the_table_of_shapes_names_them() -> None:
    kernel = ptxvm.load(SOURCE.replace("TYPE", "u32").replace("SIZE", "4")).kernel()
    shapes = kernel.dump("shapes", 96)
    assert ("rows or gather" in shapes) == cpu.has("avx512f")


def test_places_that_memory_names_are_gathers() -> None:
    by_data = SOURCE.replace("mov.u32 %r0, %tid.x;", "mov.u32 %r0, %tid.x;\n    ld.global.u32 %r1, [%d0];")
    kernel = ptxvm.load(by_data.replace("TYPE", "u32").replace("SIZE", "4")).kernel()
    assert "rows or" not in kernel.dump("shapes", 96)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("threads", [32, 128])
@pytest.mark.parametrize("chosen", [(0, 1000), (5, 6), (1000, 1000), (40, 90)])
def test_all_lanes_store_to_one_place(*, shared: bool, threads: int, chosen: tuple[int, int]) -> None:
    """The last active lane stays, in both engines; where none is active, nothing is written."""
    one = SOURCE.replace("TYPE", "u32").replace("SIZE", "4")
    one = one.replace("add.u64 %d4, %d1, %d2", "mov.u64 %d4, %d1").replace("@!%p0 st", "//")
    if shared:  # at a place that an argument names, and from there to the array
        store = "mov.u32 %r8, s; shl.b32 %r9, %r1, 2; add.u32 %r8, %r8, %r9; mov.u32 %r9, 0; st.shared.u32 [%r8], %r9;"
        read = "bar.sync 0; ld.shared.u32 %r10, [%r8]; st.global.u32 [%d4], %r10;"
        one = one.replace(".reg .b32", ".shared .b8 s[1024];\n    .reg .b32")
        one = one.replace("    @%p0 st.global.u32 [%d4], %v1;", f"{store}\n    @%p0 st.shared.u32 [%r8], %v1;\n    {read}")
    kernel = ptxvm.load(one).kernel()
    data = np.arange(64 * 200, dtype=np.uint32) + 100
    out = np.zeros(4, np.uint32)
    _, found = same(kernel, [data, out, np.uint32(64), np.uint32(chosen[0]), np.uint32(chosen[1])], block=threads)
    t = np.arange(threads)
    inside = t[(t >= chosen[0]) & (t < chosen[1])]
    expected = 2 * data[inside[-1] // 64 * 64 + inside[-1] % 64] if len(inside) else 0
    assert found.tolist() == [expected, 0, 0, 0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("shift", [32, 3, -5, -96, 1 << 20])
@pytest.mark.parametrize(("edge", "low", "high"), [(1, 0, 1000), (17, 0, 1000), (17, 9, 77), (31, 0, 20), (50, 40, 41)])
def test_lanes_that_are_ahead_of_others(size: int, shift: int, edge: int, low: int, high: int) -> None:
    """From a lane on, elements are elsewhere: of two lanes that store to one place, the later one stays."""
    moved = f"setp.ge.u32 %p1, %r0, %r1; selp.b32 %r4, {shift}, 0, %p1; add.s32 %r6, %r0, %r4; add.s32 %r6, %r6, 100;"
    source = SOURCE.replace("div.u32 %r4, %r0, %r1;", "").replace("rem.u32 %r5, %r0, %r1;", "")
    source = source.replace("mad.lo.u32 %r6, %r4, 64, %r5;", moved).replace("mul.wide.u32", "mul.wide.s32")
    kernel = ptxvm.load(of_size(source, size)).kernel()
    t = np.arange(96)
    places = t + np.where(t >= edge, shift, 0) + 100
    data = np.random.default_rng(edge).integers(0, 2 ** min(31, 8 * size), max(places) + 1, dtype=f"u{size}")
    out = np.zeros_like(data)
    _, found = same(kernel, [data, out, np.uint32(edge), np.uint32(low), np.uint32(high)], block=96)
    expected, inside = np.zeros_like(data), (t >= low) & (t < high)
    for chosen, values in ((inside, 2 * data[places]), (~inside, np.full(96, 7, data.dtype))):
        for place, value in zip(places[chosen], values[chosen], strict=True):
            expected[place] = value
    assert (found == expected).all()

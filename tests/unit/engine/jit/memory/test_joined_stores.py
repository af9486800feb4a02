"""Stores of a lane to neighbouring elements leave what they leave one by one, whatever stands between them.

The expectations are those of PTX 9.7.9.12 (st): a thread's stores to one place take effect in their order; and NumPy's indices.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import ENGINES, same

import ptxvm
from ptxvm.engine.jit.ir import cpu

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
BLOCK = 128


def kernel(body: str, stride: int, offset: int = 0) -> ptxvm.Kernel:
    """%a is the address of a lane's structure, of `stride` bytes, in data; %v is tid.x and %h the same in 16 bits."""
    return ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u32 n) {{
        .reg .b32 %v, %w, %n, %x<8>; .reg .b16 %h; .reg .b64 %a, %d; .reg .f32 %f; .reg .pred %p;
        .shared .align 8 .b8 s[8192];
        ld.param.u64 %a, [data]; ld.param.u32 %n, [n]; mov.u32 %v, %tid.x; mul.wide.u32 %d, %v, {stride}; add.u64 %a, %a, %d;
        add.u64 %a, %a, {offset}; cvt.u16.u32 %h, %v; cvt.rn.f32.u32 %f, %v;
        mul.lo.u32 %w, %v, {stride}; mov.u32 %x0, s; add.u32 %w, %w, %x0;
        {body}
        ret; }}""").kernel("k")


def members(count: int, size: int) -> str:
    """Member n of a structure of tid t is t + n."""
    type, value = {1: ("u8", "%h"), 2: ("u16", "%h"), 4: ("u32", "%v")}[size]
    step = {1: "add.u16 %h, %h, 1;", 2: "add.u16 %h, %h, 1;", 4: "add.u32 %v, %v, 1;"}[size]
    return "\n".join(f"st.global.{type} [%a+{n * size}], {value}; {step}" for n in range(count))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("count", "stride"), [(2, 2), (3, 3), (4, 4), (6, 6), (3, 4), (2, 5), (20, 20)])
def test_members_of_structures(count: int, stride: int, size: int) -> None:
    data = np.full(BLOCK * stride, 99, f"u{size}")
    kernel(members(count, size), stride * size).launch(1, BLOCK, [data, np.uint32(0)], engine="jit")
    wanted = np.full((BLOCK, stride), 99, f"u{size}")
    wanted[:, :count] = np.arange(BLOCK)[:, None] + np.arange(count)
    assert np.array_equal(data, wanted.ravel())


BETWEEN = {
    "in another order": "st.global.u32 [%a+8], %v; st.global.u32 [%a], %n; st.global.u32 [%a+12], 5; st.global.f32 [%a+4], %f;",
    "twice to one place": "st.global.u32 [%a], %v; st.global.u32 [%a+4], 7; st.global.u32 [%a], %n; st.global.u32 [%a+8], %v;",
    "read between": "st.global.u32 [%a], %v; ld.global.u32 %x1, [%a]; add.u32 %x1, %x1, 1; st.global.u32 [%a+4], %x1;",
    "of other sizes": "st.global.u8 [%a], %h; st.global.u16 [%a+2], %h; st.global.u32 [%a+4], %v; st.global.u8 [%a+1], %h;",
    "vectors": "st.global.v2.u32 [%a+8], {%v, %n}; st.global.v2.f32 [%a], {%f, %f};",
    "under a condition": "st.global.u32 [%a], %v; setp.lt.u32 %p, %v, 77;"
    "@%p st.global.u32 [%a+4], %v; st.global.u32 [%a+8], %v;",
    "before guarded arithmetic": "st.global.u32 [%a+4], %v; setp.lt.u32 %p, %v, 77; @%p add.u32 %x1, %x1, 1;"
    "@%p mov.b32 %x2, %v; ld.global.u32 %x3, [%a+4]; st.global.u32 [%a], %x3; @!%p xor.b32 %x1, %x1, 1;",
    "where all branch": "st.global.u32 [%a], %v; setp.eq.u32 %p, %n, 3;"
    "@%p bra L; st.global.u32 [%a+4], %v; L: st.global.u32 [%a+8], 1;",
    "behind a branch that none takes": "mov.u32 %x3, %tid.x; setp.gt.u32 %p, %x3, 511;"
    "@%p bra L; st.shared.u32 [%w], %v; L: bar.sync 0; ld.shared.u32 %x2, [%w]; st.global.u32 [%a], %x2;",
    "at the end, behind a branch that none takes": "mov.u32 %x3, %tid.x; setp.gt.u32 %p, %x3, 511;"
    "@%p bra L; st.global.u32 [%a], %v; st.global.u32 [%a+4], %x3; L:",
    "shared, across a barrier": "st.shared.u32 [%w], %v; st.shared.u32 [%w+4], %n; bar.sync 0; xor.b32 %x1, %w, 16;"
    "ld.shared.u32 %x2, [%x1]; st.global.u32 [%a], %x2; st.global.u32 [%a+8], 3; membar.gl; st.global.u32 [%a+4], %v;",
    "shared, a pitch apart": "shl.b32 %x4, %n, 2; mad.lo.u32 %w, %v, %x4, %w; mov.u32 %x3, %tid.x;"
    "st.shared.u32 [%w], %v; st.shared.u32 [%w+4], %x3; ld.shared.u32 %x2, [%w+4]; st.global.u32 [%a], %x2;"
    "ld.shared.u32 %x2, [%w]; st.global.u32 [%a+4], %x2;",
    "released": "st.global.u32 [%a], %v; st.release.gpu.global.u32 [%a+4], %n; st.global.u32 [%a+8], %v;",
    "atomic between": "st.global.u32 [%a], %v; atom.global.add.u32 %x1, [%a], 5; st.global.u32 [%a+4], %x1;",
}


@pytest.mark.parametrize("body", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("stride", [16, 32])
def test_what_stands_between_finds_memory_as_it_would(body: str, stride: int) -> None:
    same(kernel(body, stride), [np.zeros(BLOCK * 16, np.uint32), np.uint32(3)], block=BLOCK)


@pytest.mark.parametrize("stride", [4, 8, 12])
def test_lanes_that_overlap_write_in_the_order_of_the_stores(stride: int) -> None:
    body = "st.global.u32 [%a], %v; add.u32 %v, %v, 1000; st.global.u32 [%a+4], %v; st.global.u32 [%a+8], 7;"
    same(kernel(body, stride), [np.zeros(BLOCK * 4, np.uint32), np.uint32(3)], block=BLOCK)


RUN_TIME = {
    "a row": ("mul.wide.u32 %d, %t, %n; add.u64 %a, %a, %d;", 128),
    "a plane": ("mov.u32 %v, %tid.y; mul.wide.u32 %d, %v, %n; mad.wide.u32 %d, %t, 16, %d; add.u64 %a, %a, %d;", (16, 8)),
    "a plane of words": (
        "mov.u32 %v, %tid.y; mul.wide.u32 %d, %v, %n; mad.wide.u32 %d, %t, 4, %d; add.u64 %a, %a, %d;",
        (32, 4),
    ),
    "backwards": ("mul.wide.u32 %d, %t, %n; sub.u64 %a, %a, %d; add.u64 %a, %a, 32768;", 64),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pitch", [0, 4, 8, 12, 16, 20, 256])
@pytest.mark.parametrize("place", RUN_TIME)
def test_lanes_that_turn_out_to_overlap_write_in_the_order_of_the_stores(place: str, pitch: int) -> None:
    """All lanes store the first member before any stores the second: the last store to a place is that of the last member."""
    address, block = RUN_TIME[place]
    made = ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u32 n) {{
        .reg .b32 %t, %v, %n, %w; .reg .b64 %a, %d;
        ld.param.u64 %a, [data]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x; {address}
        mov.u32 %w, %tid.y; mad.lo.u32 %w, %w, 100, %t; {members(4, 4).replace("%v", "%w")}
        ret; }}""").kernel("k")
    same(made, [np.zeros(1 << 14, np.uint32), np.uint32(pitch)], block=block)


@pytest.mark.parametrize("stride", [16, 32])
def test_loads_of_constants_between_stores(stride: int) -> None:
    """`ld.global.nc` reads what no store of the grid changes (PTX 9.7.9.9): the stores around it are one access."""
    body = " ".join(f"ld.global.nc.u32 %x{n}, [%d+{4 * n}]; st.global.u32 [%a+{4 * n}], %x{n};" for n in range(4))
    ahead = f"ld.param.u64 %a, [data]; mad.wide.u32 %a, %v, {stride}, %a; add.u64 %d, %a, 8192;"
    made = kernel(f"{ahead} {body}", stride)
    data = np.arange(1 << 12, dtype=np.uint32)
    wanted = data.copy()
    wanted[: BLOCK * stride // 4].reshape(BLOCK, -1)[:, :4] = data[2048:][: BLOCK * stride // 4].reshape(BLOCK, -1)[:, :4]
    made.launch(1, BLOCK, [data, np.uint32(0)], engine="jit")
    assert np.array_equal(data, wanted)
    assert made.dump("shapes", BLOCK).count("with 3 more") == 4


def test_a_load_of_constants_that_faults_leaves_the_stores_before_it() -> None:
    """The loads of the last lanes are out of bounds: what all lanes stored before stays."""
    body = "ld.param.u64 %d, [data]; mad.wide.u32 %d, %v, 8, %d; st.global.u32 [%a], %v; ld.global.nc.u32 %x1, [%d+1024];"
    made = kernel(f"{body} st.global.u32 [%a+4], %x1;", 8)
    found = []
    for engine in ENGINES:
        data = np.zeros(BLOCK * 2 + 50, np.uint32)
        with pytest.raises(ptxvm.Fault) as caught:
            made.launch(1, BLOCK, [data, np.uint32(0)], engine=engine)
        found.append((caught.value.kind, caught.value.place, data.tolist()))
    assert found[0] == found[1]
    assert found[1][2][: 2 * BLOCK : 2] == list(range(BLOCK))


def test_before_a_fault_the_stores_that_waited_are_done() -> None:
    """The last lane's third member is out of bounds: the first two members of all lanes are written."""
    made = kernel(members(4, 4), 16)
    found = []
    for engine in ENGINES:
        data = np.zeros(BLOCK * 4 - 2, np.uint32)
        with pytest.raises(ptxvm.Fault) as caught:
            made.launch(1, BLOCK, [data, np.uint32(0)], engine=engine)
        found.append((caught.value.kind, caught.value.place, data[0::4].tolist(), data[1::4].tolist()))
    assert found[0] == found[1]
    assert found[1][2:] == (list(range(BLOCK)), list(range(1, BLOCK + 1)))


@pytest.mark.skipif(not cpu.has("avx2"), reason="the processor permutes nothing")
def test_what_becomes_of_the_stores_is_shown() -> None:
    shown = kernel(members(4, 4), 16).dump("shapes", BLOCK)
    assert shown.count("contiguous, with 3 more") == 4

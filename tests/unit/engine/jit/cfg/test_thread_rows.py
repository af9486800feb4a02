"""The lanes in which the threads of a CTA run: padded rows where they pay off, and where no thread can tell."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.cfg.thread_rows import ThreadRows, padded_rows
from ptxvm.engine.jit.objects.code_cache import CodeCache

Extent = tuple[int, int, int]

BLOCKS: list[Extent] = [
    (18, 18, 1), (20, 20, 1), (10, 10, 1), (30, 30, 1), (34, 10, 1), (24, 24, 1), (12, 12, 1), (48, 5, 1), (3, 3, 1), (6, 6, 6),
    (10, 10, 10), (9, 9, 9), (4, 4, 4), (16, 3, 1), (2, 3, 4), (1, 18, 2), (5, 1, 7), (33, 31, 1), (100, 2, 2), (31, 2, 1),
    (16, 6, 3), (4, 2, 5), (8, 3, 5),
]  # fmt: skip

# Each thread keeps its coordinates in shared and in local memory, and gives its neighbour's, with those of its own.
NEIGHBOURS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 count)
{
    .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .pred %p;
    .shared .align 4 .b8 room[4096];
    .local .align 4 .b8 own[16];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;
    mad.lo.u32 %r7, %r2, 1000, %r1; mad.lo.u32 %r7, %r3, 1000000, %r7;
    and.b32 %r8, %r1, 3; mul.wide.u32 %d1, %r8, 4; mov.u64 %d2, own; add.u64 %d2, %d2, %d1; st.local.u32 [%d2], %r7;
    mul.wide.u32 %d3, %r6, 4; mov.u64 %d4, room; add.u64 %d4, %d4, %d3; st.shared.u32 [%d4], %r7;
    bar.sync 0;
    ld.param.u32 %r9, [count]; add.u32 %r10, %r6, 1; rem.u32 %r10, %r10, %r9;
    mul.wide.u32 %d5, %r10, 4; mov.u64 %d6, room; add.u64 %d6, %d6, %d5; ld.shared.u32 %r11, [%d6];
    ld.local.u32 %r12, [%d2]; shl.b32 %r12, %r12, 2; add.u32 %r11, %r11, %r12;
    ld.param.u64 %d7, [data]; add.u64 %d7, %d7, %d3; st.global.u32 [%d7], %r11;
    BODY
    ret;
}
"""


def kernel(body: str = "") -> ptxvm.Kernel:
    return ptxvm.load(NEIGHBOURS.replace("BODY", body)).kernel()


def rows_of(one: ptxvm.Kernel, block: Extent, **how: object) -> ThreadRows:
    """The lanes of the version that runs first."""
    return CodeCache(one.module.image).translation(Specialisation(one.function, block, **how)).versions.kernel.rows  # type: ignore[arg-type]


@pytest.mark.parametrize("block", BLOCKS)
def test_each_thread_has_a_lane_of_its_own(block: Extent) -> None:
    rows = ThreadRows(block, padded_rows(block))
    assert sum(mask.bit_count() for mask in rows.masks) == prod(block)
    assert rows.warps <= 2 * -(-prod(block) // 32)
    assert all(own >= asked for own, asked in zip(rows.lanes, block, strict=True))


@pytest.mark.parametrize(
    ("block", "lanes"),
    [
        ((18, 18, 1), (32, 18, 1)),
        ((10, 10, 1), (16, 10, 1)),
        ((48, 5, 1), (64, 5, 1)),
        ((6, 6, 6), (8, 8, 6)),
        ((16, 16, 1), (16, 16, 1)),
        ((100, 1, 1), (100, 1, 1)),
        ((33, 31, 1), (64, 31, 1)),
        ((5, 5, 5), (5, 5, 5)),  # three lanes in five would have no thread
        ((4, 4, 4), (4, 4, 4)),  # rows, and planes, fit warps
    ],
)
def test_rows_are_padded_to_pieces_of_warps(block: Extent, lanes: Extent) -> None:
    assert padded_rows(block) == lanes


@pytest.mark.parametrize("engine", ["jit", "interp"])
@pytest.mark.parametrize("block", BLOCKS)
def test_coordinates(block: Extent, engine: str) -> None:
    """PTX 10: `%tid` counts x first, then y, then z."""
    x, y, z = block
    places = np.arange(z)[:, None, None] * 1_000_000 + np.arange(y)[:, None] * 1000 + np.arange(x)
    own = places.astype(np.uint32).ravel()
    data = np.zeros(3 * own.size, np.uint32).reshape(3, -1)
    kernel().launch(1, block, [data, own.size], engine=engine)
    np.testing.assert_array_equal(data[0], np.roll(own, -1) + 4 * own)
    assert not data[1:].any()


@pytest.mark.parametrize("block", [(18, 18, 1), (10, 10, 1), (6, 6, 6), (34, 10, 1)])
def test_a_fault_names_the_thread(block: Extent) -> None:
    """The one whose element is the first behind the array."""
    one, count = kernel(), prod(block) - 7
    assert rows_of(one, block).padded
    with pytest.raises(ptxvm.Fault) as caught:
        one.launch(1, block, [np.zeros(count, np.uint32), prod(block)], engine="jit")
    x, y, _ = block
    assert caught.value.place is not None
    assert caught.value.place.thread == (count % x, count // x % y, count // (x * y))


@pytest.mark.parametrize(
    ("body", "padded"),
    [
        ("bar.sync 0;", True),
        ("red.global.add.u32 [%d7], 1;", True),
        ("atom.shared.add.u32 %r13, [%d6], 1;", True),
        ("atom.shared.add.u32 %r9, [%d6], 1; add.u32 %r9, %r9, 1;", False),  # its order is seen
        ("red.global.add.f32 [%d7], 0f3F800000;", False),  # so is that of rounding
        ("mov.u32 %r9, %laneid;", False),
        ("mov.u32 %r9, %warpid;", False),
        ("mov.u32 %r9, %lanemask_lt;", False),
        ("mov.u32 %r9, %clock;", False),
        ("activemask.b32 %r9;", False),
        ("bar.warp.sync -1;", False),
        ("shfl.sync.idx.b32 %r9, %r9, 0, 31, -1;", False),
        ("bar.sync 0, 32;", False),
        ("ld.volatile.shared.u32 %r9, [%d6];", False),  # how lanes in lock-step communicate
        ("membar.gl;", False),
    ],
)
def test_rows_are_padded_where_no_thread_can_tell(body: str, padded: bool) -> None:
    """PTX 9.7.13, 10: what depends on the warp of a thread, or shows in which order warps run."""
    assert rows_of(kernel(body), (18, 18, 1)).padded is padded


@pytest.mark.parametrize("how", [{"metered": True}, {"profiled": True}, {"checks": frozenset({"race"})}])
def test_counted_and_checked_launches_keep_their_warps(how: dict[str, object]) -> None:
    """Their limits, metrics and findings are those of the warps of the ISA."""
    assert rows_of(kernel(), (18, 18, 1)).padded
    assert not rows_of(kernel(), (18, 18, 1), **how).padded


def test_work_without_accesses_keeps_whole_warps() -> None:
    """A loop that computes has nothing to gain, and lanes to lose."""
    loop = "mov.u32 %r14, 0; L: add.u32 %r14, %r14, 1; mul.lo.u32 %r7, %r7, %r7; setp.lt.u32 %p, %r14, %r9; @%p bra L;"
    one = kernel(loop + "st.global.u32 [%d7], %r7;")
    assert not rows_of(one, (18, 18, 1)).padded

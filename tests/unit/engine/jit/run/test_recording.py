"""Recorded code notes exactly the bytes that a range of CTAs reads and writes; what they are is said for each thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.checks.cta_range import CtaRange
from ptxvm.engine.jit.run.paged_array import PAGE, DemandPaging, PagedArray
from ptxvm.engine.jit.run.recording import Recording, backed
from ptxvm.engine.launch import launch
from ptxvm.machine.backing import Bytes
from ptxvm.machine.launch_options import LaunchOptions

BLOCK, CTAS, SIZE = 64, 5, 1 << 14
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 t)
{{
    .reg .u64 %a<4>; .reg .u64 %b<4>; .reg .u64 %t<4>; .reg .u32 %r<9>; .reg .pred %p<4>; .reg .b16 %h; .reg .u64 %d<3>;
    ld.param.u64 %a0, [a]; ld.param.u64 %b0, [b]; ld.param.u64 %t0, [t];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, {block}, %r1;
    mad.wide.u32 %a1, %r2, 4, %a0; mad.wide.u32 %b1, %r2, 4, %b0; mad.wide.u32 %t1, %r2, 4, %t0;
    {body}
    ret;
}}
"""
Touched = Callable[[int, list[int]], tuple[list[range], list[range]]]
"""Of a thread and a table: what it reads of the first array, and what it writes of the second."""


def one(start: int, size: int = 4) -> list[range]:
    return [range(start, start + size)]


CASES: dict[str, tuple[str, Touched]] = {
    "contiguous": (
        "ld.global.u32 %r3, [%a1]; st.global.u32 [%b1], %r3;",
        lambda n, t: (one(4 * n), one(4 * n)),
    ),
    "masked at the end": (
        "setp.lt.u32 %p0, %r2, 150; @%p0 ld.global.u32 %r3, [%a1]; @!%p0 st.global.u32 [%b1], %r2;",
        lambda n, t: (one(4 * n), []) if n < 150 else ([], one(4 * n)),
    ),
    "apart": (
        "mad.wide.u32 %a2, %r2, 24, %a0; mad.wide.u32 %b2, %r2, 12, %b0; ld.global.u16 %h, [%a2+2]; st.global.u8 [%b2+1], %h;",
        lambda n, t: (one(24 * n + 2, 2), one(12 * n + 1, 1)),
    ),
    "vectors": (
        ("mad.wide.u32 %a2, %r2, 16, %a0; mad.wide.u32 %b2, %r2, 16, %b0; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%a2];"
        "st.global.v2.u32 [%b2+8], {%r3, %r6};"),
        lambda n, t: (one(16 * n, 16), one(16 * n + 8, 8)),
    ),
    "one address": (
        "ld.global.u32 %r3, [%a0+8]; setp.eq.u32 %p0, %r1, 3; @%p0 st.global.u32 [%b0+4], %r3;",
        lambda n, t: (one(8), one(4) if n % BLOCK == 3 else []),
    ),
    "by a table": (
        ("ld.global.u32 %r3, [%t1]; mad.wide.u32 %a2, %r3, 4, %a0; mad.wide.u32 %b2, %r3, 2, %b0;"
        "ld.global.u32 %r4, [%a2]; st.global.u16 [%b2], 1;"),
        lambda n, t: (one(4 * t[n]), one(2 * t[n], 2)),
    ),
    "neighbours by a table": (
        ("ld.global.u32 %r3, [%t1]; mad.wide.u32 %a2, %r3, 4, %a0; ld.global.u32 %r4, [%a2]; ld.global.u32 %r5, [%a2+4];"
        "ld.global.u32 %r6, [%a2+8]; ld.global.u32 %r7, [%a2+12];"),
        lambda n, t: (one(4 * t[n], 16), []),
    ),
    "two arrays at once": (
        ("and.b32 %r3, %r1, 1; setp.eq.u32 %p0, %r3, 0; selp.b64 %d0, %b1, %t1, %p0; selp.b64 %d1, %a1, %t1, %p0;"
        "ld.global.u32 %r4, [%d1]; setp.eq.u32 %p1, %r4, %r4; @%p0 st.u32 [%d0], %r2;"),
        lambda n, t: ([], []) if n % 2 else (one(4 * n), one(4 * n)),
    ),
    "in a loop that lanes leave": (
        ("and.b32 %r3, %r1, 7; L: mad.wide.u32 %a2, %r3, 64, %a1; ld.global.u32 %r4, [%a2]; mad.wide.u32 %b2, %r3, 2048, %b1;"
        "st.u32 [%b2], %r4; sub.u32 %r3, %r3, 1; setp.lt.s32 %p0, %r3, 0; @!%p0 bra L;"),
        lambda n, t: (
            [range(4 * n + 64 * k, 4 * n + 64 * k + 4) for k in range(n % 8 + 1)],
            [range(4 * n + 2048 * k, 4 * n + 2048 * k + 4) for k in range(n % 8 + 1)],
        ),
    ),
    "reductions": ("red.global.add.u32 [%b1], 1;", lambda n, t: ([], one(4 * n))),
    "asynchronous copies": (
        (".shared .align 16 .b8 s[1024]; mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 16, %r3; mad.wide.u32 %a2, %r2, 16, %a0;"
        "cp.async.cg.shared.global [%r3], [%a2], 16; cp.async.wait_all; ld.shared.u32 %r4, [%r3]; st.global.u32 [%b1], %r4;"),
        lambda n, t: (one(16 * n, 16), one(4 * n)),
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ctas", [range(CTAS), range(1, 3)], ids=["all", "some"])
@pytest.mark.parametrize("case", CASES)
def test_the_bytes_that_are_touched(case: str, ctas: range, rng: np.random.Generator) -> None:
    body, touched = CASES[case]
    table = rng.permutation(SIZE // 16)[: BLOCK * CTAS].astype(np.uint32)
    kernel = ptxvm.load(KERNEL.format(block=BLOCK, body=body)).kernel()
    recording = Recording([SIZE, SIZE])
    engine = CtaRange(kernel.module.jit, ctas, recording)
    launch(engine, kernel.function, LaunchOptions((CTAS, 1, 1), (BLOCK, 1, 1)), [recording.array(0), recording.array(1), table])
    read, written = np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    for n in range(ctas.start * BLOCK, ctas.stop * BLOCK):
        for map, ranges in zip((read, written), touched(n, table.tolist()), strict=True):
            for each in ranges:
                map[each.start : each.stop] = 255
    assert np.flatnonzero(recording.read(0) != read).tolist() == []
    assert np.flatnonzero(recording.written(1) != written).tolist() == []
    assert not recording.written(0).any()
    assert not recording.read(1).any()


@pytest.mark.parametrize("case", CASES)
def test_pages_come_when_they_are_touched(case: str, rng: np.random.Generator) -> None:
    """Arrays in a recording and outside of it: results and maps as with all bytes there, and no page that nothing touches."""
    body, _ = CASES[case]
    far, table = 40 * PAGE, rng.permutation(SIZE // 16)[: BLOCK * CTAS].astype(np.uint32)
    given = [rng.integers(0, 256, 64 * PAGE, np.uint8) for _ in range(2)]
    kernel = ptxvm.load(KERNEL.format(block=BLOCK, body=body)).kernel()

    def run(arrays: list[np.ndarray], recording: Recording) -> None:
        options = LaunchOptions((CTAS, 1, 1), (BLOCK, 1, 1))
        launch(CtaRange(kernel.module.jit, range(CTAS), recording), kernel.function, options, arrays)

    whole, paged = (Recording([each.nbytes for each in given]) for _ in range(2))
    for n, each in enumerate(given):
        whole.array(n)[:] = each
    run([whole.array(0)[far:], whole.array(1)[far:], table], whole)
    fetched: dict[int, list[range]] = {0: [], 1: [], 2: []}

    def source(number: int, array: np.ndarray) -> Callable[[int, int, np.ndarray], None]:
        def fill(first: int, end: int, room: np.ndarray) -> None:
            fetched[number].append(range(first, end))
            room[:] = array[first:end]

        return fill

    outside = np.zeros(table.nbytes, np.uint8)
    arrays = [PagedArray(paged.array(n), source(n, each)) for n, each in enumerate(given)]
    paged.paging = DemandPaging([*arrays, PagedArray(outside, source(2, table.view(np.uint8)))])
    run([paged.array(0)[far:], paged.array(1)[far:], outside.view(np.uint32)], paged)
    for n in range(2):
        assert np.array_equal(paged.written(n), whole.written(n))
        assert np.array_equal(paged.read(n), whole.read(n))
        pages = np.unique(np.flatnonzero(whole.written(n) | whole.read(n)) // PAGE)
        assert {each // PAGE for some in fetched[n] for each in some[::PAGE]} == set(pages.tolist())
        for page in pages.tolist():
            part = slice(page * PAGE, (page + 1) * PAGE)
            assert np.array_equal(paged.array(n)[part], whole.array(n)[part])


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells the flags of its mappings")
def test_an_array_that_is_only_written_may_have_large_pages() -> None:
    """Linux, Documentation/filesystems/proc: `hg` is of memory that is advised to have them."""
    recording = Recording([5 << 20, 7, 5 << 20])
    before = [advised(part(n)) for n in (0, 2) for part in (recording.array, recording.written)]
    recording.expect_output(0)
    recording.array(0)[3] = recording.written(0)[3] = 1
    assert [advised(recording.array(0)), advised(recording.written(0))] == [True, True]
    assert [advised(recording.array(2)), advised(recording.written(2)), advised(recording.read(0))] == [False] * 3
    assert before == [False] * 4
    assert backed(recording.written(0))[0][0] == 0
    assert recording.array(1).tolist() == [0] * 7


def advised(array: Bytes) -> bool:
    """Is the middle of an array advised to have large pages?"""
    address, inside = array.ctypes.data + len(array) // 2, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return "hg" in line.split()
    raise AssertionError("no mapping has the array")


def test_maps_are_forgotten_and_arrays_are_not() -> None:
    recording = Recording([SIZE, 100])
    parts = [part(1) for part in (recording.array, recording.written, recording.read)]
    for each in parts:
        each[...] = 1
    recording.forget_maps()
    assert [int(each.sum()) for each in parts] == [100, 0, 0]

"""Prefetches of what the next warps will load: their lines, their distance, and memory that ends before it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.campaign.fuzz.engines import fenced
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.memory import prefetches as prefetches_of

KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %d<8>;
    .shared .align 16 .b8 tile[1024];
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    mov.u64 %d5, tile;
    mul.wide.s32 %d6, %r3, 4;
    add.s64 %d6, %d5, %d6;
    LOAD
    st.global.u32 [%d4], %r5;
    ret;
}
"""
GLOBAL, SHARED = "ld.global.u32 %r5, [%d3];", "ld.shared.u32 %r5, [%d6];"


def prefetches(load: str, threads: int) -> int:
    """How many prefetches the code has."""
    return len(
        re.findall(r"call void @llvm\.prefetch", ptxvm.load(KERNEL.replace("LOAD", load)).kernel().dump("llvm", threads))
    )


@pytest.mark.parametrize("threads", [32, 64, 256])
def test_each_line_of_a_row_is_prefetched_into_both_caches(threads: int) -> None:
    """A line of the cache has 64 bytes: those of 16 threads."""
    assert prefetches(GLOBAL, threads) == 2 * (threads // 16)


def test_shared_memory_is_not() -> None:
    """It is in the cache."""
    assert prefetches(SHARED, 64) == 0


def test_nothing_lies_behind_the_last_row() -> None:
    """A prefetch of a page that nothing may read does nothing."""
    given = fenced(np.arange(1024, dtype=np.uint32))
    out = np.zeros_like(given)
    ptxvm.load(KERNEL.replace("LOAD", GLOBAL)).kernel().launch(grid=4, block=256, args=[given, out])
    assert np.array_equal(out, np.arange(1024))


ROW = """ld.param.u32 %r6, [n];
LOOP: ld.global.u32 %r7, [%d3]; add.u32 %r5, %r5, %r7; add.s64 %d3, %d3, 1024;
    add.s32 %r6, %r6, -1; setp.ne.s32 %p, %r6, 0; @%p bra LOOP;"""


def test_the_first_iteration_prefetches_the_next_row() -> None:
    """Its stride is not known yet: a loop that a CTA runs once or twice would prefetch nothing."""
    source = KERNEL.replace("LOAD", ROW).replace(".param .u64 out)", ".param .u64 out, .param .u32 n)")
    source = source.replace(".reg .b64 %d<8>;", ".reg .b64 %d<8>; .reg .pred %p;")
    text = ptxvm.load(source).kernel().dump("llvm", 256)
    row = re.search(rf"(%\S+) = getelementptr i8, ptr %\S+, i64 {prefetches_of.FARTHER}\n", text)
    assert row is not None
    assert re.search(rf"select i1 %\S+, ptr {re.escape(row[1])}, ptr %", text)


@pytest.mark.parametrize(("size", "cache"), [(32 << 10, prefetches_of.SECOND_CACHE), (48 << 10, prefetches_of.FIRST_CACHE)])
def test_strides_of_grids_go_by_the_second_cache(monkeypatch: pytest.MonkeyPatch, size: int, cache: int) -> None:
    """Where the first one is small: rows at large powers of two share few of its lines."""
    monkeypatch.setattr(cpu, "first_cache", lambda: size)
    assert prefetches_of.cache_of_strides() == cache


def test_the_size_of_the_first_cache_is_the_system_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As Linux writes it; what cannot be read counts as small."""
    file = tmp_path / "size"
    for text, size in (("48K\n", 48 << 10), ("odd", cpu.SMALLEST), (None, cpu.SMALLEST)):
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        monkeypatch.setattr(cpu, "FIRST_CACHE", file)
        cpu.first_cache.cache_clear()
        assert cpu.first_cache() == size
    cpu.first_cache.cache_clear()


TILES = """ld.param.u32 %r6, [n]; mul.lo.u32 %r7, %r6, 4; cvt.u64.u32 %d7, %r7;
LOOP: ld.global.u32 %r5, [%d3]; BARRIER st.shared.u32 [%d6], %r5; st.global.u32 [%d4], %r5;
    add.s64 %d3, %d3, STRIDE; add.s64 %d4, %d4, STRIDE;
    add.s32 %r6, %r6, -1; setp.ne.s32 %p, %r6, 0; @%p bra LOOP;"""


def prefetches_of_tiles(*, barrier: str, stride: str) -> list[tuple[str, int]]:
    """What is prefetched in a loop over tiles of 256 threads: whether it is for writing, and how often."""
    source = KERNEL.replace("LOAD", TILES.replace("BARRIER", barrier).replace("STRIDE", stride))
    source = source.replace(".param .u64 out)", ".param .u64 out, .param .u32 n)")
    source = source.replace(".reg .b64 %d<8>;", ".reg .b64 %d<8>; .reg .pred %p;")
    text = ptxvm.load(source).kernel().dump("llvm", 32)
    found = re.findall(r"call void @llvm\.prefetch\.p0\(ptr [^,]+, i32 (\d)", text)
    return sorted((kind, found.count(kind)) for kind in {*found})


@pytest.mark.parametrize("stride", ["4096", "%d7"])
def test_a_loop_with_barriers_prefetches_what_its_next_iteration_loads_and_stores(stride: str) -> None:
    """A row of 32 elements has two lines, and touches a third where it begins within one."""
    assert prefetches_of_tiles(barrier="bar.sync 0;", stride=stride) == [("0", 3), ("1", 3)]


@pytest.mark.parametrize(("barrier", "stride"), [("", "4096"), ("bar.sync 0;", "64")])
def test_stores_of_other_loops_are_not_prefetched(barrier: str, stride: str) -> None:
    """The processor follows a stream of its own, and short strides."""
    assert all(kind == "0" for kind, _ in prefetches_of_tiles(barrier=barrier, stride=stride))


def test_what_short_strides_load_comes_with_the_row() -> None:
    """Most of what the next iteration loads lies in lines of this one."""
    assert prefetches_of_tiles(barrier="", stride="64") == []


@pytest.mark.parametrize("width", [16, 32, 64])
def test_a_stride_is_made_of_registers_of_any_width(width: int) -> None:
    """The distance is a number of 64 bits."""
    count = "cvt.u16.u32 %h, %r6;" if width == 16 else "" if width == 32 else "cvt.u64.u32 %d7, %r6;"
    product = {
        16: "cvt.u16.u32 %g, %r7; mul.wide.u16 %r5, %g, %h; mul.wide.u32 %d5, %r5, 128;",
        32: "mul.wide.u32 %d5, %r7, %r6; shl.b64 %d5, %d5, 7;",
        64: "cvt.u64.u32 %d5, %r7; mul.lo.u64 %d5, %d5, %d7; shl.b64 %d5, %d5, 7;",
    }[width]
    loop = f"""ld.param.u32 %r6, [n]; {count} mov.u32 %r7, 0;
LOOP: {product} add.s64 %d6, %d3, %d5; bar.sync 0; ld.global.u32 %r5, [%d6]; add.u32 %r5, %r5, 1; st.global.u32 [%d6], %r5;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p, %r7, %r6; @%p bra LOOP;"""
    source = KERNEL.replace("LOAD", loop).replace(".param .u64 out)", ".param .u64 out, .param .u32 n)")
    one = ptxvm.load(source.replace(".reg .b64 %d<8>;", ".reg .b64 %d<8>; .reg .b16 %g, %h; .reg .pred %p;")).kernel()
    assert "llvm.prefetch.p0(ptr" in one.dump("llvm", 32)
    rows, out = np.zeros((3, 3 * 32), np.uint32), np.zeros(32, np.uint32)
    one.launch(grid=1, block=32, args=[rows, out, 3])
    assert rows[:, :32].tolist() == [[1] * 32] * 3
    assert not rows[:, 32:].any()

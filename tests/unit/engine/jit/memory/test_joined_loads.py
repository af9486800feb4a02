"""Loads of neighbouring elements anywhere give what they give one by one, whatever stands between them.

The expectations are those of PTX 9.7.9.8 (ld), from NumPy's indices, and faults as the interpreter has them.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.metadata import SITE_SIZE
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.memory import joined_loads

BLOCK, SIZE = 64, 256
HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"


def kernel(body: str) -> ptxvm.Kernel:
    """%a is the address of an element of `data` in a place that `index` tells, %s the same in shared memory, %o that of out."""
    return ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u64 index, .param .u64 out) {{
        .reg .b32 %t, %i, %s, %n, %x<20>; .reg .b16 %h<20>; .reg .b64 %a, %d, %o, %y<8>; .reg .f32 %f<8>; .reg .f64 %g<8>;
        .reg .pred %p; .shared .align 16 .b8 s[{8 * SIZE}];
        ld.param.u64 %a, [data]; ld.param.u64 %d, [index]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
        mad.wide.u32 %d, %t, 4, %d; ld.global.u32 %i, [%d]; mad.wide.u32 %a, %i, 8, %a; mad.wide.u32 %o, %t, 64, %o;
        mov.u32 %s, s; mad.lo.u32 %s, %i, 8, %s; setp.lt.u32 %p, %i, 100;
        {body}
        ret; }}""").kernel("k")


def given(rng: np.random.Generator) -> list[np.ndarray]:
    index = rng.integers(4, SIZE - 8, BLOCK).astype(np.uint32)
    return [rng.integers(0, 1 << 32, 2 * SIZE).astype(np.uint32), index, np.zeros((BLOCK, 16), np.uint32)]


def moved(type: str, register: str, count: int, begin: int, order: list[int] | None = None) -> str:
    """Load elements behind %a, then store them behind %o."""
    size = int(type[1:]) // 8
    places = order or list(range(count))
    loads = [f"ld.global.{type} %{register}{n}, [%a+{begin + n * size}];" for n in places]
    return "\n".join(loads + [f"st.global.{type} [%o+{n * size}], %{register}{n};" for n in range(count)])


@pytest.mark.parametrize(
    ("type", "register", "count"),
    [("u8", "h", 16), ("u16", "h", 8), ("u32", "x", 4), ("f32", "f", 8), ("u64", "y", 2), ("f64", "g", 4), ("u32", "x", 3)],
)
def test_neighbours(type: str, register: str, count: int, rng: np.random.Generator) -> None:
    size, begin = int(type[1:]) // 8, -16
    data, index, out = given(rng)
    kernel(moved(type, register, count, begin)).launch(1, BLOCK, [data, index, out], engine="jit")
    raw = data.view(np.uint8)
    for lane, at in enumerate(index):
        first = int(at) * 8 + begin
        assert np.array_equal(out.view(np.uint8)[lane][: size * count], raw[first : first + size * count])


@pytest.mark.skipif(not cpu.has("avx2"), reason="no chunks")
def test_they_are_one_access() -> None:
    shapes = kernel(moved("u32", "x", 4, 0, [2, 0, 3, 1])).dump("shapes", BLOCK)
    assert shapes.count("chunks, with 3 more") == 4


BETWEEN = {
    "vectors": "ld.global.v2.u32 {%x0, %x1}, [%a]; ld.global.v2.u32 {%x2, %x3}, [%a+8];"
    "st.global.v4.u32 [%o], {%x0, %x1, %x2, %x3};",
    "its own address": "ld.global.u64 %y0, [%a]; ld.global.u64 %a, [%a+8]; st.global.u64 [%o], %y0; st.global.u64 [%o+8], %a;",
    "another address": "ld.global.u64 %y0, [%a]; add.u64 %a, %a, 8; ld.global.u64 %y1, [%a+8]; st.global.u64 [%o], %y0;"
    "st.global.u64 [%o+8], %y1;",
    "a store": "ld.global.u64 %y0, [%a]; add.u64 %y2, %y0, 1; st.global.u64 [%o+8], %y2; ld.global.u64 %y1, [%a+8];"
    "st.global.u64 [%o], %y0; st.global.u64 [%o+16], %y1;",
    "a store, of memory that is only read": "ld.global.nc.u64 %y0, [%a]; add.u64 %y2, %y0, 1; st.global.u64 [%o+8], %y2; "
    "ld.global.nc.u64 %y1, [%a+8]; st.global.u64 [%o], %y0; atom.global.add.u32 %x1, [%o+24], %i; "
    "ld.global.nc.u64 %y3, [%a+16]; st.global.u64 [%o+16], %y1; st.global.u64 [%o+32], %y3;",
    "a predicate": "@%p ld.global.u64 %y0, [%a]; ld.global.u64 %y1, [%a+8]; mov.b64 %y2, 5; @!%p ld.global.u64 %y2, [%a+16];"
    "@%p st.global.u64 [%o], %y0; st.global.u64 [%o+8], %y1; st.global.u64 [%o+16], %y2;",
    "a branch": "@%p bra L; ld.global.u64 %y0, [%a]; ld.global.u64 %y1, [%a+8]; st.global.u64 [%o], %y1;"
    "st.global.u64 [%o+8], %y0; L: ld.global.u64 %y2, [%a+8]; ld.global.u64 %y3, [%a]; st.global.u64 [%o+16], %y2;"
    "st.global.u64 [%o+24], %y3;",
    "lanes that meet": "mov.b64 %y0, 1; mov.b64 %y2, 2; setp.lt.u32 %p, %i, 200; @%p bra M; setp.lt.u32 %p, %i, 100; @%p bra L;"
    "ld.global.u64 %y0, [%a]; L: ld.global.u64 %y1, [%a+8]; add.u64 %y2, %y1, %y0; M: ld.global.u64 %y3, [%a];"
    "st.global.u64 [%o], %y0; st.global.u64 [%o+8], %y2; st.global.u64 [%o+16], %y3;",
    "one place twice": "ld.global.u64 %y0, [%a]; ld.global.u64 %y1, [%a+8]; ld.global.u64 %y2, [%a]; st.global.u64 [%o], %y0;"
    "st.global.u64 [%o+8], %y1; st.global.u64 [%o+16], %y2;",
    "shared memory": "st.shared.u32 [%s], %i; st.shared.u32 [%s+4], %i; ld.shared.u32 %x0, [%s]; ld.shared.u32 %x1, [%s+4];"
    "ld.shared.u32 %x2, [%s+8]; ld.shared.u32 %x3, [%s+12]; st.global.v2.u32 [%o], {%x0, %x1};",
}


@pytest.mark.parametrize("between", BETWEEN)
def test_with_others_between(between: str, rng: np.random.Generator) -> None:
    same(kernel(BETWEEN[between]), given(rng), block=BLOCK)


@pytest.mark.parametrize("place", [SIZE - 2, SIZE - 1, SIZE])
def test_the_one_beyond_the_end_is_the_fault(place: int, rng: np.random.Generator) -> None:
    """Four elements from an index on: the array ends behind the last, the third or before the first of them."""
    data, index, out = given(rng)
    index[37] = place
    same_fault(kernel(moved("u32", "x", 5, 0)), [data, index, out], block=BLOCK)


def test_the_last_may_be_the_last_of_the_array(rng: np.random.Generator) -> None:
    data, index, out = given(rng)
    index[37] = SIZE - 2
    kernel(moved("u32", "x", 4, 0)).launch(1, BLOCK, [data, index, out], engine="jit")
    assert np.array_equal(out[37, :4], data[-4:])


def rows(space: str, pitch: int, guard: str = "") -> ptxvm.Kernel:
    """Four elements of a row for each thread of an even or any number; the rows are a pitch apart, known at run time."""
    loads = " ".join(f"ld.{space}.u32 %x{n}, [%a+{4 * n}];" for n in range(4))
    fill = "LOOP: add.u32 %s, %w, %i; st.shared.u32 [%s], %i; add.u32 %i, %i, 4; setp.lt.u32 %q, %i, 8192; @%q bra LOOP;"
    base = "mov.u32 %s, s; cvt.u64.u32 %a, %s;" if space == "shared" else "ld.param.u64 %a, [data];"
    return ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u32 pitch, .param .u64 out) {{
        .reg .b32 %t, %i, %s, %w, %n, %x<20>; .reg .b64 %a, %d, %o; .reg .pred %p, %q; .shared .align 16 .b8 s[8192];
        ld.param.u32 %n, [pitch]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 16, %o;
        mov.u32 %w, s; mov.u32 %i, 0; {fill if space == "shared" else ""} bar.sync 0;
        {base} mad.wide.u32 %a, %t, %n, %a; and.b32 %i, %t, 3; setp.ne.u32 %p, %i, 3; {guard}
        {loads} st.global.v4.u32 [%o], {{%x0, %x1, %x2, %x3}};
        L: ret; }}""").kernel("k")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guard", ["", "@%p bra L;"], ids=["all lanes", "some lanes"])
@pytest.mark.parametrize("pitch", [0, 4, 16, 20, 100])
@pytest.mark.parametrize("space", ["global", "global.nc", "shared"])
def test_rows_at_a_pitch_that_is_known_at_run_time(space: str, pitch: int, guard: str) -> None:
    data, out = np.arange(2048, dtype=np.uint32) * 4, np.zeros((BLOCK, 4), np.uint32)
    rows(space, pitch, guard).launch(1, BLOCK, [data, np.uint32(pitch), out], engine="jit")
    wanted = pitch * np.arange(BLOCK)[:, None] + 4 * np.arange(4)
    wanted[np.arange(BLOCK) % 4 != 3] *= not guard
    assert np.array_equal(out, wanted)


@pytest.mark.skipif(not cpu.has("avx2"), reason="no chunks")
def test_rows_at_a_pitch_are_chunks() -> None:
    assert rows("global", 100).dump("shapes", BLOCK).count("chunks, with 3 more") == 4


@pytest.mark.skipif(not cpu.has("avx2"), reason="no chunks")
@pytest.mark.parametrize(("load", "count"), [("ld.global.nc", 4), ("ld.global", 0)])
def test_stores_between_loads_of_memory_that_is_only_read(load: str, count: int) -> None:
    """PTX 9.7.9.9: what `ld.global.nc` reads is not written by the grid, and so not by its own thread."""
    body = " ".join(f"{load}.u32 %x{n}, [%a+{4 * n}]; st.global.u32 [%o+{4 * n}], %x{n};" for n in range(4))
    assert kernel(body).dump("shapes", BLOCK).count("chunks, with 3 more") == count


@pytest.mark.skipif(not cpu.has("avx2"), reason="no chunks")
def test_rows_at_a_constant_pitch_are_checked_together() -> None:
    """What one load learns of its array is what the check of all of them asks: each has one site."""
    body = " ".join(f"ld.global.u32 %x{n}, [%a+{4 * n}];" for n in range(4))
    written = kernel(f"mad.wide.u32 %a, %t, 100, %d; {body} st.global.v4.u32 [%o], {{%x0, %x1, %x2, %x3}};").dump("llvm", BLOCK)
    sites = {int(place) // SITE_SIZE for place in re.findall(r"ptr %sites, i64 (\d+)", written)}
    assert len(sites) == 6  # of the index, of four loads and of a store


@pytest.mark.parametrize("short", range(5))
def test_the_row_that_ends_too_early_is_the_fault(short: int) -> None:
    """The array ends by some elements before the last row does."""
    data = np.arange(63 * 25 + 4 - short, dtype=np.uint32)
    given = [data, np.uint32(100), np.zeros((BLOCK, 4), np.uint32)]
    made = rows("global", 100)
    if short:
        same_fault(made, given, block=BLOCK)
    else:
        same(made, given, block=BLOCK)


def test_loads_are_not_looked_through_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as many loads take four times as many looks; with the square it was 5 ms each at a thousand."""
    looks, look = list[Bound](), joined_loads._root_of
    monkeypatch.setattr(joined_loads, "_root_of", lambda at, bound: looks.append(bound) or look(at, bound))
    counts = []
    for times in (25, 100):
        looks.clear()
        kernel("ld.global.u32 %x0, [%a]; add.u32 %x1, %x1, %x0;" * times).dump("shapes", BLOCK)
        counts.append(len(looks))
    assert 0 < counts[1] < 5 * counts[0]

"""Lanes that walk along rows of their own load what they would load one by one, whatever they do beside or in between.

Expectations are computed by NumPy; both engines must agree besides.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.engine.jit.ir import cpu

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
TYPES = {"u8": "b16", "u16": "b16", "u32": "b32", "u64": "b64"}
FIELDS = {"u8": "u16", "u16": "u16", "u32": "u32", "u64": "u64"}


def walk(
    type: str, loads: list[int], *, step: int = 1, before: str = "", vector: int = 1, guard: str = "", again: str = "%d"
) -> ptxvm.Kernel:  # fmt: skip
    """Sum the elements at some distances from a place that moves on, `count` times; `before` stands at the head of each row.

    Each thread has a row that begins at element `start`; it walks along it twice, the second time from `again` on, and adds
    its sums.
    """
    size, wide = int(type[1:]) // 8, FIELDS[type]
    names = [f"%v{n}" for n in range(vector)]
    group = f"{{{', '.join(names)}}}" if vector > 1 else names[0]
    kind = f".v{vector}" if vector > 1 else ""
    body = ""
    for at in loads:
        body += f"{guard} ld.global{kind}.{type} {group}, [%a+{at * size}];\n"
        body += "".join(f"{guard} cvt.u64.{wide} %x, {name};\n{guard} add.u64 %sum, %sum, %x;\n" for name in names)
    return ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u64 starts, .param .u64 counts, .param .u64 out)
    {{
        .reg .b32 %t, %n, %i, %k, %m; .reg .b64 %a, %b, %d, %c, %o, %x, %sum; .reg .{TYPES[type]} %v<4>; .reg .pred %p, %q, %g;
        ld.param.u64 %d, [data]; ld.param.u64 %b, [starts]; ld.param.u64 %c, [counts]; ld.param.u64 %o, [out];
        mov.u32 %t, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %t, %t, 64, %i;
        mad.wide.u32 %b, %t, 4, %b; mad.wide.u32 %c, %t, 4, %c; mad.wide.u32 %o, %t, 8, %o;
        ld.global.u32 %k, [%b]; ld.global.u32 %n, [%c]; mov.u64 %sum, 0; mov.u32 %m, 0;
        mad.wide.u32 %d, %k, {size}, %d; mov.u64 %a, %d;
    ROW: mov.u32 %i, 0; {before}
        setp.ge.u32 %q, %i, %n; @%q bra DONE;
    NEXT: and.b32 %k, %i, 3; setp.ne.u32 %g, %k, 2;
        {body}
        add.s64 %a, %a, {step * size}; add.u32 %i, %i, 1;
        setp.lt.u32 %p, %i, %n; @%p bra NEXT;
    DONE: mov.u64 %a, {again}; add.u32 %m, %m, 1; setp.lt.u32 %q, %m, 2; @%q bra ROW;
        st.global.u64 [%o], %sum; ret;
    }}""").kernel()


def given(rng: np.random.Generator, type: str, threads: int, room: int) -> list[np.ndarray]:
    """Elements, the beginning of each thread's row, its length, and the results."""
    data = rng.integers(0, 200, room, dtype=f"u{int(type[1:]) // 8}")
    return [data, np.zeros(threads, np.uint32), np.zeros(threads, np.uint32), np.zeros(threads, np.uint64)]


def sums(data: np.ndarray, starts: np.ndarray, counts: np.ndarray, places: list[int], step: int) -> list[int]:
    """Twice the sum of what each thread loads."""
    found = []
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        at = start + step * np.arange(count)
        found.append(2 * sum(int(data[at + place].sum(dtype=np.uint64)) for place in places))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("loads", [[0], [0, 1, 2, 3], [3, 1, 0], [0, 0], [0, 9]])
@pytest.mark.parametrize("step", [1, 2, 4, 7, 40, 0, -1])
@pytest.mark.parametrize("even", [True, False])
def test_rows(type: str, loads: list[int], step: int, even: bool, rng: np.random.Generator) -> None:
    threads = 192
    data, starts, counts, out = given(rng, type, threads, 40_000)
    starts[:] = 3000 + (128 * np.arange(threads) if even else rng.integers(0, 30_000, threads))
    counts[:] = 90 if even else rng.integers(0, 90, threads)
    found = same(walk(type, loads, step=step), [data, starts, counts, out], grid=3, block=64)[-1]
    assert found.tolist() == sums(data, starts, counts, loads, step)


@pytest.mark.parametrize(("type", "vector"), [("u8", 4), ("u16", 2), ("u16", 4), ("u32", 2), ("u32", 4), ("u64", 2)])
def test_vectors(type: str, vector: int, rng: np.random.Generator) -> None:
    threads = 128
    data, starts, counts, out = given(rng, type, threads, 40_000)
    starts[:], counts[:] = vector * rng.integers(0, 5000, threads), rng.integers(20, 60, threads)
    found = same(walk(type, [0], step=vector, vector=vector), [data, starts, counts, out], grid=2, block=64)[-1]
    assert found.tolist() == sums(data, starts, counts, list(range(vector)), vector)


def test_lanes_leave_and_come_back(rng: np.random.Generator) -> None:
    data, starts, counts, out = given(rng, "u32", 64, 40_000)
    starts[:], counts[:] = rng.integers(0, 30_000, 64), 80
    found = same(walk("u32", [0], guard="@%g"), [data, starts, counts, out], grid=1, block=64)[-1]
    chosen = np.arange(80)[np.arange(80) % 4 != 2]
    assert found.tolist() == [2 * int(data[start + chosen].sum(dtype=np.uint64)) for start in starts.tolist()]


def test_stores_between_walks_are_seen(rng: np.random.Generator) -> None:
    """A thread changes the tenth element of its row before it walks along it."""
    change = "ld.global.u32 %v3, [%d+40]; add.u32 %v3, %v3, 1; st.global.u32 [%d+40], %v3;"
    data, starts, counts, out = given(rng, "u32", 64, 64 * 96)
    starts[:], counts[:] = 96 * np.arange(64), 90
    before = [data.copy(), starts, counts]
    found = same(walk("u32", [0], before=change), [data, starts, counts, out], grid=1, block=64)[-1]
    assert found.tolist() == [each + 3 for each in sums(*before, [0], 1)]


def test_stores_to_what_the_last_walk_has_loaded_early_are_seen(rng: np.random.Generator) -> None:
    """The second walk goes on where the first one ended; before each a thread changes the third element from there on."""
    change = "ld.global.u32 %v3, [%a+8]; add.u32 %v3, %v3, 1; st.global.u32 [%a+8], %v3;"
    data, starts, counts, out = given(rng, "u32", 64, 64 * 200)
    starts[:], counts[:] = 200 * np.arange(64), 90
    found = same(walk("u32", [0], before=change, again="%a"), [data, starts, counts, out], grid=1, block=64)[-1]
    assert found.tolist() == [each // 2 + 2 for each in sums(data, starts, 2 * counts, [0], 1)]


def test_stores_of_other_threads_before_a_barrier_are_seen(rng: np.random.Generator) -> None:
    """Each thread changes the tenth element of another one's row, then all wait."""
    change = """xor.b32 %k, %t, 37; mad.wide.u32 %x, %k, 384, 40; ld.param.u64 %a, [data]; add.u64 %x, %x, %a;
        bar.sync 0; ld.global.u32 %v3, [%x]; add.u32 %v3, %v3, 1; st.global.u32 [%x], %v3; bar.sync 0; mov.u64 %a, %d;"""
    data, starts, counts, out = given(rng, "u32", 64, 64 * 96)
    starts[:], counts[:] = 96 * np.arange(64), 90
    before = [data.copy(), starts, counts]
    found = same(walk("u32", [0], before=change), [data, starts, counts, out], grid=1, block=64)[-1]
    assert found.tolist() == [each + 3 for each in sums(*before, [0], 1)]


@pytest.mark.parametrize("engine", ["jit", "interp"])
@pytest.mark.parametrize("at", [0, 4, 24])
def test_loads_of_several_sizes_behind_a_register(at: int, engine: str, rng: np.random.Generator) -> None:
    """Each finds its bytes between those of the others, wherever the array begins."""
    kernel = ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u64 out, .param .u64 starts)
    {{
        .reg .b32 %t, %i, %w; .reg .b64 %a, %o, %x, %sum; .reg .b16 %b, %h; .reg .pred %p;
        ld.param.u64 %a, [data]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u64 %sum, 0; mov.u32 %i, 0;
        ld.param.u64 %x, [starts]; mad.wide.u32 %x, %t, 4, %x; ld.global.u32 %w, [%x]; mad.wide.u32 %a, %w, 1, %a;
        mad.wide.u32 %o, %t, 8, %o;
    NEXT: ld.global.u8 %b, [%a+1]; cvt.u64.u16 %x, %b; add.u64 %sum, %sum, %x;
        ld.global.u16 %h, [%a+2]; cvt.u64.u16 %x, %h; add.u64 %sum, %sum, %x;
        ld.global.u32 %w, [%a+8]; cvt.u64.u32 %x, %w; add.u64 %sum, %sum, %x;
        add.s64 %a, %a, 12; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 50; @%p bra NEXT;
        st.global.u64 [%o], %sum; ret;
    }}""").kernel()
    data = rng.integers(0, 256, 96 * 64 + 1024, dtype=np.uint8)[at:]
    found = np.zeros(64, np.uint64)
    kernel.launch(1, 64, [data, found, 96 * np.arange(64, dtype=np.uint32)], engine=engine)
    for thread, total in enumerate(found.tolist()):
        starts = thread * 96 + 12 * np.arange(50)
        wide = sum(data[starts + 8 + n].astype(np.uint64) << np.uint64(8 * n) for n in range(4))
        half = sum(data[starts + 2 + n].astype(np.uint64) << np.uint64(8 * n) for n in range(2))
        assert total == int((wide + half + data[starts + 1]).sum())


def test_a_longer_load_that_is_misaligned_in_some_lanes_is_a_fault() -> None:
    """Its elements are in the window, since shorter loads have walked there; the rows of odd threads begin at 8 mod 16."""
    kernel = ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 data, .param .u64 starts, .param .u64 out)
    {{
        .reg .b32 %t, %i; .reg .b64 %a, %o, %x, %y, %sum; .reg .pred %p, %g;
        ld.param.u64 %a, [data]; ld.param.u64 %o, [out]; ld.param.u64 %x, [starts]; mov.u32 %t, %tid.x;
        mad.wide.u32 %x, %t, 4, %x; ld.global.u32 %i, [%x]; mad.wide.u32 %a, %i, 1, %a; mad.wide.u32 %o, %t, 8, %o;
        mov.u64 %sum, 0; mov.u32 %i, 0;
    NEXT: setp.eq.u32 %g, %i, 4; ld.global.u64 %x, [%a]; add.u64 %sum, %sum, %x;
        @%g ld.global.v2.u64 {{%x, %y}}, [%a+16];
        add.s64 %a, %a, 8; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 16; @%p bra NEXT;
        st.global.u64 [%o], %sum; ret;
    }}""").kernel()
    arguments = [np.zeros(2000, np.uint64), 136 * np.arange(64, dtype=np.uint32), np.zeros(64, np.uint64)]
    assert same_fault(kernel, arguments, block=64, match="misaligned").place.thread == (1, 0, 0)


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_end_of_an_array(beyond: int, rng: np.random.Generator) -> None:
    """The row of the last thread ends with the array, or an element behind it."""
    data, starts, counts, out = given(rng, "u32", 64, 64 * 64)
    starts[:], counts[:] = 64 * np.arange(64), 64
    counts[63] += beyond
    kernel = walk("u32", [0])
    if beyond:
        assert same_fault(kernel, [data, starts, counts, out], block=64, match="out-of-bounds").place.thread == (63, 0, 0)
        return
    found = same(kernel, [data, starts, counts, out], grid=1, block=64)[-1]
    assert found.tolist() == sums(data, starts, counts, [0], 1)


def test_the_table_of_shapes_names_them() -> None:
    assert ("row window" in walk("u32", [0]).dump("shapes", 64)) == cpu.has("avx2")

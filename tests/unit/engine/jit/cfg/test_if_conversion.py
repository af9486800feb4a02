"""Pieces of code that lanes skip by what memory holds: lanes stay together, and nothing else is to be seen of it."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
# Each thread loads x, and where it is odd doubles it, adds what is at the place beside it, and stores 7 somewhere else.
PIECE = """
    and.b32 %r4, %r3, 1;
    setp.eq.u32 %p0, %r4, 0;
    @%p0 bra NEXT;
    shl.b32 %r5, %r3, 1;
    ld.global.u32 %r6, [%d2+4];
    add.u32 %r3, %r5, %r6;
    mov.u32 %r7, 7;
    st.global.u32 [%d4], %r7;
NEXT:
"""
KERNEL = """
.visible .entry k(.param .u64 data, .param .u64 seven, .param .u64 out, .param .u32 turns)
{
    .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p<4>;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d3, [seven];
    ld.param.u64 %d5, [out];
    ld.param.u32 %r8, [turns];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    add.u64 %d4, %d3, %d1;
    add.u64 %d6, %d5, %d1;
    ld.global.u32 %r3, [%d2];
AGAIN:
PIECE
    sub.u32 %r8, %r8, 1;
    setp.ne.u32 %p1, %r8, 0;
    @%p1 bra AGAIN;
    st.global.u32 [%d6], %r3;
    ret;
}
"""
ALWAYS, EACH_TURN, SKIPPED = 12, 6, 5  # instructions: once, in every turn, and those that some threads skip

DATA = {
    "mixed": lambda n: np.random.default_rng(1).integers(0, 2**32, n, np.uint32),
    "even": lambda n: np.arange(n, dtype=np.uint32) * 2,
    "odd": lambda n: np.arange(n, dtype=np.uint32) * 2 + 1,
    "one odd": lambda n: (np.arange(n) == 40).astype(np.uint32),
}


def text(piece: str = PIECE) -> str:
    return HEAD + KERNEL.replace("PIECE", piece)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("threads", [32, 256, 77])
@pytest.mark.parametrize("kind", DATA)
def test_some_lanes_skip(kind: str, threads: int, turns: int) -> None:
    data = DATA[kind](threads + 1)
    seven, out = np.zeros(threads, np.uint32), np.zeros(threads, np.uint32)
    result = ptxvm.load(text()).kernel().launch(1, threads, [data, seven, out, np.uint32(turns)], engine="jit")
    x, stored, stayed = data[:-1].copy(), np.zeros(threads, bool), 0
    for _ in range(turns):
        odd = x % 2 == 1
        x = np.where(odd, x * 2 + data[1:], x)
        stored |= odd
        stayed += int(odd.sum())
    assert out.tolist() == x.tolist()
    assert seven.tolist() == (stored * 7).tolist()
    assert result.thread_instructions == threads * (ALWAYS + EACH_TURN * turns) + SKIPPED * stayed


def test_lanes_stay_together() -> None:
    title, *rows = ptxvm.load(text()).kernel().dump("shapes", 256).splitlines()
    assert "whole warps" in title
    assert any("@%p0 bra NEXT;" in row and row.endswith("5 predicated") for row in rows)


@pytest.mark.parametrize("threads", [32, 256, 77])
def test_what_skipping_lanes_would_touch_is_no_fault(threads: int) -> None:
    data = DATA["even"](threads + 1)
    out, nowhere = np.zeros(threads, np.uint32), np.uint64(16)
    ptxvm.load(text()).kernel().launch(1, threads, [data, nowhere, out, np.uint32(1)], engine="jit")
    assert out.tolist() == data[:-1].tolist()


@pytest.mark.parametrize("threads", [64, 256, 77])
def test_a_fault_is_of_the_lane_that_stays(threads: int) -> None:
    data = DATA["one odd"](threads + 1)
    out, short = np.zeros(threads, np.uint32), np.zeros(40, np.uint32)  # thread 40 stores behind its end
    with pytest.raises(ptxvm.Fault) as raised:
        ptxvm.load(text()).kernel().launch(1, threads, [data, short, out, np.uint32(1)], engine="jit")
    line = next(n for n, each in enumerate(text().splitlines(), 1) if "st.global.u32 [%d4]" in each)
    assert (raised.value.place.line, raised.value.place.thread) == (line, (40, 0, 0))
    assert raised.value.address == short.ctypes.data + 160


@pytest.mark.parametrize("threads", [256, 77])
def test_atomics_of_lanes_that_stay(threads: int) -> None:
    """Odd values count at one of four places, each finding another number there (PTX 9.7.13.5)."""
    piece = PIECE.replace(
        "    mov.u32 %r7, 7;", "    and.b32 %r9, %r5, 6;\n    mul.wide.u32 %d7, %r9, 2;\n    add.u64 %d7, %d3, %d7;", 1
    )
    piece = piece.replace("st.global.u32 [%d4], %r7;", "atom.global.add.u32 %r3, [%d7], 1;")
    data = DATA["mixed"](threads + 1)
    counts, out = np.zeros(4, np.uint32), np.zeros(threads, np.uint32)
    ptxvm.load(text(piece)).kernel().launch(1, threads, [data, counts, out, np.uint32(1)], engine="jit")
    x, which = data[:-1], (data[:-1] & 3)
    for place in range(4):
        here = (x % 2 == 1) & (which == place)
        assert counts[place] == here.sum()
        assert sorted(out[here].tolist()) == list(range(int(here.sum())))
    assert out[x % 2 == 0].tolist() == x[x % 2 == 0].tolist()


def test_a_branch_may_enter_where_others_skip_from() -> None:
    piece = PIECE.replace("    and.b32", "    setp.gt.u32 %p2, %r3, 100;\n    @%p2 bra ENTER;\n    and.b32", 1)
    piece = piece.replace("    shl.b32", "ENTER:\n    shl.b32", 1)
    data = np.arange(257, dtype=np.uint32)
    seven, out = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    ptxvm.load(text(piece)).kernel().launch(1, 256, [data, seven, out, np.uint32(1)], engine="jit")
    x = data[:-1]
    assert out.tolist() == np.where((x % 2 == 1) | (x > 100), x * 2 + data[1:], x).tolist()


def test_a_predicate_that_the_piece_changes_decided_before() -> None:
    piece = PIECE.replace("    shl.b32", "    setp.ne.u32 %p0, %r3, %r3;\n    shl.b32", 1)
    data = DATA["mixed"](257)
    seven, out = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    ptxvm.load(text(piece)).kernel().launch(1, 256, [data, seven, out, np.uint32(1)], engine="jit")
    x = data[:-1]
    assert out.tolist() == np.where(x % 2 == 1, x * 2 + data[1:], x).tolist()


@pytest.mark.parametrize("first", [0, 1])
def test_all_lanes_may_decide_alike(first: int) -> None:
    piece = PIECE.replace("    and.b32 %r4, %r3, 1;", "    ld.global.u32 %r9, [%d0];\n    and.b32 %r4, %r9, 1;", 1)
    data = DATA["mixed"](257)
    data[0] = first
    seven, out = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    result = ptxvm.load(text(piece)).kernel().launch(1, 256, [data, seven, out, np.uint32(1)], engine="jit")
    x = data[:-1]
    assert out.tolist() == (x * 2 + data[1:] if first else x).tolist()
    assert seven.tolist() == [7 * first] * 256
    assert result.thread_instructions == 256 * (ALWAYS + EACH_TURN + 1 + SKIPPED * first)


def test_what_a_piece_writes_is_dead_after_it_but_not_in_another_caller_of_the_same_function() -> None:
    # lanes return from a shared function to all places that call it, so what one of them needs lives in all of them
    text = """.version 7.8
.target sm_80
.address_size 64
.func (.reg .b32 %out) half(.reg .b32 %in)
{
    .reg .b32 %less; .reg .pred %p;
    shr.u32 %less, %in, 1;
    mov.u32 %out, 0;
    setp.ne.u32 %p, %in, 0;
    @%p call (%out), half, (%less);
    add.u32 %out, %out, 1;
    ret;
}
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d0, %r0, 4, %d0;
    ld.global.u32 %r1, [%d0];
    setp.gt.u32 %p0, %r1, 40;
    mov.u32 %r4, 1000;
    call (%r2), half, (%r1);
    add.u32 %r2, %r2, %r4;                  // %r4 lives across this call
    @%p0 bra ON;
    atom.global.add.u32 %r4, [%d0], 7;      // and is dead after this, but for the other call
ON:
    call (%r3), half, (%r2);
    shl.b32 %r3, %r3, 16;
    or.b32 %r3, %r3, %r2;
    st.global.u32 [%d0], %r3;
    ret;
}"""
    data = np.arange(64, dtype=np.uint32)
    first = np.array([int(n).bit_length() + 1001 for n in data])
    expected = [int(n).bit_length() + 1 << 16 | int(n) for n in first]
    assert same(ptxvm.load(text).kernel(), [data], block=64)[0].tolist() == expected

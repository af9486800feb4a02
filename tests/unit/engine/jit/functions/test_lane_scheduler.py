"""Lanes, warps and CTAs that wait for each other: both engines give the same, and what the manual says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from engines import ENGINES, each, same, same_fault

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, VersionKind
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.engine.spin_loops import spins

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body: str, parameters: str = ".param .u64 out", shared: str = "") -> ptxvm.Kernel:
    """A kernel with some registers; `%out` is the place of a thread's word, `%t` its number in the CTA."""
    return ptxvm.load(f"""{HEAD}{shared}
.visible .entry k({parameters})
{{
    .reg .b32 %r<20>, %t, %lane, %warp; .reg .b64 %d<10>, %base, %out; .reg .pred %p<10>;
    ld.param.u64 %base, [out];
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    mul.wide.u32 %out, %t, 4;
    add.u64 %out, %base, %out;
{body}
    ret;
}}""").kernel()


def results(kernel: ptxvm.Kernel, block: int, size: int | None = None, **options: object) -> np.ndarray:
    """What every engine leaves in the words, which must be the same."""
    return same(kernel, [np.zeros(size or block, np.uint32)], block=block, **options)[0]


def faults(kernel: ptxvm.Kernel, block: int, size: int = 64, **options: object) -> ptxvm.Fault:
    """The fault that every engine raises, which must be the same."""
    return same_fault(kernel, [np.zeros(size, np.uint32)], block=block, **options)


# ── many nodes ──────────────────────────────────────────────────────────────────────────


def test_lanes_at_more_nodes_than_a_word_has_bits() -> None:
    # each lane adds the steps whose bit its number has, and stores sums at places of its own; warps meet in between
    steps = 40
    piece = """
    and.b32 %r1, %t, {bit};
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra L{n};
    add.u32 %r0, %r0, {n};
    xor.b32 %r2, %r0, %t;
    rem.u32 %r3, %r2, 5;
    mul.wide.u32 %d0, %r3, 256;
    add.u64 %d0, %d0, %out;
    st.global.u32 [%d0+256], %r0;
    @%p1 bra L{n};
    add.u32 %r0, %r0, %r3;
L{n}:
"""
    pieces = [piece.format(n=n, bit=1 << n % 6) for n in range(steps)]
    body = "mov.u32 %r0, 0; setp.gt.u32 %p1, %t, 60;" + "".join(pieces[:20]) + "bar.sync 1, 64;" + "".join(pieces[20:])
    many = kernel(body + "st.global.u32 [%out], %r0;")

    def expected(thread: int) -> int:
        total = 0
        for n in range(steps):
            if thread >> n % 6 & 1:
                total += n
                total += (total ^ thread) % 5 if thread <= 60 else 0
        return total

    assert results(many, 50, size=512)[:50].tolist() == [expected(thread) for thread in range(50)]
    text = Translation(many.module.image, Specialisation(many.function, (50, 1, 1), 0)).text(VersionKind.FIRST)[0]
    assert not re.search(r"\bi(128|256|512|1024)\b", text), "LLVM takes time that grows with the square of such a word"
    if not cpu.has("avx512f"):
        masked = [line for line in text.splitlines() if re.search(r"call void @llvm.masked.scatter.*%v\d+\)$", line)]
        assert not masked, "LLVM goes through a function once more for each that it writes lane by lane"


# ── collectives ─────────────────────────────────────────────────────────────────────────


def test_lanes_of_both_sides_of_a_branch_meet_in_a_shuffle() -> None:
    # PTX 9.7.9.6: the threads of the mask need not be at the same instruction, but at one with the same qualifiers
    out = results(
        kernel("""
    setp.lt.u32 %p0, %lane, 16;
    add.u32 %r0, %lane, 100;
    @%p0 bra LOW;
    shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffffffff;
    add.u32 %r1, %r1, 1000;
    bra END;
LOW:
    shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffffffff;
END:
    st.global.u32 [%out], %r1;
"""),
        32,
    )
    lanes = np.arange(32)
    assert (out == 100 + (lanes ^ 16) + np.where(lanes < 16, 0, 1000)).all()


def test_halves_of_a_warp_exchange_apart() -> None:
    out = results(
        kernel("""
    setp.lt.u32 %p0, %lane, 16;
    mov.u32 %r5, 0;
    mov.u32 %r6, %lane;
    @%p0 bra LOW;
HIGH:
    shfl.sync.bfly.b32 %r1, %r6, 1, 31, 0xffff0000;
    add.u32 %r6, %r1, 3;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 5;
    @%p1 bra HIGH;
    bra END;
LOW:
    shfl.sync.bfly.b32 %r1, %r6, 2, 31, 0x0000ffff;
    add.u32 %r6, %r1, 7;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3;
    @%p1 bra LOW;
END:
    bar.warp.sync 0xffffffff;
    st.global.u32 [%out], %r6;
"""),
        64,
    )
    lanes = np.arange(64) % 32
    assert (out == np.where(lanes < 16, (lanes ^ 2) + 21, (lanes ^ 1) + 15)).all()


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("block", [20, 32, 64])
def test_parts_of_a_warp_vote_by_the_same_instruction_and_other_masks(rounds: int, block: int) -> None:
    # PTX 9.7.13.9: who votes waits for threads that vote with the same mask, not for those that vote with another one
    out = results(
        kernel(f"""
    mul.lo.u32 %r0, %t, 7;
    and.b32 %r0, %r0, 12;
    setp.lt.u32 %p0, %r0, 8;
    and.b32 %r1, %t, 2;
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r9, 0;
    mov.u32 %r8, {rounds};
AGAIN:
    vote.sync.ballot.b32 %r2, %p0, 0xffffffff;
    @!%p0 bra OTHERS;
    shfl.sync.up.b32 %r3, %t, 1, 0, %r2;
    add.u32 %r9, %r9, %r3;
    bra MET;
OTHERS:
    not.b32 %r2, %r2;
    vote.sync.ballot.b32 %r3, %p1, %r2;
    mad.lo.u32 %r9, %r9, 3, %r3;
MET:
    sub.u32 %r8, %r8, 1;
    setp.ne.u32 %p2, %r8, 0;
    @%p2 bra AGAIN;
    st.global.u32 [%out], %r9;
"""),
        block,
    )
    threads = np.arange(block)
    chosen, odd = threads * 7 & 12 < 8, (threads & 2) != 0
    for t in threads:
        warp = threads[threads // 32 == t // 32]
        others = sum(1 << int(n % 32) for n in warp if odd[n] and not chosen[n])
        before = t - 1 if t % 32 and chosen[t - 1] else t  # a lane that takes no part gives nothing: the own value stays
        expected = 0
        for _ in range(rounds):
            expected = expected + before if chosen[t] else expected * 3 + others
        assert out[t] == expected & 0xFFFF_FFFF


def test_pairs_of_lanes_meet_along_a_stair() -> None:
    # each lane meets the lane before it, then the one after it, by the same instruction: PTX 9.7.9.6 pairs equal masks
    out = results(
        kernel("""
    mov.u32 %r1, 3;
    sub.u32 %r2, %lane, 1;
    shl.b32 %r2, %r1, %r2;                  // lanes n-1 and n first
    shl.b32 %r1, %r1, %lane;
    mov.u32 %r9, 1;
    mov.u32 %r8, 0;
    setp.eq.u32 %p1, %lane, 0;
    @%p1 bra NEXT;
    bra PAIR;
NEXT:
    mov.u32 %r2, %r1;                       // then lanes n and n+1
    setp.eq.u32 %p2, %lane, 31;
    @%p2 bra END;
    add.u32 %r8, %r8, 1;
PAIR:
    clz.b32 %r3, %r2;
    sub.u32 %r3, 31, %r3;
    add.u32 %r4, %r3, %r3;
    sub.u32 %r4, %r4, 1;
    sub.u32 %r4, %r4, %lane;                // the partner
    shfl.sync.idx.b32 %r5, %r9, %r4, 31, %r2;
    add.u32 %r9, %r9, %r5;
    add.u32 %r8, %r8, 1;
    setp.eq.u32 %p3, %r8, 1;
    @%p3 bra NEXT;
END:
    st.global.u32 [%out], %r9;
"""),
        32,
    )
    held = [1] * 32
    for n in range(31):  # the only order that there is
        held[n], held[n + 1] = held[n] + held[n + 1], held[n] + held[n + 1]
    assert out.tolist() == held


@pytest.mark.parametrize("fair", [False, True])
def test_a_stair_of_lanes_that_come_together(fair: bool) -> None:
    # all lanes are at one instruction, and an even one names the lane before it, which names the lane before that
    spin = """
WAIT:
    ld.volatile.global.u32 %r15, [%base+128];
    setp.ne.u32 %p9, %r15, 0;
    @%p9 bra WAIT;
"""
    body = kernel(f"""
{spin if fair else ""}
    and.b32 %r0, %lane, 3;
    sub.u32 %r1, %lane, 1;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mov.u32 %r1, %lane;                // 0 and 1 meet, 1 and 2, then 2 and 3
    mov.u32 %r2, 3;
    shl.b32 %r2, %r2, %r1;
    setp.eq.u32 %p1, %r0, 1;
    setp.eq.u32 %p2, %r0, 2;
    or.pred %p1, %p1, %p2;
    mov.u32 %r9, %lane;
    mov.u32 %r8, 0;
AGAIN:
    clz.b32 %r3, %r2;
    sub.u32 %r3, 61, %r3;
    add.u32 %r3, %r3, %r3;
    sub.u32 %r3, %r3, 61;
    sub.u32 %r3, %r3, %lane;
    shfl.sync.idx.b32 %r5, %r9, %r3, 31, %r2;
    mad.lo.u32 %r9, %r9, 2, %r5;
    shl.b32 %r2, %r2, 1;
    add.u32 %r8, %r8, 1;
    setp.eq.u32 %p3, %r8, 1;
    and.pred %p3, %p3, %p1;
    @%p3 bra AGAIN;
    st.global.u32 [%out], %r9;
""")
    out = results(body, 32, 64)
    held = list(range(32))
    for first in range(0, 32, 4):
        for n in range(first, first + 3):
            held[n], held[n + 1] = 2 * held[n] + held[n + 1], 2 * held[n + 1] + held[n]
    assert out[:32].tolist() == held
    ran = {result.thread_instructions for result, _ in each(body, [np.zeros(64, np.uint32)], 1, 32, {})}
    assert len(ran) == 1


def test_lanes_that_never_agree_on_a_mask_meet_where_nothing_else_can_happen() -> None:
    # PTX leaves it open; the check `sync` says that they do not agree
    text = """
    setp.lt.u32 %p0, %lane, 16;
    @%p0 bra LOW;
    vote.sync.ballot.b32 %r1, 1, 0xffffffff;
    bra END;
LOW:
    vote.sync.ballot.b32 %r1, 1, 0x0001ffff;
END:
    st.global.u32 [%out], %r1;
"""
    out = results(kernel(text), 32)
    assert (out == np.where(np.arange(32) < 16, 0x1FFFF, 0xFFFF_FFFF)).all()
    findings = kernel(text).launch(1, 32, [np.zeros(32, np.uint32)], check=("sync",)).findings
    assert ["name different lanes" in each.message for each in findings] == [True]


def test_who_has_ended_is_not_waited_for() -> None:
    out = results(
        kernel("""
    setp.ge.u32 %p0, %lane, 20;
    @%p0 bra LATE;
    vote.sync.ballot.b32 %r1, 1, 0xffffffff;
    st.global.u32 [%out], %r1;
    exit;
LATE:
    exit;
"""),
        32,
    )
    assert (out[:20] == (1 << 20) - 1).all()
    assert (out[20:] == 0).all()


def test_a_warp_that_waits_for_itself_is_a_deadlock() -> None:
    fault = faults(
        kernel("""
    setp.lt.u32 %p0, %lane, 16;
    @%p0 bra LOW;
    shfl.sync.bfly.b32 %r1, %lane, 16, 31, 0xffffffff;
    bra END;
LOW:
    vote.sync.ballot.b32 %r1, 1, 0xffffffff;
END:
    st.global.u32 [%out], %r1;
"""),
        32,
    )
    assert fault.kind == "deadlock"
    assert "16 threads wait at line" in str(fault)
    assert "vote.sync.ballot.b32" in str(fault)


# ── barriers ────────────────────────────────────────────────────────────────────────────

SHARED = ".shared .align 4 .b8 words[4096];"


def test_a_barrier_on_both_sides_of_a_branch() -> None:
    out = results(
        kernel(
            """
    mov.u32 %r9, words;
    mad.lo.u32 %r8, %t, 4, %r9;
    setp.lt.u32 %p0, %lane, 7;
    st.shared.u32 [%r8], %t;
    @%p0 bra LOW;
    bar.sync 0;
    bra END;
LOW:
    bar.sync 0;
END:
    xor.b32 %r1, %t, 127;
    mad.lo.u32 %r8, %r1, 4, %r9;
    ld.shared.u32 %r2, [%r8];
    st.global.u32 [%out], %r2;
""",
            shared=SHARED,
        ),
        128,
    )
    assert (out == np.arange(128) ^ 127).all()


def test_producers_arrive_and_consumers_wait() -> None:
    # the example of PTX 9.7.13.1: producers and consumers meet at two barriers in turn
    out = results(
        kernel(
            """
    mov.u32 %r9, words;
    and.b32 %r3, %t, 31;
    mad.lo.u32 %r8, %r3, 4, %r9;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra CONSUME;
PRODUCE:
    mad.lo.u32 %r7, %r5, 100, %t;
    st.shared.u32 [%r8], %r7;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    bar.sync 1, 64;
    ld.shared.u32 %r7, [%r8];
    add.u32 %r6, %r6, %r7;
    bar.arrive 2, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 4;
    @%p1 bra CONSUME;
END:
    st.global.u32 [%out], %r6;
""",
            shared=SHARED,
        ),
        64,
    )
    assert (out[:32] == 0).all()
    assert (out[32:] == 600 + 4 * np.arange(32)).all()


def test_a_barrier_whose_number_is_that_of_the_warps_pair() -> None:
    out = results(
        kernel(
            """
    mov.u32 %r9, words;
    mad.lo.u32 %r8, %t, 4, %r9;
    shr.u32 %r3, %t, 6;
    add.u32 %r3, %r3, 1;
    st.shared.u32 [%r8], %t;
    barrier.sync %r3, 64;
    xor.b32 %r1, %t, 32;
    mad.lo.u32 %r8, %r1, 4, %r9;
    ld.shared.u32 %r2, [%r8];
    setp.gt.u32 %p0, %t, 70;
    barrier.red.popc.u32 %r4, %r3, 64, %p0;
    mad.lo.u32 %r2, %r4, 1000, %r2;
    st.global.u32 [%out], %r2;
""",
            shared=SHARED,
        ),
        128,
    )
    threads = np.arange(128)
    assert (out == (threads ^ 32) + np.where(threads < 64, 0, 57_000)).all()


def test_barriers_that_never_open() -> None:
    fault = faults(
        kernel("""
    setp.lt.u32 %p0, %t, 32;
    @%p0 bra LOW;
    bar.sync 1;
    bra END;
LOW:
    bar.sync 2;
END:
    st.global.u32 [%out], %t;
"""),
        64,
    )
    assert fault.kind == "deadlock"
    assert str(fault).count("32 threads wait at line") == 2


def test_a_count_that_never_comes() -> None:
    assert faults(kernel("bar.sync 1, 96;"), 64).kind == "deadlock"


def test_there_is_no_barrier_16() -> None:
    fault = faults(kernel("add.u32 %r1, %warp, 15; barrier.sync %r1;"), 64)
    assert fault.kind == "invalid-barrier"


# ── forward progress ────────────────────────────────────────────────────────────────────


def test_a_spin_lock_between_the_lanes_of_a_warp() -> None:
    # PTX 3.1: from sm_70 on lanes are scheduled each for itself
    out = results(
        kernel("""
AGAIN:
    atom.global.cas.b32 %r0, [%base], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra AGAIN;
    ld.volatile.global.u32 %r1, [%base+4];
    add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%base+4], %r1;
    membar.gl;
    atom.global.exch.b32 %r0, [%base], 0;
"""),
        96,
        2,
    )
    assert out.tolist() == [0, 96]


def test_a_warp_waits_for_the_flag_of_another_one() -> None:
    out = results(
        kernel("""
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra SIGNAL;
WAIT:
    ld.volatile.global.u32 %r1, [%base];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    st.global.u32 [%out+4], %r1;
    bra END;
SIGNAL:
    mov.u32 %r2, 7;
    st.volatile.global.u32 [%base], %r2;
END:
"""),
        64,
        40,
    )
    assert (out[:33] == 7).all()


def test_ctas_wait_for_each_other() -> None:
    # a barrier of the whole grid, as cooperative groups write it
    out = results(
        kernel("""
    mov.u32 %r0, %nctaid.x;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra ARRIVED;
    atom.global.add.u32 %r1, [%base], 1;
AGAIN:
    ld.acquire.gpu.global.u32 %r2, [%base];
    setp.lt.u32 %p1, %r2, %r0;
    @%p1 bra AGAIN;
ARRIVED:
    bar.sync 0;
    ld.volatile.global.u32 %r3, [%base];
    mov.u32 %r4, %ctaid.x;
    mad.lo.u32 %r5, %r4, 64, %t;
    mul.wide.u32 %d0, %r5, 4;
    add.u64 %d0, %d0, %base;
    st.global.u32 [%d0+4], %r3;
"""),
        64,
        1 + 64 * 50,
        grid=50,
    )
    assert (out == 50).all()


# PTX 8.7: a weak load beside another thread's store is a race; a loop that waits with one ends all the same, as it does
# where the load is done anew in each turn
STEPS = 1 << 22  # far more than any of them needs


@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize("limit", [16, 32])
def test_a_weak_load_waits_for_lanes_and_for_warps(space: str, limit: int) -> None:
    body = kernel(f"""
    setp.ge.u32 %p0, %t, {limit};
    mov.u32 %r2, 7;
    @%p0 bra SIGNAL;
WAIT:
    ld{space}.u32 %r1, [%base];
    and.b32 %r1, %r1, 15;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    add.u32 %r1, %r1, %t;
    st.global.u32 [%out+4], %r1;
    bra END;
SIGNAL:
    st{space}.u32 [%base], %r2;
END:
""")
    out = results(body, 64, 40, steps=STEPS)
    assert out[0] == 7
    assert (out[1 : limit + 1] == 7 + np.arange(limit)).all()


def test_a_weak_load_waits_in_shared_memory_and_sleeps_between() -> None:
    body = kernel(
        """
    mov.u32 %r9, words;
    setp.ne.u32 %p0, %t, 40;
    mov.u32 %r2, 9;
    @!%p0 st.shared.u32 [%r9], 0;
    bar.sync 0;
    @!%p0 bra SIGNAL;
WAIT:
    ld.shared.u32 %r1, [%r9];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    mov.u32 %r5, 0;
PAUSE:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 5;
    @%p2 bra PAUSE;
    bra WAIT;
SIGNAL:
    st.shared.u32 [%r9], %r2;
    mov.u32 %r1, %r2;
END:
    st.global.u32 [%out], %r1;
""",
        shared=SHARED,
    )
    assert (results(body, 64, steps=STEPS) == 9).all()


def test_a_weak_load_waits_for_a_later_cta() -> None:
    body = kernel("""
    mov.u32 %r0, %ctaid.x;
    setp.eq.u32 %p0, %r0, 3;
    mov.u32 %r2, 5;
    @%p0 bra SIGNAL;
    mov.u32 %r1, 0;
WAIT:
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    ld.global.u32 %r1, [%base];
    bra WAIT;
SIGNAL:
    st.global.u32 [%base], %r2;
END:
    mul.wide.u32 %d0, %r0, 4;
    add.u64 %d0, %d0, %base;
    st.global.u32 [%d0+4], %r2;
""")
    assert results(body, 32, 5, grid=4, steps=STEPS).tolist() == [5] * 5


POLLS = {
    "asks": ".func (.reg .b32 r) poll(.reg .b64 p) { ld.relaxed.gpu.global.u32 r, [p]; ret; }",
    "atomic": ".func (.reg .b32 r) poll(.reg .b64 p) { atom.global.or.b32 r, [p], 0; ret; }",
    "looks": ".func (.reg .b32 r) poll(.reg .b64 p) { ld.global.u32 r, [p]; ret; }",
    "deep": """
.func (.reg .b32 r) look(.reg .b64 p) { ld.u32 r, [p]; ret; }
.func (.reg .b32 r) poll(.reg .b64 p) { .local .u32 own; st.local.u32 [own], 0; call (r), look, (p); and.b32 r, r, 15; ret; }
""",
}
PARAMETERS = """
.func (.param .b32 r) poll(.param .b64 p)
{
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p]; WORK [%p]; st.param.b32 [r], %r;
    ret;
}
"""


@pytest.mark.parametrize("how", [*POLLS, "ld.volatile.global.u32 %r,", "ld.global.u32 %r,"])
def test_a_function_waits_for_others(how: str) -> None:
    # PTX 3.1: lanes of a warp run independently, and so do warps: those that poll must not starve the one that answers
    turn = "call (%r1), poll, (%base);"
    if how not in POLLS:
        turn = "{ .param .b32 a; .param .b64 b; st.param.b64 [b], %base; call (a), poll, (b); ld.param.b32 %r1, [a]; }"
    body = f"""
    setp.eq.u32 %p0, %t, 63;
    @%p0 bra SIGNAL;
WAIT:
    {turn}
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    st.global.u32 [%out+4], %r1;
    bra END;
SIGNAL:
    st.global.u32 [%base], 5;
END:
"""
    functions = POLLS.get(how) or PARAMETERS.replace("WORK", how)
    assert results(kernel(body, shared=functions), 64, 65, steps=STEPS)[:64].tolist() == [5] * 64


def test_a_surface_load_waits_for_others() -> None:
    body = kernel(
        """
    ld.param.u64 %d1, [surface];
    mov.u32 %r0, 0;
    setp.eq.u32 %p0, %t, 40;
    @%p0 bra SIGNAL;
WAIT:
    suld.b.1d.b32.trap %r1, [%d1, {%r0}];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    st.global.u32 [%out], %r1;
    bra END;
SIGNAL:
    mov.u32 %r2, 6;
    sust.b.1d.b32.trap [%d1, {%r0}], %r2;
END:
""",
        ".param .u64 out, .param .u64 surface",
    )
    for engine in ENGINES:
        out, surface = np.zeros(64, np.uint32), ptxvm.Surface(np.zeros(4, np.uint32))
        body.launch(1, 64, [out, surface], engine=engine, steps=STEPS)
        assert out.tolist() == [6 * (n != 40) for n in range(64)]


@pytest.mark.parametrize(
    "turn",
    [
        "ld.global.u32 %r1, [%base]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra AGAIN;",  # i < *n
        "ld.global.u32 %r1, [%base]; mov.u32 %r2, %clock; setp.lt.u32 %p1, %r2, %r1; @%p1 bra AGAIN;",  # until a time
        "ld.global.u64 %base, [%base]; setp.ne.u64 %p1, %base, 0; @%p1 bra AGAIN;",  # along a list
        # what it counts down itself
        """ld.global.u32 %r1, [%base]; sub.u32 %r1, %r1, 1; st.global.u32 [%base], %r1;
        setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;""",
        # it looks nine times
        """ld.global.u32 %r1, [%base]; setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra AGAIN;""",
        "ld.const.u32 %r1, [table]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;",  # nobody writes there
        "call (%r2), draw, (%base); setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN;",  # what a function changes itself
        # a function of what it counts
        """{ .param .b32 a; .param .b32 b; add.u32 %r2, %r2, 1; st.param.b32 [b], %r2;
        call (a), at, (b); ld.param.b32 %r3, [a]; } setp.ne.u32 %p1, %r3, 0; @%p1 bra AGAIN;""",
    ],
)
def test_loops_that_end_by_themselves_need_not_be_fair(turn: str) -> None:
    functions = """
.func (.reg .b32 r) draw(.reg .b64 p) { ld.global.u32 r, [p]; mul.lo.u32 r, r, 5; st.global.u32 [p], r; ret; }
.func (.param .b32 r) at(.param .b32 n)
{
    .reg .b32 %n; .reg .b64 %p;
    ld.param.u32 %n, [n]; mov.u64 %p, list; mad.wide.u32 %p, %n, 4, %p; ld.global.u32 %n, [%p]; st.param.b32 [r], %n;
    ret;
}
"""
    body = kernel(f"mov.u32 %r2, 0; AGAIN: {turn}\nEND:", shared=f".const .u32 table = 1; .global .u32 list[9];{functions}")
    assert not spins(body.module.image, body.function)


def test_a_lock_that_nobody_gives_back_ends_with_the_budget() -> None:
    stuck = kernel("""
AGAIN:
    atom.global.cas.b32 %r0, [%base], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra AGAIN;
""")
    same_fault(stuck, [np.zeros(4, np.uint32)], block=32, match="did not end within 1000 steps", steps=1000)


# ── what was learned stays ──────────────────────────────────────────────────────────────


def test_the_votes_of_a_barrier_stay_when_some_threads_come_to_another() -> None:
    out = results(
        kernel("""
    setp.lt.u32 %p0, %t, 5;
    bar.red.popc.u32 %r0, 4, %p0;
    setp.eq.u32 %p1, %warp, 0;
@%p1 bra FIRST;
    bar.arrive 3, 64;
    bra END;
FIRST:
    bar.sync 3, 64;
END:
    st.global.u32 [%out], %r0;
"""),
        64,
    )
    assert (out == 5).all()


def test_those_who_were_active_stay_so_when_some_of_them_meet() -> None:
    out = results(
        kernel("""
    activemask.b32 %r0;
    setp.lt.u32 %p0, %lane, 7;
@!%p0 bra END;
    vote.sync.ballot.b32 %r1, %p0, 0x7f;
    activemask.b32 %r2;
END:
    st.global.u32 [%out], %r0;
"""),
        32,
    )
    assert (out == 0xFFFF_FFFF).all()


CHAIN = """
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra MET;
    atom.global.add.u32 %r2, [%base], 1;         // how many are under way
    add.u32 %r2, %r2, 1;
    red.global.max.u32 [%base+4], %r2;
MET:
    bar.sync 0;
    @%p0 bra PASSED;
"""
PASSED = """
PASSED:
    bar.sync 0;
    @%p0 bra END;
    red.global.add.u32 [%base], -1;
    mul.wide.u32 %d0, %r0, 4;
    add.u64 %d0, %base, %d0;
    st.release.gpu.u32 [%d0+8], 1;
END:
"""


def await_flag(condition: str, distance: int) -> str:
    """Wait for the flag of the CTA at a distance, where there is one."""
    return f"""
    setp.{condition}, 0;
    @%p1 bra PASSED;
    add.s32 %r3, %r0, {distance};
    mul.wide.u32 %d1, %r3, 4;
    add.u64 %d1, %base, %d1;
WAIT:
    ld.acquire.gpu.u32 %r4, [%d1+8];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra WAIT;
"""


def in_ctas(body: ptxvm.Kernel, grid: int, block: int, size: int) -> list[int]:
    """The words that the CTAs of compiled code leave."""
    out = np.zeros(size, np.uint32)
    body.launch(grid=grid, block=block, args=[out], engine="jit")
    return out.tolist()


@pytest.mark.parametrize("block", [32, 96])
def test_ctas_that_need_not_wait_run_one_after_the_other(block: int) -> None:
    body = kernel(CHAIN + await_flag("eq.u32 %p1, %r0", -1) + PASSED)
    assert in_ctas(body, 50, block, 60) == [0, 1] + [1] * 50 + [0] * 8


@pytest.mark.parametrize("block", [32, 96])
def test_each_cta_waits_for_the_next_one(block: int) -> None:
    last = "sub.u32 %r5, %r1, %r0; sub.u32 %r5, %r5, 1;"
    body = kernel(CHAIN + last + await_flag("eq.u32 %p1, %r5", 1) + PASSED)
    assert in_ctas(body, 50, block, 60) == [0, 50] + [1] * 50 + [0] * 8


def test_ctas_that_ask_between_barriers_wait_for_the_last_one() -> None:
    """Each comes from barrier to barrier while it waits."""
    body = kernel("""
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    setp.eq.u32 %p0, %t, 0;
    @%p0 red.global.add.u32 [%base], 1;
AGAIN:
    mov.u32 %r2, %r1;
    @%p0 ld.relaxed.gpu.u32 %r2, [%base];
    setp.ne.u32 %p2, %r2, %r1;
    bar.red.or.pred %p1, 0, %p2;
    @%p1 bra AGAIN;
    @%p0 red.global.add.u32 [%base+4], 1;
""")
    assert in_ctas(body, 40, 64, 2) == [40, 40]


def test_one_thread_of_each_cta_polls_and_tells_the_others_through_shared_memory() -> None:
    """What it has loaded decides about the loop by way of a store and a load."""
    body = kernel("""
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    setp.eq.u32 %p0, %t, 0;
    @%p0 red.global.add.u32 [%base], 1;
AGAIN:
    @%p0 ld.relaxed.gpu.u32 %r2, [%base];
    @%p0 st.shared.u32 [word], %r2;
    bar.sync 0;
    ld.shared.u32 %r3, [word];
    bar.sync 0;
    setp.ne.u32 %p1, %r3, %r1;
    @%p1 bra AGAIN;
    @%p0 red.global.add.u32 [%base+4], 1;
""", shared=".shared .u32 word;")  # fmt: skip
    assert spins(body.module.image, body.function)
    assert in_ctas(body, 40, 64, 2) == [40, 40]

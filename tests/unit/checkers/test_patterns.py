"""Small kernels, each for one sentence of the memory model (PTX 8.7, 8.8): with a race, or without one."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag)
{
    .shared .align 16 .b8 s[256];
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [flag];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u64 %rd4, s;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd3, %rd3, %rd4;
"""


def checked(body, grid=2, block=32, check=("race",), schedules=12):
    module = ptxvm.load(HEAD + body + "\n    ret;\n}\n")
    data, flag = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    return module.kernel().launch(grid, block, [data, flag], check=check, schedules=schedules, seed=0, steps=200_000).findings


def passing(store, load, after="", before=""):
    """Thread 0 of CTA 0 writes and sets a flag; thread 0 of CTA 1 waits for the flag and reads."""
    return f"""
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra CONSUMER;
    st.global.u32 [%rd1], 42;
    {before}
    {store}
    ret;
CONSUMER:
    {load}
    setp.eq.u32 %p3, %r3, 0;
    @%p3 bra CONSUMER;
    {after}
    ld.global.u32 %r4, [%rd1];
    st.global.u32 [%rd1+64], %r4;
"""


RELAXED = "st.relaxed.gpu.global.u32 [%rd2], 1;"
POLL = "ld.relaxed.gpu.global.u32 %r3, [%rd2];"
FENCE = "fence.acq_rel.gpu;"
ORDERED = {
    "release and acquire": passing("st.release.gpu.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd2];"),
    "fences": passing(RELAXED, POLL, FENCE, FENCE),
    "a fence and an acquire": passing(RELAXED, "ld.acquire.gpu.global.u32 %r3, [%rd2];", before=FENCE),
    "a release and a fence": passing("st.release.gpu.global.u32 [%rd2], 1;", POLL, FENCE),
    "a volatile flag": passing("st.volatile.global.u32 [%rd2], 1;", "ld.volatile.global.u32 %r3, [%rd2];", FENCE, FENCE),
    "atomics": passing("atom.release.gpu.global.exch.b32 %r5, [%rd2], 1;", "atom.acquire.gpu.global.or.b32 %r3, [%rd2], 0;"),
    "red as a release": passing("red.release.gpu.global.add.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd2];"),
    "a relaxed write after a release on the flag": passing(
        "st.release.gpu.global.u32 [%rd2], 0; st.relaxed.gpu.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd2];"
    ),
    "an acquire after a relaxed read of the flag": passing(
        "st.release.gpu.global.u32 [%rd2], 1;", POLL, "ld.acquire.gpu.global.u32 %r5, [%rd2];"
    ),
}
RACING = {
    "nothing": passing(RELAXED, POLL),
    "no acquire": passing("st.release.gpu.global.u32 [%rd2], 1;", POLL),
    "no release": passing(RELAXED, "ld.acquire.gpu.global.u32 %r3, [%rd2];"),
    "a release of the CTA": passing("st.release.cta.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd2];"),
    "a fence of the CTA": passing(RELAXED, POLL, FENCE, "fence.acq_rel.cta;"),
    "a fence that only acquires": passing(RELAXED, POLL, FENCE, "fence.acquire.gpu;"),
    "a fence that only releases": passing(RELAXED, POLL, "fence.release.gpu;", FENCE),
    "an acquire of another place": passing(
        "st.release.gpu.global.u32 [%rd2], 1;", POLL, "ld.acquire.gpu.global.u32 %r5, [%rd2+4];"
    ),
}


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_what_orders_accesses_of_two_ctas(body):
    assert checked(body) == []


@pytest.mark.parametrize("body", RACING.values(), ids=RACING)
def test_what_does_not_order_accesses_of_two_ctas(body):
    of_data = [each for each in checked(body) if each.accesses[1].place.text == "ld.global.u32 %r4, [%rd1]"]
    assert [(each.hazard, each.accesses[0].cta, each.accesses[1].cta) for each in of_data] == [("RAW", (0, 0, 0), (1, 0, 0))]


def test_a_chain_of_read_modify_writes_passes_a_release_on():
    body = """
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    setp.eq.u32 %p2, %r2, 1;
    @%p2 bra MIDDLE;
    setp.eq.u32 %p2, %r2, 2;
    @%p2 bra LAST;
    st.global.u32 [%rd1], 42;
    st.release.gpu.global.u32 [%rd2], 1;
    ret;
MIDDLE:
    atom.relaxed.gpu.global.cas.b32 %r3, [%rd2], 1, 2;
    setp.ne.u32 %p3, %r3, 1;
    @%p3 bra MIDDLE;
    ret;
LAST:
    ld.acquire.gpu.global.u32 %r3, [%rd2];
    setp.ne.u32 %p3, %r3, 2;
    @%p3 bra LAST;
    ld.global.u32 %r4, [%rd1];
    """
    assert checked(body, grid=3) == []
    (found,) = checked(body.replace("atom.relaxed.gpu.global.cas.b32 %r3, [%rd2], 1, 2;", POLL).replace(
        "@%p3 bra MIDDLE;", "@%p3 bra MIDDLE; st.relaxed.gpu.global.u32 [%rd2], 2;"
    ), grid=3)  # fmt: skip
    assert (found.hazard, found.accesses[1].cta) == ("RAW", (2, 0, 0))


def test_an_observed_write_is_ordered_before_what_its_observer_does_there():
    """Causality is also `observation ; po_loc` (PTX 8.9.5): a weak access of the flag after a strong read that saw it."""
    assert checked(passing(RELAXED, POLL).replace("ld.global.u32 %r4, [%rd1];", "ld.global.u32 %r4, [%rd2];")) == []


SHARED = {
    "bar.sync": ("st.shared.u32 [%rd3], %r1; bar.sync 0; ld.shared.u32 %r3, [s];", []),
    "nothing": ("st.shared.u32 [%rd3], %r1; ld.shared.u32 %r3, [s];", ["RAW"]),
    "bar.warp.sync": ("st.shared.u32 [%rd3], %r1; bar.warp.sync 0xffffffff; ld.shared.u32 %r3, [s];", []),
    "shfl": (
        "st.shared.u32 [%rd3], %r1; shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff; ld.shared.u32 %r3, [s];", ["RAW"],
    ),
    "a barrier that comes too early": ("bar.sync 0; st.shared.u32 [%rd3], %r1; ld.shared.u32 %r3, [s];", ["RAW"]),
    "same value": ("st.shared.u32 [s], 7;", ["WAW"]),
    "one lane after the other": ("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 7; @%p1 ld.shared.u32 %r3, [s];", []),
    "halves": ("mul.wide.u32 %rd5, %r1, 2; add.u64 %rd5, %rd5, %rd4; mov.u16 %h1, 1; st.shared.u16 [%rd5], %h1;", []),
    "halves and words": (
        """mul.wide.u32 %rd5, %r1, 2; add.u64 %rd5, %rd5, %rd4; mov.u16 %h1, 1; st.shared.u16 [%rd5], %h1; bar.sync 0;
        setp.eq.u32 %p1, %r1, 3; @%p1 st.shared.u32 [s+16], %r1;""", [],
    ),
    "atomics": ("atom.shared.add.u32 %r3, [s], 1;", []),
    "an atomic and a weak write": ("atom.shared.add.u32 %r3, [s], 1; st.shared.u32 [s], 0;", ["WAW", "WAW"]),
}  # fmt: skip


@pytest.mark.parametrize(("body", "hazards"), SHARED.values(), ids=SHARED)
def test_what_orders_accesses_of_a_warp(body, hazards):
    assert [each.hazard for each in checked(body, grid=1)] == hazards


def test_a_barrier_does_not_order_threads_that_have_ended():
    body = """
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra FIRST;
    bar.sync 0;
    sub.u64 %rd3, %rd3, 128;
    ld.shared.u32 %r3, [%rd3];
    ret;
FIRST:
    st.shared.u32 [%rd3], %r1;
    """
    assert {each.kind for each in checked(body, grid=1, block=64)} == {"race"}


def test_a_finding_says_what_where_and_by_whom():
    body = """setp.ge.u32 %p1, %r1, 2; @%p1 ret; setp.eq.u32 %p2, %r1, 1;
    @%p2 ld.shared.u32 %r3, [s+8]; @!%p2 st.shared.u32 [s+8], 1;"""
    (found,) = checked(body, grid=1, schedules=1)
    assert (found.kind, found.hazard, found.space, found.mixed_size) == ("race", "WAR", "shared", False)
    read, write = found.accesses
    assert (read.operation, read.thread, read.cta, list(read.bytes)) == ("read", (1, 0, 0), (0, 0, 0), [8, 9, 10, 11])
    assert (write.operation, write.thread, write.strength) == ("write", (0, 0, 0), "weak")
    assert write.place.text == "@!%p2 st.shared.u32 [s+8], 1"
    assert "bar.warp.sync" in found.missing
    assert found.diagnostic().code == "race"


# ── fence.sc, and atomics of another thread behind a barrier ────────────────────────────

LAST_BLOCK = """
    mad.lo.u32 %r3, %r2, 64, %r1;
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd3, %rd3, %rd1;
    setp.eq.u32 %p1, %r1, 0;
    st.global.u32 [%rd3], 1;
    {before}
    bar.sync 0;
    @%p1 atom.global.add.u32 %r4, [%rd2], 1;
    @%p1 st.shared.u32 [s], %r4;
    bar.sync 0;
    ld.shared.u32 %r4, [s];
    setp.ne.u32 %p2, %r4, 1;
    @%p2 ret;
    {after}
    xor.b32 %r5, %r3, 64;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd3, %rd3, %rd1;
    ld.global.u32 %r6, [%rd3];
"""
FENCES = {
    ("membar.gl;", "membar.gl;"): True,
    ("fence.sc.gpu;", "membar.sys;"): True,
    ("fence.sc.gpu;", "@%p1 fence.sc.gpu; bar.sync 0;"): True,  # by the thread that counts, and then a barrier
    ("bar.sync 0; @%p1 fence.acq_rel.gpu;", "@%p1 fence.acq_rel.gpu; bar.sync 0;"): True,  # both patterns are of thread 0
    ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;"): False,  # the pattern of the atomic is of another thread
    ("fence.sc.gpu;", "fence.acq_rel.gpu;"): False,
    ("membar.cta;", "membar.gl;"): False,
    ("membar.gl;", ""): False,
}


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("fences", "ordered"), FENCES.items(), ids=map(" ".join, FENCES))
def test_the_last_block_reads_what_the_others_wrote(fences, ordered, engine):
    """8.9.3: the atomics have an order, so the fence.sc before the first comes before the one behind the second."""
    before, after = fences
    module = ptxvm.load(HEAD + LAST_BLOCK.format(before=before, after=after) + "\n    ret;\n}\n")
    args = [np.zeros(128, np.uint32), np.zeros(4, np.uint32)]
    found = module.kernel().launch(2, 64, args, check=("race",), engine=engine).findings
    assert bool(found) != ordered


VECTOR = "setp.eq.u32 %p1, %r2, 0; @%p1 red.global.add.v4.f32 [%rd1], {0f3f800000, 0f3f800000, 0f3f800000, 0f3f800000};"
ELEMENTS = {
    "the vector": ("@!%p1 red.global.add.v4.f32 [%rd1], {0f00000000, 0f00000000, 0f00000000, 0f3f800000};", []),
    "an element": ("@!%p1 red.global.add.f32 [%rd1+12], 0f3f800000;", []),
    "half of it": ("@!%p1 red.global.add.v2.f32 [%rd1+8], {0f3f800000, 0f3f800000};", []),
    "two elements": ("@!%p1 red.global.add.f64 [%rd1+8], 0d3ff0000000000000;", [("WAW", True)]),
    "a weak read": ("@!%p1 ld.global.u32 %r3, [%rd1+12];", [("RAW", False)]),
    "behind it": ("@!%p1 ld.global.u32 %r3, [%rd1+16];", []),
}


@pytest.mark.parametrize(("other", "races"), ELEMENTS.values(), ids=ELEMENTS)
def test_each_element_of_a_vector_is_an_atomic_of_its_own(other, races):
    """PTX 8.2.2: a vector is several scalars; 8.7.1: strong accesses that overlap completely do not race."""
    assert [(each.hazard, each.mixed_size) for each in checked(f"{VECTOR} {other}", schedules=1)] == races

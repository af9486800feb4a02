"""The checks on the JIT where CTAs wait for each other, and so run beside each other.

What is expected follows from release and acquire patterns (PTX 8.8), from barriers (9.7.13.1) and from what is initialised; the
exact checker has to say the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 other, .param .u64 words)
{
    .shared .align 4 .b8 s[256];
    .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [other]; ld.param.u64 %rd3, [words];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1; setp.eq.u32 %p1, %r1, 0;
    mad.wide.u32 %rd4, %r3, 4, %rd1; mad.wide.u32 %rd5, %r3, 4, %rd2;
    add.u32 %r4, %r3, 1; and.b32 %r4, %r4, 255; mad.wide.u32 %rd6, %r4, 4, %rd1; mad.wide.u32 %rd7, %r4, 4, %rd2;
    mov.u32 %r5, s; mad.lo.u32 %r5, %r1, 4, %r5;
"""
COUNT = "atom.global.add.u32 %r6, [%rd3], 1;"
WAIT = "WAIT{n}: ld.volatile.global.u32 %r6, [%rd3]; setp.lt.u32 %p2, %r6, {all}; @%p2 bra WAIT{n};"
BARRIERS = {
    "acquire and release": """
        bar.sync 0; @!%p1 bra MET{n}; atom.acq_rel.gpu.global.add.u32 %r6, [%rd3], 1;
        WAIT{n}: ld.acquire.gpu.global.u32 %r6, [%rd3]; setp.lt.u32 %p2, %r6, {all}; @%p2 bra WAIT{n}; MET{n}: bar.sync 0;
    """,
    "fences of thread 0": f"bar.sync 0; @!%p1 bra MET{{n}}; membar.gl; {COUNT} {WAIT} membar.gl; MET{{n}}: bar.sync 0;",
    "fence.sc of all threads": f"membar.gl; bar.sync 0; @!%p1 bra MET{{n}}; {COUNT} {WAIT} membar.gl; MET{{n}}: bar.sync 0;",
    "all threads wait": """
        bar.sync 0; @!%p1 bra WAIT{n}; red.release.gpu.global.add.u32 [%rd3], 1;
        WAIT{n}: ld.acquire.gpu.global.u32 %r6, [%rd3]; setp.lt.u32 %p2, %r6, {all}; @%p2 bra WAIT{n};
    """,
}
LEFT = {"fence.sc of all threads"}
"""Left to the exact checker where several CTAs read a word: its tag has the time of one warp, and each warp has a fence."""
NO_BARRIERS = {
    "no release": f"bar.sync 0; @!%p1 bra MET{{n}}; {COUNT} {WAIT} membar.gl; MET{{n}}: bar.sync 0;",
    "no acquire": f"bar.sync 0; @!%p1 bra MET{{n}}; membar.gl; {COUNT} {WAIT} MET{{n}}: bar.sync 0;",
    "others go on": f"bar.sync 0; @!%p1 bra MET{{n}}; membar.gl; {COUNT} {WAIT} membar.gl; MET{{n}}:",
}
# Each thread reads what the next one has written, in two arrays by turns: at the edges another CTA.
STEP = "ld.global.u32 %r7, [{own}]; ld.global.u32 %r8, [{next}]; add.u32 %r7, %r7, %r8; st.global.u32 [{to}], %r7; {barrier}"
# Each thread reads all that the grid has written, and then writes.
ALL = """
    mov.u32 %r9, 0; mov.u32 %r7, 0;
    L{n}: mad.wide.u32 %rd8, %r9, 4, %rd1; ld.global.u32 %r8, [%rd8]; add.u32 %r7, %r7, %r8; add.u32 %r9, %r9, 1;
    setp.lt.u32 %p3, %r9, 256; @%p3 bra L{n}; {barrier} st.global.u32 [%rd4], %r7; {then}
"""


def barrier(kind, number):
    """The barrier of the grid with a number, which four CTAs count to."""
    return (BARRIERS | NO_BARRIERS)[kind].format(n=number, all=4 * number)


def steps(kind, *, last="acquire and release"):
    """Three steps with barriers between them."""
    turns = [("%rd4", "%rd6", "%rd5"), ("%rd5", "%rd7", "%rd4"), ("%rd4", "%rd6", "%rd5")]
    kinds = [kind, last, kind]
    return "".join(
        STEP.format(own=own, next=other, to=to, barrier=barrier(kinds[n], n + 1)) for n, (own, other, to) in enumerate(turns)
    )


def launched(body, engine="jit", check="race", **options):
    """The findings of four CTAs, and what they have written."""
    data, other = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    kernel = ptxvm.load(f"{HEAD}{body} ret; }}").kernel()
    done = kernel.launch(4, 64, [data, other, np.zeros(8, np.uint32)], engine=engine, check=check, **options)
    return [str(each) for each in done.findings], data.tolist(), other.tolist()


def stepped():
    """What three steps leave."""
    data, other = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    for source, target in ((data, other), (other, data), (data, other)):
        target[:] = source + np.roll(source, -1)
    return data.tolist(), other.tolist()


@pytest.mark.parametrize("check", ["memory", "sync", "init", "race"])
@pytest.mark.parametrize("kind", BARRIERS)
def test_barriers_of_the_grid_are_followed(kind, check, quick):
    found, *left = launched(steps(kind), check=check)
    assert quick() == (check != "race" or kind not in LEFT)
    assert found == []
    assert tuple(left) == stepped()


@pytest.mark.parametrize("kind", NO_BARRIERS)
def test_what_is_no_barrier_is_found(kind, quick):
    found, *_ = launched(steps(kind))
    assert not quick()
    assert any(each.startswith("race:") for each in found), found
    assert found == launched(steps(kind), "interp")[0]


@pytest.mark.parametrize("kind", BARRIERS)
@pytest.mark.parametrize("then", ["", "ld.global.u32 %r7, [%rd6];"])
def test_several_ctas_read_what_one_writes_later(kind, then, quick):
    """All must have told the one that they have read; and who reads again afterwards has to be told, too."""
    body = ALL.format(n=1, barrier=barrier(kind, 1), then=then)
    found, data, _ = launched(body)
    assert quick() == (then == "" and kind not in LEFT)
    assert bool(found) == (then != "")
    assert found == launched(body, "interp")[0]
    assert data == [sum(range(256))] * 256


def test_all_that_have_read_must_tell_it(quick):
    """CTA 3 does not wait for CTA 0, which has read, and has told nobody, but for the others."""
    meets = "setp.eq.u32 %p4, %r2, 0; @%p4 bra GONE; bar.sync 0; @!%p1 bra MET; atom.acq_rel.gpu.global.add.u32 %r6, [%rd3], 1;"
    waits = "WAIT: ld.acquire.gpu.global.u32 %r6, [%rd3]; setp.lt.u32 %p2, %r6, 3; @%p2 bra WAIT; MET: bar.sync 0;"
    body = ALL.format(n=1, barrier=meets + waits, then="GONE:")
    found, *_ = launched(body)
    assert not quick()
    assert any(each.startswith("race:") for each in found), found
    assert found == launched(body, "interp")[0]


def test_what_a_cta_tells_later_is_not_what_others_have_waited_for(quick):
    """The last CTA at a barrier must not be at the next one before the others go on: they would know what it did meanwhile."""
    body = "st.global.u32 [%rd4], 1;" + barrier("acquire and release", 1)
    body += "ld.global.u32 %r7, [%rd6]; st.global.u32 [%rd4], %r7;"
    body += barrier("acquire and release", 2)
    found, *_ = launched(body)
    assert not quick()
    assert any(each.startswith("race:") for each in found), found
    assert found == launched(body, "interp")[0]


@pytest.mark.parametrize("own", [True, False])
def test_shared_memory_is_that_of_each_cta(own, quick):
    """CTA 2 has no values in its own, whatever the others have written to theirs."""
    body = f"setp.eq.u32 %p3, %r2, 2; {'' if own else '@!%p3'} st.shared.u32 [%r5], %r3;" + barrier("acquire and release", 1)
    body += "ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd5], %r7;"
    found, _, other = launched(body, check="init")
    assert quick() == own
    assert found == launched(body, "interp", "init")[0]
    assert bool(found) != own
    assert other[:64] == list(range(64))


@pytest.mark.parametrize("own", [True, False])
def test_registers_are_those_of_each_cta(own, quick):
    body = f"setp.eq.u32 %p3, %r2, 2; {'' if own else '@!%p3'} mov.u32 %r10, %r3;" + barrier("acquire and release", 1)
    body += "st.global.u32 [%rd5], %r10;"
    found, *_ = launched(body, check="init")
    assert quick() == own
    assert bool(found) != own
    assert found == launched(body, "interp", "init")[0]


@pytest.mark.parametrize("check", ["init", "race"])
def test_the_workspace_of_the_grid_is_known_from_the_beginning(check, quick):
    """The address is in %envreg1 and %envreg2, as CUDA's runtime leaves it (`isa.special_registers`)."""
    where = "mov.b32 %r11, %envreg2; mov.b32 %r12, %envreg1; mov.b64 %rd3, {%r11, %r12}; add.u64 %rd3, %rd3, 4;"
    found, *left = launched(where + steps("acquire and release"), check=check, cooperative=True)
    assert quick()
    assert found == []
    assert tuple(left) == stepped()


def test_loads_of_weak_stores_are_not_strong_ones_for_which_a_store_must_wait(quick):
    """Volatile loads of what another CTA has stored weakly, which the barrier orders, before it is stored again."""
    body = "st.global.u32 [%rd4], %r3;" + barrier("fence.sc of all threads", 1)
    body += "ld.volatile.global.u32 %r7, [%rd6];" + barrier("fence.sc of all threads", 2)
    body += "st.global.u32 [%rd5], %r7; st.global.u32 [%rd4], 5;"
    found, data, other = launched(body)
    assert quick()
    assert found == []
    assert data == [5] * 256
    assert other == [(n + 1) % 256 for n in range(256)]


@pytest.mark.parametrize("meets", ["", "bar.warp.sync -1;"])
def test_whole_warps_that_wait_for_later_ctas_end(meets, quick):
    """CTA 0 waits for CTA 3 with all its lanes, and a race has been suspected: code for warps that meet runs CTAs in turn."""
    body = f"{meets} st.global.u32 [%rd4], %r1; @%p1 red.release.gpu.global.add.u32 [%rd3], 1;"
    body += "WAIT: ld.acquire.gpu.global.u32 %r6, [%rd3]; setp.lt.u32 %p2, %r6, 4; @%p2 bra WAIT;"
    body += "ld.global.u32 %r7, [%rd6]; st.global.u32 [%rd5], %r7;"
    found, *_ = launched(body)
    assert not quick()
    assert found == launched(body, "interp")[0] != []
